// SPDX-License-Identifier: BSD-3-Clause
#include "python/interrupts.h"

#include <chrono>
#include <memory>
#include <utility>

#include "base/try.h"
#include "python/errors.h"

namespace etstream::python {
namespace {

class Interruptible final : public ByteStorage {
 public:
  Interruptible(ByteSource source, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), source_(std::move(source)) {}

  std::uint64_t size() const noexcept override { return source_.size(); }
  std::string name() const override { return source_.name(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_TRY(check_signals_at_times());
    return source_.read_at(offset, out);
  }
  /// Of a source that is a whole file.
  Result<int> open_descriptor() const override {
    ETSTREAM_ASSIGN(const FileRange range, source_.open_range());
    return range.descriptor;
  }
  Result<void> check_unchanged() const override { return source_.check_unchanged(); }
  bool lies_in(const FileIdentity& file) const override { return source_.lies_in(file); }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    source_.drop_pages(offset, size);
  }
  bool clone_range(std::uint64_t offset, std::uint64_t size, int descriptor,
                   std::uint64_t at) const noexcept override {
    const auto range = source_.slice(offset, size);
    return range && range->clone_range(descriptor, at);
  }

 private:
  const std::shared_ptr<const void> owner_;
  const ByteSource source_;
};

}  // namespace

Result<void> check_signals() {
  return with_gil([]() -> Result<void> {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return {};
  });
}

Result<void> check_signals_at_times() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point next;
  const auto now = Clock::now();
  if (now < next) return {};
  next = now + std::chrono::milliseconds(100);
  return check_signals();
}

Result<ByteSource> open_interruptible_file(const std::string& path, std::shared_ptr<const void> owner) {
  ETSTREAM_ASSIGN(ByteSource source, ByteSource::file(path));
  return ByteSource(std::make_shared<Interruptible>(std::move(source), std::move(owner)));
}

}  // namespace etstream::python
