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
ETSTREAM_TO_JSON(FilePart, part, part.path, part.what, part.offset, part.size, part.alignment,
                 unless_empty(part.others));

static void to_json(Json& out, const InspectedFile& file) {
  out = {{"file", file.path}, {"size", file.size}, {"tensors", file.tensors}};
}

ETSTREAM_TO_JSON(MethodInfo, method, method.name, described(method.inputs), described(method.outputs));

static void to_json(Json& out, const BundledProgramFile::Suite& suite) {
  out = {{"method", suite.method_name}, {"test_cases", suite.test_cases}};
}

static void to_json(Json& out, const NamedTensorData& entry) {
  out = {{"key", entry.key}};
  if (entry.layout) {
    out.add("dtype", name_of(entry.layout->scalar_type));
    out.update(ETSTREAM_MEMBERS(entry.layout->sizes, entry.layout->dim_order));
  }
  out.update(ETSTREAM_MEMBERS(entry.segment, entry.offset, entry.data.size()));
}

ETSTREAM_TO_JSON(NamedDataInfo, info, info.key, unless_empty(info.path), unless_empty(info.name), info.offset,
                 info.size, info.asked_by);

static void to_json(Json& out, const PayloadFact& fact) {
  out = {{"name", fact.name}};
  std::visit([&](const auto& value) { out.add("value", value); }, fact.value);
}

ETSTREAM_TO_JSON(PayloadPart, part, part.name, part.offset, part.size, unless_empty(part.key));

Json payload_to_json(const InspectedPayload& payload) {
  Json out =
      ETSTREAM_MEMBERS(payload.path, payload.method, payload.delegate, payload.backend, payload.data.size());
  if (payload.format.empty()) return out;
  Json parts = Json::list();
  for (std::size_t i = 0; i < payload.parts.size(); ++i) {
    Json one = {{"path", payload.part_paths[i]}};
    one.update(payload.parts[i]);
    parts.push_back(one);
  }
  out.update(ETSTREAM_MEMBERS(payload.format, payload.keys, parts, payload.facts));
  return out;
}

static void to_json(Json& out, const InspectedPayload& payload) { out = payload_to_json(payload); }

ETSTREAM_TO_JSON(ProgramBytes::Segment, segment, segment.use, segment.offset, segment.size, segment.padding);

ETSTREAM_TO_JSON(InspectedMethod::Operator, called, called.name, called.calls);

ETSTREAM_TO_JSON(InspectedMethod::Delegate, delegate, delegate.path, delegate.backend, delegate.data.size(),
                 delegate.in_segment, delegate.index, delegate.calls);

static void to_json(Json& out, const InspectedMethod::Tensor& tensor) {
  const std::string type = describe(tensor.info);
  out = ETSTREAM_MEMBERS(tensor.value, tensor.name, type, name_of(tensor.storage), tensor.size,
                         tensor.data_index, tensor.memory_id, tensor.memory_offset);
}

ETSTREAM_TO_JSON(InspectedMethod::Memory, memory, memory.id, memory.size, memory.tensors,
                 memory.tensor_bytes);

ETSTREAM_TO_JSON(ProgramBytes, program, program.flatbuffer_size, program.padding, program.constants,
                 program.constant_bytes, program.segments);

ETSTREAM_TO_JSON(Duplicates, group, group.size, group.wasted(), group.paths, group.offsets);

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

ETSTREAM_TO_JSON(CodedSizes, coded, coded.looked_at, coded.saved, coded.bytes_read, coded.contents);

Json plan_to_json(const FilePlan& plan, std::uint64_t memory) {
  Json extents = Json::list();
  for (const Extent& extent : plan.extents) {
    extents.push_back({{"offset", extent.offset},
                       {"size", extent.size()},
                       {"alignment", extent.alignment},
                       {"label", plan.label(extent)},
                       {"source", extent.source.name()}});
  }
  Json out = ETSTREAM_MEMBERS(plan.size, plan.metadata_size, plan.payload_size);
  out.update({{"memory", memory}, {"extents", extents}});
  return out;
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
  const std::vector<MethodInfo> methods(found.methods.begin(), found.methods.end());
  Json out = ETSTREAM_MEMBERS(file, name_of(found.format), found.size, found.version, found.metadata_size,
                              found.bytes_read, parts, methods, found.suites, found.memory_alignment,
                              unless_empty(found.files));
  if (const auto& update = found.update) {
    const std::string original_hash = hex(update->content_hash);
    out.add("update", ETSTREAM_MEMBERS(update->base_size, hex(update->base_hash), update->original_size,
                                       original_hash, update->changed_size));
  }
  const std::vector<std::string> notes = full_messages(found.notes, words);
  out.update(ETSTREAM_MEMBERS(unless_empty(notes), unless_empty(found.payloads)));
  Json metadata;
  for (const auto& [key, value] : found.metadata) metadata.push_back({{"key", key}, {"value", value}});
  out.add("metadata", metadata);
  if (found.program) {
    Json summaries = Json::list();
    for (const InspectedMethod& method : found.methods) {
      Json tensors = Json::list();
      for (const InspectedMethod::Tensor& tensor : method.tensors) {
        Json one = tensor;
        one.add("path", unless_empty(piece_path(found, tensor)));
        tensors.push_back(one);
      }
      summaries.push_back(ETSTREAM_MEMBERS(method.name, method.instructions, method.operators,
                                           method.delegates, tensors, method.memories));
    }
    Json program = *found.program;
    program.add("methods", summaries);
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
