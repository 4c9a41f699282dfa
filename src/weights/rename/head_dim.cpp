// SPDX-License-Identifier: BSD-3-Clause
#include "weights/rename/head_dim.h"

#include <string_view>

#include "base/try.h"
#include "flatbuffer/json_stream.h"

namespace etstream {
namespace {

/// Takes three numbers of the outermost object.
class HeadDimHandler final : public JsonHandler {
 public:
  Result<void> on(const JsonEvent& event) override {
    switch (event.kind) {
      case JsonEvent::Kind::kBeginObject:
      case JsonEvent::Kind::kBeginArray:
        ++depth_;
        break;
      case JsonEvent::Kind::kEndObject:
      case JsonEvent::Kind::kEndArray:
        --depth_;
        break;
      case JsonEvent::Kind::kKey:
        number_ = depth_ == 1 ? find(event.string) : nullptr;
        return {};
      case JsonEvent::Kind::kInteger:
        if (number_ && event.integer > 0 && event.integer <= INT32_MAX) {
          *number_ = static_cast<std::uint32_t>(event.integer);
        }
        break;
      default:
        break;
    }
    number_ = nullptr;
    return {};
  }

  std::optional<std::uint32_t> head_dim() const {
    if (head_dim_ != 0) return head_dim_;
    if (heads_ == 0 || hidden_size_ % heads_ != 0 || hidden_size_ == 0) return std::nullopt;
    return hidden_size_ / heads_;
  }

 private:
  std::uint32_t* find(std::string_view key) {
    if (key == "head_dim") return &head_dim_;
    if (key == "hidden_size") return &hidden_size_;
    return key == "num_attention_heads" ? &heads_ : nullptr;
  }

  int depth_ = 0;
  std::uint32_t* number_ = nullptr;  // that the last key was of
  std::uint32_t head_dim_ = 0;
  std::uint32_t hidden_size_ = 0;
  std::uint32_t heads_ = 0;
};

}  // namespace

Result<std::optional<std::uint32_t>> read_head_dim(const ByteSource& config) {
  HeadDimHandler handler;
  ETSTREAM_TRY(parse_json(config, handler));
  return handler.head_dim();
}

}  // namespace etstream
