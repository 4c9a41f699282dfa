// SPDX-License-Identifier: BSD-3-Clause
#include <executorch/runtime/platform/log.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "etstream/executorch/program_loader.h"
#include "etstream/program.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;

/// What ExecuTorch asks of a program's first byte, and of data that says nothing else.
constexpr std::uint64_t kLeastAlignment = 16;

Error system_error(int number, std::string_view what, const std::string& name) {
  return {ErrorCode::kIo, text("{} {}: {}", what, quote(name), std::generic_category().message(number)),
          number, name};
}

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// A mapping does without the descriptor that it was made with.
struct Closer {
  int descriptor;
  ~Closer() { ::close(descriptor); }
};

/// A part of a file in the address space.
class Mapping {
 public:
  /// `size` bytes from `offset` on, both above 0 and inside the file.
  [[nodiscard]] static Result<std::shared_ptr<const Mapping>> create(const FileRange& range,
                                                                     const std::string& name) {
    const auto before = static_cast<std::size_t>(range.offset % page_size());
    const auto length = checked_add<std::uint64_t>(range.size, before);
    if (!length || *length > std::numeric_limits<std::size_t>::max()) {
      return make_error(ErrorCode::kTooLarge,
                        "a program of {} bytes is larger than this machine's address space", range.size);
    }
    const auto mapped = static_cast<std::size_t>(*length);
    // Private, and never written: a page of it is the page cache's until someone writes to the file.
    void* address = ::mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE, range.descriptor,
                           static_cast<off_t>(range.offset - before));
    if (address == MAP_FAILED) return system_error(errno, "cannot map", name);
    return std::make_shared<const Mapping>(Token{}, address, mapped, before);
  }

  struct Token {};
  Mapping(Token /*from create*/, void* address, std::size_t mapped, std::size_t before) noexcept
      : address_(static_cast<std::byte*>(address)), mapped_(mapped), before_(before) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(address_, mapped_); }

  [[nodiscard]] std::size_t size() const noexcept { return mapped_ - before_; }
  [[nodiscard]] const std::byte* data() const noexcept { return address_ + before_; }

  /// Lets the pages that lie wholly inside [data, data + size) go. Who still looks at one has it read again.
  void forget(const void* data, std::size_t size) const noexcept {
    const auto begin = static_cast<std::size_t>(static_cast<const std::byte*>(data) - address_);
    const std::size_t first = begin + static_cast<std::size_t>(padding_to(begin, page_size()));
    const std::size_t end = (begin + size) / page_size() * page_size();
    if (first < end) ::madvise(address_ + first, end - first, MADV_DONTNEED);
  }

 private:
  std::byte* const address_;
  const std::size_t mapped_;
  const std::size_t before_;  // what of the first page is not asked for
};

/// What a buffer keeps alive.
using MappingOwner = std::shared_ptr<const Mapping>;

void free_view(void* owner, void* data, std::size_t size) {
  const std::unique_ptr<const MappingOwner> mapping(static_cast<const MappingOwner*>(owner));
  (*mapping)->forget(data, size);
}

class MappedProgramLoader final : public runtime::DataLoader {
 public:
  MappedProgramLoader(MappingOwner mapping, std::string name)
      : mapping_(std::move(mapping)), name_(std::move(name)) {}

  runtime::Result<runtime::FreeableBuffer> load(std::size_t offset, std::size_t size,
                                                const SegmentInfo& /*segment*/) const override {
    if (const auto error = check_range(offset, size); error != runtime::Error::Ok) return error;
    if (size == 0) return runtime::FreeableBuffer();
    auto owner = std::unique_ptr<MappingOwner>(new (std::nothrow) MappingOwner(mapping_));
    if (!owner) return runtime::Error::MemoryAllocationFailed;
    return runtime::FreeableBuffer(mapping_->data() + offset, size, free_view, owner.release());
  }

  runtime::Error load_into(std::size_t offset, std::size_t size, const SegmentInfo& /*segment*/,
                           void* buffer) const override {
    if (const auto error = check_range(offset, size); error != runtime::Error::Ok) return error;
    if (size == 0) return runtime::Error::Ok;
    if (buffer == nullptr) return runtime::Error::InvalidArgument;
    std::memcpy(buffer, mapping_->data() + offset, size);
    return runtime::Error::Ok;
  }

  runtime::Result<std::size_t> size() const override { return mapping_->size(); }

 private:
  runtime::Error check_range(std::size_t offset, std::size_t size) const {
    if (range_fits(offset, size, mapping_->size())) return runtime::Error::Ok;
    ET_LOG(Error, "%s: %zu bytes at %zu are not inside the program's %zu bytes", name_.c_str(), size, offset,
           mapping_->size());
    return runtime::Error::InvalidArgument;
  }

  const MappingOwner mapping_;
  const std::string name_;
};

/// Where the program lies has to leave its segments aligned as they are inside it.
Result<void> check_alignment(const ByteSource& program, std::uint64_t offset) {
  ETSTREAM_ASSIGN(const ProgramFile opened, ProgramFile::open(program));
  ETSTREAM_ASSIGN(const auto segments, opened.segments());
  std::uint64_t alignment = kLeastAlignment;
  if (std::any_of(segments.begin(), segments.end(), [](const auto& segment) { return segment.size > 0; })) {
    ETSTREAM_ASSIGN(const std::uint64_t own, opened.segment_alignment());
    alignment = std::max(alignment, std::min<std::uint64_t>(own, page_size()));
  }
  if (offset % alignment == 0) return {};
  return make_error(
      ErrorCode::kUnsupported,
      "{}: the program is at offset {}, and to be used where it lies it has to be at a multiple of {}, as "
      "its segments are in it; convert to a segmented bundle, or bundle with program_alignment 4096",
      program.name(), offset, alignment);
}

}  // namespace

Result<std::unique_ptr<runtime::DataLoader>> open_mapped_program_loader(const ByteSource& program) {
  return without_exceptions([&]() -> Result<std::unique_ptr<runtime::DataLoader>> {
    ETSTREAM_ASSIGN(const FileRange range, program.open_range());
    const Closer closer{range.descriptor};
    ETSTREAM_TRY(check_alignment(program, range.offset));
    ETSTREAM_ASSIGN(auto mapping, Mapping::create(range, program.name()));
    return std::unique_ptr<runtime::DataLoader>(
        std::make_unique<MappedProgramLoader>(std::move(mapping), program.name()));
  });
}

}  // namespace etstream
