// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/paged_reader.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/ethos_u_payload.h"
#include "vulkan_graph_bfbs_generated.h"
#include "vulkan_graph_fields_generated.h"

namespace etstream {
namespace {

/// Reads the first bytes, as many as there are.
Result<std::string> first_bytes(const ByteSource& payload, std::size_t size) {
  std::string out(static_cast<std::size_t>(std::min<std::uint64_t>(size, payload.size())), '\0');
  ETSTREAM_TRY(payload.read_at(0, std::as_writable_bytes(std::span(out))));
  return out;
}

std::uint32_t uint32_at(std::string_view bytes, std::size_t position) {
  std::uint32_t out = 0;
  std::memcpy(&out, bytes.data() + position, sizeof(out));
  return out;
}

/// Reads CUDA's weights by name: a magic, the key of a library, or of one for each kind of processor, and for
/// each weight its name, the key of its storage and the way to read it
/// (backends/cuda/runtime/cuda_weight_cache.cpp and backends/cuda/cuda_weights.py of ExecuTorch, September
/// 2026).
class CudaWeights {
 public:
  CudaWeights(const ByteSource& payload, const std::string& name) : reader_(payload, name) {}

  static constexpr std::string_view kMagic = "ETCUDAFQN";  // and a digit

  Result<BackendPayload> run(const std::string& magic) {
    position_ = magic.size();
    out_.what = text("weights by name ({})", magic);
    if (magic.back() == '3') {
      ETSTREAM_TRY(request("the key of a library"));
    } else {
      ETSTREAM_TRY(read_libraries(magic.back() == '5'));
    }
    ETSTREAM_ASSIGN(const std::uint32_t weights, count("weights", 1U << 20));
    for (std::uint32_t i = 0; i < weights; ++i) ETSTREAM_TRY(read_weight());
    if (position_ == reader_.source().size()) return std::move(out_);
    return unexpected(ErrorCode::kCorrupt, {reader_.name(), position_}, "the end, found {}",
                      counted(reader_.source().size() - position_, "byte"));
  }

 private:
  template <class Integer>
  Result<Integer> number() {
    Integer out{};
    ETSTREAM_TRY(reader_.read(position_, std::as_writable_bytes(std::span(&out, 1))));
    position_ += sizeof(out);
    return out;
  }

  Result<std::uint32_t> count(std::string_view what, std::uint32_t most) {
    const std::uint64_t position = position_;
    ETSTREAM_ASSIGN(const auto out, number<std::uint32_t>());
    if (out <= most) return out;
    return unexpected(ErrorCode::kCorrupt, {reader_.name(), position}, "at most {} {}, found {}", most, what,
                      out);
  }

  Result<std::string> string(std::string_view what) {
    const std::uint64_t position = position_;
    ETSTREAM_ASSIGN(const auto size, number<std::uint32_t>());
    if (size == 0 || !range_fits(position_, size, reader_.source().size())) {
      return unexpected(ErrorCode::kCorrupt, {reader_.name(), position}, "{} of 1 byte to the end, found {}",
                        what, counted(size, "byte"));
    }
    std::string out(size, '\0');
    ETSTREAM_TRY(reader_.read(position_, std::as_writable_bytes(std::span(out))));
    position_ += size;
    return out;
  }

  Result<void> request(std::string_view what) {
    ETSTREAM_ASSIGN(std::string key, string(what));
    out_.requests.push_back({std::move(key), std::nullopt});
    return {};
  }

  Result<void> read_libraries(bool with_flags) {
    const std::uint64_t position = position_;
    ETSTREAM_ASSIGN(const std::uint32_t libraries, count("libraries", 256));
    if (libraries == 0) {
      return unexpected(ErrorCode::kCorrupt, {reader_.name(), position}, "a library, found none");
    }
    for (std::uint32_t i = 0; i < libraries; ++i) {
      position_ += 2 * sizeof(std::uint32_t) + (with_flags ? sizeof(std::uint32_t) : 0);
      ETSTREAM_TRY(request("the key of a library"));
    }
    return {};
  }

  Result<void> read_weight() {
    constexpr std::uint32_t kMostDimensions = 64;
    ETSTREAM_TRY(string("the name of a weight"));
    ETSTREAM_ASSIGN(std::string key, string("the key of a weight"));
    ETSTREAM_ASSIGN(const auto size, number<std::uint64_t>());
    position_ += 2 * sizeof(std::int32_t);  // its type, and the device's
    ETSTREAM_TRY(check_not_negative("an offset"));
    ETSTREAM_ASSIGN(const std::uint32_t dimensions, count("dimensions", kMostDimensions));
    for (std::uint32_t i = 0; i < 2 * dimensions; ++i) {
      ETSTREAM_TRY(check_not_negative(i < dimensions ? "a size" : "a stride"));
    }
    out_.requests.push_back({std::move(key), size});
    return {};
  }

