// SPDX-License-Identifier: BSD-3-Clause
//
// The sinks that need no operating system.
#include "etstream/sink.h"

#include "base/text.h"
#include "io/transfer.h"

namespace etstream {
namespace {

class MemorySink final : public Sink {
 public:
  explicit MemorySink(std::vector<std::byte>& out) : out_(out) {}

  Result<void> reserve(std::uint64_t size) override {
    return without_exceptions([&]() -> Result<void> {
      if (size > out_.max_size() - out_.size()) {
        return Error{ErrorCode::kTooLarge, "the artifact is larger than the address space"};
      }
      out_.reserve(out_.size() + static_cast<std::size_t>(size));
      return {};
    });
  }

  Result<void> append(const ByteSource& source) override {
    return without_exceptions([&]() -> Result<void> {
      const std::size_t before = out_.size();
      if (source.size() > out_.max_size() - before) {
        return Error{ErrorCode::kTooLarge, "the artifact is larger than the address space"};
      }
      out_.resize(before + static_cast<std::size_t>(source.size()));
      auto read = source.read_at(0, std::span(out_).subspan(before));
      if (!read) out_.resize(before);
      return read;
    });
  }

  Result<void> commit() override { return {}; }

 private:
  std::vector<std::byte>& out_;
};

class CallbackSink final : public BufferedSink {
 public:
  explicit CallbackSink(std::function<Result<void>(std::span<const std::byte>)> take)
      : take_(std::move(take)) {}

 private:
  Result<void> take(std::span<const std::byte> bytes) override { return take_(bytes); }

  std::function<Result<void>(std::span<const std::byte>)> take_;
};

}  // namespace

Result<void> Sink::skip(std::uint64_t size) {
  return make_error(ErrorCode::kInvalidArgument, "a sink that shares nothing can't skip {} bytes", size);
}

Result<void> commit_together(std::span<const std::unique_ptr<Sink>> sinks) {
  return without_exceptions([&]() -> Result<void> {
    if (sinks.size() > 1) {
      for (const auto& sink : sinks) ETSTREAM_TRY(sink->prepare());
    }
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      Result<void> done = sinks[i]->commit();
      if (done) continue;
      Error error = std::move(done).error();
      // The one that failed may have come half-way: its file is there, but its folder is not on the disk.
      // That of one alone stays, as it is complete.
      for (std::size_t before = sinks.size() > 1 ? i + 1 : 0; before-- > 0;) {
        const Result<void> back = sinks[before]->take_back();
        if (!back) error.message += text("; {}", back.error().message);
      }
      return error;
    }
    return {};
  });
}

std::unique_ptr<Sink> open_memory_sink(std::vector<std::byte>& out) {
  return std::make_unique<MemorySink>(out);
}

std::unique_ptr<Sink> open_callback_sink(std::function<Result<void>(std::span<const std::byte>)> take) {
  return std::make_unique<CallbackSink>(std::move(take));
}

}  // namespace etstream
