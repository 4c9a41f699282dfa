// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/reweight.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "files/origins/explained_payloads.h"
#include "files/origins/origin_search.h"
#include "files/origins/weight_free.h"
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

/// Marks payloads that nothing explains and `names` names as ones that stay. Returns their labels.
Result<std::vector<std::string>> keep(const std::vector<std::string>& names, const std::string& file,
                                      std::vector<ExplainedPayload>& payloads) {
  std::vector<std::string> kept;
  std::vector<std::string> open;
  std::set<std::string> unknown(names.begin(), names.end());
  for (ExplainedPayload& each : payloads) {
    if (each.is_explained()) continue;
    open.push_back(each.payload.label);
    const auto is_it = [&](const std::string& name) {
      return name == each.payload.label || (!name.empty() && name == each.payload.name);
    };
    if (std::ranges::none_of(names, is_it)) continue;
    std::erase_if(unknown, is_it);
    each.constant = "kept as it was";
    kept.push_back(each.payload.label);
  }
  if (unknown.empty()) return kept;
  const std::string& name = *unknown.begin();
  const auto same_letters = [&](const std::string& label) {
    return std::ranges::mismatch(label, name).in1 - label.begin();
  };
  std::ranges::stable_sort(open, std::greater(), same_letters);
  return error_in(ErrorCode::kInvalidArgument, file,
                  "expected the name of a payload that nothing explains, found {}; {}", quote(name),
                  open.empty() ? "all are explained" : text("the nearest first: {}", names_text(open)));
}

class Reweighter {
 public:
  /// `frequencies` are those of the new checkpoint.
  Reweighter(const Reweighting& given, const std::vector<ExplainedPayload>& payloads,
             const std::vector<CheckpointTensor>& frequencies)
      : given_(given),
        payloads_(payloads),
        now_(given.was->tensors.size()),
        find_([this](std::size_t tensor) { return now(tensor); }) {
    for (const CheckpointTensor& tensor : given.now->tensors) by_name_.emplace(tensor.name, &tensor);
    for (const CheckpointTensor& tensor : frequencies) by_name_.emplace(tensor.name, &tensor);
    for (const ExplainedPayload& each : payloads) {
      for (const WeightPiece& piece : each.pieces) note_types(piece.steps);
    }
  }

