// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/inspect.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "etstream/bundled_program.h"
#include "etstream/file_kind.h"
#include "files/pieces.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

/// The size and the alignment of a struct.
struct StructLayout {
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
};

/// The structs of a target that ExecuTorch's runtime allocates when it loads a method, by the names that the
/// runtime has for them. Their sizes were compiled from ExecuTorch's headers (runtime/core, runtime/executor,
/// runtime/kernel, runtime/backend) of 1.1.0, 1.2.0, 1.3.1, 1.4.1 and 1.5, with the same result, by GCC 12
/// for x86-64 and by GCC 12.2 for a Cortex-M55 with newlib. In 1.0.1 a value has 32 and 24 bytes and holds
/// its list; a delegate has 48 and 24 bytes, and an external constant 40 and 20.
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

constexpr StructLayout kFlag{1, 1};      // bool
constexpr StructLayout kInt64{8, 8};     // std::int64_t
constexpr StructLayout kSize{4, 4};      // SizesType and StridesType
constexpr StructLayout kDimOrder{1, 1};  // DimOrderType

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

/// The most that a sum may be, which says that it went beyond.
constexpr std::uint64_t kTooMuch = ~std::uint64_t{0};

/// Returns the sum, or kTooMuch.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return checked_add(a, b).value_or(kTooMuch); }

/// The method allocator of one kind of target, which only counts, as MemoryAllocator::allocate() does
/// (runtime/core/memory_allocator.h).
class MethodAllocator {
 public:
  MethodAllocator(const RuntimeStructs& structs, AllocatorBudget& budget)
      : structs_(&structs), budget_(&budget) {}

  using Part = std::uint64_t AllocatorBudget::*;
  /// Allocates a list, with the padding before it.
  void take(Part part, const StructLayout& item, std::uint64_t count) {
    const std::uint64_t size = checked_multiply(item.size, count).value_or(kTooMuch);
    const std::uint64_t end = sum(sum(used_, padding_to(used_, item.alignment)), size);
    budget_->*part = sum(budget_->*part, end - std::exchange(used_, end));
  }
  void take(Part part, StructLayout RuntimeStructs::*item, std::uint64_t count) {
    take(part, structs_->*item, count);
  }
  /// Notes the temp allocator with which the runtime finds a kernel for this number of arguments
  /// (Method::resolve_operator).
  void find_kernel(std::uint64_t args) {
    const std::uint64_t each = structs_->merged_data_map.size + kDimOrder.size * kMostDimensions;
    budget_->load_temp = std::max(budget_->load_temp, each * args);
  }
  [[nodiscard]] bool is_over() const noexcept { return used_ == kTooMuch; }

 private:
  const RuntimeStructs* structs_;
  AllocatorBudget* budget_;
  std::uint64_t used_ = 0;
};

/// Allocates what Method::init() does, in its order.
class MethodReader {
 public:
  MethodReader(const pte::Program& program, const pte::Method& method, bool has_tensor_data,
               FileBudget& payloads, MethodBudget& budget)
      : program_(program),
        known_(program.fields()),
        method_(method),
        has_tensor_data_(has_tensor_data),
        payloads_(payloads),
        budget_(budget),
        allocators_{MethodAllocator(kStructs64, budget.bits_64),
                    MethodAllocator(kStructs32, budget.bits_32)} {}

  Result<void> read() {
    ETSTREAM_ASSIGN(budget_.name, method_.name());
    ETSTREAM_TRY(read_planned());
    ETSTREAM_TRY(read_values());
    ETSTREAM_TRY(read_delegates());
    ETSTREAM_TRY(read_chains());
    const auto& fields = known_.execution_plan;
    ETSTREAM_TRY(read_ends(fields.inputs, budget_.inputs));
    ETSTREAM_TRY(read_ends(fields.outputs, budget_.outputs));
    const bool is_over = std::ranges::any_of(allocators_, &MethodAllocator::is_over) ||
                         budget_.inputs.size == kTooMuch || budget_.outputs.size == kTooMuch;
    if (!is_over) return {};
    Error error =
        method_.corrupt(text("a method {} that needs under 2^64 bytes", quote(budget_.name)), "more");
    error.code = ErrorCode::kTooLarge;
    return error;
  }

 private:
  using Part = MethodAllocator::Part;

