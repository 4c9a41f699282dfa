// SPDX-License-Identifier: BSD-3-Clause
#include "python/checkpoints.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/tensor_data.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

using NamedTensors = Annotated<
    "collections.abc.Mapping[str, etstream._types.TensorLike] | "
    "collections.abc.Iterable[tuple[str, etstream._types.TensorLike]]">;

CheckpointByName checkpoint_at(const PathLike& path, bool partial) {
  return CheckpointByName(
      without_gil([&, path = path_of(path)] { return open_checkpoint(path, checkpoint_options(partial)); }));
}

std::vector<CheckpointByName> checkpoints_at(const std::vector<nb::object>& given, bool partial) {
  std::vector<Checkpoint> opened = without_gil(
      [&, paths = paths_of(given)] { return open_checkpoints(paths, checkpoint_options(partial)); });
  std::vector<CheckpointByName> out;
  out.reserve(opened.size());
  for (Checkpoint& one : opened) out.emplace_back(std::move(one));
  return out;
}

std::vector<std::string> whole_sets_of(const std::vector<nb::object>& given, bool partial) {
  return without_gil([&, paths = paths_of(given)] { return whole_sets(paths, checkpoint_options(partial)); });
}

CheckpointByName checkpoint_of(const NamedTensors& tensors) {
  Checkpoint out;
  std::set<std::string> names;
  const nb::object pairs = nb::module_::import_("etstream._arrays").attr("named_tensors")(tensors);
  for (const nb::handle pair : nb::iter(pairs)) {
    auto [name, tensor] = nb::cast<std::pair<std::string, Tensor>>(pair);
    if (!names.insert(name).second) {
      raise(with_advice(make_error(ErrorCode::kInvalidArgument, "two tensors are called {}", quote(name)),
                        {"give each a name of its own"}));
    }
    TensorLayout layout{tensor.scalar_type, std::move(tensor.sizes), std::move(tensor.dim_order)};
    out.tensors.push_back({std::move(name), std::string(name_of(layout.scalar_type)), std::move(layout),
                           std::move(tensor.data)});
  }
  return CheckpointByName(std::move(out));
}

std::string called(const Checkpoint& checkpoint) {
  return checkpoint.files.empty() ? "in memory" : checkpoint.files.front();
}

const CheckpointTensor& tensor_called(const CheckpointByName& checkpoint, const Key& key) {
  const auto name = name_of_key(key);
  const CheckpointTensor* const found = name ? checkpoint.find(*name) : nullptr;
  if (found == nullptr) {
    raise(error_in(ErrorCode::kNotFound, called(checkpoint), "there is no data named {}", quoted_key(key)));
  }
  return *found;
}

RenameRules rules_of(nb::handle rules) {
  if (is_path(rules)) {
    return without_gil([name = path_of(rules)] { return RenameRules::open(name); });
  }
  return without_gil([json = source_of(rules)] { return RenameRules::read(json); });
}

std::vector<DtypeRule> dtype_rules(const std::vector<std::pair<std::string, std::string>>& given) {
  std::vector<DtypeRule> rules;
  for (const auto& [glob, name] : given) rules.push_back({glob, type_named(name)});
  return rules;
}

/// Returns all tensors of the checkpoints under their new names and types, and the rules and tensors that did
/// not match.
std::pair<CheckpointByName, std::optional<RenameReport>> changed(
    const std::vector<const CheckpointByName*>& given, nb::handle rules,
    std::optional<std::uint32_t> head_dim, const std::vector<std::string>& only,
    const std::vector<std::pair<std::string, std::string>>& dtypes) {
  std::optional<RenameRules> rename_rules;
  if (!rules.is_none()) rename_rules = rules_of(rules);
  const std::vector<DtypeRule> types = dtype_rules(dtypes);
  std::optional<RenameReport> report;
  std::vector<Checkpoint> checkpoints(given.size());
  std::ranges::transform(given, checkpoints.begin(), [](const CheckpointByName* one) { return *one; });
  Checkpoint all = without_gil([&]() -> Result<Checkpoint> {
    ETSTREAM_ASSIGN(Checkpoint joined, join(std::move(checkpoints)));
    if (rename_rules) {
      ETSTREAM_ASSIGN(report, apply(*rename_rules, joined, RenameOptions{head_dim}));
    }
    if (!only.empty()) ETSTREAM_TRY(select(joined, only));
    ETSTREAM_TRY(convert(joined, types));
    ETSTREAM_TRY(merge(joined));
    return joined;
  });
  return {CheckpointByName(std::move(all)), std::move(report)};
}

