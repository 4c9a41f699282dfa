// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/program_loader.h"

#include <executorch/runtime/platform/log.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/program.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;

runtime::Error check_range(const std::string& program, std::uint64_t program_size, std::size_t offset,
                           std::size_t size) {
  if (range_fits(offset, size, program_size)) return runtime::Error::Ok;
  ET_LOG(Error, "%s: %zu bytes at %zu are not inside the program's %zu bytes", program.c_str(), size, offset,
         static_cast<std::size_t>(program_size));
  return runtime::Error::InvalidArgument;
}

/// Returns the alignment that a mapping of the program would give to the bytes at `offset`.
std::size_t alignment_of(std::size_t offset) noexcept {
  constexpr std::size_t kLeast = 64;  // of a cache line, and of the widest vector registers
  constexpr std::size_t kMost = 4096;
  const std::size_t own = offset & (~offset + 1);
  return own == 0 ? kMost : std::clamp(own, kLeast, kMost);
}

void free_buffer(void* /*context*/, void* data, std::size_t /*size*/) { std::free(data); }

class ProgramLoader final : public runtime::DataLoader {
 public:
  explicit ProgramLoader(ByteSource program) : program_(std::move(program)), name_(program_.name()) {}

  runtime::Result<runtime::FreeableBuffer> load(std::size_t offset, std::size_t size,
                                                const SegmentInfo& /*segment*/) const override {
    // This check comes before the allocation, as a damaged program may give any size.
    if (const auto error = check_range(name_, program_.size(), offset, size); error != runtime::Error::Ok)
      return error;
    if (size == 0) return runtime::FreeableBuffer();
    void* data = nullptr;
    if (::posix_memalign(&data, alignment_of(offset), size) != 0) {
      ET_LOG(Error, "%s: no memory for %zu bytes", name_.c_str(), size);
      return runtime::Error::MemoryAllocationFailed;
    }
    runtime::FreeableBuffer buffer(data, size, free_buffer);
    const auto error = read(offset, {static_cast<std::byte*>(data), size});
    if (error != runtime::Error::Ok) return error;
    return buffer;
  }

  runtime::Error load_into(std::size_t offset, std::size_t size, const SegmentInfo& /*segment*/,
                           void* buffer) const override {
    if (const auto error = check_range(name_, program_.size(), offset, size); error != runtime::Error::Ok)
      return error;
    if (buffer == nullptr && size > 0) return runtime::Error::InvalidArgument;
    return read(offset, {static_cast<std::byte*>(buffer), size});
  }

  runtime::Result<std::size_t> size() const override { return static_cast<std::size_t>(program_.size()); }

 private:
  runtime::Error read(std::size_t offset, std::span<std::byte> out) const {
    const auto read = program_.read_at(offset, out);
    if (read) return runtime::Error::Ok;
    ET_LOG(Error, "%s", full_message(read.error()).c_str());
    return runtime::Error::AccessFailed;
  }

  const ByteSource program_;
  const std::string name_;
};

/// The alignment that ExecuTorch needs for a program's first byte, and for data that asks for no other.
constexpr std::uint64_t kLeastAlignment = 16;

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// Closes the descriptor of a mapping, which does not need it any more.
struct Closer {
  int descriptor;
  ~Closer() { ::close(descriptor); }
};

/// The first byte of a part of a file in the address space, which stays there for as long as a copy is alive.
using MappedBytes = std::shared_ptr<const std::byte>;

/// `range` is not empty, and inside the file.
Result<MappedBytes> map(const FileRange& range, const std::string& name) {
  const std::uint64_t before = range.offset % page_size();  // what of the first page is not asked for
  const auto length = checked_add(range.size, before);
  if (!length || *length > std::numeric_limits<std::size_t>::max()) {
    return make_error(ErrorCode::kTooLarge,
                      "a program of {} bytes is larger than this machine's address space", range.size);
  }
  const auto mapped = static_cast<std::size_t>(*length);
  // The mapping is private, and never written to: its pages are the page cache's until someone writes to the
  // file.
  void* const address = ::mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE, range.descriptor,
                               static_cast<off_t>(range.offset - before));
  if (address == MAP_FAILED) {
    const int reason = errno;
    return Error{ErrorCode::kIo,
                 text("cannot map {}: {}", quote(name), std::generic_category().message(reason)), reason,
                 name};
  }
  const std::shared_ptr<void> mapping(address, [mapped](void* first) { ::munmap(first, mapped); });
  return MappedBytes(mapping, static_cast<const std::byte*>(address) + before);
}

