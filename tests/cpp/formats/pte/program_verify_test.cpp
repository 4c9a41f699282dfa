// SPDX-License-Identifier: BSD-3-Clause
//
// A real program, unpacked, damaged in one way and packed again: ProgramFile::verify finds it.
#include <doctest/doctest.h>

#include <functional>

#include "core/base/text.h"
#include "etstream/bundled_program.h"
#include "etstream/program.h"
#include "file_bytes.h"
#include "program_generated.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::program_verify_test {
namespace {

using namespace program;  // NOLINT: the generated types are what this file is about

/// Returns the real program without its segment, so that it needs no extended header. Each tensor without
/// planned memory comes from outside.
ProgramT real_object() {
  ProgramT object;
  const std::string real = real_program();
  GetProgram(real.data())->UnPackTo(&object);
  object.constant_segment.reset();
  object.segments.clear();
  ExecutionPlanT& plan = *object.execution_plan[0];
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    auto* tensor = plan.values[i]->val.AsTensor();
    if (!tensor || tensor->data_buffer_idx == 0) continue;
    tensor->data_buffer_idx = 0;
    plan.inputs.push_back(static_cast<std::int32_t>(i));
  }
  return object;
}

std::string packed(const ProgramT& object) {
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, Program::Pack(builder, &object));
  return finished(builder);
}

ExecutionPlanT& plan_of(ProgramT& object) { return *object.execution_plan[0]; }

TensorT& tensor_of(ProgramT& object) {
  for (auto& value : plan_of(object).values) {
    if (auto* tensor = value->val.AsTensor(); tensor && tensor->allocation_info) return *tensor;
  }
  FAIL("no tensor");
  std::abort();
}

KernelCallT& kernel_of(ProgramT& object) {
  for (auto& instruction : plan_of(object).chains[0]->instructions) {
    if (auto* call = instruction->instr_args.AsKernelCall()) return *call;
  }
  FAIL("no kernel call");
  std::abort();
}

template <class Call>
void add_call(ProgramT& object, Call call) {
  auto instruction = std::make_unique<InstructionT>();
  instruction->instr_args.Set(std::move(call));
  plan_of(object).chains[0]->instructions.push_back(std::move(instruction));
}

template <class Held>
void add_value(ProgramT& object, Held held) {
  auto value = std::make_unique<EValueT>();
  value->val.Set(std::move(held));
  plan_of(object).values.push_back(std::move(value));
}

void add_delegate(ProgramT& object, DataLocation location, std::uint32_t index) {
  auto delegate = std::make_unique<BackendDelegateT>();
  delegate->id = "Backend";
  delegate->processed = std::make_unique<BackendDelegateDataReferenceT>();
  delegate->processed->location = location;
  delegate->processed->index = index;
  plan_of(object).delegates.push_back(std::move(delegate));
}

void add_named(ProgramT& object, const std::string& key, std::uint32_t segment_index) {
  auto named = std::make_unique<NamedDataT>();
  named->key = key;
  named->segment_index = segment_index;
  object.named_data.push_back(std::move(named));
}

/// Adds a segment of no bytes, for indices that refer to one.
void add_segment(ProgramT& object) { object.segments.push_back(std::make_unique<DataSegmentT>()); }

std::unique_ptr<SubsegmentOffsetsT> subsegments(std::uint32_t segment_index,
                                                std::vector<std::uint64_t> offsets) {
  auto out = std::make_unique<SubsegmentOffsetsT>();
  out->segment_index = segment_index;
  out->offsets = std::move(offsets);
  return out;
}

struct Row {
  std::string expected;  // in the one error
  std::function<void(ProgramT&)> spoil;
};

void check_all_found(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.expected);
    ProgramT object = real_object();
    row.spoil(object);
    const Findings findings = findings_of(packed(object));
    CAPTURE(lines_of(findings.errors));
    CHECK(findings.errors.size() == 1);
    if (findings.errors.empty()) continue;
    const Finding& error = findings.errors[0];
    CHECK(error.file == "bad");
    CHECK(error.message.starts_with("bad: offset " + std::to_string(error.offset.value_or(0)) + ": "));
    CHECK(error.message.find(row.expected) != std::string::npos);
  }
}

