// SPDX-License-Identifier: BSD-3-Clause
//
// Weights shared by programs that are made by hand: their places, their keys, and the data that stays.
#include "etstream/program_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "etstream/program.h"
#include "etstream/program_weights.h"
#include "etstream/tensor_data.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::shared_weights_test {
namespace {

struct Constant {
  std::string name;
  char fill = 'a';  // each of its bytes
  std::vector<std::int32_t> sizes = {200};
  bool is_external = false;
};

struct Named {
  std::string key;
  char fill = 'a';
};

struct Parts {
  std::vector<Constant> constants = {};
  std::vector<Named> named_data = {};
  std::string delegate = {};  // its data
};

std::string bytes_of(const Constant& constant) {
  std::size_t count = 1;
  for (const std::int32_t size : constant.sizes) count *= static_cast<std::size_t>(size);
  return std::string(4 * count, constant.fill);
}

ByteSource source_of_text(const std::string& bytes) { return file_of(bytes); }

std::unique_ptr<program::EValueT> value_of(const Constant& constant, std::uint32_t buffer) {
  auto value = std::make_unique<program::EValueT>();
  program::TensorT tensor;
  tensor.scalar_type = scalar_type::ScalarType_FLOAT;
  tensor.sizes = constant.sizes;
  for (std::size_t i = 0; i < constant.sizes.size(); ++i)
    tensor.dim_order.push_back(static_cast<std::uint8_t>(i));
  tensor.data_buffer_idx = buffer;
  if (!constant.name.empty()) {
    tensor.extra_tensor_info = std::make_unique<program::ExtraTensorInfoT>();
    tensor.extra_tensor_info->fully_qualified_name = constant.name;
    if (constant.is_external) {
      tensor.extra_tensor_info->location = program::TensorDataLocation_EXTERNAL;
    }
  }
  value->val.Set(std::move(tensor));
  return value;
}

/// Makes a method that returns its input, a number, whatever its constants are.
std::unique_ptr<program::ExecutionPlanT> identity() {
  auto method = std::make_unique<program::ExecutionPlanT>();
  method->name = "forward";
  method->container_meta_type = std::make_unique<program::ContainerMetadataT>();
  method->values.push_back(std::make_unique<program::EValueT>());
  method->values[0]->val.Set(program::IntT());
  method->inputs = method->outputs = {0};
  method->non_const_buffer_sizes = {0};
  auto instruction = std::make_unique<program::InstructionT>();
  instruction->instr_args.Set(program::MoveCallT());
  method->chains.push_back(std::make_unique<program::ChainT>());
  method->chains[0]->instructions.push_back(std::move(instruction));
  return method;
}

/// Returns a program of one method.
std::string made(const Parts& parts) {
  program::ProgramT object;
  ProgramDescription description;
  auto method = identity();
  object.constant_buffer.push_back(std::make_unique<program::BufferT>());
  description.constants.emplace_back();
  for (const Constant& constant : parts.constants) {
    const auto buffer = static_cast<std::uint32_t>(object.constant_buffer.size());
    method->values.push_back(value_of(constant, constant.is_external ? 0 : buffer));
    if (constant.is_external) continue;
    object.constant_buffer.push_back(std::make_unique<program::BufferT>());
    description.constants.push_back(source_of_text(bytes_of(constant)));
  }
  for (const Named& named : parts.named_data) {
    auto table = std::make_unique<program::NamedDataT>();
    table->key = named.key;
    table->segment_index = static_cast<std::uint32_t>(object.segments.size());
    object.named_data.push_back(std::move(table));
    object.segments.push_back(std::make_unique<program::DataSegmentT>());
    description.segments.push_back({source_of_text(std::string(800, named.fill))});
  }
  if (!parts.delegate.empty()) {
    auto delegate = std::make_unique<program::BackendDelegateT>();
    delegate->id = "OtherBackend";
    delegate->processed = std::make_unique<program::BackendDelegateDataReferenceT>();
    method->delegates.push_back(std::move(delegate));
    object.backend_delegate_data.push_back(std::make_unique<program::BackendDelegateInlineDataT>());
    description.delegate_data.push_back(source_of_text(parts.delegate));
  }
  object.execution_plan.push_back(std::move(method));
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  description.metadata = source_of_text(finished(builder));
  const auto planned = plan(description);
  REQUIRE_MESSAGE(planned, planned.error().message);
  return written(*planned);
}

/// The result of sharing the weights of programs, each made of its parts.
class Shared {
 public:
  explicit Shared(const std::vector<Parts>& all, std::uint64_t least_size = kDefaultLeastShared) {
    SharedWeights description{.programs = {}, .least_size = least_size};
    for (const Parts& parts : all) {
      const std::string bytes = made(parts);
      CHECK(lines_of(findings_of(bytes).errors) == "");
      auto opened = ProgramFile::open(file_of(bytes));
      REQUIRE_MESSAGE(opened, opened.error().message);
      description.programs.push_back(&before_.emplace_back(std::move(opened).value()));
    }
    auto planned = etstream::plan(description);
    REQUIRE_MESSAGE(planned, planned.error().message);
    plan = std::move(planned).value();
    if (!plan.weights) return;
    auto opened = TensorDataFile::open(file_of(written(*plan.weights)));
    REQUIRE_MESSAGE(opened, opened.error().message);
    weights_.emplace(std::move(opened).value());
    check_same_data();
  }

