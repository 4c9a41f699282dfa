// SPDX-License-Identifier: BSD-3-Clause
#include "files/xnnpack_cache_fit.h"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "formats/pte/backends/named_data_uses.h"

namespace etstream {

Result<XnnpackCacheFit> fit_xnnpack_cache(const ProgramFile& program, const XnnpackCacheFile& cache,
                                          Findings& findings) {
  std::set<std::string_view> there;
  for (const XnnpackCacheEntry& entry : cache.entries()) there.insert(entry.name);
  ETSTREAM_ASSIGN(const auto delegates, read_named_data_uses(program));
  XnnpackCacheFit fit{cache.file().name(), {}, {}};
  // The kernel decides whether the bias is packed, and so is in the name.
  std::set<std::string, std::less<>> looked_up;
  std::set<std::string, std::less<>> asked;
  std::set<std::string_view> missed;
  FileBudget budget(program.file());
  for (const DelegateUses& delegate : delegates) {
    std::set<std::pair<std::size_t, std::optional<std::size_t>>> seen;  // filters, biases
    for (const XnnpackPacking& packing : delegate.packings) {
      if (!seen.emplace(packing.filter, packing.bias).second) continue;
      const std::string& weights = delegate.uses[packing.filter].key;
      const std::string name = weights + (packing.bias ? delegate.uses[*packing.bias].key : "");
      ETSTREAM_TRY(budget.spend(name.size()));
      asked.insert(weights);
      if (!looked_up.insert(name).second || there.contains(name) || there.contains(weights)) continue;
      if (missed.insert(weights).second) fit.misses.push_back(weights);
      add_warning(findings,
                  error_in(ErrorCode::kCorrupt, fit.file,
                           "expected packed weights of key {} for {}, {}, found none: ExecuTorch packs "
                           "them into memory each time that it loads the method",
                           quote(weights), delegate.asker, packing.node));
    }
  }
  asked.merge(looked_up);
  for (const std::string_view name : there) {
    if (!asked.contains(name)) fit.unasked.emplace_back(name);
  }
  if (!fit.unasked.empty()) {
    add_warning(findings, error_in(ErrorCode::kCorrupt, fit.file,
                                   "expected weights that {} looks up, found {} of other weights, {} first",
                                   program.file().name(), fit.unasked.size(), quote(fit.unasked.front())));
  }
  return fit;
}

}  // namespace etstream
