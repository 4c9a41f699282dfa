// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/fat_container.h"

#include <algorithm>
#include <cstring>

#include "base/repeated.h"
#include "base/text.h"
#include "base/try.h"
#include "fat/fat_table.h"
#include "layout/append.h"
#include "layout/same_bytes.h"

namespace etstream {
namespace {

constexpr std::uint32_t kMostPayloadAlignment = std::uint32_t{1} << 30;

Result<void> check(const FatContainer& container) {
  ETSTREAM_TRY(check_alignment("alignment", container.alignment, kMostPayloadAlignment));
  if (container.payloads.size() > fat_table::kMostPayloads) {
    return make_error(ErrorCode::kTooLarge, "a fat container holds at most {} payloads, found {}",
                      fat_table::kMostPayloads, container.payloads.size());
  }
  std::vector<std::string_view> names;
  for (const FatContainer::Payload& payload : container.payloads) {
    if (!fat_table::is_name(payload.name)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "payload {}: expected a name of 1 to {} characters of ASCII", quote(payload.name),
                        fat_table::kNameSize);
    }
    names.emplace_back(payload.name);
  }
  const auto repeated = first_repeated(std::move(names));
  if (repeated) return make_error(ErrorCode::kInvalidArgument, "payload {} comes twice", quote(*repeated));
  return {};
}

/// For each payload the one whose bytes stand for it: itself, or an earlier one that is equal.
Result<std::vector<std::uint32_t>> owners(const FatContainer& container) {
  std::vector<ByteSource> sources;
  for (const FatContainer::Payload& payload : container.payloads) sources.push_back(payload.data);
  if (container.share_equal) return first_equal(sources);
  std::vector<std::uint32_t> all(sources.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

std::vector<std::byte> table_bytes(const FatContainer& container, const std::vector<std::uint64_t>& offsets) {
  const auto count = static_cast<std::uint32_t>(container.payloads.size());
  std::vector<std::byte> out(fat_table::size(count));
  const auto put = [&](std::uint64_t at, const void* value, std::size_t size) {
    std::memcpy(out.data() + at, value, size);
  };
  put(0, fat_table::kMagic.data(), fat_table::kMagic.size());
  put(4, &fat_table::kVersion, sizeof(fat_table::kVersion));
  put(8, &count, sizeof(count));
  for (std::uint32_t i = 0; i < count; ++i) {
    const FatContainer::Payload& payload = container.payloads[i];
    const std::uint64_t entry = fat_table::size(i);
    const std::uint64_t size = payload.data.size();
    put(entry, payload.name.data(), payload.name.size());
    put(entry + fat_table::kNameSize, &offsets[i], sizeof(offsets[i]));
    put(entry + fat_table::kNameSize + sizeof(offsets[i]), &size, sizeof(size));
  }
  return out;
}

}  // namespace

Result<FilePlan> plan(const FatContainer& container) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_TRY(check(container));
    ETSTREAM_ASSIGN(const auto owner, owners(container));
    const std::uint64_t table = fat_table::size(container.payloads.size());
    FilePlan out;
    ETSTREAM_TRY(append(out, 1, "table", ByteSource::zeros(table)));
    std::vector<std::uint64_t> offsets(owner.size());
    for (std::uint32_t i = 0; i < owner.size(); ++i) {
      const FatContainer::Payload& payload = container.payloads[i];
      if (owner[i] != i) {
        offsets[i] = offsets[owner[i]];
        continue;
      }
      if (payload.data.size() != 0) ETSTREAM_TRY(pad(out, container.alignment));
      offsets[i] = out.size - table;
      ETSTREAM_TRY(append(out, container.alignment, text("payload {}", quote(payload.name)), payload.data));
    }
    out.extents.front().source = ByteSource::owned(table_bytes(container, offsets));
    out.metadata_size = table;
    out.payload_size = out.size - table;
    return out;
  });
}

}  // namespace etstream