std::string below(std::string_view what, std::uint64_t limit, std::int64_t found) {
  return text(": expected {} from 0 to below {}, found {}", what, limit, found);
}

TEST_CASE("the unspoilt program has nothing to find") {
  ProgramT object = real_object();
  object.constant_segment = subsegments(0, {0});
  const Findings findings = findings_of(packed(object));
  CHECK(lines_of(findings.errors).empty());
  CHECK(lines_of(findings.warnings).empty());
  CHECK(findings_of(real_program()).ok());
}

TEST_CASE("of two methods of one name the runtime takes the first, which is told") {
  ProgramT object = real_object();
  ProgramT same = real_object();
  object.execution_plan.push_back(std::move(same.execution_plan[0]));
  const Findings findings = findings_of(packed(object));
  CHECK(lines_of(findings.errors).empty());
  CHECK(exactly(lines_of(findings.warnings)) ==
        containing("expected each method once, as ExecuTorch takes the first of a name, found 'forward'"));
}

TEST_CASE("an index of an input, an output or an argument that no value has is found") {
  ProgramT real = real_object();
  const std::uint64_t values = plan_of(real).values.size();
  std::vector<Row> rows;
  for (const std::int32_t index : {-1, static_cast<std::int32_t>(values), 0x7fffffff, -0x7fffffff - 1}) {
    const auto found = [&](const char* what) { return below(what, values, index); };
    rows.push_back(
        {found("ExecutionPlan.outputs"), [=](ProgramT& p) { plan_of(p).outputs.push_back(index); }});
    rows.push_back({found("ExecutionPlan.inputs"), [=](ProgramT& p) { plan_of(p).inputs[0] = index; }});
    rows.push_back({found("KernelCall.args"), [=](ProgramT& p) { kernel_of(p).args.back() = index; }});
    rows.push_back({found("MoveCall.move_from"), [=](ProgramT& p) {
                      MoveCallT call;
                      call.move_from = index;
                      add_call(p, call);
                    }});
    rows.push_back({found("MoveCall.move_to"), [=](ProgramT& p) {
                      MoveCallT call;
                      call.move_to = index;
                      add_call(p, call);
                    }});
    rows.push_back({found("FreeCall.value_index"), [=](ProgramT& p) {
                      FreeCallT call;
                      call.value_index = index;
                      add_call(p, call);
                    }});
    rows.push_back({found("JumpFalseCall.cond_value_index"), [=](ProgramT& p) {
                      JumpFalseCallT call;
                      call.cond_value_index = index;
                      add_call(p, call);
                    }});
  }
  check_all_found(rows);
}

TEST_CASE("an index of an operator, a delegate or an instruction that is out of range is found") {
  ProgramT real = real_object();
  const std::uint64_t operators = plan_of(real).operators.size();
  const std::uint64_t instructions = plan_of(real).chains[0]->instructions.size() + 1;
  const auto jump = [](std::int32_t to) {
    return [=](ProgramT& p) {
      JumpFalseCallT call;
      call.destination_instruction = to;
      add_call(p, call);
    };
  };
  const auto past = static_cast<std::int32_t>(instructions + 1);
  check_all_found({
      {below("KernelCall.op_index", operators, -1), [](ProgramT& p) { kernel_of(p).op_index = -1; }},
      {below("KernelCall.op_index", operators, static_cast<std::int64_t>(operators)),
       [=](ProgramT& p) { kernel_of(p).op_index = static_cast<std::int32_t>(operators); }},
      {below("DelegateCall.delegate_index", 0, 0), [](ProgramT& p) { add_call(p, DelegateCallT()); }},
      {below("JumpFalseCall.destination_instruction", instructions + 1, past), jump(past)},
      {below("JumpFalseCall.destination_instruction", instructions + 1, -1), jump(-1)},
      {"expected an instruction, found none",
       [](ProgramT& p) { plan_of(p).chains[0]->instructions.push_back(std::make_unique<InstructionT>()); }},
  });
  jump(past - 1)(real);  // to the end
  CHECK(findings_of(packed(real)).ok());
}