  /// Returns the first byte of the data by key.
  [[nodiscard]] std::map<std::string, char> fills() const {
    std::map<std::string, char> out;
    for (const NamedTensorData& entry : entries()) out[entry.key] = first_byte(entry.data);
    return out;
  }

  [[nodiscard]] std::vector<NamedTensorData> entries() const { return weights_->entries().value(); }

  /// Returns the names of a program's tensors, as it asks for them, a line each.
  [[nodiscard]] std::string names(std::size_t program) const {
    std::string out;
    const ProgramFile after = opened_after(program);
    const ProgramGraph graph = ProgramGraph::read(after, 0).value();
    for (const GraphValue& value : graph.values) {
      if (value.storage != TensorStorage::kNone) out += value.name + "\n";
    }
    return out;
  }

  [[nodiscard]] ProgramFile opened_after(std::size_t program) const {
    auto opened = ProgramFile::open(file_of(written(plan.programs[program])));
    REQUIRE_MESSAGE(opened, opened.error().message);
    return std::move(opened).value();
  }

  /// Returns "0 constant 'w': no other program has it", a line each.
  [[nodiscard]] std::string kept() const {
    std::string out;
    for (const ProgramData& data : plan.data) {
      for (const ProgramData::Use& use : data.uses) {
        if (!use.kept) continue;
        out += std::to_string(use.program) + " " + use.label + ": " + std::string(describe(*use.kept)) + "\n";
      }
    }
    return out;
  }

  [[nodiscard]] const TensorDataFile& weights() const { return *weights_; }

  SharedWeightsPlan plan;

 private:
  static char first_byte(const ByteSource& data) {
    std::byte byte{};
    REQUIRE(data.read_at(0, {&byte, 1}));
    return static_cast<char>(byte);
  }

  /// Checks that each program is sound, fits the weights, and that every tensor has the bytes that it had.
  void check_same_data() const {
    const auto by_key = fills();
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const ProgramFile after = opened_after(i);
      Findings findings;
      REQUIRE(after.verify(findings));
      CHECK(lines_of(findings.errors) == "");
      const auto old_values = ProgramGraph::read(before_[i], 0).value().values;
      const auto values = ProgramGraph::read(after, 0).value().values;
      REQUIRE(values.size() == old_values.size());
      bool asks_elsewhere = false;
      for (std::size_t v = 0; v < values.size(); ++v) {
        if (old_values[v].storage == TensorStorage::kNone) continue;
        if (old_values[v].storage == TensorStorage::kExternal) {
          asks_elsewhere = true;
        } else if (values[v].data.size() > 0) {
          CHECK(first_byte(values[v].data) == first_byte(old_values[v].data));
        } else {
          REQUIRE(by_key.contains(values[v].name));
          CHECK(by_key.at(values[v].name) == first_byte(old_values[v].data));
        }
      }
      if (asks_elsewhere) continue;
      const auto pair = verify(after, {&*weights_});
      REQUIRE(pair);
      CHECK(lines_of(pair->errors) == "");
    }
  }

  std::deque<ProgramFile> before_;
  std::optional<TensorDataFile> weights_;
};

using Fills = std::map<std::string, char>;

TEST_CASE("a constant of no name goes by the key of equal named data, or by its SHA-256") {
  const Shared shared({{.constants = {{"", 'x'}, {"", 'y'}}},
                       {.constants = {{"", 'y'}}, .named_data = {{"key", 'x'}, {"other", 'z'}}}});
  const auto entries = shared.entries();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].key == "key");
  CHECK(entries[0].layout.has_value());
  CHECK(entries[1].key.size() == 64);
  CHECK(shared.names(0) == "key\n" + entries[1].key + "\n");
  CHECK(shared.names(1) == entries[1].key + "\n");
  CHECK(shared.kept() == "1 named data 'other': no other program has it\n");
}

TEST_CASE("tensors of several layouts get a key each, as the file says of what layout the data is") {
  const Shared shared({{.constants = {{"w", 'x', {200}}}},
                       {.constants = {{"w", 'x', {10, 20}}}},
                       {.constants = {{"", 'x', {10, 20}}}}});
  CHECK(shared.fills() == Fills{{"w", 'x'}, {"w:float32[10, 20]", 'x'}});
  CHECK(shared.names(2) == "w:float32[10, 20]\n");
}

