// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/reweight.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "files/origins/explained_payloads.h"
#include "files/origins/origin_search.h"
#include "formats/tensor/converted_floats.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

/// Bytes that take the place of as many in a file.
struct Replacement {
  ByteSource place;
  ByteSource bytes;
  std::uint32_t label = 0;  // an index in FilePlan::labels
};
constexpr std::uint32_t kUnchanged = 0;
constexpr std::uint32_t kWeights = 1;
constexpr std::uint32_t kKey = 2;

Error overlap(const ByteSource& file, std::uint64_t offset) {
  return unexpected(ErrorCode::kUnsupported, {file.name(), offset},
                    "payloads and keys that do not overlap, found one that begins in another");
}

/// Plans `file` with what of `replacements` lies in it.
Result<FilePlan> plan_with(const ByteSource& file, const std::vector<Replacement>& replacements) {
  std::map<std::uint64_t, const Replacement*> by_offset;
  for (const Replacement& each : replacements) {
    const auto offset = each.place.offset_in(file);
    if (!offset || each.place.size() == 0) continue;
    const auto [there, is_new] = by_offset.emplace(*offset, &each);
    if (!is_new && there->second->place.size() != each.place.size()) return overlap(file, *offset);
  }
  FilePlan plan;
  plan.labels = {"as it was", "weights", "key"};
  const auto add = [&](ByteSource source, std::uint32_t label) {
    if (source.size() == 0) return;
    (label == kKey ? plan.metadata_size : plan.payload_size) += source.size();
    plan.extents.push_back({plan.size, 1, label, std::move(source)});
    plan.size += plan.extents.back().size();
  };
  for (const auto& [offset, replacement] : by_offset) {
    if (offset < plan.size) return overlap(file, offset);
    ETSTREAM_ASSIGN(ByteSource before, file.slice(plan.size, offset - plan.size));
    add(std::move(before), kUnchanged);
    add(replacement->bytes, replacement->label);
  }
  ETSTREAM_ASSIGN(ByteSource rest, file.slice(plan.size, file.size() - plan.size));
  add(std::move(rest), kUnchanged);
  return plan;
}

class Reweighter {
 public:
  Reweighter(const Reweighting& given, const std::vector<ExplainedPayload>& payloads)
      : given_(given),
        payloads_(payloads),
        now_(given.was->tensors.size()),
        find_([this](std::size_t tensor) { return now(tensor); }) {
    for (const CheckpointTensor& tensor : given.now->tensors) by_name_.emplace(tensor.name, &tensor);
  }

  Result<std::vector<Replacement>> run() {
    ETSTREAM_TRY(require_explained());
    for (const ExplainedPayload& each : payloads_) {
      if (each.steps.empty()) ETSTREAM_TRY(note_key(each.payload));
    }
    for (const ExplainedPayload& each : payloads_) {
      if (!each.steps.empty()) ETSTREAM_TRY(replace(each));
    }
    return std::move(out_);
  }

 private:
  Result<void> require_explained() const {
    const auto is_open = [](const ExplainedPayload& each) { return !each.is_explained(); };
    const auto first = std::ranges::find_if(payloads_, is_open);
    if (first == payloads_.end()) return {};
    const auto others = std::ranges::count_if(first + 1, payloads_.end(), is_open);
    const WeightPayload& payload = first->payload;
    std::string found = "none that give its bytes";
    for (std::size_t i = 0; i < first->nearest.size(); ++i) {
      found += text("{}{}", i == 0 ? "; of as many elements, the nearest first, are " : ", ",
                    quote(given_.was->tensors[first->nearest[i]].name));
    }
    if (payload.is_opaque) found = "what its backend compiled, which is not explained";
    if (is_quantized(payload)) {
      found += "; scales that an export searched for, as HQQ does, do not follow from the weights";
    }
    if (others != 0)
      found += text("; nor those of {}", counted(static_cast<std::uint64_t>(others), "more payload"));
    return error_in(ErrorCode::kUnsupported, name_of(*given_.was),
                    "expected tensors that give {}, {}, found {}", payload.label,
                    counted(payload.data.size(), "byte"), found);
  }

  static bool is_quantized(const WeightPayload& payload) {
    if (payload.are_scales || payload.integers) return true;
    return payload.layout && (payload.layout->scalar_type == ScalarType::kInt8 ||
                              payload.layout->scalar_type == ScalarType::kUInt8);
  }