/// Adds a value that is a list of one item.
template <class List>
std::function<void(ProgramT&)> add_list(std::int32_t item) {
  return [=](ProgramT& p) {
    List held;
    held.items.push_back(item);
    add_value(p, held);
  };
}

/// Returns the number of values with a list, which as an index is one too many.
std::int32_t values_with_list() {
  ProgramT real = real_object();
  return static_cast<std::int32_t>(plan_of(real).values.size() + 1);
}

TEST_CASE("an element of a list of tensors that no value has is found") {
  const std::int32_t limit = values_with_list();
  const auto values = static_cast<std::uint64_t>(limit);
  check_all_found({
      {below("TensorList.items", values, -1), add_list<TensorListT>(-1)},
      {below("TensorList.items", values, limit), add_list<TensorListT>(limit)},
  });
}

TEST_CASE("an element of a list of optional tensors that no value has is found, -1 is none") {
  check_all_found({
      {"OptionalTensorList.items", add_list<OptionalTensorListT>(-2)},
      {"OptionalTensorList.items", add_list<OptionalTensorListT>(values_with_list())},
  });
  ProgramT real = real_object();
  add_list<OptionalTensorListT>(-1)(real);
  CHECK(findings_of(packed(real)).ok());
}

TEST_CASE("an element of a list of integers, which are indices of values too, that no value has is found") {
  check_all_found({
      {"IntList.items", add_list<IntListT>(-1)},
      {"IntList.items", add_list<IntListT>(values_with_list())},
  });
}

TEST_CASE("a list or a string that is not there, which ExecuTorch reads all the same, is found") {
  // Empty lists and strings are packed as absent ones.
  check_all_found({
      {"expected IntList.items, found none", [](ProgramT& p) { add_value(p, IntListT()); }},
      {"expected DoubleList.items, found none", [](ProgramT& p) { add_value(p, DoubleListT()); }},
      {"expected BoolList.items, found none", [](ProgramT& p) { add_value(p, BoolListT()); }},
      {"expected TensorList.items, found none", [](ProgramT& p) { add_value(p, TensorListT()); }},
      {"expected OptionalTensorList.items, found none",
       [](ProgramT& p) { add_value(p, OptionalTensorListT()); }},
      {"expected String.string_val, found none", [](ProgramT& p) { add_value(p, StringT()); }},
  });
}

TEST_CASE("a tensor's data that is not where it says is found") {
  check_all_found({
      {below("Tensor.data_buffer_idx of an inline constant", 0, 1),
       [](ProgramT& p) {
         tensor_of(p).data_buffer_idx = 1;
         tensor_of(p).allocation_info.reset();
       }},
      {below("Tensor.data_buffer_idx of an inline constant", 2, 2),
       [](ProgramT& p) {
         p.constant_buffer.push_back(std::make_unique<BufferT>());
         p.constant_buffer.push_back(std::make_unique<BufferT>());
         auto& tensor = tensor_of(p);
         tensor.allocation_info.reset();
         tensor.data_buffer_idx = 2;
       }},
      {"expected an index below 0 in mutable_data_segments, found 0",
       [](ProgramT& p) { tensor_of(p).data_buffer_idx = 1; }},
      {"expected an index below 1 in mutable_data_segments, found 1",
       [](ProgramT& p) {
         add_segment(p);
         p.mutable_data_segments.push_back(subsegments(0, {0, 0}));
         tensor_of(p).data_buffer_idx = 1;
         tensor_of(p).extra_tensor_info = std::make_unique<ExtraTensorInfoT>();
         tensor_of(p).extra_tensor_info->mutable_data_segments_idx = 1;
       }},
      {below("Tensor.data_buffer_idx", 2, 2),
       [](ProgramT& p) {
         add_segment(p);
         p.mutable_data_segments.push_back(subsegments(0, {0, 0}));
         tensor_of(p).data_buffer_idx = 2;
       }},
      {"expected a memory_id from 1 to below 2, found 0",
       [](ProgramT& p) { tensor_of(p).allocation_info->memory_id = 0; }},
      {"expected a memory_id from 1 to below 2, found 2",
       [](ProgramT& p) { tensor_of(p).allocation_info->memory_id = 2; }},
      {", found them at 4294967296",
       [](ProgramT& p) {
         tensor_of(p).allocation_info->memory_offset_low = 0;
         tensor_of(p).allocation_info->memory_offset_high = 1;
       }},
      {"expected the name of an external tensor, found none",
       [](ProgramT& p) {
         tensor_of(p).extra_tensor_info = std::make_unique<ExtraTensorInfoT>();
         tensor_of(p).extra_tensor_info->location = TensorDataLocation_EXTERNAL;
       }},
  });
}

