// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/byte_source.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/program_weights.h"
#include "etstream/reweight.h"
#include "etstream/tensor_data.h"
#include "formats/pte/rewrite/program_description.h"
#include "present/reports.h"
#include "python/bindings.h"
#include "python/checkpoints.h"
#include "python/errors.h"
#include "python/object_reader.h"
#include "python/outputs.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// A segment and its bytes.
struct Segment : SegmentInfo {
  ByteSource data;
};

ProgramFile open_file(const SourceLike& file) {
  return without_gil([source = source_of(file)] { return open_program(source); });
}

Annotated<"etstream.results.Table[etstream.results.Segment]"> segments_of(const ProgramFile& program) {
  const auto segments = without_gil([&]() -> Result<std::vector<Segment>> {
    ETSTREAM_ASSIGN(std::vector<SegmentInfo> infos, program.segments());
    std::vector<Segment> out;
    out.reserve(infos.size());
    for (SegmentInfo& info : infos) {
      ETSTREAM_ASSIGN(ByteSource data, program.file().slice(info.offset, info.size));
      out.push_back({std::move(info), std::move(data)});
    }
    return out;
  });
  return table_of("Segment", segments,
                  [](const Segment& each) { return ETSTREAM_MEMBERS(each.use, each.offset, each.size); });
}

Annotated<"etstream.results.Table[etstream.results.DelegatePayload]"> delegate_payloads_of(
    const ProgramFile& program) {
  const FileInspection found = without_gil([&] { return inspect(program.file()); });
  return table_of("DelegatePayload", found.payloads, payload_to_json);
}

/// Opens tensor data files, and checks that they are sound.
Result<std::deque<TensorDataFile>> open_weights(const std::vector<ByteSource>& sources) {
  std::deque<TensorDataFile> files;
  for (const ByteSource& source : sources) {
    ETSTREAM_ASSIGN(TensorDataFile weights, TensorDataFile::open(source));
    ETSTREAM_TRY(require_sound(weights));
    files.push_back(std::move(weights));
  }
  return files;
}

ProgramPlanOptions plan_options(const Options& given) {
  const auto words = [&](const char* name) { return option<std::optional<std::string>>(given, name); };
  ProgramPlanOptions options{
      .segment_alignment = alignment_option(given, "segment_alignment"),
      .constant_tensor_alignment = alignment_option(given, "constant_tensor_alignment"),
      .delegate_alignment = alignment_option(given, "delegate_alignment"),
      .strict_alignment = option<bool>(given, "strict_alignment"),
      .as_of = release_of(words("as_of")),
      .vtables = vtables_of(words("flatbuffers"))};
  if (const auto delegates = words("delegates")) {
    options.delegates = choice<DelegateData>("delegates", *delegates, {"inline", DelegateData::kInline},
                                             {"segments", DelegateData::kInSegments});
  }
  return options;
}

/// Plans the program, followed by the files of tensor data if constants are moved out.
std::vector<FilePlan> plan_program(
    const SourceLike& program, const Options& given, std::vector<std::string> drop_methods,
    bool strip_stack_traces, bool constants_out, std::map<std::string, std::string> keys,
    const SourcesLike& constants_from, const PathLike& folder, const std::optional<PathLike>& schema,
    const std::optional<SourceLike>& segments_from, const std::optional<std::string>& described_flatbuffers,
    const std::map<std::string, nb::object>& metadata, std::optional<std::uint64_t> split_max_size) {
  const ProgramPlanOptions options = plan_options(given);
  const ByteSource file = source_of(program);
  const std::string schema_path = schema ? path_of(*schema) : "";
  ProgramInputOptions input;
  input.folder = path_of(folder);
  if (segments_from) input.segments_from = source_of(*segments_from);
  input.described_vtables = vtables_of(described_flatbuffers).value_or(input.described_vtables);
  const std::vector<ByteSource> weights = sources_of(constants_from);
  ProgramChanges changes{.drop_methods = std::move(drop_methods), .drop_stack_traces = strip_stack_traces};
  for (const auto& [key, value] : metadata) changes.metadata[key] = data_of(value);
  if (constants_out) changes.constants_out = ConstantsOut{std::move(keys)};

  return without_gil([&]() -> Result<std::vector<FilePlan>> {
    if (!schema_path.empty()) {
      ETSTREAM_ASSIGN(input.schema, ProgramSchema::load(schema_path));
    }
    ETSTREAM_ASSIGN(const auto files, open_weights(weights));
    for (const TensorDataFile& one : files) changes.constants_in.push_back(&one);
    ETSTREAM_ASSIGN(ProgramPlan both, plan_program_input(file, input, changes, options));
    std::vector<FilePlan> out;
    if (both.tensor_data) {
      ETSTREAM_ASSIGN(out, plan_files(*both.tensor_data, split_max_size));
    }
    out.insert(out.begin(), std::move(both.program));
    return out;
  });
}

