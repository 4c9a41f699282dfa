// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/program_loader.h"

#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "executorch/aligned_buffer.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;

/// As a mapping of the program would align what is at `offset`.
std::size_t alignment_of(std::size_t offset) noexcept {
  constexpr std::size_t kMost = 4096;
  const std::size_t own = offset & (~offset + 1);
  return own == 0 ? kMost : std::clamp(own, AlignedBuffer::kLeastAlignment, kMost);
}

void free_buffer(void* /*context*/, void* data, std::size_t /*size*/) { std::free(data); }

class ProgramLoader final : public runtime::DataLoader {
 public:
  explicit ProgramLoader(ByteSource program) : program_(std::move(program)) {}

  runtime::Result<runtime::FreeableBuffer> load(std::size_t offset, std::size_t size,
                                                const SegmentInfo& /*segment*/) const override {
    // Asked before memory is: a damaged program names any size.
    if (const auto error = check_range(offset, size); error != runtime::Error::Ok) return error;
    auto buffer = AlignedBuffer::allocate(size, alignment_of(offset));
    if (!buffer) {
      ET_LOG(Error, "%s: no memory for %zu bytes", program_.name().c_str(), size);
      return runtime::Error::MemoryAllocationFailed;
    }
    if (const auto error = read(offset, buffer->bytes()); error != runtime::Error::Ok) return error;
    if (size == 0) return runtime::FreeableBuffer();
    return runtime::FreeableBuffer(buffer->release(), size, free_buffer);
  }

  runtime::Error load_into(std::size_t offset, std::size_t size, const SegmentInfo& /*segment*/,
                           void* buffer) const override {
    if (const auto error = check_range(offset, size); error != runtime::Error::Ok) return error;
    if (buffer == nullptr && size > 0) return runtime::Error::InvalidArgument;
    return read(offset, {static_cast<std::byte*>(buffer), size});
  }

  runtime::Result<std::size_t> size() const override { return static_cast<std::size_t>(program_.size()); }

 private:
  runtime::Error check_range(std::size_t offset, std::size_t size) const {
    if (range_fits(offset, size, program_.size())) return runtime::Error::Ok;
    ET_LOG(Error, "%s: %zu bytes at %zu are not inside the program's %zu bytes", program_.name().c_str(),
           size, offset, static_cast<std::size_t>(program_.size()));
    return runtime::Error::InvalidArgument;
  }

  runtime::Error read(std::size_t offset, std::span<std::byte> out) const {
    const auto read = program_.read_at(offset, out);
    if (read) return runtime::Error::Ok;
    ET_LOG(Error, "%s", read.error().message.c_str());
    return runtime::Error::AccessFailed;
  }

  const ByteSource program_;
};

}  // namespace

Result<std::unique_ptr<runtime::DataLoader>> open_program_loader(ByteSource program) {
  return without_exceptions([&]() -> Result<std::unique_ptr<runtime::DataLoader>> {
    if (program.size() > std::numeric_limits<std::size_t>::max()) {
      return make_error(ErrorCode::kTooLarge,
                        "{}: a program of {} bytes is larger than this machine's address space",
                        program.name(), program.size());
    }
    return std::unique_ptr<runtime::DataLoader>(std::make_unique<ProgramLoader>(std::move(program)));
  });
}

}  // namespace etstream
