// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/paged_reader.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"

namespace etstream {
namespace {

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
    out_.facts.push_back({"weights", std::int64_t{weights}});
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

}  // namespace

Result<std::optional<BackendPayload>> read_cuda_payload(const ByteSource& payload, const std::string& name) {
  constexpr std::size_t kSize = CudaWeights::kMagic.size() + 1;
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kSize, name));
  const std::string& magic = header.bytes();
  const bool is_known = magic.size() == kSize && header.has(0, CudaWeights::kMagic) && '3' <= magic.back() &&
                        magic.back() <= '5';
  if (!is_known) return std::optional<BackendPayload>();
  ETSTREAM_ASSIGN(BackendPayload out, CudaWeights(payload, name).run(magic));
  return std::optional(std::move(out));
}

}  // namespace etstream
