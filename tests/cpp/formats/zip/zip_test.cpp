// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/layout/file_plan.h"
#include "formats/zip/zip.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::zip_test {
namespace {

/// Plans an archive of members of these sizes, all zeros, with a wrong checksum.
FilePlan archive_plan(const std::vector<std::pair<std::string, std::uint64_t>>& members,
                      std::uint32_t alignment = 1) {
  FilePlan out;
  ZipWriter writer(out, alignment);
  for (const auto& [name, size] : members) {
    REQUIRE(writer.begin({.name = name, .size = size, .crc32 = 7, .day = 0x102, .time = 0x304}, false));
    REQUIRE(append(out, 1, name, ByteSource::zeros(size)));
  }
  REQUIRE(writer.finish());
  return out;
}

ByteSource archive(const std::vector<std::pair<std::string, std::uint64_t>>& members,
                   std::uint32_t alignment = 1) {
  return source_of(archive_plan(members, alignment)).value();
}

TEST_CASE("what is written is read, of any number and size") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  std::vector<std::pair<std::string, std::uint64_t>> many(65535, {"", 1});
  for (std::size_t i = 0; i < many.size(); ++i) many[i].first = std::to_string(i);
  const std::vector<std::vector<std::pair<std::string, std::uint64_t>>> all = {
      {},
      {{"a", 0}},
      {{"a", 3}, {"b", 4 * kGiB - 1}, {"c", 4}},
      {{"a", 2 * kGiB - 1}, {"b", 1}},
      {{"a", 2 * kGiB}, {"b", 5 * kGiB}, {"c", 1}},
      {{"a", 2 * kGiB - 32}, {"b", 1}},  // whose header is the last in 32 bits
      {{"a", 2 * kGiB - 31}, {"b", 1}},
      {{"a", 2 * kGiB - 32}},
      {{"a", 2 * kGiB - 31}},
      many};
  for (const auto& members : all) {
    const ByteSource file = archive(members);
    const auto read = read_zip(file);
    REQUIRE_MESSAGE(read, read.error().message);
    REQUIRE(read->members.size() == members.size());
    std::uint64_t end = 0;
    std::uint64_t directory = 22;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const ZipMember& member = read->members[i];
      CHECK(member.name == members[i].first);
      CHECK(member.size == members[i].second);
      CHECK(member.crc32 == 7);
      CHECK(member.day == 0x102);
      CHECK(member.time == 0x304);
      CHECK(member.header == end);
      const bool large = member.size >= 2 * kGiB;
      const bool far = member.header >= 2 * kGiB;
      CHECK(member.offset == member.header + 30 + member.name.size() + (large ? 20 : 0));
      directory += 46 + member.name.size() + (large || far ? 4 : 0) + (large ? 16 : 0) + (far ? 8 : 0);
      end = member.offset + member.size;
    }
    CHECK(read->directory == end);
    CHECK(file.size() - end == directory + (end >= 2 * kGiB ? 76 : 0));
  }
}

// tests/golden/native_package and tests/peer/test_native_package.py have smaller ones.
TEST_CASE("an archive of 64-bit numbers has the bytes that zipfile gives it") {
  using namespace std::string_literals;
  const std::string times = "\4\3\2\1\7\0\0\0"s;  // and the checksum
  const ByteSource large = archive({{"a", std::uint64_t{1} << 31}});
  const std::string ones(8, '\xff');
  const std::string size = "\0\0\0\x80\0\0\0\0"s;
  CHECK((text_of(large.slice(0, 51).value()) ==
         "PK\3\4\x2d\0\0\0\0\0"s + times + ones + "\1\0\x14\0"s + "a\1\0\x10\0"s + size + size));
  const std::uint64_t directory = (std::uint64_t{1} << 31) + 51;
  CHECK((text_of(large.slice(directory, large.size() - directory).value()) ==
         "PK\1\2\x2d\3\x2d\0\0\0\0\0"s + times + ones + "\1\0\x14\0"s + std::string(6, '\0') +
             "\0\0\x80\1\0\0\0\0a\1\0\x10\0"s + size + size + "PK\6\6\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0"s +
             std::string(8, '\0') + "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x43\0\0\0\0\0\0\0"s +
             "\x33\0\0\x80\0\0\0\0PK\6\7\0\0\0\0\x76\0\0\x80\0\0\0\0\1\0\0\0"s +
             "PK\5\6\0\0\0\0\1\0\1\0\x43\0\0\0\x33\0\0\x80\0\0"s));
}

