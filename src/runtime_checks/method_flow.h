// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds that a method's values may hold before each of its instructions, on every way through them:
// ValueFlow follows effects, and MethodFlow tells it those of a method's instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "etstream/result.h"
#include "formats/pte/program_views.h"
#include "runtime_checks/method_calls.h"

namespace etstream {

/// Callers first describe each instruction, then follow them all, then go through them in order. Memory: 6
/// bytes a value, 4 an instruction and 16 for its effect. Time: in proportion to both.
class ValueFlow {
 public:
  /// `start` has the kinds of each value when the method is loaded.
  explicit ValueFlow(std::vector<Kinds> start);

  /// Begins the next instruction; the first one is number 0. The calls below describe it.
  void begin_instruction();
  void set(std::uint32_t value, Kinds kinds);
  void copy(std::uint32_t from, std::uint32_t to);
  /// Sets an integer for two integers, and a double for a double and either.
  void calculate(std::uint32_t a, std::uint32_t b, std::uint32_t to);
  /// Sets a number that is one of two.
  void choose(std::uint32_t a, std::uint32_t b, std::uint32_t to);
  /// Jumps to an instruction: always if `only_unless` is a value that no instruction changes, otherwise
  /// perhaps.
  void jump(std::uint32_t instruction, std::optional<std::uint32_t> only_unless);
  /// Makes a value hold its first kinds again when a run begins.
  void renew(std::uint32_t value);

  /// Follows the instructions, once all are described. If a method has too many paths, it returns false, and
  /// the values that it changes may hold anything.
  bool follow();

  /// Goes on to the place before an instruction, which must not be before the last one; the number of
  /// instructions stands for the end. Returns whether a path leads there.
  bool go_to(std::uint32_t instruction);
  [[nodiscard]] Kinds kinds_of(std::uint32_t value) const;
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

  void add(const Step& step);
  void find_cells();
  void find_places();
  bool follow_once();
  bool join(Place& place) const;
  void enter(std::uint32_t instruction);
  void carry_out(const Step& step);
  [[nodiscard]] Kinds result_of(const Step& step) const;
  [[nodiscard]] std::span<const Step> steps_of(std::uint32_t instruction) const;
  Place& place_of(std::uint32_t instruction);
  bool give_up();

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

// A walk through a method's instructions that follows their effects on its values.

/// A bit among the kinds of a value: it is a tensor to which nothing has been written in a run.
constexpr Kinds kEmpty = 0x4000;
/// Another one: it is a tensor of a quantized dtype.
constexpr Kinds kQuantized = 0x2000;

/// Follows the kinds of the values through the instructions.
class ETSTREAM_HIDDEN MethodFlow {
 public:
  /// Marks the values that are replaced or results. `calls` outlives it.
  [[nodiscard]] static Result<MethodFlow> follow(MethodCalls& calls);

  [[nodiscard]] ValueFlow& values() noexcept { return *flow_; }

 private:
  explicit MethodFlow(MethodCalls& calls) : calls_(&calls) {}

  Result<void> note(const pte::Call& call);
  Result<void> note_kernel(const pte::Call& call);
  Result<void> begin();
  Result<void> describe(const pte::Call& call, std::uint32_t first);
  Result<void> describe_jump(const pte::Call& call, std::uint32_t first);
  Result<void> describe_kernel(const pte::Call& call);
  Result<void> describe_number(const Callee& callee, const NumberList<std::int32_t>& args);
  Result<void> describe_written(const Callee& callee, const NumberList<std::int32_t>& args);
  Result<void> fill(std::int32_t value);
  [[nodiscard]] Result<Kinds> kinds_of_element(std::int32_t value) const;

  MethodCalls* calls_;
  std::optional<ValueFlow> flow_;
};

}  // namespace etstream
