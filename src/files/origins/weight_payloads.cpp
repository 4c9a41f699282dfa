// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/weight_payloads.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "etstream/program.h"
#include "files/pieces.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/program_model.h"

namespace etstream {
namespace {

constexpr std::size_t kHashSize = 64;  // a SHA-256 in hexadecimal digits

/// Returns where `key` ends with a SHA-256: after "scale_", or at its beginning; nothing for another key.
std::optional<std::size_t> hash_in(std::string_view key) {
  constexpr std::string_view kScale = "scale_";
  const std::size_t begin = key.starts_with(kScale) ? kScale.size() : 0;
  const std::string_view digits = key.substr(begin);
  if (digits.size() != kHashSize) return std::nullopt;
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  return begin;
}

class PayloadReader {
 public:
  PayloadReader(const ProgramFile& program, const std::vector<const TensorDataFile*>& weights)
      : program_(program), weights_(weights), budget_(program.file()) {}

  Result<std::vector<WeightPayload>> run() {
    ETSTREAM_TRY(read_keys());
    ETSTREAM_ASSIGN(const auto methods, program_.methods());
    for (std::uint32_t i = 0; i < methods.size(); ++i) {
      ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program_, i));
      ETSTREAM_TRY(add_values(graph));
      ETSTREAM_TRY(add_delegates(graph));
    }
    ETSTREAM_TRY(add_names_of_tensors());
    for (const auto& [key, named] : by_key_) {
      if (key.starts_with(kMetadataPrefix)) continue;
      const std::size_t known = out_.size();
      const std::size_t place = add_named(key, text("named data {}", quote(key)));
      if (place == known) out_[place].is_asked = false;
    }
    return std::move(out_);
  }

 private:
  struct Named {
    ByteSource data;
    std::optional<TensorLayout> layout;
    ByteSource key_place;
  };

  Result<void> read_keys() {
    ETSTREAM_ASSIGN(auto named, pte::read_named_data(program_.model()));
    for (pte::NamedPayload& each : named) {
      ETSTREAM_TRY(add_key(each.key, {std::move(each.data), {}, std::move(each.key_place)}));
    }
    for (const TensorDataFile* file : weights_) {
      ETSTREAM_ASSIGN(auto entries, file->entries());
      for (NamedTensorData& entry : entries) {
        ETSTREAM_TRY(
            add_key(entry.key, {std::move(entry.data), std::move(entry.layout), std::move(entry.key_place)}));
      }
    }
    return {};
  }

  /// Adds data under a key, which has no other: ExecuTorch would take one of them, and leave the other.
  Result<void> add_key(const std::string& key, Named named) {
    const auto [there, is_new] = by_key_.try_emplace(key);
    if (!is_new) {
      return error_in(ErrorCode::kUnsupported, named.data.name(), "key {}: expected once, found in {} too",
                      quote(key), there->second.data.name());
    }
    there->second = std::move(named);
    return {};
  }

  /// Adds a payload, unless its data is there. Returns its place.
  std::size_t add(WeightPayload payload) {
    const auto [there, is_new] = places_.try_emplace(payload.data.place(), out_.size());
    const std::string name = payload.name;
    if (is_new) {
      set_place(payload);
      out_.push_back(std::move(payload));
    } else if (!out_[there->second].layout && !out_[there->second].is_of_nibbles) {
      out_[there->second].layout = std::move(payload.layout);
    }
    out_[there->second].names.insert(name);
    return there->second;
  }

  void set_place(WeightPayload& payload) const {
    std::vector<const ByteSource*> files = {&program_.file()};
    for (const TensorDataFile* file : weights_) files.push_back(&file->file());
    for (const ByteSource* file : files) {
      const auto offset = payload.data.offset_in(*file);
      if (!offset) continue;
      payload.file = file->name();
      payload.offset = *offset;
    }
  }

  /// Adds the data of a key. Returns its place.
  std::size_t add_named(const std::string& key, std::string label) {
    const Named& named = by_key_.at(key);
    const std::size_t place =
        add({.label = std::move(label), .name = key, .data = named.data, .layout = named.layout});
    if (asked_.insert(key).second) add_hash(place, key, named.key_place);
    return place;
  }

  void add_hash(std::size_t place, std::string_view key, const ByteSource& characters) {
    const auto begin = hash_in(key);
    if (!begin) return;
    auto digits = characters.slice(*begin, kHashSize);
    if (digits) out_[place].hashes.push_back(*std::move(digits));
  }

  /// Adds the hashes in the program that are names of tensors in a tensor data file.
  Result<void> add_names_of_tensors() {
    const pte::Program& program = program_.model();
    const auto& fields = program.fields().extra_tensor_info;
    ETSTREAM_ASSIGN(const auto tensors, read_tensors(program));
    std::set<std::uint64_t> seen;  // tables, which tensors may share
    for (const ProgramTensor& tensor : tensors) {
      if (tensor.kind != TensorStorage::kExternal || !hash_in(tensor.name)) continue;
      if (!seen.insert(*tensor.extra_position).second) continue;
      ETSTREAM_ASSIGN(const TableView table, program.view().table(*tensor.extra_position));
      ETSTREAM_ASSIGN(
          const ByteSource characters,
          TableReader(program.view(), table, fields.index()).characters(fields.fully_qualified_name));
      add_hash(places_.at(by_key_.at(tensor.name).data.place()), tensor.name, characters);
    }
    return {};
  }

