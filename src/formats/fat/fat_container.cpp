// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/fat_container.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/file_plan.h"
#include "core/layout/same_bytes.h"
#include "formats/segments/file_kind.h"

namespace etstream {
namespace {

// The table in front of a fat container, little-endian: a header, and an entry for each payload
// (backends/native/fat_pte.py of ExecuTorch's pull request 20702).
namespace fat_table {

constexpr std::string_view kMagic = "NFAT";
constexpr std::uint32_t kVersion = 1;
/// The most payloads in a table. It bounds the part of the table that is read into memory to 3 MiB.
constexpr std::uint64_t kMostPayloads = 65536;

struct Header {
  std::array<char, 4> magic = {'N', 'F', 'A', 'T'};
  std::uint32_t version = kVersion;
  std::uint32_t payloads = 0;
};
struct Entry {
  std::array<char, 32> name = {};  // filled up with zeros
  std::uint64_t offset = 0;        // behind the table
  std::uint64_t size = 0;
};
static_assert(sizeof(Header) == 12 && sizeof(Entry) == 48);

constexpr std::uint64_t kNameSize = sizeof(Entry::name);

/// Returns the size in bytes of a table with so many entries.
constexpr std::uint64_t size(std::uint64_t payloads) noexcept {
  return sizeof(Header) + sizeof(Entry) * payloads;
}

/// Returns whether a payload may have this name. Readers do not find a name that is longer than its field or
/// is not printable ASCII.
constexpr bool is_name(std::string_view name) noexcept {
  for (const char c : name) {
    if (c < ' ' || c > '~') return false;
  }
  return !name.empty() && name.size() <= kNameSize;
}

}  // namespace fat_table

constexpr std::uint32_t kMostPayloadAlignment = std::uint32_t{1} << 30;

Result<void> check(const FatContainer& container) {
  ETSTREAM_TRY(check_alignment("alignment", container.alignment, kMostPayloadAlignment));
  if (container.payloads.size() > fat_table::kMostPayloads) {
    return make_error(ErrorCode::kTooLarge, "a fat container holds at most {} payloads, found {}",
                      fat_table::kMostPayloads, container.payloads.size());
  }
  for (const FatContainer::Payload& payload : container.payloads) {
    if (!fat_table::is_name(payload.name)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "payload {}: expected a name of 1 to {} characters of ASCII", quote(payload.name),
                        fat_table::kNameSize);
    }
  }
  const auto repeated = first_repeated(container.payloads, &FatContainer::Payload::name);
  if (repeated) return make_error(ErrorCode::kInvalidArgument, "payload {} comes twice", quote(*repeated));
  return {};
}

/// Returns for each payload the index of the payload that is stored for it: its own, or that of an earlier
/// equal one.
Result<std::vector<std::uint32_t>> owners(const FatContainer& container) {
  std::vector<ByteSource> sources;
  for (const FatContainer::Payload& payload : container.payloads) sources.push_back(payload.data);
  if (container.share_equal) return first_equal(sources);
  std::vector<std::uint32_t> all(sources.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

template <class... Arguments>
Error corrupt(const ByteSource& file, std::uint64_t offset, Template<Arguments...> words,
              const Arguments&... arguments) {
  return unexpected(ErrorCode::kCorrupt, {file.name(), offset}, words, arguments...);
}

/// Returns the number of payloads in the header.
Result<std::uint32_t> read_count(const ByteSource& file) {
  fat_table::Header header;
  if (file.size() < sizeof(header)) {
    return corrupt(file, 0, "a header of {} bytes, found {}", sizeof(header), file.size());
  }
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(&header, 1))));
  const std::string_view magic(header.magic.data(), header.magic.size());
  if (magic != fat_table::kMagic) {
    return corrupt(file, 0, "the identifier of a fat container (NFAT), found {}", quote(magic));
  }
  if (header.version != fat_table::kVersion) {
    return unexpected(ErrorCode::kUnsupported, {file.name(), 4}, "version {} of fat containers, found {}",
                      fat_table::kVersion, header.version);
  }
  if (fat_table::size(header.payloads) > file.size()) {
    return corrupt(file, 8, "a number of payloads whose table lies in the file's {} bytes, found {}",
                   file.size(), header.payloads);
  }
  if (header.payloads > fat_table::kMostPayloads) {
    return unexpected(ErrorCode::kTooLarge, {file.name(), 8}, "at most {} payloads, found {}",
                      fat_table::kMostPayloads, header.payloads);
  }
  return header.payloads;
}

/// Warns of bytes from `begin` to `end`, between payloads, that are not zero.
Result<void> check_padding(const ByteSource& file, std::uint64_t begin, std::uint64_t end,
                           Findings& findings) {
  ETSTREAM_ASSIGN(const auto found, find_nonzero(file, begin, end));
  if (found) {
    add_warning(findings,
                corrupt(file, found->offset, "zero, in the padding around payloads, found {}", found->value));
  }
  return {};
}

/// Returns the payloads that have bytes, in the order of their bytes.
std::vector<const FatPayload*> in_order(const std::vector<FatPayload>& payloads) {
  std::vector<const FatPayload*> out;
  for (const FatPayload& payload : payloads) {
    if (payload.data.size() != 0) out.push_back(&payload);
  }
  std::ranges::stable_sort(
      out, {}, [](const FatPayload* payload) { return std::pair(payload->offset, payload->data.size()); });
  return out;
}

