// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/xnnpack_cache_file.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/file_contents.h"
#include "etstream/file_kind.h"
#include "etstream/inspect.h"
#include "file_bytes.h"
#include "test_errors.h"
#include "test_paths.h"

namespace etstream::xnnpack_cache_file_test {
namespace {

template <class Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

/// Returns an entry of the index as save_packed_index() of ExecuTorch 1.5.1 writes it, field by field.
std::string entry(std::string_view name, std::uint64_t offset, std::uint64_t size, std::uint32_t seed = 7) {
  return raw(static_cast<std::uint32_t>(name.size())) + std::string(name) + raw(offset) + raw(size) +
         raw(seed);
}

std::string footer(std::uint64_t index_offset, std::uint32_t count, std::uint32_t version = 2) {
  return raw(index_offset) + raw(count) + raw(std::uint32_t{0x58505743}) + raw(version);
}

/// Returns a cache whose weights are 256 bytes.
std::string cache(const std::string& index, std::uint32_t count) {
  return std::string(256, '\0') + index + footer(256, count);
}

XnnpackCacheFile opened(const std::string& bytes) {
  auto file = XnnpackCacheFile::open(file_of(bytes));
  REQUIRE_MESSAGE(file, file.error().message);
  return std::move(file).value();
}

/// Returns "error: MESSAGE" or "warning: MESSAGE", a line each.
std::string told(const std::string& bytes) {
  const Findings findings = findings_of(bytes);
  std::string out;
  for (const Finding& error : findings.errors) out += "error: " + full_message(error) + "\n";
  for (const Finding& warning : findings.warnings) out += "warning: " + full_message(warning) + "\n";
  return out;
}

TEST_CASE("a cache that ExecuTorch wrote has the weights under the keys of filter and bias") {
  const std::string bytes = content_of(kGoldenDir + "/xnnpack_cache/cache.xpwc");
  const XnnpackCacheFile file = opened(bytes);
  CHECK(told(bytes) == "");
  REQUIRE(file.entries().size() == 1);
  const XnnpackCacheEntry& only = file.entries().front();
  CHECK(only.name ==
        "7a3c06cfb2fbaf0c864167c11e30fda1f77447e3998d704800da475236c7d7d3"
        "0e46b0f0450941b9cf7ce388df558a92c5d042dae3f9a46a64c946ea56f25415");
  CHECK(only.offset == 0);
  CHECK(only.data.size() == 320);
  CHECK(only.seed == 40);
  CHECK(text_of(only.data) == bytes.substr(0, 320));
  CHECK(file.index_offset() == 4096);
  CHECK(file.dead_bytes() == 4096 - 320);
}

TEST_CASE("a cache is known by its end, whatever its weights begin with") {
  for (const std::string_view begin :
       {std::string_view("\0\0\0\0\0\0\0\0", 8), std::string_view("\x1f\x8b\x08"), std::string_view("<html>"),
        std::string_view("{\"error\": 1}")}) {
    std::string bytes = cache(entry("a", 0, 64), 1);
    bytes.replace(0, begin.size(), begin);
    CHECK(file_kind(file_of(bytes)).value() == FileKind::kXnnpackCache);
    CHECK(begins_json_object(file_of(bytes)).value() == false);
  }
  CHECK(name_of(FileKind::kXnnpackCache) == "xnnpack_cache");
  CHECK(code_of(file_kind(file_of(cache("", 0).substr(0, 270)))) == "kUnsupported");
}

TEST_CASE("a name in the index may be empty") {
  const XnnpackCacheFile file = opened(cache(entry("", 0, 10), 1));
  REQUIRE(file.entries().size() == 1);
  CHECK(file.entries()[0].name.empty());
  CHECK(file.entries()[0].data.size() == 10);
}

TEST_CASE("bytes count as dead unless the last entry of a name refers to them") {
  const std::string index = entry("a", 0, 64) + entry("b", 192, 10) + entry("a", 128, 64);
  CHECK(opened(cache(index, 3)).dead_bytes() == 256 - 64 - 10);
  CHECK(opened(cache("junk", 0)).dead_bytes() == 256);
  // They lie in front of the weights, between them and behind them.
  CHECK(opened(cache(entry("a", 64, 64) + entry("b", 192, 32), 2)).dead_bytes() == 64 + 64 + 32);
}

TEST_CASE("inspection lists the weights, the index and what is dead") {
  const auto found = inspect(file_of(cache(entry("a", 64, 64, 0xfffffff6), 1)));
  REQUIRE(found);
  CHECK(found->version == 2);
  REQUIRE(found->parts.size() == 2);
  CHECK(found->parts[0].name == "'a', seed fffffff6");
  CHECK(found->parts[0].offset == 64);
  CHECK(found->parts[1].name == "index");
  CHECK(found->parts[1].size == 25 + 20);
  REQUIRE(found->xnnpack_cache);
  CHECK(found->xnnpack_cache->dead_bytes == 192);
  CHECK(found->metadata_size == 192);
  const auto contents = read_contents(file_of(cache(entry("a", 64, 64), 1)));
  REQUIRE(contents);
  CHECK(contents->size() == 5);  // the file, what is before the weights and behind them, and the index
}

TEST_CASE("weights that lie in each other are contents as far as they lie in one, or behind the one before") {
  std::string bytes =
      cache(entry("a", 0, 64) + entry("b", 32, 64) + entry("c", 32, 64) + entry("d", 40, 8) +
                entry("e", 0, 64) + entry("f", 48, 8) + entry("g", 96, 32) + entry("h", 100, 0),
            8);
  bytes[140] = 'x';
  const auto contents = read_contents(file_of(bytes));
  REQUIRE(contents);
  std::string told;
  for (const FileContent& each : *contents) {
    told += std::to_string(each.parent) + " " +
            (each.name.empty() ? std::string(name_of(each.kind)) : each.name) + " " +
            std::to_string(each.offset) + "+" + std::to_string(each.size) + " " +
            std::to_string(each.others) + "\n";
  }
  CHECK(told ==
        "0 bad 0+476 0\n"
        "0 a 0+64 1\n"
        "1 padding 0+32 0\n"
        "1 b 32+32 0\n"
        "3 c 32+32 0\n"
        "4 padding 32+8 0\n"
        "4 d 40+8 0\n"
        "4 f 48+8 0\n"
        "4 padding 56+8 0\n"
        "0 padding 64+32 0\n"
        "0 g 96+32 0\n"
        "0 tables 128+128 0\n"
        "0 index 256+220 0\n");
}

TEST_CASE("each file that ExecuTorch does not load is refused where it is wrong") {
  const auto refused = [](const std::string& bytes, const std::string& error) {
    CHECK(error_of(XnnpackCacheFile::open(file_of(bytes))) == exactly(error));
  };
  const std::string good = cache(entry("a", 0, 64), 1);
  REQUIRE(told(good) == "");
  refused(std::string("CWPX\2\0\0", 7), "kCorrupt: bad: offset 0: expected a footer of 20 bytes, found 7");
  refused(std::string("xxxxCWPX\2\0\0\0", 12),
          "kCorrupt: bad: offset 0: expected a footer of 20 bytes, found 12");
  // A beginning of zeros would be taken for a download that was not finished.
  refused(
      std::string(281, '\1') + footer(256, 1).replace(12, 4, "XPWC"),
      "kCorrupt: bad: offset 293: expected the identifier of a weight cache of XNNPACK (CWPX), found 'XPWC'");
  refused(std::string("x") + footer(0, 1).substr(2),
          "kCorrupt: bad: offset 0: expected a footer of 20 bytes, found 19");
  refused(good.substr(0, 281) + footer(256, 1, 1),
          "kUnsupported: bad: offset 297: expected version 2 of weight caches of XNNPACK, found 1");
  refused(footer(0, 0),
          "kCorrupt: bad: offset 0: expected an index before the footer at 0, found it at 0: ExecuTorch does "
          "not load this");
  refused(good.substr(0, 281) + footer(UINT64_MAX, 1),
          "kCorrupt: bad: offset 281: expected an index before the footer at 281, found it at "
          "18446744073709551615: ExecuTorch does not load this");
  for (const std::uint32_t length : {2U, 0x7fffffffU, 0xffffffffU}) {
    std::string longer = good;
    longer.replace(256, 4, raw(length));
    refused(longer,
            "kCorrupt: bad: offset 256: expected an entry that ends before the footer at 281, found a "
            "name of " +
                std::to_string(length) + " bytes");
  }
  refused(cache(entry("a", 0, 64) + "1234", 2),
          "kCorrupt: bad: offset 281: expected an entry that ends before the footer at 285, found a name of "
          "875770417 bytes");
  const auto outside = [&](std::uint64_t offset, std::uint64_t size) {
    refused(cache(entry("b", 0, 1) + entry("a", offset, size), 2),
            "kCorrupt: bad: offset 281: expected weights 'a' in front of the index at 256, found " +
                std::to_string(size) + " bytes from " + std::to_string(offset) + " on");
  };
  outside(256, 0);
  outside(192, 65);
  outside(64, UINT64_MAX);
  outside(UINT64_MAX, 64);
}

TEST_CASE("what ExecuTorch loads all the same is opened, and verified") {
  const auto found = [](const std::string& index, std::uint32_t count, const std::string& expected) {
    static_cast<void>(opened(cache(index, count)));
    CHECK(told(cache(index, count)) == expected);
  };
  found(entry("", 64, 1) + entry("a", 192, 64), 2, "");
  // It does not notice that entries are missing at the end, and does not look behind the last.
  found(entry("a", 0, 64) + "123", 2,
        "error: bad: offset 292: expected a count of the entries in the index, which is 1, found 2\n");
  found(entry("a", 0, 64) + "12345", 1,
        "warning: bad: offset 281: expected the footer behind the last entry, found it 5 bytes later\n");
  found(entry("a", 0, 64) + entry("a", 64, 64), 2,
        "warning: bad: offset 281: expected each name once, found 'a' again, which counts\n");
  found(
      entry("a", 32, 64), 1,
      "error: bad: offset 256: expected weights 'a' at a multiple of 64, as kernels read them, found them at "
      "32\n");
  found(entry("a", 64, 0), 1,
        "error: bad: offset 256: expected weights 'a' of at least 1 byte, found none\n");
  found(
      entry("b", 128, 64) + entry("a", 0, 129) + entry("c", 128, 64), 3,
      "error: bad: offset 128: expected weights 'b' behind those before them, which end at 129, found them "
      "in "
      "those\nerror: bad: offset 128: expected weights 'c' behind those before them, which end at 192, found "
      "them in those\n");
}

TEST_CASE("a file cut short or with one byte changed is refused or opened, and never read outside") {
  const std::string good = cache(entry("a", 0, 64) + entry("bias", 128, 64), 2);
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK_FALSE(XnnpackCacheFile::open(file_of(good.substr(0, size))));
  }
  for (std::size_t at = 256; at < good.size(); ++at) {
    for (const int bit : {1, 128}) {
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      const auto file = XnnpackCacheFile::open(file_of(changed));
      if (!file) continue;
      for (const XnnpackCacheEntry& each : file->entries()) CHECK(each.offset + each.data.size() <= 256);
    }
  }
}

TEST_CASE("an index of which memory would hold too much is refused") {
  const std::string huge((std::size_t{16} << 20) - 24, 'n');
  CHECK(opened(cache(entry(huge, 0, 64), 1)).entries().size() == 1);
  const std::string bytes = cache(entry(huge + "n", 0, 64), 1);
  CHECK(
      error_of(XnnpackCacheFile::open(file_of(bytes))) ==
      exactly("kTooLarge: bad: offset 256: expected an index of at most 16777216 bytes, found a longer one"));
}

}  // namespace
}  // namespace etstream::xnnpack_cache_file_test
