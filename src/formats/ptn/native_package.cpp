// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/native_package.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/hashes.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/file_plan.h"
#include "core/layout/same_bytes.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/safetensors/safetensors.h"
#include "formats/segments/file_kind.h"
#include "formats/zip/zip.h"
#include "native_graph_bfbs_generated.h"
#include "native_graph_fields_generated.h"

namespace etstream {
namespace {

// The members of a .ptn (exir/_serialize/_ptn.py of ExecuTorch 1.5.1).
namespace package {

constexpr std::string_view kGraph = "program.ptg";
constexpr std::string_view kConstants = "program.safetensors";
constexpr std::string_view kAliases = "aliases.json";

/// Returns whether constants may be of this type. No reader takes floats of 8 bits, though safetensors has
/// them.
bool takes(ScalarType type) noexcept { return !(is_floating_point(type) && item_size(type) == 1); }

}  // namespace package

/// Collects keys, wherever tables are that have them.
class KeyCollector : public FlatbufferVisitor {
 public:
  KeyCollector(const FlatbufferView& view, const native_graph::Fields& known) : view_(view), known_(known) {}

  Result<void> begin_table(const TableView& table, const TableType& type) {
    const auto index = static_cast<std::size_t>(&type - view_.schema().tables().data());
    const TableReader reader(view_, table, index);
    if (index == known_.affine_group.index()) {
      ETSTREAM_TRY(add(reader, known_.affine_group.scale_data_key, false));
      return add(reader, known_.affine_group.zero_point_data_key, false);
    }
    if (index != known_.named_tensor_ref.index()) return {};
    ETSTREAM_ASSIGN(const auto is_mutable, reader.scalar<bool>(known_.named_tensor_ref.mutated));
    return add(reader, known_.named_tensor_ref.data_key, is_mutable);
  }

  NativeGraph take() && { return std::move(graph_); }

 private:
  Result<void> add(const TableReader& reader, const BoundField& field, bool is_mutable) {
    ETSTREAM_ASSIGN(auto key, reader.string(field));
    if (!key || key->empty()) return {};
    if (is_mutable) graph_.mutable_keys.insert(*key);
    graph_.data_keys.insert(std::move(*key));
    return {};
  }

