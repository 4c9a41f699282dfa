// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data (.ptd, identifier FT01): the weights of programs in a file of their own, described to be
// written.
//
//   etstream::TensorData weights;
//   weights.buffers.push_back({etstream::ByteSource::zeros(24)});
//   weights.entries.push_back(
//       {"linear.weight", 0, etstream::TensorLayout{etstream::ScalarType::kFloat32, {2, 3}, {0, 1}}});
//   const auto plan = etstream::plan(weights);
//   if (!plan) return plan.error();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "etstream/tensor_layout.h"
#include "etstream/writer_version.h"

namespace etstream {

/// Of the segments in a .ptd that a release of ExecuTorch writes, in bytes.
[[nodiscard]] constexpr std::uint32_t default_segment_alignment(ExecutorchRelease release) {
  return release == ExecutorchRelease::k1_0 ? 16 : 128;
}

struct TensorData {
  struct Buffer {
    ByteSource data;
    std::uint32_t alignment = 1;  // that it has of its own, a power of two up to 2^30
  };
  struct Entry {
    std::string key;
    std::uint32_t buffer = 0;  // an index in `buffers`; several entries may share one
    /// Of a tensor that a program asks for by name; none for data that a backend asks for.
    std::optional<TensorLayout> layout = std::nullopt;
  };

  std::vector<Buffer> buffers;  // each in a segment, in the order in which entries first refer to them
  std::vector<Entry> entries;
  /// Of each segment, a power of two up to 2^30. ExecuTorch's default; that of its release 1.0 is 16, which
  /// is all that its files differ in.
  std::uint32_t segment_alignment = default_segment_alignment(kLatestRelease);
  /// Leave out the check that layouts fit their data, as ExecuTorch does: its runtime refuses those that
  /// don't.
  bool unchecked = false;
};

/// The plan of the file, byte for byte as ExecuTorch serializes it. Errors: kInvalidArgument for a key
/// that comes twice, an index of no buffer, an alignment that is none, unless unchecked a layout whose size
/// is not its data's or whose dim_order is none; kTooLarge for a flatbuffer over 2^31 - 1 bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const TensorData& data);

}  // namespace etstream
