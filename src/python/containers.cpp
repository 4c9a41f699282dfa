// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/embedded_file.h"
#include "etstream/fat_container.h"
#include "etstream/native_package.h"
#include "etstream/packed_file.h"
#include "etstream/reweight.h"
#include "python/bindings.h"
#include "python/checkpoints.h"
#include "python/errors.h"
#include "python/outputs.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

FilePlan plan_container(const std::vector<std::pair<std::string, SourceLike>>& payloads,
                        std::uint32_t alignment, bool share_equal) {
  FatContainer container;
  container.alignment = alignment;
  container.share_equal = share_equal;
  for (const auto& [name, data] : payloads) container.payloads.push_back({name, source_of(data)});
  return without_gil([&] { return plan(container); });
}

ByteSource payload_of(const FatContainerFile& file, const Key& key) {
  const auto name = name_of_key(key);
  const FatPayload* const payload = name ? file.find(*name) : nullptr;
  if (payload != nullptr) return payload->data;
  raise(error_in(ErrorCode::kNotFound, file.file().name(), "there is no payload {}; there are {}",
                 quoted_key(key), names_text(file.payloads(), &FatPayload::name)));
}

Annotated<"etstream.results.Table[etstream.results.FatPayload]"> payloads_of(const FatContainerFile& file) {
  return table_of("FatPayload", file.payloads(), [](const FatPayload& payload) {
    const auto known = without_gil([&] { return kind_of(payload); });
    const Json kind = known ? Json(name_of(*known)) : Json();
    return ETSTREAM_MEMBERS(payload.name, payload.offset, kind);
  });
}

Annotated<"etstream.results.Table[etstream.results.PackageMember]"> members_of(
    const NativePackageFile& file) {
  return table_of("PackageMember", file.members(), [](const PackageMember& member) {
    return ETSTREAM_MEMBERS(member.name, member.offset, member.crc32);
  });
}

std::map<std::string, std::string> aliases_of(const NativePackageFile& file) {
  std::map<std::string, std::string> out;
  for (const ConstantAlias& alias : file.aliases()) out[alias.key] = file.constants()[alias.constant].name;
  return out;
}

std::set<std::string> mutable_keys_of(nb::handle graph) {
  const ByteSource source = source_of(graph);
  return without_gil([&]() -> Result<std::set<std::string>> {
    ETSTREAM_ASSIGN(NativeGraph read, read_native_graph(source));
    return std::move(read.mutable_keys);
  });
}

FilePlan plan_package(nb::handle graph, const CheckpointByName& constants,
                      const std::vector<std::string>& mutable_keys, std::uint32_t alignment,
                      const std::optional<std::array<int, 6>>& modified) {
  NativePackage package;
  package.graph = source_of(graph);
  package.constants = constants.tensors;
  package.mutable_keys = mutable_keys;
  package.alignment = alignment;
  if (modified) {
    const auto [year, month, day, hour, minute, second] = *modified;
    package.modified = {year, month, day, hour, minute, second};
  }
  return without_gil([&]() -> Result<FilePlan> {
    if (!modified) {
      ETSTREAM_ASSIGN(package.modified, current_archive_time(std::getenv("SOURCE_DATE_EPOCH")));
    }
    return plan(package);
  });
}

/// An input that is read once, from its first byte to its last.
struct Stream {
  ReadBytes read;
  std::string name;
  std::uint64_t size = 0;          // 0 where it is not known
  std::optional<ByteSource> file;  // where it is one
};

/// Raises TypeError for what is no input, and the errors of opening it.
Stream open_stream(nb::handle source) {
  if (PyLong_Check(source.ptr()) && !PyBool_Check(source.ptr())) {
    const int descriptor = nb::cast<int>(source);
    std::string name = text("descriptor {}", descriptor);
    if (InputRecord* const inputs = InputRecord::current()) {
      if (const auto file = identity_of_file(descriptor)) inputs->add(*file, name);
    }
    return {descriptor_reader(descriptor, name, &check_signals), name, 0, {}};
  }
  if (nb::hasattr(source, "read") && !nb::isinstance<ByteSource>(source) &&
      PyObject_CheckBuffer(source.ptr()) == 0) {
    std::string name = name_of_file(source);
    if (InputRecord* const inputs = InputRecord::current()) inputs->add(identity_of_object(source), name);
    const auto read = [source](std::span<std::byte> out) {
      return with_gil([&] { return read_on(source, out); });
    };
    return {read, std::move(name), 0, {}};
  }
  ByteSource file = raw_source_of(source);
  return {source_reader(file), file.name(), file.size(), file};
}