/// Plans one file or, with `most`, shards with data of at most so many bytes each.
std::vector<FilePlan> plan_checkpoint(const CheckpointByName& checkpoint, const std::string& format,
                                      const Options& given, std::optional<std::uint64_t> most) {
  const auto as_of = release_of(option<std::optional<std::string>>(given, "as_of"));
  const TensorDataOptions options{
      .share_equal = option<bool>(given, "dedup"),
      .allow_opaque = option<bool>(given, "opaque"),
      .segment_alignment = alignment_option(given, "segment_alignment")
                               .value_or(default_segment_alignment(as_of.value_or(kLatestRelease)))};
  return without_gil([&]() -> Result<std::vector<FilePlan>> {
    if (format != "ptd") {
      ETSTREAM_ASSIGN(FilePlan whole,
                      format == "pth" ? plan_torch_file(checkpoint) : plan_safetensors(checkpoint));
      return std::vector{std::move(whole)};
    }
    ETSTREAM_ASSIGN(const TensorData data, describe_tensor_data(checkpoint, options));
    return plan_files(data, most);
  });
}

/// A dtype's number, sizes, and dim_order.
using LayoutArguments = std::tuple<std::int8_t, std::vector<std::int32_t>, std::vector<std::uint8_t>>;

/// A key, the index of a buffer, and the layout if it is a tensor's.
using EntryArguments = std::tuple<std::string, std::uint32_t, std::optional<LayoutArguments>>;

/// Plans a .ptd file of sources with their alignments, and of keys.
FilePlan plan_ptd_file(const std::vector<std::pair<nb::object, std::uint32_t>>& buffers,
                       const std::vector<EntryArguments>& entries, std::uint32_t segment_alignment,
                       bool unchecked) {
  TensorData data;
  data.segment_alignment = segment_alignment;
  data.unchecked = unchecked;
  for (const auto& [source, alignment] : buffers) data.buffers.push_back({data_of(source), alignment});
  for (const auto& [key, buffer, layout] : entries) {
    TensorData::Entry& added = data.entries.emplace_back(TensorData::Entry{key, buffer});
    if (!layout) continue;
    const auto& [type, sizes, dim_order] = *layout;
    added.layout = TensorLayout{static_cast<ScalarType>(type), sizes, dim_order};
  }
  return without_gil([&] { return plan(data); });
}

/// Returns the kind of file that the ending of a path says, as inspect() names it; None for another ending.
std::optional<std::string> kind_said(const std::string& path) {
  const auto kind = kind_of_ending(path);
  return kind ? std::optional(std::string(name_of(*kind))) : std::nullopt;
}

/// Returns the params.json of a checkpoint of Llama, the members of config.json that are not known, and its
/// model_type; no JSON for another model, and None without config.json.
std::optional<std::tuple<std::string, std::vector<std::string>, std::string>> parameters_of(
    const CheckpointByName& checkpoint) {
  const auto found = without_gil([&] { return llama_parameters(checkpoint); });
  if (!found) return std::nullopt;
  return std::tuple(found->json, found->unknown, found->model_type);
}

/// Returns the sizes of the dimensions, by the layout or the shape; None if the file has neither.
std::optional<std::vector<std::uint64_t>> sizes_of(const CheckpointTensor& tensor) {
  if (!tensor.layout) return tensor.shape;
  return std::vector<std::uint64_t>(tensor.layout->sizes.begin(), tensor.layout->sizes.end());
}

template <class F>
auto of_layout(F&& member) {
  return [member](const CheckpointTensor& self) {
    using Value = decltype(member(*self.layout));
    return self.layout ? std::optional<Value>(member(*self.layout)) : std::nullopt;
  };
}

}  // namespace

CheckpointOptions checkpoint_options(bool partial) {
  CheckpointOptions out;
  out.open_file = [](const std::string& file) { return open_interruptible_file(file); };
  out.partial = partial;
  return out;
}

Result<std::vector<FilePlan>> plan_files(const TensorData& data, std::optional<std::uint64_t> most) {
  std::vector<TensorData> shards;
  if (most) {
    ETSTREAM_ASSIGN(shards, split(data, *most));
  }
  std::vector<FilePlan> out;
  for (const TensorData& shard : most ? std::span<const TensorData>(shards) : std::span(&data, 1)) {
    ETSTREAM_ASSIGN(out.emplace_back(), plan(shard));
  }
  return out;
}

