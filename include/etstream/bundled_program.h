// SPDX-License-Identifier: BSD-3-Clause
//
// The bundled program (.bpte, identifier BP08): an ExecuTorch program together with test cases for its
// methods. The bytes are those that ExecuTorch writes for the same content, by default those of 1.5.
//
//   etstream::BundledProgram bundle;
//   bundle.program = etstream::ByteSource::file("model.pte").value();
//   bundle.method_test_suites = etstream::read_test_cases("cases.json").value();
//   auto written = etstream::write_file(bundle, "model.bpte");
//   if (!written) std::fprintf(stderr, "%s\n", full_message(written.error()).c_str());
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

/// The inputs of a call of a method, and what it has to return for them.
struct MethodTestCase {
  std::vector<Value> inputs;            // one for each input of the method
  std::vector<Value> expected_outputs;  // one for each output of the method
};

/// The test cases of one method.
struct MethodTestSuite {
  std::string method_name;  // UTF-8
  std::vector<MethodTestCase> test_cases;
};

/// Suites are written in the order given; ExecuTorch's own API sorts them by method name.
struct BundledProgram {
  std::uint32_t version = 2;  // the schema's: BUNDLED_PROGRAM_SCHEMA_VERSION in ExecuTorch 1.5.1
  std::vector<MethodTestSuite> method_test_suites;
  ByteSource program;  // a whole .pte file
};

/// BP08 is ExecuTorch's own format: one flatbuffer of at most 2 GiB. A segmented bundle (BPS1) has the same
/// content and may be of any size: the program and large tensors follow the metadata, aligned and hashed.
/// schema/segmented_bundle.md specifies it.
enum class BundleFormat { kBp08, kSegmented };

/// Options of plan(BundledProgram) and write_file(BundledProgram).
struct BundledProgramOptions {
  BundleFormat format = BundleFormat::kBp08;
  /// True to store hashes in the directory of a segmented bundle, by which verify() finds damage.
  bool hash = true;
  /// The alignment of the program in a BP08 file: a power of two from 1 to 65536. ExecuTorch writes 32; with
  /// the page size, the program can be mapped in place. ExecuTorch does not load a program whose offset is
  /// not a multiple of 16.
  std::uint32_t program_alignment = 32;
  /// Skips check(), for a program that it does not know or test cases that another reader runs.
  bool unchecked = false;
  /// The ExecuTorch release and the behaviour of its FlatBuffers builder that a BP08 file reproduces.
  WriterVersion writer = {};
};

/// Checks that the program is sound, that ExecuTorch loads it, and that the test cases fit its methods: that
/// each method exists; the number, kind, dtype and shape of inputs and outputs; that a tensor's data has the
/// size that its shape implies; at most 16 dimensions. Where they don't fit, ExecuTorch 1.5.1 reads out of
/// bounds or aborts. Reads the program's metadata. Errors: kCorrupt if the program can't be read at all; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> check(const BundledProgram& bundle);

/// Plans the file. The elements of tensors in any order (Tensor::any_order) are laid out as the methods of
/// the program have them; those of others stay as they lie. Errors: kInvalidArgument for what check() finds,
/// naming the method, the case and the value; kTooLarge for a flatbuffer over its limit of 2^31 - 1 bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const BundledProgram& bundle,
                                                    const BundledProgramOptions& options = {});

/// The options of a bundle, and how to write its file.
struct BundledProgramFileOptions : BundledProgramOptions {
  FileSinkOptions file;
  Progress progress;
};

/// Plans the bundle and writes it to `path`, all or nothing; see open_file_sink.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_file(const BundledProgram& bundle, const std::string& path,
                                                      const BundledProgramFileOptions& options = {});

}  // namespace etstream
