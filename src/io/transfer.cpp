// SPDX-License-Identifier: BSD-3-Clause
#include "io/transfer.h"

#include <algorithm>

namespace etstream {
namespace {

constexpr std::uint64_t kLargeSource = kTransferBufferSize / 4;

}  // namespace

Result<void> BufferedSink::append(const ByteSource& source) {
  return without_exceptions([&]() -> Result<void> {
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kTransferBufferSize);
    std::uint64_t offset = 0;
    while (offset < source.size()) {
      const auto n = static_cast<std::size_t>(
          std::min<std::uint64_t>(kTransferBufferSize - filled_, source.size() - offset));
      ETSTREAM_TRY(source.read_at(offset, {buffer_.get() + filled_, n}));
      if (forgetful_ && source.size() >= kLargeSource) source.drop_pages(offset, n);
      filled_ += n;
      offset += n;
      if (filled_ == kTransferBufferSize) ETSTREAM_TRY(flush());
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
    prepared_ = true;
    return {};
  });
}

Result<void> BufferedSink::commit() {
  return without_exceptions([&]() -> Result<void> {
    if (!prepared_) {
      ETSTREAM_TRY(flush());
      ETSTREAM_TRY(settle());
    }
    return finish();
  });
}

Result<void> BufferedSink::flush() {
  if (filled_ == 0) return {};
  ETSTREAM_TRY(take({buffer_.get(), filled_}));
  filled_ = 0;
  return {};
}

}  // namespace etstream
