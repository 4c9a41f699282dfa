// SPDX-License-Identifier: BSD-3-Clause
#include "runtime_checks/value_flow.h"

#include <algorithm>
#include <utility>

namespace etstream {
namespace {

constexpr int kMostPasses = 8;
/// The most kinds that are kept for each value and instruction. A value that changes has some at each place
/// that a jump leads to.
constexpr std::uint64_t kMostStates = 16;

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

}  // namespace etstream
