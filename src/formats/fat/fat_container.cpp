// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/fat_container.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/append.h"
#include "core/layout/same_bytes.h"
#include "formats/fat/fat_table.h"

namespace etstream {
namespace {

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

}  // namespace etstream
