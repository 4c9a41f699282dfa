// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/backend_payload.h"
#include "xnnpack_graph_bfbs_generated.h"

namespace etstream {
namespace {

/// The header at offset 4, where a flatbuffer has its identifier: magic, u16 length, u32 offset and u32 size
/// of the graph, u32 offset and u64 size of the constant data behind it
/// (backends/xnnpack/runtime/XNNHeader.cpp of ExecuTorch 1.5.1).
constexpr std::size_t kMagicPosition = 4;
constexpr std::size_t kHeaderSize = 30;
constexpr std::size_t kGraphPosition = 10;
constexpr std::size_t kConstantsPosition = 18;

/// Refuses a graph or constants that are not inside the payload, or not one behind the other.
Result<void> check_places(const ByteSource& payload, const PayloadPart& graph, const PayloadPart& constants,
                          const std::string& name) {
  const auto corrupt = [&](std::uint64_t position, std::string_view what, const PayloadPart& found) {
    return unexpected(ErrorCode::kCorrupt, {name, position}, "{} inside {}, found {} bytes from {} on", what,
                      counted(payload.size(), "byte"), found.size, found.offset);
  };
  if (!range_fits(graph.offset, graph.size, payload.size())) return corrupt(kGraphPosition, "a graph", graph);
  if (!range_fits(constants.offset, constants.size, payload.size()) ||
      constants.offset < graph.offset + graph.size) {
    return corrupt(kConstantsPosition, "constants behind the graph and", constants);
  }
  return {};
}

/// Refuses other versions of the graph. Version XN00 lacks some fields, none of which is read.
Result<void> check_identifier(const ByteSource& graph, const std::string& name) {
  std::array<char, 4> identifier{};
  std::string_view found;
  if (range_fits(kMagicPosition, identifier.size(), graph.size())) {
    ETSTREAM_TRY(graph.read_at(kMagicPosition, std::as_writable_bytes(std::span(identifier))));
    found = std::string_view(identifier.data(), identifier.size());
  }
  if (found == "XN00" || found == "XN01") return {};
  return unexpected(ErrorCode::kCorrupt, {name, kMagicPosition},
                    "the identifier of XNNPACK's graph (XN00, XN01), found {}", quote(found));
}

/// Returns the constants outside of the payload that ExecuTorch 1.5.1 asks for when it loads it, in that
/// order, with their sizes.
Result<std::vector<NamedDataRequest>> constants_in(const XnnpackPayload& payload) {
  const xnnpack::Fields& fields = payload.fields;
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(payload.graph));
  ETSTREAM_ASSIGN(const TableList listed, root.tables(fields.xnn_graph.constant_data));
  std::vector<NamedDataRequest> out;
  for (std::uint32_t i = 1; i < listed.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader constant, listed.at(i));
    ETSTREAM_ASSIGN(auto key, constant.string(fields.constant_data_offset.named_key));
    if (!key) continue;
    ETSTREAM_ASSIGN(const auto size, constant.scalar<std::uint64_t>(fields.constant_data_offset.size));
    out.push_back({std::move(*key), size});
  }
  return out;
}

}  // namespace

