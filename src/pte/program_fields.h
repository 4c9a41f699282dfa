// SPDX-License-Identifier: BSD-3-Clause
//
// The tables and fields of programs that the library knows, as a schema has them: the built-in one, or one
// that a user brings. No other file names them (tests/structure/check_program_names.py).
#pragma once

#include <string_view>

#include "container/shared_fields.h"

namespace etstream::pte {

struct RootFields : BoundTable {
  explicit RootFields(const Schema& schema) : BoundTable(schema, "Program") {}
  BoundField version = field("version");
  BoundField execution_plan = field("execution_plan");
  BoundField constant_buffer = field("constant_buffer");
  BoundField backend_delegate_data = field("backend_delegate_data");
  BoundField segments = field("segments");
  BoundField constant_segment = field("constant_segment");
  BoundField mutable_data_segments = field("mutable_data_segments");
  BoundField named_data = field("named_data");
};

struct MethodFields : BoundTable {
  explicit MethodFields(const Schema& schema) : BoundTable(schema, "ExecutionPlan") {}
  BoundField name = field("name");
  BoundField values = field("values");
  BoundField inputs = field("inputs");
  BoundField outputs = field("outputs");
  BoundField chains = field("chains");
  BoundField operators = field("operators");
  BoundField delegates = field("delegates");
  BoundField non_const_buffer_sizes = field("non_const_buffer_sizes");
  BoundField non_const_buffer_device = field("non_const_buffer_device");
};

struct ValueFields : BoundTable {
  explicit ValueFields(const Schema& schema) : BoundTable(schema, "EValue") {}
  BoundField val = field("val");
};

struct TensorFields : ShapeFields {
  explicit TensorFields(const Schema& schema) : ShapeFields(schema, "Tensor") {}
  BoundField shape_dynamism = field("shape_dynamism");
  BoundField data_buffer_idx = field("data_buffer_idx");
  BoundField allocation_info = field("allocation_info");
  BoundField extra_tensor_info = field("extra_tensor_info");
};

struct ExtraTensorFields : BoundTable {
  explicit ExtraTensorFields(const Schema& schema) : BoundTable(schema, "ExtraTensorInfo") {}
  BoundField mutable_data_segments_idx = field("mutable_data_segments_idx");
  BoundField fully_qualified_name = field("fully_qualified_name");
  BoundField location = field("location");
  BoundField device_type = field("device_type");
  BoundField device_index = field("device_index");
};

struct AllocationFields : BoundTable {
  explicit AllocationFields(const Schema& schema) : BoundTable(schema, "AllocationDetails") {}
  BoundField memory_id = field("memory_id");
  BoundField memory_offset_low = field("memory_offset_low");
  BoundField memory_offset_high = field("memory_offset_high");
};

struct OperatorFields : BoundTable {
  explicit OperatorFields(const Schema& schema) : BoundTable(schema, "Operator") {}
  BoundField name = field("name");
  BoundField overload = field("overload");
};

struct DelegateFields : BoundTable {
  explicit DelegateFields(const Schema& schema) : BoundTable(schema, "BackendDelegate") {}
  BoundField id = field("id");
  BoundField processed = field("processed");
  BoundField compile_specs = field("compile_specs");
};

struct CompileSpecFields : BoundTable {
  explicit CompileSpecFields(const Schema& schema) : BoundTable(schema, "CompileSpec") {}
  BoundField key = field("key");
  BoundField value = field("value");
};

struct DelegateReferenceFields : BoundTable {
  explicit DelegateReferenceFields(const Schema& schema)
      : BoundTable(schema, "BackendDelegateDataReference") {}
  BoundField location = field("location");
  BoundField index = field("index");
};

struct ChainFields : BoundTable {
  explicit ChainFields(const Schema& schema) : BoundTable(schema, "Chain") {}
  BoundField instructions = field("instructions");
  BoundField stacktrace = field("stacktrace");
};

struct InstructionFields : BoundTable {
  explicit InstructionFields(const Schema& schema) : BoundTable(schema, "Instruction") {}
  BoundField instr_args = field("instr_args");
};

struct KernelCallFields : BoundTable {
  explicit KernelCallFields(const Schema& schema) : BoundTable(schema, "KernelCall") {}
  BoundField op_index = field("op_index");
  BoundField args = field("args");
};

struct DelegateCallFields : BoundTable {
  explicit DelegateCallFields(const Schema& schema) : BoundTable(schema, "DelegateCall") {}
  BoundField delegate_index = field("delegate_index");
  BoundField args = field("args");
};

struct MoveCallFields : BoundTable {
  explicit MoveCallFields(const Schema& schema) : BoundTable(schema, "MoveCall") {}
  BoundField move_from = field("move_from");
  BoundField move_to = field("move_to");
};

struct JumpFalseCallFields : BoundTable {
  explicit JumpFalseCallFields(const Schema& schema) : BoundTable(schema, "JumpFalseCall") {}
  BoundField cond_value_index = field("cond_value_index");
  BoundField destination_instruction = field("destination_instruction");
};

struct FreeCallFields : BoundTable {
  explicit FreeCallFields(const Schema& schema) : BoundTable(schema, "FreeCall") {}
  BoundField value_index = field("value_index");
};

struct SubsegmentsFields : BoundTable {
  explicit SubsegmentsFields(const Schema& schema) : BoundTable(schema, "SubsegmentOffsets") {}
  BoundField segment_index = field("segment_index");
  BoundField offsets = field("offsets");
};

struct InlineConstantFields : BoundTable {
  explicit InlineConstantFields(const Schema& schema) : BoundTable(schema, "Buffer") {}
  BoundField storage = field("storage");
};

struct InlineDelegateFields : BoundTable {
  explicit InlineDelegateFields(const Schema& schema) : BoundTable(schema, "BackendDelegateInlineData") {}
  BoundField data = field("data");
};

/// Of a program that is described: segments have their data with them, and may say what it is aligned to.
inline constexpr std::string_view kSegmentData = "data";
inline constexpr std::string_view kSegmentAlignment = "alignment";
struct DescribedSegmentFields : DataSegmentFields {
  using DataSegmentFields::DataSegmentFields;
  BoundField data = field(kSegmentData);
  BoundField alignment = field(kSegmentAlignment);
};

/// What a value holds, as OtherInfo and kind_of() call it too.
inline constexpr std::string_view kTensorKind = "Tensor";
inline constexpr std::string_view kIntKind = "Int";
inline constexpr std::string_view kBoolKind = "Bool";
inline constexpr std::string_view kDoubleKind = "Double";
inline constexpr std::string_view kTensorListKind = "TensorList";

/// Bound to `schema`, which outlives it.
struct ProgramFields {
  const Schema& schema;
  RootFields root{schema};
  MethodFields method{schema};
  ValueFields value{schema};
  TensorFields tensor{schema};
  ExtraTensorFields extra_tensor{schema};
  AllocationFields allocation{schema};
  BoundTable null{schema, "Null"};
  OneField integer{schema, kIntKind, "int_val"};
  OneField boolean{schema, kBoolKind, "bool_val"};
  OneField number{schema, kDoubleKind, "double_val"};
  OneField string{schema, "String", "string_val"};
  OneField int_list{schema, "IntList", "items"};
  OneField double_list{schema, "DoubleList", "items"};
  OneField bool_list{schema, "BoolList", "items"};
  OneField tensor_list{schema, kTensorListKind, "items"};
  OneField optional_tensor_list{schema, "OptionalTensorList", "items"};
  OperatorFields operators{schema};
  DelegateFields delegate{schema};
  CompileSpecFields compile_spec{schema};
  DelegateReferenceFields delegate_reference{schema};
  ChainFields chain{schema};
  InstructionFields instruction{schema};
  KernelCallFields kernel_call{schema};
  DelegateCallFields delegate_call{schema};
  MoveCallFields move_call{schema};
  JumpFalseCallFields jump_false_call{schema};
  FreeCallFields free_call{schema};
  DataSegmentFields segment{schema};
  SubsegmentsFields subsegments{schema};
  NamedDataFields named_data{schema};
  InlineConstantFields inline_constant{schema};
  InlineDelegateFields inline_delegate{schema};
};

}  // namespace etstream::pte