/// Drops the pages that lie wholly inside [data, data + size). A page that is still in use is read again.
void forget(void* data, std::size_t size) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::size_t skipped = static_cast<std::size_t>(padding_to(begin, page_size()));
  const std::size_t left = size - std::min(size, skipped);
  const std::size_t whole = left - left % page_size();
  if (whole > 0) ::madvise(static_cast<std::byte*>(data) + skipped, whole, MADV_DONTNEED);
}

void free_view(void* owner, void* data, std::size_t size) {
  const std::unique_ptr<const MappedBytes> mapping(static_cast<const MappedBytes*>(owner));
  forget(data, size);
}

class MappedProgramLoader final : public runtime::DataLoader {
 public:
  MappedProgramLoader(MappedBytes program, std::size_t size, std::string name)
      : program_(std::move(program)), size_(size), name_(std::move(name)) {}

  runtime::Result<runtime::FreeableBuffer> load(std::size_t offset, std::size_t size,
                                                const SegmentInfo& /*segment*/) const override {
    if (const auto error = check_range(name_, size_, offset, size); error != runtime::Error::Ok) return error;
    if (size == 0) return runtime::FreeableBuffer();
    auto owner = std::unique_ptr<MappedBytes>(new (std::nothrow) MappedBytes(program_));
    if (!owner) return runtime::Error::MemoryAllocationFailed;
    return runtime::FreeableBuffer(program_.get() + offset, size, free_view, owner.release());
  }

  runtime::Error load_into(std::size_t offset, std::size_t size, const SegmentInfo& /*segment*/,
                           void* buffer) const override {
    if (const auto error = check_range(name_, size_, offset, size); error != runtime::Error::Ok) return error;
    if (size == 0) return runtime::Error::Ok;
    if (buffer == nullptr) return runtime::Error::InvalidArgument;
    std::memcpy(buffer, program_.get() + offset, size);
    return runtime::Error::Ok;
  }

  runtime::Result<std::size_t> size() const override { return size_; }

 private:
  const MappedBytes program_;
  const std::size_t size_;
  const std::string name_;
};

/// Checks that the program's place in the file keeps its segments aligned as they are inside it.
Result<void> check_alignment(const ByteSource& program, std::uint64_t offset) {
  ETSTREAM_ASSIGN(const ProgramFile opened, ProgramFile::open(program));
  ETSTREAM_ASSIGN(const auto segments, opened.segments());
  std::uint64_t alignment = kLeastAlignment;
  if (std::any_of(segments.begin(), segments.end(), [](const auto& segment) { return segment.size > 0; })) {
    ETSTREAM_ASSIGN(const std::uint64_t own, opened.segment_alignment());
    alignment = std::max(alignment, std::min<std::uint64_t>(own, page_size()));
  }
  if (offset % alignment == 0) return {};
  return with_advice(
      error_in(ErrorCode::kUnsupported, program.name(),
               "the program is at offset {}, and to be used where it lies it has to be at a multiple of {}, "
               "as its segments are in it",
               offset, alignment),
      {"convert to a segmented bundle, or bundle with program_alignment 4096"});
}

}  // namespace

Result<std::unique_ptr<runtime::DataLoader>> open_program_loader(ByteSource program) {
  return without_exceptions([&]() -> Result<std::unique_ptr<runtime::DataLoader>> {
    if (program.size() > std::numeric_limits<std::size_t>::max()) {
      return error_in(ErrorCode::kTooLarge, program.name(),
                      "a program of {} bytes is larger than this machine's address space", program.size());
    }
    return std::unique_ptr<runtime::DataLoader>(std::make_unique<ProgramLoader>(std::move(program)));
  });
}

Result<std::unique_ptr<runtime::DataLoader>> open_mapped_program_loader(const ByteSource& program) {
  return without_exceptions([&]() -> Result<std::unique_ptr<runtime::DataLoader>> {
    const auto range = program.open_range();
    if (!range && range.error().code == ErrorCode::kUnsupported) {
      return with_advice(range.error(), {"open_program_loader() reads the program into memory"});
    }
    if (!range) return range.error();
    const Closer closer{range->descriptor};
    ETSTREAM_TRY(check_alignment(program, range->offset));
    ETSTREAM_ASSIGN(MappedBytes mapped, map(*range, program.name()));
    return std::unique_ptr<runtime::DataLoader>(std::make_unique<MappedProgramLoader>(
        std::move(mapped), static_cast<std::size_t>(range->size), program.name()));
  });
}

}  // namespace etstream
