// SPDX-License-Identifier: BSD-3-Clause
//
// Compares memory budgets with what ExecuTorch's runtime takes from pools of exactly these sizes. The
// programs are that of examples/ and, where ETSTREAM_BUDGET_PROGRAMS is set, those of the folder that it
// names; NAME.ptd has the weights that NAME.pte lacks.
#include "etstream/inspect.h"

#include <doctest/doctest.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/executorch/program_loader.h"
#include "etstream/program.h"
#include "example_bundle.h"
#include "random_program.h"
#include "seeded_random.h"
#include "test_sources.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;
using runtime::Error;

/// The size of programs that are run; portable kernels would take long for larger ones.
constexpr std::uint64_t kLargestRun = std::uint64_t{1} << 20;

/// A pool of exactly `size` bytes. An allocator of 0 bytes has to have an address, or it refuses lists of
/// none.
class Pool {
 public:
  explicit Pool(std::uint64_t size)
      : lines_(static_cast<std::size_t>(size) / sizeof(Line) + 1),
        size_(static_cast<std::size_t>(size)),
        allocator_(static_cast<std::uint32_t>(size), bytes().data()) {}
  [[nodiscard]] runtime::Span<std::uint8_t> bytes() { return {lines_.data()->bytes, size_}; }
  [[nodiscard]] runtime::MemoryAllocator& allocator() { return allocator_; }

 private:
  struct alignas(64) Line {
    std::uint8_t bytes[64] = {};
  };
  std::vector<Line> lines_;
  std::size_t size_;
  runtime::MemoryAllocator allocator_;
};

/// Stands for backends that the runtime lacks. It takes nothing while a method is loaded, and then as much
/// scratch as a stream of Ethos-U says, as EthosUBackend.cpp does.
class StandIn final : public runtime::BackendInterface {
 public:
  [[nodiscard]] bool is_available() const override { return true; }
  runtime::Result<runtime::DelegateHandle*> init(
      runtime::BackendInitContext& /*context*/, runtime::FreeableBuffer* data,
      runtime::ArrayRef<runtime::CompileSpec> /*specs*/) const override {
    return data;
  }
  Error execute(runtime::BackendExecutionContext& context, runtime::DelegateHandle* handle,
                runtime::Span<runtime::EValue*> /*args*/) const override {
    const auto& data = *static_cast<runtime::FreeableBuffer*>(handle);
    const std::string_view stream(static_cast<const char*>(data.data()), data.size());
    const auto block = stream.find("scratch_size");
    if (!stream.starts_with("vela_bin_stream") || block == std::string_view::npos) return Error::Ok;
    std::uint32_t scratch = 0;
    std::memcpy(&scratch, stream.data() + block + 32, sizeof scratch);
    return context.get_temp_allocator()->allocate(scratch, 16) ? Error::Ok : Error::MemoryAllocationFailed;
  }
};

/// Registers stand-ins for the backends and the operators that the runtime lacks. Returns their number.
std::size_t stand_in(const ProgramFile& program, const std::string& method) {
  static StandIn backend;
  static std::deque<std::string> names;
  std::size_t count = 0;
  const ProgramGraph graph = ProgramGraph::read(program, method).value();
  for (const GraphDelegate& delegate : graph.delegates) {
    if (runtime::get_backend_class(delegate.backend.c_str())) continue;
    REQUIRE(runtime::register_backend({names.emplace_back(delegate.backend).c_str(), &backend}) == Error::Ok);
    ++count;
  }
  for (const GraphCall& call : graph.calls) {
    if (call.kind != CallKind::kKernel || runtime::registry_has_op_function(graph.name_of(call).c_str()))
      continue;
    const char* name = names.emplace_back(graph.name_of(call)).c_str();
    const runtime::Kernel kernel(name,
                                 [](runtime::KernelRuntimeContext&, runtime::Span<runtime::EValue*>) {});
    REQUIRE(runtime::register_kernel(kernel) == Error::Ok);
    ++count;
  }
  return count;
}

