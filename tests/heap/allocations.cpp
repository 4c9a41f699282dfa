// SPDX-License-Identifier: BSD-3-Clause
//
// A program that allocates by malloc and its kin, and notices a block that is not what it should be: with the
// bytes that it wrote there, as large and as aligned as requested, and zeros if it asked for zeros. It knows
// nothing of the heap.
//
//     allocations threads STEPS      threads allocate, resize and free each other's blocks
//     allocations forks STEPS        and forks in between, while parent and child go on
//     allocations many               100,000 blocks at a time
//     allocations large SIZE         a block of SIZE bytes of which few pages are used
//     allocations churn STEPS        blocks of all sizes that come and go where there is seldom room
//     allocations fill SIZE          blocks until there is no more room, or of SIZE bytes in all
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kStride = 4096;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "allocations: %s\n", what);
  std::abort();
}

/// A block and its content: a number of its own on each page.
struct Block {
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  std::uint64_t number = 0;

  void write(std::size_t at) const {
    const std::uint64_t value = number + at;
    std::memcpy(bytes + at, &value, std::min(sizeof(value), size - at));
  }
  void check(std::size_t at) const {
    const std::uint64_t value = number + at;
    if (std::memcmp(bytes + at, &value, std::min(sizeof(value), size - at)) != 0) fail("a block has changed");
  }
  void fill(std::size_t from = 0) const {
    for (std::size_t at = from / kStride * kStride; at < size; at += kStride) write(at);
  }
  void check_up_to(std::size_t end) const {
    for (std::size_t at = 0; at + sizeof(number) <= end; at += kStride) check(at);
  }
};

void check_zeros(const Block& block) {
  for (std::size_t at = 0; at < block.size; at += 509) {
    if (block.bytes[at] != 0) fail("calloc gave what is not zero");
  }
}

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t end) { return engine_() % end; }
  /// Returns a size, mostly about the heap's least size, from nothing to 8 MiB.
  std::size_t size() {
    return below(4) == 0 ? below(300) : below(8) == 0 ? below(8 * kMiB) : below(2 * kMiB);
  }
  std::uint64_t number() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

Block make_block(Chance& chance) {
  Block block{nullptr, chance.size(), chance.number()};
  void* made = nullptr;
  std::size_t alignment = alignof(std::max_align_t);
  bool is_zeroed = false;
  switch (chance.below(6)) {
    case 0:
      made = std::calloc(1, block.size);
      is_zeroed = true;
      break;
    case 1:
      alignment = std::size_t{8} << chance.below(19);
      if (::posix_memalign(&made, alignment, block.size) != 0) made = nullptr;
      break;
    case 2:
      alignment = 64;
      block.size = (block.size + 63) / 64 * 64;
      made = std::aligned_alloc(alignment, block.size);
      break;
    case 3:
      made = ::operator new(block.size);
      break;
    default:
      made = std::malloc(block.size);
  }
  if (made == nullptr && block.size != 0) fail("no room");
  if (reinterpret_cast<std::uintptr_t>(made) % alignment != 0) fail("a block is not aligned");
  if (made != nullptr && ::malloc_usable_size(made) < block.size) fail("a block is too small");
  block.bytes = static_cast<unsigned char*>(made);
  if (is_zeroed) check_zeros(block);
  block.fill();
  return block;
}

void resize(Block& block, Chance& chance) {
  const std::size_t size = chance.size() + 1;
  const std::size_t before = block.size;
  void* const moved = std::realloc(block.bytes, size);
  if (moved == nullptr) fail("no room");
  block.bytes = static_cast<unsigned char*>(moved);
  block.size = size;
  block.check_up_to(std::min(before, size));
  block.fill(std::min(before, size));
}

/// The blocks that all threads take from and put into.
class Pool {
 public:
  Block exchange(Block block, Chance& chance) {
    const std::lock_guard lock(mutex_);
    std::swap(block, blocks_[chance.below(blocks_.size())]);
    return block;
  }
  void check() {
    const std::lock_guard lock(mutex_);
    for (const Block& block : blocks_) block.check_up_to(block.size);
  }
  void renumber() {
    const std::lock_guard lock(mutex_);
    for (Block& block : blocks_) {
      ++block.number;
      block.fill();
    }
  }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::array<Block, 40> blocks_{};
};

void work(Pool& pool, std::uint64_t seed, int steps) {
  Chance chance(seed);
  for (int step = 0; step < steps; ++step) {
    Block mine = make_block(chance);
    if (chance.below(3) == 0) resize(mine, chance);
    const Block other = pool.exchange(mine, chance);
    other.check_up_to(other.size);
    std::free(other.bytes);
  }
}

void run_threads(int steps) {
  Pool pool;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, std::ref(pool), seed, steps);
  for (std::thread& thread : threads) thread.join();
  pool.check();
}

