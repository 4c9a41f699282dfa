// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that loading a method takes, by hand for one with every kind of value, and files that lie about
// it. tests/executorch compares it with ExecuTorch's runtime.
#include "etstream/inspect.h"

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include <limits>

#include "etstream/bundled_program.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::memory_budget_test {
namespace {

namespace p = etstream::program;

std::string block(std::string name, const std::string& data) {
  name.resize(16);
  const auto size = static_cast<std::uint32_t>(data.size());
  std::string out =
      name + std::string(reinterpret_cast<const char*>(&size), 4) + std::string(12, '\0') + data;
  return out + std::string((16 - data.size() % 16) % 16, '\0');
}

/// A stream for Ethos-U with 40 bytes of commands, `weights` of weights and 896 of scratch, if that is told.
std::string ethos_u_stream(std::size_t weights = 33, bool has_scratch = true) {
  return block("vela_bin_stream", "") + block("cmd_data", "COP1" + std::string(36, 'c')) +
         block("weight_data", std::string(weights, 'w')) +
         (has_scratch ? block("scratch_size", std::string("\x80\x03\0\0", 4)) : "") +
         block("vela_end_stream", "");
}

/// The parts of a program that tests change.
struct Parts {
  std::vector<std::int32_t> sizes = {2, 3};  // of the input, a dynamic tensor
  scalar_type::ScalarType type = scalar_type::ScalarType_FLOAT;
  p::TensorShapeDynamism dynamism = p::TensorShapeDynamism_DYNAMIC_BOUND;
  std::uint32_t offset = 60;  // of a tensor of 4 bytes
  std::vector<std::int64_t> memories = {0, 100, 0, 40};
  std::vector<std::int32_t> inputs = {1};
  std::string backend = "EthosUBackend";
  std::string stream = ethos_u_stream();
  bool is_external = false;  // the input is a constant of another file
  bool has_named_data = false;
  bool has_vectors = true;    // of the arguments of the call of a kernel, and of the items of a list
  std::size_t delegates = 1;  // of the same data
};

/// Returns a program with a method that has every kind of value, a delegate, and a call of each kind.
std::string program_of(const Parts& parts) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<p::EValue>> values;
  const auto add = [&](p::KernelTypes type, auto value) {
    values.push_back(p::CreateEValue(builder, type, value.Union()));
  };
  const auto tensor = [&](const std::vector<std::int32_t>& sizes, scalar_type::ScalarType type,
                          p::TensorShapeDynamism dynamism, flatbuffers::Offset<p::AllocationDetails> place,
                          flatbuffers::Offset<p::ExtraTensorInfo> extra = 0) {
    std::vector<std::uint8_t> order(sizes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
    const auto sizes_vector = builder.CreateVector(sizes);
    const auto order_vector = builder.CreateVector(order);
    return p::CreateTensor(builder, type, 0, sizes_vector, order_vector, false, 0, place, 0, dynamism, extra);
  };
  using Indices = std::vector<std::int32_t>;
  add(p::KernelTypes_Tensor, tensor({1}, scalar_type::ScalarType_FLOAT, p::TensorShapeDynamism_STATIC,
                                    p::CreateAllocationDetails(builder, 1, parts.offset)));
  flatbuffers::Offset<p::ExtraTensorInfo> extra;
  if (parts.is_external) {
    extra =
        p::CreateExtraTensorInfo(builder, 0, builder.CreateString("weight"), p::TensorDataLocation_EXTERNAL);
  }
  add(p::KernelTypes_Tensor, tensor(parts.sizes, parts.type, parts.dynamism, 0, extra));
  add(p::KernelTypes_Int, p::CreateInt(builder, 7));
  add(p::KernelTypes_IntList,
      p::CreateIntList(builder,
                       parts.has_vectors ? builder.CreateVector(std::vector<std::int64_t>{2, 2}) : 0));
  add(p::KernelTypes_String, p::CreateString(builder, builder.CreateString("text")));
  add(p::KernelTypes_TensorList, p::CreateTensorList(builder, builder.CreateVector(Indices{0})));
  add(p::KernelTypes_OptionalTensorList,
      p::CreateOptionalTensorList(builder, builder.CreateVector(Indices{0, -1})));
  add(p::KernelTypes_BoolList,
      p::CreateBoolList(builder, builder.CreateVector(std::vector<std::uint8_t>{1})));

  const std::vector<std::uint8_t> stream(parts.stream.begin(), parts.stream.end());
  const auto data = p::CreateBackendDelegateInlineData(builder, builder.CreateVector(stream));
  const auto reference = p::CreateBackendDelegateDataReference(builder, p::DataLocation_INLINE, 0);
  const auto spec = p::CreateCompileSpec(builder, builder.CreateString("key"),
                                         builder.CreateVector(std::vector<std::uint8_t>{1}));
  const std::vector delegates(
      parts.delegates, p::CreateBackendDelegate(builder, builder.CreateString(parts.backend), reference,
                                                builder.CreateVector(&spec, 1)));
  const auto args = parts.has_vectors ? builder.CreateVector(Indices{1, 2, 0}) : 0;
  const auto kernel = p::CreateKernelCall(builder, 0, args);
  const auto call = p::CreateDelegateCall(builder, 0, builder.CreateVector(Indices{1, 0}));
  const flatbuffers::Offset<p::Instruction> instructions[] = {
      p::CreateInstruction(builder, p::InstructionArguments_KernelCall, kernel.Union()),
      p::CreateInstruction(builder, p::InstructionArguments_DelegateCall, call.Union())};
  const auto chain = p::CreateChain(builder, 0, 0, builder.CreateVector(instructions, 2));
  const auto op = p::CreateOperator(builder, builder.CreateString("aten::add"), builder.CreateString("out"));
  const auto plan = p::CreateExecutionPlan(
      builder, builder.CreateString("forward"), 0, builder.CreateVector(values),
      builder.CreateVector(parts.inputs), builder.CreateVector(Indices{0}), builder.CreateVector(&chain, 1),
      builder.CreateVector(&op, 1), builder.CreateVector(delegates), builder.CreateVector(parts.memories));
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<p::NamedData>>> named_data;
  const auto constants =
      p::CreateSubsegmentOffsets(builder, 0, builder.CreateVector(std::vector<std::uint64_t>{0, 0}));
  if (parts.has_named_data)
    named_data = builder.CreateVector(std::vector<flatbuffers::Offset<p::NamedData>>{});
  p::FinishProgramBuffer(
      builder, p::CreateProgram(builder, 0, builder.CreateVector(&plan, 1), 0, builder.CreateVector(&data, 1),
                                0, constants, 0, named_data));
  return finished(builder);
}

Result<MemoryBudget> budget_of(const Parts& parts) { return read_memory_budget(file_of(program_of(parts))); }

TEST_CASE("each kind of value, delegates and calls take what the runtime's structs take") {
  const auto budget = budget_of({});
  REQUIRE_MESSAGE(budget, budget.error().message);
  REQUIRE(budget->methods.size() == 1);
  const MethodBudget& method = budget->methods[0];
  CHECK(method.name == "forward");
  const AllocatorBudget& wide = method.bits_64;
  CHECK(wide.values == 129);
  CHECK(wide.tensors == 159);
  CHECK(wide.lists == 200);
  CHECK(wide.delegates == 80);
  CHECK(wide.backends == 0);
  CHECK(wide.calls == 120);
  CHECK(wide.method_allocator() == 688);
  CHECK(wide.load_temp == 120);
  const AllocatorBudget& narrow = method.bits_32;
  CHECK(narrow.values == 129);
  CHECK(narrow.tensors == 91);
  CHECK(narrow.lists == 112);
  CHECK(narrow.delegates == 56);
  CHECK(narrow.calls == 60);
  CHECK(narrow.method_allocator() == 448);
  CHECK(narrow.load_temp == 84);
  CHECK(method.kernel_calls == 1);
}

TEST_CASE("a constant of another file takes an entry, and that file a map of its own beside named data") {
  const auto external = budget_of({.is_external = true});
  REQUIRE_MESSAGE(external, external.error().message);
  CHECK(external->methods[0].bits_64.values == 136 + 48);
  CHECK(external->methods[0].bits_32.values == 136 + 40);
  CHECK(external->methods[0].bits_64.delegates == 80);
  CHECK(external->methods[0].inputs.provided == 0);
  const auto both = budget_of({.is_external = true, .has_named_data = true});
  REQUIRE(both);
  CHECK(both->methods[0].bits_64.delegates == 80 + 24);
  CHECK(both->methods[0].bits_32.delegates == 56 + 12);
  const auto named = budget_of({.has_named_data = true});
  REQUIRE(named);
  CHECK(named->methods[0].bits_64.delegates == 80);
}

TEST_CASE("planned memory, inputs and outputs, and the stream of Ethos-U have their sizes") {
  const auto budget = budget_of({});
  REQUIRE(budget);
  const MethodBudget& method = budget->methods[0];
  REQUIRE(method.planned.size() == 3);
  CHECK(method.planned[0].id == 1);
  CHECK(method.planned[0].size == 100);
  CHECK(method.planned[0].used == 64);
  CHECK(method.planned[2].size == 40);
  CHECK(method.planned[2].used == 0);
  CHECK(method.inputs.count == 1);
  CHECK(method.inputs.size == 24);
  CHECK(method.inputs.provided == 24);
  CHECK(method.outputs.size == 4);
  CHECK(method.outputs.provided == 0);
  REQUIRE(method.delegates.size() == 1);
  const MethodBudget::Delegate& delegate = method.delegates[0];
  CHECK(delegate.size == ethos_u_stream().size());
  CHECK(delegate.is_known);
  REQUIRE(delegate.ethos_u);
  CHECK(delegate.ethos_u->commands == 40);
  CHECK(delegate.ethos_u->weights == 33);
  CHECK(delegate.ethos_u->scratch == 896);
  CHECK(method.run_temp == 896);
  CHECK(method.unknown_backends().empty());
}

TEST_CASE("what the library does not know of a backend is named, and XNNPACK's executor is counted") {
  const auto unknown = budget_of({.backend = "Mine", .stream = "data", .delegates = 2});
  REQUIRE(unknown);
  CHECK(unknown->methods[0].unknown_backends() == std::vector<std::string>{"Mine"});
  CHECK(unknown->methods[0].bits_64.delegates == 2 * 80);
  const auto untold = budget_of({.stream = ethos_u_stream(33, false)});
  REQUIRE_MESSAGE(untold, untold.error().message);
  CHECK(untold->methods[0].unknown_backends() == std::vector<std::string>{"EthosUBackend"});
  CHECK(untold->methods[0].run_temp == 0);
  const auto xnnpack = budget_of({.backend = "XnnpackBackend", .stream = "data"});
  REQUIRE(xnnpack);
  CHECK(xnnpack->methods[0].unknown_backends().empty());
  CHECK(xnnpack->methods[0].bits_64.backends == 272);
}

TEST_CASE("a bundle has the budget of its program, and the bytes of its largest test cases") {
  const std::string file = real_bundle();
  const auto budget = read_memory_budget(file_of(file));
  REQUIRE_MESSAGE(budget, budget.error().message);
  CHECK(budget->file_size == file.size());
  CHECK(budget->methods.size() == 2);
  REQUIRE(budget->cases.size() == 2);
  CHECK(budget->cases[1].method == "scale");
  CHECK(budget->cases[1].test_cases == 2);
  CHECK(budget->cases[1].inputs == 60);
  const auto bytes = [](std::int32_t size) {
    return Tensor{ScalarType::kUInt8, {size}, {0}, repeated('x', static_cast<std::uint64_t>(size))};
  };
  BundledProgram bundle;
  bundle.program = file_of(program_of({}));
  bundle.method_test_suites = {
      {"forward", {{{bytes(8), std::int64_t{1}, bytes(4)}, {bytes(3)}}, {{bytes(5)}, {bytes(9)}}}}};
  const auto planned = plan(bundle, {.unchecked = true});
  REQUIRE_MESSAGE(planned, planned.error().message);
  const auto made = read_memory_budget(file_of(written(*planned)));
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(made->cases.at(0).inputs == 12);
  CHECK(made->cases[0].expected_outputs == 9);
}

TEST_CASE("the segment of constants and the flatbuffer are what a loader reads at once") {
  const auto budget = read_memory_budget(file_of(real_program()));
  REQUIRE(budget);
  CHECK(budget->file_alignment >= 16);
  CHECK(budget->flatbuffer_size > 0);
  CHECK(budget->constants_size > 0);
  CHECK(budget->flatbuffer_size + budget->constants_size <= budget->file_size);
  const auto constants_of = [](const made::Program& program) {
    return read_memory_budget(file_of(made::file(program))).value().constants_size;
  };
  CHECK(constants_of({.constants = {{std::string(16, 'a'), {4}}}}) == 16);
  CHECK(constants_of({.named_data = {{"key", "12345"}}}) == 0);
}

TEST_CASE("a file that lies about sizes is an error that says where") {
  const auto error = [](const Parts& parts) { return error_of(budget_of(parts)); };
  CHECK(error({.offset = 97}) == containing("expected 4 bytes inside the 100 of memory 1, found them at 97"));
  CHECK(error({.memories = {0, -1}}) == containing("expected a size of memory 1 from 0 on, found -1"));
  CHECK(error({.memories = {}}) == containing("memory_id"));
  CHECK(error({.sizes = std::vector<std::int32_t>(17, 1)}) ==
        containing("expected a tensor of at most 16 dimensions, found 17"));
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  CHECK(error({.sizes = {most, most, most}}) ==
        containing("expected a tensor of known type and size, found"));
  CHECK(error({.inputs = {8}}) == containing("ExecutionPlan.inputs from 0 to below 8, found 8"));
  CHECK(error({.inputs = {-1}}) == containing("ExecutionPlan.inputs from 0 to below 8, found -1"));
  CHECK(error({.sizes = std::vector<std::int32_t>(16, 1)}) == "no error");
  CHECK(error({.stream = ethos_u_stream(100'000), .delegates = 100}) ==
        containing("kTooLarge: bad: expected payloads that share"));
  CHECK(error({.stream = "vela"}) == containing("delegate 0 of method 'forward': offset 0: expected"));
}

TEST_CASE("sums that do not fit in 64 bits are errors, and nothing is allocated for them") {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const Parts large{.sizes = {most, 1 << 30}, .inputs = {1, 1, 1}};
  CHECK(error_of(budget_of(large)) == containing("kTooLarge: bad: offset"));
  CHECK(error_of(budget_of(large)) ==
        containing("a method 'forward' that needs under 2^64 bytes, found more"));
  // Two inputs of 2^63 - 1 bytes, and three of a third of 2^64 - 1.
  const auto type = scalar_type::ScalarType_BYTE;
  CHECK(error_of(budget_of({.sizes = {153'092'023, 92'737, 649'657}, .type = type, .inputs = {1, 1}})) ==
        "no error");
  CHECK(error_of(budget_of({.sizes = {14'002'645, 65'537, 6'700'417}, .type = type, .inputs = {1, 1, 1}})) ==
        containing("kTooLarge"));
}

TEST_CASE("a truncated file is an error, and so is one of another kind") {
  const std::string file = program_of({});
  for (std::size_t size = 0; size < file.size(); size += 7) {
    CAPTURE(size);
    CHECK_FALSE(read_memory_budget(file_of(file.substr(0, size))));
  }
  CHECK(code_of(read_memory_budget(file_of("GGUF and more, which is no program"))) ==
        exactly("kUnsupported"));
}

}  // namespace
}  // namespace etstream::memory_budget_test
