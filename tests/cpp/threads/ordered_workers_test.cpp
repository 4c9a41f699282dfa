// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/ordered_workers.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "etstream/packed_file.h"

namespace etstream::ordered_workers_test {
namespace {

struct Item {
  int number = 0;
  int square = 0;
};

TEST_CASE("items come out in the order in which they went in") {
  constexpr int kItems = 1000;
  for (const unsigned threads : {1U, 2U, 4U, 7U}) {
    CAPTURE(threads);
    std::atomic<int> made = 0;
    std::vector<int> squares;
    {
      OrderedWorkers<Item> workers(threads, [&] {
        ++made;
        return [](Item& item) {
          // The first of a few takes longest.
          if (item.number % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
          item.square = item.number * item.number;
        };
      });
      const auto take = [&](const Item& item) -> Result<void> {
        squares.push_back(item.square);
        return {};
      };
      for (int i = 0; i < kItems; ++i) {
        const auto item = workers.next(take);
        REQUIRE(item);
        (*item)->number = i;
        workers.submit();
      }
      REQUIRE(workers.finish_all(take));
      REQUIRE(workers.finish_all(take));
    }
    CHECK(made == threads);
    REQUIRE(squares.size() == kItems);
    for (int i = 0; i < kItems; ++i) REQUIRE(squares[static_cast<std::size_t>(i)] == i * i);
  }
}

TEST_CASE("two items more than threads are free, or one without threads, and an error keeps the oldest") {
  for (const unsigned threads : {1U, 2U, 5U}) {
    OrderedWorkers<Item> workers(threads, [] { return [](Item&) {}; });
    int finished = 0;
    const auto refuse = [&](const Item&) -> Result<void> {
      ++finished;
      return Error{ErrorCode::kIo, "the disk is full"};
    };
    unsigned submitted = 0;
    for (; workers.next(refuse); ++submitted) workers.submit();
    CHECK(submitted == (threads == 1 ? 1 : threads + 2));
    CHECK_FALSE(workers.finish_all(refuse));
    CHECK(finished == 2);
  }
}

TEST_CASE("workers end with items that no one takes") {
  std::atomic<int> worked = 0;
  {
    OrderedWorkers<Item> workers(3, [&] { return [&](Item&) { ++worked; }; });
    for (int i = 0; i < 5; ++i) {
      REQUIRE(workers.next([](const Item&) { return Result<void>(); }));
      workers.submit();
    }
  }
  CHECK(worked <= 5);
}

TEST_CASE("as many threads as asked for are used, and otherwise the default, which is one until it is set") {
  CHECK(threads_for(1) == 1);
  CHECK(threads_for(9) == 9);
  CHECK(threads_for(64) == 64);
  CHECK(threads_for(65) == 64);
  CHECK(threads_for(0) == 1);
  set_default_threads(2);
  CHECK(threads_for(0) == 2);
  set_default_threads(0);
  CHECK(threads_for(0) >= 1);
  CHECK(threads_for(0) <= 4);
  set_default_threads(1);
}

}  // namespace
}  // namespace etstream::ordered_workers_test