  /// Returns the new tensor in the place of an old one, in the old one's type.
  Result<const CheckpointTensor*> now(std::size_t tensor) {
    std::optional<CheckpointTensor>& out = now_[tensor];
    if (out) return &*out;
    const CheckpointTensor& was = given_.was->tensors[tensor];
    const std::string file = name_of(*given_.now);
    const auto found = by_name_.find(was.name);
    if (found == by_name_.end()) {
      return error_in(ErrorCode::kInvalidArgument, file, "expected a tensor {} as in {}, found none",
                      quote(was.name), name_of(*given_.was));
    }
    const CheckpointTensor& is = *found->second;
    if (!is_plain(is) || is.layout->sizes != was.layout->sizes) {
      return error_in(ErrorCode::kInvalidArgument, file, "tensor {}: expected {} as in {}, found {}",
                      quote(was.name), describe(*was.layout), name_of(*given_.was),
                      is.layout ? describe(*is.layout) : is.type);
    }
    out = is;
    const ScalarType type = was.layout->scalar_type;
    if (is.layout->scalar_type == type) return &*out;
    if (!is_floating_point(type) || !is_floating_point(is.layout->scalar_type)) {
      return error_in(ErrorCode::kInvalidArgument, file, "tensor {}: expected {}, found {}", quote(was.name),
                      describe(*was.layout), describe(*is.layout));
    }
    ETSTREAM_ASSIGN(out->data, convert_floats(is.data, is.layout->scalar_type, type));
    out->layout->scalar_type = type;
    return &*out;
  }

  /// Notes the key of a payload that stays, which no other may get.
  Result<void> note_key(const WeightPayload& payload) {
    if (payload.hashes.empty()) return {};
    std::string hash(static_cast<std::size_t>(payload.hashes.front().size()), '\0');
    ETSTREAM_TRY(payload.hashes.front().read_at(0, std::as_writable_bytes(std::span(hash))));
    labels_.emplace(std::move(hash), payload.label);
    return {};
  }

  Result<void> replace(const ExplainedPayload& each) {
    ETSTREAM_ASSIGN(const ByteSource bytes, take_steps(find_, each.steps.front()));
    ETSTREAM_TRY(require_one_meaning(each, bytes));
    out_.push_back({each.payload.data, bytes, kWeights});
    if (each.payload.hashes.empty()) return {};
    Sha256 hasher;
    ETSTREAM_TRY(read_pieces(bytes, [&](std::span<const std::byte> piece) { hasher.update(piece); }));
    const std::string hash = hasher.hex();
    const auto [there, is_new] = labels_.try_emplace(hash, each.payload.label);
    if (!is_new) {
      return error_in(
          ErrorCode::kInvalidArgument, given_.program->file().name(),
          "expected {} and {} to differ, found the same bytes for both in {}: an export would store "
          "them once",
          there->second, each.payload.label, name_of(*given_.now));
    }
    const auto characters = std::as_bytes(std::span(hash));
    const ByteSource key = ByteSource::owned({characters.begin(), characters.end()});
    for (const ByteSource& place : each.payload.hashes) out_.push_back({place, key, kKey});
    return {};
  }

  /// Checks that all tensors that may be meant still give the same bytes.
  Result<void> require_one_meaning(const ExplainedPayload& each, const ByteSource& bytes) {
    const auto refuse = [&](const std::string& other) {
      return error_in(ErrorCode::kInvalidArgument, name_of(*given_.now),
                      "{} may be {} or {}, which were equal and differ now", each.payload.label,
                      quote(given_.was->tensors[each.steps.front().front().tensor].name), other);
    };
    if (!each.constant.empty()) {
      ETSTREAM_ASSIGN(const bool same, same_bytes(bytes, each.payload.data));
      if (!same) return refuse(each.constant);
    }
    for (std::size_t i = 1; i < each.steps.size(); ++i) {
      ETSTREAM_ASSIGN(const ByteSource other, take_steps(find_, each.steps[i]));
      ETSTREAM_ASSIGN(const bool same, same_bytes(bytes, other));
      if (!same) return refuse(quote(given_.was->tensors[each.steps[i].front().tensor].name));
    }
    return {};
  }

  const Reweighting& given_;
  const std::vector<ExplainedPayload>& payloads_;
  std::map<std::string, const CheckpointTensor*> by_name_;
  std::vector<std::optional<CheckpointTensor>> now_;  // by the place of the old tensor
  FindTensor find_;                                   // in now_
  std::map<std::string, std::string> labels_;         // of payloads, by hash
  std::vector<Replacement> out_;
};

}  // namespace

Result<ReweightingPlan> plan(const Reweighting& description) {
  return without_exceptions([&]() -> Result<ReweightingPlan> {
    ETSTREAM_ASSIGN(const auto payloads,
                    explain_payloads(*description.program, description.weights, *description.was));
    ETSTREAM_ASSIGN(const auto replacements, Reweighter(description, payloads).run());
    ReweightingPlan out;
    for (const ExplainedPayload& each : payloads)
      if (!each.steps.empty()) ++out.replaced;
    ETSTREAM_ASSIGN(out.program, plan_with(description.program->file(), replacements));
    for (const TensorDataFile* file : description.weights) {
      ETSTREAM_ASSIGN(out.weights.emplace_back(), plan_with(file->file(), replacements));
    }
    out.origins = origins_of(payloads, *description.was);
    return out;
  });
}

}  // namespace etstream