  void take(Part part, auto item, std::uint64_t count) {
    for (MethodAllocator& allocator : allocators_) allocator.take(part, item, count);
  }

  Result<void> read_planned() {
    ETSTREAM_ASSIGN(memory_sizes_, method_.memory_sizes());
    // There is no id 0, but a place for its size.
    for (std::uint32_t id = 1; id < memory_sizes_.size(); ++id) {
      ETSTREAM_ASSIGN(const std::int64_t size, memory_sizes_.at(id));
      if (size < 0) {
        return method_.corrupt(text("a size of memory {} from 0 on", id), std::to_string(size));
      }
      budget_.planned.push_back({id, static_cast<std::uint64_t>(size)});
    }
    return {};
  }

  Result<void> read_values() {
    ETSTREAM_ASSIGN(const auto values, method_.values());
    ETSTREAM_ASSIGN(const auto inputs, method_.numbers<std::int32_t>(known_.execution_plan.inputs));
    take(&AllocatorBudget::values, &RuntimeStructs::evalue, values.size());
    take(&AllocatorBudget::values, kFlag, inputs.size());
    std::uint64_t external = 0;
    ETSTREAM_TRY(for_each_held([&](const pte::Held& held) -> Result<void> {
      if (held.kind() != pte::ValueKind::kTensor) return {};
      ETSTREAM_ASSIGN(const pte::Storage storage, held.tensor().storage());
      if (storage.kind == TensorStorage::kExternal && !storage.is_planned) ++external;
      return {};
    }));
    if (external > 0) take(&AllocatorBudget::values, &RuntimeStructs::named_data, external);
    return for_each_held([&](const pte::Held& held) { return read_held(held); });
  }