  const FlatbufferView& view_;
  const native_graph::Fields& known_;
  NativeGraph graph_;
};

/// Does the same as read_native_graph(ByteSource). `name` is what messages call it.
Result<NativeGraph> read_native_graph(const ByteSource& graph, const std::string& name) {
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<native_graph::ProgramBinarySchema>());
  ETSTREAM_ASSIGN(const FlatbufferView view, FlatbufferView::open(*schema, graph, name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  static const native_graph::Fields kKnown(*schema);
  KeyCollector collector(view, kKnown);
  ETSTREAM_TRY(walk_flatbuffer(view, collector));
  return std::move(collector).take();
}

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
    ETSTREAM_ASSIGN(member.crc32, crc32_of(data));
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

/// The largest graph, and the largest header or aliases, that ExecuTorch's runtime loads, in bytes
/// (backends/native/runtime/deserialize/Limits.h, September 2026).
constexpr std::uint64_t kLargestGraph = std::uint64_t{1} << 30;
constexpr std::uint64_t kLargestText = std::uint64_t{64} << 20;

/// Puts the member's name before an error's message.
Error in_member(std::string_view member, Error error) {
  error.message = text("{}: {}", member, error.message);
  return error;
}

Result<std::map<std::string, std::string>> read_aliases(const ByteSource& json) {
  std::map<std::string, std::string> out;
  ETSTREAM_TRY(read_json(json, ErrorCode::kCorrupt, [&](JsonReader& reader) {
    return reader.members([&](std::string_view key) -> Result<void> {
      const JsonTape::Value owner = reader.take();
      if (owner.kind != JsonReader::Kind::kString) return reader.unexpected(owner, "the name of a constant");
      if (out.try_emplace(std::string(key), owner.string).second) return {};
      return reader.error(text("expected each alias once, found {} twice", quote(key)));
    });
  }));
  return out;
}

}  // namespace

Result<NativeGraph> read_native_graph(const ByteSource& graph) {
  return without_exceptions([&] { return read_native_graph(graph, graph.name()); });
}

Result<ArchiveTime> current_archive_time(const char* source_date_epoch) {
  std::tm calendar{};
  if (source_date_epoch == nullptr) {
    const std::time_t now = std::time(nullptr);
    if (::localtime_r(&now, &calendar) == nullptr) {
      return make_error(ErrorCode::kUnsupported, "the time of day can't be told");
    }
    return archive_time(calendar);
  }
  const std::string_view digits = source_date_epoch;
  std::time_t seconds = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  const bool is_read = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  if (is_read && ::gmtime_r(&seconds, &calendar) != nullptr) return archive_time(calendar);
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

Result<NativePackageFile> NativePackageFile::open(ByteSource file) {
  const ByteSource whole = file;
  auto opened = without_exceptions([&]() -> Result<NativePackageFile> {
    ETSTREAM_ASSIGN(const ZipArchive archive, read_zip(file));
    std::vector<PackageMember> members;
    members.reserve(archive.members.size());
    for (const ZipMember& member : archive.members) {
      if (member.header_differs) {
        return unexpected(ErrorCode::kCorrupt, {file.name(), member.header},
                          "the time of the directory and no later version for member {}, as ExecuTorch's "
                          "reader asks for, found others",
                          quote(member.name));
      }
      ETSTREAM_ASSIGN(ByteSource data, file.slice(member.offset, member.size));
      members.push_back({member.name, member.offset, member.crc32, std::move(data)});
    }
    NativePackageFile out(std::move(file), std::move(members));
    const PackageMember* const graph = out.find(package::kGraph);
    if (graph == nullptr) {
      return error_in(ErrorCode::kCorrupt, out.file_.name(),
                      "expected a member program.ptg, as a package (.ptn) has it, found none among {}{}",
                      counted(out.members_.size(), "member"),
                      out.members_.empty() ? "" : text(", such as {}", quote(out.members_.front().name)));
    }
    out.graph_ = graph->data;
    ETSTREAM_TRY(out.open_constants());
    ETSTREAM_TRY(out.open_aliases());
    return out;
  });
  return unless_other(whole, {"a package (.ptn)", {FileKind::kNativePackage}}, std::move(opened));
}

const PackageMember* NativePackageFile::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(members_, name, &PackageMember::name);
  return found == members_.end() ? nullptr : &*found;
}

Result<void> NativePackageFile::open_constants() {
  const PackageMember* const member = find(package::kConstants);
  if (member == nullptr) return {};
  auto opened = open_safetensors(member->data);
  if (!opened) return in_member(member->name, std::move(opened).error());
  constants_ = std::move(opened->tensors);
  has_metadata_ = opened->has_metadata;
  return {};
}

Result<void> NativePackageFile::open_aliases() {
  const PackageMember* const member = find(package::kAliases);
  if (member == nullptr) return {};
  auto read = read_aliases(member->data);
  if (!read) return in_member(member->name, std::move(read).error());
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < constants_.size(); ++i) by_name.emplace(constants_[i].name, i);
  for (const auto& [key, owner] : *read) {
    const auto found = by_name.find(owner);
    if (found == by_name.end()) {
      return error_in(ErrorCode::kCorrupt, file_.name(), "{}: alias {} stands for {}, which is no constant",
                      member->name, quote(key), quote(owner));
    }
    if (key == "__metadata__" || by_name.contains(key)) {
      return error_in(ErrorCode::kCorrupt, file_.name(), "{}: {} is an alias, and {}", member->name,
                      quote(key), key == "__metadata__" ? "a name that safetensors reserves" : "a constant");
    }
    aliases_.push_back({key, found->second});
  }
  return {};
}

std::vector<CheckpointTensor> NativePackageFile::tensors() const {
  std::vector<CheckpointTensor> out = constants_;
  out.reserve(constants_.size() + aliases_.size());
  for (const ConstantAlias& alias : aliases_) {
    out.push_back(constants_[alias.constant]);
    out.back().name = alias.key;
  }
  return out;
}

Result<void> NativePackageFile::verify_checksums(Findings& findings) const {
  for (const PackageMember& member : members_) {
    const ZipMember stored = {
        .name = member.name, .size = member.data.size(), .crc32 = member.crc32, .offset = member.offset};
    ETSTREAM_ASSIGN(auto damage, find_damage(file_, stored));
    if (damage) add_error(findings, *std::move(damage));
  }
  return {};
}

Result<void> NativePackageFile::verify_graph(Findings& findings) const {
  const auto graph = read_native_graph(graph_, text("{}: {}", file_.name(), package::kGraph));
  if (!graph) return note_corrupt(graph.error(), findings);
  std::map<std::string_view, std::size_t> names;  // and how many have the bytes of each
  std::vector<std::size_t> shared(constants_.size());
  for (std::size_t i = 0; i < constants_.size(); ++i) names.emplace(constants_[i].name, i);
  for (const ConstantAlias& alias : aliases_) {
    names.emplace(alias.key, alias.constant);
    ++shared[alias.constant];
  }
  for (const std::string& key : graph->data_keys) {
    const auto found = names.find(key);
    if (found == names.end()) {
      add_error(findings,
                text("{}: the graph asks for constant {}, which is not there", file_.name(), quote(key)));
    } else if (graph->mutable_keys.contains(key) && shared[found->second] != 0) {
      add_error(findings, text("{}: the graph changes constant {}, whose bytes are those of others too",
                               file_.name(), quote(key)));
    }
  }
  for (const auto& [name, constant] : names) {
    if (graph->data_keys.contains(std::string(name))) continue;
    add_warning(findings, text("{}: the graph does not ask for constant {}", file_.name(), quote(name)));
  }
  return {};
}

void NativePackageFile::verify_types(Findings& findings) const {
  for (const CheckpointTensor& constant : constants_) {
    if (constant.layout && package::takes(constant.layout->scalar_type)) continue;
    add_error(findings, text("{}: constant {} is of type {}, which ExecuTorch's runtime does not take",
                             file_.name(), quote(constant.name), printable(constant.type)));
  }
  if (has_metadata_) {
    add_warning(findings, text("{}: {} has __metadata__, which ExecuTorch's runtime does not take",
                               file_.name(), package::kConstants));
  }
}

Result<void> NativePackageFile::verify(Findings& findings) const {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_TRY(verify_checksums(findings));
    ETSTREAM_TRY(verify_graph(findings));
    verify_types(findings);
    for (const auto& [name, most] :
         {std::pair(package::kGraph, kLargestGraph), std::pair(package::kAliases, kLargestText)}) {
      const PackageMember* const member = find(name);
      if (member == nullptr || member->data.size() <= most) continue;
      add_warning(findings, text("{}: {} has {}, ExecuTorch's runtime takes up to {}", file_.name(), name,
                                 counted(member->data.size(), "byte"), most));
    }
    if (find(package::kAliases) != nullptr && find(package::kConstants) == nullptr) {
      add_error(findings, text("{}: there are aliases, and no constants", file_.name()));
    }
    return {};
  });
}

}  // namespace etstream
