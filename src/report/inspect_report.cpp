// SPDX-License-Identifier: BSD-3-Clause
#include "report/inspect_report.h"

#include <nlohmann/json.hpp>

#include "report/summary_report.h"

namespace etstream {
namespace {

nlohmann::ordered_json named_data_to_json(const std::vector<NamedTensorData>& entries) {
  auto out = nlohmann::ordered_json::array();
  for (const NamedTensorData& entry : entries) {
    out.push_back({{"key", entry.key}});
    if (entry.layout) {
      out.back()["dtype"] = name_of(entry.layout->scalar_type);
      out.back()["sizes"] = entry.layout->sizes;
      out.back()["dim_order"] = entry.layout->dim_order;
    }
    out.back()["segment"] = entry.segment;
    out.back()["offset"] = entry.offset;
    out.back()["size"] = entry.data.size();
  }
  return out;
}

}  // namespace

std::vector<std::string> described(const std::vector<ValueInfo>& values) {
  std::vector<std::string> out;
  out.reserve(values.size());
  for (const ValueInfo& value : values) out.push_back(describe(value));
  return out;
}

nlohmann::ordered_json inspection_to_json(const std::string& file, const FileInspection& found) {
  nlohmann::ordered_json out = {{"file", file},
                                {"format", name_of(found.format)},
                                {"size", found.size},
                                {"version", found.version},
                                {"metadata_size", found.metadata_size},
                                {"bytes_read", found.bytes_read},
                                {"parts", nlohmann::ordered_json::array()},
                                {"methods", nlohmann::ordered_json::array()},
                                {"suites", nlohmann::ordered_json::array()}};
  for (const FilePart& part : found.parts) {
    out["parts"].push_back(
        {{"name", part.name}, {"offset", part.offset}, {"size", part.size}, {"alignment", part.alignment}});
  }
  for (const MethodInfo& method : found.methods) {
    out["methods"].push_back({{"name", method.name},
                              {"inputs", described(method.inputs)},
                              {"outputs", described(method.outputs)}});
  }
  for (const auto& suite : found.suites) {
    out["suites"].push_back({{"method", suite.method_name}, {"test_cases", suite.test_cases}});
  }
  if (!found.named_data_users.empty()) out["named_data_users"] = found.named_data_users;
  for (const auto& [key, value] : found.metadata) out["metadata"].push_back({{"key", key}, {"value", value}});
  if (found.program) out["program"] = summary_to_json(*found.program);
  if (!found.named_data.empty()) out["named_data"] = named_data_to_json(found.named_data);
  return out;
}

nlohmann::ordered_json duplicates_to_json(const std::vector<Duplicates>& duplicates) {
  auto out = nlohmann::ordered_json::array();
  for (const Duplicates& group : duplicates) {
    out.push_back({{"size", group.size},
                   {"wasted", group.wasted()},
                   {"names", group.names},
                   {"offsets", group.offsets}});
  }
  return out;
}

}  // namespace etstream
