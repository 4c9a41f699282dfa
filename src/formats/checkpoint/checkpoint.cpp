// SPDX-License-Identifier: BSD-3-Clause
//
// Opening checkpoints, and changes to their tensors until a file of them is described.
#include "etstream/checkpoint.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/weight_sets.h"
#include "formats/safetensors/safetensors.h"
#include "formats/tensor/converted_floats.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

Checkpoint checkpoint_of(GivenWeights given) {
  Checkpoint out;
  if (!given.index.empty()) out.files.push_back(given.index);
  for (WeightFile& file : given.files) {
    out.files.push_back(std::move(file.path));
    std::ranges::move(file.tensors, std::back_inserter(out.tensors));
  }
  note_scales(out.tensors);
  return out;
}

}  // namespace

Result<std::vector<Checkpoint>> open_checkpoints(const std::vector<std::string>& paths,
                                                 const CheckpointOptions& options) {
  return without_exceptions([&]() -> Result<std::vector<Checkpoint>> {
    ETSTREAM_ASSIGN(OpenedWeights opened, open_weights(paths, options));
    if (!opened.problems.empty()) return std::move(opened.problems.front());
    std::vector<Checkpoint> out;
    out.reserve(opened.given.size());
    for (GivenWeights& given : opened.given) out.push_back(checkpoint_of(std::move(given)));
    return out;
  });
}

Result<Checkpoint> open_checkpoint(const std::string& path, const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(auto opened, open_checkpoints({path}, options));
  return std::move(opened.front());
}

Result<WeightPaths> find_weights(const std::vector<std::string>& paths, const CheckpointOptions& options) {
  return without_exceptions([&]() -> Result<WeightPaths> {
    ETSTREAM_ASSIGN(OpenedWeights opened, open_weights(paths, options, OtherFiles::kLeft));
    WeightPaths out;
    for (const GivenWeights& given : opened.given) {
      for (const WeightFile& file : given.files) out.files.push_back(file.path);
    }
    out.problems = std::move(opened.problems);
    return out;
  });
}

Result<std::vector<std::string>> whole_sets(const std::vector<std::string>& paths,
                                            const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(WeightPaths found, find_weights(paths, options));
  if (!found.problems.empty()) return std::move(found.problems.front());
  return std::move(found.files);
}

namespace {

std::string type_of(const CheckpointTensor& tensor) {
  if (tensor.layout) return describe(*tensor.layout);
  return text("{} without a layout{}, of {}", tensor.type.empty() ? "data" : tensor.type,
              tensor.shape ? text(" but {}", list_text(*tensor.shape)) : "",
              counted(tensor.data.size(), "byte"));
}

/// Refuses two different tensors of one name. Error: kInvalidArgument.
Result<void> check_same(const CheckpointTensor& a, const CheckpointTensor& b, Comparisons& comparisons) {
  const auto differ = [&]<class... Arguments>(Template<Arguments...> words, const Arguments&... arguments) {
    return make_error(ErrorCode::kInvalidArgument, "tensor {} is in {} and in {} with other {}",
                      quote(a.name), a.data.name(), b.data.name(), text(words, arguments...));
  };
  const bool are_alike =
      a.layout ? a.layout == b.layout : !b.layout && a.type == b.type && a.shape == b.shape;
  if (!are_alike || a.data.size() != b.data.size()) {
    return differ("layouts: {} and {}", type_of(a), type_of(b));
  }
  ETSTREAM_ASSIGN(const auto difference, comparisons.first_difference(a.data, b.data));
  if (difference) return differ("bytes, from byte {} on", *difference);
  return {};
}

Error no_match(const std::string& glob) {
  return make_error(ErrorCode::kNotFound, "no tensor's name matches {}", quote(glob));
}

}  // namespace

Result<void> select(Checkpoint& checkpoint, const std::vector<std::string>& globs) {
  return without_exceptions([&]() -> Result<void> {
    std::vector<bool> used(globs.size());
    std::erase_if(checkpoint.tensors, [&](const CheckpointTensor& tensor) {
      bool matched = false;
      for (std::size_t i = 0; i < globs.size(); ++i) {
        if (!matches_glob(globs[i], tensor.name)) continue;
        used[i] = matched = true;
      }
      return !matched;
    });
    const auto unused = std::ranges::find(used, false);
    if (unused == used.end()) return {};
    return no_match(globs[static_cast<std::size_t>(unused - used.begin())]);
  });
}