  Result<std::vector<Replacement>> run() {
    ETSTREAM_TRY(require_explained());
    for (const ExplainedPayload& each : payloads_) {
      if (!each.pieces.empty()) continue;
      ETSTREAM_TRY(require_one_meaning(each, each.payload.data));
      ETSTREAM_TRY(note_key(each.payload));
    }
    for (const ExplainedPayload& each : payloads_) {
      if (!each.pieces.empty()) ETSTREAM_TRY(replace(each));
    }
    ETSTREAM_TRY(warn_of_unused());
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string was_name() const { return name_of(*given_.was, "the old checkpoint"); }
  [[nodiscard]] std::string now_name() const { return name_of(*given_.now, "the new checkpoint"); }

  Result<void> require_explained() const {
    const auto is_open = [](const ExplainedPayload& each) { return !each.is_explained(); };
    const auto first = std::ranges::find_if(payloads_, is_open);
    if (first == payloads_.end()) return {};
    const auto others = std::ranges::count_if(first + 1, payloads_.end(), is_open);
    const WeightPayload& payload = first->payload;
    std::string found = "none that give its bytes";
    if (!first->nearest.empty()) {
      const auto name_of = [&](std::size_t tensor) { return given_.was->tensors[tensor].name; };
      found += text("; of as many elements, the nearest first, are {}", names_text(first->nearest, name_of));
    }
    if (payload.is_opaque) found = "what its backend compiled, which is not explained";
    const auto integers = std::ranges::find_if(
        payloads_, [&](const ExplainedPayload& each) { return is_open(each) && each.follows_nearest; });
    const bool is_searched = integers != payloads_.end();
    if (is_searched || is_quantized(payload)) {
      found += "; scales that an export searched for, as HQQ does, do not follow from the weights";
    }
    if (is_searched) {
      found += text(", such as those of the integers that follow {}",
                    quote(given_.was->tensors[integers->nearest.front()].name));
    }
    if (others != 0)
      found += text("; nor those of {}", counted(static_cast<std::uint64_t>(others), "more payload"));
    Error error = error_in(ErrorCode::kUnsupported, was_name(), "expected tensors that give {}, {}, found {}",
                           payload.label, counted(payload.data.size(), "byte"), found);
    Advice advice = {"if it is to stay as it is, name it with ", AdviceTerm::kKeepPayload};
    if (!payload.is_asked) {
      advice = {
          text("{} does not ask for it; if {} is shared by several programs, give these new weights "
               "before they share it",
               given_.program->file().name(), payload.file)};
    }
    if (is_searched) {
      advice.insert(advice.begin(),
                    "export_llama uses HQQ unless its configuration has quantization.use_hqq=False; ");
    }
    return with_advice(std::move(error), std::move(advice));
  }

  static bool is_quantized(const WeightPayload& payload) {
    if (payload.are_scales || payload.integers) return true;
    return payload.layout && (payload.layout->scalar_type == ScalarType::kInt8 ||
                              payload.layout->scalar_type == ScalarType::kUInt8);
  }

  /// Notes the tensors whose type the steps depend on: those that are not cast at first, and those that
  /// belong to a model that was quantized in bfloat16.
  void note_types(const TensorSteps& steps) {
    bool is_cast = false;
    bool is_rounded = false;
    const auto in_order = [](const WeightStep& step) {
      return std::holds_alternative<PermuteStep>(step) || std::holds_alternative<InterleaveRopeStep>(step);
    };
    const auto first = std::ranges::find_if_not(steps.steps, in_order);
    if (first != steps.steps.end()) is_cast = std::holds_alternative<CastStep>(*first);
    for (const WeightStep& step : steps.steps) {
      if (const auto* const integers = std::get_if<QuantizeStep>(&step)) {
        is_rounded |= integers->how.in_bfloat16;
      } else if (const auto* const scales = std::get_if<ScalesStep>(&step)) {
        is_rounded |= scales->how.in_bfloat16;
      } else if (const auto* const bias = std::get_if<QuantizeBiasStep>(&step)) {
        for (const TensorSteps& part : bias->scales) note_types(part);
      }
    }
    for (const std::size_t tensor : tensors_in(steps)) {
      if (tensor != steps.tensor || !is_cast || is_rounded) needs_type_.insert(tensor);
    }
  }

  static Result<bool> are_same(const CheckpointTensor& a, const CheckpointTensor& b) {
    if (a.type != b.type || a.layout != b.layout) return false;
    return same_bytes(a.data, b.data);
  }

  /// Warns of new tensors that are not as they were, and reach no payload.
  Result<void> warn_of_unused() const {
    if (!given_.warn) return {};
    std::set<std::size_t> used;
    std::map<std::size_t, std::size_t> equals;  // tensors that were equal to a used one
    for (const ExplainedPayload& each : payloads_) {
      for (const WeightPiece& piece : each.pieces) {
        for (const std::size_t tensor : tensors_in(piece.steps)) used.insert(tensor);
      }
      for (const std::size_t equal : each.equals) equals.emplace(equal, each.pieces.front().steps.tensor);
    }
    const std::vector<CheckpointTensor>& was = given_.was->tensors;
    std::map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < was.size(); ++i) places.emplace(was[i].name, i);
    std::vector<std::string> names;
    for (const CheckpointTensor& tensor : given_.now->tensors) {
      if (const auto place = places.find(tensor.name); place != places.end()) {
        if (used.contains(place->second)) continue;
        ETSTREAM_ASSIGN(bool is_known, are_same(tensor, was[place->second]));
        const auto equal = equals.find(place->second);
        if (!is_known && equal != equals.end()) {
          const auto now = by_name_.find(was[equal->second].name);
          if (now != by_name_.end()) {
            ETSTREAM_ASSIGN(is_known, are_same(tensor, *now->second));
          }
        }
        if (is_known) continue;
      }
      names.push_back(tensor.name);
    }
    if (names.empty()) return {};
    given_.warn(error_in(
        ErrorCode::kInvalidArgument, now_name(),
        "expected its weights in payloads of {} or as they are in {}, found {} in neither: {}",
        given_.program->file().name(), was_name(), counted(names.size(), "tensor"), names_text(names)));
    return {};
  }

