// SPDX-License-Identifier: BSD-3-Clause
//
// Compares the delegates of two programs, and the named data that they ask for, by its use. A key that is a
// hash of its data can't tell what became of a weight.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "etstream/program.h"
#include "etstream/program_graph.h"
#include "etstream/result.h"
#include "files/diff_list.h"
#include "formats/pte/backends/backend_payload.h"

namespace etstream {

/// Named data by its key. If a key comes twice, its first data counts.
using NamedPieces = std::map<std::string, ByteSource>;

class DelegateComparison {
 public:
  /// Reads what the delegates of both programs ask for. Errors: those of read_named_data_uses().
  [[nodiscard]] static Result<DelegateComparison> open(const ProgramFile& a, const ProgramFile& b);

  /// Compares the delegates of a method that is in both: their data without keys, and the data that they ask
  /// for, one after another.
  [[nodiscard]] Result<void> compare(DiffList& list, const std::vector<GraphDelegate>& a,
                                     const std::vector<GraphDelegate>& b);

  [[nodiscard]] const NamedPieces& named_a() const noexcept { return a_.named; }
  [[nodiscard]] const NamedPieces& named_b() const noexcept { return b_.named; }
  /// Returns the keys of the named data that was compared.
  [[nodiscard]] const std::set<std::string>& compared_a() const noexcept { return a_.compared; }
  [[nodiscard]] const std::set<std::string>& compared_b() const noexcept { return b_.compared; }

 private:
  struct Side {
    std::map<std::pair<bool, std::uint32_t>, DelegateUses> uses;  // by the place of the delegate's data
    NamedPieces named;
    std::set<std::string> compared;
  };

  [[nodiscard]] static Result<Side> read_side(const ProgramFile& program);
  /// Returns null if the delegate's data asks for nothing.
  [[nodiscard]] static const DelegateUses* uses_of(const Side& side, const GraphDelegate& delegate);
  [[nodiscard]] Result<void> compare_uses(DiffList list, const DelegateUses& a, const DelegateUses& b);
  [[nodiscard]] Result<void> compare_use(DiffList& list, std::size_t number, const NamedDataUse& a,
                                         const NamedDataUse& b);

  Side a_;
  Side b_;
  std::set<std::pair<std::string, std::string>> told_;  // pairs of keys
};

}  // namespace etstream
