// SPDX-License-Identifier: BSD-3-Clause
//
// The parts that inspect() lists, and how little of a file it reads.
#include "etstream/inspect.h"

#include <doctest/doctest.h>

#include <atomic>

#include "etstream/bundled_program.h"
#include "file_bytes.h"
#include "golden_bundles.h"
#include "test_paths.h"

namespace etstream::inspect_test {
namespace {

/// A source with the bytes of a plan, which does not hold them and counts what is read of them.
class LaidOut final : public ByteStorage {
 public:
  explicit LaidOut(FilePlan plan) : plan_(std::move(plan)) {}

  std::uint64_t size() const noexcept override { return plan_.size; }
  std::string name() const override { return "laid out"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    bytes_read_ += out.size();
    for (const Extent& extent : plan_.extents) {
      const std::uint64_t begin = std::max(offset, extent.offset);
      const std::uint64_t end = std::min(offset + out.size(), extent.offset + extent.size());
      if (begin >= end) continue;
      auto read = extent.source.read_at(begin - extent.offset, out.subspan(begin - offset, end - begin));
      if (!read) return read;
    }
    return {};
  }

  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  FilePlan plan_;
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

std::vector<std::string> real_files() {
  std::vector<std::string> out = {kExamplesDir + "/model.pte"};
  for (const std::string& folder : golden_folders()) out.push_back(folder + "/expected.bpte");
  return out;
}

TEST_CASE("parts lie inside the file, apart from each other and in order; all else is metadata") {
  for (const std::string& path : real_files()) {
    CAPTURE(path);
    const std::string file = content_of(path);
    const auto inspection = inspect(file_of(file));
    REQUIRE(inspection);
    CHECK(inspection->size == file.size());
    std::uint64_t end = 0;
    std::uint64_t payload = 0;
    for (const FilePart& part : inspection->parts) {
      CAPTURE(part.path);
      CHECK(part.offset >= end);
      CHECK(part.offset + part.size <= file.size());
      CHECK(part.offset % part.alignment == 0);
      CHECK((part.alignment == 65536 || part.offset % (2 * part.alignment) != 0));
      end = part.offset + part.size;
      payload += part.size;
    }
    CHECK(inspection->metadata_size == file.size() - payload);
  }
}

TEST_CASE("the real bundle's program, methods, suites and tensors are listed") {
  const auto inspection = inspect(file_of(real_bundle()));
  REQUIRE(inspection);
  CHECK(inspection->format == FileKind::kBundledProgram);
  CHECK(inspection->version == 2);
  REQUIRE(inspection->methods.size() == 2);
  CHECK(inspection->methods[0].name == "count");
  CHECK(inspection->methods[1].name == "scale");
  REQUIRE(inspection->suites.size() == 2);
  CHECK(inspection->suites[0].test_cases == 3);
  CHECK(inspection->suites[1].test_cases == 2);
  REQUIRE(inspection->parts.size() >= 2);
  CHECK(inspection->parts[0].path == "program/flatbuffer");
  CHECK(inspection->parts[1].path == "program/segments/0");
  int tensors = 0;
  for (const FilePart& part : inspection->parts) {
    tensors += part.path.starts_with("cases/") ? 1 : 0;
    if (part.path == "cases/scale/1/input 0") CHECK((part.what == "float32 [3, 5]" && part.size == 60));
  }
  CHECK(tensors == 16);
}

TEST_CASE("inspecting reads the metadata's pages and no payload, and says how much it read") {
  constexpr std::uint64_t kPayload = 64 << 20;
  const std::string program = real_program();
  BundledProgram bundle;
  // This program's last segment is followed by 64 MiB, and this tensor has as many bytes.
  bundle.program = ByteSource::concatenation({source_of(program), ByteSource::zeros(kPayload)}).value();
  const Tensor large{ScalarType::kUInt8, {kPayload}, {0}, ByteSource::zeros(kPayload)};
  bundle.method_test_suites = {{"forward", {{{large, std::int64_t{3}}, {large}}}}};
  const auto plan = etstream::plan(bundle, {.unchecked = true});
  REQUIRE(plan);
  const auto file = std::make_shared<LaidOut>(*plan);
  const auto inspection = inspect(ByteSource(file));
  REQUIRE_MESSAGE(inspection, inspection.error().message);
  CHECK(inspection->size > 3 * kPayload);
  CHECK(file->bytes_read() < 128 << 10);
  // The identifier, the extended header and padding are read apart from the pages.
  CHECK(inspection->bytes_read == file->bytes_read());
}

TEST_CASE("opening a bundle reads its metadata alone, and a test case no more than that") {
  constexpr std::uint64_t kPayload = 64 << 20;
  const Tensor large{ScalarType::kUInt8, {kPayload}, {0}, ByteSource::zeros(kPayload)};
  BundledProgram bundle;
  bundle.program = ByteSource::zeros(kPayload);
  bundle.method_test_suites = {{"forward", {{{large, std::int64_t{3}}, {large}}}}};
  const auto plan = etstream::plan(bundle, {.unchecked = true});
  REQUIRE(plan);
  const auto file = std::make_shared<LaidOut>(*plan);
  const auto opened = BundledProgramFile::open(ByteSource(file));
  REQUIRE(opened);
  REQUIRE(opened->read());
  CHECK(file->bytes_read() < 64 << 10);
  CHECK(file->bytes_read() >= plan->metadata_size);
}

TEST_CASE("a program that can't be read is one part of a bundle that can") {
  BundledProgram bundle;
  bundle.program = ByteSource::zeros(1000);
  const auto plan = etstream::plan(bundle, {.unchecked = true});
  REQUIRE(plan);
  const auto inspection = inspect(file_of(written(*plan)));
  REQUIRE(inspection);
  REQUIRE(inspection->parts.size() == 1);
  CHECK(inspection->parts[0].path == "program");
  CHECK(inspection->parts[0].size == 1000);
  CHECK(inspection->methods.empty());
}

}  // namespace
}  // namespace etstream::inspect_test
