// SPDX-License-Identifier: BSD-3-Clause
//
// The data of delegates: how payloads of each backend are read, as far as their own headers tell what they
// are, the constants that their graphs have, the data that a program asks for by name when its methods are
// loaded, and the delegates that ask for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "flatbuffer/flatbuffer_view.h"
#include "formats/pte/program_model.h"
#include "formats/tensor/dimensions.h"
#include "xnnpack_graph_fields_generated.h"

namespace etstream::xnnpack {

/// The fields of XNNPACK's graphs (schema/xnnpack_graph.fbs): those of scales by channel, and by groups of a
/// channel's elements.
struct ScaleFields {
  template <class Table>
  ScaleFields(const Table& table)  // NOLINT: converts
      : scale(table.scale), channel_dim(table.channel_dim), scale_buffer_idx(table.scale_buffer_idx) {}
  BoundField scale;
  BoundField channel_dim;
  BoundField scale_buffer_idx;
};

/// The fields of a node of any kind.
struct NodeFields {
  [[nodiscard]] static bool is_output(const BoundField& field) { return field.name().starts_with("output"); }

  std::vector<BoundField> ids;  // of tensors, outputs among them
  std::vector<BoundField> outputs;
  std::vector<BoundField> lists;         // with an entry a dimension
  std::optional<BoundField> dimensions;  // how many
  std::optional<BoundField> input;       // has as many, where the node does not say how many
  std::optional<BoundField> first_input;
  std::optional<BoundField> filter;  // weights that XNNPACK packs
  std::optional<BoundField> bias;    // packed with them
};

/// The fields of all tables, bound to a schema, which outlives them.
struct Fields : xnnpack_graph::Fields {
  explicit Fields(const Schema& schema) : xnnpack_graph::Fields(schema) {
    for (std::size_t table = 0; table < schema.tables().size(); ++table) {
      NodeFields& node = nodes.emplace_back();
      for (std::size_t i = 0; i < schema.tables()[table].fields.size(); ++i) {
        const BoundField field{&schema, table, i};
        const bool is_id = field.name().ends_with("_id");
        if (is_id) node.ids.push_back(field);
        if (is_id && NodeFields::is_output(field)) node.outputs.push_back(field);
        if (field.type().kind == FieldKind::kInlineVector) node.lists.push_back(field);
        if (field.name() == xnn_static_reshape.num_dims.name()) node.dimensions = field;
        if (field.name() == xnn_static_reshape.input_id.name()) node.input = field;
        if (field.name() == xnn_fully_connected.input1_id.name()) node.first_input = field;
        if (field.name() == xnn_fully_connected.filter_id.name()) node.filter = field;
        if (field.name() == xnn_fully_connected.bias_id.name()) node.bias = field;
      }
    }
  }
  std::vector<NodeFields> nodes;  // by their tables
};

}  // namespace etstream::xnnpack

namespace etstream {

/// A tensor of integers, each of which stands for its product with a scale.
struct ScaledIntegers {
  std::vector<std::uint32_t> sizes;  // by dimension
  std::uint32_t channel_dim = 0;     // the dimension whose indices have scales of their own
  std::uint32_t group = 0;           // how many integers of a channel share a scale; 0 for all of them
  bool has_channels = false;         // or one scale is for all
};

/// A node that adds a bias to the product with a filter.
struct BiasUse {
  std::size_t filter = 0;                 // its place
  std::optional<float> input_scale = {};  // of the node's input, if one is for all of it