/// Refuses payloads that have some of their bytes in common, but not all. A check of each of them would take
/// longer than the file is large.
Result<void> check_apart(const ByteSource& file, const std::vector<FatPayload>& payloads) {
  const FatPayload* last = nullptr;
  for (const FatPayload* const payload : in_order(payloads)) {
    const std::uint64_t end = last != nullptr ? last->offset + last->data.size() : 0;
    const bool is_shared =
        last != nullptr && payload->offset == last->offset && payload->data.size() == last->data.size();
    if (payload->offset < end && !is_shared) {
      return corrupt(file, payload->offset,
                     "payload {} behind the one before it, which ends at {}, found it in that",
                     quote(payload->name), end);
    }
    last = payload;
  }
  return {};
}

}  // namespace

Result<FilePlan> plan(const FatContainer& container) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_TRY(check(container));
    ETSTREAM_ASSIGN(const auto owner, owners(container));
    fat_table::Header header;
    header.payloads = static_cast<std::uint32_t>(owner.size());
    std::vector<fat_table::Entry> entries(owner.size());
    const std::uint64_t table = fat_table::size(owner.size());
    FilePlan out;
    ETSTREAM_TRY(append(out, 1, "table", ByteSource::zeros(table)));
    for (std::uint32_t i = 0; i < owner.size(); ++i) {
      const auto& [name, data] = container.payloads[i];
      std::ranges::copy(name, entries[i].name.begin());
      entries[i].size = data.size();
      if (owner[i] != i) {
        entries[i].offset = entries[owner[i]].offset;
        continue;
      }
      if (data.size() != 0) ETSTREAM_TRY(pad(out, container.alignment));
      entries[i].offset = out.size - table;
      ETSTREAM_TRY(append(out, container.alignment, text("payload {}", quote(name)), data));
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(table));
    std::ranges::copy(std::as_bytes(std::span(&header, 1)), bytes.begin());
    std::ranges::copy(std::as_bytes(std::span(entries)), bytes.begin() + sizeof(header));
    out.extents.front().source = ByteSource::owned(std::move(bytes));
    out.metadata_size = table;
    out.payload_size = out.size - table;
    return out;
  });
}

Result<FatContainerFile> FatContainerFile::open(ByteSource file) {
  const ByteSource whole = file;
  auto opened = without_exceptions([&]() -> Result<FatContainerFile> {
    ETSTREAM_ASSIGN(const std::uint32_t count, read_count(file));
    std::vector<fat_table::Entry> entries(count);
    ETSTREAM_TRY(file.read_at(sizeof(fat_table::Header), std::as_writable_bytes(std::span(entries))));
    const std::uint64_t base = fat_table::size(count);
    std::vector<FatPayload> payloads;
    payloads.reserve(count);
    for (const auto& [name, offset, size] : entries) {
      FatPayload& payload = payloads.emplace_back();
      const auto name_end = std::find(name.begin(), name.end(), '\0');
      payload.name.assign(name.begin(), name_end);
      if (std::any_of(name_end, name.end(), [](char c) { return c != '\0'; })) {
        return corrupt(file, fat_table::size(payloads.size() - 1),
                       "a name filled up with zeros, found {} and more behind a zero", quote(payload.name));
      }
      if (!range_fits(offset, size, file.size() - base)) {
        return corrupt(file, fat_table::size(payloads.size() - 1) + fat_table::kNameSize,
                       "payload {} inside the file's {} bytes behind the table, found {} bytes from {} on",
                       quote(payload.name), file.size() - base, size, offset);
      }
      payload.offset = base + offset;
      ETSTREAM_ASSIGN(payload.data, file.slice(payload.offset, size));
    }
    ETSTREAM_TRY(check_apart(file, payloads));
    return FatContainerFile(std::move(file), std::move(payloads));
  });
  return unless_other(whole, {"a fat container (NFAT)", {FileKind::kFatContainer}}, std::move(opened));
}

const FatPayload* FatContainerFile::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(payloads_, name, &FatPayload::name);
  return found == payloads_.end() ? nullptr : &*found;
}

Result<void> FatContainerFile::verify(Findings& findings) const {
  return without_exceptions([&]() -> Result<void> {
    std::set<std::string_view> names;
    for (std::uint32_t i = 0; i < payloads_.size(); ++i) {
      const FatPayload& payload = payloads_[i];
      const std::uint64_t entry = fat_table::size(i);
      if (!fat_table::is_name(payload.name)) {
        add_error(findings, corrupt(file_, entry, "a name of 1 to {} characters of ASCII, found {}",
                                    fat_table::kNameSize, quote(payload.name)));
      } else if (!names.insert(payload.name).second) {
        add_error(findings, corrupt(file_, entry, "each name once, found {}", quote(payload.name)));
      }
    }
    std::uint64_t end = fat_table::size(payloads_.size());
    for (const FatPayload* const payload : in_order(payloads_)) {
      if (payload->offset > end) ETSTREAM_TRY(check_padding(file_, end, payload->offset, findings));
      end = payload->offset + payload->data.size();
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
