// SPDX-License-Identifier: BSD-3-Clause
#include "python/program_files.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "container/findings.h"
#include "etstream/bundled_program_file.h"
#include "etstream/program_changes.h"
#include "etstream/program_metadata.h"
#include "etstream/program_weights.h"
#include "etstream/tensor_data_shards.h"
#include "jobs/program_input.h"
#include "python/errors.h"
#include "python/sources.h"
#include "python/writer_versions.h"

namespace etstream::python {
namespace {

/// A segment and its bytes.
struct Segment {
  SegmentInfo info;
  ByteSource data;
};

ProgramFile open_file(nb::handle file) {
  return without_gil([source = source_of(file)] { return open_program(source); });
}

std::vector<Segment> segments_of(const ProgramFile& program) {
  return without_gil([&]() -> Result<std::vector<Segment>> {
    ETSTREAM_ASSIGN(std::vector<SegmentInfo> infos, program.segments());
    std::vector<Segment> out;
    out.reserve(infos.size());
    for (SegmentInfo& info : infos) {
      ETSTREAM_ASSIGN(ByteSource data, program.file().slice(info.offset, info.size));
      out.push_back({std::move(info), std::move(data)});
    }
    return out;
  });
}

Result<void> require_sound(const std::string& name, const Findings& findings) {
  if (findings.ok()) return {};
  Error error = first_error(ErrorCode::kCorrupt, name, findings);
  error.message =
      text("{}: {}, the first: {}", name, counted(findings.errors.size(), "error"), error.message);
  return error;
}

/// Sound tensor data files.
Result<std::deque<TensorDataFile>> open_weights(const std::vector<ByteSource>& sources) {
  std::deque<TensorDataFile> files;
  for (const ByteSource& source : sources) {
    ETSTREAM_ASSIGN(TensorDataFile weights, TensorDataFile::open(source));
    Findings findings;
    ETSTREAM_TRY(weights.verify(findings));
    ETSTREAM_TRY(require_sound(source.name(), findings));
    files.push_back(std::move(weights));
  }
  return files;
}

DelegateData place_of(const std::string& name) {
  if (name != "inline" && name != "segments") {
    throw nb::value_error(text("delegates: expected 'inline' or 'segments', found {}", quote(name)).c_str());
  }
  return name == "inline" ? DelegateData::kInline : DelegateData::kInSegments;
}

ProgramPlanOptions plan_options(std::optional<std::uint32_t> segment_alignment,
                                std::optional<std::uint32_t> constant_tensor_alignment,
                                std::optional<std::uint32_t> delegate_alignment,
                                const std::optional<std::string>& delegates, bool strict_alignment,
                                bool extract_constants, const std::optional<std::string>& as_of,
                                const std::optional<std::string>& flatbuffers) {
  ProgramPlanOptions options;
  options.segment_alignment = segment_alignment;
  options.constant_tensor_alignment = constant_tensor_alignment;
  options.delegate_alignment = delegate_alignment;
  if (delegates) options.delegates = place_of(*delegates);
  options.strict_alignment = strict_alignment;
  options.extract_constants = extract_constants;
  options.as_of = release_of(as_of);
  options.vtables = vtables_of(flatbuffers);
  return options;
}

/// The plans of tensor data: of one file, or of shards.
Result<std::vector<FilePlan>> plan_weights(const TensorData& data,
                                           std::optional<std::uint64_t> split_max_size) {
  std::vector<TensorData> shards;
  if (split_max_size) {
    ETSTREAM_ASSIGN(shards, split(data, *split_max_size));
  } else {
    shards.push_back(data);
  }
  std::vector<FilePlan> out;
  for (const TensorData& shard : shards) {
    ETSTREAM_ASSIGN(out.emplace_back(), plan(shard));
  }
  return out;
}

/// The program, and the weights, as a list, where constants are moved out.
nb::tuple plan_program(nb::handle program, const ProgramPlanOptions& options,
                       std::vector<std::string> drop_methods, bool strip_stack_traces, bool constants_out,
                       std::map<std::string, std::string> keys, nb::handle constants_from, nb::handle folder,
                       nb::handle schema, nb::handle segments_from,
                       const std::optional<std::string>& described_flatbuffers, const nb::dict& metadata,
                       std::optional<std::uint64_t> split_max_size) {
  const ByteSource file = source_of(program);
  const std::string schema_path = schema.is_none() ? "" : path_of(schema);
  ProgramInputOptions input;
  input.folder = path_of(folder);
  if (!segments_from.is_none()) input.segments_from = source_of(segments_from);
  input.described_vtables = vtables_of(described_flatbuffers).value_or(input.described_vtables);
  std::vector<ByteSource> weights;
  for (const nb::handle one : nb::iter(constants_from)) weights.push_back(source_of(one));
  ProgramChanges changes{.drop_methods = std::move(drop_methods), .drop_stack_traces = strip_stack_traces};
  for (const auto [key, value] : metadata) changes.metadata[nb::cast<std::string>(key)] = source_of(value);
  if (constants_out) changes.constants_out = ConstantsOut{std::move(keys)};

  std::optional<std::vector<FilePlan>> planned_tensor_data;
  FilePlan planned = without_gil([&]() -> Result<FilePlan> {
    if (!schema_path.empty()) {
      ETSTREAM_ASSIGN(input.schema, ProgramSchema::load(schema_path));
    }
    ETSTREAM_ASSIGN(const auto files, open_weights(weights));
    for (const TensorDataFile& one : files) changes.constants_in.push_back(&one);
    ETSTREAM_ASSIGN(ProgramPlan both,
                    plan_program_input(file, input, changes, options, [&](const Findings& findings) {
                      return require_sound(file.name(), findings);
                    }));
    if (both.tensor_data) {
      ETSTREAM_ASSIGN(planned_tensor_data, plan_weights(*both.tensor_data, split_max_size));
    }
    return std::move(both.program);
  });
  return nb::make_tuple(std::move(planned), std::move(planned_tensor_data));
}

}  // namespace

void bind_program_files(nb::module_& module) {
  nb::class_<Segment>(module, "Segment", "A part of a program that lies behind its flatbuffer.")
      .def_prop_ro(
          "use", [](const Segment& self) { return self.info.use; },
          "'constants', 'mutable data', 'delegate XnnpackBackend', 'named data'; '' for none.")
      .def_prop_ro(
          "offset", [](const Segment& self) { return self.info.offset; },
          "From the start of the program, in bytes.")
      .def_prop_ro(
          "size", [](const Segment& self) { return self.info.size; }, "In bytes.")
      .def_ro("data", &Segment::data, "The bytes, which stay where they are.")
      .def("__repr__", [](const Segment& self) {
        return text("<etstream.Segment of {} bytes at {}: {}>", self.info.size, self.info.offset,
                    self.info.use.empty() ? "of no use" : self.info.use);
      });
  nb::class_<ProgramFile>(module, "ProgramFile",
                          "A program (.pte), open: a file, or what is in a bundle (.bpte). Holds at most 512 "
                          "KiB of it in memory. May be used by several threads at once.")
      .def(
          "__init__", [](ProgramFile* self, nb::handle file) { new (self) ProgramFile(open_file(file)); },
          nb::arg("file"), nb::sig("def __init__(self, file: etstream._types.SourceLike) -> None"),
          "Reads all metadata of a source and checks its structure. Raises CorruptError, naming file, "
          "offset, expected and found; UnsupportedError for another kind of file.")
      .def_prop_ro("file", &ProgramFile::file, "All of the program.")
      .def_prop_ro(
          "version", [](const ProgramFile& self) { return without_gil([&] { return self.version(); }); },
          "Of the schema.")
      .def_prop_ro("segments", &segments_of, "By their indices. Read again at each use.")
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
  nb::class_<ProgramPlanOptions>(module, "ProgramPlanOptions", "See etstream.plan_program.")
      .def(
          "__init__",
          [](ProgramPlanOptions* self, std::optional<std::uint32_t> segment_alignment,
             std::optional<std::uint32_t> constant_tensor_alignment,
             std::optional<std::uint32_t> delegate_alignment, const std::optional<std::string>& delegates,
             bool strict_alignment, bool extract_constants, const std::optional<std::string>& as_of,
             const std::optional<std::string>& flatbuffers) {
            new (self) ProgramPlanOptions(plan_options(segment_alignment, constant_tensor_alignment,
                                                       delegate_alignment, delegates, strict_alignment,
                                                       extract_constants, as_of, flatbuffers));
          },
          nb::kw_only(), nb::arg("segment_alignment") = nb::none(),
          nb::arg("constant_tensor_alignment") = nb::none(), nb::arg("delegate_alignment") = nb::none(),
          nb::arg("delegates") = nb::none(), nb::arg("strict_alignment") = false,
          nb::arg("extract_constants") = false, nb::arg("as_of") = nb::none(),
          nb::arg("flatbuffers") = nb::none());
  module.def(
      "plan_program", &plan_program, nb::arg("program"), nb::arg("options"), nb::kw_only(),
      nb::arg("drop_methods"), nb::arg("strip_stack_traces"), nb::arg("constants_out"), nb::arg("keys"),
      nb::arg("constants_from"), nb::arg("folder"), nb::arg("schema").none(), nb::arg("segments_from").none(),
      nb::arg("described_flatbuffers").none(), nb::arg("metadata"), nb::arg("split_max_size").none(),
      nb::sig("def plan_program(program: object, options: ProgramPlanOptions, *, "
              "drop_methods: collections.abc.Sequence[str], strip_stack_traces: bool, "
              "constants_out: bool, keys: collections.abc.Mapping[str, str], "
              "constants_from: collections.abc.Iterable[object], folder: str | os.PathLike[str], "
              "schema: str | os.PathLike[str] | None, segments_from: object, "
              "described_flatbuffers: str | None, metadata: dict[str, object], split_max_size: int | None) "
              "-> tuple[FilePlan, list[FilePlan] | None]"));
  module.def("shard_path", &shard_path, nb::arg("path"), nb::arg("number"), nb::arg("count"));
  module.def("with_all_shards", &with_all_shards, nb::arg("paths"));
}

}  // namespace etstream::python