/// Returns the plan of a program in the dataclasses of ExecuTorch's schema, byte for byte as
/// serialize_pte_binary writes it. Data is whatever is a source; an entry of segments has its own as data,
/// and may have an alignment.
FilePlan plan_pte_file(nb::object program, const Options& given) {
  const ProgramPlanOptions options = plan_options(given);
  const auto describe = [&]() -> Result<ProgramDescription> {
    ETSTREAM_ASSIGN(const auto plain, ProgramSchema().schema());
    ETSTREAM_ASSIGN(const Schema schema, with_segment_data(*plain));
    ObjectReader values(schema, std::move(program));
    return describe_program(schema, values, nullptr, "program");
  };
  const ProgramDescription description = value_or_raise(describe());
  return without_gil([&] { return plan(description, options); });
}

/// Plans the programs, the files of what they share, and the container. Returns them with the report.
std::tuple<std::vector<FilePlan>, std::vector<FilePlan>, std::optional<FilePlan>, Report> plan_shared_weights(
    const std::vector<std::pair<std::string, SourceLike>>& programs, std::uint64_t least_size,
    bool into_container, std::uint32_t align, std::optional<std::uint64_t> split_max_size) {
  std::vector<SharingInput> inputs;
  for (const auto& [name, program] : programs) inputs.push_back({name, source_of(program)});
  const SharingOptions options{
      .least_size = least_size, .into_container = into_container, .container_alignment = align};
  std::vector<FilePlan> weights;
  SharingPlan planned = without_gil([&]() -> Result<SharingPlan> {
    ETSTREAM_ASSIGN(SharingPlan out, plan_sharing(inputs, options));
    if (!out.files.weights) return out;
    ETSTREAM_ASSIGN(weights, plan_files(out.files.tensor_data, split_max_size));
    return out;
  });
  Report report = in_python(sharing_to_json(inputs, planned.files));
  return {std::move(planned.files.programs), std::move(weights), std::move(planned.container),
          std::move(report)};
}

Report report_of(const ByteSource& program, const CheckpointByName& by, const WeightOrigins& origins) {
  nb::dict out;
  out["file"] = program.name();
  out["by"] = by.files;
  out.update(nb::borrow<nb::dict>(in_python(origins_to_json(origins))));
  out["names"] = key_names_of(origins);
  return out;
}

Result<ProgramWithWeights> with_weights(Result<ProgramFile> program, const std::vector<ByteSource>& weights) {
  ETSTREAM_ASSIGN(ProgramFile file, std::move(program));
  ProgramWithWeights out{std::move(file), {}};
  for (const ByteSource& each : weights) {
    ETSTREAM_ASSIGN(TensorDataFile tensors, TensorDataFile::open(each));
    out.weights.push_back(std::move(tensors));
  }
  return out;
}

Report explain_program(const SourceLike& program, const SourcesLike& weights, const CheckpointByName& by) {
  const ByteSource file = source_of(program);
  const std::vector<ByteSource> files = sources_of(weights);
  const WeightOrigins origins = without_gil([&]() -> Result<WeightOrigins> {
    ETSTREAM_ASSIGN(const ProgramWithWeights opened, with_weights(open_program(file), files));
    return explain(opened.program, opened.files(), by);
  });
  return report_of(file, by, origins);
}