  /// Returns the new tensor in the place of an old one. It is cast to the old one's type if what follows
  /// depends on that.
  Result<const CheckpointTensor*> now(std::size_t tensor) {
    std::optional<CheckpointTensor>& out = now_[tensor];
    if (out) return &*out;
    const CheckpointTensor& was = given_.was->tensors[tensor];
    const std::string file = now_name();
    const auto found = by_name_.find(was.name);
    if (found == by_name_.end()) {
      return error_in(ErrorCode::kInvalidArgument, file, "expected a tensor {} as in {}, found none",
                      quote(was.name), was_name());
    }
    const CheckpointTensor& is = *found->second;
    if (!is_plain(is) || is.layout->sizes != was.layout->sizes) {
      return error_in(ErrorCode::kInvalidArgument, file, "tensor {}: expected {} as in {}, found {}",
                      quote(was.name), describe(*was.layout), was_name(),
                      is.layout ? describe(*is.layout) : is.type);
    }
    out = is;
    const ScalarType type = was.layout->scalar_type;
    if (is.layout->scalar_type == type) return &*out;
    if (!is_floating_point(type) || !is_floating_point(is.layout->scalar_type)) {
      return error_in(ErrorCode::kInvalidArgument, file, "tensor {}: expected {}, found {}", quote(was.name),
                      describe(*was.layout), describe(*is.layout));
    }
    if (!is.scales.empty() || !was.scales.empty()) {
      return with_advice(error_in(ErrorCode::kUnsupported, file,
                                  "tensor {} has a scale beside it, which is not applied when it becomes {}",
                                  quote(was.name), name_of(type)),
                         {"save the model dequantised first"});
    }
    if (!needs_type_.contains(tensor)) return &*out;
    ETSTREAM_ASSIGN(out->data, convert_floats(is.data, is.layout->scalar_type, type));
    out->layout->scalar_type = type;
    return &*out;
  }

  /// Notes the key of a payload that stays, which no other may get.
  Result<void> note_key(const WeightPayload& payload) {
    if (payload.hashes.empty()) return {};
    ETSTREAM_ASSIGN(std::string hash, characters_of(payload.hashes.front()));
    labels_.emplace(std::move(hash), payload.label);
    return {};
  }

  Result<void> replace(const ExplainedPayload& each) {
    ETSTREAM_ASSIGN(const ByteSource bytes, take_steps(find_, one_way(each.pieces)));
    ETSTREAM_TRY(require_one_meaning(each, bytes));
    out_.push_back({each.payload.data, bytes, kWeights});
    ETSTREAM_ASSIGN(const auto keys, keys_of(each.payload));
    if (keys.empty()) return {};
    ETSTREAM_ASSIGN(const std::string hash, sha256_of(bytes));
    const auto [there, is_new] = labels_.try_emplace(hash, each.payload.label);
    if (!is_new) {
      return error_in(
          ErrorCode::kInvalidArgument, given_.program->file().name(),
          "expected {} and {} to differ, found the same bytes for both in {}: an export would store "
          "them once",
          there->second, each.payload.label, now_name());
    }
    const auto characters = std::as_bytes(std::span(hash));
    const ByteSource key = ByteSource::owned({characters.begin(), characters.end()});
    for (const ByteSource& place : keys) out_.push_back({place, key, kKey});
    return {};
  }

  static Result<std::string> sha256_of(const ByteSource& bytes) {
    Sha256 hasher;
    ETSTREAM_TRY(read_pieces(bytes, [&](std::span<const std::byte> piece) { hasher.update(piece); }));
    return hasher.hex();
  }

  static Result<std::string> characters_of(const ByteSource& key) {
    std::string out(static_cast<std::size_t>(key.size()), '\0');
    ETSTREAM_TRY(key.read_at(0, std::as_writable_bytes(std::span(out))));
    return out;
  }

  /// Returns the places of the keys that are the SHA-256 of the old bytes, of those that look so.
  static Result<std::vector<ByteSource>> keys_of(const WeightPayload& payload) {
    std::vector<ByteSource> out;
    if (payload.hashes.empty()) return out;
    ETSTREAM_ASSIGN(const std::string hash, sha256_of(payload.data));
    for (const ByteSource& place : payload.hashes) {
      ETSTREAM_ASSIGN(const std::string key, characters_of(place));
      if (key == hash) out.push_back(place);
    }
    return out;
  }

