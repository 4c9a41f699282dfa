// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::string_view kFirstBlock = "vela_bin_stream";
constexpr std::string_view kLastBlock = "vela_end_stream";

class EthosUReader {
 public:
  EthosUReader(const ByteSource& payload, const std::string& name)
      : reader_(payload, name), size_(payload.size()) {}

  Result<EthosUPayload> run() {
    constexpr std::size_t kMostBlocks = 1U << 14;
    for (std::uint64_t position = 0; position < size_;) {
      if (out_.blocks.size() == kMostBlocks) {
        return corrupt(position, "at most {} blocks, found one more", kMostBlocks);
      }
      ETSTREAM_ASSIGN(const EthosUBlock block, read_block(position));
      out_.blocks.push_back(block);
      ETSTREAM_TRY(read_content(block));
      position = block.offset + block.size + padding_to(block.size, kAlignment);
      if (!block.name.starts_with(kLastBlock)) continue;
      if (position == size_) return std::move(out_);
      return corrupt(position, "the end, found {}", counted(size_ - position, "byte"));
    }
    return corrupt(size_, "the block {}, found the end", kLastBlock);
  }

 private:
  template <class... Arguments>
  [[nodiscard]] Error corrupt(std::uint64_t position, Template<Arguments...> words,
                              const Arguments&... arguments) const {
    return unexpected(ErrorCode::kCorrupt, {reader_.name(), position}, words, arguments...);
  }

  template <class T>
  Result<T> value(std::uint64_t position) {
    T out{};
    ETSTREAM_TRY(reader_.read(position, std::as_writable_bytes(std::span(&out, 1))));
    return out;
  }

  Result<std::string> string(std::uint64_t position, std::size_t size) {
    std::string out(size, '\0');
    ETSTREAM_TRY(reader_.read(position, std::as_writable_bytes(std::span(out))));
    return out;
  }

  /// Reads the header of the block at `position`, and its key. Refuses data or padding beyond the end.
  Result<EthosUBlock> read_block(std::uint64_t position) {
    constexpr std::uint32_t kKeySize = 64;
    if (size_ - position < kHeaderSize) {
      return corrupt(position, "a block's header of {} bytes, found {}", kHeaderSize, size_ - position);
    }
    EthosUBlock out;
    ETSTREAM_ASSIGN(out.name, string(position, kNameSize));
    out.name.resize(std::min(out.name.find('\0'), out.name.size()));
    ETSTREAM_ASSIGN(out.size, value<std::uint32_t>(position + kNameSize));
    ETSTREAM_ASSIGN(const auto is_key, value<std::uint8_t>(position + kNameSize + sizeof(out.size)));
    out.offset = position + kHeaderSize;
    if (!range_fits(out.offset, out.size + padding_to(out.size, kAlignment), size_)) {
      return corrupt(position + kNameSize, "a block inside {}, found one of {}", counted(size_, "byte"),
                     out.size);
    }
    if (is_key != 1) return out;
    if (out.size != kKeySize) {
      return corrupt(position + kNameSize, "a key of {} bytes, found {}", kKeySize, out.size);
    }
    ETSTREAM_ASSIGN(out.key, string(out.offset, kKeySize));
    return out;
  }

  /// Reads a block's content, as far as it is there. Names may go on: ExecuTorch compares their beginnings.
  Result<void> read_content(const EthosUBlock& block) {
    const bool is_here = block.key.empty();
    const std::uint64_t header = block.offset - kHeaderSize;
    if (block.name.starts_with(kFirstBlock)) {
      return header == 0 ? Result<void>()
                         : corrupt(header, "{} as the first block, found it again", kFirstBlock);
    }
    if (block.name.starts_with("cmd_data")) {
      out_.command_size = is_here ? std::optional(block.size) : std::nullopt;
      return is_here ? check_commands(block) : Result<void>();
    }
    if (block.name.starts_with("weight_data")) {
      out_.weight_size = is_here ? std::optional(block.size) : std::nullopt;
      return {};
    }
    if (block.name.starts_with("scratch_size")) {
      out_.scratch_size.reset();
      if (!is_here) return {};
      ETSTREAM_TRY(check_size(block, sizeof(std::uint32_t)));
      ETSTREAM_ASSIGN(out_.scratch_size, value<std::uint32_t>(block.offset));
      return {};
    }
    if (block.name.starts_with("inputs")) return read_tensors(block, out_.inputs);
    if (block.name.starts_with("outputs")) return read_tensors(block, out_.outputs);
    if (block.name.starts_with(kLastBlock)) return {};
    return corrupt(header, "a block that ExecuTorch reads, such as cmd_data, found {}", quote(block.name));
  }

  [[nodiscard]] Result<void> check_size(const EthosUBlock& block, std::uint64_t least) const {
    if (block.size >= least) return {};
    return corrupt(block.offset - kHeaderSize + kNameSize, "{} bytes or more in block {}, found {}", least,
                   block.name, block.size);
  }

  Result<void> check_commands(const EthosUBlock& block) {
    ETSTREAM_TRY(check_size(block, kMagicSize));
    ETSTREAM_ASSIGN(const std::string magic, string(block.offset, kMagicSize));
    if (magic == "COP1" || magic == "COP2") return {};
    return corrupt(block.offset, "commands that begin with COP1 or COP2, found {}", quote(magic));
  }

