// SPDX-License-Identifier: BSD-3-Clause
//
// Bundled programs, read where they lie.
//
//   auto bundle = etstream::BundledProgramFile::open(etstream::ByteSource::file("model.bpte").value());
//   if (!bundle) return bundle.error();
//   for (const auto& suite : bundle->suites()) {
//     const auto first = bundle->test_case(suite, 0);
//     if (first) std::printf("%s: %zu inputs\n", suite.method_name.c_str(), first->inputs.size());
//   }
#pragma once

#include <cstdint>
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

/// An open bundle. Holds at most 512 KiB of it in memory and the names of its suites, whatever its size.
/// All functions may be called from several threads at once. Errors: kCorrupt, naming file, offset,
/// expected and found; kIo.
class ETSTREAM_EXPORT BundledProgramFile {
 public:
  /// The test cases of one method.
  struct Suite {
    std::string method_name;
    std::uint32_t test_cases = 0;
    std::uint64_t position = 0;  // of its table in the file
  };

  /// Reads all metadata and checks its structure: every table, vector and string, and the zeros between
  /// them. Memory while it does: 16 bytes an object.
  [[nodiscard]] static Result<BundledProgramFile> open(ByteSource file);

  BundledProgramFile(BundledProgramFile&&) noexcept;
  BundledProgramFile& operator=(BundledProgramFile&&) noexcept;
  ~BundledProgramFile();

  [[nodiscard]] const ByteSource& file() const noexcept;
  [[nodiscard]] BundleFormat format() const noexcept;
  [[nodiscard]] std::uint32_t version() const noexcept;
  /// The .pte file inside, which stays where it is.
  [[nodiscard]] const ByteSource& program() const noexcept;
  /// Where it is, in bytes from the start of the file.
  [[nodiscard]] std::uint64_t program_offset() const noexcept;
  /// The program, opened: ProgramFile::open(program()), with messages that say that it is in this file.
  /// Offsets in them are from the program's start.
  [[nodiscard]] Result<ProgramFile> open_program() const;
  /// In file order; a method may come twice.
  [[nodiscard]] const std::vector<Suite>& suites() const noexcept;

  /// Test case `index`, below `suite.test_cases`, of a suite of this file. The data of its tensors stays
  /// where it is. Error also: kUnsupported for a tensor of more than 16 dimensions.
  [[nodiscard]] Result<MethodTestCase> test_case(const Suite& suite, std::uint32_t index) const;

  /// The whole bundle as a description. Memory follows the number of values.
  [[nodiscard]] Result<BundledProgram> read() const;

  /// The plan of the same content in another format; of a copy where it is in that format. BP08 to segmented
  /// and back gives the original bytes, also of bundles that other writers laid out. `hash` is for segmented
  /// ones. Error also: kTooLarge for a BP08 file over 2^31 - 1 bytes.
  [[nodiscard]] Result<FilePlan> plan_as(BundleFormat to, bool hash = true) const;

  /// Checks the program, and that the test cases fit its methods. What is wrong is added to `findings`.
  /// Error: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify(Findings& findings) const;
  /// The same with the program already open: `program` is what open_program() gave.
  [[nodiscard]] Result<void> verify(const Result<ProgramFile>& program, Findings& findings) const;

 private:
  struct ETSTREAM_HIDDEN Impl;
  explicit BundledProgramFile(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// The program that `file` is, or that is in it if it is a bundle. Error also: kUnsupported for another kind
/// of file.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramFile> open_program(const ByteSource& file);

}  // namespace etstream
