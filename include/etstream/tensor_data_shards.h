// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data in several files (shards) that a program is loaded with together: NAME-00001-of-00003.ptd.
//
//   const auto shards = etstream::split(etstream::TensorData(), std::uint64_t{1} << 30);
//   if (!shards) return shards.error();
//   const auto count = static_cast<std::uint32_t>(shards->size());
//   for (std::uint32_t i = 1; i <= count; ++i) std::puts(etstream::shard_path("w.ptd", i, count).c_str());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"

namespace etstream {

/// Splits `data` into shards with at most `most` bytes of data each, not counting tables and padding. The
/// shards are those of ExecuTorch (externalize_pte_data in exir/_serialize/_named_data_store.py): sorted by
/// key, with all keys of the same bytes together, and the same for the same content. Drops buffers that no
/// entry has. Returns at least one shard. Errors: kInvalidArgument for a `most` of 0, an invalid buffer
/// index, and data over `most` bytes, as no data is cut.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<TensorData>> split(const TensorData& data,
                                                                    std::uint64_t most);

/// Returns the path of shard `number`, from 1 on: "out/w-00001-of-00003.ptd" for "out/w.ptd". Adds the
/// extension .ptd if `path` does not have it.
[[nodiscard]] ETSTREAM_EXPORT std::string shard_path(const std::string& path, std::uint32_t number,
                                                     std::uint32_t count);

}  // namespace etstream
