// SPDX-License-Identifier: BSD-3-Clause
//
// Python's pickles as torch's files have them: instructions and the names of types, and bytes that are read
// from front to back.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// The instructions of pickles (Lib/pickletools.py), protocols 0 to 5.
enum class PickleOpcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloat = 'F',
  kInt = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLong = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kPersistentId = 'P',
  kBinPersistentId = 'Q',
  kReduce = 'R',
  kString = 'S',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kInstance = 'i',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kObject = 'o',
  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  kProtocol = 0x80,
  kNewObject = 0x81,
  kExtension1 = 0x82,
  kExtension2 = 0x83,
  kExtension4 = 0x84,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjectWithKeywords = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
  kNextBuffer = 0x97,
  kReadOnlyBuffer = 0x98,
};

/// The names that torch's files have for a type of elements.
struct TorchType {
  std::string_view name;           // "bfloat16", of torch.bfloat16
  std::string_view storage;        // "BFloat16Storage"; "" where torch has untyped storages alone
  std::uint64_t item_size = 0;     // in bytes
  std::optional<ScalarType> type;  // none where ExecuTorch has no such type
  std::string_view safetensors;    // the name there of a type that ExecuTorch lacks: "F8_E8M0"; or ""
  std::uint64_t elements = 1;      // in an item, as safetensors counts them
};

/// Returns null for a type that torch's files can't have, and for quantised types, whose tensors need more
/// than their bytes.
[[nodiscard]] const TorchType* torch_type(ScalarType type) noexcept;
/// Finds a type that ExecuTorch lacks by its name in safetensors.
[[nodiscard]] const TorchType* torch_type_of_safetensors(std::string_view name) noexcept;
/// Finds a type by the name of its dtype: "bfloat16".
[[nodiscard]] const TorchType* torch_type_of_dtype(std::string_view name) noexcept;
/// Finds a type by the name of its storage's class: "BFloat16Storage".
[[nodiscard]] const TorchType* torch_type_of_storage(std::string_view name) noexcept;

/// The bytes of a pickle, read from front to back, and errors with their place in the file.
class PickleReader {
 public:
  /// `offset` is the offset of the pickle in the file.
  PickleReader(std::string file, std::uint64_t offset, std::vector<std::byte> bytes)
      : file_(std::move(file)), offset_(offset), bytes_(std::move(bytes)) {}

  /// Begins an instruction. Errors give its place until the next one begins.
  template <class Opcode>
  Result<Opcode> begin_instruction() {
    at_ = next_;
    ETSTREAM_ASSIGN(const auto opcode, take<std::uint8_t>());
    return static_cast<Opcode>(opcode);
  }

  template <class... Arguments>
  [[nodiscard]] Error corrupt(Template<Arguments...> words, const Arguments&... arguments) const {
    return unexpected(ErrorCode::kCorrupt, {file_, offset_ + at_, "pickle"}, words, arguments...);
  }
  template <class... Arguments>
  [[nodiscard]] Error unsupported(Template<Arguments...> words, const Arguments&... arguments) const {
    return error_at(ErrorCode::kUnsupported, {file_, offset_ + at_, "pickle"}, words, arguments...);
  }

  Result<std::string_view> take_bytes(std::uint64_t size) {
    const std::string_view rest = this->rest();
    if (size > rest.size()) {
      return corrupt("{} before its end at {}, found {}", counted(size, "byte"), offset_ + bytes_.size(),
                     rest.size());
    }
    next_ += static_cast<std::size_t>(size);
    return rest.substr(0, static_cast<std::size_t>(size));
  }

  template <class Integer>
  Result<Integer> take() {
    ETSTREAM_ASSIGN(const std::string_view bytes, take_bytes(sizeof(Integer)));
    Integer out{};
    std::memcpy(&out, bytes.data(), sizeof(out));
    return out;
  }

  template <class Size>
  Result<std::string_view> take_sized() {
    ETSTREAM_ASSIGN(const Size size, take<Size>());
    return take_bytes(size);
  }

  /// Returns a line without its end.
  Result<std::string_view> take_line() {
    const std::string_view rest = this->rest();
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return corrupt("the end of a line, found that of the pickle");
    next_ += end + 1;
    return rest.substr(0, end);
  }

  Result<std::int64_t> take_decimal() {
    ETSTREAM_ASSIGN(std::string_view line, take_line());
    if (line.ends_with('L')) line.remove_suffix(1);
    std::int64_t out = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), out);
    if (failed != std::errc() || end != line.data() + line.size()) {
      return corrupt("an integer of 64 bits, found {}", quote(line));
    }
    return out;
  }

  /// Returns how many bytes were taken.
  [[nodiscard]] std::size_t taken() const noexcept { return next_; }
  /// Gives the bytes away, which hold the texts that were taken.
  std::vector<std::byte> release() && { return std::move(bytes_); }

 private:
  /// Returns the bytes that were not taken yet.
  [[nodiscard]] std::string_view rest() const {
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()).substr(next_);
  }

  const std::string file_;
  const std::uint64_t offset_;
  std::vector<std::byte> bytes_;
  std::size_t next_ = 0;
  std::size_t at_ = 0;  // where the instruction begins
};

}  // namespace etstream
