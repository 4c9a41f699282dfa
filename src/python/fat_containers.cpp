// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "etstream/fat_container.h"
#include "etstream/fat_container_file.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/sources.h"
#include "python/strings.h"

namespace etstream::python {
namespace {

FatContainerFile open_container(const SourceLike& source) {
  ByteSource file = source_of(source);
  return without_gil([&] { return FatContainerFile::open(std::move(file)); });
}

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

std::optional<std::string> kind_text(const FatPayload& payload) {
  const auto kind = without_gil([&] { return kind_of(payload); });
  return kind ? std::optional(std::string(name_of(*kind))) : std::nullopt;
}

}  // namespace

void bind_fat_containers(nb::module_& module) {
  nb::class_<FatPayload>(module, "FatPayload", "A payload of a fat container.")
      .def_ro("name", &FatPayload::name)
      .def_ro("offset", &FatPayload::offset, "In the file, in bytes.")
      .def_ro("data", &FatPayload::data, "The bytes, which stay where they are.")
      .def_prop_ro(
          "kind", &kind_text,
          "Of the file that it is, as inspect() names kinds: 'program'; None for data that a backend "
          "knows. Reads its first bytes.")
      .def("__repr__", [](const FatPayload& self) {
        return text("<etstream.FatPayload {}: {} at {}>", quote(self.name), counted(self.data.size(), "byte"),
                    self.offset);
      });
  nb::class_<FatContainerFile>(
      module, "FatContainerFile", nb::sig("class FatContainerFile(collections.abc.Mapping[str, Source])"),
      "A fat container (NFAT), open: payloads under names, such as one program for each backend. Holds its "
      "table in memory. May be used by several threads at once.")
      .def("__init__", constructor(&open_container), nb::arg("file"),
           "Reads the table of a source. Raises CorruptError, naming file, offset, expected and found; "
           "UnsupportedError for another version.")
      .def_prop_ro(
          "version", [](const FatContainerFile&) { return FatContainerFile::version(); }, "Of the format.")
      .def_prop_ro("payloads", &FatContainerFile::payloads, nb::rv_policy::reference_internal,
                   "In the order of the table, which is that in which they are preferred.")
      .def("__getitem__", &payload_of, nb::arg("name"),
           "The source of the first payload of that name. Raises NoSuchNameError, a KeyError.")
      .def("__len__", [](const FatContainerFile& self) { return self.payloads().size(); })
      .def("__iter__", [](const FatContainerFile& self) { return names_of(self.payloads()); })
      .def("__repr__", [](const FatContainerFile& self) {
        return text("<etstream.FatContainerFile of {}: {}>", counted(self.payloads().size(), "payload"),
                    self.file().name());
      });
  module.def("plan_fat_container", &plan_container, nb::arg("payloads"), nb::arg("alignment"),
             nb::arg("share_equal"));
}

}  // namespace etstream::python