  /// Reads i32 count, and for each input or output what EthosUTensor has, each as i32.
  Result<void> read_tensors(const EthosUBlock& block, std::vector<EthosUTensor>& out) {
    static_assert(sizeof(EthosUTensor) == 9 * sizeof(std::int32_t));
    constexpr std::int32_t kMost = 1 << 15;
    out.clear();
    if (!block.key.empty()) return {};
    ETSTREAM_TRY(check_size(block, sizeof(std::int32_t)));
    ETSTREAM_ASSIGN(const auto count, value<std::int32_t>(block.offset));
    if (count < 0 || count > kMost) {
      return corrupt(block.offset, "0 to {} {}, found {}", kMost, block.name, count);
    }
    const std::uint64_t entries = sizeof(EthosUTensor) * static_cast<std::uint64_t>(count);
    ETSTREAM_TRY(check_size(block, sizeof(count) + entries));
    out.resize(static_cast<std::size_t>(count));
    return reader_.read(block.offset + sizeof(count), std::as_writable_bytes(std::span(out)));
  }

  static constexpr std::uint64_t kNameSize = 16;
  static constexpr std::uint64_t kHeaderSize = 32;
  static constexpr std::uint64_t kAlignment = 16;  // of headers, and so of data
  static constexpr std::size_t kMagicSize = 4;
  PagedReader reader_;
  std::uint64_t size_;
  EthosUPayload out_;
};

/// Describes a tensor: "[1, 1, 1, 3, 8, 8] of 1 bytes each, at 16 in region 1".
std::string text_of_tensor(const EthosUTensor& tensor) {
  return text("{} of {} bytes each, at {} in region {}", list_text(tensor.shape), tensor.element_size,
              tensor.offset, tensor.region);
}

/// Returns the bytes of a tensor; nothing if its sizes make no sense.
std::optional<std::uint64_t> size_of_tensor(const EthosUTensor& tensor) {
  std::optional<std::uint64_t> out = 1;
  const auto multiply = [&](std::int32_t by) {
    out = out && by >= 0 ? checked_multiply(*out, static_cast<std::uint64_t>(by)) : std::nullopt;
  };
  for (const std::int32_t size : tensor.shape) multiply(size);
  multiply(tensor.element_size);
  return out;
}

/// Refuses inputs or outputs outside of the memory for working data, where ExecuTorch reads and writes them
/// without a check (backends/arm/runtime/EthosUBackend.cpp of ExecuTorch 1.5.1).
Result<void> check_places_in_scratch(std::string_view what, const std::vector<EthosUTensor>& tensors,
                                     std::uint32_t scratch_size, const std::string& name) {
  constexpr std::int32_t kScratchRegion = 1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const EthosUTensor& tensor = tensors[i];
    const auto size = size_of_tensor(tensor);
    const bool is_elsewhere = size && tensor.region != kScratchRegion;
    const bool fits = size && tensor.offset >= 0 &&
                      range_fits(static_cast<std::uint64_t>(tensor.offset), *size, scratch_size);
    if (is_elsewhere || fits) continue;
    return error_in(ErrorCode::kCorrupt, name, "expected {} {} in {} of working data, found {}", what, i,
                    counted(scratch_size, "byte"), text_of_tensor(tensor));
  }
  return {};
}

void add_tensors(std::string_view what, const std::vector<EthosUTensor>& tensors, BackendPayload& out) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    out.facts.push_back({text("{} {}", what, i), text_of_tensor(tensors[i])});
  }
}

}  // namespace

Result<EthosUPayload> read_ethos_u(const ByteSource& payload, const std::string& name) {
  return EthosUReader(payload, name).run();
}

Result<std::optional<BackendPayload>> read_ethos_u_payload(const ByteSource& payload,
                                                           const std::string& name) {
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kFirstBlock.size(), name));
  if (!header.has(0, kFirstBlock)) return std::optional<BackendPayload>();
  ETSTREAM_ASSIGN(EthosUPayload stream, read_ethos_u(payload, name));
  if (stream.scratch_size) {
    ETSTREAM_TRY(check_places_in_scratch("input", stream.inputs, *stream.scratch_size, name));
    ETSTREAM_TRY(check_places_in_scratch("output", stream.outputs, *stream.scratch_size, name));
  }
  BackendPayload out{"a stream of blocks (vela_bin_stream)"};
  const auto add_size = [&](const char* what, const std::optional<std::uint32_t>& size) {
    if (size) out.facts.push_back({what, std::int64_t{*size}});
  };
  add_size("command_size", stream.command_size);
  add_size("weight_size", stream.weight_size);
  add_size("scratch_size", stream.scratch_size);
  add_tensors("input", stream.inputs, out);
  add_tensors("output", stream.outputs, out);
  for (EthosUBlock& block : stream.blocks) {
    if (!block.key.empty()) out.requests.push_back({block.key, std::nullopt});
    out.parts.push_back({std::move(block.name), block.offset, block.size, std::move(block.key)});
  }
  return std::optional(std::move(out));
}

}  // namespace etstream