TEST_CASE("a tensor that ExecuTorch could not make is found") {
  const auto shape = [](std::vector<std::int32_t> sizes, std::vector<std::uint8_t> order) {
    return [=](ProgramT& p) {
      tensor_of(p).sizes = sizes;
      tensor_of(p).dim_order = order;
    };
  };
  std::vector<std::uint8_t> sixteen(16);
  for (std::uint8_t i = 0; i < 16; ++i) sixteen[i] = i;
  check_all_found({
      {"expected Tensor.sizes of at most 16 dimensions, found 17",
       shape(std::vector<std::int32_t>(17, 1), std::vector<std::uint8_t>(17, 0))},
      {"a dimension has the negative size -1", shape({-1, 2}, {0, 1})},
      {"a tensor of known type and size", shape(std::vector<std::int32_t>(16, 0x7fffffff), sixteen)},
      {"expected Tensor.dim_order of 2 dimensions, found 1", shape({1, 2}, {0})},
      {"expected Tensor.dim_order of 2 dimensions, found 3", shape({1, 2}, {0, 1, 2})},
      {"expected Tensor.dim_order that is a permutation, found another", shape({1, 2}, {0, 0})},
      {"expected Tensor.dim_order that is a permutation, found another", shape({1, 2}, {1, 2})},
      {"a tensor of known type and size",
       [](ProgramT& p) { tensor_of(p).scalar_type = static_cast<scalar_type::ScalarType>(18); }},
      {"expected Tensor.shape_dynamism from 0 to below 3, found 3",
       [](ProgramT& p) { tensor_of(p).shape_dynamism = static_cast<TensorShapeDynamism>(3); }},
  });
  ProgramT most = real_object();
  shape(std::vector<std::int32_t>(16, 1), sixteen)(most);
  CHECK(findings_of(packed(most)).ok());
}

TEST_CASE("named data of a key that comes twice is warned of, as ExecuTorch takes the first") {
  ProgramT object = real_object();
  object.constant_segment = subsegments(0, {0});
  add_segment(object);
  for (const char* key : {"weight", "bias", "weight"}) add_named(object, key, 0);
  const Findings findings = findings_of(packed(object));
  CHECK(lines_of(findings.errors).empty());
  REQUIRE(findings.warnings.size() == 1);
  CHECK(exactly(findings.warnings[0].message) == containing("expected each key once, found 'weight'"));
}

TEST_CASE("named data without a key, or of no segment is found") {
  check_all_found({
      {below("NamedData.segment_index", 0, 0), [](ProgramT& p) { add_named(p, "weight", 0); }},
      {below("NamedData.segment_index", 1, 4294967295),
       [](ProgramT& p) {
         add_segment(p);
         add_named(p, "weight", 0xffffffff);
       }},
      {"expected NamedData.key, found none",
       [](ProgramT& p) {
         add_segment(p);
         add_named(p, "", 0);  // packed as an absent string
       }},
  });
}