  Result<void> for_each_held(const auto& visit) {
    return for_each(method_.values(), [&](const pte::Value& value) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, value.held());
      return held ? visit(*held) : Result<void>();
    });
  }

  Result<void> read_held(const pte::Held& held) {
    constexpr Part kLists = &AllocatorBudget::lists;
    const pte::ValueKind kind = held.kind();
    if (kind == pte::ValueKind::kTensor) return read_tensor(held.tensor());
    if (kind == pte::ValueKind::kString || kind == pte::ValueKind::kBoolList ||
        kind == pte::ValueKind::kDoubleList) {
      take(kLists, &RuntimeStructs::array_ref, 1);  // the items stay in the file
      return {};
    }
    if (held.items() == nullptr) return {};
    ETSTREAM_ASSIGN(const auto vector, held.vector(*held.items()));
    const std::uint64_t count = vector ? vector->count : 0;
    take(kLists, &RuntimeStructs::pointer, count);
    if (kind == pte::ValueKind::kIntList) take(kLists, kInt64, count);
    if (kind == pte::ValueKind::kTensorList) take(kLists, &RuntimeStructs::pointer, count);
    if (kind == pte::ValueKind::kOptionalTensorList) take(kLists, &RuntimeStructs::array_ref, count);
    take(kLists, &RuntimeStructs::boxed_list, 1);
    return {};
  }

  Result<void> read_tensor(const pte::Tensor& tensor) {
    ETSTREAM_ASSIGN(const std::uint32_t rank, rank_of(tensor));
    ETSTREAM_ASSIGN(const auto dynamism, tensor.scalar<ShapeDynamism>(known_.tensor.shape_dynamism));
    if (dynamism != ShapeDynamism::kStatic) {
      take(&AllocatorBudget::tensors, kSize, rank);
      take(&AllocatorBudget::tensors, kDimOrder, rank);
    }
    take(&AllocatorBudget::tensors, kSize, rank);
    take(&AllocatorBudget::tensors, &RuntimeStructs::tensor_impl, 1);
    ETSTREAM_ASSIGN(const auto allocation, tensor.allocation());
    if (!allocation) return {};
    ETSTREAM_ASSIGN(const std::uint64_t size, size_of(tensor));
    ETSTREAM_TRY(allocation->check(size, memory_sizes_));
    ETSTREAM_ASSIGN(const std::uint32_t id, allocation->memory_id());
    ETSTREAM_ASSIGN(const std::uint64_t offset, allocation->memory_offset());
    std::uint64_t& used = budget_.planned[id - 1].used;
    used = std::max(used, offset + size);
    return {};
  }

  /// Returns the number of a tensor's dimensions. Error: kCorrupt if the runtime takes fewer.
  Result<std::uint32_t> rank_of(const pte::Tensor& tensor) const {
    ETSTREAM_ASSIGN(const auto sizes, tensor.vector(known_.tensor.sizes));
    const std::uint32_t rank = sizes ? sizes->count : 0;
    if (rank <= kMostDimensions) return rank;
    return tensor.corrupt(text("a tensor of at most {} dimensions", kMostDimensions), std::to_string(rank));
  }

  static Result<std::uint64_t> size_of(const pte::Tensor& tensor) {
    ETSTREAM_ASSIGN(const TensorLayout layout, tensor.layout());
    const auto size = byte_size(layout.scalar_type, layout.sizes);
    if (!size) return tensor.corrupt("a tensor of known type and size", size.error().message);
    return *size;
  }

  Result<void> read_delegates() {
    ETSTREAM_ASSIGN(const auto delegates, method_.delegates());
    take(&AllocatorBudget::delegates, &RuntimeStructs::backend_delegate, delegates.size());
    ETSTREAM_ASSIGN(const bool has_named_data, program_.root().has(known_.program.named_data));
    if (has_named_data && has_tensor_data_) {
      take(&AllocatorBudget::delegates, &RuntimeStructs::merged_data_map, 1);
    }
    return for_each(delegates, [&](const pte::Delegate& delegate) { return read_delegate(delegate); });
  }

  Result<void> read_delegate(const pte::Delegate& delegate) {
    MethodBudget::Delegate& out = budget_.delegates.emplace_back();
    ETSTREAM_ASSIGN(out.backend, delegate.backend());
    ETSTREAM_ASSIGN(const auto place, delegate.place());
    ByteSource data;
    if (place) {
      ETSTREAM_ASSIGN(data, program_.delegate_data(*place));
      out.size = data.size();
      out.in_segment = place->in_segment;
    }
    ETSTREAM_ASSIGN(const auto specs, delegate.vector(known_.backend_delegate.compile_specs));
    if (specs) take(&AllocatorBudget::delegates, &RuntimeStructs::merged_data_map, specs->count);
    if (out.backend == "XnnpackBackend") {
      out.is_known = true;
      take(&AllocatorBudget::backends, &RuntimeStructs::xnnpack_executor, 1);
    }
    return out.backend == kEthosUBackend ? read_stream(data, out) : Result<void>();
  }

  /// Reads the stream of a delegate of Ethos-U. The backend takes nothing from the method allocator: its
  /// handle is on the heap (backends/arm/runtime/EthosUBackend.cpp of 1.2 to 1.5).
  Result<void> read_stream(const ByteSource& data, MethodBudget::Delegate& out) {
    const std::string name =
        text("delegate {} of method {}", budget_.delegates.size() - 1, quote(budget_.name));
    ETSTREAM_TRY(payloads_.spend(data.size()));
    ETSTREAM_ASSIGN(const EthosUPayload stream, read_ethos_u(data, name));
    out.is_known = stream.scratch_size.has_value();
    out.ethos_u = {stream.command_size, stream.weight_size, stream.scratch_size};
    budget_.run_temp = std::max<std::uint64_t>(budget_.run_temp, stream.scratch_size.value_or(0));
    return {};
  }

  Result<void> read_chains() {
    ETSTREAM_ASSIGN(const auto chains, method_.chains());
    take(&AllocatorBudget::calls, &RuntimeStructs::chain, chains.size());
    return for_each(chains, [&](const pte::Chain& chain) -> Result<void> {
      ETSTREAM_ASSIGN(const auto instructions, chain.instructions());
      take(&AllocatorBudget::calls, &RuntimeStructs::pointer, instructions.size());
      take(&AllocatorBudget::calls, &RuntimeStructs::array_ref, instructions.size());
      return for_each(instructions, [&](const pte::Instruction& instruction) -> Result<void> {
        ETSTREAM_ASSIGN(const auto call, instruction.call());
        if (!call || !call->args()) return {};
        ETSTREAM_ASSIGN(const auto args, call->vector(*call->args()));
        const std::uint64_t count = args ? args->count : 0;
        take(&AllocatorBudget::calls, &RuntimeStructs::pointer, count);
        if (call->kind() != CallKind::kKernel) return {};
        ++budget_.kernel_calls;
        for (MethodAllocator& allocator : allocators_) allocator.find_kernel(count);
        return {};
      });
    });
  }

  Result<void> read_ends(const BoundField& field, MethodBudget::Ends& out) {
    ETSTREAM_ASSIGN(const auto values, method_.values());
    ETSTREAM_ASSIGN(const auto indices, method_.numbers<std::int32_t>(field));
    out.count = indices.size();
    return for_each(indices, [&](std::int32_t index) -> Result<void> {
      ETSTREAM_TRY(method_.check_index(field, index, values.size()));
      ETSTREAM_ASSIGN(const pte::Value value, values.at(static_cast<std::uint32_t>(index)));
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (!held || held->kind() != pte::ValueKind::kTensor) return {};
      ETSTREAM_ASSIGN(const std::uint64_t size, size_of(held->tensor()));
      ETSTREAM_ASSIGN(const pte::Storage storage, held->tensor().storage());
      out.size = sum(out.size, size);
      if (storage.kind == TensorStorage::kProvided) out.provided = sum(out.provided, size);
      return {};
    });
  }

  const pte::Program& program_;
  const program::Fields& known_;
  const pte::Method& method_;
  const bool has_tensor_data_;
  FileBudget& payloads_;
  MethodBudget& budget_;
  std::array<MethodAllocator, 2> allocators_;
  NumberList<std::int64_t> memory_sizes_;
};