  /// Describes a piece for people: "'w', transposed".
  [[nodiscard]] std::string text_of(const WeightPiece& piece) const {
    std::string out = quote(given_.was->tensors[piece.steps.tensor].name);
    for (const WeightStep& step : piece.steps.steps) {
      out += ", " + describe(step);
      const auto* const norm = std::get_if<NormStep>(&step);
      if (norm == nullptr) continue;
      const std::string& mean = given_.was->tensors[norm->mean].name;
      out += text(" ({}, epsilon {})", quote(mean), exact_text(norm->epsilon));
    }
    if (piece.at != 0) out += text(" from byte {} on", piece.at);
    return out;
  }

  /// Checks that all ways that may be meant still give the same bytes.
  Result<void> require_one_meaning(const ExplainedPayload& each, const ByteSource& bytes) {
    const WeightPiece* one = each.pieces.empty() ? nullptr : &each.pieces.front();
    const auto refuse = [&](const std::string& other) {
      return error_in(ErrorCode::kInvalidArgument, now_name(),
                      "{} may be {} or {}, which were equal and differ now", each.payload.label,
                      one == nullptr ? each.constant : text_of(*one), other);
    };
    if (!each.constant.empty() || !each.too_many.tensors.empty()) {
      ETSTREAM_ASSIGN(bool same, same_bytes(bytes, each.payload.data));
      if (!same && !each.constant.empty()) return refuse(each.constant);
      same &= !each.too_many.may_be_others;
      for (const std::size_t tensor : each.too_many.tensors) {
        const CheckpointTensor& was = given_.was->tensors[tensor];
        const auto now = by_name_.find(was.name);
        same &= now != by_name_.end();
        if (same) {
          ETSTREAM_ASSIGN(same, are_same(*now->second, was));
        }
        if (!same) return refuse(text("many joined tensors, such as {}", quote(was.name)));
      }
    }
    for (const WeightPiece& piece : each.pieces) {
      if (piece.at == one->at + one->size) one = &piece;  // the next one of one_way()
      if (&piece == one) continue;
      ETSTREAM_ASSIGN(const ByteSource other, take_steps(find_, piece.steps));
      ETSTREAM_ASSIGN(const ByteSource place, bytes.slice(piece.at, piece.size));
      ETSTREAM_ASSIGN(const bool same, same_bytes(place, other));
      if (!same) return refuse(text_of(piece));
    }
    return {};
  }

  const Reweighting& given_;
  const std::vector<ExplainedPayload>& payloads_;
  std::map<std::string, const CheckpointTensor*> by_name_;
  std::set<std::size_t> needs_type_;                  // old tensors whose type the steps depend on
  std::vector<std::optional<CheckpointTensor>> now_;  // by the place of the old tensor
  FindTensor find_;                                   // in now_
  std::map<std::string, std::string> labels_;         // of payloads, by hash
  std::vector<Replacement> out_;
};

}  // namespace

Result<ReweightingPlan> plan(const Reweighting& description) {
  return without_exceptions([&]() -> Result<ReweightingPlan> {
    Checkpoint was = *description.was;
    ETSTREAM_ASSIGN(auto payloads, explain_payloads(*description.program, description.weights, was));
    ReweightingPlan out;
    ETSTREAM_ASSIGN(out.kept, keep(description.keep, description.program->file().name(), payloads));
    ETSTREAM_ASSIGN(auto frequencies, read_frequencies(*description.now));
    // Frequencies that no config says stay.
    const auto old_ones = std::span(was.tensors).subspan(description.was->tensors.size());
    if (!frequencies) frequencies.emplace(old_ones.begin(), old_ones.end());
    Reweighting given = description;
    given.was = &was;
    ETSTREAM_ASSIGN(const auto replacements, Reweighter(given, payloads, *frequencies).run());
    for (const ExplainedPayload& each : payloads)
      if (!each.pieces.empty()) ++out.replaced;
    ETSTREAM_ASSIGN(out.program, plan_with(description.program->file(), replacements));
    for (const TensorDataFile* file : description.weights) {
      ETSTREAM_ASSIGN(out.weights.emplace_back(), plan_with(file->file(), replacements));
    }
    out.origins = origins_of(payloads, was);
    return out;
  });
}

}  // namespace etstream
