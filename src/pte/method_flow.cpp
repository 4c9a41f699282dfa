// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1: what operators of the runtime's own give is as in kernels/prim_ops/register_prim_ops.cpp;
// of an operator without an `out`, the last argument becomes what it returns (codegen/gen.py).
#include "pte/method_flow.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "etstream/scalar_type.h"
#include "pte/kernel_rules.h"

namespace etstream {
namespace {

constexpr std::size_t kMostIndices = 16;
// Of a tensor of indices, instead of kinds.
constexpr Kinds kFresh = 1;
constexpr Kinds kStale = 2;

/// The kind of number that an operator of the runtime's own gives, whatever it takes.
constexpr std::pair<std::string_view, char> kGiven[] = {
    {"aten::sym_size.int", 'I'},
    {"aten::sym_numel", 'I'},
    {"executorch_prim::floordiv.int", 'I'},
    {"executorch_prim::mod.int", 'I'},
    {"executorch_prim::mod.Scalar", 'I'},
    {"executorch_prim::sym_int.Scalar", 'I'},
    {"executorch_prim::sym_max.Scalar", 'I'},
    {"executorch_prim::sym_min.Scalar", 'I'},
    {"executorch_prim::ceil.Scalar", 'I'},
    {"executorch_prim::round.Scalar", 'I'},
    {"executorch_prim::trunc.Scalar", 'I'},
    {"executorch_prim::sym_float.Scalar", 'D'},
    {"executorch_prim::truediv.Scalar", 'D'},
    {"executorch_prim::eq.Scalar", 'B'},
    {"executorch_prim::ge.Scalar", 'B'},
    {"executorch_prim::gt.Scalar", 'B'},
    {"executorch_prim::le.Scalar", 'B'},
    {"executorch_prim::lt.Scalar", 'B'},
    {"executorch_prim::sym_not.Scalar", 'B'},
};
constexpr std::string_view kCalculating[] = {
    "executorch_prim::add.Scalar", "executorch_prim::sub.Scalar", "executorch_prim::mul.Scalar",
    "executorch_prim::floordiv.Scalar", "executorch_prim::neg.Scalar"};

/// The arguments of a signature.
std::uint64_t count_of(std::string_view signature) {
  return signature.size() - static_cast<std::uint64_t>(std::count(signature.begin(), signature.end(), '>'));
}

}  // namespace

Result<MethodFlow> MethodFlow::follow(MethodCalls& calls) {
  MethodFlow out(calls);
  ETSTREAM_TRY(calls.for_each_call([&](const std::optional<pte::Call>& call,
                                       std::uint32_t) { return call ? out.note(*call) : Result<void>(); },
                                   [](std::uint32_t) {}));
  ETSTREAM_TRY(out.begin());
  std::uint32_t first = 0;  // of the chain's instructions
  ETSTREAM_TRY(calls.for_each_call(
      [&](const std::optional<pte::Call>& call, std::uint32_t) {
        out.flow_->begin_instruction();
        return call ? out.describe(*call, first) : Result<void>();
      },
      [&](std::uint32_t number) { first = number; }));
  out.flow_->follow();
  return out;
}

bool MethodFlow::is_stale(std::int32_t value) const {
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    if (indices_[i].value != value || calls_->slot(value).is_replaced) continue;
    const Kinds content = flow_->kinds_of(cell_of(i));
    return content != kAnything && (content & kStale) != 0;
  }
  return false;
}

Result<void> MethodFlow::note(const pte::Call& call) {
  if (call.kind() == GraphCall::Kind::kMove) {
    ETSTREAM_ASSIGN(const auto to, call.scalar<std::int32_t>(calls_->known().move_call.move_to));
    calls_->slot(to).is_replaced = true;
  }
  return call.kind() == GraphCall::Kind::kKernel ? note_kernel(call) : Result<void>();
}

Result<void> MethodFlow::note_kernel(const pte::Call& call) {
  ETSTREAM_ASSIGN(const Callee* callee, calls_->callee_of(call));
  ETSTREAM_ASSIGN(const auto args, calls_->arguments_of(call));
  if (!callee->signature) {
    for (std::uint64_t i = 0; i < args.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
      calls_->slot(value).is_replaced = true;
    }
    return {};
  }
  if (args.size() == 0) return {};
  ETSTREAM_ASSIGN(const std::int32_t last, args.at(args.size() - 1));
  if (callee->signature->ends_with('V')) calls_->slot(last).has_no_data = false;
  if (callee->gives_number()) calls_->slot(last).is_result = true;
  const std::string_view signature = *callee->signature;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < signature.size() && next < args.size(); ++i) {
    if (signature[i] == '>') continue;
    ETSTREAM_ASSIGN(const std::int32_t value, args.at(next++));
    if (i == 0 || signature[i - 1] != '>') continue;
    (signature.front() == '>' ? calls_->slot(value).is_buffer : calls_->slot(value).is_written) = true;
  }
  const auto number = argument_of_indices(callee->name);
  if (!number || *number >= args.size()) return {};
  ETSTREAM_ASSIGN(const std::int32_t value, args.at(*number));
  return note_indices(value);
}