/// Counts the keys whose data is to come from tensor data files, with which the program is loaded.
Result<std::uint64_t> count_external_keys(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto infos, read_named_data_info(program, "", 0, {}));
  const auto count = std::ranges::count_if(infos, [](const NamedDataInfo& info) { return !info.offset; });
  return static_cast<std::uint64_t>(count);
}

Result<void> add_program(const ProgramFile& program, MemoryBudget& out) {
  const pte::Program& model = program.model();
  out.flatbuffer_size = program.flatbuffer_size();
  ETSTREAM_ASSIGN(const auto segments, model.segments());
  ETSTREAM_ASSIGN(const auto constants, model.constants());
  if (constants) {
    ETSTREAM_ASSIGN(const auto offsets, constants->offsets());
    ETSTREAM_ASSIGN(const std::uint32_t segment, constants->segment());
    // A placeholder alone has no segment.
    if (offsets.size() > 1 && segment < segments.size()) out.constants_size = segments[segment].size;
  }
  ETSTREAM_ASSIGN(out.external_keys, count_external_keys(program));
  FileBudget payloads(model.file());
  return for_each(model.methods(), [&](const pte::Method& method) {
    return MethodReader(model, method, out.external_keys != 0, payloads, out.methods.emplace_back()).read();
  });
}

std::uint64_t tensor_bytes(const std::vector<Value>& values) {
  std::uint64_t out = 0;
  for (const Value& value : values) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor) out = sum(out, tensor->data.size());
  }
  return out;
}

Result<void> add_cases(const BundledProgramFile& bundle, MemoryBudget& out) {
  for (const BundledProgramFile::Suite& suite : bundle.suites()) {
    CaseBudget& budget = out.cases.emplace_back(CaseBudget{suite.method_name, suite.test_cases});
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle.test_case(suite, i));
      budget.inputs = std::max(budget.inputs, tensor_bytes(test_case.inputs));
      budget.expected_outputs = std::max(budget.expected_outputs, tensor_bytes(test_case.expected_outputs));
    }
  }
  return {};
}

PoolSizes largest_pools(const std::vector<MethodBudget>& methods, AllocatorBudget MethodBudget::*target) {
  PoolSizes out;
  for (const MethodBudget& method : methods) {
    const AllocatorBudget& budget = method.*target;
    out.method_allocator = std::max(out.method_allocator, budget.method_allocator());
    out.temp_allocator = std::max({out.temp_allocator, budget.load_temp, method.run_temp});
  }
  return out;
}

}  // namespace

std::vector<std::string> MethodBudget::unknown_backends() const {
  std::vector<std::string> out;
  for (const Delegate& delegate : delegates) {
    if (delegate.is_known || std::ranges::find(out, delegate.backend) != out.end()) continue;
    out.push_back(delegate.backend);
  }
  return out;
}

