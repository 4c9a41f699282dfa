// SPDX-License-Identifier: BSD-3-Clause
#include "python/programs.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "etstream/program_description.h"
#include "etstream/tensor_data.h"
#include "pte/rewrite/payload_extraction.h"
#include "python/errors.h"
#include "python/object_reader.h"
#include "python/sources.h"
#include "python/writer_versions.h"

namespace etstream::python {
namespace {

FilePlan plan_pte_file(nb::object program, bool extract_delegate_segments,
                       std::optional<std::uint32_t> segment_alignment,
                       std::optional<std::uint32_t> constant_tensor_alignment,
                       std::optional<std::uint32_t> delegate_alignment,
                       const std::optional<std::string>& as_of,
                       const std::optional<std::string>& flatbuffers) {
  const auto describe = [&]() -> Result<ProgramDescription> {
    ETSTREAM_ASSIGN(const auto plain, ProgramSchema().schema());
    ETSTREAM_ASSIGN(const Schema schema, with_segment_data(*plain));
    ObjectReader values(schema, std::move(program));
    return describe_program(schema, values, nullptr, "program");
  };
  const ProgramDescription description = value_or_raise(describe());
  ProgramPlanOptions options;
  options.segment_alignment = segment_alignment;
  options.constant_tensor_alignment = constant_tensor_alignment;
  options.delegate_alignment = delegate_alignment;
  options.as_of = release_of(as_of);
  options.vtables = vtables_of(flatbuffers);
  options.delegates = extract_delegate_segments ? DelegateData::kInSegments : DelegateData::kInline;
  return without_gil([&] { return plan(description, options); });
}

/// (dtype's number, sizes, dim_order)
using LayoutArguments = std::tuple<std::int8_t, std::vector<std::int32_t>, std::vector<std::uint8_t>>;

FilePlan plan_ptd_file(const nb::list& buffers, const nb::list& entries, std::uint32_t segment_alignment,
                       bool unchecked) {
  TensorData data;
  data.segment_alignment = segment_alignment;
  data.unchecked = unchecked;
  for (const nb::handle buffer : buffers) {
    const auto [source, alignment] = nb::cast<std::pair<nb::object, std::uint32_t>>(buffer);
    data.buffers.push_back({source_of(source), alignment});
  }
  for (const nb::handle entry : entries) {
    auto [key, buffer, layout] =
        nb::cast<std::tuple<std::string, std::uint32_t, std::optional<LayoutArguments>>>(entry);
    TensorData::Entry& added = data.entries.emplace_back();
    added.key = std::move(key);
    added.buffer = buffer;
    if (!layout) continue;
    auto& [type, sizes, dim_order] = *layout;
    added.layout = TensorLayout{static_cast<ScalarType>(type), std::move(sizes), std::move(dim_order)};
  }
  return without_gil([&] { return plan(data); });
}

}  // namespace

void bind_programs(nb::module_& module) {
  module.def(
      "plan_pte_file", &plan_pte_file, nb::arg("program"), nb::kw_only(),
      nb::arg("extract_delegate_segments"), nb::arg("segment_alignment"),
      nb::arg("constant_tensor_alignment"), nb::arg("delegate_alignment"), nb::arg("as_of").none(),
      nb::arg("flatbuffers").none(),
      "The plan of a program in the dataclasses of ExecuTorch's schema, byte for byte as "
      "serialize_pte_binary writes it. Data is whatever is a source; an entry of segments has its own as "
      "data, and may have an alignment.");
  module.def(
      "plan_ptd_file", &plan_ptd_file, nb::arg("buffers"), nb::arg("entries"), nb::arg("segment_alignment"),
      nb::arg("unchecked"),
      nb::sig(
          "def plan_ptd_file(buffers: list[tuple[object, int]], entries: list[tuple[str, int, "
          "tuple[int, list[int], list[int]] | None]], segment_alignment: int, unchecked: bool) -> FilePlan"),
      "The plan of a .ptd file: of sources and their alignments, and of keys, each with the index of a "
      "buffer and dtype, sizes and dim_order, or None.");
}

}  // namespace etstream::python
