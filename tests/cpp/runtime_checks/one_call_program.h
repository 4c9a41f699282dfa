// SPDX-License-Identifier: BSD-3-Clause
//
// A sound program of one call, for tests that damage it and check what ProgramFile::verify finds.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "etstream/program.h"
#include "file_bytes.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::one_call {

using namespace program;  // NOLINT: the generated types are what these tests are about

enum Index : std::int32_t { kInput, kOther, kAlpha, kOutput, kList, kNone, kText };

template <class Held>
Held& add_value(ExecutionPlanT& plan, Held held) {
  plan.values.push_back(std::make_unique<EValueT>());
  plan.values.back()->val.Set(std::move(held));
  return *static_cast<Held*>(plan.values.back()->val.value);
}

inline void add_tensor(ExecutionPlanT& plan) {
  TensorT tensor;
  tensor.scalar_type = scalar_type::ScalarType_FLOAT;
  tensor.sizes = {2};
  tensor.dim_order = {0};
  add_value(plan, std::move(tensor));
}

template <class Call>
void add_call(ExecutionPlanT& plan, Call call) {
  plan.chains[0]->instructions.push_back(std::make_unique<InstructionT>());
  plan.chains[0]->instructions.back()->instr_args.Set(std::move(call));
}

inline void move(ExecutionPlanT& plan, std::int32_t from, std::int32_t to) {
  MoveCallT moved;
  moved.move_from = from;
  moved.move_to = to;
  add_call(plan, moved);
}

inline void call(ExecutionPlanT& plan, const std::string& name, const std::string& overload,
                 std::vector<std::int32_t> args) {
  KernelCallT kernel;
  kernel.op_index = static_cast<std::int32_t>(plan.operators.size());
  kernel.args = std::move(args);
  plan.operators.push_back(std::make_unique<OperatorT>());
  plan.operators.back()->name = name;
  plan.operators.back()->overload = overload;
  add_call(plan, std::move(kernel));
}

/// Makes out = input + 1 * other, with a list, a null and a string that nothing uses.
inline ProgramT sound_object() {
  ProgramT object;
  object.constant_segment = std::make_unique<SubsegmentOffsetsT>();
  object.constant_segment->offsets = {0};
  object.execution_plan.push_back(std::make_unique<ExecutionPlanT>());
  ExecutionPlanT& plan = *object.execution_plan[0];
  plan.name = "forward";
  plan.inputs = {kInput, kOther};
  plan.outputs = {kOutput};
  plan.chains.push_back(std::make_unique<ChainT>());
  add_tensor(plan);
  add_tensor(plan);
  add_value(plan, IntT()).int_val = 1;
  add_tensor(plan);
  add_value(plan, IntListT()).items = {kAlpha};
  add_value(plan, NullT());
  add_value(plan, StringT()).string_val = "text";
  call(plan, "aten::add", "out", {kInput, kOther, kAlpha, kOutput, kOutput});
  return object;
}

inline std::string packed(const ProgramT& object) {
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, Program::Pack(builder, &object));
  return finished(builder);
}

using Spoil = std::function<void(ExecutionPlanT&)>;

inline Findings findings_after(const Spoil& spoil) {
  ProgramT object = sound_object();
  spoil(*object.execution_plan[0]);
  return findings_of(packed(object));
}

inline void check_found(const std::string& expected, const Spoil& spoil) {
  CAPTURE(expected);
  const Findings findings = findings_after(spoil);
  CAPTURE(lines_of(findings.errors));
  REQUIRE(findings.errors.size() == 1);
  CHECK(findings.errors[0].message.starts_with("bad: offset "));
  CHECK(findings.errors[0].message.find(expected) != std::string::npos);
}

inline void check_sound(const Spoil& spoil) {
  const Findings findings = findings_after(spoil);
  CHECK(lines_of(findings.errors).empty());
}

inline KernelCallT& kernel(ExecutionPlanT& plan) {
  return *plan.chains[0]->instructions[0]->instr_args.AsKernelCall();
}

}  // namespace etstream::one_call
