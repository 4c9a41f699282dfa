// SPDX-License-Identifier: BSD-3-Clause
#include "present/reports.h"

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <variant>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/checkpoint.h"
#include "etstream/inspect.h"
#include "etstream/verify.h"
#include "pages_generated.h"

namespace etstream {

// These functions turn the items of lists into JSON. Json finds them by their arguments, so they are
// in no namespace of their own.
static void to_json(Json& out, const FilePart& part) {
  out = {{"path", part.path}, {"what", part.what},           {"offset", part.offset},
         {"size", part.size}, {"alignment", part.alignment}, {"others", unless_empty(part.others)}};
}

static void to_json(Json& out, const InspectedFile& file) {
  out = {{"file", file.path}, {"size", file.size}, {"tensors", file.tensors}};
}

static void to_json(Json& out, const MethodInfo& method) {
  out = {{"name", method.name}, {"inputs", described(method.inputs)}, {"outputs", described(method.outputs)}};
}

static void to_json(Json& out, const BundledProgramFile::Suite& suite) {
  out = {{"method", suite.method_name}, {"test_cases", suite.test_cases}};
}

static void to_json(Json& out, const NamedTensorData& entry) {
  out = {{"key", entry.key}};
  if (entry.layout) {
    out.update({{"dtype", name_of(entry.layout->scalar_type)},
                {"sizes", entry.layout->sizes},
                {"dim_order", entry.layout->dim_order}});
  }
  out.update({{"segment", entry.segment}, {"offset", entry.offset}, {"size", entry.data.size()}});
}

static void to_json(Json& out, const NamedDataInfo& info) {
  out = {{"key", info.key},
         {"path", unless_empty(info.path)},
         {"name", unless_empty(info.name)},
         {"offset", info.offset},
         {"size", info.size},
         {"asked_by", info.asked_by}};
}

static void to_json(Json& out, const PayloadFact& fact) {
  out = {{"name", fact.name}};
  std::visit([&](const auto& value) { out.add("value", value); }, fact.value);
}

static void to_json(Json& out, const InspectedPayload& payload) {
  out = {{"path", payload.path},
         {"method", payload.method},
         {"delegate", payload.delegate},
         {"backend", payload.backend},
         {"size", payload.data.size()}};
  if (payload.format.empty()) return;
  Json parts = Json::list();
  for (std::size_t i = 0; i < payload.parts.size(); ++i) {
    const PayloadPart& part = payload.parts[i];
    parts.push_back({{"path", payload.part_paths[i]},
                     {"name", part.name},
                     {"offset", part.offset},
                     {"size", part.size},
                     {"key", unless_empty(part.key)}});
  }
  out.update(
      {{"format", payload.format}, {"keys", payload.keys}, {"parts", parts}, {"facts", payload.facts}});
}

static void to_json(Json& out, const ProgramBytes::Segment& segment) {
  out = {
      {"use", segment.use}, {"offset", segment.offset}, {"size", segment.size}, {"padding", segment.padding}};
}

static void to_json(Json& out, const InspectedMethod::Operator& called) {
  out = {{"name", called.name}, {"calls", called.calls}};
}

static void to_json(Json& out, const InspectedMethod::Delegate& delegate) {
  out = {{"path", delegate.path},        {"backend", delegate.backend},
         {"size", delegate.data.size()}, {"in_segment", delegate.in_segment},
         {"index", delegate.index},      {"calls", delegate.calls}};
}

static void to_json(Json& out, const InspectedMethod::Tensor& tensor) {
  out = {{"value", tensor.value},         {"name", tensor.name},
         {"type", describe(tensor.info)}, {"storage", name_of(tensor.storage)},
         {"size", tensor.size},           {"data_index", tensor.data_index},
         {"memory_id", tensor.memory_id}, {"memory_offset", tensor.memory_offset}};
}

static void to_json(Json& out, const InspectedMethod::Memory& memory) {
  out = {{"id", memory.id},
         {"size", memory.size},
         {"tensors", memory.tensors},
         {"tensor_bytes", memory.tensor_bytes}};
}

static void to_json(Json& out, const ProgramBytes& program) {
  out = {{"flatbuffer_size", program.flatbuffer_size},
         {"padding", program.padding},
         {"constants", program.constants},
         {"constant_bytes", program.constant_bytes},
         {"segments", program.segments}};
}

static void to_json(Json& out, const Duplicates& group) {
  out = {
      {"size", group.size}, {"wasted", group.wasted()}, {"paths", group.paths}, {"offsets", group.offsets}};
}

/// Turns a content into the page's form, [kind, parent, offset, size, path, detail, others, name], without
/// empty parts at the end: a file may have a hundred thousand contents.
static void to_json(Json& out, const FileContent& each) {
  out = Json::list(static_cast<int>(each.kind), each.parent, each.offset, each.size);
  if (!each.path.empty()) out.push_back(each.path);
  const bool has_last = each.others != 0 || !each.name.empty();
  if (!each.detail.empty() || has_last) out.push_back(each.detail);
  if (has_last) out.push_back(each.others);
  if (!each.name.empty()) out.push_back(each.name);
}

static void to_json(Json& out, const CodedSizes::One& one) { out = Json::list(one.content, one.size); }

static void to_json(Json& out, const CodedSizes& coded) {
  out = {{"looked_at", coded.looked_at},
         {"saved", coded.saved},
         {"bytes_read", coded.bytes_read},
         {"contents", coded.contents}};
}

std::vector<std::string> described(const std::vector<ValueInfo>& values) {
  std::vector<std::string> out;
  out.reserve(values.size());
  for (const ValueInfo& value : values) out.push_back(describe(value));
  return out;
}

Json inspection_to_json(const std::string& file, const FileInspection& found, bool duplicates,
                        TermWords words) {
  Json parts = Json::list();
  for (const FilePart& part : found.parts) {
    Json one = part;
    if (!found.files.empty()) one.add("file", part.file);
    parts.push_back(one);
  }
  Json out = {{"file", file},
              {"format", name_of(found.format)},
              {"size", found.size},
              {"version", found.version},
              {"metadata_size", found.metadata_size},
              {"bytes_read", found.bytes_read},
              {"parts", parts},
              {"methods", std::vector<MethodInfo>(found.methods.begin(), found.methods.end())},
              {"suites", found.suites},
              {"memory_alignment", found.memory_alignment},
              {"files", unless_empty(found.files)}};
  if (const auto& update = found.update) {
    out.add("update", {{"base_size", update->base_size},
                       {"base_hash", hex(update->base_hash)},
                       {"original_size", update->original_size},
                       {"original_hash", hex(update->content_hash)},
                       {"changed_size", update->changed_size}});
  }
  out.add("notes", unless_empty(full_messages(found.notes, words)));
  out.add("payloads", unless_empty(found.payloads));
  Json metadata;
  for (const auto& [key, value] : found.metadata) metadata.push_back({{"key", key}, {"value", value}});
  out.add("metadata", metadata);
  if (found.program) {
    Json methods = Json::list();
    for (const InspectedMethod& method : found.methods) {
      Json tensors = Json::list();
      for (const InspectedMethod::Tensor& tensor : method.tensors) {
        Json one = tensor;
        one.add("path", unless_empty(piece_path(found, tensor)));
        tensors.push_back(one);
      }
      methods.push_back({{"name", method.name},
                         {"instructions", method.instructions},
                         {"operators", method.operators},
                         {"delegates", method.delegates},
                         {"tensors", tensors},
                         {"memories", method.memories}});
    }
    Json program = *found.program;
    program.add("methods", methods);
    out.add("program", program);
  }
  Json named_data;
  const std::vector<std::string> named = named_paths(found);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const NamedTensorData& data = found.named_data[i];
    Json one = data;
    one.add("path", named[i]);
    const auto name = found.names.find(data.key);
    if (name != found.names.end()) one.add("name", name->second);
    named_data.push_back(one);
  }
  out.add("named_data", found.program_data.empty() ? named_data : Json(found.program_data));
  if (duplicates) out.add("duplicates", found.duplicates);
  return out;
}