Result<XnnpackPayload> open_xnnpack(const ByteSource& payload, const std::string& name) {
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<xnnpack_graph::XNNGraphBinarySchema>());
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kHeaderSize, name));
  if (!header.check_size()) {
    return unexpected(ErrorCode::kCorrupt, {name, 0}, "XNNPACK's header of {} bytes, found {}", kHeaderSize,
                      payload.size());
  }
  const bool has_header = header.has(kMagicPosition, "XH00");
  ByteSource graph = payload;
  PayloadPart place;
  PayloadPart constants;
  if (has_header) {
    place = {"graph", header.number<std::uint32_t>(kGraphPosition),
             header.number<std::uint32_t>(kGraphPosition + 4)};
    constants = {"constants", header.number<std::uint32_t>(kConstantsPosition),
                 header.number<std::uint64_t>(kConstantsPosition + 4)};
    ETSTREAM_TRY(check_places(payload, place, constants, name));
    ETSTREAM_ASSIGN(graph, payload.slice(place.offset, place.size));
  }
  ETSTREAM_TRY(check_identifier(graph, name));
  ETSTREAM_ASSIGN(FlatbufferView view, FlatbufferView::open(*schema, std::move(graph), name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  static const xnnpack::Fields kFields(*schema);
  return XnnpackPayload{std::move(view), kFields, has_header, constants.offset, constants.size, place.offset};
}

Result<std::optional<BackendPayload>> read_xnnpack_payload(const ByteSource& payload,
                                                           const std::string& name) {
  ETSTREAM_ASSIGN(const XnnpackPayload opened, open_xnnpack(payload, name));
  BackendPayload out{opened.has_header ? "a graph (XH00)" : "a graph"};
  out.parts.push_back({"graph", opened.graph_offset, opened.graph.file().size()});
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(opened.graph));
  ETSTREAM_ASSIGN(const TableList nodes, root.tables(opened.fields.xnn_graph.xnodes));
  out.facts.push_back({"nodes", std::int64_t{nodes.size()}});
  if (opened.has_header) {
    out.parts.push_back({"constants", opened.constants_offset, opened.constants_size});
    ETSTREAM_ASSIGN(out.requests, constants_in(opened));
  }
  return std::optional(std::move(out));
}

namespace {

/// Returns the element type of a datatype, by its number; nothing for types that no constant has. Types of
/// four bits are bytes here.
constexpr std::optional<ScalarType> kTypes[] = {
    std::nullopt,       ScalarType::kFloat32, ScalarType::kFloat16, ScalarType::kInt8,
    ScalarType::kUInt8, ScalarType::kInt32,   ScalarType::kInt8,    ScalarType::kInt32,
    ScalarType::kUInt8, ScalarType::kInt8,    ScalarType::kUInt8,   ScalarType::kInt8,
    ScalarType::kInt32, ScalarType::kFloat32, ScalarType::kBFloat16};
constexpr std::size_t kMostXnnpackSizes = 6;   // XNN_MAX_TENSOR_DIMS
constexpr std::int16_t kNibblesByChannel = 8;  // xnn_datatype_qcint4
constexpr std::int16_t kNibblesByGroup = 10;   // xnn_datatype_qbint4

/// Returns the layout of `size` bytes as a list of elements of this type.
std::optional<TensorLayout> list_of_size(ScalarType type, std::uint64_t size) {
  const std::uint64_t count = size / item_size(type);
  if (std::cmp_greater(count, std::numeric_limits<std::int32_t>::max())) return std::nullopt;
  return layout_of_size(type, {static_cast<std::uint32_t>(count)}, size);
}

class UseReader {
 public:
  explicit UseReader(const XnnpackPayload& payload) : payload_(payload), known_(payload.fields) {}

  Result<XnnpackUses> run() {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(payload_.graph));
    ETSTREAM_TRY(for_each(root.tables(known_.xnn_graph.constant_data),
                          [&](const TableReader& constant, std::uint32_t i) -> Result<void> {
                            // The first is a placeholder.
                            return i == 0 ? Result<void>() : add_constant(constant, i);
                          }));
    ETSTREAM_TRY(
        for_each(root.tables(known_.xnn_graph.xvalues), [&](const TableReader& value) -> Result<void> {
          ETSTREAM_ASSIGN(const auto held, value.member(known_.x_value.xvalue_union));
          return held ? add_value(*held) : Result<void>();
        }));
    ETSTREAM_TRY(for_each(root.tables(known_.xnn_graph.xnodes),
                          [&](const TableReader& node, std::uint32_t i) { return add_node(node, i); }));
    return XnnpackUses{true, std::move(out_)};
  }

 private:
  Result<void> add_constant(const TableReader& constant, std::uint32_t number) {
    ETSTREAM_ASSIGN(auto key, constant.string(known_.constant_data_offset.named_key));
    ETSTREAM_ASSIGN(const auto size, constant.scalar<std::uint64_t>(known_.constant_data_offset.size));
    std::uint64_t position = 0;
    if (key && !key->empty()) {
      ETSTREAM_ASSIGN(const auto characters, constant.vector(known_.constant_data_offset.named_key));
      position = payload_.graph_offset + characters->elements();
    } else {
      ETSTREAM_ASSIGN(const auto offset, constant.scalar<std::uint64_t>(known_.constant_data_offset.offset));
      if (!range_fits(offset, size, payload_.constants_size)) return {};
      position = payload_.constants_offset + offset;
    }
    places_[number] = out_.size();
    out_.push_back({key.value_or(""), position, size});
    return {};
  }

