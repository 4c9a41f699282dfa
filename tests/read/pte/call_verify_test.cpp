// SPDX-License-Identifier: BSD-3-Clause
//
// A program of one call, with one thing wrong in it: ProgramFile::verify finds it.
#include <doctest/doctest.h>

#include "pte/kernel_rules.h"
#include "pte/method_calls.h"
#include "pte/one_call_program.h"

namespace etstream::call_verify_test {
namespace {

using namespace one_call;  // NOLINT: the program that is spoilt

TEST_CASE("the unspoilt call has nothing to find") {
  check_sound([](ExecutionPlanT&) {});
}

TEST_CASE("an argument of another kind than the operator's schema has is found") {
  const auto argument = [](std::size_t number, std::int32_t value) {
    return [=](ExecutionPlanT& plan) { kernel(plan).args[number] = value; };
  };
  check_found("expected a tensor as argument 0 of aten::add.out, found an integer", argument(0, kAlpha));
  check_found("expected a number as argument 2 of aten::add.out, found a string", argument(2, kText));
  check_found("expected a tensor as argument 3 of aten::add.out, found null", argument(3, kNone));
  check_found("expected a tensor as argument 1 of aten::add.out, found a list of integers",
              argument(1, kList));
}

TEST_CASE("null is taken where an argument is optional") {
  check_sound([](ExecutionPlanT& plan) {
    call(plan, "aten::clamp", "out", {kInput, kNone, kAlpha, kOutput, kOutput});
  });
}

TEST_CASE("a call of more or fewer arguments than the operator has is found") {
  check_found("expected 5 arguments of aten::add.out, with what it gives, found 4",
              [](ExecutionPlanT& plan) { kernel(plan).args.pop_back(); });
  check_found("expected 5 arguments of aten::add.out, with what it gives, found 6",
              [](ExecutionPlanT& plan) { kernel(plan).args.push_back(kOutput); });
}

TEST_CASE("an operator without a name, with a long one or one that is not text is found where it is called") {
  const auto named = [](std::string name) {
    return [=](ExecutionPlanT& plan) { plan.operators[0]->name = name; };
  };
  check_found("expected the name of an operator that is called, found none", named(""));
  check_found("expected the name of an operator of at most 99 bytes, found 104",
              named(std::string(100, 'x')));
  check_found("expected the name of an operator in UTF-8", named("aten::\xff"));
  check_sound([](ExecutionPlanT& plan) { plan.operators.push_back(std::make_unique<OperatorT>()); });
}

TEST_CASE("an operator that is not known is its author's, and counted and named once") {
  const Findings findings = findings_after([](ExecutionPlanT& plan) {
    call(plan, "mine::op", "out", {kText, kNone});
    add_call(plan, KernelCallT(*plan.chains[0]->instructions.back()->instr_args.AsKernelCall()));
  });
  CHECK(lines_of(findings.errors).empty());
  CHECK(findings.unknown_operators == 1);
  CHECK(findings.unknown_operator_names == std::vector<std::string>{"mine::op.out"});
  CHECK(findings_after([](ExecutionPlanT&) {}).unknown_operators == 0);
}

TEST_CASE("an item of a list of integers that is none is found where an operator takes the list") {
  const auto spoil = [](ExecutionPlanT& plan) { plan.values[kList]->val.AsIntList()->items = {kText}; };
  check_sound(spoil);
  check_found("expected IntList.items of integers, found a string", [&](ExecutionPlanT& plan) {
    spoil(plan);
    call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
  });
}

TEST_CASE("a number that a call of the runtime's own writes may take the place of another") {
  const auto add = [](std::int32_t to) {
    return [=](ExecutionPlanT& plan) {
      plan.values[kAlpha]->val.Set(BoolT());
      call(plan, "executorch_prim::add", "Scalar", {kAlpha, kAlpha, to});
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
    };
  };
  check_sound(add(kAlpha));
  check_found("expected a number as argument 2 of executorch_prim::add.Scalar, found a string",
              [&](ExecutionPlanT& plan) {
                add(kAlpha)(plan);
                call(plan, "executorch_prim::add", "Scalar", {kAlpha, kAlpha, kText});
              });
}

TEST_CASE("an item of a list of tensors that is none, or comes behind the list, is found") {
  const auto list = [](std::int32_t item) {
    return [=](ExecutionPlanT& plan) { add_value(plan, TensorListT()).items = {item}; };
  };
  check_found("expected TensorList.items of tensors, found an integer", list(kAlpha));
  check_found("expected TensorList.items of values before 7, the list's own, found 7", list(7));
  check_sound(list(kInput));
  check_sound([](ExecutionPlanT& plan) {
    add_value(plan, OptionalTensorListT()).items = {-1, kNone, kInput};
  });
}

TEST_CASE("a tensor that an operator takes and nothing gives memory is found") {
  check_found("expected a tensor with memory as argument 1 of aten::add.out, found value 1, which nothing",
              [](ExecutionPlanT& plan) { plan.inputs.pop_back(); });
  check_sound([](ExecutionPlanT& plan) {
    plan.inputs.pop_back();
    plan.values[kOther]->val.AsTensor()->sizes = {0};
  });
}

TEST_CASE("a jump on what is no condition, and memory that is freed of what is no tensor, are found") {
  JumpFalseCallT jump;
  jump.cond_value_index = kText;
  check_found("found a string", [&](ExecutionPlanT& plan) { add_call(plan, jump); });
  FreeCallT freed;
  freed.value_index = kAlpha;
  check_found("found an integer", [&](ExecutionPlanT& plan) { add_call(plan, freed); });
}

TEST_CASE("signatures are found by their whole names") {
  using enum Parameter;
  const auto add = find_signature("aten::add.out");
  REQUIRE(add);
  CHECK(std::ranges::equal(*add, std::vector{kTensor, kTensor, kScalar, kOut, kReturn}));
  for (const char* const unknown :
       {"aten::add.ou", "aten::add.out2", "", "zzz", "executorch_prim::sym_size"}) {
    CAPTURE(unknown);
    CHECK_FALSE(find_signature(unknown));
  }
}

KernelArgument tensor_argument(ScalarType dtype, std::vector<std::int32_t> sizes) {
  return {KernelArgument::Tensor{dtype, std::move(sizes), true, {}}, std::nullopt};
}

KernelArgument integer_argument(std::int64_t integer) { return {std::nullopt, integer}; }

TEST_CASE("dtypes, sizes and numbers that a kernel ends the process over are found") {
  constexpr std::string_view kName = "quantized_decomposed::quantize_per_tensor.out";
  const std::vector<KernelArgument> sound = {tensor_argument(ScalarType::kFloat32, {2, 3}),
                                             {},
                                             integer_argument(0),
                                             integer_argument(-128),
                                             integer_argument(127),
                                             integer_argument(1),
                                             tensor_argument(ScalarType::kInt8, {2, 3}),
                                             {}};
  const auto expected_after = [&](std::size_t number, const KernelArgument& argument) {
    auto arguments = sound;
    arguments[number] = argument;
    const auto broken = find_broken_rule(kName, {}, arguments);
    return exactly(broken ? broken->expected : "nothing");
  };
  CHECK(has_kernel_rules(kName, {}));
  CHECK(expected_after(2, integer_argument(7)) == "nothing");
  CHECK(expected_after(0, tensor_argument(ScalarType::kInt32, {2, 3})) ==
        "a tensor of a dtype that the kernel takes as argument 0");
  CHECK(expected_after(5, integer_argument(0)) ==
        "a tensor of the dtype that argument 5 says, 0, as argument 6");
  CHECK(expected_after(6, tensor_argument(ScalarType::kInt8, {3, 2})) ==
        "a tensor of the same sizes as argument 6 as argument 0");
  CHECK(expected_after(3, integer_argument(-129)) == "at least -128 as argument 3");
  CHECK(expected_after(4, integer_argument(128)) == "at most 127 as argument 4");
  // What is not known before the call is left alone.
  CHECK(expected_after(5, {}) == "nothing");
  CHECK(expected_after(0, {}) == "nothing");
}

TEST_CASE("scales for more or fewer channels than a tensor has are found") {
  constexpr std::string_view kName = "quantized_decomposed::dequantize_per_channel.out";
  std::vector<KernelArgument> arguments = {tensor_argument(ScalarType::kInt8, {2, 3}),
                                           tensor_argument(ScalarType::kFloat64, {2}),
                                           {},
                                           integer_argument(0),
                                           integer_argument(-127),
                                           integer_argument(127),
                                           integer_argument(1),
                                           {},
                                           tensor_argument(ScalarType::kFloat32, {2, 3}),
                                           {}};
  CHECK_FALSE(find_broken_rule(kName, {}, arguments));
  arguments[3] = integer_argument(-1);
  CHECK(exactly(find_broken_rule(kName, {}, arguments).value().expected) == "3 elements in argument 1");
  arguments[3] = integer_argument(2);
  CHECK(exactly(find_broken_rule(kName, {}, arguments).value().expected) ==
        "a dimension below 2 as argument 3");
}

TEST_CASE("zero points that a kernel does not take, and a dimension that a tensor lacks, are found") {
  constexpr std::string_view kName = "quantized_decomposed::dequantize_per_channel.out";
  std::vector<KernelArgument> arguments(10);
  arguments[2] = tensor_argument(ScalarType::kInt64, {2});
  arguments[2].tensor->constants = {-127, 127};
  arguments[4] = integer_argument(-127);
  arguments[5] = integer_argument(127);
  CHECK_FALSE(find_broken_rule(kName, {}, arguments));
  arguments[2].tensor->constants[1] = 128;
  CHECK(exactly(find_broken_rule(kName, {}, arguments).value().expected) ==
        "elements from -127 to 127 in argument 2");
  arguments = {tensor_argument(ScalarType::kFloat32, {1, 2}), integer_argument(1), {}};
  CHECK_FALSE(find_broken_rule("aten::sym_size.int", {}, arguments));
  for (const std::int64_t dimension : {2, -1}) {
    arguments[1] = integer_argument(dimension);
    CHECK(exactly(find_broken_rule("aten::sym_size.int", {}, arguments).value().expected) ==
          "a dimension from 0 to below 2 as argument 1");
  }
}

TEST_CASE("scales, rows and dtypes that a kernel for quantized tables does not take are found") {
  const auto check = [](const std::string& bits, std::int32_t columns, bool has_dtype) {
    CAPTURE(bits);
    const std::string name = "quantized_decomposed::embedding_" + bits + (has_dtype ? ".dtype_out" : ".out");
    const std::size_t out = has_dtype ? 7 : 6;
    const ScalarType weights = bits == "byte" ? ScalarType::kInt8 : ScalarType::kUInt8;
    std::vector<KernelArgument> sound = {tensor_argument(weights, {8, columns}),
                                         tensor_argument(ScalarType::kFloat32, {8, 2}),
                                         tensor_argument(ScalarType::kFloat32, {8, 2}),
                                         integer_argument(-128),
                                         integer_argument(127),
                                         tensor_argument(ScalarType::kInt64, {1, 3})};
    if (has_dtype) sound.push_back(integer_argument(static_cast<std::int64_t>(ScalarType::kFloat32)));
    sound.push_back(tensor_argument(ScalarType::kFloat32, {1, 3, 4}));
    sound.push_back({});
    const auto expected_after = [&](std::size_t number, const KernelArgument& argument) {
      auto arguments = sound;
      arguments[number] = argument;
      const auto broken = find_broken_rule(name, {}, arguments);
      return exactly(broken ? broken->expected : "nothing");
    };
    CHECK(argument_of_indices(name) == 5);
    CHECK(expected_after(2, {}) == "nothing");
    CHECK(expected_after(0, tensor_argument(weights, {8})) == "a tensor of 2 dimensions as argument 0");
    CHECK(expected_after(1, tensor_argument(ScalarType::kFloat32, {7, 2})) ==
          "8 rows, as argument 0 has, in argument 1");
    CHECK(expected_after(1, tensor_argument(ScalarType::kFloat32, {8, 3})) ==
          "equal groups of 4 elements in argument 1");
    CHECK(expected_after(1, tensor_argument(ScalarType::kFloat32, {8, 0})) ==
          "equal groups of 4 elements in argument 1");
    CHECK(expected_after(2, tensor_argument(ScalarType::kFloat32, {8, 1})) ==
          "a tensor of the same sizes as argument 1 as argument 2");
    CHECK(expected_after(5, tensor_argument(ScalarType::kInt64, {1, 4})) ==
          exactly(text("room for 16 elements in argument {}", out)));
    CHECK(expected_after(5, tensor_argument(ScalarType::kInt64, {3})) ==
          exactly(text("a tensor of 2 dimensions as argument {}", out)));
    CHECK(expected_after(out, tensor_argument(ScalarType::kFloat16, {1, 3, 4})) ==
          exactly(has_dtype ? "a tensor of the dtype that argument 6 says, 6, as argument 7"
                            : "a tensor of the dtype of argument 6, float16, as argument 1"));
  };
  for (const bool has_dtype : {false, true}) {
    check("byte", 4, has_dtype);
    check("4bit", 2, has_dtype);
    check("2bit", 1, has_dtype);
  }
  CHECK(argument_of_indices("aten::embedding.out") == std::nullopt);
}

TEST_CASE("a bias of a dtype that a convolution can't load is found") {
  std::vector<KernelArgument> arguments(11);
  arguments[2] = tensor_argument(ScalarType::kFloat32, {4});
  CHECK_FALSE(find_broken_rule("aten::convolution.out", {}, arguments));
  for (const ScalarType dtype : {ScalarType::kUInt16, ScalarType::kBool}) {
    arguments[2] = tensor_argument(dtype, {4});
    CHECK(exactly(find_broken_rule("aten::convolution.out", {}, arguments).value().expected) ==
          "a tensor of a dtype that the kernel takes as argument 2");
  }
}

TEST_CASE("a product of tensors of other ranks, and a dimension that a call gives, are found") {
  const auto expected = [](std::string_view name, const std::vector<KernelArgument>& arguments) {
    const auto broken = find_broken_rule(name, {}, arguments);
    return exactly(broken ? broken->expected : "nothing");
  };
  const KernelArgument matrix = tensor_argument(ScalarType::kFloat32, {2, 2});
  const KernelArgument batch = tensor_argument(ScalarType::kFloat32, {1, 2, 2});
  CHECK(expected("aten::mm.out", {matrix, matrix, matrix, {}}) == "nothing");
  CHECK(expected("aten::mm.out", {matrix, batch, matrix, {}}) == "a tensor of 2 dimensions as argument 1");
  CHECK(expected("aten::bmm.out", {batch, batch, batch, {}}) == "nothing");
  CHECK(expected("aten::bmm.out", {batch, batch, matrix, {}}) == "a tensor of 3 dimensions as argument 2");
  CHECK(expected("aten::sym_size.int", {matrix, {}, {}}) == "a dimension from 0 to below 2 as argument 1");
}

TEST_CASE("tensors that no common dtype is found for are found") {
  std::vector<KernelArgument> arguments = {
      tensor_argument(ScalarType::kFloat32, {1}), tensor_argument(ScalarType::kUInt64, {1}), {}};
  constexpr Parameter kProduct[] = {Parameter::kTensor, Parameter::kTensor, Parameter::kOut,
                                    Parameter::kReturn};
  CHECK(find_broken_rule("aten::mul.out", kProduct, arguments));
  CHECK_FALSE(find_broken_rule("aten::fill.Tensor_out", kProduct, arguments));
  arguments[1].tensor->dtype = ScalarType::kBFloat16;
  CHECK_FALSE(find_broken_rule("aten::mul.out", kProduct, arguments));
}

}  // namespace
}  // namespace etstream::call_verify_test
