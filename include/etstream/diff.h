// SPDX-License-Identifier: BSD-3-Clause
//
// What differs between two files, in the terms of their format.
//
//   const auto a = etstream::ByteSource::file("a.pte").value();
//   const auto b = etstream::ByteSource::file("b.pte").value();
//   const auto found = etstream::diff(a, b);
//   if (!found) return found.error();
//   for (const auto& one : found->differences) std::puts(one.subject.c_str());
#pragma once

#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

struct DiffEntry {
  /// Of what a file says, or only of where it has it.
  enum class Kind { kContent, kLayout };
  Kind kind = Kind::kContent;
  std::string subject;  // "method 'forward': operator aten::add.out", "segment 2"
  std::string in_a;     // what each file has of it: "3 calls"; "" for nothing
  std::string in_b;
};

struct FileDiff {
  bool same_bytes = false;
  /// Whether one becomes the other when it is laid out again (etstream/program_plan.h, for programs), so
  /// that all differences are of the layout.
  bool same_content = false;
  std::vector<DiffEntry> differences;
};

/// Compares two programs (.pte), two files of tensor data (.ptd), two bundles (.bpte) of either format, or
/// two files of a checkpoint, each safetensors or GGUF. Of programs: methods, their signatures, operators by
/// calls, instructions, values, delegates, memory plans; constants and initial data by name, shape and bytes,
/// wherever they are in the file; named data by key; segments. Of bundles: the programs inside, and test
/// cases value by value. Of checkpoints: tensors by name, type, shape and bytes, and the metadata of two GGUF
/// files. Payloads are compared by reading them, in 512 KiB of memory; memory otherwise follows the metadata.
/// At most 1000 differences are listed. Errors: kInvalidArgument for files of two kinds; those of opening and
/// reading either.
[[nodiscard]] ETSTREAM_EXPORT Result<FileDiff> diff(const ByteSource& a, const ByteSource& b);

}  // namespace etstream
