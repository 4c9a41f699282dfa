// SPDX-License-Identifier: BSD-3-Clause
//
// The bundled program (.bpte, identifier BP08): an ExecuTorch program together with test cases for its
// methods. The bytes are those that ExecuTorch writes for the same content, by default those of 1.5.
//
//   etstream::BundledProgram bundle;
//   bundle.program = etstream::ByteSource::file("model.pte").value();
//   bundle.method_test_suites = etstream::read_test_cases("cases.json").value();
//   auto written = etstream::write_file(bundle, "model.bpte");
//   if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/findings.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"
#include "etstream/write.h"
#include "etstream/writer_version.h"

namespace etstream {

struct MethodTestCase {
  std::vector<Value> inputs;            // one for each input of the method
  std::vector<Value> expected_outputs;  // one for each output of the method
};

struct MethodTestSuite {
  std::string method_name;  // UTF-8
  std::vector<MethodTestCase> test_cases;
};

/// Suites are written in the order given; ExecuTorch's own API sorts them by method name.
struct BundledProgram {
  std::uint32_t version = 2;  // of the schema: BUNDLED_PROGRAM_SCHEMA_VERSION in ExecuTorch 1.5.1
  std::vector<MethodTestSuite> method_test_suites;
  ByteSource program;  // a whole .pte file
};

/// BP08 is ExecuTorch's own: one flatbuffer, at most 2 GiB. A segmented bundle (BPS1) has the same content
/// with the program and large tensors behind the metadata, of any size, aligned and hashed;
/// schema/segmented_bundle.md specifies it.
enum class BundleFormat { kBp08, kSegmented };

struct BundledProgramOptions {
  BundleFormat format = BundleFormat::kBp08;
  /// Of a segmented bundle: whether its directory has hashes, by which verify() finds damage.
  bool hash = true;
  /// Of the program in a BP08 file: a power of two from 1 to 65536. 32 is what ExecuTorch writes; the page
  /// size lets the program be mapped where it lies. ExecuTorch loads no program that lies at no multiple
  /// of 16.
  std::uint32_t program_alignment = 32;
  /// Leave out check(), for a program that it does not know, or test cases that some other reader runs.
  bool unchecked = false;
  /// Of a BP08 file: the release of ExecuTorch, and the way of its FlatBuffers builder, that it is written
  /// as.
  WriterVersion writer = {};
};

/// Whether the program is sound and the test cases fit its methods: that a method exists; number, kind, dtype
/// and shape of inputs and outputs; that a tensor's data is as long as its sizes say; at most 16
/// dimensions. ExecuTorch 1.5.1 reads out of bounds, or aborts, where they don't. Reads the program's
/// metadata. Errors: kCorrupt where the program can't be read at all; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> check(const BundledProgram& bundle);

/// The plan of the file. Errors: kInvalidArgument for what check() finds, naming the method, the case and the
/// value; kTooLarge over 2^31 - 1 bytes, where a flatbuffer ends.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const BundledProgram& bundle,
                                                    const BundledProgramOptions& options = {});

struct BundledProgramFileOptions : BundledProgramOptions {
  FileSinkOptions file;
  Progress progress;
};

/// Plans the bundle and writes it to `path`, all or nothing; see open_file_sink.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_file(const BundledProgram& bundle, const std::string& path,
                                                      const BundledProgramFileOptions& options = {});

}  // namespace etstream
