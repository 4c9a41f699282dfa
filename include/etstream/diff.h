// SPDX-License-Identifier: BSD-3-Clause
//
// Finds what differs between two files, in the terms of their format.
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
#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

struct DiffEntry {
  /// Whether the content differs, or only its place in the file.
  enum class Kind { kContent, kLayout };
  Kind kind = Kind::kContent;
  std::string subject;  // "method 'forward': operator aten::add.out", "segment 2"
  std::string in_a;     // what each file has: "3 calls"; "" for nothing
  std::string in_b;
};

struct FileDiff {
  bool same_bytes = false;
  /// Whether laying out one again gives the other (etstream/program_plan.h, for programs), so that all
  /// differences are in layout.
  bool same_content = false;
  std::vector<DiffEntry> differences;
};

/// Compares two programs (.pte), two files of tensor data (.ptd), two bundles (.bpte) of either format, two
/// files of a checkpoint, each safetensors or GGUF, two fat containers (.fat), or two packages (.ptn). For
/// programs: methods, their signatures, operators by calls, instructions, values, delegates, memory plans;
/// constants and initial data by name, shape and bytes, wherever they are in the file; named data by key;
/// segments. For bundles: the programs inside, and test cases value by value. For checkpoints: tensors by
/// name, type, shape and bytes, and the metadata of two GGUF files. For fat containers: payloads by name, and
/// their order. For packages: the graph, and constants by name, type, shape and bytes. Payloads are read and
/// compared in 512 KiB of memory; otherwise memory grows with the metadata. At most 1000 differences are
/// listed. Errors: kInvalidArgument for files of different kinds; errors opening or reading either.
[[nodiscard]] ETSTREAM_EXPORT Result<FileDiff> diff(const ByteSource& a, const ByteSource& b);

/// Compares what two paths stand for: two files, as diff(ByteSource, ByteSource) does, or weights of which at
/// least one is in several files, as open_checkpoint() finds them: by name, type, shape and bytes, whatever
/// the formats. With options.partial, a file of a set is compared by itself. Errors: those of both.
[[nodiscard]] ETSTREAM_EXPORT Result<FileDiff> diff(const std::string& a, const std::string& b,
                                                    const CheckpointOptions& options = {});

}  // namespace etstream