namespace {

Json kinds_to_json() {
  Json out = Json::list();
  for (int kind = 0; kind <= static_cast<int>(ContentKind::kOther); ++kind) {
    out.push_back(name_of(static_cast<ContentKind>(kind)));
  }
  return out;
}

/// Turns groups into JSON, with the places in `contents` instead of names.
Json groups_to_json(const std::vector<Duplicates>& groups, const std::vector<FileContent>& contents) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> places;
  for (std::uint32_t i = 1; i < contents.size(); ++i) places[{contents[i].offset, contents[i].size}] = i;
  Json out = Json::list();
  for (const Duplicates& group : groups) {
    Json found = Json::list();
    for (const std::uint64_t offset : group.offsets) found.push_back(places.at({offset, group.size}));
    out.push_back({{"size", group.size}, {"wasted", group.wasted()}, {"contents", found}});
  }
  return out;
}

}  // namespace

Result<FilePlan> plan_inspect_page(const std::string& path, const KeyNames& names, TermWords words,
                                   const OpenFile& open_file) {
  ETSTREAM_ASSIGN(const WeightPaths found, find_weights({path}, {.open_file = open_file, .partial = true}));
  if (found.files.size() == 1) {
    ETSTREAM_ASSIGN(const ByteSource file, open_file(found.files.front()));
    if (!names.empty()) return plan_inspect_page(file, found.files.front(), names, words);
    ETSTREAM_ASSIGN(const KeyNames beside, read_key_names_beside(found.files.front(), open_file));
    return plan_inspect_page(file, found.files.front(), beside, words);
  }
  return with_advice(
      error_in(ErrorCode::kInvalidArgument, path, "stands for several files, and a page shows one"),
      {"give one of them"});
}

Result<FilePlan> plan_inspect_page(const ByteSource& file, const std::string& name, const KeyNames& names,
                                   TermWords words) {
  ETSTREAM_ASSIGN(const FileInspection found,
                  inspect(file, {.duplicates = true, .contents = true, .names = names}));
  ETSTREAM_ASSIGN(const Findings findings, verify(file));
  ETSTREAM_ASSIGN(const CodedSizes coded, estimate_coded_sizes(file, found.contents));
  ETSTREAM_TRY(file.check_unchanged());
  const Json data = {{"name", name.substr(name.find_last_of('/') + 1)},
                     {"description", describe(found.format)},
                     {"version", found.version},
                     {"size", found.size},
                     {"kinds", kinds_to_json()},
                     {"contents", found.contents},
                     {"duplicates", groups_to_json(found.duplicates, found.contents)},
                     {"coded", coded},
                     {"findings", findings_to_json(findings, words)}};
  const std::string page = filled_page(kInspectPage, data.text());
  const std::span bytes = std::as_bytes(std::span(page));
  return plan_copy(ByteSource::owned({bytes.begin(), bytes.end()}), "page");
}

}  // namespace etstream
