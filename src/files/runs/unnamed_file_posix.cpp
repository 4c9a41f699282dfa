// SPDX-License-Identifier: BSD-3-Clause
#include "files/runs/unnamed_file_posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/sink.h"

namespace etstream {
namespace {

constexpr std::string_view kOutputs = "the outputs of a run";
constexpr std::string_view kCopy = "a copy of the program";

class WrittenOutputs final : public ByteStorage {
 public:
  WrittenOutputs(int descriptor, std::uint64_t offset, std::uint64_t size)
      : descriptor_(descriptor), offset_(offset), size_(size) {}
  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return std::string(kOutputs); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_ASSIGN(const std::size_t n, read_all(descriptor_, offset_ + offset, out, kOutputs));
    if (n == out.size()) return {};
    return make_error(ErrorCode::kIo, "{}: expected {} bytes, found {}", kOutputs, out.size(), n);
  }

 private:
  const int descriptor_;
  const std::uint64_t offset_;
  const std::uint64_t size_;
};

}  // namespace

Result<Descriptor> make_unnamed_file() {
  const char* const temporary = std::getenv("TMPDIR");
  const std::string folder = temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
  std::string path = folder + "/.etstream-run-XXXXXX";
  Descriptor file(::mkstemp(path.data()));
  if (!file) return system_error(errno, "cannot make a temporary file in", folder);
  ::unlink(path.c_str());
  ::fcntl(file.get(), F_SETFD, FD_CLOEXEC);
  return file;
}

Result<void> copy_to(int descriptor, const ByteSource& source) {
  const auto sink = open_descriptor_sink(descriptor, std::string(kCopy));
  return write(plan_copy(source, "program"), *sink);
}

Result<Descriptor> as_file(const ByteSource& source) {
  if (const auto range = source.open_range()) {
    Descriptor file(range->descriptor);
    struct stat found {};
    if (range->offset == 0 && ::fstat(file.get(), &found) == 0 &&
        static_cast<std::uint64_t>(found.st_size) == source.size()) {
      return file;
    }
  }
  ETSTREAM_ASSIGN(Descriptor copy, make_unnamed_file());
  ETSTREAM_TRY(copy_to(copy.get(), source));
  return copy;
}

ByteSource source_of_descriptor(int descriptor, std::uint64_t offset, std::uint64_t size) {
  return ByteSource(std::make_shared<WrittenOutputs>(descriptor, offset, size));
}

Result<void> put_uint32(int descriptor, std::uint64_t offset, std::uint32_t value) {
  const std::array<unsigned char, 4> bytes = {
      static_cast<unsigned char>(value), static_cast<unsigned char>(value >> 8),
      static_cast<unsigned char>(value >> 16), static_cast<unsigned char>(value >> 24)};
  const ssize_t n =
      retried([&] { return ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
  if (n == static_cast<ssize_t>(bytes.size())) return {};
  return system_error(n < 0 ? errno : ENOSPC, "cannot write", kCopy);
}

}  // namespace etstream