TEST_CASE("a member that zipfile is given whole has room for 5 % more in its header") {
  for (const std::uint64_t size : {2045222520U, 2045222521U}) {
    FilePlan out;
    ZipWriter writer(out, 1);
    REQUIRE(writer.begin({.name = "a", .size = size}, true));
    CHECK(out.size == (size == 2045222520 ? 31 : 51));
  }
}

TEST_CASE("a member that is streamed has no time, and the first day that there can be") {
  FilePlan plan;
  ZipWriter writer(plan, 1);
  REQUIRE(writer.append_streamed("a", source_of("abc"), "a"));
  REQUIRE(writer.finish());
  const auto read = read_zip(source_of(plan).value());
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read->members.at(0).day == (1 << 5 | 1));  // 1 January 1980
  CHECK(read->members.at(0).time == 0);
}

TEST_CASE("checksums in records are there whichever of their bytes are read, and in whatever order") {
  const ChecksummedSource checked = with_checksum(source_of("abc"));
  CHECK(text_of(checked.source.slice(1, 2).value()) == "bc");
  const ByteSource record =
      with_checksums(std::vector<std::byte>(12), {{1, checked.checksum}, {6, checked.checksum}});
  const std::string crc = "\xc2\x41\x24\x35";
  const std::string whole = '\0' + crc + '\0' + crc + std::string(2, '\0');
  for (std::size_t begin = 0; begin <= 12; ++begin) {
    for (std::size_t size = 0; begin + size <= 12; ++size) {
      CHECK(text_of(record.slice(begin, size).value()) == whole.substr(begin, size));
    }
  }
}

