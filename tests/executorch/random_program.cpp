// SPDX-License-Identifier: BSD-3-Clause
#include "random_program.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "program_generated.h"

namespace etstream {

namespace p = etstream::program;

namespace {

class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed) {}

  std::string make() {
    std::vector<flatbuffers::Offset<p::ExecutionPlan>> methods;
    const std::uint32_t count = 1 + below(3);
    for (std::uint32_t i = 0; i < count; ++i) methods.push_back(method("method_" + std::to_string(i)));
    // A place for no constant, without which the runtime looks for constants in the flatbuffer.
    const std::vector<std::uint64_t> offsets = {0};
    const auto constants = p::CreateSubsegmentOffsets(builder_, 0, builder_.CreateVector(offsets));
    p::FinishProgramBuffer(
        builder_, p::CreateProgram(
                      builder_, 0, builder_.CreateVector(methods), 0, builder_.CreateVector(data_),
                      builder_.CreateVector(std::vector<flatbuffers::Offset<p::DataSegment>>{}), constants));
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  using Indices = std::vector<std::int32_t>;

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_()) % limit; }
  std::int32_t one_of(const Indices& indices) {
    return indices[below(static_cast<std::uint32_t>(indices.size()))];
  }
  Indices some_of(const Indices& indices, std::uint32_t most) {
    Indices out(below(most + 1));
    for (std::int32_t& index : out) index = one_of(indices);
    return out;
  }

  void add(p::KernelTypes type, flatbuffers::Offset<void> value, Indices& indices) {
    indices.push_back(static_cast<std::int32_t>(values_.size()));
    values_.push_back(p::CreateEValue(builder_, type, value));
  }

  void add_tensor() {
    static constexpr scalar_type::ScalarType kTypes[] = {
        scalar_type::ScalarType_BYTE, scalar_type::ScalarType_INT, scalar_type::ScalarType_LONG,
        scalar_type::ScalarType_FLOAT};
    static constexpr std::uint32_t kSizes[] = {1, 4, 8, 4};
    const std::uint32_t type = below(4);
    std::vector<std::int32_t> sizes(below(6));
    std::uint32_t bytes = kSizes[type];
    for (std::int32_t& size : sizes)
      bytes *= static_cast<std::uint32_t>(size = static_cast<std::int32_t>(below(5)));
    std::vector<std::uint8_t> order(sizes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
    flatbuffers::Offset<p::AllocationDetails> place;
    if (below(3) > 0) {
      const auto id = 1 + below(static_cast<std::uint32_t>(memories_.size()) - 1);
      const auto offset = static_cast<std::uint32_t>(memories_[id] + 15) / 16 * 16;
      memories_[id] = offset + bytes;
      place = p::CreateAllocationDetails(builder_, id, offset);
    }
    const auto dynamism =
        below(2) == 0 ? p::TensorShapeDynamism_STATIC : p::TensorShapeDynamism_DYNAMIC_BOUND;
    const auto sizes_vector = builder_.CreateVector(sizes);
    const auto order_vector = builder_.CreateVector(order);
    add(p::KernelTypes_Tensor,
        p::CreateTensor(builder_, kTypes[type], 0, sizes_vector, order_vector, false, 0, place, 0, dynamism)
            .Union(),
        tensors_);
  }

  void add_other() {
    switch (below(8)) {
      case 0:
        return add(p::KernelTypes_Null, p::CreateNull(builder_).Union(), nulls_);
      case 1:
        return add(p::KernelTypes_Double, p::CreateDouble(builder_, 0.5).Union(), others_);
      case 2:
        return add(p::KernelTypes_String,
                   p::CreateString(builder_, builder_.CreateString(std::string(below(40), 's'))).Union(),
                   others_);
      case 3: {
        std::vector<std::int64_t> items;
        for (const std::int32_t index : some_of(integers_, 5)) items.push_back(index);
        return add(p::KernelTypes_IntList, p::CreateIntList(builder_, builder_.CreateVector(items)).Union(),
                   others_);
      }
      case 4:
        return add(p::KernelTypes_BoolList,
                   p::CreateBoolList(builder_, builder_.CreateVector(std::vector<std::uint8_t>(below(5), 1)))
                       .Union(),
                   others_);
      case 5:
        return add(
            p::KernelTypes_DoubleList,
            p::CreateDoubleList(builder_, builder_.CreateVector(std::vector<double>(below(5), 1))).Union(),
            others_);
      case 6:
        return add(p::KernelTypes_TensorList,
                   p::CreateTensorList(builder_, builder_.CreateVector(some_of(tensors_, 5))).Union(),
                   others_);
      default: {
        Indices items = some_of(tensors_, 5);
        for (std::int32_t& item : items) {
          if (below(3) == 0) item = below(2) == 0 ? -1 : nulls_.front();
        }
        return add(p::KernelTypes_OptionalTensorList,
                   p::CreateOptionalTensorList(builder_, builder_.CreateVector(items)).Union(), others_);
      }
    }
  }

  /// Returns a stream for Ethos-U whose delegate takes up to 4 KiB of scratch.
  std::string stream() {
    const auto block = [](std::string name, const std::string& content) {
      name.resize(16);
      const auto size = static_cast<std::uint32_t>(content.size());
      name.append(reinterpret_cast<const char*>(&size), sizeof size).append(12, '\0').append(content);
      return name + std::string((16 - content.size() % 16) % 16, '\0');
    };
    const std::uint32_t scratch = below(4096);
    return block("vela_bin_stream", "") + block("cmd_data", "COP1" + std::string(below(100), 'c')) +
           block("scratch_size", {reinterpret_cast<const char*>(&scratch), sizeof scratch}) +
           block("vela_end_stream", "");
  }

  flatbuffers::Offset<p::BackendDelegate> delegate() {
    const bool is_ethos_u = below(2) == 0;
    const std::string bytes = is_ethos_u ? stream() : std::string(1 + below(100), 'd');
    builder_.ForceVectorAlignment(bytes.size(), 1, 16);
    const auto vector = builder_.CreateVector(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    data_.push_back(p::CreateBackendDelegateInlineData(builder_, vector));
    const auto reference = p::CreateBackendDelegateDataReference(
        builder_, p::DataLocation_INLINE, static_cast<std::uint32_t>(data_.size()) - 1);
    std::vector<flatbuffers::Offset<p::CompileSpec>> specs(below(4));
    for (auto& spec : specs) {
      spec = p::CreateCompileSpec(builder_, builder_.CreateString("key"),
                                  builder_.CreateVector(std::vector<std::uint8_t>{1, 2}));
    }
    const auto id = builder_.CreateString(is_ethos_u ? "EthosUBackend" : "SomeBackend");
    // Nor has each delegate a list of specs.
    if (below(4) == 0) return p::CreateBackendDelegate(builder_, id, reference);
    return p::CreateBackendDelegate(builder_, id, reference, builder_.CreateVector(specs));
  }

  Indices any_values(std::uint32_t most) {
    Indices out(below(most + 1));
    for (std::int32_t& index : out)
      index = static_cast<std::int32_t>(below(static_cast<std::uint32_t>(values_.size())));
    return out;
  }

  flatbuffers::Offset<p::Instruction> instruction() {
    switch (below(6)) {
      case 0:
        return of(p::InstructionArguments_MoveCall,
                  p::CreateMoveCall(builder_, one_of(integers_), one_of(integers_)).Union());
      case 1:
        return of(p::InstructionArguments_JumpFalseCall, p::CreateJumpFalseCall(builder_, truth_, 0).Union());
      case 2:
        return of(p::InstructionArguments_FreeCall, p::CreateFreeCall(builder_, one_of(tensors_)).Union());
      default:
        return of(p::InstructionArguments_KernelCall,
                  p::CreateKernelCall(builder_, static_cast<std::int32_t>(below(kOperators)),
                                      builder_.CreateVector(any_values(9)))
                      .Union());
    }
  }
  flatbuffers::Offset<p::Instruction> of(p::InstructionArguments type, flatbuffers::Offset<void> call) {
    return p::CreateInstruction(builder_, type, call);
  }

  flatbuffers::Offset<p::ExecutionPlan> method(const std::string& name) {
    values_.clear();
    for (Indices* indices : {&tensors_, &integers_, &nulls_, &others_}) indices->clear();
    memories_.assign(2 + below(3), 0);
    add_tensor();
    add(p::KernelTypes_Int, p::CreateInt(builder_, 1).Union(), integers_);
    add(p::KernelTypes_Null, p::CreateNull(builder_).Union(), nulls_);
    Indices truths;
    add(p::KernelTypes_Bool, p::CreateBool(builder_, true).Union(), truths);
    truth_ = truths.front();
    for (std::uint32_t i = below(12); i > 0; --i) below(2) == 0 ? add_tensor() : add_other();

    std::vector<flatbuffers::Offset<p::BackendDelegate>> delegates(below(4));
    for (auto& each : delegates) each = delegate();
    std::vector<flatbuffers::Offset<p::Chain>> chains(1 + below(3));
    for (std::size_t i = 0; i < chains.size(); ++i) {
      std::vector<flatbuffers::Offset<p::Instruction>> instructions(below(6));
      for (auto& each : instructions) each = instruction();
      for (std::size_t j = 0; i == 0 && j < delegates.size(); ++j) {
        instructions.push_back(of(p::InstructionArguments_DelegateCall,
                                  p::CreateDelegateCall(builder_, static_cast<std::int32_t>(j),
                                                        builder_.CreateVector(any_values(5)))
                                      .Union()));
      }
      chains[i] = p::CreateChain(builder_, 0, 0, builder_.CreateVector(instructions));
    }
    std::vector<flatbuffers::Offset<p::Operator>> operators;
    for (std::uint32_t i = 0; i < kOperators; ++i) {
      const auto overload = i % 2 == 0 ? "out" : "";
      operators.push_back(p::CreateOperator(builder_, builder_.CreateString("test::op" + std::to_string(i)),
                                            builder_.CreateString(overload)));
    }
    // The planner may ask for more than tensors reach.
    for (std::size_t id = 1; id < memories_.size(); ++id) memories_[id] += below(2) * 16;
    return p::CreateExecutionPlan(builder_, builder_.CreateString(name), 0, builder_.CreateVector(values_),
                                  builder_.CreateVector(some_of(tensors_, 3)),
                                  builder_.CreateVector(some_of(tensors_, 3)), builder_.CreateVector(chains),
                                  builder_.CreateVector(operators), builder_.CreateVector(delegates),
                                  builder_.CreateVector(memories_));
  }

  static constexpr std::uint32_t kOperators = 6;

  std::mt19937 random_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<p::BackendDelegateInlineData>> data_;
  // The method that is being made: its values, their indices by kind, and the sizes of its memories.
  std::vector<flatbuffers::Offset<p::EValue>> values_;
  Indices tensors_;
  Indices integers_;
  Indices nulls_;
  Indices others_;
  std::int32_t truth_ = 0;
  std::vector<std::int64_t> memories_;
};

}  // namespace

std::string random_program(std::uint32_t seed) { return RandomProgram(seed).make(); }

}  // namespace etstream