/// Sizes of pools.
struct Sizes {
  std::uint64_t method;
  std::uint64_t temp;
  std::vector<std::uint64_t> planned;
};

/// A method in pools of its own.
struct Loaded {
  Loaded(const runtime::Program& program, const std::string& name, const Sizes& sizes,
         const runtime::NamedDataMap* data)
      : method_pool(sizes.method), temp_pool(sizes.temp) {
    for (const std::uint64_t size : sizes.planned) spans.push_back(planned.emplace_back(size).bytes());
    memory.emplace(runtime::Span<runtime::Span<std::uint8_t>>(spans.data(), spans.size()));
    manager.emplace(&method_pool.allocator(), &*memory, &temp_pool.allocator());
    method.emplace(program.load_method(name.c_str(), &*manager, nullptr, data));
  }

  /// Runs the method on zeros.
  Error run() {
    const auto meta = (*method)->method_meta();
    for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
      const auto tag = meta.input_tag(i);
      if (!tag.ok() || *tag != runtime::Tag::Tensor) {
        (void)(*method)->get_input(i);  // marks it as set
        continue;
      }
      const auto info = meta.input_tensor_meta(i);
      auto& data = inputs.emplace_back(info->nbytes());
      auto sizes = std::vector<std::int32_t>(info->sizes().begin(), info->sizes().end());
      auto order = std::vector<std::uint8_t>(info->dim_order().begin(), info->dim_order().end());
      runtime::etensor::TensorImpl impl(info->scalar_type(), static_cast<ssize_t>(sizes.size()), sizes.data(),
                                        data.bytes().data(), order.data());
      const Error error = (*method)->set_input(runtime::EValue(runtime::etensor::Tensor(&impl)), i);
      if (error != Error::Ok) return error;
    }
    return (*method)->execute();
  }

  Pool method_pool;
  Pool temp_pool;
  std::deque<Pool> planned;
  std::vector<runtime::Span<std::uint8_t>> spans;
  std::optional<runtime::HierarchicalAllocator> memory;
  std::optional<runtime::MemoryManager> manager;
  std::deque<Pool> inputs;
  std::optional<runtime::Result<runtime::Method>> method;
};

/// The number of what was compared.
struct Tally {
  std::size_t programs = 0;
  std::size_t methods = 0;
  std::size_t refused = 0;    // methods that the runtime loads in no memory
  std::size_t pools = 0;      // that were too small by a byte
  std::size_t runs = 0;       // in exactly these pools
  std::size_t more_temp = 0;  // runs whose kernels took more temporary memory
  std::size_t stand_ins = 0;
};