template <class Integer>
void put(std::string& bytes, std::size_t at, Integer value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

TEST_CASE("damaged archives are errors that say where") {
  // "a" has its header at 0 and its data from 31 to 34, "b" from 34 on; the directory begins at 67 with the
  // header of "a", that of "b" is at 114, the end record at 161.
  const std::string good = text_of(archive({{"a", 3}, {"b", 2}}));
  REQUIRE(good.size() == 183);
  REQUIRE(read_zip(source_of(good)));
  struct Bad {
    const char* what;
    std::function<void(std::string&)> change;
    const char* error;
  };
  const std::vector<Bad> all = {
      {"a comment that is longer than said", [](auto& s) { s += "x"; }, "expected the end record"},
      {"a second disk", [](auto& s) { put(s, 165, std::uint16_t{1}); },
       "kUnsupported: memory: offset 165: expected an archive of one file"},
      {"a folder with data", [](auto& s) { s[105] = 0x10; },
       "kCorrupt: memory: offset 105: expected a folder without data, which some readers leave unread, "
       "found 3 bytes of 'a'"},
      {"a reader of the future", [](auto& s) { s[73] = 64; },
       "kUnsupported: memory: offset 73: expected a member for a reader of version 63 at most, found 'a' for "
       "64"},
      {"a patch", [](auto& s) { s[6] = s[75] = 0x20; },
       "kUnsupported: memory: offset 75: expected a member that is whole, found a patch for 'a'"},
      {"a directory elsewhere", [](auto& s) { put(s, 177, std::uint32_t{68}); }, "94 bytes from 68 on"},
      {"a compressed member", [](auto& s) { put(s, 67 + 10, std::uint16_t{8}); },
       "kUnsupported: memory: offset 77: expected a member that is stored as it is, found 'a' compressed by "
       "method 8"},
      {"an encrypted member", [](auto& s) { put(s, 67 + 8, std::uint16_t{1}); },
       "kUnsupported: memory: offset 75: expected a member that is not encrypted, found 'a'"},
      {"one that only its own header says is encrypted", [](auto& s) { put(s, 6, std::uint16_t{64}); },
       "kUnsupported: memory: offset 6: expected a member that is not encrypted"},
      {"a member on the directory", [](auto& s) { put(s, 67 + 42, std::uint32_t{60}); },
       "offset 0: expected a member's header or the directory right behind what is before it, found 34 "
       "bytes of neither"},
      {"a member that goes on",
       [](auto& s) {
         for (const std::size_t at : {87U, 91U, 18U, 22U}) put(s, at, std::uint32_t{37});
       },
       "offset 0: expected member 'a' of 37 bytes before the directory"},
      {"another name", [](auto& s) { s[30] = 'x'; }, "offset 30: expected the name 'a' as in the directory"},
      {"another checksum", [](auto& s) { s[14] = 8; },
       "offset 14: expected checksum 7 and 3 bytes as in the directory, found checksum 8 and 3 bytes"},
      {"two of one name", [](auto& s) { s[64] = s[160] = 'a'; },
       "expected each member once, in whatever letters, found 'a' twice"},
      {"one on the other",
       [](auto& s) {
         put(s, 114 + 42, std::uint32_t{0});
         s[160] = 'a';
         s[114 + 20] = s[114 + 24] = 3;
       },
       "offset 0: expected member 'a' behind the one before it, which ends at 34, found it in that"},
      {"bytes before the first member",
       [](auto& s) {
         s.insert(0, "x");
         put(s, 68 + 42, std::uint32_t{1});
         put(s, 115 + 42, std::uint32_t{35});
         put(s, 178, std::uint32_t{68});
       },
       "offset 0: expected a member's header or the directory right behind what is before it, found 1 byte"},
      {"two end records",
       [](auto& s) {
         put(s, 181, std::uint16_t{22});
         s += s.substr(161, 20) + std::string(2, '\0');
       },
       "offset 183: expected a directory of 2 members that ends at 183, found 94 bytes from 67 on"},
      {"a zero byte in a name",
       [](auto& s) {
         s[30] = 0;
         s[113] = 0;
       },
       "offset 113: expected a name without a zero byte"},
  };
  for (const Bad& bad : all) {
    CAPTURE(bad.what);
    std::string bytes = good;
    bad.change(bytes);
    CHECK(error_of(read_zip(source_of(bytes))) == containing(bad.error));
  }
}

TEST_CASE("names that differ in the case of letters alone are one to some readers") {
  CHECK(error_of(read_zip(archive({{"data/0", 1}, {"DATA/0", 1}}))) ==
        containing("expected each member once, in whatever letters, found 'data/0' twice"));
  CHECK(read_zip(archive({{"data/\xc3\xa9", 1}, {"data/\xc3\x89", 1}})));
  CHECK(error_of(read_zip(archive({{"data/", 1}}))) == containing("a folder without data"));
  CHECK(read_zip(archive({{"data/", 0}, {"data/0", 1}})));
  CHECK(read_zip(archive({{"", 1}})));
}

TEST_CASE("headers that libzip does not take for the directory's are told") {
  std::string bytes = text_of(archive({{"a", 3}, {"b", 2}}));
  CHECK_FALSE(read_zip(source_of(bytes))->members[0].header_differs);
  for (const std::size_t at : {4U, 10U, 12U}) {
    CAPTURE(at);
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] + 1);
    const auto read = read_zip(source_of(changed));
    REQUIRE_MESSAGE(read, read.error().message);
    CHECK(read->members[0].header_differs);
    CHECK_FALSE(read->members[1].header_differs);
  }
  --bytes[4];
  CHECK_FALSE(read_zip(source_of(bytes))->members[0].header_differs);
}

TEST_CASE("archives of too many members are too large") {
  std::vector<std::pair<std::string, std::uint64_t>> many(65537, {"", 0});
  CHECK(error_of(read_zip(archive(many))) == containing("kTooLarge: "));
}

