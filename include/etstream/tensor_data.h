// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data (.ptd, identifier FT01): the weights of programs in a separate file. To describe one for
// writing:
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

/// Returns the segment alignment of the .ptd files that a release of ExecuTorch writes, in bytes.
[[nodiscard]] constexpr std::uint32_t default_segment_alignment(ExecutorchRelease release) {
  return release == ExecutorchRelease::k1_0 ? 16 : 128;
}

/// A description of tensor data, for planning.
struct TensorData {
  /// Data that becomes a segment.
  struct Buffer {
    ByteSource data;
    std::uint32_t alignment = 1;  // its own minimum, a power of two up to 2^30
  };
  /// A key, and the data that it stands for.
  struct Entry {
    std::string key;
    std::uint32_t buffer = 0;  // an index in `buffers`; several entries may share one
    /// The layout of a tensor that a program asks for by name; none for data that a backend asks for.
    std::optional<TensorLayout> layout = std::nullopt;
  };

  std::vector<Buffer> buffers;  // each in a segment, in the order in which entries first refer to them
  std::vector<Entry> entries;
  /// The alignment of each segment, a power of two up to 2^30. The default is ExecuTorch's; that of its
  /// release 1.0 is 16, the only difference in its files.
  std::uint32_t segment_alignment = default_segment_alignment(kLatestRelease);
  /// Skips the check that layouts fit their data, as ExecuTorch does: its runtime refuses those that don't.
  bool unchecked = false;
};

/// Plans the file, byte for byte as ExecuTorch serializes it. Errors: kInvalidArgument for a repeated key, an
/// invalid buffer index, an invalid alignment, or, unless `unchecked`, a layout that does not have its data's
/// size or has an invalid dim_order; kTooLarge for a flatbuffer over 2^31 - 1 bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const TensorData& data);

}  // namespace etstream