PoolSizes MemoryBudget::pools_64() const { return largest_pools(methods, &MethodBudget::bits_64); }
PoolSizes MemoryBudget::pools_32() const { return largest_pools(methods, &MethodBudget::bits_32); }

std::vector<std::uint64_t> MemoryBudget::planned() const {
  std::vector<std::uint64_t> out;
  for (const MethodBudget& method : methods) {
    out.resize(std::max(out.size(), method.planned.size()));
    for (std::size_t i = 0; i < method.planned.size(); ++i) out[i] = std::max(out[i], method.planned[i].size);
  }
  return out;
}

Result<MemoryBudget> read_memory_budget(const ByteSource& file) {
  return without_exceptions([&]() -> Result<MemoryBudget> {
    MemoryBudget out;
    out.file_size = file.size();
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    if (kind == FileKind::kBundledProgram || kind == FileKind::kSegmentedBundle) {
      ETSTREAM_ASSIGN(const BundledProgramFile bundle, BundledProgramFile::open(file));
      ETSTREAM_ASSIGN(const ProgramFile program, bundle.open_program());
      ETSTREAM_ASSIGN(out.file_alignment, memory_alignment(bundle, program));
      ETSTREAM_TRY(add_program(program, out));
      ETSTREAM_TRY(add_cases(bundle, out));
    } else {
      ETSTREAM_ASSIGN(const ProgramFile program, open_program(file));
      ETSTREAM_ASSIGN(out.file_alignment, memory_alignment(program));
      ETSTREAM_TRY(add_program(program, out));
    }
    return out;
  });
}

namespace {

constexpr std::uint64_t kLeast = 16;

std::uint64_t of_segments(std::span<const SegmentInfo> segments) {
  const bool has_bytes = std::ranges::any_of(segments, [](const auto& each) { return each.size > 0; });
  return has_bytes ? observed_alignment(segments) : 1;
}

/// Returns what of an alignment counts for a file with the data at `offset`: at other multiples it would not
/// be there.
std::uint64_t at_offset(std::uint64_t offset, std::uint64_t alignment) {
  while (offset % alignment != 0) alignment /= 2;
  return alignment;
}

}  // namespace

Result<std::uint64_t> memory_alignment(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  const std::uint64_t alignment = std::max(kLeast, of_segments(segments));
  if (program.model().header().length == 0) return alignment;
  ETSTREAM_ASSIGN(const std::uint64_t header, program.model().header_alignment());
  return header > ExtendedHeader::kSize ? std::max(alignment, header) : alignment;
}

Result<std::uint64_t> memory_alignment(const BundledProgramFile& bundle, const ProgramFile& program) {
  ETSTREAM_ASSIGN(const std::uint64_t alignment, memory_alignment(program));
  return std::max(kLeast, at_offset(bundle.program_offset(), alignment));
}

Result<std::uint64_t> memory_alignment(const TensorDataFile& file) {
  ETSTREAM_ASSIGN(const auto segments, file.segments());
  return std::max(kLeast, of_segments(segments));
}

Result<std::uint64_t> memory_alignment(const FatContainerFile& container) {
  std::uint64_t out = kLeast;
  for (const FatPayload& payload : container.payloads()) {
    ETSTREAM_ASSIGN(const auto kind, kind_of(payload));
    if (!kind || *kind == FileKind::kFatContainer) continue;
    ETSTREAM_ASSIGN(const std::uint64_t alignment, memory_alignment(payload.data));
    out = std::max(out, at_offset(payload.offset, alignment));
  }
  return out;
}

Result<std::uint64_t> memory_alignment(const ByteSource& file) {
  return without_exceptions([&]() -> Result<std::uint64_t> {
    const auto opened = open_any(file);
    if (!opened && opened.error().code == ErrorCode::kUnsupported) return kLeast;
    if (!opened) return opened.error();
    const auto of_bundle = [](const BundledProgramFile& bundle) -> Result<std::uint64_t> {
      const auto program = bundle.open_program();
      return program ? memory_alignment(bundle, *program) : kLeast;
    };
    const auto of_other = [](const auto& other) -> Result<std::uint64_t> {
      if constexpr (requires { memory_alignment(other); }) return memory_alignment(other);
      return kLeast;  // the runtime does not load it
    };
    return match(*opened, of_bundle, of_other);
  });
}

}  // namespace etstream