Result<void> MethodFlow::note_indices(std::int32_t value) {
  const auto is_it = [&](const Indices& each) { return each.value == value; };
  if (calls_->slot(value).letter != 'T' || indices_.size() == kMostIndices ||
      std::any_of(indices_.begin(), indices_.end(), is_it))
    return {};
  ETSTREAM_ASSIGN(const auto place, calls_->place_of(value));
  if (!place || (place->dtype != ScalarType::kInt32 && place->dtype != ScalarType::kInt64)) return {};
  ETSTREAM_ASSIGN(const pte::Held held, calls_->held_by(value));
  ETSTREAM_ASSIGN(const pte::Storage storage, held.tensor().storage());
  indices_.push_back({value, *place, storage.kind == TensorStorage::kMutable});
  return {};
}

/// What the values hold when the method is loaded, and the inputs when it is run.
Result<void> MethodFlow::begin() {
  std::vector<Kinds> start(calls_->values());
  for (std::uint32_t i = 0; i < start.size(); ++i) {
    start[i] = kinds_of_letter(calls_->slot(i).letter);
    if (calls_->slot(i).is_empty) start[i] |= kEmpty;
  }
  ETSTREAM_ASSIGN(const auto inputs,
                  calls_->items_of<std::int32_t>(calls_->method(), calls_->known().method.inputs));
  for (const Indices& each : indices_) {
    bool is_input = false;
    for (std::uint64_t i = 0; i < inputs.size() && !is_input; ++i) {
      ETSTREAM_ASSIGN(const std::int32_t input, inputs.at(i));
      is_input = input == each.value;
    }
    // A buffer keeps what an operator, or another method, has put there.
    const Slot& held = calls_->slot(each.value);
    const bool is_kept = each.is_given || held.is_buffer || !held.is_written;
    start.push_back(is_input || is_kept ? kFresh : kStale);
  }
  flow_.emplace(std::move(start));
  for (std::uint64_t i = 0; i < inputs.size(); ++i) {
    ETSTREAM_ASSIGN(const std::int32_t input, inputs.at(i));
    flow_->renew(static_cast<std::uint32_t>(input));
    for (std::size_t j = 0; j < indices_.size(); ++j) {
      if (indices_[j].value == input) flow_->renew(cell_of(j));
    }
  }
  return {};
}

/// Of a chain whose first instruction has number `first`.
Result<void> MethodFlow::describe(const pte::Call& call, std::uint32_t first) {
  switch (call.kind().value_or(GraphCall::Kind::kFree)) {
    case GraphCall::Kind::kKernel:
      return describe_kernel(call);
    case GraphCall::Kind::kJumpIfFalse:
      return describe_jump(call, first);
    case GraphCall::Kind::kMove: {
      ETSTREAM_ASSIGN(const auto from, call.scalar<std::int32_t>(calls_->known().move_call.move_from));
      ETSTREAM_ASSIGN(const auto to, call.scalar<std::int32_t>(calls_->known().move_call.move_to));
      flow_->copy(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to));
      return {};
    }
    case GraphCall::Kind::kDelegate: {
      // Which of them it writes to is not known.
      ETSTREAM_ASSIGN(const auto args, calls_->arguments_of(call));
      for (std::uint64_t i = 0; i < args.size(); ++i) {
        ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
        ETSTREAM_TRY(fill(value));
        ETSTREAM_TRY(overwrite_indices(value, false));
      }
      return {};
    }
    case GraphCall::Kind::kFree:
      break;
  }
  return {};
}

Result<void> MethodFlow::describe_jump(const pte::Call& call, std::uint32_t first) {
  const pte::ProgramFields& known = calls_->known();
  ETSTREAM_ASSIGN(const auto condition, call.scalar<std::int32_t>(known.jump_false_call.cond_value_index));
  ETSTREAM_ASSIGN(const auto to, call.scalar<std::int32_t>(known.jump_false_call.destination_instruction));
  std::optional<std::uint32_t> only_unless;
  if (calls_->slot(condition).letter == 'B') {
    ETSTREAM_ASSIGN(const pte::Held held, calls_->held_by(condition));
    ETSTREAM_ASSIGN(const auto is_true, held.scalar<std::uint8_t>(known.boolean.content));
    if (is_true == 0) only_unless = static_cast<std::uint32_t>(condition);
  }
  flow_->jump(first + static_cast<std::uint32_t>(to), only_unless);
  return {};
}

