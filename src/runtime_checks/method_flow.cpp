// SPDX-License-Identifier: BSD-3-Clause
//
// Operators of ExecuTorch 1.5.1's own runtime return what kernels/prim_ops/register_prim_ops.cpp says. The
// last argument of an operator without an `out` becomes what it returns (codegen/gen.py).
#include "runtime_checks/method_flow.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/findings.h"
#include "etstream/tensor.h"

namespace etstream {
namespace {

constexpr int kMostPasses = 8;
/// The most kinds that are kept for each value and instruction. A value that changes has some at each place
/// that a jump leads to.
constexpr std::uint64_t kMostStates = 16;

/// The operators of the runtime's own that return an integer, a double or a boolean, whatever they take.
constexpr std::string_view kGiveInteger[] = {"aten::sym_size.int",
                                             "aten::sym_numel",
                                             "executorch_prim::floordiv.int",
                                             "executorch_prim::mod.int",
                                             "executorch_prim::mod.Scalar",
                                             "executorch_prim::sym_int.Scalar",
                                             "executorch_prim::sym_max.Scalar",
                                             "executorch_prim::sym_min.Scalar",
                                             "executorch_prim::ceil.Scalar",
                                             "executorch_prim::round.Scalar",
                                             "executorch_prim::trunc.Scalar"};
constexpr std::string_view kGiveDouble[] = {"executorch_prim::sym_float.Scalar",
                                            "executorch_prim::truediv.Scalar"};
constexpr std::string_view kGiveBoolean[] = {"executorch_prim::eq.Scalar", "executorch_prim::ge.Scalar",
                                             "executorch_prim::gt.Scalar", "executorch_prim::le.Scalar",
                                             "executorch_prim::lt.Scalar", "executorch_prim::sym_not.Scalar"};
/// The operators that return an integer for two integers, and a double for a double and either.
constexpr std::string_view kCalculate[] = {"executorch_prim::add.Scalar", "executorch_prim::sub.Scalar",
                                           "executorch_prim::mul.Scalar", "executorch_prim::floordiv.Scalar",
                                           "executorch_prim::neg.Scalar"};

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::uint32_t index_of(std::int32_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace

ValueFlow::ValueFlow(std::vector<Kinds> start) : start_(std::move(start)), cells_(start_.size(), kNoCell) {}

std::span<const ValueFlow::Step> ValueFlow::steps_of(std::uint32_t instruction) const {
  const std::size_t end = instruction + 1 < instructions() ? first_steps_[instruction + 1] : steps_.size();
  return std::span(steps_).subspan(first_steps_[instruction], end - first_steps_[instruction]);
}

void ValueFlow::begin_instruction() { first_steps_.push_back(static_cast<std::uint32_t>(steps_.size())); }

void ValueFlow::add(const Step& step) {
  steps_.push_back(step);
  if (step.action < Action::kJump) cells_[step.target] = 0;
}

void ValueFlow::set(std::uint32_t value, Kinds kinds) { add({Action::kSet, value, kinds}); }
void ValueFlow::copy(std::uint32_t from, std::uint32_t to) { add({Action::kCopy, to, from}); }
void ValueFlow::calculate(std::uint32_t a, std::uint32_t b, std::uint32_t to) {
  add({Action::kCalculate, to, a, b});
}
void ValueFlow::choose(std::uint32_t a, std::uint32_t b, std::uint32_t to) {
  add({Action::kChoose, to, a, b});
}
void ValueFlow::jump(std::uint32_t instruction, std::optional<std::uint32_t> only_unless) {
  add({only_unless ? Action::kJumpAlways : Action::kJump, instruction, only_unless.value_or(0)});
}
void ValueFlow::renew(std::uint32_t value) { renewed_.push_back(value); }

bool ValueFlow::follow() {
  find_cells();
  find_places();
  if (places_.empty()) return give_up();
  int passes = 0;
  while (follow_once()) {
    if (++passes == kMostPasses) return give_up();
  }
  at_ = 0;
  next_place_ = 0;
  is_reached_ = false;
  enter(0);
  return true;
}

void ValueFlow::find_cells() {
  for (std::uint32_t value = 0; value < cells_.size(); ++value) {
    if (cells_[value] == kNoCell) continue;
    cells_[value] = static_cast<std::uint32_t>(changed_.size());
    changed_.push_back(value);
    state_.push_back(start_[value]);
  }
  for (Step& step : steps_) {
    if (step.action == Action::kJumpAlways && is_changed(step.a)) step.action = Action::kJump;
  }
}

/// Finds the places that jumps lead to; finds none if there are too many.
void ValueFlow::find_places() {
  std::vector<std::uint32_t> instructions = {0, this->instructions()};
  for (const Step& step : steps_) {
    if (step.action >= Action::kJump) instructions.push_back(step.target);
  }
  std::sort(instructions.begin(), instructions.end());
  instructions.erase(std::unique(instructions.begin(), instructions.end()), instructions.end());
  const std::uint64_t limit = kMostStates * (start_.size() + first_steps_.size());
  if (instructions.size() * changed_.size() > limit) return;
  for (const std::uint32_t instruction : instructions) {
    places_.push_back({instruction, false, State(changed_.size(), 0)});
  }
  places_.front() = {0, true, state_};
}

/// Follows all instructions once, in order. Returns whether this must be done again, as a jump leads back
/// with something new.
bool ValueFlow::follow_once() {
  bool is_again = false;
  next_place_ = 0;
  is_reached_ = false;
  const std::uint32_t count = instructions();
  for (std::uint32_t i = 0; i < count; ++i) {
    enter(i);
    for (const Step& step : steps_of(i)) {
      if (step.action >= Action::kJump) is_again |= join(place_of(step.target)) && step.target <= i;
      carry_out(step);
    }
  }
  enter(count);
  // Values keep their kinds until the next run, except those that a run begins with.
  for (const std::uint32_t value : renewed_) {
    if (is_changed(value)) state_[cells_[value]] = start_[value];
  }
  return join(places_.front()) || is_again;
}

/// Adds the current kinds to the place at an instruction, if it is one, and continues from there.
void ValueFlow::enter(std::uint32_t instruction) {
  if (next_place_ >= places_.size() || places_[next_place_].instruction != instruction) return;
  Place& place = places_[next_place_++];
  join(place);
  state_ = place.state;
  is_reached_ = place.is_reached;
}

/// Adds the current kinds to those in `place`. Returns whether that changes them.
bool ValueFlow::join(Place& place) const {
  if (!is_reached_) return false;
  bool is_new = !std::exchange(place.is_reached, true);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const auto all = static_cast<Kinds>(place.state[i] | state_[i]);
    is_new |= all != std::exchange(place.state[i], all);
  }
  return is_new;
}

ValueFlow::Place& ValueFlow::place_of(std::uint32_t instruction) {
  return *std::lower_bound(places_.begin(), places_.end(), instruction,
                           [](const Place& place, std::uint32_t at) { return place.instruction < at; });
}

void ValueFlow::carry_out(const Step& step) {
  if (step.action == Action::kJump) return;
  if (step.action == Action::kJumpAlways) {
    is_reached_ = false;
  } else {
    state_[cells_[step.target]] = result_of(step);
  }
}

Kinds ValueFlow::result_of(const Step& step) const {
  if (step.action == Action::kSet) return static_cast<Kinds>(step.a);
  const Kinds a = kinds_of(step.a);
  if (step.action == Action::kCopy) return a;
  const Kinds b = kinds_of(step.b);
  if (((a | b) & kAnything) != 0) return kAnything;
  if (step.action == Action::kChoose) return (a | b) & kAnyNumber;
  constexpr Kinds kInteger = kinds(pte::ValueKind::kInt);
  constexpr Kinds kDouble = kinds(pte::ValueKind::kDouble);
  Kinds out = a & b & kInteger;
  const bool has_both = (a & (kInteger | kDouble)) != 0 && (b & (kInteger | kDouble)) != 0;
  if (has_both && ((a | b) & kDouble) != 0) out |= kDouble;
  return out;
}

bool ValueFlow::give_up() {
  for (const std::uint32_t value : changed_) start_[value] = kAnything;
  std::fill(cells_.begin(), cells_.end(), kNoCell);
  state_.clear();
  places_.clear();
  steps_.clear();
  std::fill(first_steps_.begin(), first_steps_.end(), 0);
  is_reached_ = true;
  return false;
}

bool ValueFlow::go_to(std::uint32_t instruction) {
  for (; at_ < instruction; ++at_) {
    for (const Step& step : steps_of(at_)) {
      if (is_reached_) carry_out(step);
    }
    enter(at_ + 1);
  }
  return is_reached_;
}

Kinds ValueFlow::kinds_of(std::uint32_t value) const {
  return is_changed(value) ? state_[cells_[value]] : start_[value];
}

Result<MethodFlow> MethodFlow::follow(MethodCalls& calls) {
  MethodFlow out(calls);
  ETSTREAM_TRY(calls.for_each_call(
      [&](const pte::Call& call, std::uint32_t, std::uint32_t) { return out.note(call); }));
  ETSTREAM_TRY(out.begin());
  ETSTREAM_TRY(calls.for_each_call([&](const pte::Call& call, std::uint32_t, std::uint32_t first_of_chain) {
    out.flow_->begin_instruction();
    return out.describe(call, first_of_chain);
  }));
  if (!out.flow_->follow()) {
    add_warning(calls.findings(),
                calls.method().corrupt("few enough ways through the instructions to follow their values",
                                       "more, so that the kinds of values that change are not checked"));
  }
  return out;
}

Result<void> MethodFlow::note(const pte::Call& call) {
  if (call.kind() == CallKind::kMove) {
    ETSTREAM_ASSIGN(const auto to, call.scalar<std::int32_t>(calls_->known().move_call.move_to));
    calls_->tracked(to).is_replaced = true;
  }
  return call.kind() == CallKind::kKernel ? note_kernel(call) : Result<void>();
}

Result<void> MethodFlow::note_kernel(const pte::Call& call) {
  ETSTREAM_ASSIGN(const Callee* callee, calls_->callee_of(call));
  ETSTREAM_ASSIGN(const auto args, calls_->arguments_of(call));
  if (!callee->signature) {
    return for_each(args, [&](std::int32_t value) { calls_->tracked(value).is_replaced = true; });
  }
  if (args.size() == 0) return {};
  ETSTREAM_ASSIGN(const std::int32_t last, args.at(args.size() - 1));
  const Signature signature = *callee->signature;
  if (signature.back() == Parameter::kView) calls_->tracked(last).has_no_data = false;
  if (callee->gives_number()) calls_->tracked(last).is_result = true;
  return {};
}

/// Describes what the values hold when the method is loaded, and the inputs when it is run.
Result<void> MethodFlow::begin() {
  std::vector<Kinds> start(calls_->values());
  for (std::uint32_t i = 0; i < start.size(); ++i) {
    start[i] = kinds(calls_->tracked(i).kind);
    if (calls_->tracked(i).is_empty) start[i] |= kEmpty;
    if (calls_->tracked(i).has_scales) start[i] |= kQuantized;
  }
  ETSTREAM_ASSIGN(const auto inputs,
                  calls_->items_of<std::int32_t>(calls_->method(), calls_->known().execution_plan.inputs));
  flow_.emplace(std::move(start));
  return for_each(inputs, [&](std::int32_t input) { flow_->renew(index_of(input)); });
}

/// Describes the effect of a call in a chain whose first instruction has number `first`.
Result<void> MethodFlow::describe(const pte::Call& call, std::uint32_t first) {
  switch (call.kind().value_or(CallKind::kFree)) {
    case CallKind::kKernel:
      return describe_kernel(call);
    case CallKind::kJumpIfFalse:
      return describe_jump(call, first);
    case CallKind::kMove: {
      ETSTREAM_ASSIGN(const auto from, call.scalar<std::int32_t>(calls_->known().move_call.move_from));
      ETSTREAM_ASSIGN(const auto to, call.scalar<std::int32_t>(calls_->known().move_call.move_to));
      flow_->copy(index_of(from), index_of(to));
      return {};
    }
    case CallKind::kDelegate: {
      // The call may write to any of them.
      return for_each(calls_->arguments_of(call), [&](std::int32_t value) { return fill(value); });
    }
    case CallKind::kFree:
      break;
  }
  return {};
}

Result<void> MethodFlow::describe_jump(const pte::Call& call, std::uint32_t first) {
  const program::Fields& known = calls_->known();
  ETSTREAM_ASSIGN(const auto condition, call.scalar<std::int32_t>(known.jump_false_call.cond_value_index));
  ETSTREAM_ASSIGN(const auto to, call.scalar<std::int32_t>(known.jump_false_call.destination_instruction));
  std::optional<std::uint32_t> only_unless;
  if (calls_->tracked(condition).kind == pte::ValueKind::kBool) {
    ETSTREAM_ASSIGN(const pte::Held held, calls_->held_by(condition));
    ETSTREAM_ASSIGN(const auto is_true, held.scalar<std::uint8_t>(known.bool_.bool_val));
    if (is_true == 0) only_unless = index_of(condition);
  }
  flow_->jump(first + index_of(to), only_unless);
  return {};
}

Result<void> MethodFlow::describe_kernel(const pte::Call& call) {
  ETSTREAM_ASSIGN(const Callee* callee, calls_->callee_of(call));
  ETSTREAM_ASSIGN(const auto args, calls_->arguments_of(call));
  if (!callee->signature) {
    return for_each(args, [&](std::int32_t value) -> Result<void> {
      ETSTREAM_TRY(fill(value));
      flow_->set(index_of(value), kAnything);
      return {};
    });
  }
  if (args.size() != callee->signature->size()) return {};
  return callee->gives_number() ? describe_number(*callee, args) : describe_written(*callee, args);
}

Result<void> MethodFlow::describe_number(const Callee& callee, const NumberList<std::int32_t>& args) {
  std::vector<std::uint32_t> values;
  ETSTREAM_TRY(for_each(args, [&](std::int32_t value) { values.push_back(index_of(value)); }));
  const std::uint32_t to = values.back();
  if (is_among(callee.name, kGiveInteger)) {
    flow_->set(to, kinds(pte::ValueKind::kInt));
  } else if (is_among(callee.name, kGiveDouble)) {
    flow_->set(to, kinds(pte::ValueKind::kDouble));
  } else if (is_among(callee.name, kGiveBoolean)) {
    flow_->set(to, kinds(pte::ValueKind::kBool));
  } else if (is_among(callee.name, kCalculate)) {
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

/// Returns the kinds of number as which an element of a tensor is read.
Result<Kinds> MethodFlow::kinds_of_element(std::int32_t value) const {
  if (calls_->tracked(value).kind != pte::ValueKind::kTensor || calls_->tracked(value).is_replaced)
    return kAnything;
  ETSTREAM_ASSIGN(const pte::Held held, calls_->held_by(value));
  ETSTREAM_ASSIGN(const TensorLayout layout, held.tensor().layout());
  constexpr ScalarType kIntegerTypes[] = {ScalarType::kUInt8, ScalarType::kInt8, ScalarType::kInt16,
                                          ScalarType::kInt32, ScalarType::kInt64};
  const ScalarType dtype = layout.scalar_type;
  if (std::ranges::count(kIntegerTypes, dtype) > 0) return kinds(pte::ValueKind::kInt);
  if (dtype == ScalarType::kFloat32 || dtype == ScalarType::kFloat64) return kinds(pte::ValueKind::kDouble);
  return dtype == ScalarType::kBool ? kinds(pte::ValueKind::kBool) : kAnything;
}

Result<void> MethodFlow::describe_written(const Callee& callee, const NumberList<std::int32_t>& args) {
  const Signature signature = *callee.signature;
  const auto describe_argument = [&](std::int32_t value, std::uint32_t number) -> Result<void> {
    const Parameter parameter = signature[number];
    return is_written(parameter) || parameter == Parameter::kView ? fill(value) : Result<void>();
  };
  ETSTREAM_TRY(for_each(args, describe_argument));
  // This operator works in place: the others return nothing.
  if (!is_written(signature.front()) || signature.back() != Parameter::kReturn) return {};
  ETSTREAM_ASSIGN(const std::int32_t first, args.at(0));
  ETSTREAM_ASSIGN(const std::int32_t last, args.at(args.size() - 1));
  const TrackedValue& held = calls_->tracked(last);
  if (held.kind != pte::ValueKind::kTensor || held.is_replaced) flow_->copy(index_of(first), index_of(last));
  return {};
}

/// Follows a write to `value`, or to the tensors of that list.
Result<void> MethodFlow::fill(std::int32_t value) {
  const auto fill_tensor = [&](std::int32_t tensor) {
    const TrackedValue& held = calls_->tracked(tensor);
    const Kinds quantized = held.has_scales ? kQuantized : Kinds{};
    if (held.is_empty) flow_->set(index_of(tensor), kinds(pte::ValueKind::kTensor, quantized));
  };
  fill_tensor(value);
  if (!calls_->is_list_of_tensors(value)) return {};
  return for_each(calls_->items_of<std::int32_t>(value), [&](std::int32_t item) {
    if (item != -1) fill_tensor(item);
  });
}

}  // namespace etstream
