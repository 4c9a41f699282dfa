// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "memory/heap/heap_posix.h"

namespace etstream::heap::heap_threads_test {
namespace {

constexpr std::size_t kKiB = 1024;

struct Block {
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  unsigned char content = 0;

  [[nodiscard]] bool is_as_written() const { return bytes[0] == content && bytes[size - 1] == content; }
};

TEST_CASE("threads allocate, resize, and free each other's blocks, while pages are let go of") {
  const auto heap = std::make_unique<Heap>();
  REQUIRE(!heap->open({"/var/tmp", 0}));
  std::mutex mutex;
  std::array<Block, 16> pool{};
  std::array<int, 4> wrong{};
  const auto work = [&](std::size_t thread) {
    std::mt19937 chance(static_cast<unsigned>(thread));
    for (int step = 0; step < 300; ++step) {
      Block block{nullptr, (1 + chance() % 40) * 64 * kKiB, static_cast<unsigned char>(chance())};
      block.bytes = static_cast<unsigned char*>(heap->allocate(block.size, 64, false));
      std::memset(block.bytes, block.content, block.size);
      if (const std::size_t size = block.size / 2; step % 3 == 0 && heap->resize(block.bytes, size))
        block.size = size;
      {
        const std::lock_guard lock(mutex);
        std::swap(block, pool[chance() % pool.size()]);
      }
      if (block.bytes == nullptr) continue;
      if (!block.is_as_written()) ++wrong[thread];
      heap->release(block.bytes);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < wrong.size(); ++thread) threads.emplace_back(work, thread);
  for (int times = 0; times < 10; ++times) heap->page_out(kKiB * kKiB);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::array<int, 4>{});
  for (const Block& block : pool) {
    if (block.bytes != nullptr) heap->release(block.bytes);
  }
  CHECK(heap->use().live.load() == 0);
}

}  // namespace
}  // namespace etstream::heap::heap_threads_test