/// Returns what an update is made from: of a path, or of several, maybe a checkpoint.
UpdateBase base_of(nb::handle given) {
  std::vector<nb::object> paths;
  if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given)) {
    for (const nb::handle each : given) paths.push_back(nb::borrow(each));
  } else {
    paths.push_back(nb::borrow(given));
  }
  const auto is_a_path = [](const nb::object& each) { return is_path(each); };
  if (paths.empty() || !std::ranges::all_of(paths, is_a_path)) return {source_of(given), {}};
  return without_gil(
      [names = paths_of(paths)] { return UpdateBase::open(names, checkpoint_options(false)); });
}

/// The inputs of pack() and unpack().
struct Streams {
  Stream input;
  std::optional<UpdateBase> base;
};

/// Reads `source` to its end, and writes what `recode` makes of it. `wrap` makes the sink of that of the
/// output.
template <class Wrap, class Recode>
void write(nb::handle source, nb::handle output, nb::handle base, bool sync, nb::handle progress, Wrap wrap,
           Recode recode) {
  const nb::object input = asked(source);
  const nb::object destination = asked(output);
  const nb::object base_input = asked(base);
  const nb::object callback = progress_callback(progress);
  Streams streams{open_stream(input), {}};
  const Stream& stream = streams.input;
  if (stream.file) require_apart(*stream.file, destination);
  if (!base_input.is_none()) {
    streams.base = base_of(base_input);
    if (streams.base->file) require_apart(*streams.base->file, destination);
    if (streams.base->checkpoint) {
      for (const CheckpointTensor& each : streams.base->checkpoint->tensors)
        require_apart(each.data, destination);
    }
  }
  CollectedWarnings warnings;
  FileSinkOptions options = warnings.options(sync);
  options.packing = FileSinkOptions::Packing::kNever;
  const std::unique_ptr<Sink> sink = wrap(open_output(destination, options), streams);
  without_gil([&]() -> Result<void> {
    std::uint64_t done = 0;
    const ReadBytes read = reporting(stream.read, progress_to(callback), stream.size, done);
    ETSTREAM_TRY(recode(read, streams, *sink));
    return sink->commit();
  });
  warnings.show();
}

void pack_file(nb::handle source, nb::handle output, nb::handle base, unsigned threads, bool sync,
               nb::handle progress) {
  write(
      source, output, base, sync, progress,
      [&](std::unique_ptr<Sink> packed, const Streams& streams) {
        std::optional<Base> matched;
        if (streams.base) {
          matched = without_gil([&]() -> Result<Base> {
            if (streams.input.file) return match_base(*streams.input.file, *streams.base);
            return error_in(ErrorCode::kInvalidArgument, streams.input.name,
                            "is read once; to make an update of it, give a file");
          });
        }
        return open_packing_sink(std::move(packed), {.threads = threads}, std::move(matched));
      },
      [](const ReadBytes& read, const Streams& streams, Sink& sink) {
        return pack(read, streams.input.name, sink);
      });
}

void unpack_file(nb::handle source, nb::handle output, nb::handle base, unsigned threads, bool sync,
                 nb::handle progress) {
  write(
      source, output, base, sync, progress,
      [](std::unique_ptr<Sink> sink, const Streams& /*streams*/) { return sink; },
      [&](const ReadBytes& read, const Streams& streams, Sink& sink) {
        return unpack(read, streams.input.name, sink, {.threads = threads},
                      streams.base ? streams.base->opener() : OpenBase());
      });
}

