// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1 hands XNNPACK pointers to constants, scales and lists without a check of their lengths
// (XNNCompiler.cpp), and uses the numbers of external tensors as those of arguments (XNNExecutor.cpp).
#include "formats/pte/backends/backend_payload.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/table_reader.h"

namespace etstream {
namespace {

constexpr std::uint32_t kNoId = 0xffffffff;          // XNN_INVALID_VALUE_ID
constexpr std::uint32_t kMostXnnpackDimensions = 6;  // XNN_MAX_TENSOR_DIMS
constexpr std::uint32_t kMostExternals = 4096;
constexpr std::uint32_t kInput = 1;   // XNN_VALUE_FLAG_EXTERNAL_INPUT
constexpr std::uint32_t kOutput = 2;  // XNN_VALUE_FLAG_EXTERNAL_OUTPUT
constexpr std::uint32_t kFromOutside = kInput | kOutput;
constexpr std::uint32_t kTransposedWeights = 1;  // XNN_FLAG_TRANSPOSE_WEIGHTS

/// Returns the bits of an element of a datatype, by its number; 0 for types that no constant has.
constexpr std::uint32_t kBits[] = {0, 32, 16, 8, 8, 32, 8, 32, 4, 8, 4, 0, 32, 0, 16};

/// A tensor of the graph.
struct GraphTensor {
  std::vector<std::uint32_t> dims;
  bool is_given = false;      // by a call, as a constant, or by a node before
  bool is_output = false;     // for a call
  bool is_read_only = false;  // a constant, or what a call gives
};

class GraphVerifier {
 public:
  GraphVerifier(const XnnpackPayload& payload, const NamedDataSizes& named_data, Findings& findings)
      : payload_(payload), known_(payload.fields), named_data_(named_data), findings_(findings) {}

