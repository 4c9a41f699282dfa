// SPDX-License-Identifier: BSD-3-Clause
//
// Reads bundled programs in place.
//
//   auto bundle = etstream::BundledProgramFile::open(etstream::ByteSource::file("model.bpte").value());
//   if (!bundle) return bundle.error();
//   for (const auto& suite : bundle->suites()) {
//     const auto first = bundle->test_case(suite, 0);
//     if (first) std::printf("%s: %zu inputs\n", suite.method_name.c_str(), first->inputs.size());
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/findings.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

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

}  // namespace etstream