  Result<void> check_not_negative(std::string_view what) {
    const std::uint64_t position = position_;
    ETSTREAM_ASSIGN(const auto value, number<std::int64_t>());
    if (value >= 0) return {};
    return unexpected(ErrorCode::kCorrupt, {reader_.name(), position}, "{} from 0 on, found {}", what, value);
  }

  PagedReader reader_;
  std::uint64_t position_ = 0;
  BackendPayload out_;
};

Result<std::optional<BackendPayload>> read_cuda(const ByteSource& payload, const std::string& name) {
  ETSTREAM_ASSIGN(const std::string magic, first_bytes(payload, CudaWeights::kMagic.size() + 1));
  const bool is_known = magic.size() > CudaWeights::kMagic.size() && magic.starts_with(CudaWeights::kMagic) &&
                        '3' <= magic.back() && magic.back() <= '5';
  if (!is_known) return std::optional<BackendPayload>();
  ETSTREAM_ASSIGN(BackendPayload out, CudaWeights(payload, name).run(magic));
  return std::optional(std::move(out));
}

/// Reads a graph behind a header: magic at 4, u16 length, u32 offset and u32 size of the graph, then of the
/// data behind it (backends/vulkan/serialization/vulkan_graph_serialize.py of ExecuTorch 1.5.1).
Result<std::optional<BackendPayload>> read_vulkan(const ByteSource& payload, const std::string& name) {
  constexpr std::size_t kHeaderSize = 30;
  ETSTREAM_ASSIGN(const std::string header, first_bytes(payload, kHeaderSize));
  if (header.size() < kHeaderSize || header.compare(4, 4, "VH00") != 0)
    return std::optional<BackendPayload>();
  const std::uint32_t offset = uint32_at(header, 10);
  const std::uint32_t size = uint32_at(header, 14);
  if (!range_fits(offset, size, payload.size())) {
    return unexpected(ErrorCode::kCorrupt, {name, 10}, "a graph inside {}, found {} bytes from {} on",
                      counted(payload.size(), "byte"), size, offset);
  }
  ETSTREAM_ASSIGN(ByteSource graph, payload.slice(offset, size));
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<vulkan_graph::VkGraphBinarySchema>());
  ETSTREAM_ASSIGN(const FlatbufferView view, FlatbufferView::open(*schema, std::move(graph), name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
  BackendPayload out{"a graph (VH00)", {}};
  static const vulkan_graph::Fields kKnown(*schema);
  const auto request = [&](const TableReader& bytes) -> Result<void> {
    ETSTREAM_ASSIGN(auto key, bytes.string(kKnown.vk_bytes.named_key));
    ETSTREAM_ASSIGN(const auto length, bytes.scalar<std::uint64_t>(kKnown.vk_bytes.length));
    if (key && !key->empty()) out.requests.push_back({std::move(*key), length});
    return {};
  };
  ETSTREAM_TRY(for_each(root.tables(kKnown.vk_graph.constants), request));
  ETSTREAM_TRY(for_each(root.tables(kKnown.vk_graph.shaders), request));
  return std::optional(std::move(out));
}

Result<std::optional<BackendPayload>> read_stream(const ByteSource& payload, const std::string& name) {
  ETSTREAM_ASSIGN(const bool is_known, is_ethos_u(payload));
  if (!is_known) return std::optional<BackendPayload>();
  ETSTREAM_ASSIGN(EthosUPayload stream, read_ethos_u(payload, name));
  BackendPayload out{"a stream of blocks (vela_bin_stream)", {}};
  for (EthosUBlock& block : stream.blocks) {
    if (!block.key.empty()) out.requests.push_back({std::move(block.key), std::nullopt});
  }
  return std::optional(std::move(out));
}

}  // namespace

Result<std::optional<BackendPayload>> read_backend_payload(std::string_view backend,
                                                           const ByteSource& payload,
                                                           const std::string& name) {
  if (backend == "CudaBackend") return read_cuda(payload, name);
  if (backend == "VulkanBackend") return read_vulkan(payload, name);
  if (backend == kEthosUBackend) return read_stream(payload, name);
  return std::optional<BackendPayload>();
}

}  // namespace etstream