  bool operator==(const BiasUse&) const = default;
};

/// A constant that a graph asks for by a key, or that lies in the payload.
struct PayloadConstant {
  std::string key;             // empty for one in the payload
  std::uint64_t position = 0;  // where the key's characters are in the payload, or the constant, in bytes
  std::uint64_t size = 0;      // in bytes
  std::string use = {};        // "filter of XNNFullyConnected 3"; empty where no node reads it
  /// The layout of its elements; nothing if the graph does not say it, or says one that does not fit `size`.
  std::optional<TensorLayout> layout = {};
  bool is_calibrated = false;  // the scale of a value that is computed
  bool is_of_nibbles = false;  // two elements a byte, the first in the low half; `layout` is of the bytes
  std::optional<ScaledIntegers> integers = {};  // that it holds, or whose scales it holds
  std::optional<std::size_t> scales = {};       // the place of their scales among the constants
  std::size_t uses = 0;                         // how often nodes read it
  std::vector<BiasUse> bias_of = {};            // those of the uses that are as a bias
};

/// Returns the layout of contiguous data of these sizes, if it takes `size` bytes.
[[nodiscard]] inline std::optional<TensorLayout> layout_of_size(ScalarType type,
                                                                const std::vector<std::uint32_t>& sizes,
                                                                std::uint64_t size) {
  auto out = contiguous_layout(type, std::vector<std::uint64_t>(sizes.begin(), sizes.end()));
  if (!out) return std::nullopt;
  const auto bytes = byte_size(type, out->sizes);
  if (!bytes || *bytes != size) return std::nullopt;
  return out;
}

/// The backend's id.
inline constexpr std::string_view kXnnpackBackend = "XnnpackBackend";

/// A payload that was opened: its graph, of the schema in xnnpack_graph.fbs.
struct XnnpackPayload {
  FlatbufferView graph;
  const xnnpack::Fields& fields;       // of its schema
  bool has_header = false;             // or all constants are in the graph
  std::uint64_t constants_offset = 0;  // of what is behind the graph, in the payload, in bytes
  std::uint64_t constants_size = 0;    // in bytes
  std::uint64_t graph_offset = 0;      // in the payload, in bytes
};

/// Opens a payload and checks the graph's structure. `name` is what messages call it. Errors: kCorrupt,
/// naming offset, expected and found; kIo.
[[nodiscard]] Result<XnnpackPayload> open_xnnpack(const ByteSource& payload, const std::string& name);

/// Named data that a payload asks for.
struct NamedDataRequest {
  std::string key;
  std::optional<std::uint64_t> size;  // in bytes, where the payload says it
};

/// A tensor that a call passes.
struct XnnpackArgument {
  std::uint32_t number = 0;  // among the call's arguments
  std::uint32_t width = 0;   // the bytes of an element; 0 where they can't be told
};

/// The bytes of the named data that a program has itself, by key.
using NamedDataSizes = std::map<std::string, std::uint64_t>;

/// Adds to `findings` the parts of `payload` that ExecuTorch 1.5.1 would refuse, or crash on: tensors whose
/// constants or scales are incomplete, or are smaller than needed in the program's own named data; nodes of
/// tensors that don't exist. Constants themselves are not read. Returns the tensors that calls pass, as far
/// as the graph is sound. `name` is what messages call it. Memory: 48 bytes a tensor. Time: in proportion to
/// the graph's size. Errors: those of reading except kCorrupt, which is a finding.
[[nodiscard]] Result<std::vector<XnnpackArgument>> verify_xnnpack(const ByteSource& payload,
                                                                  const std::string& name,
                                                                  const NamedDataSizes& named_data,
                                                                  Findings& findings);

struct XnnpackUses {
  bool has_header = false;  // or the constants are in the graph, and none is listed
  /// In the payload's order; behind them, scales that lie in the graph.
  std::vector<PayloadConstant> constants;
};

/// Reads the constants that `payload` asks for or holds, if it has a header: older ones have constants in the
/// graph. `name` is what messages call it. Memory: that of the keys, 300 bytes a constant. Time: in
/// proportion to the graph's size. Errors: those of open_xnnpack(); kTooLarge
/// for a key over 1 MiB.
[[nodiscard]] Result<XnnpackUses> read_xnnpack_uses(const ByteSource& payload, const std::string& name);

/// The backend's id, which WebGPU's has too.
inline constexpr std::string_view kVulkanBackend = "VulkanBackend";

/// Reads the constants that `payload` asks for or holds, with the layouts of the tensors that they are, in
/// the payload's order. `name` is what messages call it. Memory: that of the keys, and 300 bytes a constant.
/// Time: in proportion to the graph's size. Errors: kCorrupt, naming offset, expected and found, also for
/// another beginning; kTooLarge for a key over 1 MiB; kIo.
[[nodiscard]] Result<std::vector<PayloadConstant>> read_vulkan_constants(const ByteSource& payload,
                                                                         const std::string& name);

/// The backend's id.
inline constexpr std::string_view kEthosUBackend = "EthosUBackend";

struct EthosUBlock {
  std::string name;          // "cmd_data"
  std::uint64_t offset = 0;  // of its data in the payload, in bytes
  std::uint32_t size = 0;    // of its data, in bytes, without padding
  std::string key;           // of the named data that has its content; empty if the payload has it
};

/// An input or output, and its place in the memory for working data.
struct EthosUTensor {
  std::array<std::int32_t, 6> shape{};
  std::int32_t element_size = 0;  // in bytes
  std::int32_t offset = 0;        // in bytes
  std::int32_t region = 0;
};

/// A stream of blocks that Arm's compiler makes for Ethos-U processors: a name of 16 bytes, u32 size, a byte
/// that is 1 if the data is the key of named data, 11 reserved bytes, and data up to a multiple of 16
/// (backends/arm/arm_vela.py and backends/arm/runtime/VelaBinStream.cpp of ExecuTorch 1.5.1).
/// The fields are those of the last block of a name, which ExecuTorch uses. A field is empty where the stream
/// has no such block, or where the block's content is named data.
struct EthosUPayload {
  std::vector<EthosUBlock> blocks;            // also the empty ones that begin and end the stream
  std::optional<std::uint32_t> command_size;  // of the processor's commands, in bytes
  std::optional<std::uint32_t> weight_size;   // in bytes
  std::optional<std::uint32_t> scratch_size;  // of the memory for working data, in bytes
  std::vector<EthosUTensor> inputs;
  std::vector<EthosUTensor> outputs;
};

/// Reads a stream as ExecuTorch 1.5.1 does. `name` is what messages call it. Weights and commands are not
/// read, but for the 4 bytes that commands begin with. Memory: at most 2 MiB for each of the blocks, the
/// inputs and the outputs, of up to 16384 blocks and 32768 tensors each. Errors: kCorrupt, naming offset,
/// expected and found; kIo.
[[nodiscard]] Result<EthosUPayload> read_ethos_u(const ByteSource& payload, const std::string& name);

struct BackendPayload {
  std::string what;  // "a graph (VH00)"
  std::vector<PayloadPart> parts = {};
  std::vector<PayloadFact> facts = {};
  std::vector<NamedDataRequest> requests = {};
  bool tells_requests = true;  // or it may have any
};

/// Reads a payload of the backend with this id. Returns nothing for unknown backends, and for payloads that
/// begin in another way. `name` is what messages call it. Memory: that of the parts, facts and keys. Errors:
/// kCorrupt, naming offset, expected and found; kTooLarge for names over 1 MiB; kIo.
[[nodiscard]] Result<std::optional<BackendPayload>> read_backend_payload(std::string_view backend,
                                                                         const ByteSource& payload,
                                                                         const std::string& name);

/// Returns the beginning that all payloads of the backend have: "VH00 at offset 4". Empty for unknown
/// backends, and for those that take payloads without a known beginning too.
[[nodiscard]] std::string_view beginning_of_payloads(std::string_view backend);

using ReadPayload = Result<std::optional<BackendPayload>>(const ByteSource& payload, const std::string& name);

/// Reads an EthosUPayload.
[[nodiscard]] ReadPayload read_ethos_u_payload;

/// Reads a graph behind a header: VH00 at 4, u16 length, u32 offset and u32 size of the graph, u32 offset and
/// u64 size of the data behind it (backends/vulkan/runtime/VulkanDelegateHeader.cpp of ExecuTorch 1.5.1).
/// WebGPU's runtime takes the same payloads under the same id
/// (backends/webgpu/runtime/WebGPUDelegateHeader.cpp).
[[nodiscard]] ReadPayload read_vulkan_payload;

/// Reads an XnnpackPayload.
[[nodiscard]] ReadPayload read_xnnpack_payload;

/// The bytes that a payload begins with.
class PayloadHeader {
 public:
  /// Reads `size` bytes, or all if there are fewer. `name` is what messages call the payload. Error: kIo.
  [[nodiscard]] static Result<PayloadHeader> read(const ByteSource& payload, std::size_t size,
                                                  const std::string& name) {
    std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, payload.size())), '\0');
    ETSTREAM_TRY(payload.read_at(0, std::as_writable_bytes(std::span(bytes))));
    return PayloadHeader(std::move(bytes), size, payload.size(), name);
  }

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool has(std::size_t position, std::string_view magic) const {
    return bytes_.size() >= position && std::string_view(bytes_).substr(position).starts_with(magic);
  }
  /// Refuses a payload that is shorter than its header.
  [[nodiscard]] Result<void> check_size() const {
    if (bytes_.size() == size_) return {};
    return unexpected(ErrorCode::kCorrupt, {name_, 0}, "a header of {} bytes, found {}", size_,
                      bytes_.size());
  }
  /// Returns the number at `position`, which is inside the header.
  template <class T>
  [[nodiscard]] T number(std::size_t position) const {
    T out{};
    std::memcpy(&out, bytes_.data() + position, sizeof(T));
    return out;
  }
  /// Refuses a range, which the header has at `position`, unless it is in the payload and begins at `least`
  /// or later. `what` is in it.
  [[nodiscard]] Result<void> check_range(std::size_t position, std::string_view what, std::uint64_t offset,
                                         std::uint64_t size, std::uint64_t least = 0) const {
    if (range_fits(offset, size, payload_size_) && offset >= least) return {};
    return unexpected(ErrorCode::kCorrupt, {name_, position},
                      "{} in bytes {} to {}, found {} bytes from {} on", what, least, payload_size_, size,
                      offset);
  }

 private:
  PayloadHeader(std::string bytes, std::size_t size, std::uint64_t payload_size, std::string name)
      : bytes_(std::move(bytes)), size_(size), payload_size_(payload_size), name_(std::move(name)) {}

  std::string bytes_;
  std::size_t size_;
  std::uint64_t payload_size_;
  std::string name_;
};