TEST_CASE("a directory takes up to 16 MiB") {
  std::vector<std::pair<std::string, std::uint64_t>> members(256, {"", 0});
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].first = std::to_string(100 + i) + std::string(65487, '-');
  }
  CHECK(read_zip(archive(members)));
  members[0].first += '-';
  const ByteSource file = archive(members);
  CHECK(
      error_of(read_zip(file)) ==
      containing(": offset " + std::to_string(file.size() - 22) +
                 ": expected at most 65536 members in a directory of 16777216 bytes, found 256 in 16777217"));
}

TEST_CASE("a comment of a member, a reader's latest version and a field without bytes are taken") {
  std::string bytes = text_of(archive({{"a", 3}}));
  bytes[34 + 6] = 63;
  put(bytes, 34 + 30, std::uint16_t{4});
  put(bytes, 34 + 32, std::uint16_t{2});
  bytes.insert(34 + 47, std::string("\x99\x99\0\0xy", 6));
  put(bytes, bytes.size() - 10, std::uint32_t{47 + 6});
  const auto read = read_zip(source_of(bytes));
  REQUIRE_MESSAGE(read, read.error().message);
}

TEST_CASE("a comment at the end is taken, up to the longest that there can be") {
  std::string bytes = text_of(archive({{"a", 3}}));
  std::string longest = bytes;
  put(longest, bytes.size() - 2, std::uint16_t{65535});
  longest += std::string(65535, 'x');
  CHECK(read_zip(source_of(longest)));
  CHECK(error_of(read_zip(source_of(longest + 'x'))) ==
        containing("expected the end record of a zip archive before the file's end, found none"));
  bytes[bytes.size() - 2] = 4;
  bytes += "PK\5\7";
  CHECK(read_zip(source_of(bytes)));
}

/// Returns an archive of "a", 3 zero bytes; `descriptor` has the checksum and size that follow.
std::string with_descriptor(const std::string& descriptor) {
  std::string bytes = text_of(archive({{"a", 3}}));
  REQUIRE(bytes.substr(34, 4) == "PK\1\2");
  bytes[6] = bytes[34 + 8] = 8;
  std::memset(bytes.data() + 14, 0, 12);
  put(bytes, bytes.size() - 6, static_cast<std::uint32_t>(34 + descriptor.size()));
  return bytes.insert(34, descriptor);
}

TEST_CASE("checksums behind the data, which their flags tell of, are taken in each of their forms") {
  const std::string crc("\7\0\0\0", 4);
  const std::string size("\3\0\0\0", 4);
  const std::string size64("\3\0\0\0\0\0\0\0", 8);
  const std::string signature = "PK\7\10";
  for (const std::string& descriptor : {std::string(), crc + size + size, signature + crc + size + size,
                                        crc + size64 + size64, signature + crc + size64 + size64}) {
    const auto read = read_zip(source_of(with_descriptor(descriptor)));
    REQUIRE_MESSAGE(read, read.error().message);
    CHECK(read->members[0].size == 3);
    CHECK(read->directory == 34 + descriptor.size());
  }
  for (const std::string& descriptor :
       {crc + size, crc + size + crc, size + size + size, signature + crc + size + size + size64,
        std::string("PK\7\7") + crc + size + size, std::string(400, '\0')}) {
    CHECK(error_of(read_zip(source_of(with_descriptor(descriptor)))) ==
          exactly(
              "kCorrupt: memory: offset 34: expected checksum and sizes behind the data of member 'a', as in "
              "the directory, found " +
              std::to_string(descriptor.size()) + " bytes of others"));
  }
}

/// Returns the members' names, sizes, checksums and places, by which readers find their bytes.
std::string members_of(const ZipArchive& archive) {
  std::string out;
  for (const ZipMember& each : archive.members) {
    out += text("{} {} {} {} {}; ", each.name, each.size, each.crc32, each.header, each.offset);
  }
  return out;
}

