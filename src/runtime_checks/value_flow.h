// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds that a method's values may hold before each of its instructions, on every way through them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "formats/pte/program_model.h"

namespace etstream {

/// Callers first describe each instruction, then follow them all, then go through them in order. Memory: 6
/// bytes a value, 4 an instruction and 16 for its effect. Time: in proportion to both.
class ValueFlow {
 public:
  /// `start` has the kinds of each value when the method is loaded.
  explicit ValueFlow(std::vector<Kinds> start) : start_(std::move(start)), cells_(start_.size(), kNoCell) {}

  /// Begins the next instruction; the first one is number 0. The calls below describe it.
  void begin_instruction() { first_steps_.push_back(static_cast<std::uint32_t>(steps_.size())); }

  void set(std::uint32_t value, Kinds kinds) { add({Action::kSet, value, kinds}); }

  void copy(std::uint32_t from, std::uint32_t to) { add({Action::kCopy, to, from}); }

  /// Sets an integer for two integers, and a double for a double and either.
  void calculate(std::uint32_t a, std::uint32_t b, std::uint32_t to) { add({Action::kCalculate, to, a, b}); }

  /// Sets a number that is one of two.
  void choose(std::uint32_t a, std::uint32_t b, std::uint32_t to) { add({Action::kChoose, to, a, b}); }

  /// Jumps to an instruction: always if `only_unless` is a value that no instruction changes, otherwise
  /// perhaps.
  void jump(std::uint32_t instruction, std::optional<std::uint32_t> only_unless) {
    add({only_unless ? Action::kJumpAlways : Action::kJump, instruction, only_unless.value_or(0)});
  }

  /// Makes a value hold its first kinds again when a run begins.
  void renew(std::uint32_t value) { renewed_.push_back(value); }

  /// Follows the instructions, once all are described. If a method has too many paths, it returns false, and
  /// the values that it changes may hold anything.
  bool follow() {
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

  /// Goes on to the place before an instruction, which must not be before the last one; the number of
  /// instructions stands for the end. Returns whether a path leads there.
  bool go_to(std::uint32_t instruction) {
    for (; at_ < instruction; ++at_) {
      for (const Step& step : steps_of(at_)) {
        if (is_reached_) carry_out(step);
      }
      enter(at_ + 1);
    }
    return is_reached_;
  }

  Kinds kinds_of(std::uint32_t value) const {
    return is_changed(value) ? state_[cells_[value]] : start_[value];
  }

  /// Returns whether instructions change it.
  [[nodiscard]] bool is_changed(std::uint32_t value) const { return cells_[value] != kNoCell; }
  [[nodiscard]] std::uint32_t instructions() const { return static_cast<std::uint32_t>(first_steps_.size()); }

 private:
  enum class Action : std::uint8_t { kSet, kCopy, kCalculate, kChoose, kJump, kJumpAlways };
  struct Step {
    Action action;
    std::uint32_t target;
    std::uint32_t a = 0;
    std::uint32_t b = 0;
  };
  using State = std::vector<Kinds>;  // by cell
  struct Place {
    std::uint32_t instruction;
    bool is_reached = false;
    State state;
  };
  static constexpr std::uint32_t kNoCell = 0xffffffff;
  static constexpr int kMostPasses = 8;
  /// The most kinds that are kept for each value and instruction. A value that changes has some at each place
  /// that a jump leads to.
  static constexpr std::uint64_t kMostStates = 16;

  void add(const Step& step) {
    steps_.push_back(step);
    if (step.action < Action::kJump) cells_[step.target] = 0;
  }

  void find_cells() {
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
  void find_places() {
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
  bool follow_once() {
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

  /// Adds the current kinds to those in `place`. Returns whether that changes them.
  bool join(Place& place) const {
    if (!is_reached_) return false;
    bool is_new = !std::exchange(place.is_reached, true);
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const auto all = static_cast<Kinds>(place.state[i] | state_[i]);
      is_new |= all != std::exchange(place.state[i], all);
    }
    return is_new;
  }

  /// Adds the current kinds to the place at an instruction, if it is one, and continues from there.
  void enter(std::uint32_t instruction) {
    if (next_place_ >= places_.size() || places_[next_place_].instruction != instruction) return;
    Place& place = places_[next_place_++];
    join(place);
    state_ = place.state;
    is_reached_ = place.is_reached;
  }

  void carry_out(const Step& step) {
    if (step.action == Action::kJump) return;
    if (step.action == Action::kJumpAlways) {
      is_reached_ = false;
    } else {
      state_[cells_[step.target]] = result_of(step);
    }
  }

  Kinds result_of(const Step& step) const {
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

  std::span<const Step> steps_of(std::uint32_t instruction) const {
    const std::size_t end = instruction + 1 < instructions() ? first_steps_[instruction + 1] : steps_.size();
    return std::span(steps_).subspan(first_steps_[instruction], end - first_steps_[instruction]);
  }

  Place& place_of(std::uint32_t instruction) {
    return *std::lower_bound(places_.begin(), places_.end(), instruction,
                             [](const Place& place, std::uint32_t at) { return place.instruction < at; });
  }

  bool give_up() {
    for (const std::uint32_t value : changed_) start_[value] = kAnything;
    std::fill(cells_.begin(), cells_.end(), kNoCell);
    state_.clear();
    places_.clear();
    steps_.clear();
    std::fill(first_steps_.begin(), first_steps_.end(), 0);
    is_reached_ = true;
    return false;
  }

  std::vector<Kinds> start_;
  std::vector<std::uint32_t> cells_;    // one a value; kNoCell where none changes it
  std::vector<std::uint32_t> changed_;  // the values that have cells
  std::vector<std::uint32_t> renewed_;
  std::vector<std::uint32_t> first_steps_;  // one an instruction
  std::vector<Step> steps_;
  std::vector<Place> places_;  // the start, where jumps lead, and the end, in order
  std::size_t next_place_ = 0;
  std::uint32_t at_ = 0;  // the instruction that the state below is before
  bool is_reached_ = true;
  State state_;
};

}  // namespace etstream
