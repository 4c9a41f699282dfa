// SPDX-License-Identifier: BSD-3-Clause
//
// A program of one call, with one thing wrong in it: ProgramFile::verify finds it.
#include <doctest/doctest.h>

#include "core/base/text.h"
#include "etstream/tensor.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "runtime_checks/kernel_rules.h"
#include "runtime_checks/one_call_program.h"
#include "runtime_checks/operator_signatures.h"

namespace etstream::call_verify_test {
namespace {

using namespace one_call;  // NOLINT: the program that is spoilt

TEST_CASE("the unspoilt call has nothing to find") {
  check_sound([](ExecutionPlanT&) {});
  check_sound([](ExecutionPlanT& plan) { plan.values.push_back(std::make_unique<EValueT>()); });
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

/// Returns a list of these items: an empty one is none in a file.
template <class List>
List list_of(decltype(List::items) items) {
  List out;
  out.items = std::move(items);
  return out;
}

TEST_CASE("a parameter takes values of its own kind alone, and null if it is optional") {
  const auto add = [](auto held) {
    return [held](ExecutionPlanT& plan) { add_value(plan, decltype(held)(held)); };
  };
  const std::pair<std::string, Spoil> kinds[] = {
      {"null", add(NullT())},
      {"an integer", add(IntT())},
      {"a double", add(DoubleT())},
      {"a boolean", add(BoolT())},
      {"a string", [](ExecutionPlanT& plan) { add_value(plan, StringT()).string_val = "text"; }},
      {"a list of integers", add(list_of<IntListT>({kAlpha, kAlpha}))},
      {"a list of doubles", add(list_of<DoubleListT>({2.0, 2.0}))},
      {"a list of booleans", add(list_of<BoolListT>({true}))}};
  constexpr std::int32_t kRate = 7;  // a double
  constexpr std::int32_t kTested = 8;
  struct Row {
    std::string name;
    std::string overload;
    std::vector<std::int32_t> args;
    std::string taken;
    bool is_optional;
  };
  for (const Row& row : std::vector<Row>{
           {"aten::logit", "out", {kInput, kTested, kOutput, kOutput}, "a double", true},
           {"aten::_pdist_forward", "out", {kInput, kTested, kOutput, kOutput}, "a double", false},
           {"aten::native_dropout",
            "out",
            {kInput, kRate, kTested, kOutput, kOutput, kOutput},
            "a boolean",
            true},
           {"aten::div", "out_mode", {kInput, kOther, kTested, kOutput, kOutput}, "a string", true},
           {"aten::upsample_nearest2d",
            "vec_out",
            {kInput, kNone, kTested, kOutput, kOutput},
            "a list of doubles",
            true}}) {
    CAPTURE(row.name);
    for (const std::pair<std::string, Spoil>& kind : kinds) {
      const auto make = [&](ExecutionPlanT& plan) {
        add_value(plan, DoubleT());
        kind.second(plan);
        call(plan, row.name, row.overload, row.args);
      };
      if (kind.first == row.taken || (row.is_optional && kind.first == "null")) {
        check_sound(make);
      } else {
        check_found(
            text("expected {} as argument {} of {}.{}, found {}", row.taken,
                 std::ranges::find(row.args, kTested) - row.args.begin(), row.name, row.overload, kind.first),
            make);
      }
    }
  }
}

TEST_CASE("a call of more or fewer arguments than the operator has is found") {
  check_found("expected 5 arguments of aten::add.out, with what it gives, found 4",
              [](ExecutionPlanT& plan) { kernel(plan).args.pop_back(); });
  check_found("expected 5 arguments of aten::add.out, with what it gives, found 6",
              [](ExecutionPlanT& plan) { kernel(plan).args.push_back(kOutput); });
  check_found("expected 5 arguments of aten::add.out, with what it gives, found 0",
              [](ExecutionPlanT& plan) { kernel(plan).args.clear(); });
}

TEST_CASE("an operator without a name, with a long one or one that is not text is found where it is called") {
  const auto named = [](std::string name, std::string overload = "out") {
    return [=](ExecutionPlanT& plan) {
      plan.operators[0]->name = name;
      plan.operators[0]->overload = overload;
    };
  };
  check_found("expected the name of an operator that is called, found none", named(""));
  check_found("expected the name of an operator of at most 99 bytes, found 100", named(std::string(96, 'x')));
  check_sound(named(std::string(95, 'x')));
  check_sound(named(std::string(99, 'x'), ""));
  check_sound(named("x"));
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

/// Returns a program of `size` bytes that makes one call of many arguments over and over.
std::string repeated_call(std::uint32_t times, std::size_t arguments, std::size_t size) {
  ProgramT object = sound_object();
  ExecutionPlanT& plan = *object.execution_plan[0];
  plan.chains[0]->instructions.clear();
  call(plan, "mine::op", "out", std::vector<std::int32_t>(arguments, kInput));
  for (std::uint32_t i = 1; i < times; ++i) add_call(plan, KernelCallT());
  std::string& words = plan.values[kText]->val.AsString()->string_val;
  words += std::string(size - packed(object).size(), 'x');
  std::string file = packed(object);
  REQUIRE(file.size() == size);
  const auto* const chain = GetProgram(file.data())->execution_plan()->Get(0)->chains()->Get(0);
  const std::size_t only = position_of(file, chain->instructions()->Get(0));
  std::size_t place = position_of(file, chain->instructions()) + 4;
  for (std::uint32_t i = 0; i < times; ++i, place += 4) {
    put_at(file, place, static_cast<std::uint32_t>(only - place));
  }
  return file;
}

TEST_CASE("calls may share their arguments as often as the size of the program allows") {
  constexpr std::uint32_t kTimes = 18;
  constexpr std::size_t kArguments = 101;
  // The instructions are read three times, the rest twice: the arguments of calls, two inputs and an output.
  constexpr std::size_t kRead = 4 * (kTimes * 3 + kTimes * kArguments * 2 + 3 * 2);
  static_assert(kRead % 32 == 0);
  const auto errors = [](std::size_t size) {
    return lines_of(findings_of(repeated_call(kTimes, kArguments, size)).errors);
  };
  CHECK(errors(kRead / 4).empty());
  CHECK(exactly(errors(kRead / 4 - 8)) ==
        containing(": expected objects that are shared at most 4 times on average, found more sharing\n"));
}

TEST_CASE("an item of a list of integers that is none is found where an operator takes the list") {
  const auto spoil = [](ExecutionPlanT& plan) { plan.values[kList]->val.AsIntList()->items = {kText}; };
  check_sound(spoil);
  check_found("expected IntList.items of integers, found a string", [&](ExecutionPlanT& plan) {
    spoil(plan);
    call(plan, "aten::permute_copy", "out", {kInput, kList, kOutput, kOutput});
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
  check_sound([](ExecutionPlanT& plan) {  // nothing reads its data
    plan.inputs.pop_back();
    plan.chains[0]->instructions.clear();
    call(plan, "aten::sym_numel", "", {kOther, kAlpha});
  });
  check_sound([](ExecutionPlanT& plan) {  // another takes its place
    plan.inputs.pop_back();
    move(plan, kInput, kOther);
    std::swap(plan.chains[0]->instructions[0], plan.chains[0]->instructions[1]);
  });
}

TEST_CASE("a tensor in a list that nothing gives memory is found where an operator takes the list") {
  const auto joined = [](std::int32_t item) {
    return [=](ExecutionPlanT& plan) {
      add_tensor(plan);
      add_value(plan, TensorListT()).items = {kInput, item};
      for (int i = 0; i < 3; ++i) call(plan, "aten::cat", "out", {8, kAlpha, kOutput, kOutput});
    };
  };
  check_found("expected tensors with memory in a list for aten::cat.out, found value 7, which nothing",
              joined(7));
  check_sound(joined(kOther));
}

TEST_CASE("a constant that a call writes is found") {
  ProgramT object = sound_object();
  ExecutionPlanT& plan = *object.execution_plan[0];
  object.constant_segment.reset();
  for (const std::size_t size : {0U, 8U}) {
    object.constant_buffer.push_back(std::make_unique<BufferT>());
    object.constant_buffer.back()->storage.resize(size);
  }
  add_tensor(plan);
  plan.values.back()->val.AsTensor()->data_buffer_idx = 1;
  kernel(plan).args[1] = 7;
  CHECK(lines_of(findings_of(packed(object)).errors).empty());
  kernel(plan).args[4] = kernel(plan).args[3] = 7;
  plan.outputs = {kInput};
  const std::string errors = lines_of(findings_of(packed(object)).errors);
  CAPTURE(errors);
  CHECK(errors.find("expected a tensor that can be written as argument 3 of aten::add.out, found value 7, a "
                    "constant") != std::string::npos);
}

TEST_CASE("memory that is freed though it is planned is found") {
  FreeCallT freed;
  freed.value_index = kOther;
  const auto plan_memory = [](ExecutionPlanT& plan) {
    plan.non_const_buffer_sizes = {0, 64};
    auto place = std::make_unique<AllocationDetailsT>();
    place->memory_id = 1;
    plan.values[kOther]->val.AsTensor()->allocation_info = std::move(place);
  };
  check_sound(plan_memory);
  check_sound([&](ExecutionPlanT& plan) { add_call(plan, freed); });
  check_found("expected memory that was given by a call before, found value 1, whose memory is planned",
              [&](ExecutionPlanT& plan) {
                plan_memory(plan);
                add_call(plan, freed);
              });
}

/// Adds a delegate with this data to a sound program.
BackendDelegateT& add_delegate(ProgramT& object, const std::string& backend, const std::string& data) {
  auto delegate = std::make_unique<BackendDelegateT>();
  delegate->id = backend;
  delegate->processed = std::make_unique<BackendDelegateDataReferenceT>();
  delegate->processed->index = static_cast<std::uint32_t>(object.backend_delegate_data.size());
  object.backend_delegate_data.push_back(std::make_unique<BackendDelegateInlineDataT>());
  object.backend_delegate_data.back()->data.assign(data.begin(), data.end());
  object.execution_plan[0]->delegates.push_back(std::move(delegate));
  return *object.execution_plan[0]->delegates.back();
}

TEST_CASE("a delegate's compile spec without a key or a value is found") {
  const auto errors_with = [](const std::string& key, const std::string& value) {
    ProgramT object = sound_object();
    BackendDelegateT& delegate = add_delegate(object, "Backend", "");
    delegate.compile_specs.push_back(std::make_unique<CompileSpecT>());
    delegate.compile_specs[0]->key = key;
    delegate.compile_specs[0]->value.assign(value.begin(), value.end());
    return exactly(lines_of(findings_of(packed(object)).errors));
  };
  CHECK(errors_with("key", "value") == "");
  CHECK(errors_with("", "value") == containing(": expected CompileSpec.key, found none\n"));
  CHECK(errors_with("key", "") == containing(": expected CompileSpec.value, found none\n"));
}

TEST_CASE("a delegate's data that is damaged is an error, and that of another beginning a warning") {
  const auto findings_with = [](const std::string& backend, const std::string& data) {
    ProgramT object = sound_object();
    add_delegate(object, backend, data);
    return findings_of(packed(object));
  };
  const Findings damaged = findings_with("VulkanBackend", std::string(4, '\0') + "VH00");
  CHECK(lines_of(damaged.errors) ==
        "bad: method 'forward', delegate 0 (VulkanBackend): offset 0: expected a header of 30 bytes, found "
        "8\n");
  CHECK(damaged.warnings.empty());
  const Findings other = findings_with("VulkanBackend", "something else");
  CHECK(other.ok());
  CHECK(lines_of(other.warnings) ==
        "bad: method 'forward', delegate 0 (VulkanBackend): expected data that begins with VH00 at offset "
        "4\n");
  ProgramT object = sound_object();
  add_delegate(object, "VulkanBackend", "something else");
  add_delegate(object, "VulkanBackend", "").processed->index = 0;
  CHECK(findings_of(packed(object)).warnings.size() == 1);  // of the data that both have
  for (const std::string backend : {"CudaBackend", "Backend"}) {
    const Findings unknown = findings_with(backend, "something else");
    CHECK(unknown.ok());
    CHECK(unknown.warnings.empty());
  }
}

TEST_CASE("a call of a delegate whose arguments are not known may pass any") {
  ProgramT object = sound_object();
  add_delegate(object, "Backend", "something else");
  DelegateCallT called;
  called.args = {kText, kNone};
  add_call(*object.execution_plan[0], called);
  CHECK(lines_of(findings_of(packed(object)).errors).empty());
}

TEST_CASE("the data of a method's delegates may be shared as often as the size of the program allows") {
  const auto verified = [](std::uint32_t delegates) {
    ProgramT object = sound_object();
    for (std::uint32_t i = 0; i < delegates; ++i) {
      add_delegate(object, "Backend", std::string(i == 0 ? 300'000 : 1, 'x'));
    }
    std::string file = packed(object);
    const auto* const all = GetProgram(file.data())->backend_delegate_data();
    const std::size_t shared = position_of(file, all->Get(0)->data());
    for (std::uint32_t i = 1; i < delegates; ++i) {
      const std::size_t place =
          field_of(file, position_of(file, all->Get(i)), BackendDelegateInlineData::VT_DATA);
      put_at(file, place, static_cast<std::uint32_t>(shared - place));
    }
    return verify(file_of(file));
  };
  const auto most = verified(7);
  REQUIRE_MESSAGE(most, most.error().message);
  CHECK(most->ok());
  CHECK(error_of(verified(8)) == containing("kTooLarge: bad: expected payloads that share "));
}

TEST_CASE("a call of XNNPACK's delegate without an argument of its graph, or with a narrow one, is found") {
  xnnpack_graph::XNNGraphT graph = made_xnnpack::empty_graph();
  graph.num_externs = 2;
  auto tensor = made_xnnpack::tensor_of(0, xnnpack_graph::XNNDatatype_xnn_datatype_fp16, {2}, 0);
  tensor.external_id = 1;
  tensor.flags = 1;
  made_xnnpack::add_value(graph, tensor);
  xnnpack_graph::_XNNNode1x1T softmax;
  softmax.output_id = UINT32_MAX;
  made_xnnpack::add_node(graph, xnnpack_graph::XNodeUnion_XNNSoftmax, softmax);
  const auto errors_with = [&](std::vector<std::int32_t> args, scalar_type::ScalarType dtype) {
    ProgramT object = sound_object();
    ExecutionPlanT& plan = *object.execution_plan[0];
    add_delegate(object, "XnnpackBackend", made_xnnpack::payload_of(graph));
    add_tensor(plan);
    plan.values.back()->val.AsTensor()->scalar_type = dtype;
    plan.inputs.push_back(7);
    DelegateCallT called;
    called.args = std::move(args);
    add_call(plan, called);
    return exactly(lines_of(findings_of(packed(object)).errors));
  };
  CHECK(errors_with({kInput, 7}, scalar_type::ScalarType_HALF) == "");
  CHECK(errors_with({kInput, 7}, scalar_type::ScalarType_FLOAT) == "");
  CHECK(errors_with({kInput, 7}, scalar_type::ScalarType_CHAR) ==
        containing(": expected elements of 2 bytes in argument 1 of XnnpackBackend, found 1\n"));
  CHECK(errors_with({7}, scalar_type::ScalarType_HALF) ==
        containing(": expected more than 1 arguments of XnnpackBackend, found 1\n"));
  const auto integer = errors_with({kInput, kAlpha}, scalar_type::ScalarType_HALF);
  CHECK(integer == containing(": expected a tensor as argument 1 of XnnpackBackend, found an integer\n"));
  CHECK(std::ranges::count(std::string_view(integer.c_str()), '\n') == 1);
}

TEST_CASE("a jump on what is no condition, and memory that is freed of what is no tensor, are found") {
  JumpFalseCallT jump;
  jump.cond_value_index = kText;
  check_found("expected a tensor or a boolean as argument 0 of a jump, found a string",
              [&](ExecutionPlanT& plan) { add_call(plan, jump); });
  FreeCallT freed;
  freed.value_index = kAlpha;
  check_found("expected a tensor as argument 0 of freeing memory, found an integer",
              [&](ExecutionPlanT& plan) { add_call(plan, freed); });
}

TEST_CASE("arguments that break a kernel's rules are found in a program, where they are known") {
  const auto multiply = [](ExecutionPlanT& plan) {
    plan.values[kOutput]->val.AsTensor()->sizes = {2, 2};
    plan.values[kOutput]->val.AsTensor()->dim_order = {0, 1};
    call(plan, "aten::mm", "out", {kInput, kInput, kOutput, kOutput});
  };
  check_found("expected a tensor of 2 dimensions as argument 0 of aten::mm.out, found 1", multiply);
  check_sound([&](ExecutionPlanT& plan) {
    multiply(plan);
    move(plan, kOther, kInput);
  });
  const auto update = [](ExecutionPlanT& plan) {
    plan.values[kAlpha]->val.AsInt()->int_val = -1;
    call(plan, "llama::update_cache", "out", {kInput, kOther, kAlpha, kOutput, kOutput});
  };
  check_found("expected at least 0 as argument 2 of llama::update_cache.out, found -1", update);
  check_sound([&](ExecutionPlanT& plan) {
    update(plan);
    call(plan, "executorch_prim::neg", "Scalar", {kAlpha, kAlpha});
  });
  const auto enlarge = [](TensorShapeDynamism dynamism) {
    return [=](ExecutionPlanT& plan) {
      plan.values[kInput]->val.AsTensor()->sizes = {0};
      plan.values[kInput]->val.AsTensor()->shape_dynamism = dynamism;
      add_value(plan, BoolT());
      call(plan, "aten::upsample_bilinear2d", "vec_out", {kInput, kNone, 7, kNone, kOutput, kOutput});
    };
  };
  check_found("expected a tensor with elements as argument 0 of aten::upsample_bilinear2d.vec_out, found a",
              enlarge(TensorShapeDynamism_STATIC));
  check_sound(enlarge(TensorShapeDynamism_DYNAMIC_BOUND));
  const auto select = [](ExecutionPlanT& plan) {
    TensorT mask;
    mask.scalar_type = scalar_type::ScalarType_BOOL;
    mask.sizes = {2, 2};
    mask.dim_order = {0, 1};
    add_value(plan, mask);
    plan.inputs.push_back(7);
    add_value(plan, OptionalTensorListT()).items = {kNone, 7};
    call(plan, "aten::index", "Tensor_out", {kInput, 8, kOutput, kOutput});
  };
  check_found("expected a mask of at most 0 dimensions in argument 1 of aten::index.Tensor_out, found 2",
              select);
  check_sound([&](ExecutionPlanT& plan) {
    select(plan);
    move(plan, kInput, 7);
  });
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

KernelArgument tensor_of(std::vector<std::int32_t> sizes, bool has_fixed_sizes = true) {
  auto order = contiguous_dim_order(sizes.size());
  return {.tensor = TensorLayout{ScalarType::kFloat32, std::move(sizes), std::move(order)},
          .has_fixed_sizes = has_fixed_sizes};
}
KernelArgument tensor_of(std::size_t rank, ScalarType dtype = ScalarType::kFloat32) {
  KernelArgument out = tensor_of(std::vector<std::int32_t>(rank, 2));
  out.tensor->scalar_type = dtype;
  return out;
}
KernelArgument integer(std::int64_t value) { return {.integer = value}; }
KernelArgument indices_of(std::initializer_list<std::optional<KernelArgument>> items) {
  KernelArgument out;
  for (const auto& item : items) out.items.push_back(item ? item->tensor : std::nullopt);
  return out;
}

std::string expected(std::string_view name, const std::vector<KernelArgument>& arguments) {
  const auto broken = find_broken_rule(name, arguments);
  return broken ? broken->expected : "nothing";
}

TEST_CASE("dimensions, positions, dtypes and orders that a kernel takes unchecked are found") {
  CHECK(expected("aten::mm.out", {tensor_of(2), tensor_of(2), tensor_of(2), {}}) == "nothing");
  for (const auto& [name, rank] : {std::pair{"aten::mm.out", 2U}, std::pair{"aten::bmm.out", 3U}}) {
    for (const std::size_t wrong : {0U, 1U, 2U}) {
      std::vector<KernelArgument> factors(4, tensor_of(rank));
      factors[wrong] = tensor_of(rank + 1);
      CHECK(expected(name, factors) == text("a tensor of {} dimensions as argument {}", rank, wrong));
    }
  }
  CHECK(expected("llama::update_cache.out", {tensor_of(4), tensor_of(4), integer(0), {}, {}}) == "nothing");
  CHECK(expected("llama::update_cache.out", {tensor_of(4), tensor_of(4), integer(-1), {}, {}}) ==
        "at least 0 as argument 2");
  CHECK(expected("aten::convolution.out", {{}, {}, tensor_of(1)}) == "nothing");
  for (const ScalarType dtype : {ScalarType::kUInt16, ScalarType::kBool, ScalarType::kComplex64}) {
    CHECK(expected("aten::convolution.out", {{}, {}, tensor_of(1, dtype)}) ==
          "a tensor of a dtype that the kernel takes as argument 2");
  }
  KernelArgument transposed = tensor_of(2);
  CHECK(expected("aten::topk.values", {transposed}) == "nothing");
  std::ranges::reverse(transposed.tensor->dim_order);
  CHECK(expected("aten::topk.values", {transposed}) == "a contiguous tensor as argument 0");
  std::vector<KernelArgument> results(8, tensor_of(1));
  CHECK(expected("aten::var_mean.correction_out", results) == "nothing");
  results[6] = tensor_of(1, ScalarType::kFloat16);
  CHECK(expected("aten::var_mean.correction_out", results) ==
        "a tensor of the dtype of argument 5 as argument 6");
  // Arguments that are not known before the call are not checked.
  CHECK(expected("llama::update_cache.out", std::vector<KernelArgument>(5)) == "nothing");
  CHECK(taken_unchecked("quantized_decomposed::embedding_4bit.out") == "indices");
  CHECK_FALSE(taken_unchecked("aten::embedding.out"));
  CHECK(has_kernel_rules("aten::mm.out"));
  CHECK_FALSE(has_kernel_rules("aten::mm"));
}

TEST_CASE("factors of bmm whose inner dimensions differ are found, where these are fixed") {
  const KernelArgument left = tensor_of({4, 1, 3});
  const KernelArgument out = tensor_of({4, 1, 5});
  CHECK(expected("aten::bmm.out", {left, tensor_of({4, 3, 5}), out, out}) == "nothing");
  CHECK(expected("aten::bmm.out", {left, tensor_of({4, 2, 5}), out, out}) ==
        "3 in dimension 1 of argument 1, as argument 0 has in dimension 2");
  CHECK(expected("aten::bmm.out", {left, tensor_of({4, 2, 5}, false), out, out}) == "nothing");
  CHECK(expected("aten::bmm.out", {tensor_of({4, 1, 3}, false), tensor_of({4, 2, 5}), out, out}) ==
        "nothing");
}

TEST_CASE("an index without dimensions for a source with one is found") {
  for (const char* const name : {"aten::scatter.src_out", "aten::scatter_add.out"}) {
    CAPTURE(name);
    CHECK(expected(name, {tensor_of(1), integer(0), tensor_of(1), tensor_of(1)}) == "nothing");
    CHECK(expected(name, {tensor_of(1), integer(0), tensor_of(0), tensor_of(0)}) == "nothing");
    CHECK(expected(name, {tensor_of(1), integer(0), tensor_of(0), tensor_of(1)}) ==
          "a dimension of argument 2, as argument 3 has one");
  }
}

TEST_CASE("an image without elements is found, where its sizes are fixed") {
  const char* const name = "aten::upsample_bilinear2d.vec_out";
  CHECK(expected(name, {tensor_of({1, 2, 3, 4})}) == "nothing");
  CHECK(expected(name, {tensor_of({1, 2, 0, 4})}) == "a tensor with elements as argument 0");
  CHECK(expected(name, {tensor_of({1, 2, 0, 4}, false)}) == "nothing");
}

TEST_CASE("sizes and dtypes of attention that its kernels take unchecked are found") {
  struct Attention {
    const char* name;
    std::size_t keys;
    std::size_t values;
    std::size_t position;
    std::size_t out;
  };
  const KernelArgument queries = tensor_of({1, 2, 4, 8});
  for (const Attention& attention : {Attention{"llama::custom_sdpa.out", 1, 2, 3, 8},
                                     Attention{"llama::custom_quantized_sdpa.out", 1, 2, 3, 15},
                                     Attention{"llama::sdpa_with_kv_cache.out", 3, 4, 5, 11}}) {
    CAPTURE(attention.name);
    const auto& [name, keys, values, position, out] = attention;
    std::vector<KernelArgument> plain(17);
    std::ranges::fill_n(plain.begin(), static_cast<std::ptrdiff_t>(values + 1), queries);
    plain[position] = integer(0);
    plain[out] = queries;
    CHECK(expected(name, plain) == "nothing");
    auto changed = plain;
    changed[position] = integer(-1);
    CHECK(expected(name, changed) == text("at least 0 as argument {}", position));
    changed = plain;
    changed[keys] = changed[values] = tensor_of({2, 2, 4, 8});
    CHECK(expected(name, changed) ==
          text("1 in dimension 0 of argument {}, as argument 0 has in dimension 0", keys));
    for (const std::size_t dimension : {0U, 1U, 2U}) {
      CAPTURE(dimension);
      changed = plain;
      ++changed[values].tensor->sizes[dimension];
      CHECK(expected(name, changed) ==
            text("{0} in dimension {1} of argument {2}, as argument {3} has in dimension {1}",
                 queries.tensor->sizes[dimension], dimension, values, keys));
    }
    changed = plain;
    changed[values] = tensor_of({1, 2});  // without that dimension
    CHECK(expected(name, changed) == "nothing");
    changed = plain;
    changed[out].tensor->scalar_type = ScalarType::kFloat16;
    CHECK(expected(name, changed) == text("a tensor of the dtype of argument 0 as argument {}", out));
    changed[0].tensor->scalar_type = ScalarType::kInt8;
    CHECK(expected(name, changed) == "nothing");
  }

  std::vector<KernelArgument> cached(13);
  std::ranges::fill_n(cached.begin(), 5, queries);
  cached[5] = integer(0);
  cached[6] = integer(2);
  cached[11] = queries;
  CHECK(expected("llama::sdpa_with_kv_cache.out", cached) == "nothing");
  cached[6] = integer(1);
  CHECK(expected("llama::sdpa_with_kv_cache.out", cached) == "at least 2 as argument 6");
  cached[6] = integer(2);
  for (const std::size_t projected : {1U, 2U}) {
    auto longer = cached;
    longer[projected] = tensor_of({1, 3, 4, 8});
    CHECK(expected("llama::sdpa_with_kv_cache.out", longer) == "at least 3 as argument 6");
  }
}

TEST_CASE("complex tensors that are divided element by element are alike") {
  const auto complex = [](std::vector<std::int32_t> sizes) {
    KernelArgument out = tensor_of(std::move(sizes));
    out.tensor->scalar_type = ScalarType::kComplex64;
    return out;
  };
  const auto divided = [](KernelArgument a, KernelArgument b, KernelArgument out) {
    return expected("aten::div.out", {std::move(a), std::move(b), out, out});
  };
  const KernelArgument real = tensor_of({2, 3});
  CHECK(divided(real, tensor_of({1, 3}), real) == "nothing");
  CHECK(divided(complex({2, 3}), complex({2, 3}), complex({2, 3})) == "nothing");
  const std::string other_dtype = "a tensor of the dtype of argument 0 as argument ";
  CHECK(divided(real, complex({2, 3}), real) == other_dtype + "1, as one is complex");
  CHECK(divided(complex({2, 3}), real, real) == other_dtype + "1, as one is complex");
  CHECK(divided(complex({2, 3}), complex({2, 3}), real) == other_dtype + "2, as one is complex");
  CHECK(divided(complex({2, 3}), complex({3}), complex({2, 3})) ==
        "a complex tensor of the sizes of argument 0 as argument 1");
  KernelArgument dynamic = complex({3});
  dynamic.has_fixed_sizes = false;
  CHECK(divided(complex({2, 3}), dynamic, complex({2, 3})) == "nothing");
  CHECK(divided({}, complex({2, 3}), {}) == "nothing");
  CHECK(divided(complex({2, 3}), {}, {}) == "nothing");
}

TEST_CASE("masks among indices with more dimensions than are left are found") {
  const KernelArgument in = tensor_of(4);
  const KernelArgument mask = tensor_of(3, ScalarType::kBool);
  const KernelArgument bytes = tensor_of(3, ScalarType::kUInt8);
  const KernelArgument numbers = tensor_of(4, ScalarType::kInt64);
  for (const char* const name : {"aten::index.Tensor_out", "aten::index_put.out", "aten::index_put_"}) {
    CAPTURE(name);
    CHECK(expected(name, {in, indices_of({std::nullopt, mask})}) == "nothing");
    CHECK(expected(name, {in, indices_of({mask, numbers})}) == "nothing");
    CHECK(expected(name, {in, indices_of({std::nullopt, numbers, bytes})}) ==
          "a mask of at most 2 dimensions in argument 1");
    CHECK(expected(name, {in, indices_of({mask, mask})}) == "a mask of at most 1 dimension in argument 1");
    CHECK(expected(name, {{}, indices_of({mask, mask})}) == "nothing");
  }
}

}  // namespace
}  // namespace etstream::call_verify_test