  /// Adds scales that lie in the graph.
  std::size_t add_scales(std::uint64_t position, std::uint64_t size) {
    out_.push_back({"", payload_.graph_offset + position, size});
    return out_.size() - 1;
  }

  /// Returns the place of the constant of this number; nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> find(std::uint32_t number) const {
    const auto found = places_.find(number);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

  Result<void> add_value(const TableReader& held) {
    const bool is_quantized = held.type() == known_.xnn_quantized_tensor_value.index();
    std::optional<TableReader> tensor = held;
    if (is_quantized) {
      ETSTREAM_ASSIGN(tensor, held.child(known_.xnn_quantized_tensor_value.tensor_value));
    }
    if (!tensor) return {};
    ETSTREAM_ASSIGN(const auto id, tensor->scalar<std::uint32_t>(known_.xnn_tensor_value.id_out));
    ETSTREAM_ASSIGN(const auto number,
                    tensor->scalar<std::uint32_t>(known_.xnn_tensor_value.constant_buffer_idx));
    const auto constant = find(number);
    if (!constant) return is_quantized ? note_scale(held, id) : Result<void>();
    ETSTREAM_ASSIGN(const auto dims, tensor->values<std::uint32_t>(known_.xnn_tensor_value.dims));
    of_value_[id] = *constant;
    ETSTREAM_TRY(set_layout(*tensor, dims, out_[*constant]));
    if (!is_quantized || dims.size() > kMostXnnpackSizes) return {};
    ETSTREAM_ASSIGN(const auto params, held.member(known_.xnn_quantized_tensor_value.quant_params));
    return params ? add_scaling(*params, dims, *constant) : Result<void>();
  }

  /// Adds the scale of a value that is no constant, if it has one for all of it.
  Result<void> note_scale(const TableReader& held, std::uint32_t id) {
    ETSTREAM_ASSIGN(const auto params, held.member(known_.xnn_quantized_tensor_value.quant_params));
    if (!params || params->type() != known_.per_tensor_quant.index()) return {};
    ETSTREAM_ASSIGN(scale_of_value_[id], params->scalar<float>(known_.per_tensor_quant.scale));
    ETSTREAM_ASSIGN(const auto position, params->position_of(known_.per_tensor_quant.scale));
    if (!position) return {};
    PayloadConstant& scale = out_[add_scales(*position, sizeof(float))];
    scale.use = text("scale of value {}", id);
    scale.layout = list_of_size(ScalarType::kFloat32, sizeof(float));
    scale.is_calibrated = true;
    return {};
  }

  /// Notes the scales of a constant of these dimensions.
  Result<void> add_scaling(const TableReader& params, const std::vector<std::uint32_t>& dims,
                           std::size_t constant) {
    ScaledIntegers integers{dims};
    std::optional<std::size_t> scales;
    ScalarType type = ScalarType::kFloat32;
    if (params.type() == known_.per_tensor_quant.index()) {
      ETSTREAM_ASSIGN(const auto position, params.position_of(known_.per_tensor_quant.scale));
      if (position) scales = add_scales(*position, sizeof(float));
    } else {
      const bool by_group = params.type() == known_.per_channel_group_quant.index();
      if (!by_group && params.type() != known_.per_channel_quant.index()) return {};
      const auto fields = by_group ? xnnpack::ScaleFields(known_.per_channel_group_quant)
                                   : xnnpack::ScaleFields(known_.per_channel_quant);
      integers.has_channels = true;
      ETSTREAM_ASSIGN(integers.channel_dim, params.scalar<std::uint32_t>(fields.channel_dim));
      if (by_group) {
        ETSTREAM_ASSIGN(integers.group,
                        params.scalar<std::uint32_t>(known_.per_channel_group_quant.group_size));
      }
      ETSTREAM_ASSIGN(const auto number, params.scalar<std::uint32_t>(fields.scale_buffer_idx));
      scales = find(number);
      if (scales && by_group) type = ScalarType::kBFloat16;
      if (!scales) {
        ETSTREAM_ASSIGN(const auto inline_scales, params.vector(fields.scale));
        if (inline_scales) {
          scales = add_scales(inline_scales->elements(), inline_scales->count * sizeof(float));
        }
      }
    }
    if (!scales) return {};
    PayloadConstant& of = out_[*scales];
    of.layout = list_of_size(type, of.size);
    of.integers = integers;
    out_[constant].integers = std::move(integers);
    out_[constant].scales = scales;
    return {};
  }

