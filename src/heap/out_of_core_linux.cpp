// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "base/try.h"
#include "etstream/out_of_core.h"
#include "heap/out_of_core_environment.h"
#include "heap/shared_tree_use_linux.h"
#include "heap/statistics.h"
#include "process/command.h"
#include "process/process_figures.h"

namespace etstream {
namespace {

/// Looks at the processes as they are now.
void look(const heap::SharedTreeUse& shared, OutOfCoreUse& use) {
  std::uint64_t anonymous = 0;
  std::uint64_t resident = 0;
  std::uint64_t spilled = 0;
  shared.for_each_process([&](const heap::ProcessUse& process) {
    const auto memory = memory_of(process.process.load());
    if (!memory) return;
    anonymous += memory->anonymous;
    resident += memory->resident;
    spilled += process.live.load();
  });
  use.anonymous = std::max(use.anonymous, anonymous);
  use.resident = std::max(use.resident, resident);
  use.spilled = std::max(use.spilled, spilled);
}

/// Adds what the processes counted themselves.
void add_counts(const heap::SharedTreeUse& shared, OutOfCoreUse& use) {
  use.processes = shared.processes();
  shared.for_each_process([&](const heap::ProcessUse& process) {
    use.blocks += process.blocks.load();
    use.paged_out += process.paged_out.load();
    use.refused += process.refused.load();
    use.spilled = std::max(use.spilled, process.peak.load());
  });
}

}  // namespace

Result<CommandEnd> run_out_of_core(const std::vector<std::string>& command, const OutOfCoreOptions& options,
                                   OutOfCoreUse& use) {
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  ETSTREAM_TRY(set_out_of_core_environment(options));
  ETSTREAM_ASSIGN(const heap::SharedTreeUse shared, heap::SharedTreeUse::make());
  const auto began = std::chrono::steady_clock::now();
  ETSTREAM_ASSIGN(const CommandEnd end, run_watched(command, [&] { look(shared, use); }));
  use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  add_counts(shared, use);
  return end;
}

}  // namespace etstream