TEST_CASE("whichever byte of an archive is another, missing or new, no other members are read") {
  const std::string crc_and_sizes("\7\0\0\0\3\0\0\0\3\0\0\0", 12);
  std::string large = "PK\6\6" + std::string(52, '\0') + "PK\6\7" + std::string(16, '\0');
  put(large, 4, std::uint64_t{44});
  put(large, 56 + 16, std::uint32_t{1});
  for (const std::string& good : {text_of(archive({{"a", 3}, {"b", 2}})), with_descriptor(crc_and_sizes),
                                  text_of(archive({{"a", 3}}, 64)), large + text_of(archive({}))}) {
    const auto before = read_zip(source_of(good));
    REQUIRE_MESSAGE(before, before.error().message);
    const bool has_64_bits = good.starts_with("PK\6\6");  // whose numbers begin at 16
    for (std::size_t at = 0; at < good.size(); ++at) {
      CAPTURE(at);
      std::string changed = good;
      for (int value = 0; value < 256; ++value) {
        changed[at] = static_cast<char>(value);
        const auto found = read_zip(source_of(changed));
        if (found) REQUIRE(members_of(*found) == members_of(*before));
        if (found && has_64_bits) REQUIRE((at < 16 || changed == good));
        if (!found) REQUIRE(error_of(found) == containing(": memory: offset "));
      }
      REQUIRE_FALSE(read_zip(source_of(std::string(good).erase(at, 1))));
      REQUIRE_FALSE(read_zip(source_of(std::string(good).insert(at, 1, 'x'))));
    }
  }
}

TEST_CASE("a second name or second numbers in extra fields are refused, as some readers go by them") {
  std::string bytes = text_of(archive({{"a", 1}}, 64));
  put(bytes, 31, std::uint16_t{0x7075});
  CHECK(error_of(read_zip(source_of(bytes))) ==
        containing("kUnsupported: memory: offset 31: expected a member of one name"));
  std::string numbers = text_of(archive({{"a", 5}}, 64));
  const std::string field("\1\0\x04\0zzzz", 8);
  numbers.replace(31, 16, field + field);
  put(numbers, 47, std::uint16_t{0xd935});
  put(numbers, 49, static_cast<std::uint16_t>(64 - 51));
  CHECK(error_of(read_zip(source_of(numbers))) ==
        containing("offset 39: expected one extra field of 64-bit numbers, found another"));
}

TEST_CASE("up to three zeros behind the extra fields are padding") {
  // An archive whose member "a" has two bytes behind its name, and its data from 33 on.
  std::string bytes = text_of(archive({{"a", 1}}));
  bytes.insert(31, 2, '\0');
  put(bytes, 28, std::uint16_t{2});
  put(bytes, bytes.size() - 6, std::uint32_t{34});
  const auto read = read_zip(source_of(bytes));
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read->members[0].offset == 33);
  bytes[32] = 1;
  CHECK(error_of(read_zip(source_of(bytes))) ==
        containing("offset 31: expected an extra field inside 2 bytes"));
}

TEST_CASE("the locator of a 64-bit end record has place for that before it") {
  const std::string empty = text_of(archive({}));
  REQUIRE(empty.size() == 22);
  for (const std::size_t before : {0U, 55U}) {
    std::string locator = std::string(before, '\0') + "PK\6\7" + std::string(16, '\0');
    const std::uint64_t place = before - std::uint64_t{56};  // as if numbers had an end
    put(locator, before + 8, place);
    CHECK(error_of(read_zip(source_of(locator + empty))) ==
          exactly("kCorrupt: memory: offset " + std::to_string(before + 8) +
                  ": expected the place of a record of 56 bytes right before it, found " +
                  std::to_string(place)));
  }
  std::string records = "PK\6\6" + std::string(52, '\0') + "PK\6\7" + std::string(16, '\0');
  put(records, 4, std::uint64_t{44});
  put(records, 56 + 16, std::uint32_t{1});
  const auto read = read_zip(source_of(records + empty));
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read->members.empty());
}

}  // namespace
}  // namespace etstream::zip_test
