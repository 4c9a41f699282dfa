// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/native_package_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/ptn/package_members.h"
#include "formats/safetensors/safetensors.h"
#include "formats/segments/file_kind.h"
#include "formats/zip/zip.h"

namespace etstream {
namespace {

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
  if (!graph) {
    if (graph.error().code != ErrorCode::kCorrupt) return graph.error();
    add_error(findings, graph.error());
    return {};
  }
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
