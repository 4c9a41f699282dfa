// SPDX-License-Identifier: BSD-3-Clause
#include "report/inspect_report.h"

#include <nlohmann/json.hpp>

namespace etstream {

using Json = nlohmann::ordered_json;

// How JSON has each of what lists hold. nlohmann-json finds these by their arguments, so they are in no
// namespace of their own.
static void to_json(Json& out, const FilePart& part) {
  out = {{"name", part.name}, {"offset", part.offset}, {"size", part.size}, {"alignment", part.alignment}};
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
    out["dtype"] = name_of(entry.layout->scalar_type);
    out["sizes"] = entry.layout->sizes;
    out["dim_order"] = entry.layout->dim_order;
  }
  out["segment"] = entry.segment;
  out["offset"] = entry.offset;
  out["size"] = entry.data.size();
}

static void to_json(Json& out, const ProgramSummary::Segment& entry) {
  out = {{"use", entry.segment.use},
         {"offset", entry.segment.offset},
         {"size", entry.segment.size},
         {"padding", entry.padding}};
}

static void to_json(Json& out, const MethodSummary::Operator& called) {
  out = {{"name", called.name}, {"calls", called.calls}};
}

static void to_json(Json& out, const MethodSummary::Delegate& delegate) {
  out = {{"backend", delegate.backend},
         {"size", delegate.size},
         {"in_segment", delegate.in_segment},
         {"index", delegate.index},
         {"calls", delegate.calls}};
}

static void to_json(Json& out, const MethodSummary::Tensor& tensor) {
  out = {{"value", tensor.value},         {"name", tensor.name},
         {"type", describe(tensor.info)}, {"storage", name_of(tensor.storage)},
         {"size", tensor.size},           {"data_index", tensor.data_index},
         {"memory_id", tensor.memory_id}, {"memory_offset", tensor.memory_offset}};
}

static void to_json(Json& out, const MethodSummary::Memory& memory) {
  out = {{"id", memory.id},
         {"size", memory.size},
         {"tensors", memory.tensors},
         {"tensor_bytes", memory.tensor_bytes}};
}

static void to_json(Json& out, const MethodSummary& method) {
  out = {{"name", method.name},           {"instructions", method.instructions},
         {"operators", method.operators}, {"delegates", method.delegates},
         {"tensors", method.tensors},     {"memories", method.memories}};
}

static void to_json(Json& out, const ProgramSummary& summary) {
  out = {{"flatbuffer_size", summary.flatbuffer_size},
         {"padding", summary.padding},
         {"constants", summary.constants},
         {"constant_bytes", summary.constant_bytes},
         {"segments", summary.segments},
         {"methods", summary.methods}};
}

static void to_json(Json& out, const Duplicates& group) {
  out = {
      {"size", group.size}, {"wasted", group.wasted()}, {"names", group.names}, {"offsets", group.offsets}};
}

std::vector<std::string> described(const std::vector<ValueInfo>& values) {
  std::vector<std::string> out;
  out.reserve(values.size());
  for (const ValueInfo& value : values) out.push_back(describe(value));
  return out;
}

Json inspection_to_json(const std::string& file, const FileInspection& found, bool duplicates) {
  Json out = {{"file", file},
              {"format", name_of(found.format)},
              {"size", found.size},
              {"version", found.version},
              {"metadata_size", found.metadata_size},
              {"bytes_read", found.bytes_read},
              {"parts", found.parts},
              {"methods", found.methods},
              {"suites", found.suites}};
  if (!found.named_data_users.empty()) out["named_data_users"] = found.named_data_users;
  for (const auto& [key, value] : found.metadata) out["metadata"].push_back({{"key", key}, {"value", value}});
  if (found.program) out["program"] = *found.program;
  if (!found.named_data.empty()) out["named_data"] = found.named_data;
  if (duplicates) out["duplicates"] = found.duplicates;
  return out;
}

}  // namespace etstream