/// A request for an external tensor. ExecuTorch looks for it in tensor data files alone.
struct TensorRequest {
  std::string key;
  std::string asker;  // "method 'forward'"
  TensorLayout layout;
  bool is_planned = false;  // its bytes are copied to planned memory
  /// False if ExecuTorch 1.5.1 does not compare layouts: for a constant whose key an earlier one of the
  /// method has.
  bool is_compared = true;
};

/// A request for named data that a delegate takes, such as a constant of XNNPACK. ExecuTorch looks for it in
/// files, then in the program.
struct DelegateRequest {
  std::string key;
  std::string asker;                  // "method 'forward', delegate 0 (XnnpackBackend)"
  std::optional<std::uint64_t> size;  // the bytes that are read, where the delegate says it
  bool is_xnnpack = false;
};

struct DataRequests {
  std::vector<TensorRequest> tensors;
  std::vector<DelegateRequest> delegates;
  std::vector<ByteSource> others;  // the data of delegates that may hold keys too
  std::vector<Error> errors;       // of data that its backend can't load, which is among `others`
  std::map<std::string, ByteSource> named_data;  // what the program has itself, by key
};

/// Reads the requests of all methods. Data of delegates is read once, as far as read_backend_payload() does.
/// Errors: kCorrupt for what leads nowhere; kTooLarge for names over 1 MiB; kIo.
[[nodiscard]] Result<DataRequests> read_data_requests(const pte::Program& program);