  Result<void> add_values(const ProgramGraph& graph) {
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
      const GraphValue& value = graph.values[i];
      const auto* tensor = std::get_if<TensorInfo>(&value.info);
      if (!tensor) continue;
      const std::string name = value.name.empty() ? text("value {}", i) : quote(value.name);
      const std::string content =
          value.name.empty() ? data_path("", value.storage, value.data_index) : value.name;
      const bool is_external = value.storage == TensorStorage::kExternal;
      if (is_external && !by_key_.contains(value.name))
        return missing(value.name, text("method {}", quote(graph.method)));
      if (is_external) {
        ++out_[add_named(value.name, text("tensor {}", name))].uses;
        continue;
      }
      if (value.data.size() == 0) continue;
      const std::string_view what = value.storage == TensorStorage::kConstant ? "constant" : "initial state";
      TensorLayout layout{tensor->scalar_type, tensor->sizes, tensor->dim_order};
      ++out_[add({.label = text("{} {} of method {}", what, name, quote(graph.method)),
                  .name = content,
                  .data = value.data,
                  .layout = std::move(layout)})]
            .uses;
    }
    return {};
  }

  Result<void> add_delegates(const ProgramGraph& graph) {
    for (std::size_t i = 0; i < graph.delegates.size(); ++i) {
      const GraphDelegate& delegate = graph.delegates[i];
      if (!delegates_.insert(delegate.data.place()).second) continue;
      ETSTREAM_TRY(budget_.spend(delegate.data.size()));
      const std::string asker =
          text("method {}, delegate {} ({})", quote(graph.method), i, printable(delegate.backend));
      const auto constants = constants_of(delegate, asker);
      if (!constants) return in_program(constants.error(), asker);
      if (*constants) {
        ETSTREAM_TRY(add_constants(delegate.data, **constants, asker));
      } else {
        static_cast<void>(add({.label = asker, .name = {}, .data = delegate.data, .is_opaque = true}));
      }
    }
    return {};
  }

  /// Returns an error in data that messages call `asker` as one in the program's file, and any other as it
  /// is.
  Error in_program(Error error, const std::string& asker) const {
    if (error.file != asker) return error;
    error.file = program_.file().name();
    error.offset.reset();  // as it is one in the delegate's data
    return about(std::move(error), program_.file().name());
  }

  /// Reads the constants of a delegate's graph; nothing if they can't be told from the rest of its data.
  static Result<std::optional<std::vector<PayloadConstant>>> constants_of(const GraphDelegate& delegate,
                                                                          const std::string& asker) {
    if (delegate.backend == kVulkanBackend) {
      ETSTREAM_ASSIGN(auto constants, read_vulkan_constants(delegate.data, asker));
      return std::optional(std::move(constants));
    }
    if (delegate.backend != kXnnpackBackend) return std::optional<std::vector<PayloadConstant>>();
    ETSTREAM_ASSIGN(XnnpackUses uses, read_xnnpack_uses(delegate.data, asker));
    if (!uses.has_header) return std::optional<std::vector<PayloadConstant>>();
    return std::optional(std::move(uses.constants));
  }

  Result<void> add_constants(const ByteSource& data, const std::vector<PayloadConstant>& constants,
                             const std::string& asker) {
    std::vector<std::size_t> places;
    for (const PayloadConstant& constant : constants) {
      const std::string label = text("{} in {}", constant.use.empty() ? "a constant" : constant.use, asker);
      if (constant.key.empty()) {
        ETSTREAM_ASSIGN(ByteSource bytes, data.slice(constant.position, constant.size));
        places.push_back(add({.label = label, .name = {}, .data = std::move(bytes)}));
      } else {
        if (!by_key_.contains(constant.key)) return missing(constant.key, asker);
        places.push_back(add_named(constant.key, label));
        ETSTREAM_ASSIGN(const ByteSource characters, data.slice(constant.position, constant.key.size()));
        add_hash(places.back(), constant.key, characters);
      }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const PayloadConstant& constant = constants[i];
      WeightPayload& payload = out_[places[i]];
      if (!payload.layout && constant.size == payload.data.size()) payload.layout = constant.layout;
      payload.is_of_nibbles = constant.is_of_nibbles;
      payload.is_calibrated = constant.is_calibrated;
      if (!payload.integers) payload.integers = constant.integers;
      if (constant.scales && !payload.scales) payload.scales = places[*constant.scales];
      payload.uses += constant.uses;
      for (const BiasUse& use : constant.bias_of) {
        payload.bias_of.push_back({places[use.filter], use.input_scale});
      }
    }
    return {};
  }

  [[nodiscard]] Error missing(const std::string& key, const std::string& asker) const {
    return error_in(ErrorCode::kNotFound, program_.file().name(),
                    "{}: expected {} in the program or in a tensor data file, found it in neither", asker,
                    quote(key));
  }

  const ProgramFile& program_;
  const std::vector<const TensorDataFile*>& weights_;
  FileBudget budget_;
  std::map<std::string, Named> by_key_;
  std::set<std::string> asked_;
  std::set<SourcePlace> delegates_;
  std::map<SourcePlace, std::size_t> places_;
  std::vector<WeightPayload> out_;
};

}  // namespace

Result<std::vector<WeightPayload>> read_weight_payloads(const ProgramFile& program,
                                                        const std::vector<const TensorDataFile*>& weights) {
  return PayloadReader(program, weights).run();
}

}  // namespace etstream