TEST_CASE("what delegates ask for by one key and what differs stays where it is") {
  const Shared shared({{.constants = {{"k", 'z'}}, .named_data = {{"k", 'x'}, {"same", 'v'}}},
                       {.constants = {{"k", 'z'}}, .named_data = {{"k", 'x'}}},
                       {.named_data = {{"k", 'y'}, {"same", 'v'}}}});
  // Tensors look only in the tensor data, but delegates would find their key there first.
  CHECK(shared.fills() == Fills{{"k:float32[200]", 'z'}, {"same", 'v'}});
  const std::string reason = "its key stands for other data in another program\n";
  CHECK(shared.kept() == "0 named data 'k': " + reason + "1 named data 'k': " + reason +
                             "2 named data 'k': no other program has it\n");
}

TEST_CASE("data that one program alone can do without stays in all") {
  const Shared shared(
      {{.constants = {{"w", 'x'}}}, {.named_data = {{"k", 'x'}}}, {.named_data = {{"k", 'y'}}}});
  CHECK_FALSE(shared.plan.weights);
  const std::string reason = "its key stands for other data in another program\n";
  CHECK(shared.kept() == "0 constant 'w': " + reason + "1 named data 'k': " + reason +
                             "2 named data 'k': no other program has it\n");
}

TEST_CASE("a key that a program asks another file for is not given away") {
  const Shared shared(
      {{.constants = {{"w", 'x', {200}, true}}}, {.constants = {{"w", 'x'}}}, {.constants = {{"w", 'x'}}}});
  CHECK(shared.fills() == Fills{{"w:float32[200]", 'x'}});
  CHECK(shared.names(0) == "w\n");
}

TEST_CASE("delegates, and what is small, stay; equal ones are told") {
  const Shared shared({{.constants = {{"w", 'x', {4}}}, .delegate = std::string(900, 'd')},
                       {.constants = {{"w", 'x', {4}}}, .delegate = std::string(900, 'd')}});
  CHECK_FALSE(shared.plan.weights);
  CHECK((written(shared.plan.programs[0]) ==
         made({.constants = {{"w", 'x', {4}}}, .delegate = std::string(900, 'd')})));
  CHECK(shared.plan.size() == shared.plan.programs[0].size + shared.plan.programs[1].size);
  CHECK(shared.plan.data.size() == 2);
  CHECK(shared.kept() ==
        "0 constant 'w': it is too small to gain by it\n"
        "1 constant 'w': it is too small to gain by it\n"
        "0 delegate OtherBackend: ExecuTorch loads a delegate from its program alone\n"
        "1 delegate OtherBackend: ExecuTorch loads a delegate from its program alone\n");
  const Shared all({{.constants = {{"w", 'x', {4}}}}, {.constants = {{"w", 'x', {4}}}}}, 16);
  CHECK(all.fills() == Fills{{"w", 'x'}});
}

TEST_CASE("an initial state stays in its program") {
  const made::Program parts{
      .constants = {
          {std::string(800, 'w'), {200}, "w"},
          {std::string(800, 's'), {200}, "state", ScalarType::kFloat32, made::Place::kInitialState}}};
  const auto a = ProgramFile::open(file_of(made::file(parts)));
  const auto b = ProgramFile::open(file_of(made::file({.constants = {parts.constants[0]}})));
  REQUIRE(a);
  REQUIRE(b);
  const auto planned = plan(SharedWeights{.programs = {&*a, &*b}});
  REQUIRE_MESSAGE(planned, planned.error().message);
  const auto is_state = [](const ProgramData& data) {
    return data.uses.front().label == "initial state 'state'";
  };
  REQUIRE(std::ranges::count_if(planned->data, is_state) == 1);
  const ProgramData& data = *std::ranges::find_if(planned->data, is_state);
  CHECK(data.uses.size() == 1);
  CHECK(data.uses.front().kept == KeptBecause::kInitialState);
  CHECK(data.size == 800);
}

TEST_CASE("one program shares nothing, and nothing is too small to be shared") {
  CHECK(error_of(plan(SharedWeights())) ==
        "kInvalidArgument: weights are shared by two programs or more, found 0");
  const auto program = ProgramFile::open(file_of(made({.constants = {{"w", 'x'}}})));
  CHECK(error_of(plan(SharedWeights{.programs = {&*program}})) == containing("found 1"));
  CHECK(error_of(plan(SharedWeights{.programs = {&*program, &*program}, .least_size = 0})) ==
        containing("a least size of 1 byte or more"));
}

}  // namespace
}  // namespace etstream::shared_weights_test
