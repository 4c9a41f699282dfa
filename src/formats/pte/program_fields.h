// SPDX-License-Identifier: BSD-3-Clause
//
// The tables and fields of programs that the library knows, as a schema has them: the built-in one, or one
// that a user brings. No other file names them (tests/tree/check_program_names.py).
#pragma once

#include <string_view>

#include "formats/segments/shared_fields.h"

namespace etstream::pte {

/// The fields of data in the flatbuffer.
struct InlineConstantFields : FieldsOf<"Buffer"> {
  BoundField storage = field("storage");
};
struct InlineDelegateFields : FieldsOf<"BackendDelegateInlineData"> {
  BoundField data = field("data");
};

/// The fields of a described program: its segments have their data with them, and may have an alignment.
inline constexpr std::string_view kSegmentData = "data";
inline constexpr std::string_view kSegmentAlignment = "alignment";
struct DescribedSegmentFields : DataSegmentFields {
  using DataSegmentFields::DataSegmentFields;
  BoundField data = field(kSegmentData);
  BoundField alignment = field(kSegmentAlignment);
};

/// The names of the kinds of values, which OtherInfo and kind_of() use too.
inline constexpr std::string_view kTensorKind = "Tensor";
inline constexpr std::string_view kIntKind = "Int";
inline constexpr std::string_view kBoolKind = "Bool";
inline constexpr std::string_view kDoubleKind = "Double";
inline constexpr std::string_view kTensorListKind = "TensorList";

/// The fields of programs, bound to `schema`, which outlives them.
struct ProgramFields {
  const Schema& schema;
  struct : FieldsOf<"Program"> {
    BoundField version = field("version");
    BoundField execution_plan = field("execution_plan");
    BoundField constant_buffer = field("constant_buffer");
    BoundField backend_delegate_data = field("backend_delegate_data");
    BoundField segments = field("segments");
    BoundField constant_segment = field("constant_segment");
    BoundField mutable_data_segments = field("mutable_data_segments");
    BoundField named_data = field("named_data");
  } root{schema};
  struct : FieldsOf<"ExecutionPlan"> {
    BoundField name = field("name");
    BoundField values = field("values");
    BoundField inputs = field("inputs");
    BoundField outputs = field("outputs");
    BoundField chains = field("chains");
    BoundField operators = field("operators");
    BoundField delegates = field("delegates");
    BoundField non_const_buffer_sizes = field("non_const_buffer_sizes");
    BoundField non_const_buffer_device = field("non_const_buffer_device");
  } method{schema};
  struct : ShapeFields {
    BoundField shape_dynamism = field("shape_dynamism");
    BoundField data_buffer_idx = field("data_buffer_idx");
    BoundField allocation_info = field("allocation_info");
    BoundField extra_tensor_info = field("extra_tensor_info");
  } tensor{{schema, kTensorKind}};
  struct : FieldsOf<"ExtraTensorInfo"> {
    BoundField mutable_data_segments_idx = field("mutable_data_segments_idx");
    BoundField fully_qualified_name = field("fully_qualified_name");
    BoundField location = field("location");
    BoundField device_type = field("device_type");
    BoundField device_index = field("device_index");
  } extra_tensor{schema};
  struct : FieldsOf<"AllocationDetails"> {
    BoundField memory_id = field("memory_id");
    BoundField memory_offset_low = field("memory_offset_low");
    BoundField memory_offset_high = field("memory_offset_high");
  } allocation{schema};
  OneField value{schema, "EValue", "val"};
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
  struct : FieldsOf<"Operator"> {
    BoundField name = field("name");
    BoundField overload = field("overload");
  } operators{schema};
  struct : FieldsOf<"BackendDelegate"> {
    BoundField id = field("id");
    BoundField processed = field("processed");
    BoundField compile_specs = field("compile_specs");
  } delegate{schema};
  struct : FieldsOf<"CompileSpec"> {
    BoundField key = field("key");
    BoundField value = field("value");
  } compile_spec{schema};
  struct : FieldsOf<"BackendDelegateDataReference"> {
    BoundField location = field("location");
    BoundField index = field("index");
  } delegate_reference{schema};
  struct : FieldsOf<"Chain"> {
    BoundField instructions = field("instructions");
    BoundField stacktrace = field("stacktrace");
  } chain{schema};
  OneField instruction{schema, "Instruction", "instr_args"};
  struct : FieldsOf<"KernelCall"> {
    BoundField op_index = field("op_index");
    BoundField args = field("args");
  } kernel_call{schema};
  struct : FieldsOf<"DelegateCall"> {
    BoundField delegate_index = field("delegate_index");
    BoundField args = field("args");
  } delegate_call{schema};
  struct : FieldsOf<"MoveCall"> {
    BoundField move_from = field("move_from");
    BoundField move_to = field("move_to");
  } move_call{schema};
  struct : FieldsOf<"JumpFalseCall"> {
    BoundField cond_value_index = field("cond_value_index");
    BoundField destination_instruction = field("destination_instruction");
  } jump_false_call{schema};
  OneField free_call{schema, "FreeCall", "value_index"};
  DataSegmentFields segment{schema};
  struct : FieldsOf<"SubsegmentOffsets"> {
    BoundField segment_index = field("segment_index");
    BoundField offsets = field("offsets");
  } subsegments{schema};
  NamedDataFields named_data{schema};
  InlineConstantFields inline_constant{schema};
  InlineDelegateFields inline_delegate{schema};
};

}  // namespace etstream::pte
