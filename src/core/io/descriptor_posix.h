// SPDX-License-Identifier: BSD-3-Clause
//
// An open file descriptor with an owner, and errno as an Error.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "etstream/result.h"

namespace etstream {

/// Closes what it holds. -1 holds nothing.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Makes the system call `call` again for as long as a signal interrupts it, and returns its result.
template <class Call>
[[nodiscard]] auto retried(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Makes the error "DOING 'PATH': REASON" of errno's value `error`, which it carries.
[[nodiscard]] Error system_error(int error, std::string_view doing, std::string_view path);

/// Makes the error "DOING 'PATH': WHY" about a file, for a reason that errno does not tell.
[[nodiscard]] Error refusal(ErrorCode code, std::string_view doing, std::string_view path,
                            std::string_view why);

/// Writes all of `bytes` at the descriptor's position, in as many calls as that takes. `on_signal`, unless it
/// is empty, is called whenever a signal may have come in between; its error ends the writing.
[[nodiscard]] Result<void> write_all(int fd, std::span<const std::byte> bytes, std::string_view path,
                                     const std::function<Result<void>()>& on_signal = {});

/// Fills `out` with the bytes from `offset` on, in as many calls as that takes. Returns the number of bytes,
/// which is smaller if the file ends before.
[[nodiscard]] Result<std::size_t> read_all(int fd, std::uint64_t offset, std::span<std::byte> out,
                                           std::string_view path);

}  // namespace etstream
