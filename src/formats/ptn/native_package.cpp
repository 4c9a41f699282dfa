// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/native_package.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

#include "core/base/calendar.h"
#include "core/base/checked.h"
#include "core/base/content_hash.h"
#include "core/base/crc32.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/append.h"
#include "core/layout/same_bytes.h"
#include "formats/ptn/package_members.h"
#include "formats/safetensors/safetensors.h"
#include "formats/segments/file_kind.h"
#include "formats/zip/zip.h"

namespace etstream {
namespace {

constexpr std::uint32_t kLargestMemberAlignment = std::uint32_t{1} << 15;

struct Constant : StoredTensor {
  bool is_mutable = false;
  std::uint32_t crc32 = 0;
};

/// The parts in which two equal constants agree: type, sizes, bytes.
using Content = std::tuple<std::string_view, std::vector<std::int32_t>, ContentHash>;

struct Stored {
  std::vector<Constant> owners;                // in the order of their bytes
  std::map<std::string, std::string> aliases;  // keys, and the owners whose bytes they have
};

/// Spells JSON as Python's json does by default, in ASCII. `spaces` is its indent; -1 for none.
std::string python_json(const nlohmann::json& value, int spaces) { return value.dump(spaces, ' ', true); }

Error invalid(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

Result<NativeGraph> read_graph(const NativePackage& package) {
  auto graph =
      unless_other(package.graph, {"a graph (NPTG)"}, read_native_graph(package.graph, package.graph.name()));
  if (graph || graph.error().code != ErrorCode::kCorrupt) return graph;
  graph.error().code = ErrorCode::kInvalidArgument;
  return graph;
}

std::string_view name_of_constant(const Constant& constant) { return constant.tensor->name; }

/// Returns the constants sorted by name, as they are stored.
Result<std::vector<Constant>> sorted_constants(const NativePackage& package) {
  std::vector<Constant> out;
  out.reserve(package.constants.size());
  std::vector<std::string_view> names = {"__metadata__"};
  for (const CheckpointTensor& tensor : package.constants) {
    ETSTREAM_ASSIGN(const SafetensorsDtype dtype, safetensors_dtype(tensor));
    if (!tensor.layout || !package::takes(tensor.layout->scalar_type)) {
      return error_in(ErrorCode::kUnsupported, tensor.data.name(),
                      "constant {} is of type {}, which packages have none of", quote(tensor.name),
                      tensor.layout ? name_of(tensor.layout->scalar_type) : std::string_view(tensor.type));
    }
    if (!is_utf8(tensor.name)) {
      return error_in(ErrorCode::kUnsupported, tensor.data.name(),
                      "the name of constant {} is not UTF-8, as JSON needs it", quote(tensor.name));
    }
    out.push_back({{&tensor, dtype}});
    names.emplace_back(tensor.name);
  }
  if (const auto repeated = first_repeated(names)) {
    return invalid(*repeated == "__metadata__"
                       ? "a constant is named '__metadata__', which safetensors reserves"
                       : text("constant {} comes twice", quote(*repeated)));
  }
  std::ranges::sort(out, {}, &name_of_constant);
  return out;
}

Constant* find(std::vector<Constant>& sorted, std::string_view name) {
  const auto found = std::ranges::lower_bound(sorted, name, {}, &name_of_constant);
  return found != sorted.end() && found->tensor->name == name ? &*found : nullptr;
}

/// Marks the constants that are state. Error: kInvalidArgument for a missing constant.
Result<void> apply_graph(const NativeGraph& graph, const NativePackage& package,
                         std::vector<Constant>& constants) {
  std::vector<std::string_view> missing;
  for (const std::string& key : graph.data_keys) {
    if (find(constants, key) == nullptr) missing.emplace_back(key);
  }
  if (!missing.empty()) {
    return invalid(text("{}: the graph asks for {} that {} not given: {}", package.graph.name(),
                        counted(missing.size(), "constant"), missing.size() == 1 ? "is" : "are",
                        names_text(missing)));
  }
  for (const std::string& key : graph.mutable_keys) find(constants, key)->is_mutable = true;
  for (const std::string& key : package.mutable_keys) {
    Constant* const constant = find(constants, key);
    if (constant != nullptr) {
      constant->is_mutable = true;
    } else {
      missing.emplace_back(key);
    }
  }
  if (missing.empty()) return {};
  return invalid(text("there is no constant for mutable keys: {}", names_text(missing)));
}

/// Refuses state that shares bytes with another constant: in the package each would have its own.
Result<void> check_apart(const std::vector<Constant>& constants) {
  std::vector<const Constant*> by_place;
  for (const Constant& constant : constants) {
    if (constant.tensor->data.size() != 0) by_place.push_back(&constant);
  }
  const auto place = [](const Constant* constant) { return constant->tensor->data.place(); };
  std::ranges::sort(by_place, {}, place);
  const Constant* reaching = nullptr;          // the furthest of those before
  const Constant* reaching_mutable = nullptr;  // and of state alone
  const auto meets = [&](const Constant* before, const Constant* one) {
    return before != nullptr && place(before).storage == place(one).storage &&
           place(one).begin < place(before).end;
  };
  const auto extend = [&](const Constant*& furthest, const Constant* one) {
    if (!meets(furthest, one) || place(furthest).end < place(one).end) furthest = one;
  };
  for (const Constant* const one : by_place) {
    const Constant* const other = one->is_mutable ? reaching : reaching_mutable;
    if (meets(other, one)) {
      return with_advice(invalid(text("constants {} and {} have bytes in common, and one of them is "
                                      "changed: a package can't say that they are one state",
                                      quote(std::min(one->tensor->name, other->tensor->name)),
                                      quote(std::max(one->tensor->name, other->tensor->name)))),
                         {"use one name for both"});
    }
    extend(reaching, one);
    if (one->is_mutable) extend(reaching_mutable, one);
  }
  return {};
}

struct Checksums {
  std::uint32_t crc32 = 0;
  ContentHash hash;
};

Result<Checksums> checksums_of(const ByteSource& data) {
  std::uint32_t checksum = 0;
  ContentHasher hasher;
  ETSTREAM_TRY(read_pieces(data, [&](std::span<const std::byte> bytes) {
    checksum = crc32_of(bytes, checksum);
    hasher.update(bytes);
  }));
  return Checksums{checksum, hasher.hash()};
}

/// Reads the bytes of all constants: for their checksums, which come before the bytes, and to store equal
/// constants once.
Result<Stored> digest(std::vector<Constant> constants) {
  Stored out;
  std::map<Content, std::vector<std::size_t>> by_content;  // of owners, which only a collision makes several
  std::map<SourcePlace, Checksums> by_place;               // of what several constants may share
  for (Constant& constant : constants) {
    const CheckpointTensor& tensor = *constant.tensor;
    const auto [known, is_new] = by_place.try_emplace(tensor.data.place());
    if (is_new) {
      ETSTREAM_ASSIGN(known->second, checksums_of(tensor.data));
    }
    constant.crc32 = known->second.crc32;
    if (!constant.is_mutable) {
      auto& candidates = by_content[{constant.dtype.name, tensor.layout->sizes, known->second.hash}];
      std::optional<std::size_t> owner;
      for (const std::size_t candidate : candidates) {
        const ByteSource& data = out.owners[candidate].tensor->data;
        ETSTREAM_ASSIGN(const bool same, same_bytes(data, tensor.data));
        if (same) owner = candidate;
      }
      if (owner) {
        out.aliases.emplace(tensor.name, out.owners[*owner].tensor->name);
        continue;
      }
      candidates.push_back(out.owners.size());
    }
    out.owners.push_back(constant);
  }
  return out;
}

/// Sorts constants by the alignment that their sizes keep, so that each leaves the next one aligned.
void sort_to_align(std::vector<Constant>& owners, std::uint32_t alignment) {
  const auto unit = [&](const Constant& constant) {
    const std::uint64_t size = constant.tensor->data.size();
    return std::min<std::uint64_t>(alignment, size == 0 ? alignment : size & (~size + 1));
  };
  std::ranges::stable_sort(owners, std::greater(), unit);
}

ArchiveTime archive_time(const std::tm& time) {
  return {time.tm_year + 1900, time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec};
}

Result<ZipMember> member_of(std::string_view name, const ArchiveTime& time) {
  const auto in = [](int value, int least, int most) { return least <= value && value <= most; };
  if (!in(time.year, 1980, 2107) || !in(time.month, 1, 12) || !in(time.day, 1, 31) || !in(time.hour, 0, 23) ||
      !in(time.minute, 0, 59) || !in(time.second, 0, 60)) {
    return invalid(text("time {}-{}-{} {}:{}:{}: expected one from 1980 to 2107", time.year, time.month,
                        time.day, time.hour, time.minute, time.second));
  }
  ZipMember out;
  out.name = name;
  out.day = static_cast<std::uint16_t>((time.year - 1980) << 9 | time.month << 5 | time.day);
  out.time = static_cast<std::uint16_t>(time.hour << 11 | time.minute << 5 | time.second / 2);
  return out;
}

Result<std::uint32_t> checksum_of(const ByteSource& source) {
  std::uint32_t checksum = 0;
  ETSTREAM_TRY(
      read_pieces(source, [&](std::span<const std::byte> bytes) { checksum = crc32_of(bytes, checksum); }));
  return checksum;
}

/// Writes the members of a package into a plan.
class PackagePlanner {
 public:
  explicit PackagePlanner(const NativePackage& package) : package_(package), zip_(plan_, package.alignment) {}

  Result<FilePlan> run(const Stored& stored) {
    ETSTREAM_TRY(add_whole(package::kGraph, "graph", package_.graph));
    if (!stored.owners.empty()) {
      ETSTREAM_TRY(add_constants(stored.owners));
      if (!stored.aliases.empty()) {
        auto json = ByteSource::owned(bytes_of(python_json(stored.aliases, 2)));
        metadata_size_ += json.size();
        ETSTREAM_TRY(add_whole(package::kAliases, "aliases", std::move(json)));
      }
    }
    ETSTREAM_TRY(zip_.finish());
    plan_.metadata_size = metadata_size_ + zip_.metadata_size();
    plan_.payload_size = plan_.size - plan_.metadata_size;
    return std::move(plan_);
  }

 private:
  static std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  Result<void> add_whole(std::string_view name, std::string_view label, ByteSource data) {
    ETSTREAM_ASSIGN(ZipMember member, member_of(name, package_.modified));
    member.size = data.size();
    ETSTREAM_ASSIGN(member.crc32, checksum_of(data));
    ETSTREAM_TRY(zip_.begin(std::move(member), true));
    return append(plan_, package_.alignment, label, std::move(data));
  }

  Result<void> add_constants(const std::vector<Constant>& owners) {
    const std::vector<StoredTensor> tensors(owners.begin(), owners.end());
    const auto spell = [](std::string_view name) { return std::optional(python_json(name, -1)); };
    ETSTREAM_ASSIGN(auto header,
                    safetensors_header(tensors, {"{", spell, "constants", "constants", package_.alignment}));
    ETSTREAM_ASSIGN(ZipMember member, member_of(package::kConstants, {}));
    member.crc32 = crc32_of(header);
    member.size = header.size();
    for (const Constant& owner : owners) {
      const auto size = checked_add(member.size, owner.tensor->data.size());
      if (!size) return make_error(ErrorCode::kTooLarge, "the constants would be over 2^64 - 1 bytes");
      member.size = *size;
      member.crc32 = joined_crc32(member.crc32, owner.crc32, owner.tensor->data.size());
    }
    ETSTREAM_TRY(zip_.begin(std::move(member), false));
    metadata_size_ += header.size();
    ETSTREAM_TRY(
        append(plan_, package_.alignment, "header of constants", ByteSource::owned(std::move(header))));
    for (const Constant& owner : owners) {
      ETSTREAM_TRY(append(plan_, 1, quote(owner.tensor->name), owner.tensor->data));
    }
    return {};
  }

  const NativePackage& package_;
  FilePlan plan_;
  ZipWriter zip_;
  std::uint64_t metadata_size_ = 0;
};

}  // namespace

Result<ArchiveTime> current_archive_time() {
  const char* const given =
      std::getenv("SOURCE_DATE_EPOCH");  // NOLINT(concurrency-mt-unsafe): see the header
  if (given == nullptr) {
    const auto local = local_calendar(std::time(nullptr));
    if (!local) return make_error(ErrorCode::kUnsupported, "the time of day can't be told");
    return archive_time(*local);
  }
  const std::string_view digits = given;
  std::time_t seconds = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  const bool is_read = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  const auto utc = is_read ? utc_calendar(seconds) : std::nullopt;
  if (utc) return archive_time(*utc);
  return make_error(ErrorCode::kInvalidArgument, "SOURCE_DATE_EPOCH: expected a number of seconds, found {}",
                    quote(digits));
}

Result<FilePlan> plan(const NativePackage& package) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_TRY(check_alignment("alignment", package.alignment, kLargestMemberAlignment));
    ETSTREAM_ASSIGN(const NativeGraph graph, read_graph(package));
    ETSTREAM_ASSIGN(std::vector<Constant> constants, sorted_constants(package));
    ETSTREAM_TRY(apply_graph(graph, package, constants));
    ETSTREAM_TRY(check_apart(constants));
    ETSTREAM_ASSIGN(Stored stored, digest(std::move(constants)));
    if (package.alignment > 1) sort_to_align(stored.owners, package.alignment);
    return PackagePlanner(package).run(stored);
  });
}

}  // namespace etstream
