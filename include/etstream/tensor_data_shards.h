// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data in several files (shards), which a program is loaded with together: NAME-00001-of-00003.ptd.
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

/// The shards of `data`, each with data of at most `most` bytes, not counting tables and padding. They are
/// those that ExecuTorch makes (externalize_pte_data in exir/_serialize/_named_data_store.py): by key, with
/// all keys of the same bytes together, and the same for the same content. Buffers that no entry has are left
/// out. At least one. Errors: kInvalidArgument for a `most` of 0, an entry of no buffer, and data that is
/// larger: none is cut.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<TensorData>> split(const TensorData& data,
                                                                    std::uint64_t most);

/// Where shard `number`, from 1 on, goes: "out/w-00001-of-00003.ptd" for "out/w.ptd". The ending .ptd is put
/// there where `path` has none.
[[nodiscard]] ETSTREAM_EXPORT std::string shard_path(const std::string& path, std::uint32_t number,
                                                     std::uint32_t count);

/// `paths`, and behind the first of several shards those of the others, unless they are given too. By their
/// names alone: whether a file is there is not looked at.
[[nodiscard]] ETSTREAM_EXPORT std::vector<std::string> with_all_shards(const std::vector<std::string>& paths);

}  // namespace etstream