  Result<void> set_layout(const TableReader& tensor, const std::vector<std::uint32_t>& dims,
                          PayloadConstant& constant) {
    ETSTREAM_ASSIGN(const auto datatype, tensor.scalar<std::int16_t>(known_.xnn_tensor_value.datatype));
    if (datatype < 0 || std::cmp_greater_equal(datatype, std::size(kTypes)) || !kTypes[datatype]) return {};
    constant.is_of_nibbles = datatype == kNibblesByChannel || datatype == kNibblesByGroup;
    if (constant.is_of_nibbles) {
      constant.layout = list_of_size(*kTypes[datatype], constant.size);
      return {};
    }
    if (dims.size() <= kMostXnnpackSizes) {
      constant.layout = layout_of_size(*kTypes[datatype], dims, constant.size);
    }
    return {};
  }

  /// Notes a node as the reader of the constants that it reads, unless an earlier node is.
  Result<void> add_node(const TableReader& node, std::uint32_t number) {
    ETSTREAM_ASSIGN(const auto held, node.member(known_.x_node.xnode_union));
    if (!held) return {};
    ETSTREAM_ASSIGN(const auto kind, node.member_name(known_.x_node.xnode_union));
    for (const BoundField& field : known_.nodes[held->type()].ids) {
      if (xnnpack::NodeFields::is_output(field)) continue;
      ETSTREAM_ASSIGN(const auto place, place_of(*held, field));
      if (!place) continue;
      const std::string_view role = std::string_view(field.name()).substr(0, field.name().rfind('_'));
      const std::string use = text("{} of {} {}", role, kind, number);
      PayloadConstant& data = out_[*place];
      ++data.uses;
      if (data.use.empty()) data.use = use;
      if (data.scales && out_[*data.scales].use.empty()) out_[*data.scales].use = text("scales of {}", use);
    }
    return note_bias(*held);
  }

  /// Returns the place of the constant that the node has as the tensor of `field`.
  Result<std::optional<std::size_t>> place_of(const TableReader& node, const BoundField& field) {
    ETSTREAM_ASSIGN(const auto id, node.scalar<std::uint32_t>(field));
    const auto value = of_value_.find(id);
    return value == of_value_.end() ? std::optional<std::size_t>() : std::optional(value->second);
  }

  /// Notes the filter that the node adds its bias to, if it has both.
  Result<void> note_bias(const TableReader& node) {
    const xnnpack::NodeFields& fields = known_.nodes[node.type()];
    if (!fields.filter || !fields.bias) return {};
    ETSTREAM_ASSIGN(const auto filter, place_of(node, *fields.filter));
    ETSTREAM_ASSIGN(const auto bias, place_of(node, *fields.bias));
    if (!filter || !bias) return {};
    BiasUse& use = out_[*bias].bias_of.emplace_back(BiasUse{*filter});
    ETSTREAM_ASSIGN(const auto input, node.scalar<std::uint32_t>(*fields.first_input));
    const auto scale = scale_of_value_.find(input);
    if (scale != scale_of_value_.end()) use.input_scale = scale->second;
    return {};
  }

  const XnnpackPayload& payload_;
  const xnnpack::Fields& known_;
  std::vector<PayloadConstant> out_;
  std::map<std::uint32_t, std::size_t> places_;    // in `out_`, by number
  std::map<std::uint32_t, std::size_t> of_value_;  // the place of a value's constant, by its id
  std::map<std::uint32_t, float> scale_of_value_;  // by the id
};

}  // namespace

Result<XnnpackUses> read_xnnpack_uses(const ByteSource& payload, const std::string& name) {
  ETSTREAM_ASSIGN(const XnnpackPayload opened, open_xnnpack(payload, name));
  if (!opened.has_header) return XnnpackUses();
  return UseReader(opened).run();
}

}  // namespace etstream
