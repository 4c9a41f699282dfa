// SPDX-License-Identifier: BSD-3-Clause
//
// Programs with weights that are made by hand, and the tensors that they are made of.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/tensor.h"
#include "etstream/tensor_data.h"
#include "file_bytes.h"
#include "program_generated.h"
#include "seeded_random.h"

namespace etstream::made {

/// Returns numbers from -1 to 1 that a seed tells apart.
inline std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  testing::SeededRandom random(seed);
  std::vector<float> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(static_cast<int>(random.below(1 << 20)) - (1 << 19)) / (1 << 19));
  }
  return out;
}

template <class Number>
std::string bytes_of_numbers(const std::vector<Number>& numbers) {
  return text_of(std::as_bytes(std::span(numbers)));
}

/// Returns the bytes of numbers() as float32.
inline std::string floats(std::size_t count, std::uint64_t seed) {
  return bytes_of_numbers(numbers(count, seed));
}

inline TensorLayout layout_of(ScalarType type, std::vector<std::int32_t> sizes) {
  TensorLayout out{type, std::move(sizes), {}};
  for (std::size_t i = 0; i < out.sizes.size(); ++i) out.dim_order.push_back(static_cast<std::uint8_t>(i));
  return out;
}

inline CheckpointTensor tensor(const std::string& name, std::vector<std::int32_t> sizes,
                               const std::string& bytes, ScalarType type = ScalarType::kFloat32) {
  return {name, std::string(name_of(type)), layout_of(type, std::move(sizes)), source_of(bytes)};
}

enum class Place { kConstant, kInitialState, kExternal };

/// A tensor of a method, whose values are in the program or, by its name, in a file.
struct Constant {
  std::string bytes;
  std::vector<std::int32_t> sizes;
  std::string name = {};
  ScalarType type = ScalarType::kFloat32;
  Place place = Place::kConstant;
};

/// A program of one method, which returns its input.
struct Program {
  std::vector<Constant> constants = {};
  std::vector<std::pair<std::string, std::string>> named_data = {};  // keys and bytes
  std::vector<std::pair<std::string, std::string>> delegates = {};   // backends and their data
};

inline void add_tensor(program::ExecutionPlanT& method, const Constant& constant, std::uint32_t buffer) {
  program::TensorT tensor;
  tensor.scalar_type = static_cast<scalar_type::ScalarType>(constant.type);
  tensor.sizes = constant.sizes;
  tensor.dim_order = layout_of(constant.type, constant.sizes).dim_order;
  tensor.data_buffer_idx = buffer;
  if (!constant.name.empty() || constant.place != Place::kConstant) {
    tensor.extra_tensor_info = std::make_unique<program::ExtraTensorInfoT>();
    tensor.extra_tensor_info->fully_qualified_name = constant.name;
    if (constant.place == Place::kExternal) {
      tensor.extra_tensor_info->location = program::TensorDataLocation_EXTERNAL;
    }
  }
  if (constant.place == Place::kInitialState) {
    tensor.allocation_info = std::make_unique<program::AllocationDetailsT>();
    tensor.allocation_info->memory_id = 1;
  }
  method.values.push_back(std::make_unique<program::EValueT>());
  method.values.back()->val.Set(std::move(tensor));
}

inline std::unique_ptr<program::ExecutionPlanT> identity() {
  auto method = std::make_unique<program::ExecutionPlanT>();
  method->name = "forward";
  method->container_meta_type = std::make_unique<program::ContainerMetadataT>();
  method->values.push_back(std::make_unique<program::EValueT>());
  method->values[0]->val.Set(program::IntT());
  method->inputs = method->outputs = {0};
  method->non_const_buffer_sizes = {0, 1 << 20};
  auto instruction = std::make_unique<program::InstructionT>();
  instruction->instr_args.Set(program::MoveCallT());
  method->chains.push_back(std::make_unique<program::ChainT>());
  method->chains[0]->instructions.push_back(std::move(instruction));
  return method;
}

/// Returns the file of a program. At most one constant is an initial state.
inline std::string file(const Program& made) {
  program::ProgramT object;
  ProgramDescription description;
  auto method = identity();
  object.constant_buffer.push_back(std::make_unique<program::BufferT>());
  description.constants.emplace_back();
  const auto add_segment = [&](const std::string& bytes) {
    object.segments.push_back(std::make_unique<program::DataSegmentT>());
    description.segments.push_back({source_of(bytes)});
    return static_cast<std::uint32_t>(object.segments.size()) - 1;
  };
  for (const Constant& constant : made.constants) {
    if (constant.place == Place::kExternal) {
      add_tensor(*method, constant, 0);
    } else if (constant.place == Place::kInitialState) {
      add_tensor(*method, constant, 1);
      auto pieces = std::make_unique<program::SubsegmentOffsetsT>();
      pieces->segment_index = add_segment(constant.bytes);
      pieces->offsets = {0, 0};
      object.mutable_data_segments.push_back(std::move(pieces));
    } else {
      add_tensor(*method, constant, static_cast<std::uint32_t>(object.constant_buffer.size()));
      object.constant_buffer.push_back(std::make_unique<program::BufferT>());
      description.constants.push_back(source_of(constant.bytes));
    }
  }
  for (const auto& [key, bytes] : made.named_data) {
    auto named = std::make_unique<program::NamedDataT>();
    named->key = key;
    named->segment_index = add_segment(bytes);
    object.named_data.push_back(std::move(named));
  }
  for (const auto& [backend, bytes] : made.delegates) {
    auto delegate = std::make_unique<program::BackendDelegateT>();
    delegate->id = backend;
    delegate->processed = std::make_unique<program::BackendDelegateDataReferenceT>();
    delegate->processed->index = static_cast<std::uint32_t>(object.backend_delegate_data.size());
    method->delegates.push_back(std::move(delegate));
    object.backend_delegate_data.push_back(std::make_unique<program::BackendDelegateInlineDataT>());
    description.delegate_data.push_back(source_of(bytes));
  }
  object.execution_plan.push_back(std::move(method));
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  description.metadata = source_of(finished(builder));
  const auto planned = plan(description);
  REQUIRE_MESSAGE(planned, full_message(planned.error()));
  return written(*planned);
}

inline ProgramFile opened(const std::string& bytes) {
  auto program = ProgramFile::open(file_of(bytes));
  REQUIRE_MESSAGE(program, full_message(program.error()));
  return std::move(program).value();
}

/// Returns a file of tensor data with these tensors; those without sizes have no layout.
inline std::string tensor_data(const std::vector<Constant>& tensors) {
  TensorData data;
  for (const Constant& each : tensors) {
    TensorData::Entry entry{each.name, static_cast<std::uint32_t>(data.buffers.size())};
    if (!each.sizes.empty()) entry.layout = layout_of(each.type, each.sizes);
    data.entries.push_back(std::move(entry));
    data.buffers.push_back({source_of(each.bytes)});
  }
  const auto planned = plan(data);
  REQUIRE_MESSAGE(planned, full_message(planned.error()));
  return written(*planned);
}

inline TensorDataFile opened_data(const std::string& bytes) {
  auto data = TensorDataFile::open(file_of(bytes));
  REQUIRE_MESSAGE(data, full_message(data.error()));
  return std::move(data).value();
}

}  // namespace etstream::made