void bind_checkpoints(nb::module_& module) {
  nb::class_<CheckpointTensor> tensors(module, "CheckpointTensor", "A tensor of a checkpoint.");
  tensors.def_ro("name", &CheckpointTensor::name)
      .def_ro("type", &CheckpointTensor::type,
              "As the file spells it: 'BF16', 'Q4_0'; '' for data that a backend knows.")
      .def_prop_ro("dtype",
                   of_layout([](const TensorLayout& it) { return std::string(name_of(it.scalar_type)); }),
                   "As torch names it; None for data that ExecuTorch has no tensors of.")
      .def_prop_ro(
          "sizes", &sizes_of,
          "Of the dimensions, in elements, also of types with several in a byte; None for data of which "
          "the file does not say it.")
      .def_prop_ro("dim_order", of_layout([](const TensorLayout& it) { return it.dim_order; }),
                   "The dimensions, outermost first; None for such data.")
      .def_prop_ro(
          "shape",
          [](const CheckpointTensor& self) {
            const auto sizes = sizes_of(self);
            return sizes ? std::optional(shape_of(*sizes)) : std::nullopt;
          },
          "The sizes.")
      .def_ro("data", &CheckpointTensor::data, "The bytes, which stay where they are.")
      .def("__repr__", [](const CheckpointTensor& self) {
        nb::object what = nb::cast(text("{} of {}", self.type.empty() ? "data" : printable(self.type),
                                        counted(self.data.size(), "byte")));
        if (self.layout) {
          what = nb::str("{}, {}").format(std::string(name_of(self.layout->scalar_type)),
                                          shape_of(self.layout->sizes));
        }
        return nb::str("<etstream.CheckpointTensor {!r}: {}>").format(self.name, what);
      });
  def_array_views(tensors);
  nb::class_<CheckpointByName>(
      module, "Checkpoint", nb::sig("class Checkpoint(collections.abc.Mapping[str, CheckpointTensor])"),
      "The tensors of a model by name, a mapping, in files of any kind that people keep weights in.")
      .def("__init__", constructor(&checkpoint_at), nb::arg("path"), nb::arg("partial") = false,
           "The file at path, told by its content: safetensors; the index of a sharded one "
           "(model.safetensors.index.json), whose shards lie beside it; GGUF, with the files that follow; a "
           "program (.pte), whose constants and named data are the tensors; tensor data (.ptd); a package "
           "(.ptn); or the weights in a folder, those that transformers loads or the only ones. Reads no "
           "tensor but a program's constants that have no name, which go by their SHA-256. A file of a set "
           "without the others is refused; partial=True takes it by itself, and of an index the files that "
           "are "
           "there. Raises NotFoundError, UnsupportedError for another kind of file, CorruptError, "
           "InvalidArgumentError for a part of a set and for a folder with several checkpoints, "
           "TooLargeError.")
      .def_static(
          "of", &checkpoint_of, nb::arg("tensors"),
          "Of tensors that lie elsewhere: a mapping of names to tensors, torch's on the CPU, NumPy's or "
          "etstream's, in place where they are contiguous; or pairs of them, in their order. Raises "
          "InvalidArgumentError for two of one name, TypeError for what is no tensor or no name.")
      .def_ro("files", &CheckpointByName::files, "The paths of all that was opened.")
      .def_ro("tensors", &CheckpointByName::tensors, "In the order in which their bytes lie in the files.")
      .def("__getitem__", &tensor_called, nb::arg("name"), nb::rv_policy::reference_internal,
           "The tensor of that name. Raises NoSuchNameError, a KeyError.")
      .def("__len__", [](const CheckpointByName& self) { return self.tensors.size(); })
      .def("__iter__", [](const CheckpointByName& self) { return names_of(self.tensors); })
      .def("__repr__", [](const CheckpointByName& self) {
        return text("<etstream.Checkpoint of {}: {}>", counted(self.tensors.size(), "tensor"), called(self));
      });
  nb::class_<RenameReport>(module, "RenameReport", "What rules for names missed.")
      .def_ro("unmatched_rules", &RenameReport::unmatched_rules,
              "The patterns of rules that no tensor matched.")
      .def_ro("left_over_keys", &RenameReport::left_over_keys, "Of tensors without a rule.");
  module.def("open_checkpoints", &checkpoints_at);
  module.def("whole_sets", &whole_sets_of);
  module.def("changed_checkpoint", &changed, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  module.def("kind_of_ending", &kind_said);
  module.def("llama_parameters", &parameters_of);
  module.def("plan_checkpoint", &plan_checkpoint);
  module.def("plan_ptd_file", &plan_ptd_file);
}

}  // namespace etstream::python
