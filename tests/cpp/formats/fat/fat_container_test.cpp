// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/fat_container.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "etstream/verify.h"
#include "file_bytes.h"
#include "test_errors.h"

namespace etstream::fat_container_test {
namespace {

FatContainer three_payloads() {
  FatContainer container;
  container.payloads = {
      {"portable", source_of("abc")}, {"xnnpack", source_of("defgh")}, {"again", source_of("abc")}};
  return container;
}

std::string bytes_of(const FatContainer& container) {
  const auto planned = plan(container);
  REQUIRE_MESSAGE(planned, planned.error().message);
  const auto file = source_of(*planned);
  REQUIRE(file);
  return text_of(*file);
}

/// Returns an entry as ExecuTorch's native backend packs it, field by field.
std::string entry(std::string name, std::uint64_t offset, std::uint64_t size) {
  name.resize(32);
  name.append(reinterpret_cast<const char*>(&offset), sizeof(offset));
  return name.append(reinterpret_cast<const char*>(&size), sizeof(size));
}

const std::string kHeaderOfThree("NFAT\1\0\0\0\3\0\0\0", 12);

FatContainerFile opened(const std::string& bytes) {
  auto file = FatContainerFile::open(source_of(bytes));
  REQUIRE_MESSAGE(file, file.error().message);
  return std::move(file).value();
}

TEST_CASE("payloads of equal bytes are stored once") {
  CHECK(bytes_of(three_payloads()) == kHeaderOfThree + entry("portable", 0, 3) + entry("xnnpack", 3, 5) +
                                          entry("again", 0, 3) + "abcdefgh");
}

TEST_CASE("a container of nothing is one") { CHECK(opened(bytes_of(FatContainer())).payloads().empty()); }

// More is in tests/python/test_fat_containers.py, as are the bytes.
TEST_CASE("what no reader would take is refused") {
  const auto refused = [](auto change) {
    FatContainer container = three_payloads();
    change(container);
    return error_of(plan(container));
  };
  CHECK(refused([](auto& c) { c.payloads[2].name = "xnnpack"; }) ==
        "kInvalidArgument: payload 'xnnpack' comes twice");
  CHECK(refused([](auto& c) { c.payloads[0].name = std::string(30, 'x') + " ~"; }) == "no error");
  CHECK(refused([](auto& c) {
          c.payloads.resize(65536, {"x", ByteSource()});
        }) == "kInvalidArgument: payload 'x' comes twice");
  CHECK(refused([](auto& c) {
          c.payloads.resize(65537, {"x", ByteSource()});
        }) == "kTooLarge: a fat container holds at most 65536 payloads, found 65537");
}

/// Returns a file of `bytes` with an integer at `offset`.
template <class Integer>
std::string with(std::string bytes, std::size_t offset, Integer value) {
  put_at(bytes, offset, value);
  return bytes;
}

TEST_CASE("damaged tables are errors that say where") {
  const std::string good = bytes_of(three_payloads());
  const auto error = [](const std::string& bytes) {
    return error_of(FatContainerFile::open(source_of(bytes)));
  };
  CHECK(error(good.substr(0, 11)) == containing("offset 0: expected a header of 12 bytes, found 11"));
  CHECK(error("NFAT" + good) == containing("offset 4: expected version 1"));
  CHECK(error("XFAT" + good.substr(4)) == containing("offset 0: expected the identifier of a fat container"));
  CHECK(error(with(good, 4, std::uint32_t{2})) == containing("kUnsupported"));
  CHECK(error(with(good, 8, std::uint32_t{4})) == containing("offset 8: expected a number of payloads"));
  CHECK(error(with(good, 8, ~std::uint32_t{0})) == containing("offset 8: expected a number of payloads"));
  CHECK(
      error(good.substr(0, good.size() - 1)) ==
      containing("offset 92: expected payload 'xnnpack' inside the file's 7 bytes behind the table, found 5 "
                 "bytes from 3 on"));
  CHECK(
      error(with(good, 12 + 31, 'x')) ==
      containing("offset 12: expected a name filled up with zeros, found 'portable' and more behind a zero"));
  CHECK(error(with(good, 44, ~std::uint64_t{0})) == containing("offset 44: expected payload 'portable'"));
  CHECK(error(with(good, 52, ~std::uint64_t{0} - 1)) == containing("offset 44: expected payload 'portable'"));
}

TEST_CASE("tables of more payloads than a reader takes are too large") {
  std::string bytes("NFAT\1\0\0\0\1\0\1\0", 12);
  bytes.resize(12 + 48 * 65537);
  CHECK(error_of(FatContainerFile::open(source_of(bytes))) ==
        exactly("kTooLarge: memory: offset 8: expected at most 65536 payloads, found 65537"));
  bytes[8] = '\0';
  CHECK(opened(bytes).payloads().size() == 65536);
}

TEST_CASE("verify tells of names, of what lies around payloads, and of payloads that lie in each other") {
  const std::string good = bytes_of(three_payloads());
  CHECK(findings_of(good).ok());
  CHECK(findings_of(good).warnings.empty());
  const auto first_error = [](const std::string& bytes) {
    return exactly(findings_of(bytes).errors.at(0).message);
  };
  const auto first_warning = [](const std::string& bytes) {
    return exactly(findings_of(bytes).warnings.at(0).message);
  };
  CHECK(first_error(with(good, 12, std::uint64_t{0})) == containing("offset 12: expected a name of 1 to 32"));
  std::string twice = good;
  twice.replace(108, 9, std::string("xnnpack\0\0", 9));
  CHECK(first_error(twice) == containing("offset 108: expected each name once, found 'xnnpack'"));
  CHECK(first_warning(good + "x") == containing("offset 164: expected zero, in the padding around payloads"));
  for (const std::uint64_t size : {5U, 3U}) {
    CHECK(first_error(with(with(good, 92, std::uint64_t{2}), 100, size)) ==
          containing(
              "offset 158: expected payload 'xnnpack' behind the one before it, which ends at 159, found "
              "it in that"));
  }
  FatContainer apart = three_payloads();
  apart.alignment = 64;
  CHECK(first_warning(with(bytes_of(apart), 170, '\7')) ==
        containing("offset 170: expected zero, in the padding around payloads, found 7"));
}

TEST_CASE("verify checks the payloads that it knows, each once") {
  FatContainer container;
  const ByteSource damaged = source_of(std::string("\x08\0\0\0ET12", 8) + std::string(8, '\0'));
  container.payloads = {{"blob", source_of("no file at all")}, {"program", damaged}, {"same", damaged}};
  const Findings findings = findings_of(bytes_of(container));
  REQUIRE(findings.errors.size() == 1);
  CHECK(exactly(findings.errors[0].message) == containing("payload 'program': "));
  const Findings alone = findings_of(text_of(damaged));
  REQUIRE(alone.errors.size() == 1);
  CHECK(findings.errors[0].offset == 170 + alone.errors[0].offset.value());
  // One that is a payload of another is not entered.
  FatContainer outer;
  outer.payloads = {{"inner", source_of(bytes_of(container))}};
  CHECK(findings_of(bytes_of(outer)).errors.empty());
}

}  // namespace
}  // namespace etstream::fat_container_test
