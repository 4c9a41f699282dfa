// SPDX-License-Identifier: BSD-3-Clause
//
// OrderedWorkers: items that threads work on side by side, and that come out in the order in which they went
// in.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/try.h"
#include "etstream/result.h"

namespace etstream {

/// The number that set_default_threads() of packed_file.h sets.
inline std::atomic<unsigned> default_threads = 1;

/// Returns how many threads to use for `asked`: the default for 0, never more than 64.
[[nodiscard]] inline unsigned threads_for(unsigned asked) noexcept {
  constexpr unsigned kMost = 64;
  return std::min(asked != 0 ? asked : default_threads.load(), kMost);
}

/// Threads, and the items that they work on. The work should allocate nothing, as the C library sets aside
/// 64 MiB of address space for each thread that does. Holds two items more than it has threads. With one
/// thread it works in submit(), and starts none. Used by one thread, which fills and takes items. `Item` is
/// default-constructed.
template <class Item>
class OrderedWorkers {
 public:
  using Work = std::function<void(Item&)>;

  /// `make_work` makes what a thread does with an item, once for each thread. The work does not throw.
  OrderedWorkers(unsigned threads, const std::function<Work()>& make_work) : items_(items_for(threads)) {
    if (threads > 1) {
      std::vector<Work> works;
      for (unsigned i = 0; i < threads; ++i) works.push_back(make_work());
      threads_.reserve(threads);
      try {
        for (Work& work : works) threads_.emplace_back([this, work = std::move(work)] { run(work); });
      } catch (const std::exception&) {
        // The system has no more threads for this process. Those that it has do the work.
      }
    }
    if (threads_.empty()) own_work_ = make_work();
  }
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;
  ~OrderedWorkers() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Returns how many items there are with so many threads.
  [[nodiscard]] static constexpr std::size_t items_for(unsigned threads) noexcept {
    return threads > 1 ? threads + 2 : 1;
  }
  /// Passes the item that next() returned to a thread.
  void submit() {
    if (threads_.empty()) {
      own_work_(item(submitted_++).value);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      item(submitted_).is_done = false;
      ++submitted_;
    }
    changed_.notify_all();
  }
  /// Returns an item to fill and submit. If all are submitted, waits for the oldest, and passes it to
  /// `finish`. Error: that of `finish`.
  template <class Finish>
  [[nodiscard]] Result<Item*> next(const Finish& finish) {
    if (submitted_ - finished_ == items_.size()) ETSTREAM_TRY(finish_oldest(finish));
    return &item(submitted_).value;
  }
  /// Passes all items that are left to `finish`, in order. Error: the first of `finish`.
  template <class Finish>
  [[nodiscard]] Result<void> finish_all(const Finish& finish) {
    while (finished_ != submitted_) ETSTREAM_TRY(finish_oldest(finish));
    return {};
  }

 private:
  struct Slot {
    Item value;
    bool is_done = false;
  };

  Slot& item(std::uint64_t number) noexcept { return items_[number % items_.size()]; }

  template <class Finish>
  [[nodiscard]] Result<void> finish_oldest(const Finish& finish) {
    if (!threads_.empty()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return item(finished_).is_done; });
    }
    ETSTREAM_TRY(finish(item(finished_).value));
    ++finished_;
    return {};
  }

  void run(const Work& work) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ends_ || begun_ < submitted_; });
      if (ends_) return;
      Slot& slot = item(begun_++);
      lock.unlock();
      work(slot.value);
      lock.lock();
      slot.is_done = true;
      changed_.notify_all();
    }
  }

  std::vector<Slot> items_;
  std::uint64_t finished_ = 0;
  Work own_work_;  // where there are no threads
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t submitted_ = 0;  // this and what follows, and is_done, are guarded by mutex_
  std::uint64_t begun_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace etstream
