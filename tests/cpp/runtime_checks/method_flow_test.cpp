// SPDX-License-Identifier: BSD-3-Clause
//
// Errors that ProgramFile::verify finds only by following a method's values through its instructions.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>

#include "runtime_checks/one_call_program.h"

namespace etstream::method_flow_test {
namespace {

using namespace one_call;  // NOLINT: the program that is spoilt

void jump(ExecutionPlanT& plan, std::int32_t condition, std::int32_t to) {
  JumpFalseCallT jumped;
  jumped.cond_value_index = condition;
  jumped.destination_instruction = to;
  add_call(plan, jumped);
}

std::int32_t add_boolean(ExecutionPlanT& plan, bool is_true) {
  add_value(plan, BoolT()).bool_val = is_true;
  return static_cast<std::int32_t>(plan.values.size()) - 1;
}

TEST_CASE("what is moved to a value must be what the calls behind it take") {
  check_found("expected a tensor as argument 0 of aten::abs.out, found a string", [](ExecutionPlanT& plan) {
    move(plan, kText, kOther);
    call(plan, "aten::abs", "out", {kOther, kOutput, kOutput});
    move(plan, kInput, kOther);
  });
  check_sound([](ExecutionPlanT& plan) {
    move(plan, kInput, kText);
    call(plan, "aten::abs", "out", {kText, kOutput, kOutput});
  });
}

TEST_CASE("a method whose values take more than 7 passes to follow is warned of, as they are not checked") {
  for (const std::int32_t passes : {7, 8}) {
    const auto make = [=](ExecutionPlanT& plan) {
      const auto first = static_cast<std::int32_t>(plan.values.size());
      for (std::int32_t i = 0; i <= passes; ++i) add_value(plan, IntT());
      for (std::int32_t i = 0; i < passes; ++i) move(plan, first + i + 1, first + i);
      plan.values.back()->val.Set(DoubleT());
    };
    check_sound(make);
    CHECK(lines_of(findings_after(make).warnings) ==
          (passes == 7 ? ""
                       : "bad: offset 84: expected few enough ways through the instructions to follow their "
                         "values, found more, so that the kinds of values that change are not checked\n"));
  }
}

TEST_CASE("a method of so many ways that following them would take long is warned of, too") {
  for (const std::int32_t loops : {40, 80}) {
    const auto make = [=](ExecutionPlanT& plan) {
      for (std::int32_t i = 0; i < loops; ++i) {
        const std::int32_t flag = add_boolean(plan, false);
        call(plan, "executorch_prim::eq", "Scalar", {kAlpha, kAlpha, flag});
        jump(plan, flag, 1 + 2 * i);
      }
    };
    CHECK((exactly(lines_of(findings_after(make).warnings)) ==
           containing("expected few enough ways through the instructions")) == (loops == 80));
  }
}

TEST_CASE("a list that is moved to an output is found") {
  const auto moved = [](std::int32_t value) {
    return [=](ExecutionPlanT& plan) {
      plan.outputs.push_back(kText);
      move(plan, value, kText);
    };
  };
  check_found("expected an output 1 that is no list, found a list of integers", moved(kList));
  check_sound(moved(kAlpha));
}

TEST_CASE("an output of a quantized dtype is found, also one that is moved there") {
  const auto made = [](scalar_type::ScalarType dtype, std::int32_t value, bool is_moved) {
    return [=](ExecutionPlanT& plan) {
      TensorT& tensor = *plan.values[static_cast<std::size_t>(value)]->val.AsTensor();
      tensor.scalar_type = dtype;
      tensor.shape_dynamism = TensorShapeDynamism_DYNAMIC_BOUND;
      if (is_moved) move(plan, value, kOutput);
    };
  };
  for (const auto dtype :
       {scalar_type::ScalarType_QINT8, scalar_type::ScalarType_QUINT8, scalar_type::ScalarType_QINT32,
        scalar_type::ScalarType_QUINT4X2, scalar_type::ScalarType_QUINT2X4}) {
    check_found("expected an output 0 of no quantized dtype", made(dtype, kOutput, false));
    check_found("expected an output 0 of no quantized dtype", made(dtype, kOther, true));
    check_sound(made(dtype, kOther, false));
  }
  check_sound(made(scalar_type::ScalarType_CHAR, kOutput, false));
}

TEST_CASE("a number that a run leaves as another kind is found where the next run reads it") {
  const auto make = [](const std::string& name) {
    return [=](ExecutionPlanT& plan) {
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
      call(plan, "executorch_prim::" + name, "Scalar", {kAlpha, kAlpha, kAlpha});
    };
  };
  check_sound(make("add"));
  check_found("expected IntList.items of integers, found a boolean", make("eq"));
}

TEST_CASE("what a loop leaves is found where it begins again, and a run begins anew with its inputs") {
  const auto make = [](bool is_loop) {
    return [=](ExecutionPlanT& plan) {
      plan.inputs.push_back(kAlpha);
      const std::int32_t flag = add_boolean(plan, false);
      call(plan, "executorch_prim::eq", "Scalar", {kAlpha, kAlpha, flag});
      jump(plan, flag, 4);  // from the loop's beginning past the next call
      call(plan, "aten::sym_numel", "", {kInput, kAlpha});
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
      call(plan, "executorch_prim::eq", "Scalar", {kAlpha, kAlpha, kAlpha});
      if (is_loop) jump(plan, flag, 1);
    };
  };
  check_sound(make(false));
  check_found("expected IntList.items of integers, found a boolean", make(true));
}

TEST_CASE("both ways from a jump meet where it leads") {
  const auto make = [](bool is_passed_by) {
    return [=](ExecutionPlanT& plan) {
      plan.inputs.push_back(kAlpha);
      const std::int32_t flag = add_boolean(plan, false);
      if (!is_passed_by) call(plan, "executorch_prim::eq", "Scalar", {kAlpha, kAlpha, flag});
      jump(plan, flag, is_passed_by ? 3 : 4);
      call(plan, "executorch_prim::eq", "Scalar", {kAlpha, kAlpha, kAlpha});
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
    };
  };
  check_sound(make(true));
  check_found("expected IntList.items of integers, found a boolean", make(false));  // its condition changes
}

TEST_CASE("a list of integers is checked again where its items have changed since") {
  const auto make = [](const std::string& between) {
    return [=](ExecutionPlanT& plan) {
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
      call(plan, "executorch_prim::" + between, "Scalar", {kAlpha, kAlpha, kAlpha});
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
      call(plan, "aten::sym_numel", "", {kInput, kAlpha});
    };
  };
  check_sound(make("add"));
  check_found("expected IntList.items of integers, found a boolean", make("eq"));
}

TEST_CASE("a number of each kind is told from the others") {
  const auto make = [](const std::string& name, std::vector<std::int32_t> args) {
    return [=](ExecutionPlanT& plan) {
      call(plan, name, name == "aten::sym_size" ? "int" : "Scalar", args);
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
    };
  };
  check_sound(make("executorch_prim::mul", {kAlpha, kAlpha, kAlpha}));
  check_sound(make("executorch_prim::sym_max", {kAlpha, kAlpha, kAlpha}));
  check_sound(make("executorch_prim::neg", {kAlpha, kAlpha}));
  check_found("expected IntList.items of integers, found a double",
              make("executorch_prim::truediv", {kAlpha, kAlpha, kAlpha}));
  check_found("expected IntList.items of integers, found a double",
              make("executorch_prim::sym_float", {kAlpha, kAlpha}));
  const auto add = [&](bool is_first, bool is_second) {
    return [=](ExecutionPlanT& plan) {
      const auto number = static_cast<std::int32_t>(plan.values.size());
      add_value(plan, DoubleT());
      make("executorch_prim::add", {is_first ? number : kAlpha, is_second ? number : kAlpha, kAlpha})(plan);
      call(plan, "aten::sym_numel", "", {kInput, kAlpha});
    };
  };
  check_sound(add(false, false));
  check_found("expected IntList.items of integers, found a double", add(true, false));
  check_found("expected IntList.items of integers, found a double", add(false, true));
  check_sound([](ExecutionPlanT& plan) {
    plan.values[kOther]->val.AsTensor()->scalar_type = scalar_type::ScalarType_LONG;
    call(plan, "aten::_local_scalar_dense", "", {kOther, kAlpha});
    call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
  });
  check_found("expected IntList.items of integers, found a double", [](ExecutionPlanT& plan) {
    call(plan, "aten::_local_scalar_dense", "", {kOther, kAlpha});
    call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
  });
}

TEST_CASE("an element of a tensor is a number of the kind that its dtype says") {
  const auto read_as = [](scalar_type::ScalarType dtype) {
    return [=](ExecutionPlanT& plan) {
      plan.chains[0]->instructions.clear();
      plan.values[kOther]->val.AsTensor()->scalar_type = dtype;
      call(plan, "aten::_local_scalar_dense", "", {kOther, kAlpha});
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
    };
  };
  using namespace scalar_type;  // NOLINT: the names of dtypes
  for (const auto dtype :
       {ScalarType_BYTE, ScalarType_CHAR, ScalarType_SHORT, ScalarType_INT, ScalarType_LONG}) {
    check_sound(read_as(dtype));
    check_found("expected a double as argument 1 of aten::_pdist_forward.out, found an integer",
                [&](ExecutionPlanT& plan) {
                  read_as(dtype)(plan);
                  plan.values[kAlpha]->val.Set(DoubleT());
                  plan.chains[0]->instructions.pop_back();
                  call(plan, "aten::_pdist_forward", "out", {kInput, kAlpha, kOutput, kOutput});
                });
  }
  for (const auto dtype : {ScalarType_FLOAT, ScalarType_DOUBLE}) {
    check_found("expected IntList.items of integers, found a double", read_as(dtype));
  }
  check_found("expected IntList.items of integers, found a boolean", read_as(ScalarType_BOOL));
  check_sound(read_as(ScalarType_HALF));  // no kernel reads one
}

TEST_CASE("an element of a tensor that another value replaces may be of any kind") {
  check_sound([](ExecutionPlanT& plan) {
    move(plan, kInput, kOther);
    call(plan, "aten::_local_scalar_dense", "", {kOther, kAlpha});
    call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
  });
}

TEST_CASE("a number that is one of two is of the kind of both") {
  const auto make = [](bool is_second, bool is_first) {
    return [=](ExecutionPlanT& plan) {
      const std::int32_t flag = add_boolean(plan, true);
      call(plan, "executorch_prim::sym_ite", "Scalar",
           {flag, is_first ? flag : kAlpha, is_second ? flag : kAlpha, kAlpha});
      call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
    };
  };
  check_sound(make(false, false));
  check_found("expected IntList.items of integers, found a boolean", make(true, true));
  check_found("expected IntList.items of integers, found a boolean", make(true, false));
  check_found("expected IntList.items of integers, found a boolean", make(false, true));
}

TEST_CASE("what an operator in place returns takes the place of its last argument") {
  check_found("expected a boolean as argument 2 of aten::copy_, found a tensor", [](ExecutionPlanT& plan) {
    const std::int32_t flag = add_boolean(plan, false);
    call(plan, "aten::copy_", "", {kOther, kInput, flag, flag});
  });
  check_sound([](ExecutionPlanT& plan) {
    const std::int32_t flag = add_boolean(plan, false);
    call(plan, "aten::copy_", "", {kOther, kInput, flag, kOther});
  });
  check_sound([](ExecutionPlanT& plan) {  // the others leave it as it is
    call(plan, "aten::abs", "out", {kInput, kOutput, kText});
    call(plan, "aten::gelu", "out", {kInput, kText, kOutput, kOutput});
  });
}

TEST_CASE("a call that a jump always passes by is left alone") {
  const auto make = [](bool is_true) {
    return [=](ExecutionPlanT& plan) {
      jump(plan, add_boolean(plan, is_true), 3);
      call(plan, "aten::abs", "out", {kText, kOutput, kOutput});
    };
  };
  check_sound(make(false));
  check_found("expected a tensor as argument 0 of aten::abs.out, found a string", make(true));
}

TEST_CASE("a jump counts instructions from the beginning of its chain") {
  const auto make = [](std::int32_t passed_by, std::int32_t reached) {
    return [=](ExecutionPlanT& plan) {
      jump(plan, add_boolean(plan, false), 2);
      call(plan, "aten::abs", "out", {passed_by, kOutput, kOutput});
      call(plan, "aten::abs", "out", {reached, kOutput, kOutput});
      plan.chains.push_back(std::make_unique<ChainT>());
      auto& first = plan.chains[0]->instructions;
      std::move(first.begin() + 1, first.end(), std::back_inserter(plan.chains[1]->instructions));
      first.resize(1);
    };
  };
  check_sound(make(kText, kInput));
  check_found("expected a tensor as argument 0 of aten::abs.out, found a string", make(kInput, kText));
}

/// Makes the program look up rows of a table in planned memory: kOutput is at byte `at`, and kOther has the
/// indices, from byte 64 on.
void look_up(ExecutionPlanT& plan, std::uint32_t at) {
  plan.non_const_buffer_sizes = {0, 1024};
  const auto place = [&](std::int32_t value, scalar_type::ScalarType dtype, std::vector<std::int32_t> sizes,
                         std::uint32_t offset) {
    TensorT& tensor = *plan.values[static_cast<std::size_t>(value)]->val.AsTensor();
    tensor.scalar_type = dtype;
    tensor.dim_order.resize(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) tensor.dim_order[i] = static_cast<std::uint8_t>(i);
    tensor.sizes = std::move(sizes);
    tensor.allocation_info = std::make_unique<AllocationDetailsT>();
    tensor.allocation_info->memory_id = 1;
    tensor.allocation_info->memory_offset_low = offset;
  };
  plan.chains[0]->instructions.clear();
  add_tensor(plan);
  const auto scales = static_cast<std::int32_t>(plan.values.size()) - 1;
  place(scales, scalar_type::ScalarType_FLOAT, {4}, 32);
  place(kInput, scalar_type::ScalarType_CHAR, {4, 2}, 0);
  place(kOther, scalar_type::ScalarType_LONG, {3}, 64);
  place(kOutput, scalar_type::ScalarType_FLOAT, {3, 2}, at);
  plan.inputs = {kInput, kOther, scales};
  call(plan, "quantized_decomposed::embedding_byte", "out",
       {kInput, scales, kNone, kAlpha, kAlpha, kOther, kOutput, kOutput});
}

TEST_CASE("a tensor that is read before a call gives it its memory is found") {
  const auto view = [](bool is_before) {
    return [=](ExecutionPlanT& plan) {
      plan.inputs.pop_back();
      call(plan, "executorch_prim::et_view", "default", {kInput, kList, kOther});
      if (is_before) std::swap(plan.chains[0]->instructions[0], plan.chains[0]->instructions[1]);
    };
  };
  check_sound(view(true));
  check_found("expected a tensor that a call before gives, as argument 1 of aten::add.out, found value 1",
              view(false));
}

TEST_CASE("a tensor of a changing shape that is read before a call gives it one is found") {
  const auto make = [](bool is_dynamic, bool is_before) {
    return [=](ExecutionPlanT& plan) {
      plan.non_const_buffer_sizes = {0, 64};
      plan.inputs.pop_back();
      TensorT& tensor = *plan.values[kOther]->val.AsTensor();
      tensor.allocation_info = std::make_unique<AllocationDetailsT>();
      tensor.allocation_info->memory_id = 1;
      tensor.shape_dynamism = is_dynamic ? TensorShapeDynamism_DYNAMIC_BOUND : TensorShapeDynamism_STATIC;
      call(plan, "aten::abs", "out", {kInput, kOther, kOther});
      if (is_before) std::swap(plan.chains[0]->instructions[0], plan.chains[0]->instructions[1]);
    };
  };
  check_sound(make(true, true));
  check_sound(make(false, false));  // it may be a buffer that keeps what is in it
  check_found("expected a tensor that a call before gives, as argument 1 of aten::add.out, found value 1",
              make(true, false));
  CHECK(findings_after([&](ExecutionPlanT& plan) {  // reading it twice gives it none
          make(true, false)(plan);
          call(plan, "aten::abs", "out", {kOther, kOutput, kOutput});
          std::swap(plan.chains[0]->instructions[1], plan.chains[0]->instructions[2]);
        })
            .errors.size() == 2);
  // An operator that returns a list gives it the shape.
  check_sound([&](ExecutionPlanT& plan) {
    make(true, true)(plan);
    plan.chains[0]->instructions.erase(plan.chains[0]->instructions.begin());
    add_value(plan, TensorListT()).items = {kOther};
    const auto list = static_cast<std::int32_t>(plan.values.size()) - 1;
    call(plan, "aten::unbind_copy", "int_out", {kInput, kAlpha, list, list});
    std::swap(plan.chains[0]->instructions[0], plan.chains[0]->instructions[1]);
  });
  // An unknown operator may give it the shape, in a list too.
  check_sound([&](ExecutionPlanT& plan) {
    make(true, true)(plan);
    plan.operators.back()->name = "mine::op";
  });
  check_sound([&](ExecutionPlanT& plan) {
    make(true, true)(plan);
    plan.chains[0]->instructions.erase(plan.chains[0]->instructions.begin());
    add_value(plan, OptionalTensorListT()).items = {-1, kOther};
    call(plan, "mine::op", "out", {static_cast<std::int32_t>(plan.values.size()) - 1});
    std::swap(plan.chains[0]->instructions[0], plan.chains[0]->instructions[1]);
  });
}

TEST_CASE("indices where a call writes are found") {
  check_found("expected indices of quantized_decomposed::embedding_byte.out apart from what it writes to",
              [](ExecutionPlanT& plan) { look_up(plan, 80); });
  for (const std::uint32_t apart : {88U, 40U}) {  // right behind the indices, and before them
    check_sound([&](ExecutionPlanT& plan) { look_up(plan, apart); });
  }
  check_sound([](ExecutionPlanT& plan) {
    look_up(plan, 80);
    move(plan, kInput, kOther);
  });
  const auto select = [](ExecutionPlanT& plan) {
    look_up(plan, 80);
    plan.chains[0]->instructions.clear();
    add_value(plan, OptionalTensorListT()).items = {-1, kOther};
    const auto list = static_cast<std::int32_t>(plan.values.size()) - 1;
    call(plan, "aten::index", "Tensor_out", {kInput, list, kOutput, kOutput});
  };
  check_found("expected indices of aten::index.Tensor_out apart from what it writes to", select);
  check_sound([&](ExecutionPlanT& plan) {
    select(plan);
    const auto list = static_cast<std::int32_t>(plan.values.size()) - 1;
    add_value(plan, OptionalTensorListT()).items = {-1};
    move(plan, list + 1, list);
  });
}

}  // namespace
}  // namespace etstream::method_flow_test
