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
//
// Reads bundled programs in place.
//
//   auto bundle = etstream::BundledProgramFile::open(etstream::ByteSource::file("model.bpte").value());
//   if (!bundle) return bundle.error();
//   for (const auto& suite : bundle->suites()) {
//     const auto first = bundle->test_case(suite, 0);
//     if (first) std::printf("%s: %zu inputs\n", suite.method_name.c_str(), first->inputs.size());
//   }
//
// Test cases from a JSON file that refers to tensors in other files.
//
//   const auto suites = etstream::read_test_cases("cases.json");
//   if (!suites) return suites.error();
//   for (const auto& suite : *suites) std::puts(suite.method_name.c_str());
//
// The file lists the cases of each method:
//
//   {"forward": [{"inputs": [{"npy": "x.npy"}, 3, true], "expected_outputs": [{"npy": "y.npy"}]}]}
//
// A value is
// - an integer: a number without a decimal point or an exponent;
// - a double: a number with either, {"double": "nan"}, "inf" or "-inf", or its 64 bits in hexadecimal,
//   {"double_bits": "7ff8000000000001"};
// - true or false;
// - null: no value (std::monostate);
// - a tensor: {"npy": "x.npy"}, {"safetensors": "f.safetensors", "name": "x"}, or
//   {"raw": "x.bin", "dtype": "float32", "shape": [1, 3]}.
// A bundle has the elements of a tensor in the method's order of dimensions, or in the order of "dim_order"
// if the tensor has one. The bytes of a raw file are contiguous, or, with "dim_order", lie in that order
// already. Paths are relative to the JSON file. dtypes have torch's names. A case without expected_outputs is
// for profiling only.
//
// An object of methods gives suites sorted by method name, as ExecuTorch writes them. To list a method twice,
// or in another order, use a list [{"method": "forward", "cases": [...]}]: its suites keep their order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"

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

/// An open bundle. Whatever its size, it holds at most 512 KiB of the file in memory, and the names of its
/// suites. All functions may be called from several threads at once. Errors: kCorrupt, naming file, offset,
/// expected and found; kIo.
class ETSTREAM_EXPORT BundledProgramFile {
 public:
  /// The test cases of one method.
  struct Suite {
    std::string method_name;
    std::uint32_t test_cases = 0;
    std::uint64_t position = 0;  // the offset of its table in the file
  };

  /// Reads all metadata and checks its structure: every table, vector and string, and the zeros between them.
  /// Memory during the check: 16 bytes per object.
  [[nodiscard]] static Result<BundledProgramFile> open(ByteSource file);

  BundledProgramFile(BundledProgramFile&&) noexcept;
  BundledProgramFile& operator=(BundledProgramFile&&) noexcept;
  ~BundledProgramFile();

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept;
  /// Returns the format of the bundle.
  [[nodiscard]] BundleFormat format() const noexcept;
  /// Returns the version of the schema, as in BundledProgram.
  [[nodiscard]] std::uint32_t version() const noexcept;
  /// Returns the .pte file in the bundle. It is not copied.
  [[nodiscard]] const ByteSource& program() const noexcept;
  /// Returns the offset of the program in bytes from the start of the file.
  [[nodiscard]] std::uint64_t program_offset() const noexcept;
  /// Opens the program as ProgramFile::open(program()) does, but messages also name this file. Offsets in
  /// them are from the program's start.
  [[nodiscard]] Result<ProgramFile> open_program() const;
  /// Returns the suites in file order. A method may have several.
  [[nodiscard]] const std::vector<Suite>& suites() const noexcept;

  /// Reads test case `index`, below `suite.test_cases`, of a suite of this file. The data of its tensors
  /// stays in the file. Further error: kUnsupported for a tensor of more than 16 dimensions.
  [[nodiscard]] Result<MethodTestCase> test_case(const Suite& suite, std::uint32_t index) const;

  /// Reads the whole bundle as a description. Memory grows with the number of values.
  [[nodiscard]] Result<BundledProgram> read() const;

  /// Checks the bytes of a segmented bundle against its hashes, if it has them: reads all of it. To be called
  /// before something is taken out of the file, as that has no hash. Error: kCorrupt for damage.
  [[nodiscard]] Result<void> check_hashes() const;

  /// Plans the same content in another format, or a copy if the file already has that format. BP08 to
  /// segmented and back gives the original bytes, also for bundles with another writer's layout. Calls
  /// check_hashes() first if the plan would not keep the hashes. `hash` applies to segmented bundles. Further
  /// errors: kTooLarge for a BP08 file over 2^31 - 1 bytes; kInvalidArgument for a segmented bundle that is
  /// to have hashes and has none, or the reverse.
  [[nodiscard]] Result<FilePlan> plan_as(BundleFormat to, bool hash = true) const;

  /// Checks the program, as ProgramFile::verify() does, whether ExecuTorch loads it from a bundle, and that
  /// the test cases fit its methods. Adds the problems to `findings`. Errors: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify(Findings& findings) const;
  /// A function that adds the problems of a program to the findings.
  using CheckProgram = std::function<Result<void>(const ProgramFile&, Findings&)>;
  /// Does the same as verify(Findings&), but with `check` in the place of the check of the program. `program`
  /// is what open_program() returned.
  [[nodiscard]] Result<void> verify(const Result<ProgramFile>& program, const CheckProgram& check,
                                    Findings& findings) const;

 private:
  struct ETSTREAM_HIDDEN Impl;
  explicit BundledProgramFile(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// Opens the program that `file` is or, if it is a bundle, contains. Further error: kUnsupported for another
/// kind of file.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramFile> open_program(const ByteSource& file);

/// Reads the suites in the JSON file at `path`. Reads the headers of tensor files, but not their data. Memory
/// grows with the number of values. Errors: kNotFound, kIo, kCorrupt, kInvalidArgument, kUnsupported; they
/// name the file, the line, the case and the value.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<MethodTestSuite>> read_test_cases(const std::string& path);

/// Writes the suites of `bundle` to a folder beside `folder` that becomes it when it is committed, alone or
/// by commit_together() with other outputs; else as write_test_cases().
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<PendingOutput>> write_test_cases_uncommitted(
    const BundledProgramFile& bundle, const std::string& folder, const FileSinkOptions& options = {},
    const Progress& progress = {}, std::optional<std::uint64_t> max_disk = {});

/// Writes the suites of `bundle` to a new folder, so that read_test_cases(folder + "/cases.json") returns the
/// same suites, bit for bit. Each tensor is a .npy file, or a file of raw bytes where NumPy can't represent
/// it. The folder appears complete or not at all; `folder` must not exist yet, or be empty. `max_disk` is the
/// limit of check_disk() for the tensors' bytes, which cases may share in the bundle. Errors: kTooLarge as
/// there; kInvalidArgument if it is neither; kUnsupported for what JSON can't express (a name that is not
/// UTF-8, a tensor whose data does not have the size that its shape implies); errors reading the bundle; kIo;
/// kInterrupted.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_test_cases(const BundledProgramFile& bundle,
                                                            const std::string& folder,
                                                            const FileSinkOptions& options = {},
                                                            const Progress& progress = {},
                                                            std::optional<std::uint64_t> max_disk = {});

}  // namespace etstream