void check_method(const runtime::Program& program, const ProgramFile& file, const MethodBudget& budget,
                  const runtime::NamedDataMap* data, bool is_run, Tally& tally) {
  CAPTURE(budget.name);
  tally.stand_ins += stand_in(file, budget.name);
  Sizes exact{budget.bits_64.method_allocator(), std::max(budget.bits_64.load_temp, budget.run_temp), {}};
  Sizes used = exact;
  for (const MethodBudget::Planned& planned : budget.planned) {
    exact.planned.push_back(planned.size);
    used.planned.push_back(planned.used);
  }
  Sizes ample = exact;
  ample.method += 1 << 20;
  ample.temp += 1 << 20;
  {
    Loaded roomy(program, budget.name, ample, data);
    if (!roomy.method->ok() && roomy.method->error() != Error::MemoryAllocationFailed) {
      ++tally.refused;
      return;
    }
    REQUIRE(roomy.method->ok());
    CHECK(roomy.method_pool.allocator().used_size() == exact.method);
  }
  ++tally.methods;
  // Loading alone needs no more of planned memory than tensors reach.
  Sizes to_load = used;
  to_load.temp = budget.bits_64.load_temp;
  {
    Loaded loaded(program, budget.name, to_load, data);
    REQUIRE(loaded.method->ok());
    CHECK(loaded.method_pool.allocator().used_size() == exact.method);
  }
  const auto check_refused = [&](std::uint64_t& size) {
    if (size == 0) return;
    --size;
    const Loaded loaded(program, budget.name, to_load, data);
    CHECK(loaded.method->error() == Error::MemoryAllocationFailed);
    ++size;
    ++tally.pools;
  };
  check_refused(to_load.method);
  check_refused(to_load.temp);
  for (std::uint64_t& size : to_load.planned) check_refused(size);
  if (!is_run) return;
  Loaded loaded(program, budget.name, exact, data);
  REQUIRE(loaded.method->ok());
  const Error error = loaded.run();
  if (error == Error::Ok) {
    ++tally.runs;
    if (budget.run_temp <= budget.bits_64.load_temp) return;
    exact.temp = budget.run_temp - 1;
    Loaded starved(program, budget.name, exact, data);
    REQUIRE(starved.method->ok());
    CHECK(starved.run() == Error::MemoryAllocationFailed);
    ++tally.pools;
    return;
  }
  REQUIRE(budget.kernel_calls > 0);
  exact.temp = ample.temp;
  Loaded again(program, budget.name, exact, data);
  CHECK(again.run() == Error::Ok);
  ++tally.more_temp;
}

/// Checks a program with the weights in `beside`, if that file is there.
void check_program(const ByteSource& source, const std::filesystem::path& beside, Tally& tally) {
  CAPTURE(source.name());
  const MemoryBudget budget = read_memory_budget(source).value();
  const ProgramFile file = open_program(source).value();
  const auto loader = open_program_loader(source).value();
  const auto program = runtime::Program::load(loader.get());
  REQUIRE(program.ok());
  std::unique_ptr<runtime::DataLoader> weights;
  std::optional<runtime::Result<::executorch::extension::FlatTensorDataMap>> map;
  if (std::filesystem::exists(beside)) {
    weights = open_program_loader(ByteSource::file(beside.string()).value()).value();
    map.emplace(::executorch::extension::FlatTensorDataMap::load(weights.get()));
    REQUIRE(map->ok());
  }
  ++tally.programs;
  for (const MethodBudget& method : budget.methods) {
    check_method(*program, file, method, map ? &**map : nullptr, source.size() <= kLargestRun, tally);
  }
}

void check_file(const std::filesystem::path& path, Tally& tally) {
  check_program(ByteSource::file(path.string()).value(),
                std::filesystem::path(path).replace_extension(".ptd"), tally);
}

TEST_CASE("random methods take exactly their budgets, run in them, and are refused with a byte less") {
  runtime::runtime_init();
  Tally tally;
  const std::uint64_t programs = 10 * testing::rounds();
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    CAPTURE(seed);
    check_program(source_of(random_program(seed)), "", tally);
  }
  CHECK(2 * tally.methods >= 3 * programs);
  CHECK(tally.refused == 0);
  CHECK(tally.runs == tally.methods);
}

TEST_CASE("a method takes exactly its budget, runs in it, and is refused with a byte less") {
  runtime::runtime_init();
  Tally tally;
  check_file(example("model.pte"), tally);
  CHECK(tally.runs + tally.more_temp == 1);
  if (const char* folder = std::getenv("ETSTREAM_BUDGET_PROGRAMS")) {
    std::set<std::filesystem::path> programs;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".pte") programs.insert(entry.path());
    }
    for (const auto& path : programs) check_file(path, tally);
  }
  std::printf(
      "%zu programs, %zu methods, %zu refused, %zu pools too small, %zu runs, %zu with more temporary "
      "memory, "
      "%zu stand-ins\n",
      tally.programs, tally.methods, tally.refused, tally.pools, tally.runs, tally.more_temp,
      tally.stand_ins);
}

}  // namespace
}  // namespace etstream