  Result<std::vector<XnnpackArgument>> run() {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(payload_.graph));
    ETSTREAM_ASSIGN(externals_, root.scalar<std::uint32_t>(known_.xnn_graph.num_externs));
    if (externals_ > kMostExternals)
      error(root, text("at most {} num_externs", kMostExternals), text("{}", externals_));
    ETSTREAM_ASSIGN(constants_, root.tables(known_.xnn_graph.constant_data));
    for (const BoundField* list : {&known_.xnn_graph.xvalues, &known_.xnn_graph.xnodes}) {
      ETSTREAM_ASSIGN(const bool is_there, root.has(*list));
      if (!is_there) error(root, list->name(), "none");
    }
    ETSTREAM_TRY(
        for_each(root.tables(known_.xnn_graph.xvalues), [&](const TableReader& value) -> Result<void> {
          ETSTREAM_ASSIGN(const auto held, value.member(known_.x_value.xvalue_union));
          if (held) return verify_value(*held);
          error(value, "a tensor", "none");
          return {};
        }));
    ETSTREAM_TRY(for_each(root.tables(known_.xnn_graph.xnodes), [&](const TableReader& node) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, node.member(known_.x_node.xnode_union));
      if (held) return verify_node(*held);
      error(node, "a node", "none");
      return {};
    }));
    for (const auto& [id, value] : values_) {
      if (value.is_output && !value.is_given) {
        error(root, "a node that gives each tensor that is given to a call", text("none for {}", id));
      }
    }
    return std::move(arguments_);
  }

 private:
  void error(const TableReader& table, std::string_view expected, std::string_view found) {
    add_error(findings_, table.corrupt(expected, found));
  }

  /// Returns the number of elements of a tensor; nothing if they are too many to count.
  static std::optional<std::uint64_t> count(std::span<const std::uint32_t> dims) {
    std::uint64_t out = 1;
    for (const std::uint32_t size : dims) {
      const auto product = checked_multiply(out, std::uint64_t{size});
      if (!product) return std::nullopt;
      out = *product;
    }
    return out;
  }

  Result<void> verify_value(const TableReader& held) {
    const bool is_quantized = held.type() == known_.xnn_quantized_tensor_value.index();
    std::optional<TableReader> tensor = held;
    if (is_quantized) {
      ETSTREAM_ASSIGN(tensor, held.child(known_.xnn_quantized_tensor_value.tensor_value));
    }
    if (!tensor) {
      error(held, "a tensor_value", "none");
      return {};
    }
    ETSTREAM_ASSIGN(const auto vector, tensor->vector(known_.xnn_tensor_value.dims));
    if (vector && vector->count > kMostXnnpackDimensions) {
      error(*tensor, text("at most {} dims", kMostXnnpackDimensions), text("{}", vector->count));
      return {};
    }
    GraphTensor value;
    ETSTREAM_ASSIGN(value.dims, tensor->values<std::uint32_t>(known_.xnn_tensor_value.dims));
    ETSTREAM_ASSIGN(const auto datatype, tensor->scalar<std::int16_t>(known_.xnn_tensor_value.datatype));
    const bool is_known = datatype > 0 && std::cmp_less(datatype, std::size(kBits));
    if (!is_known)
      error(*tensor, text("a datatype from 1 to below {}", std::size(kBits)), text("{}", datatype));
    const std::uint32_t bits = is_known ? kBits[datatype] : 0;
    ETSTREAM_TRY(verify_place(*tensor, bits));
    ETSTREAM_ASSIGN(const auto buffer,
                    tensor->scalar<std::uint32_t>(known_.xnn_tensor_value.constant_buffer_idx));
    ETSTREAM_ASSIGN(const auto flags, tensor->scalar<std::uint32_t>(known_.xnn_tensor_value.flags));
    value.is_read_only = buffer != 0 || (flags & kInput) != 0;
    value.is_given = value.is_read_only;
    value.is_output = (flags & kOutput) != 0;
    if (buffer != 0 && bits != 0) ETSTREAM_TRY(verify_constant(*tensor, buffer, bytes_of(value.dims, bits)));
    if (is_quantized) ETSTREAM_TRY(verify_quantization(held, value, bits));
    ETSTREAM_ASSIGN(const auto id, tensor->scalar<std::uint32_t>(known_.xnn_tensor_value.id_out));
    values_.try_emplace(id, std::move(value));
    return {};
  }

  /// Returns the size of a tensor whose rows begin at whole bytes.
  static std::optional<std::uint64_t> bytes_of(std::span<const std::uint32_t> dims, std::uint32_t bits) {
    if (dims.empty()) return (bits + 7) / 8;
    const std::uint64_t row = (std::uint64_t{dims.back()} * bits + 7) / 8;
    const auto rows = count(dims.first(dims.size() - 1));
    return rows ? checked_multiply(*rows, row) : std::nullopt;
  }

  /// Notes which argument the tensor is, if it comes from outside.
  Result<void> verify_place(const TableReader& tensor, std::uint32_t bits) {
    ETSTREAM_ASSIGN(const auto flags, tensor.scalar<std::uint32_t>(known_.xnn_tensor_value.flags));
    ETSTREAM_ASSIGN(const auto id, tensor.scalar<std::uint32_t>(known_.xnn_tensor_value.external_id));
    if ((flags & ~kFromOutside) != 0)
      error(tensor, text("flags of {} at most", kFromOutside), text("{}", flags));
    if ((flags & kFromOutside) == 0) {
      if (id != kNoId) error(tensor, "flags of a tensor with an external_id", text("{}", flags));
      return {};
    }
    if (id >= externals_) {
      error(tensor, text("an external_id below {}", externals_), text("{}", id));
      return {};
    }
    const auto [there, is_new] = flags_.try_emplace(id, flags);
    if (is_new) arguments_.push_back({id, bits / 8});
    if (there->second != flags) {
      error(tensor, text("one tensor that is argument {}, or both read or written alike", id), "another");
    }
    return {};
  }

  /// Checks the constant that a tensor of `bytes` uses. `bytes` is empty if they are too many to count.
  Result<void> verify_constant(const TableReader& user, std::uint32_t index,
                               std::optional<std::uint64_t> bytes) {
    if (!payload_.has_header) return {};  // they are in the graph
    if (index >= constants_.size()) {
      error(user, text("a constant from 1 to below {}", constants_.size()), text("{}", index));
      return {};
    }
    ETSTREAM_ASSIGN(const TableReader constant, constants_.at(index));
    ETSTREAM_ASSIGN(const auto size, constant.scalar<std::uint64_t>(known_.constant_data_offset.size));
    if (!bytes || *bytes > size) {
      error(user, text("a tensor of at most the {} bytes of constant {}", size, index),
            bytes ? text("{}", *bytes) : "more");
    }
    ETSTREAM_ASSIGN(const auto key, constant.string(known_.constant_data_offset.named_key));
    if (key && !is_utf8(*key)) error(constant, "a named_key in UTF-8", quote(*key));
    if (key) {
      // Data that the program lacks comes from a file, and the check of that file covers it.
      const auto named = named_data_.find(*key);
      if (named != named_data_.end() && named->second < size) {
        error(constant, text("named data {} of {} bytes", quote(*key), size), text("{}", named->second));
      }
      return {};
    }
    ETSTREAM_ASSIGN(const auto offset, constant.scalar<std::uint64_t>(known_.constant_data_offset.offset));
    if (!range_fits(offset, size, payload_.constants_size)) {
      error(constant, text("a constant inside the {} bytes behind the graph", payload_.constants_size),
            text("{} bytes at {}", size, offset));
    }
    return {};
  }

  Result<void> verify_quantization(const TableReader& held, const GraphTensor& value, std::uint32_t bits) {
    ETSTREAM_ASSIGN(const auto params, held.member(known_.xnn_quantized_tensor_value.quant_params));
    if (!params) {
      error(held, known_.xnn_quantized_tensor_value.quant_params.name(), "none");
      return {};
    }
    const bool by_group = params->type() == known_.per_channel_group_quant.index();
    if (!by_group && params->type() != known_.per_channel_quant.index()) return {};
    const auto scaled = by_group ? xnnpack::ScaleFields(known_.per_channel_group_quant)
                                 : xnnpack::ScaleFields(known_.per_channel_quant);
    ETSTREAM_ASSIGN(const auto channel, params->scalar<std::int32_t>(scaled.channel_dim));
    if (channel < 0 || std::cmp_greater_equal(channel, value.dims.size())) {
      error(*params, text("a channel_dim from 0 to below {}", value.dims.size()), text("{}", channel));
      return {};
    }
    std::uint64_t scales = value.dims[static_cast<std::size_t>(channel)];
    if (by_group) {
      ETSTREAM_ASSIGN(const auto group,
                      params->scalar<std::int32_t>(known_.per_channel_group_quant.group_size));
      if (group <= 0 || value.dims.size() < 2 || bits != 4) {
        error(*params, "4-bit rows in groups of at least 1", text("groups of {}", group));
        return {};
      }
      scales = std::uint64_t{value.dims[0]} * value.dims[1] / static_cast<std::uint64_t>(group);
    }
    ETSTREAM_ASSIGN(const auto index, params->scalar<std::uint32_t>(scaled.scale_buffer_idx));
    if (index != 0) {
      return verify_constant(*params, index, checked_multiply(scales, std::uint64_t{by_group ? 2U : 4U}));
    }
    ETSTREAM_ASSIGN(const auto there, params->vector(scaled.scale));
    if (!there || there->count < scales) {
      error(*params, text("{} scales", scales), there ? text("{}", there->count) : "none");
    }
    return {};
  }

  /// Returns the tensor with this id; null if there is none.
  const GraphTensor* find(std::uint32_t id) const {
    const auto found = values_.find(id);
    return found == values_.end() ? nullptr : &found->second;
  }

  Result<void> verify_node(const TableReader& node) {
    const xnnpack::NodeFields& fields = known_.nodes[node.type()];
    for (const BoundField& field : fields.ids) {
      ETSTREAM_ASSIGN(const auto id, node.scalar<std::uint32_t>(field));
      if (id == kNoId) continue;
      const auto found = values_.find(id);
      if (found == values_.end()) {
        error(node, text("{} of a tensor", field.name()), text("{}", id));
      } else if (!found->second.is_given && !xnnpack::NodeFields::is_output(field)) {
        error(node, text("an {} of a tensor that a node before it, a constant or a call gives", field.name()),
              text("{}", id));
      }
    }
    for (const BoundField& field : fields.outputs) {
      ETSTREAM_ASSIGN(const auto id, node.scalar<std::uint32_t>(field));
      const auto found = values_.find(id);
      if (found == values_.end()) continue;
      if (found->second.is_read_only)
        error(node, text("{} of a tensor that can be written", field.name()), text("{}", id));
      found->second.is_given = true;
    }
    for (const BoundField& field : fields.lists) ETSTREAM_TRY(verify_list(node, fields, field));
    if (node.type() == known_.xnn_fully_connected.index()) return verify_linear(node);
    return node.type() == known_.xnn_node_conv.index() ? verify_convolution(node) : Result<void>();
  }

  /// Checks that a list is as long as the node says at least, or as its input has dimensions.
  Result<void> verify_list(const TableReader& node, const xnnpack::NodeFields& fields,
                           const BoundField& field) {
    ETSTREAM_ASSIGN(const auto list, node.vector(field));
    std::uint64_t length = 0;
    if (fields.dimensions) {
      ETSTREAM_ASSIGN(length, node.scalar<std::uint32_t>(*fields.dimensions));
    } else if (fields.input) {
      ETSTREAM_ASSIGN(const auto input, node.scalar<std::uint32_t>(*fields.input));
      if (const GraphTensor* const value = find(input)) length = value->dims.size();
    }
    if (list && list->count >= length && length <= kMostXnnpackDimensions) return {};
    error(node, text("{} of {} dimensions or more, at most {}", field.name(), length, kMostXnnpackDimensions),
          list ? text("{}", list->count) : "none");
    return {};
  }

  /// Checks that a bias has an element for each of the channels.
  Result<void> verify_bias(const TableReader& node, const BoundField& field, std::uint64_t channels) {
    ETSTREAM_ASSIGN(const auto id, node.scalar<std::uint32_t>(field));
    const GraphTensor* bias = find(id);
    if (!bias) return {};
    const auto there = count(bias->dims);
    if (!there || *there < channels) {
      error(node, text("a bias of {} elements", channels), text("{}", there.value_or(0)));
    }
    return {};
  }

  Result<void> verify_linear(const TableReader& node) {
    ETSTREAM_ASSIGN(const auto filter, node.scalar<std::uint32_t>(known_.xnn_fully_connected.filter_id));
    ETSTREAM_ASSIGN(const auto flags, node.scalar<std::uint32_t>(known_.xnn_fully_connected.flags));
    const GraphTensor* weights = find(filter);
    if (!weights || weights->dims.size() != 2) {
      error(node, "a filter of 2 dimensions", weights ? text("{}", weights->dims.size()) : "none");
      return {};
    }
    return verify_bias(node, known_.xnn_fully_connected.bias_id,
                       weights->dims[(flags & kTransposedWeights) != 0 ? 1 : 0]);
  }

  Result<void> verify_convolution(const TableReader& node) {
    // The product of the factors is the number of the filter's elements, that of the first two the channels'.
    const auto& fields = known_.xnn_node_conv;
    std::vector<std::uint32_t> factors;
    for (const BoundField& factor : {fields.groups, fields.group_output_channels, fields.kernel_height,
                                     fields.kernel_width, fields.group_input_channels}) {
      ETSTREAM_ASSIGN(factors.emplace_back(), node.scalar<std::uint32_t>(factor));
    }
    ETSTREAM_ASSIGN(const auto filter, node.scalar<std::uint32_t>(known_.xnn_node_conv.filter_id));
    const GraphTensor* weights = find(filter);
    const auto there = weights ? count(weights->dims) : std::nullopt;
    const auto wanted = count(factors);
    if (!wanted || *wanted == 0 || !there || *there < *wanted) {
      error(node, text("a filter of {} elements, more than none", wanted.value_or(0)),
            text("{}", there.value_or(0)));
      return {};
    }
    return verify_bias(node, known_.xnn_node_conv.bias_id, std::uint64_t{factors[0]} * factors[1]);
  }

  const XnnpackPayload& payload_;
  const xnnpack::Fields& known_;
  const NamedDataSizes& named_data_;
  Findings& findings_;
  std::uint32_t externals_ = 0;
  TableList constants_;
  std::map<std::uint32_t, GraphTensor> values_;   // by their ids
  std::map<std::uint32_t, std::uint32_t> flags_;  // by external ids
  std::vector<XnnpackArgument> arguments_;
};

}  // namespace

Result<std::vector<XnnpackArgument>> verify_xnnpack(const ByteSource& payload, const std::string& name,
                                                    const NamedDataSizes& named_data, Findings& findings) {
  auto verified = [&]() -> Result<std::vector<XnnpackArgument>> {
    ETSTREAM_ASSIGN(const XnnpackPayload opened, open_xnnpack(payload, name));
    return GraphVerifier(opened, named_data, findings).run();
  }();
  if (verified) return verified;
  ETSTREAM_TRY(note_corrupt(verified.error(), findings));
  return std::vector<XnnpackArgument>();
}

}  // namespace etstream
