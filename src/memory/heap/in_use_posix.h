// SPDX-License-Identifier: BSD-3-Clause
//
// Locks by which the heap's own code keeps others out.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>

#include "memory/heap/heap_posix.h"

namespace etstream::heap {

/// Blocks signal handlers, which may allocate, during code that must not be entered twice, and prevents
/// cancellation of the thread in the middle of it.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    ::sigset_t all;
    sigfillset(&all);
    for (const int of_the_thread : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP}) {
      sigdelset(&all, of_the_thread);
    }
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before_);
  }
  ~SignalsBlocked() {
    ::pthread_setcancelstate(cancel_before_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  ::sigset_t before_{};
  int cancel_before_ = 0;
};

/// Uses the heap, and restores errno at the end. `alone` waits until nobody else uses it.
class Heap::InUse {
 public:
  explicit InUse(Heap& heap, bool alone = false) noexcept
      : heap_(heap), in_fork_(heap.forking_.load() == ::pthread_self()) {
    if (in_fork_) return;  // a handler of somebody else's, who has it locked
    alone ? ::pthread_rwlock_wrlock(&heap.uses_) : ::pthread_rwlock_rdlock(&heap.uses_);
  }
  ~InUse() {
    if (!in_fork_) ::pthread_rwlock_unlock(&heap_.uses_);
    errno = errno_;
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  int errno_ = errno;
  SignalsBlocked signals_;
  Heap& heap_;
  bool in_fork_;
};

/// std::lock_guard would need the C++ library.
class Locked {
 public:
  explicit Locked(::pthread_mutex_t& lock) noexcept : lock_(lock) { ::pthread_mutex_lock(&lock_); }
  ~Locked() { ::pthread_mutex_unlock(&lock_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  ::pthread_mutex_t& lock_;
};

}  // namespace etstream::heap