ObjectTarget target_of(const std::string& name) {
  const auto found = std::ranges::find(kObjectTargets, name);
  if (found != kObjectTargets.end()) return static_cast<ObjectTarget>(found - kObjectTargets.begin());
  raise(make_error(ErrorCode::kInvalidArgument, "target: expected one of {}, found {}",
                   names_text(kObjectTargets), quote(name)));
}

std::vector<FilePlan> plan_embedded_file(const std::string& path, const std::vector<std::string>& outputs,
                                         const std::optional<std::string>& target,
                                         const std::optional<std::string>& symbol,
                                         const std::optional<std::string>& section,
                                         const std::optional<std::uint64_t>& alignment) {
  const auto object_target = target ? std::optional(target_of(*target)) : std::nullopt;
  return without_gil([&]() -> Result<std::vector<FilePlan>> {
    ETSTREAM_ASSIGN(EmbeddedFile file, open_embedded_file(path));
    file.target = object_target;
    if (symbol) file.symbol = *symbol;
    if (section) file.section = *section;
    if (alignment) file.alignment = *alignment;
    return plan_outputs(file, outputs);
  });
}

}  // namespace

void bind_containers(nb::module_& module) {
  nb::class_<FatContainerFile>(
      module, "FatContainerFile", nb::sig("class FatContainerFile(collections.abc.Mapping[str, Source])"),
      "A fat container (NFAT), open: payloads under names, such as one program for each backend. Holds its "
      "table in memory. May be used by several threads at once.")
      .def("__init__", constructor(&opened_file<FatContainerFile>), nb::arg("file"),
           "Reads the table of a source. Raises CorruptError, naming file, offset, expected and found; "
           "UnsupportedError for another version.")
      .def_prop_ro(
          "version", [](const FatContainerFile&) { return FatContainerFile::version(); }, "Of the format.")
      .def_prop_ro("payloads", &payloads_of,
                   "In the order of the table, which is that in which they are preferred. The first bytes of "
                   "each are read.")
      .def("__getitem__", &payload_of, nb::arg("name"),
           "The source of the first payload of that name. Raises NoSuchNameError, a KeyError.")
      .def("__len__", [](const FatContainerFile& self) { return self.payloads().size(); })
      .def("__iter__", [](const FatContainerFile& self) { return names_of(self.payloads()); })
      .def("__repr__", [](const FatContainerFile& self) {
        return text("<etstream.FatContainerFile of {}: {}>", counted(self.payloads().size(), "payload"),
                    self.file().name());
      });
  module.def("plan_fat_container", &plan_container);
  nb::class_<NativePackageFile>(module, "NativePackageFile",
                                "A package of ExecuTorch's native backend (.ptn), open: a graph and its "
                                "constants. May be used by several threads at once.")
      .def("__init__", constructor(&opened_file<NativePackageFile>), nb::arg("file"),
           "Reads the directory, the header of the constants and the aliases of a source. Raises "
           "CorruptError, naming file, offset, expected and found; UnsupportedError for members that are "
           "compressed or encrypted.")
      .def_prop_ro("members", &members_of, "In the order of the directory.")
      .def_prop_ro("graph", &NativePackageFile::graph, "The graph's source.")
      .def_prop_ro("constants", &NativePackageFile::constants, nb::rv_policy::reference_internal,
                   "Each with bytes of its own, in the order of these.")
      .def_prop_ro("aliases", &aliases_of, "Further names of constants: the constant's name by each.")
      .def("tensors", &NativePackageFile::tensors,
           "All names that a graph may ask for: the constants, then the aliases with the bytes that they "
           "stand for.")
      .def("__repr__", [](const NativePackageFile& self) {
        return text("<etstream.NativePackageFile with {}: {}>", counted(self.constants().size(), "constant"),
                    self.file().name());
      });
  module.def("mutable_keys_of_graph", &mutable_keys_of);
  module.def("plan_native_package", &plan_package);
  const auto maybe = nb::arg().none();
  module.def("pack", &pack_file, nb::arg(), nb::arg(), maybe, nb::arg(), nb::arg(), maybe);
  module.def("unpack", &unpack_file, nb::arg(), nb::arg(), maybe, nb::arg(), nb::arg(), maybe);
  module.def("plan_embedded_file", &plan_embedded_file);
}

}  // namespace etstream::python