Result<void> convert(Checkpoint& checkpoint, const std::vector<DtypeRule>& rules) {
  return without_exceptions([&]() -> Result<void> {
    for (const DtypeRule& rule : rules) {
      if (!is_floating_point(rule.type)) {
        return make_error(ErrorCode::kInvalidArgument,
                          "expected a floating-point type to convert to, found {}", name_of(rule.type));
      }
      const auto matches = [&](const CheckpointTensor& tensor) {
        return matches_glob(rule.glob, tensor.name);
      };
      // "*" stands for all tensors, even if there are none.
      if (rule.glob != "*" && std::ranges::none_of(checkpoint.tensors, matches)) return no_match(rule.glob);
    }
    // Returns the rule by which a tensor gets another type, or null.
    const auto rule_of = [&](const CheckpointTensor& tensor) -> const DtypeRule* {
      if (!tensor.layout || !is_floating_point(tensor.layout->scalar_type)) return nullptr;
      const auto rule = std::find_if(rules.rbegin(), rules.rend(), [&](const DtypeRule& candidate) {
        return matches_glob(candidate.glob, tensor.name);
      });
      return rule == rules.rend() || rule->type == tensor.layout->scalar_type ? nullptr : &*rule;
    };
    ETSTREAM_ASSIGN(auto scaled,
                    apply_scales(checkpoint, [&](const auto& tensor) { return rule_of(tensor) != nullptr; }));
    if (scaled) checkpoint = std::move(*scaled);
    // Tensors that share their bytes share the converted ones too.
    std::map<std::tuple<SourcePlace, ScalarType, ScalarType>, ByteSource> converted;
    for (CheckpointTensor& tensor : checkpoint.tensors) {
      const DtypeRule* const rule = rule_of(tensor);
      if (!rule) continue;
      const auto [there, is_new] =
          converted.try_emplace({tensor.data.place(), tensor.layout->scalar_type, rule->type});
      if (is_new) {
        ETSTREAM_ASSIGN(there->second, convert_floats(tensor.data, tensor.layout->scalar_type, rule->type));
      }
      tensor.data = there->second;
      tensor.layout->scalar_type = rule->type;
      tensor.type = name_of(rule->type);
    }
    return {};
  });
}

Result<Checkpoint> join(std::vector<Checkpoint> checkpoints) {
  return without_exceptions([&]() -> Result<Checkpoint> {
    // Without a copy of the first, which is mostly the only one.
    Checkpoint out = checkpoints.empty() ? Checkpoint() : std::move(checkpoints.front());
    for (Checkpoint& checkpoint : std::span(checkpoints).subspan(checkpoints.empty() ? 0 : 1)) {
      std::ranges::move(checkpoint.files, std::back_inserter(out.files));
      std::ranges::move(checkpoint.tensors, std::back_inserter(out.tensors));
    }
    note_scales(out.tensors);  // those in another file, too
    return out;
  });
}

Result<void> merge(Checkpoint& checkpoint) {
  return without_exceptions([&]() -> Result<void> {
    std::vector<CheckpointTensor>& tensors = checkpoint.tensors;
    std::vector<std::uint32_t> by_name(tensors.size());
    std::iota(by_name.begin(), by_name.end(), 0U);
    std::ranges::stable_sort(by_name, {},
                             [&](std::uint32_t i) -> std::string_view { return tensors[i].name; });
    std::vector<bool> repeated(tensors.size());
    Comparisons comparisons;
    for (std::size_t i = 1; i < by_name.size(); ++i) {
      const CheckpointTensor& tensor = tensors[by_name[i]];
      const CheckpointTensor& before = tensors[by_name[i - 1]];
      if (tensor.name != before.name) continue;
      ETSTREAM_TRY(check_same(before, tensor, comparisons));
      repeated[by_name[i]] = true;
    }
    std::size_t i = 0;
    std::erase_if(tensors, [&](const CheckpointTensor&) { return repeated[i++]; });
    return {};
  });
}

Result<Checkpoint> open_joined_checkpoint(const std::vector<std::string>& paths,
                                          const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(auto checkpoints, open_checkpoints(paths, options));
  ETSTREAM_ASSIGN(Checkpoint joined, join(std::move(checkpoints)));
  ETSTREAM_TRY(merge(joined));
  return joined;
}

Result<TensorData> describe_tensor_data(Checkpoint checkpoint, const TensorDataOptions& options) {
  return without_exceptions([&]() -> Result<TensorData> {
    TensorData out;
    out.segment_alignment = options.segment_alignment;
    std::vector<ByteSource> sources;
    sources.reserve(checkpoint.tensors.size());
    out.entries.reserve(checkpoint.tensors.size());
    for (CheckpointTensor& tensor : checkpoint.tensors) {
      if (!tensor.layout && !tensor.type.empty() && !options.allow_opaque) {
        return with_advice(error_in(ErrorCode::kUnsupported, tensor.data.name(),
                                    "tensor {} is of type {}, which ExecuTorch has no tensors of",
                                    quote(tensor.name), printable(type_without_layout(tensor))),
                           {AdviceTerm::kAllowOpaque, " takes it as data without a layout"});
      }
      out.entries.push_back(
          {std::move(tensor.name), static_cast<std::uint32_t>(sources.size()), std::move(tensor.layout)});
      sources.push_back(std::move(tensor.data));
    }
    checkpoint.tensors = {};
    if (!options.share_equal) {
      for (ByteSource& source : sources) out.buffers.push_back({std::move(source)});
      return out;
    }
    ETSTREAM_ASSIGN(const auto first, first_equal(sources));
    std::vector<std::uint32_t> buffers(sources.size());
    for (std::uint32_t i = 0; i < first.size(); ++i) {
      if (first[i] == i) {
        buffers[i] = static_cast<std::uint32_t>(out.buffers.size());
        out.buffers.push_back({std::move(sources[i])});
      }
      out.entries[i].buffer = buffers[first[i]];
    }
    return out;
  });
}

}  // namespace etstream