TEST_CASE("a delegate whose data is nowhere is found") {
  check_all_found({
      {below("BackendDelegateDataReference.index", 0, 0),
       [](ProgramT& p) { add_delegate(p, DataLocation_INLINE, 0); }},
      {below("BackendDelegateDataReference.index", 1, 1),
       [](ProgramT& p) {
         p.backend_delegate_data.push_back(std::make_unique<BackendDelegateInlineDataT>());
         add_delegate(p, DataLocation_INLINE, 1);
       }},
      {below("BackendDelegateDataReference.index", 1, 7),
       [](ProgramT& p) {
         add_segment(p);
         add_delegate(p, DataLocation_SEGMENT, 7);
       }},
      {below("BackendDelegateDataReference.location", 2, 5),
       [](ProgramT& p) {
         add_segment(p);
         add_delegate(p, static_cast<DataLocation>(5), 0);
       }},
      {"expected a delegate's id and processed data, found none",
       [](ProgramT& p) { plan_of(p).delegates.push_back(std::make_unique<BackendDelegateT>()); }},
      {"expected a delegate's id and processed data, found none",
       [](ProgramT& p) {
         add_segment(p);
         add_delegate(p, DataLocation_SEGMENT, 0);
         plan_of(p).delegates[0]->id.clear();
       }},
  });
}

TEST_CASE("pieces of a segment that is not there, or beyond its end, are found") {
  check_all_found({
      {below("SubsegmentOffsets.segment_index", 0, 0),
       [](ProgramT& p) {
         p.constant_segment = subsegments(0, {0, 0});
       }},
      {below("SubsegmentOffsets.segment_index", 1, 3),
       [](ProgramT& p) {
         add_segment(p);
         p.mutable_data_segments.push_back(subsegments(3, {0, 0}));
       }},
      {"18446744073709551615",
       [](ProgramT& p) {
         add_segment(p);
         p.constant_segment = subsegments(0, {0, ~std::uint64_t{0}});
       }},
  });
}

TEST_CASE("tensors that kernels may not read in place are warned of, by how many they are") {
  ProgramT object = real_object();
  add_segment(object);
  object.mutable_data_segments.push_back(subsegments(0, {4, 8, 16, 24}));
  CHECK(exactly(lines_of(findings_of(packed(object)).warnings)) ==
        containing("expected tensors at multiples of 16 in segment 0, found 2 at other places"));
  object.mutable_data_segments[0]->offsets = {0, 8};
  CHECK(exactly(lines_of(findings_of(packed(object)).warnings)) == containing("found 1 at other places"));
}

TEST_CASE("constants in a segment and in the flatbuffer are found, unless there is only a placeholder") {
  ProgramT object = real_object();
  object.constant_buffer.push_back(std::make_unique<BufferT>());
  object.constant_segment = subsegments(0, {0});
  CHECK(lines_of(findings_of(packed(object)).errors).empty());
  add_segment(object);
  object.constant_segment = subsegments(0, {0, 0});
  CHECK(exactly(lines_of(findings_of(packed(object)).errors)) == containing("found some in both"));
}

TEST_CASE("tensors have constants in the flatbuffer unless a segment has a place for one") {
  ProgramT object = real_object();
  add_segment(object);
  for (int i = 0; i < 2; ++i) object.constant_buffer.push_back(std::make_unique<BufferT>());
  object.constant_buffer[1]->storage.resize(4);
  TensorT constant;
  constant.scalar_type = scalar_type::ScalarType_FLOAT;
  constant.sizes = {1};
  constant.dim_order = {0};
  constant.data_buffer_idx = 1;
  add_value(object, std::move(constant));
  const auto use_of_segment = [&] {
    return ProgramFile::open(file_of(packed(object)))->segments().value().at(0).use;
  };
  object.constant_segment = subsegments(0, {});
  CHECK(lines_of(findings_of(packed(object)).errors).empty());
  CHECK(use_of_segment().empty());
  object.constant_segment = subsegments(0, {0});
  CHECK(exactly(lines_of(findings_of(packed(object)).errors)) ==
        containing(below("Tensor.data_buffer_idx", 1, 1)));
  CHECK(use_of_segment() == "constants");
}