/// Forks. The child and the parent each write to all blocks, allocate, free, and fork once more, and see only
/// their own blocks.
void fork_and_go_on(Pool& pool, std::uint64_t seed, int steps, int depth) {
  pool.mutex().lock();
  const ::pid_t child = ::fork();
  pool.mutex().unlock();
  if (child < 0) fail("no fork");
  pool.check();
  if (child == 0) pool.renumber();
  work(pool, seed + static_cast<std::uint64_t>(child == 0), steps);
  pool.check();
  if (depth > 0) fork_and_go_on(pool, seed + 10, steps, depth - 1);
  pool.check();
  if (child == 0) std::_Exit(0);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) fail("a child failed");
  pool.check();
}

void run_forks(int steps) {
  Pool pool;
  work(pool, 1, steps);
  // Other threads allocate while this one forks.
  std::thread beside([&] { work(pool, 2, 3 * steps); });
  fork_and_go_on(pool, 3, steps, 2);
  beside.join();
  pool.check();
}

void run_many() {
  std::vector<Block> blocks(100'000);
  Chance chance(1);
  for (Block& block : blocks) {
    block = {nullptr, 64 << 10, chance.number()};
    block.bytes = static_cast<unsigned char*>(std::malloc(block.size));
    if (block.bytes == nullptr) fail("no room");
    if (block.number % 10 == 0) block.write(0);
  }
  for (const Block& block : blocks) {
    if (block.number % 10 == 0) block.check(0);
  }
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(1));
  for (const Block& block : blocks) std::free(block.bytes);
}

void run_large(std::size_t size) {
  const Block block{static_cast<unsigned char*>(std::calloc(1, size)), size, 7};
  if (block.bytes == nullptr) fail("no room");
  const std::array<std::size_t, 3> places = {0, size / 2 / kStride * kStride, (size - 1) / kStride * kStride};
  for (const std::size_t at : places) {
    if (block.bytes[at] != 0) fail("calloc gave what is not zero");
    block.write(at);
  }
  for (const std::size_t at : places) block.check(at);
  std::free(block.bytes);
}

void run_fill(std::size_t size) {
  std::vector<Block> blocks;
  blocks.reserve(size / (4 * kMiB) + 1);
  std::size_t done = 0;
  for (; done < size; done += 4 * kMiB) {
    errno = 0;
    Block block{static_cast<unsigned char*>(std::malloc(4 * kMiB)), 4 * kMiB, done};
    if (block.bytes == nullptr && errno != ENOMEM) fail("another error than ENOMEM");
    if (block.bytes == nullptr) break;
    block.fill();
    blocks.push_back(block);
  }
  for (const Block& block : blocks) block.check_up_to(block.size);
  std::printf("room for %zu MiB\n", done / kMiB);
  for (const Block& block : blocks) std::free(block.bytes);
  // There is room again.
  void* const again = std::malloc(done / 2);
  if (again == nullptr) fail("no room where there was");
  std::free(again);
}

/// Allocates and frees blocks of all sizes. If there is no room for a block, it is left out, and the next one
/// is tried.
void run_churn(int steps) {
  std::vector<Block> blocks(400);
  Chance chance(1);
  int refused = 0;
  for (int step = 0; step < steps; ++step) {
    Block& block = blocks[chance.below(blocks.size())];
    if (block.bytes != nullptr) {
      block.check_up_to(block.size);
      std::free(block.bytes);
      block = {};
      continue;
    }
    const std::size_t size = 16384 + chance.below(chance.below(4) == 0 ? 8 * kMiB : kMiB / 8);
    const bool is_zeroed = chance.below(3) == 0;
    block = {static_cast<unsigned char*>(is_zeroed ? std::calloc(1, size) : std::malloc(size)), size,
             chance.number()};
    if (block.bytes == nullptr) {
      ++refused;
      block = {};
      continue;
    }
    if (is_zeroed) check_zeros(block);
    block.fill();
  }
  for (const Block& block : blocks) {
    block.check_up_to(block.size);
    std::free(block.bytes);
  }
  std::printf("some room and %s\n", refused == 0 ? "always more" : "sometimes no more");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const std::uint64_t number = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (mode == "threads") {
    run_threads(static_cast<int>(number));
  } else if (mode == "forks") {
    run_forks(static_cast<int>(number));
  } else if (mode == "many") {
    run_many();
  } else if (mode == "large") {
    run_large(number);
  } else if (mode == "churn") {
    run_churn(static_cast<int>(number));
  } else if (mode == "fill") {
    run_fill(number);
  } else {
    std::fprintf(stderr, "usage: allocations threads|forks|many|large|churn|fill [NUMBER]\n");
    return 2;
  }
  return 0;
}