/// Plans the program and the files of weights. Returns them with the number of payloads that are made of
/// `now`, and the origins of all.
std::tuple<FilePlan, std::vector<FilePlan>, std::size_t, Report> plan_reweighting(
    const SourceLike& program, const SourcesLike& weights, const CheckpointByName& was,
    const CheckpointByName& now, const std::vector<std::string>& keep) {
  const ByteSource file = source_of(program);
  const std::vector<ByteSource> files = sources_of(weights);
  // Checkpoints may have been opened before the record began.
  if (InputRecord* const inputs = InputRecord::current()) {
    for (const CheckpointByName* checkpoint : {&was, &now}) {
      for (const std::string& path : checkpoint->files) inputs->add(path);
    }
  }
  CollectedWarnings warnings;
  ReweightingPlan planned = without_gil([&]() -> Result<ReweightingPlan> {
    ETSTREAM_ASSIGN(const ProgramWithWeights opened, with_weights(ProgramFile::open(file), files));
    return plan(Reweighting{&opened.program, opened.files(), &was, &now, warnings.take(), keep});
  });
  warnings.show();
  return {std::move(planned.program), std::move(planned.weights), planned.replaced,
          report_of(file, was, planned.origins)};
}

}  // namespace

void bind_programs(nb::module_& module) {
  nb::class_<ProgramFile>(module, "ProgramFile",
                          "A program (.pte), open: a file, or what is in a bundle (.bpte). Holds at most 512 "
                          "KiB of it in memory. May be used by several threads at once.")
      .def("__init__", constructor(&open_file), nb::arg("file"),
           "Reads all metadata of a source and checks its structure. Raises CorruptError, naming file, "
           "offset, expected and found; UnsupportedError for another kind of file.")
      .def_prop_ro("file", &ProgramFile::file, "All of the program.")
      .def_prop_ro(
          "version", [](const ProgramFile& self) { return without_gil([&] { return self.version(); }); },
          "Of the schema.")
      .def_prop_ro("segments", &segments_of, "By their indices. Read again at each use.")
      .def_prop_ro("payloads", &delegate_payloads_of,
                   "The data of delegates, each once, as inspect() reports it. Read again at each use.")
      .def_prop_ro(
          "metadata",
          [](const ProgramFile& self) {
            std::map<std::string, ByteSource> out;
            for (MetadataEntry& entry : without_gil([&] { return read_metadata(self); })) {
              out.try_emplace(std::move(entry.key), std::move(entry.value));
            }
            return out;
          },
          "What the program says of its model: sources of the values by their keys, without \"metadata.\". "
          "Read again at each use.")
      .def_prop_ro(
          "external_keys",
          [](const ProgramFile& self) { return without_gil([&] { return external_keys(self); }); },
          "The keys that the program asks for and does not have, in order, each once: they come from a .ptd "
          "file.")
      .def("__repr__", [](const ProgramFile& self) {
        return text("<etstream.ProgramFile of {} bytes: {}>", self.file().size(), self.file().name());
      });
  module.def("plan_program", &plan_program, nb::arg("program"), nb::arg("options"), nb::kw_only(),
             nb::arg("drop_methods"), nb::arg("strip_stack_traces"), nb::arg("constants_out"),
             nb::arg("keys"), nb::arg("constants_from"), nb::arg("folder"), nb::arg("schema"),
             nb::arg("segments_from"), nb::arg("described_flatbuffers"), nb::arg("metadata"),
             nb::arg("split_max_size"));
  module.def("plan_pte_file", &plan_pte_file);
  module.def("plan_shared_weights", &plan_shared_weights);
  module.def("shard_path", &shard_path);
  module.def("explain", &explain_program);
  module.def("plan_reweighting", &plan_reweighting);
}

}  // namespace etstream::python