TEST_CASE("a method that lacks a part, or a program without methods, is found") {
  check_all_found({
      {"expected ExecutionPlan.name, found none", [](ProgramT& p) { plan_of(p).name.clear(); }},
      {"expected ExecutionPlan.outputs, found none", [](ProgramT& p) { plan_of(p).outputs.clear(); }},
      {"expected ExecutionPlan.chains, found none", [](ProgramT& p) { plan_of(p).chains.clear(); }},
      {"expected at least one method, found none", [](ProgramT& p) { p.execution_plan.clear(); }},
  });
  ProgramT object = real_object();
  plan_of(object).values.clear();
  CHECK(lines_of(findings_of(packed(object)).errors).find("expected ExecutionPlan.values, found none") !=
        std::string::npos);
}

TEST_CASE("a later schema version is not loaded, and at most 100 errors are kept") {
  ProgramT object = real_object();
  object.constant_segment = subsegments(0, {0});
  CHECK(lines_of(findings_of(packed(object)).errors).empty());
  object.version = 3;
  Findings of_structure;
  REQUIRE(ProgramFile::open(file_of(packed(object)))->verify(of_structure));
  CHECK(of_structure.ok());  // it can be written again
  const std::string errors = lines_of(findings_of(packed(object)).errors);
  CHECK(errors.find("expected schema version 0, the latest that ExecuTorch 1.5 loads (0x23), found 3\n") !=
        std::string::npos);
  plan_of(object).inputs.assign(1000, -1);
  CHECK(findings_of(packed(object)).errors.size() == 100);
}

TEST_CASE("a program of more tables than FlatBuffers' verifier takes is warned of") {
  ProgramT object = real_object();
  object.constant_segment = subsegments(0, {0});
  auto& operators = plan_of(object).operators;
  const auto tables_in_warning = [&]() -> std::uint64_t {
    const std::string file = packed(object);
    flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
    const std::string warnings = lines_of(findings_of(file).warnings);
    const std::size_t found = warnings.find("found ", warnings.find("expected at most 1000000 tables"));
    CHECK(VerifyProgramBuffer(verifier) == (found == std::string::npos));
    return found == std::string::npos ? 0 : std::stoull(warnings.substr(found + 6));
  };
  while (operators.size() < 1'000'000) operators.push_back(std::make_unique<OperatorT>());
  const std::uint64_t tables = tables_in_warning();
  REQUIRE(tables > 1'000'000);
  operators.resize(operators.size() - static_cast<std::size_t>(tables - 1'000'000));
  CHECK(tables_in_warning() == 0);
  operators.push_back(std::make_unique<OperatorT>());
  CHECK(tables_in_warning() == 1'000'001);
}

TEST_CASE("constants that are all empty are not found by a runtime that reads a file") {
  ProgramT object = real_object();
  object.segments.push_back(std::make_unique<DataSegmentT>());
  object.constant_segment = subsegments(0, {0, 0});
  CHECK(lines_of(findings_of(packed(object)).errors).empty());  // no tensor has them
  TensorT constant;
  constant.scalar_type = scalar_type::ScalarType_FLOAT;
  constant.sizes = {1, 0};
  constant.dim_order = {0, 1};
  constant.data_buffer_idx = 1;
  add_value(object, std::move(constant));
  CHECK(exactly(lines_of(findings_of(packed(object)).errors)) ==
        containing(
            "expected a constant that has bytes, or ExecuTorch loads no method from a file (0x23), found 1 "
            "constant, all of them empty; constants_out moves them to a file"));
  BundledProgram bundle;  // which runtimes have in memory
  bundle.program = source_of(packed(object));
  const Findings in_bundle = findings_of(written(plan(bundle).value()));
  CHECK(lines_of(in_bundle.errors).empty());
  CHECK(exactly(lines_of(in_bundle.warnings)) == containing("found 1 constant, all of them empty"));
  object.version = 1;
  bundle.program = source_of(packed(object));
  const std::string later = "expected schema version 0, the latest that ExecuTorch 1.5 loads (0x23), found 1";
  CHECK(error_of(plan(bundle)) == containing(later));
  CHECK(exactly(lines_of(findings_of(written(plan(bundle, {.unchecked = true}).value())).errors)) ==
        containing(later));
}

}  // namespace
}  // namespace etstream::program_verify_test
