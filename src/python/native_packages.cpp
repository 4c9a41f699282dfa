// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/native_package.h"
#include "etstream/native_package_file.h"
#include "python/bindings.h"
#include "python/checkpoints.h"
#include "python/errors.h"
#include "python/sources.h"
#include "python/strings.h"

namespace etstream::python {
namespace {

NativePackageFile open_package(const SourceLike& source) {
  ByteSource file = source_of(source);
  return without_gil([&] { return NativePackageFile::open(std::move(file)); });
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

}  // namespace

void bind_native_packages(nb::module_& module) {
  nb::class_<PackageMember>(module, "PackageMember", "A member of a package's archive.")
      .def_ro("name", &PackageMember::name)
      .def_ro("offset", &PackageMember::offset, "Of its data in the file, in bytes.")
      .def_ro("crc32", &PackageMember::crc32, "The checksum that its data should have.")
      .def_ro("data", &PackageMember::data, "The bytes, which stay where they are.")
      .def("__repr__", [](const PackageMember& self) {
        return text("<etstream.PackageMember {}: {} at {}>", quote(self.name),
                    counted(self.data.size(), "byte"), self.offset);
      });
  nb::class_<NativePackageFile>(module, "NativePackageFile",
                                "A package of ExecuTorch's native backend (.ptn), open: a graph and its "
                                "constants. May be used by several threads at once.")
      .def("__init__", constructor(&open_package), nb::arg("file"),
           "Reads the directory, the header of the constants and the aliases of a source. Raises "
           "CorruptError, naming file, offset, expected and found; UnsupportedError for members that are "
           "compressed or encrypted.")
      .def_prop_ro("members", &NativePackageFile::members, nb::rv_policy::reference_internal,
                   "In the order of the directory.")
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
  module.def("mutable_keys_of_graph", &mutable_keys_of, nb::arg("graph"));
  module.def("plan_native_package", &plan_package, nb::arg("graph"), nb::arg("constants"),
             nb::arg("mutable_keys"), nb::arg("alignment"), nb::arg("modified"));
}

}  // namespace etstream::python
