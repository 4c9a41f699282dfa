// SPDX-License-Identifier: BSD-3-Clause
//
// The judgement of a set: whether the files that are open are all of its files, and belong together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/advice.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "formats/checkpoint/set_place.h"
#include "formats/checkpoint/weight_file.h"

namespace etstream {

/// An open file of a set. Its number comes from its name, its index or the file itself, from 1 on.
struct SetMember {
  std::uint64_t number = 0;
  const WeightFile* file = nullptr;
};

/// Returns whether the first file of a set of that kind stands for all.
[[nodiscard]] bool first_stands_for_all(FileKind kind) noexcept;

/// Says which files to give in place of the part of a set that was given first.
[[nodiscard]] Advice advice_on_set(const SetPlace& place, FileKind kind);

/// Returns the flaw of a set, or nothing: a file of another set or kind, two files for one number, a missing
/// file, a tensor in two files, other sums than the files say. `place` and `kind` are those of the file that
/// was given first; `members` are ordered by number, and include that file.
[[nodiscard]] std::optional<Error> flaw_of_set(const SetPlace& place, FileKind kind,
                                               const std::vector<SetMember>& members);

/// Returns the error about a file that is one of several for model parallelism: consolidated.01.pth, or the
/// first one beside the second. Each has slices of the same tensors. Returns nothing for others.
[[nodiscard]] std::optional<Error> flaw_of_parallel_part(const std::string& path);

}  // namespace etstream
