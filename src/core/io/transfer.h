// SPDX-License-Identifier: BSD-3-Clause
//
// The transfer engine: moves sources of any size through one buffer. Small sources gather in it, large
// ones pass through it, so the bytes are passed on in full buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/sink.h"

namespace etstream {

/// The size of the buffer. 1 MiB was measured best together with 4 MiB; 64 KiB took 1.46 times as long, 16
/// MiB 2.5 times.
inline constexpr std::size_t kTransferBufferSize = std::size_t{1} << 20;

/// A sink that takes its bytes through a buffer. Derived classes say where full buffers go.
class BufferedSink : public Sink {
 public:
  Result<void> reserve(std::uint64_t /*size*/) override { return {}; }
  Result<void> append(const ByteSource& source) final;
  /// Passes on what is left in the buffer, then settle() and wait_for_others().
  Result<void> prepare() final;
  /// Calls finish(). If prepare() was not called, passes on the buffer and calls settle() before, and
  /// make_durable() after.
  Result<void> commit() final;

 protected:
  /// Passes on what is left in the buffer.
  [[nodiscard]] Result<void> flush();
  /// Returns whether prepare() was called before commit(): other sinks are committed together with this one.
  [[nodiscard]] bool is_one_of_several() const noexcept { return prepared_; }
  /// Exchanges the buffer for another of kTransferBufferSize bytes, so that take() keeps its bytes without a
  /// copy.
  void exchange_buffer(std::unique_ptr<std::byte[]>& other) noexcept { buffer_.swap(other); }
  /// Sets how much gathers before it is passed on, at most and by default kTransferBufferSize.
  void set_piece(std::size_t size) noexcept { piece_ = size; }
  /// Sets whether large sources drop the pages that have been read from them. Small ones may be read again
  /// (test cases share inputs), and dropping costs more than their pages take.
  void set_forgetful(bool forgetful) noexcept { forgetful_ = forgetful; }

 private:
  [[nodiscard]] virtual Result<void> take(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Result<void> settle() { return {}; }
  /// Gets ready to be committed later, together with others, once this has settled.
  [[nodiscard]] virtual Result<void> wait_for_others() { return {}; }
  [[nodiscard]] virtual Result<void> finish() { return {}; }

  std::unique_ptr<std::byte[]> buffer_;
  std::size_t piece_ = kTransferBufferSize;
  std::size_t filled_ = 0;
  bool forgetful_ = false;
  bool prepared_ = false;
};

}  // namespace etstream
