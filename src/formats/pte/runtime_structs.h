// SPDX-License-Identifier: BSD-3-Clause
//
// The sizes of structs that ExecuTorch's runtime allocates when it loads a method.
//
// They were compiled from ExecuTorch's headers (runtime/core, runtime/executor, runtime/kernel,
// runtime/backend) of 1.1.0, 1.2.0, 1.3.1, 1.4.1 and 1.5, with the same result, by GCC 12 for x86-64 and by
// GCC 12.2 for a Cortex-M55 with newlib. In 1.0.1 a value has 32 and 24 bytes and holds its list; a delegate
// has 48 and 24 bytes, and an external constant 40 and 20.
#pragma once

#include <cstdint>

namespace etstream::pte {

/// The size and the alignment of a struct.
struct StructLayout {
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
};

/// The structs of a target, by the names that the runtime has for them.
struct RuntimeStructs {
  StructLayout evalue;            // EValue
  StructLayout pointer;           // EValue*, OpFunction, Tensor
  StructLayout named_data;        // deserialization::NamedData, an external constant
  StructLayout boxed_list;        // BoxedEvalueList<T>
  StructLayout array_ref;         // ArrayRef<T>, InstructionArgs (Span<EValue*>), std::optional<Tensor>
  StructLayout tensor_impl;       // TensorImpl
  StructLayout backend_delegate;  // BackendDelegate
  StructLayout merged_data_map;   // internal::MergedDataMap, CompileSpec, TensorMeta
  StructLayout chain;             // Chain
  StructLayout xnnpack_executor;  // xnnpack::delegate::XNNExecutor, in a build with the event tracer
};

constexpr StructLayout kFlag{1, 1};            // bool
constexpr StructLayout kInt64{8, 8};           // std::int64_t
constexpr StructLayout kSize{4, 4};            // SizesType and StridesType
constexpr StructLayout kDimOrder{1, 1};        // DimOrderType
constexpr std::uint64_t kMostDimensions = 16;  // kTensorDimensionLimit

constexpr RuntimeStructs kStructs64{
    .evalue = {16, 8},
    .pointer = {8, 8},
    .named_data = {48, 8},
    .boxed_list = {24, 8},
    .array_ref = {16, 8},
    .tensor_impl = {64, 8},
    .backend_delegate = {56, 8},
    .merged_data_map = {24, 8},
    .chain = {32, 8},
    .xnnpack_executor = {272, 8},
};

constexpr RuntimeStructs kStructs32{
    .evalue = {16, 8},
    .pointer = {4, 4},
    .named_data = {40, 8},
    .boxed_list = {12, 4},
    .array_ref = {8, 4},
    .tensor_impl = {32, 4},
    .backend_delegate = {40, 8},
    .merged_data_map = {12, 4},
    .chain = {16, 4},
    .xnnpack_executor = {152, 8},
};

}  // namespace etstream::pte
