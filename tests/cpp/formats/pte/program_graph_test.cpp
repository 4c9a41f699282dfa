// SPDX-License-Identifier: BSD-3-Clause
//
// A method as a graph: the arguments that a call writes, and indices that are out of range.
#include "etstream/program.h"

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include "etstream/inspect.h"
#include "file_bytes.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::program_graph_test {
namespace {

namespace p = etstream::program;

using Indices = std::vector<std::int32_t>;
using Numbers = std::vector<std::uint32_t>;

/// Builds a program of one method. Values get their indices in the order in which they are added.
class ProgramBuilder {
 public:
  std::int32_t planned(std::uint32_t offset, std::int32_t size = 4) {
    const auto place = p::CreateAllocationDetails(builder_, 1, offset);
    return tensor(place, size, 0);
  }
  std::int32_t provided() { return tensor(0, 4, 0); }
  std::int32_t constant(std::uint32_t index, std::int32_t size = 4) { return tensor(0, size, index); }
  std::int32_t integer() { return add(p::KernelTypes_Int, p::CreateInt(builder_, 7).Union()); }
  std::int32_t list(const Indices& items) {
    return add(p::KernelTypes_TensorList,
               p::CreateTensorList(builder_, builder_.CreateVector(items)).Union());
  }
  std::int32_t doubles(const std::vector<double>& items) {
    return add(p::KernelTypes_DoubleList,
               p::CreateDoubleList(builder_, builder_.CreateVector(items)).Union());
  }
  std::int32_t bools(const std::vector<std::uint8_t>& items) {
    return add(p::KernelTypes_BoolList, p::CreateBoolList(builder_, builder_.CreateVector(items)).Union());
  }
  void kernel(const std::string& name, const std::string& overload, const Indices& args) {
    operators_.push_back(
        p::CreateOperator(builder_, builder_.CreateString(name), builder_.CreateString(overload)));
    kernel(static_cast<std::int32_t>(operators_.size()) - 1, args);
  }
  void kernel(std::int32_t op, const Indices& args) {
    const auto call = p::CreateKernelCall(builder_, op, builder_.CreateVector(args));
    instruction(p::InstructionArguments_KernelCall, call.Union());
  }
  void delegate(const Indices& args) {
    const auto call = p::CreateDelegateCall(builder_, 0, builder_.CreateVector(args));
    instruction(p::InstructionArguments_DelegateCall, call.Union());
  }
  void jump(std::int32_t condition, std::int32_t to) {
    instruction(p::InstructionArguments_JumpFalseCall,
                p::CreateJumpFalseCall(builder_, condition, to).Union());
  }

  void move(std::int32_t from, std::int32_t to) {
    instruction(p::InstructionArguments_MoveCall, p::CreateMoveCall(builder_, from, to).Union());
  }
  void free(std::int32_t value) {
    instruction(p::InstructionArguments_FreeCall, p::CreateFreeCall(builder_, value).Union());
  }

  std::string finish(const Indices& inputs, const Indices& outputs, std::uint32_t delegate_data = 0) {
    const std::vector<std::uint8_t> bytes(16, 9);
    const auto data = p::CreateBackendDelegateInlineData(builder_, aligned(bytes));
    const auto reference =
        p::CreateBackendDelegateDataReference(builder_, p::DataLocation_INLINE, delegate_data);
    const auto delegate = p::CreateBackendDelegate(builder_, builder_.CreateString("Backend"), reference);
    const auto chain = p::CreateChain(builder_, 0, 0, builder_.CreateVector(instructions_));
    const std::vector<std::int64_t> memories = {0, 1024};
    const auto plan =
        p::CreateExecutionPlan(builder_, builder_.CreateString("forward"), 0, builder_.CreateVector(values_),
                               builder_.CreateVector(inputs), builder_.CreateVector(outputs),
                               builder_.CreateVector(&chain, 1), builder_.CreateVector(operators_),
                               builder_.CreateVector(&delegate, 1), builder_.CreateVector(memories));
    const auto none = p::CreateBuffer(builder_);
    const std::vector<flatbuffers::Offset<p::Buffer>> buffers = {
        none, p::CreateBuffer(builder_, aligned(bytes)), p::CreateBuffer(builder_, aligned(bytes))};
    p::FinishProgramBuffer(builder_,
                           p::CreateProgram(builder_, 0, builder_.CreateVector(&plan, 1),
                                            builder_.CreateVector(buffers), builder_.CreateVector(&data, 1)));
    return finished(builder_);
  }

