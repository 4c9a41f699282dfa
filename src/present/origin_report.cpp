// SPDX-License-Identifier: BSD-3-Clause
//
// The report of the tensors that the payloads of a program are made of.
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream {
namespace {

std::string origin_text(const PayloadOrigin& origin) {
  if (origin.tensors.empty()) {
    if (!origin.constant.empty()) return text("no weights: {}", printable(origin.constant));
    if (origin.nearest.empty()) return "not explained";
    return text("not explained; tensors of as many elements, the nearest first: {}",
                names_text(origin.nearest));
  }
  std::string out;
  for (const TensorOrigin& tensor : origin.tensors) {
    out += (out.empty() ? "" : "; then ") + quote(tensor.tensor);
    for (const std::string& step : tensor.steps) out += ", " + step;
  }
  if (!origin.equals.empty()) out += text("; or the equal {}", names_text(origin.equals));
  if (!origin.constant.empty()) out += text("; or no weights: {}", printable(origin.constant));
  return out;
}

}  // namespace

void print_origins(const WeightOrigins& origins) {
  std::size_t explained = 0;
  for (const PayloadOrigin& each : origins.payloads) {
    if (each.is_explained()) ++explained;
    say("{:14}  {}{}{}\n{:16}{}\n", each.data.size(), printable(each.label), each.type.empty() ? "" : ", ",
        each.type, "", origin_text(each));
  }
  say("{} of {} explained", explained, counted(origins.payloads.size(), "payload"));
  if (!origins.unused.empty()) {
    say("; {} of the checkpoint not found: {}", counted(origins.unused.size(), "tensor"),
        names_text(origins.unused));
  }
  say("\n");
}

Json origins_to_json(const WeightOrigins& origins) {
  Json payloads = Json::array();
  for (const PayloadOrigin& each : origins.payloads) {
    Json tensors = Json::array();
    for (const TensorOrigin& tensor : each.tensors) {
      tensors.push_back({{"tensor", tensor.tensor}, {"steps", tensor.steps}});
    }
    Json payload = {{"label", each.label},
                    {"name", each.name},
                    {"file", each.file},
                    {"offset", each.offset},
                    {"size", each.data.size()},
                    {"type", each.type},
                    {"explained", each.is_explained()},
                    {"tensors", std::move(tensors)},
                    {"equals", each.equals}};
    if (!each.constant.empty()) payload["constant"] = each.constant;
    if (!each.is_explained()) payload["nearest"] = each.nearest;
    payloads.push_back(std::move(payload));
  }
  return {
      {"explained", origins.are_explained()}, {"payloads", std::move(payloads)}, {"unused", origins.unused}};
}

}  // namespace etstream
