// SPDX-License-Identifier: BSD-3-Clause
//
// The transfer engine, and the sinks that need no operating system.
#include "etstream/sink.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/io/transfer.h"
#include "etstream/byte_source.h"

namespace etstream {
namespace {

class MemorySink final : public Sink {
 public:
  explicit MemorySink(std::vector<std::byte>& out) : out_(out) {}

  Result<void> reserve(std::uint64_t size) override {
    return without_exceptions([&]() -> Result<void> {
      ETSTREAM_TRY(check_room(size));
      out_.reserve(out_.size() + static_cast<std::size_t>(size));
      return {};
    });
  }

  Result<void> append(const ByteSource& source) override {
    return without_exceptions([&]() -> Result<void> {
      const std::size_t before = out_.size();
      ETSTREAM_TRY(check_room(source.size()));
      out_.resize(before + static_cast<std::size_t>(source.size()));
      auto read = source.read_at(0, std::span(out_).subspan(before));
      if (!read) out_.resize(before);
      return read;
    });
  }

  Result<void> commit() override { return {}; }

 private:
  Result<void> check_room(std::uint64_t size) const {
    if (size <= out_.max_size() - out_.size()) return {};
    return Error{ErrorCode::kTooLarge, "the artifact is larger than the address space"};
  }

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

Result<void> BufferedSink::append(const ByteSource& source) {
  constexpr std::uint64_t kLargeSource = kTransferBufferSize / 4;
  return without_exceptions([&]() -> Result<void> {
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(piece_);
    std::uint64_t offset = 0;
    while (offset < source.size()) {
      const auto n =
          static_cast<std::size_t>(std::min<std::uint64_t>(piece_ - filled_, source.size() - offset));
      ETSTREAM_TRY(source.read_at(offset, {buffer_.get() + filled_, n}));
      if (forgetful_ && source.size() >= kLargeSource) source.drop_pages(offset, n);
      filled_ += n;
      offset += n;
      if (filled_ == piece_) ETSTREAM_TRY(flush());
    }
    return {};
  });
}

Result<void> BufferedSink::prepare() {
  return without_exceptions([&]() -> Result<void> {
    if (prepared_) return {};
    ETSTREAM_TRY(flush());
    buffer_.reset();  // others may be written before this is committed
    ETSTREAM_TRY(settle());
    ETSTREAM_TRY(wait_for_others());
    prepared_ = true;
    return {};
  });
}

Result<void> BufferedSink::commit() {
  return without_exceptions([&]() -> Result<void> {
    if (!prepared_) {
      ETSTREAM_TRY(flush());
      ETSTREAM_TRY(settle());
      ETSTREAM_TRY(InputRecord::check_unchanged());
    }
    ETSTREAM_TRY(finish());
    return prepared_ ? Result<void>() : make_durable();
  });
}

Result<void> BufferedSink::flush() {
  if (filled_ == 0) return {};
  ETSTREAM_TRY(take({buffer_.get(), filled_}));
  filled_ = 0;
  return {};
}

Result<void> commit_together(std::span<const std::unique_ptr<PendingOutput>> outputs) {
  return without_exceptions([&]() -> Result<void> {
    const auto each = [&](Result<void> (PendingOutput::*step)()) -> Result<void> {
      for (const auto& output : outputs) ETSTREAM_TRY((*output.*step)());
      return {};
    };
    if (outputs.size() > 1) ETSTREAM_TRY(each(&PendingOutput::prepare));
    ETSTREAM_TRY(InputRecord::check_unchanged());
    // A single file whose folder can't be synced stays, as it is complete.
    if (outputs.size() == 1) {
      ETSTREAM_TRY(outputs.front()->commit());
      return outputs.front()->make_durable();
    }
    Result<void> done = each(&PendingOutput::commit);
    if (done) done = each(&PendingOutput::make_durable);
    if (done) return {};
    Error error = std::move(done).error();
    for (std::size_t i = outputs.size(); i-- > 0;) {
      const Result<void> back = outputs[i]->take_back();
      if (!back) error.message += text("; {}", back.error().message);
    }
    return error;
  });
}

std::unique_ptr<Sink> open_memory_sink(std::vector<std::byte>& out) {
  return std::make_unique<MemorySink>(out);
}

std::unique_ptr<Sink> open_callback_sink(std::function<Result<void>(std::span<const std::byte>)> take) {
  return std::make_unique<CallbackSink>(std::move(take));
}

}  // namespace etstream
