// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/block_watch.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "core/base/content_hash.h"
#include "memory/profile/phase_profiles.h"

namespace etstream {
namespace {

constexpr double kSoon = 0.2;                         // in seconds
constexpr std::uint64_t kBetweenLooks = 100'000'000;  // in nanoseconds
/// The bytes that are read behind the first page of a block, which may have a header, in the middle and at
/// the end.
constexpr std::size_t kSampledBytes = 4096;

/// Returns a hash of parts of a block in another process; 0 if they can't be read.
std::uint64_t sample(int process, std::uint64_t address, std::uint64_t size) {
  std::array<std::byte, 3 * kSampledBytes> bytes;
  const ::iovec here{.iov_base = bytes.data(), .iov_len = bytes.size()};
  std::array<::iovec, 3> there{};
  const std::array<std::uint64_t, 3> places{kSampledBytes, size / 2, size - kSampledBytes};
  for (std::size_t i = 0; i < there.size(); ++i) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address in another process.
    there[i] = {.iov_base = reinterpret_cast<void*>(address + places[i]), .iov_len = kSampledBytes};
  }
  const ssize_t n = ::process_vm_readv(process, &here, 1, there.data(), there.size(), 0);
  if (n != static_cast<ssize_t>(bytes.size())) return 0;
  ContentHasher hasher;
  hasher.update(bytes);
  std::uint64_t out = 0;
  std::memcpy(&out, hasher.hash().data(), sizeof(out));
  return out;
}

}  // namespace

void BlockWatch::look(const ProcessWatch& watch, const heap::LargeBlocks& blocks, std::uint64_t now) {
  std::uint64_t all = 0;
  std::uint64_t spilled = 0;
  for (const WatchedProcess& process : watch.processes()) {
    if (!process.runs) continue;
    all += process.anonymous + process.spilled;
    spilled += process.spilled;
  }
  // Blocks get their bytes after they come, so a look at the same height again sees more of them.
  const bool is_new = all >= most_ + most_ / 100 + 1 || (all >= most_ && now >= looked_ + kBetweenLooks);
  if (spilled < heap::LargeBlocks::kSmallest || !is_new) return;
  most_ = all;
  looked_ = now;
  blocks_.clear();
  for (const heap::LargeBlock& block : blocks.places) {
    const std::uint64_t address = block.address.load(std::memory_order_acquire);
    const std::int32_t process = block.process.load(std::memory_order_relaxed);
    const std::uint64_t size = block.size.load(std::memory_order_relaxed);
    if (address <= 1 || size < heap::LargeBlocks::kSmallest || !watch.runs(process)) continue;
    blocks_.push_back(
        {process, size, block.born.load(std::memory_order_relaxed), sample(process, address, size)});
  }
}

void BlockWatch::add_blocks(std::uint64_t begin, Profile& profile) const {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> alike;  // by size and samples
  for (const Block& block : blocks_) ++alike[{block.size, block.samples}];
  std::map<std::pair<std::int32_t, const ProfileJump*>, ProfileBlocks> of_jump;
  for (const Block& block : blocks_) {
    // A jump is told of soon after the memory has come. A later one names what ran next.
    const double born = seconds_between(begin, block.born);
    const auto jump = std::ranges::find_if(profile.jumps, [&](const ProfileJump& each) {
      return each.process == block.process && each.time >= born && each.time <= born + kSoon;
    });
    const bool is_known = jump != profile.jumps.end();
    ProfileBlocks& made = of_jump[{block.process, is_known ? &*jump : nullptr}];
    made.process = block.process;
    if (is_known) made.callers = jump->callers;
    made.size += block.size;
    ++made.blocks;
    if (block.samples != 0 && alike[{block.size, block.samples}] > 1) made.repeated += block.size;
  }
  for (auto& each : of_jump) {
    ProfileBlocks& made = each.second;
    const auto known = std::ranges::find_if(profile.blocks, [&made](const ProfileBlocks& other) {
      return other.process == made.process && other.callers == made.callers;
    });
    if (known == profile.blocks.end()) {
      profile.blocks.push_back(std::move(made));
      continue;
    }
    known->size += made.size;
    known->blocks += made.blocks;
    known->repeated += made.repeated;
  }
  std::ranges::stable_sort(profile.blocks, std::greater{}, &ProfileBlocks::size);
}

}  // namespace etstream