/// Describes a delegate: "method 'forward', delegate 0 (XnnpackBackend)". `methods` are the names of the
/// program's methods.
[[nodiscard]] std::string describe(std::span<const std::string> methods, const DelegateReference& reference);

/// Adds the requests in the data of the delegate at `reference`. Errors: as above.
[[nodiscard]] Result<void> add_delegate_requests(const pte::Program& program,
                                                 const DelegateReference& reference, ByteSource data,
                                                 DataRequests& out);

/// Returns the keys that the program asks for and does not have, in order, each once.
[[nodiscard]] std::vector<std::string> external_keys(const DataRequests& requests);

/// Named data as a delegate asks for it.
struct NamedDataUse {
  std::string key;
  std::optional<std::uint64_t> size = {};  // in bytes, where the delegate says it
  std::string use = {};  // "filter of XNNFullyConnected 3"; empty where it does not say that
  std::optional<TensorLayout> layout = {};
  bool is_of_nibbles = false;  // two elements a byte
};

/// The keys that a delegate asks for, in its order.
struct DelegateUses : DelegateReference {
  std::string asker;  // "method 'forward', delegate 0 (XnnpackBackend)"
  /// Its data, without the characters of the keys if these are known.
  ByteSource without_keys;
  std::vector<NamedDataUse> uses;
};

/// Reads the requests of the delegates of all methods, as far as their backends are known. Data that several
/// share is read once, for the first. Damaged data requests nothing. Memory: that of the keys, and 200 bytes
/// a request. Errors: kTooLarge for data of delegates that share their bytes many times; kIo.
[[nodiscard]] Result<std::vector<DelegateUses>> read_named_data_uses(const ProgramFile& program);

}  // namespace etstream