 private:
  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> aligned(const std::vector<std::uint8_t>& bytes) {
    builder_.ForceVectorAlignment(bytes.size(), 1, 16);
    return builder_.CreateVector(bytes);
  }
  std::int32_t tensor(flatbuffers::Offset<p::AllocationDetails> place, std::int32_t size,
                      std::uint32_t data) {
    const std::int32_t sizes[] = {size};
    const std::uint8_t order[] = {0};
    const auto sizes_vector = builder_.CreateVector(sizes, 1);
    const auto order_vector = builder_.CreateVector(order, 1);
    return add(p::KernelTypes_Tensor, p::CreateTensor(builder_, scalar_type::ScalarType_FLOAT, 0,
                                                      sizes_vector, order_vector, false, data, place)
                                          .Union());
  }
  std::int32_t add(p::KernelTypes type, flatbuffers::Offset<void> value) {
    values_.push_back(p::CreateEValue(builder_, type, value));
    return static_cast<std::int32_t>(values_.size()) - 1;
  }
  void instruction(p::InstructionArguments type, flatbuffers::Offset<void> call) {
    instructions_.push_back(p::CreateInstruction(builder_, type, call));
  }

  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<p::EValue>> values_;
  std::vector<flatbuffers::Offset<p::Operator>> operators_;
  std::vector<flatbuffers::Offset<p::Instruction>> instructions_;
};

Result<ProgramGraph> read_graph(const std::string& bytes) {
  auto program = ProgramFile::open(file_of(bytes));
  if (!program) return program.error();
  return ProgramGraph::read(*program, "forward");
}

ProgramGraph graph_of(const std::string& bytes) {
  auto graph = read_graph(bytes);
  REQUIRE_MESSAGE(graph, graph.error().message);
  return std::move(graph).value();
}

TEST_CASE("the example's graph is as ExecuTorch emitted it, with the view that has no call") {
  const auto program = ProgramFile::open(file_of(real_program()));
  const auto graph = ProgramGraph::read(*program, "forward");
  REQUIRE_MESSAGE(graph, graph.error().message);
  REQUIRE(graph->calls.size() == 4);
  CHECK(graph->name_of(graph->calls[0]) == "aten::convolution.out");
  CHECK(graph->inputs == Numbers{4});
  CHECK(graph->outputs == Numbers{26});
  CHECK(graph->calls[3].outputs == Numbers{26});
  CHECK(graph->values[26].producers == Numbers{3});
  CHECK(graph->values[20].users == Numbers{3});
  CHECK(graph->values[21].view_of == 20);
  CHECK(graph->values[21].producers == Numbers{1});
  CHECK(graph->values[2].storage == TensorStorage::kConstant);
  CHECK(graph->values[2].data.size() == 20480);
  CHECK(graph->values[20].storage == TensorStorage::kPlanned);
  CHECK(error_of(ProgramGraph::read(*program, "backward")) ==
        exactly("kNotFound: bad: there is no method 'backward'; there is 'forward'"));
  CHECK(code_of(ProgramGraph::read(*program, 1)) == "kNotFound");
}

TEST_CASE("kernels' outputs are told by the ways in which ExecuTorch emits them") {
  ProgramBuilder b;
  const auto x = b.planned(0);
  const auto y = b.planned(16);
  const auto z = b.planned(32);
  const auto n = b.integer();
  const auto both = b.list({y, z});
  const auto again = b.list({y, z});
  b.kernel("aten::relu", "out", {x, y, y});
  b.kernel("aten::sort", "values", {x, n, y, z, both});
  b.kernel("aten::split_copy", "Tensor_out", {x, n, both, again});
  b.kernel("aten::relu_", "", {y, y});
  b.kernel("executorch_prim::add", "Scalar", {n, n, n});
  b.kernel("executorch_prim::et_copy_index", "tensor", {z, y, n});
  b.kernel("aten::cat", "out", {both, n, x, x});
  b.kernel("executorch_prim::none", "", {});
  b.kernel("aten::chunk", "out", {x, y, b.list({y})});
  const auto fresh = b.planned(64);
  b.kernel("aten::zeros", "out", {fresh, fresh});
  b.kernel("aten::neg", "out", {x, b.planned(96)});
  b.kernel("aten::fill", "out", {y});
  const auto other = b.list({z, x});
  b.kernel("aten::sort", "values", {n, z, n, other});
  const auto graph = graph_of(b.finish({x}, {z}));
  const auto outputs = [&](std::size_t i) {
    return Indices(graph.calls[i].outputs.begin(), graph.calls[i].outputs.end());
  };
  const auto inputs = [&](std::size_t i) {
    return Indices(graph.calls[i].inputs.begin(), graph.calls[i].inputs.end());
  };
  CHECK(outputs(0) == Indices{y});
  CHECK(inputs(0) == Indices{x});
  CHECK(outputs(1) == Indices{y, z, both});
  CHECK(inputs(1) == Indices{x, n});
  CHECK(outputs(2) == Indices{both, again});
  CHECK(inputs(2) == Indices{x, n});
  CHECK(outputs(3) == Indices{y});
  CHECK(inputs(3) == Indices{y});
  CHECK(outputs(4) == Indices{n});
  CHECK(inputs(4) == Indices{n, n});
  CHECK(outputs(5) == Indices{z});
  CHECK(inputs(5) == Indices{z, y, n});
  CHECK(outputs(6) == Indices{x});
  CHECK(outputs(7).empty());
  CHECK(outputs(8) == Indices{y, again + 1});
  CHECK(inputs(8) == Indices{x});
  CHECK(outputs(9) == Indices{fresh});
  CHECK(inputs(9).empty());
  CHECK(inputs(10) == Indices{x});
  CHECK(outputs(10) == Indices{fresh + 1});
  CHECK(outputs(11) == Indices{y});
  CHECK(outputs(12) == Indices{other});
  CHECK(inputs(12) == Indices{n, z, n});
  CHECK(graph.values[static_cast<std::size_t>(y)].producers == Numbers{0, 1, 2, 3, 8, 11});
  CHECK(graph.values[static_cast<std::size_t>(y)].users == Numbers{3, 5, 6});
  CHECK(graph.name_of(graph.calls[3]) == "aten::relu_");
}

TEST_CASE(
    "a delegate's outputs are those that nothing was in before, and not a view of what nobody has read") {
  ProgramBuilder b;
  const auto x = b.planned(0);
  const auto weight = b.constant(1);
  const auto one = b.planned(16);
  const auto other = b.provided();
  const auto view = b.planned(16);
  const auto last = b.planned(0);
  b.delegate({x, weight, one, other});
  b.delegate({other, view, last});
  const auto graph = graph_of(b.finish({x}, {last}));
  const auto numbers = [](std::initializer_list<std::int32_t> values) {
    return Numbers(values.begin(), values.end());
  };
  CHECK(graph.calls[0].inputs == numbers({x, weight}));
  CHECK(graph.calls[0].outputs == numbers({one, other}));
  CHECK(graph.calls[1].inputs == numbers({other, view}));
  CHECK(graph.calls[1].outputs == numbers({last}));
  CHECK(graph.values[static_cast<std::size_t>(view)].view_of == static_cast<std::uint32_t>(one));
  CHECK(graph.name_of(graph.calls[0]) == "delegate Backend");
  CHECK(graph.delegates[0].data.size() == 16);
}

TEST_CASE("a delegate may write numbers, but no lists, and what it reads of an input's place is the input") {
  ProgramBuilder b;
  const auto x = b.planned(0);
  const auto out = b.planned(16);
  const auto n = b.integer();
  const auto view = b.planned(0);
  const auto smaller = b.planned(0, 3);
  const auto list = b.list({x});
  b.delegate({view, smaller, list});
  b.delegate({list, out, n});
  const ProgramGraph graph = graph_of(b.finish({x}, {out}));
  CHECK(graph.calls[0].outputs.empty());
  CHECK(graph.values[static_cast<std::size_t>(view)].view_of == std::uint32_t{0});
  CHECK_FALSE(graph.values[static_cast<std::size_t>(smaller)].view_of.has_value());
  CHECK(graph.calls[1].outputs == Numbers{1, 2});
  CHECK(graph.values[0].users == Numbers{0, 1});
}

TEST_CASE("a call has the beginning of a long name, as many calls may have it") {
  ProgramBuilder builder;
  const auto input = builder.planned(16);
  builder.kernel("aten::" + std::string(500, 'n'), std::string(500, 'o'), {input, builder.planned(64)});
  const ProgramGraph graph = graph_of(builder.finish({input}, {input}));
  CHECK(graph.operators[0].name.size() == 506);
  CHECK(graph.name_of(graph.calls[0]) == "aten::" + std::string(194, 'n') + "." + std::string(200, 'o'));
}

TEST_CASE("calls that are none of kernels say what they read, write and go on with") {
  ProgramBuilder b;
  const auto condition = b.integer();
  const auto from = b.planned(0);
  const auto to = b.planned(16);
  b.jump(condition, 2);
  b.move(from, to);
  b.free(from);
  const ProgramGraph graph = graph_of(b.finish({condition, from}, {to}));
  REQUIRE(graph.calls.size() == 3);
  CHECK(graph.name_of(graph.calls[0]) == "jump if false");
  CHECK(graph.calls[0].inputs == Numbers{0});
  CHECK(graph.calls[0].outputs.empty());
  CHECK(graph.calls[0].destination == 2);
  CHECK(graph.name_of(graph.calls[1]) == "move");
  CHECK(graph.calls[1].args == Numbers{1, 2});
  CHECK(graph.calls[1].inputs == Numbers{1});
  CHECK(graph.calls[1].outputs == Numbers{2});
  CHECK(graph.name_of(graph.calls[2]) == "free");
  CHECK(graph.calls[2].args == Numbers{1});
  CHECK(graph.values[1].users == Numbers{1, 2});
  CHECK(graph.values[2].producers == Numbers{1});
}

TEST_CASE("lists have their items") {
  ProgramBuilder b;
  const auto x = b.planned(0);
  b.doubles({0.5, -2});
  b.bools({1, 0, 1});
  const ProgramGraph graph = graph_of(b.finish({x}, {x}));
  CHECK(graph.values[1].doubles == std::vector<double>{0.5, -2});
  CHECK(graph.values[2].bools.size() == 3);
  CHECK(graph.values[2].bools[0]);
  CHECK_FALSE(graph.values[2].bools[1]);
}

TEST_CASE("an index that leads nowhere is refused, naming file and offset") {
  const auto error_with = [](auto build) {
    ProgramBuilder b;
    const auto x = b.planned(0);
    const std::string file = build(b, x);
    CHECK_FALSE(findings_of(file).ok());
    return error_of(read_graph(file));
  };
  const auto range = [](const std::string& what) { return containing(": expected " + what); };
  CHECK(error_with([](auto& b, auto x) {
          b.kernel("aten::relu", "out", {x, 5});
          return b.finish({x}, {x});
        }) == range("KernelCall.args from 0 to below 1, found 5"));
  CHECK(error_with([](auto& b, auto x) {
          b.kernel("aten::relu", "out", {x, -1});
          return b.finish({x}, {x});
        }) == range("KernelCall.args from 0 to below 1, found -1"));
  CHECK(error_with([](auto& b, auto x) {
          b.kernel(3, {x});
          return b.finish({x}, {x});
        }) == range("KernelCall.op_index from 0 to below 0, found 3"));
  CHECK(error_with([](auto& b, auto x) {
          b.jump(x, 2);
          return b.finish({x}, {x});
        }) == range("JumpFalseCall.destination_instruction from 0 to below 2, found 2"));
  CHECK(error_with([](auto& b, auto x) {
          return b.finish({x, 9}, {x});
        }) == range("ExecutionPlan.inputs from 0 to below 1, found 9"));
  CHECK(error_with([](auto& b, auto x) {
          b.list({x, 7});
          return b.finish({x}, {x});
        }) == range("TensorList.items from 0 to below 2, found 7"));
  CHECK(error_with([](auto& b, auto x) {
          b.constant(3);
          return b.finish({x}, {x});
        }) == range("Tensor.data_buffer_idx of an inline constant from 0 to below 3, found 3"));
  CHECK(error_with([](auto& b, auto x) {
          b.planned(1020, 4);
          return b.finish({x}, {x});
        }) == range("16 bytes inside the 1024 of memory 1, found them at 1020"));
  CHECK(error_with([](auto& b, auto x) { return b.finish({x}, {x}, 1); }) == containing("kCorrupt"));
}

TEST_CASE("calls that share long lists are refused before the links between them outgrow the file") {
  ProgramBuilder b;
  const auto x = b.planned(0);
  const auto list = b.list(Indices(10'000, x));
  b.kernel("aten::cat", "out", {list, x, x});
  for (int i = 0; i < 1000; ++i) b.kernel(0, {list, list, x, x});
  CHECK(code_of(read_graph(b.finish({x}, {x}))) == "kTooLarge");
}

TEST_CASE(
    "an inspection counts calls, memory, constants and padding, and duplicates are found by their bytes") {
  const auto inspected = inspect(file_of(real_program()));
  REQUIRE(inspected);
  REQUIRE(inspected->methods.size() == 1);
  const InspectedMethod& method = inspected->methods[0];
  CHECK(method.instructions == 4);
  CHECK(method.operators.size() == 4);
  CHECK(method.tensors.size() == 10);
  CHECK(method.tensors[0].size == 20480);
  REQUIRE(method.memories.size() == 1);
  CHECK(method.memories[0].tensors == 6);
  CHECK(inspected->program->constants == 4);
  CHECK(inspected->program->constant_bytes == 20480 + 288 + 40 + 32);
  CHECK(inspected->program->padding == 72);
  ProgramBuilder with_empty;
  const auto y = with_empty.planned(0);
  with_empty.constant(1);
  with_empty.constant(2, 0);
  CHECK(inspect(file_of(with_empty.finish({y}, {y})))->program->constants == 1);

  ProgramBuilder b;
  const auto x = b.planned(0);
  b.constant(1);
  b.constant(2);
  const auto found = find_duplicates(file_of(b.finish({x}, {x})));
  REQUIRE_MESSAGE(found, found.error().message);
  REQUIRE(found->size() == 1);
  CHECK(found->front().size == 16);
  CHECK(found->front().paths.size() == 3);  // two constants and what the delegate has
  CHECK(found->front().wasted() == 32);
}

}  // namespace

}  // namespace etstream::program_graph_test
