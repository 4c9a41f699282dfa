// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of reading the data of delegates, which say nothing about what is in it.
#include "formats/pte/backends/data_requests.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "etstream/program.h"
#include "file_bytes.h"
#include "test_errors.h"

namespace etstream::data_requests_test {
namespace {

/// A file whose bytes from `failing_from` on can't be read.
class CutFile final : public ByteStorage {
 public:
  CutFile(std::string bytes, std::uint64_t failing_from)
      : bytes_(std::move(bytes)), failing_from_(failing_from) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "bad"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset + out.size() > failing_from_) return Error{ErrorCode::kIo, "the disk is on fire"};
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  const std::string bytes_;
  const std::uint64_t failing_from_;
};

TEST_CASE("an error of reading the data of a delegate is passed on, as it is none of the data") {
  const std::string bytes = content_of(ETSTREAM_GOLDEN_DIR "/delegated_program/program.pte");
  // XNNPACK's header is where the data begins.
  const std::size_t data = bytes.find("XH00");
  REQUIRE(data != std::string::npos);
  const auto program = ProgramFile::open(ByteSource(std::make_shared<CutFile>(bytes, data)));
  REQUIRE_MESSAGE(program, program.error().message);
  CHECK(error_of(read_data_requests(program->model())) == "kIo: the disk is on fire");
}

}  // namespace
}  // namespace etstream::data_requests_test
