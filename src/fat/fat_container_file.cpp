// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/fat_container_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "container/findings.h"
#include "fat/fat_table.h"
#include "io/paged_reader.h"

namespace etstream {
namespace {

Error corrupt(const ByteSource& file, std::uint64_t offset, std::string_view expected_and_found) {
  return unexpected(ErrorCode::kCorrupt, {file.name(), offset}, "{}", expected_and_found);
}

template <class Integer>
Integer integer_at(const std::vector<std::byte>& bytes, std::uint64_t offset) {
  Integer value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

/// How many payloads the header says there are.
Result<std::uint32_t> read_count(const ByteSource& file) {
  if (file.size() < fat_table::kHeaderSize) {
    return corrupt(file, 0, text("a header of {} bytes, found {}", fat_table::kHeaderSize, file.size()));
  }
  std::vector<std::byte> header(fat_table::kHeaderSize);
  ETSTREAM_TRY(file.read_at(0, header));
  if (std::memcmp(header.data(), fat_table::kMagic.data(), fat_table::kMagic.size()) != 0) {
    return corrupt(file, 0,
                   text("the identifier of a fat container (NFAT), found {}",
                        quote({reinterpret_cast<const char*>(header.data()), fat_table::kMagic.size()})));
  }
  if (const auto version = integer_at<std::uint32_t>(header, 4); version != fat_table::kVersion) {
    return unexpected(ErrorCode::kUnsupported, {file.name(), 4}, "version {} of fat containers, found {}",
                      fat_table::kVersion, version);
  }
  const auto count = integer_at<std::uint32_t>(header, 8);
  if (fat_table::size(count) > file.size()) {
    return corrupt(
        file, 8,
        text("a number of payloads whose table lies in the file's {} bytes, found {}", file.size(), count));
  }
  if (count > fat_table::kMostPayloads) {
    return unexpected(ErrorCode::kTooLarge, {file.name(), 8}, "at most {} payloads, found {}",
                      fat_table::kMostPayloads, count);
  }
  return count;
}

std::string name_at(const std::vector<std::byte>& table, std::uint64_t offset) {
  const char* const name = reinterpret_cast<const char*>(table.data()) + offset;
  return {name, std::find(name, name + fat_table::kNameSize, '\0')};
}

/// Warns of what lies in `gap`, from one payload to the next, unless that is zeros.
Result<void> check_padding(const ByteSource& file, std::uint64_t begin, std::uint64_t end,
                           Findings& findings) {
  ETSTREAM_ASSIGN(const auto found, find_nonzero(file, begin, end));
  if (found) {
    add_warning(findings, corrupt(file, found->offset,
                                  text("zero, in the padding around payloads, found {}", found->value)));
  }
  return {};
}

}  // namespace

Result<FatContainerFile> FatContainerFile::open(ByteSource file) {
  return without_exceptions([&]() -> Result<FatContainerFile> {
    ETSTREAM_ASSIGN(const std::uint32_t count, read_count(file));
    const std::uint64_t base = fat_table::size(count);
    std::vector<std::byte> table(base);
    ETSTREAM_TRY(file.read_at(0, table));
    std::vector<FatPayload> payloads;
    payloads.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t entry = fat_table::size(i);
      FatPayload payload;
      payload.name = name_at(table, entry);
      const auto offset = integer_at<std::uint64_t>(table, entry + fat_table::kNameSize);
      const auto size = integer_at<std::uint64_t>(table, entry + fat_table::kNameSize + sizeof(offset));
      if (!range_fits(offset, size, file.size() - base)) {
        return corrupt(
            file, entry + fat_table::kNameSize,
            text("payload {} inside the file's {} bytes behind the table, found {} bytes from {} on",
                 quote(payload.name), file.size() - base, size, offset));
      }
      payload.offset = base + offset;
      ETSTREAM_ASSIGN(payload.data, file.slice(payload.offset, size));
      payloads.push_back(std::move(payload));
    }
    return FatContainerFile(std::move(file), std::move(payloads));
  });
}

const FatPayload* FatContainerFile::find(std::string_view name) const noexcept {
  const auto found = std::find_if(payloads_.begin(), payloads_.end(),
                                  [&](const FatPayload& payload) { return payload.name == name; });
  return found == payloads_.end() ? nullptr : &*found;
}

Result<void> FatContainerFile::verify(Findings& findings) const {
  return without_exceptions([&]() -> Result<void> {
    std::set<std::string_view> names;
    std::vector<const FatPayload*> by_offset;
    for (std::uint32_t i = 0; i < payloads_.size(); ++i) {
      const FatPayload& payload = payloads_[i];
      const std::uint64_t entry = fat_table::size(i);
      if (!fat_table::is_name(payload.name)) {
        add_error(findings, corrupt(file_, entry,
                                    text("a name of 1 to {} characters of ASCII, found {}",
                                         fat_table::kNameSize, quote(payload.name))));
      } else if (!names.insert(payload.name).second) {
        add_error(findings, corrupt(file_, entry, text("each name once, found {}", quote(payload.name))));
      }
      if (payload.data.size() != 0) by_offset.push_back(&payload);
    }
    std::stable_sort(by_offset.begin(), by_offset.end(), [](const FatPayload* a, const FatPayload* b) {
      return a->offset != b->offset ? a->offset < b->offset : a->data.size() < b->data.size();
    });
    std::uint64_t begin = fat_table::size(payloads_.size());
    std::uint64_t end = begin;  // of the last payload, which begins at `begin`
    for (const FatPayload* payload : by_offset) {
      const bool is_shared = payload->offset == begin && payload->offset + payload->data.size() == end;
      if (payload->offset < end && !is_shared) {
        add_warning(findings,
                    corrupt(file_, payload->offset,
                            text("payload {} behind the one before it, which ends at {}, found it in that",
                                 quote(payload->name), end)));
      }
      if (payload->offset > end) ETSTREAM_TRY(check_padding(file_, end, payload->offset, findings));
      begin = payload->offset;
      end = std::max(end, payload->offset + payload->data.size());
    }
    return check_padding(file_, end, file_.size(), findings);
  });
}

Result<std::optional<FileKind>> kind_of(const FatPayload& payload) {
  const auto kind = file_kind(payload.data);
  if (kind) return std::optional(*kind);
  if (kind.error().code == ErrorCode::kUnsupported) return std::optional<FileKind>();
  return kind.error();
}

}  // namespace etstream