Result<void> MethodFlow::describe_kernel(const pte::Call& call) {
  ETSTREAM_ASSIGN(const Callee* callee, calls_->callee_of(call));
  ETSTREAM_ASSIGN(const auto args, calls_->arguments_of(call));
  if (!callee->signature) {
    for (std::uint64_t i = 0; i < args.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
      ETSTREAM_TRY(fill(value));
      flow_->set(static_cast<std::uint32_t>(value), kAnything);
    }
    return {};
  }
  if (args.size() != count_of(*callee->signature)) return {};
  return callee->gives_number() ? describe_number(*callee, args) : describe_written(*callee, args);
}

Result<void> MethodFlow::describe_number(const Callee& callee, const NumberList<std::int32_t>& args) {
  std::vector<std::uint32_t> values;
  for (std::uint64_t i = 0; i < args.size(); ++i) {
    ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
    values.push_back(static_cast<std::uint32_t>(value));
  }
  const std::uint32_t to = values.back();
  for (const auto& [name, letter] : kGiven) {
    if (name != callee.name) continue;
    flow_->set(to, kinds_of_letter(letter));
    return {};
  }
  if (std::find(std::begin(kCalculating), std::end(kCalculating), callee.name) != std::end(kCalculating)) {
    flow_->calculate(values[0], values[values.size() - 2], to);
  } else if (callee.name == "executorch_prim::sym_ite.Scalar") {
    flow_->choose(values[1], values[2], to);
  } else if (callee.name == "aten::_local_scalar_dense") {
    ETSTREAM_ASSIGN(const Kinds kinds, kinds_of_element(static_cast<std::int32_t>(values[0])));
    flow_->set(to, kinds);
  } else {
    flow_->set(to, kAnything);
  }
  return {};
}

/// Of a tensor.
Result<Kinds> MethodFlow::kinds_of_element(std::int32_t value) const {
  if (calls_->slot(value).letter != 'T' || calls_->slot(value).is_replaced) return kAnything;
  ETSTREAM_ASSIGN(const pte::Held held, calls_->held_by(value));
  ETSTREAM_ASSIGN(const TensorLayout layout, held.tensor().layout());
  switch (layout.scalar_type) {
    case ScalarType::kUInt8:
    case ScalarType::kInt8:
    case ScalarType::kInt16:
    case ScalarType::kInt32:
    case ScalarType::kInt64:
      return kinds_of_letter('I');
    case ScalarType::kFloat32:
    case ScalarType::kFloat64:
      return kinds_of_letter('D');
    case ScalarType::kBool:
      return kinds_of_letter('B');
    default:
      return kAnything;
  }
}

Result<void> MethodFlow::describe_written(const Callee& callee, const NumberList<std::int32_t>& args) {
  const std::string_view signature = *callee.signature;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    if (signature[i] == '>') continue;
    const bool is_written = i > 0 && signature[i - 1] == '>';
    if (is_written || signature[i] == 'V') {
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(number));
      ETSTREAM_TRY(fill(value));
      if (is_written) ETSTREAM_TRY(overwrite_indices(value, true));
    }
    ++number;
  }
  // An operator that works in place: the others return nothing.
  if (!signature.starts_with(">T") || !signature.ends_with('*')) return {};
  ETSTREAM_ASSIGN(const std::int32_t last, args.at(args.size() - 1));
  const Slot& held = calls_->slot(last);
  if (held.letter != 'T' || held.is_replaced) {
    flow_->set(static_cast<std::uint32_t>(last), kinds_of_letter('T'));
  }
  return {};
}

/// By what writes to `value`, or to the tensors of that list.
Result<void> MethodFlow::fill(std::int32_t value) {
  const Slot& held = calls_->slot(value);
  if (held.is_empty) flow_->set(static_cast<std::uint32_t>(value), kinds_of_letter('T'));
  if (held.letter != 'L' && held.letter != 'O') return {};
  ETSTREAM_ASSIGN(const pte::Held list, calls_->held_by(value));
  ETSTREAM_ASSIGN(const auto items, calls_->items_of<std::int32_t>(list, list.items()));
  for (std::uint64_t i = 0; i < items.size(); ++i) {
    ETSTREAM_ASSIGN(const std::int32_t item, items.at(i));
    if (item != -1 && calls_->slot(item).is_empty) {
      flow_->set(static_cast<std::uint32_t>(item), kinds_of_letter('T'));
    }
  }
  return {};
}

/// `is_sure`: it is not only read.
Result<void> MethodFlow::overwrite_indices(std::int32_t value, bool is_sure) {
  if (indices_.empty()) return {};
  const Slot& held = calls_->slot(value);
  std::optional<PlannedPlace> place;
  if (held.letter == 'T' && !held.is_replaced) {
    ETSTREAM_ASSIGN(place, calls_->place_of(value));
  }
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    const PlannedPlace& own = indices_[i].place;
    if (!place) {  // it may be these
      flow_->set(cell_of(i), kFresh);
    } else if (place->overlaps(own)) {
      if (place->dtype == own.dtype) {
        flow_->set(cell_of(i), kFresh);
      } else if (is_sure) {
        flow_->set(cell_of(i), kStale);
      }
    }
  }
  return {};
}

}  // namespace etstream
