// SPDX-License-Identifier: BSD-3-Clause
//
// A library that runs programs on ExecuTorch's runtime. An access outside of a piece of memory ends the
// process. It is loaded by a process that has loaded ExecuTorch's kernels.
//
// It loads each program, and runs each of its methods twice, on inputs made from a seed and the program's
// number. Planned memory, inputs, outputs, the runtime's own objects and each part of the program lie in
// pages of their own with none before and behind; the seed decides which of the two ends a piece touches. It
// writes a line for each program: "ran", "refused 0x12", or the signal that ended it, with the reason that
// ExecuTorch gave. A program that ends a process ends one of its own.
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace runtime = ::executorch::runtime;
using runtime::Error;
using runtime::Result;

constexpr std::size_t kPage = 4096;
constexpr unsigned kSeconds = 5;  // for one program

/// The places of the pieces of memory of one run, and their initial content.
struct Manner {
  bool is_at_end = true;
  unsigned char content = 0;
};

/// Pages of its own for each piece. They are given back all at once, and not before.
class GuardedMemory {
 public:
  explicit GuardedMemory(Manner manner) : manner_(manner) {}
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() {
    for (const auto& [begin, size] : mapped_) munmap(begin, size);
  }

  /// Returns null if there is no memory. The end is rounded up to `alignment`.
  void* allocate(std::size_t size, std::size_t alignment) {
    if (size > std::size_t{1} << 30 || alignment > kPage) return nullptr;
    const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
    const std::size_t pages = (std::max<std::size_t>(rounded, 1) + kPage - 1) / kPage * kPage;
    auto* const begin = static_cast<unsigned char*>(
        mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (begin == MAP_FAILED) return nullptr;
    mapped_.emplace_back(begin, pages + 2 * kPage);
    if (mprotect(begin + kPage, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
    auto* const out = begin + kPage + (manner_.is_at_end ? pages - rounded : 0);
    if (manner_.content != 0) std::memset(out, manner_.content, size);
    return out;
  }

 private:
  Manner manner_;
  std::vector<std::pair<void*, std::size_t>> mapped_;
};

/// The allocator of the runtime's and the kernels' objects.
class GuardedAllocator final : public runtime::MemoryAllocator {
 public:
  explicit GuardedAllocator(GuardedMemory& memory) : MemoryAllocator(0, nullptr), memory_(memory) {}
  void* allocate(std::size_t size, std::size_t alignment) override {
    return memory_.allocate(size, std::max<std::size_t>(alignment, 1));
  }
  void reset() override {}

 private:
  GuardedMemory& memory_;
};

/// A file whose parts are loaded to a piece each.
class GuardedLoader final : public runtime::DataLoader {
 public:
  GuardedLoader(GuardedMemory& memory, std::vector<char> file) : memory_(memory), file_(std::move(file)) {}

  Result<runtime::FreeableBuffer> load(std::size_t offset, std::size_t size,
                                       const SegmentInfo&) const override {
    void* const out = memory_.allocate(size, 16);
    if (out == nullptr) return Error::MemoryAllocationFailed;
    const Error error = load_into(offset, size, {}, out);
    if (error != Error::Ok) return error;
    return runtime::FreeableBuffer(out, size, nullptr);
  }
  Error load_into(std::size_t offset, std::size_t size, const SegmentInfo&, void* out) const override {
    if (offset > file_.size() || size > file_.size() - offset) return Error::InvalidArgument;
    std::memcpy(out, file_.data() + offset, size);
    return Error::Ok;
  }
  Result<std::size_t> size() const override { return file_.size(); }

 private:
  GuardedMemory& memory_;
  std::vector<char> file_;
};

using Random = std::mt19937_64;

/// Fills a tensor with zeros (0), ones, small numbers, or any bits (3). Integers are zeros, as kernels take
/// some for indices unchecked; integers from a caller are the caller's responsibility.
void fill(runtime::Span<unsigned char> bytes, executorch::aten::ScalarType type, std::uint64_t kind,
          Random& random) {
  const std::size_t width = executorch::runtime::elementSize(type);
  std::fill(bytes.begin(), bytes.end(), 0);
  if (executorch::runtime::isIntegralType(type, false)) return;
  for (std::size_t i = 0; i + width <= bytes.size(); i += width) {
    unsigned char* const at = bytes.data() + i;
    if (kind == 3 && type != executorch::aten::ScalarType::Bool) {
      for (std::size_t byte = 0; byte < width; ++byte) at[byte] = static_cast<unsigned char>(random());
      continue;
    }
    const std::uint64_t number = kind == 2 ? random() % 4 : kind;
    if (type == executorch::aten::ScalarType::Float) {
      const auto value = static_cast<float>(number);
      std::memcpy(at, &value, sizeof(value));
    } else if (type == executorch::aten::ScalarType::Double) {
      const auto value = static_cast<double>(number);
      std::memcpy(at, &value, sizeof(value));
    } else {
      at[0] = static_cast<unsigned char>(type == executorch::aten::ScalarType::Bool ? number & 1 : number);
    }
  }
}

/// Sets the inputs. Those of the first run are zeros.
Error set_inputs(runtime::Method& method, bool is_first, GuardedMemory& memory, Random& random) {
  const auto meta = method.method_meta();
  for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
    const auto tag = meta.input_tag(i);
    if (!tag.ok() || *tag != runtime::Tag::Tensor) continue;  // the others are as they were exported
    const auto info = meta.input_tensor_meta(i);
    if (!info.ok()) return info.error();
    auto* const data = static_cast<unsigned char*>(memory.allocate(info->nbytes(), 16));
    if (data == nullptr) return Error::MemoryAllocationFailed;
    fill({data, info->nbytes()}, info->scalar_type(), is_first ? 0 : random() % 4, random);
    std::vector<executorch::aten::SizesType> sizes(info->sizes().begin(), info->sizes().end());
    std::vector<executorch::aten::DimOrderType> order(info->dim_order().begin(), info->dim_order().end());
    const auto set = [&] {
      executorch::aten::TensorImpl impl(info->scalar_type(), static_cast<ssize_t>(sizes.size()), sizes.data(),
                                        data, order.data());
      return method.set_input(runtime::EValue(executorch::aten::Tensor(&impl)), i);
    };
    // A dimension may be smaller than planned.
    if (!is_first && !sizes.empty() && random() % 3 == 0) {
      auto& size = sizes[random() % sizes.size()];
      const auto most =
          std::exchange(size, size > 0 ? static_cast<int>(random() % static_cast<unsigned>(size)) : 0);
      if (set() == Error::Ok) continue;
      size = most;
    }
    const Error error = set();
    if (error != Error::Ok) return error;
  }
  for (std::size_t i = 0; i < meta.num_outputs(); ++i) {
    const auto tag = meta.output_tag(i);
    if (!tag.ok() || *tag != runtime::Tag::Tensor) continue;
    const auto info = meta.output_tensor_meta(i);
    if (!info.ok() || info->is_memory_planned() || info->nbytes() == 0) continue;
    void* const data = memory.allocate(info->nbytes(), 16);
    if (data == nullptr) return Error::MemoryAllocationFailed;
    const Error error = method.set_output_data_ptr(data, info->nbytes(), i);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

Error run_method(const runtime::Program& program, const char* name, Manner manner, Random& random) {
  const auto meta = program.method_meta(name);
  if (!meta.ok()) return meta.error();
  GuardedMemory memory(manner);
  std::vector<runtime::Span<std::uint8_t>> planned;
  for (std::size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    const auto size = meta->memory_planned_buffer_size(i);
    if (!size.ok()) return size.error();
    auto* const data = static_cast<std::uint8_t*>(memory.allocate(static_cast<std::size_t>(*size), 16));
    if (data == nullptr) return Error::MemoryAllocationFailed;
    // ExecuTorch's own Module does this too.
    std::memset(data, 0, static_cast<std::size_t>(*size));
    planned.emplace_back(data, static_cast<std::size_t>(*size));
  }
  runtime::HierarchicalAllocator planned_memory({planned.data(), planned.size()});
  GuardedAllocator objects(memory);
  GuardedAllocator temporary(memory);
  runtime::MemoryManager manager(&objects, &planned_memory, &temporary);
  auto method = program.load_method(name, &manager);
  if (!method.ok()) return method.error();
  for (int i = 0; i < 2; ++i) {
    Error error = set_inputs(*method, i == 0, memory, random);
    if (error == Error::Ok) error = method->execute();
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

Error run_program(const std::string& path, std::uint64_t seed) {
  Random random(seed);
  const Manner manner{random() % 2 == 0, static_cast<unsigned char>(random() % 2 == 0 ? 0 : 0x7e)};
  std::ifstream file(path, std::ios::binary);
  GuardedMemory memory({manner.is_at_end, 0});
  const GuardedLoader loader(memory, {std::istreambuf_iterator<char>(file), {}});
  auto program = runtime::Program::load(&const_cast<GuardedLoader&>(loader));
  if (!program.ok()) return program.error();
  Error first = Error::Ok;
  for (std::size_t i = 0; i < program->num_methods(); ++i) {
    const auto name = program->get_method_name(i);
    if (!name.ok()) return name.error();
    const Error error = run_method(*program, *name, manner, random);
    if (first == Error::Ok) first = error;
  }
  return first;
}

/// Shared with the processes that run programs.
struct Said {
  char why[512];     // the first error, or what is fatal
  std::size_t done;  // programs
};
Said* said = nullptr;

void log(et_timestamp_t, et_pal_log_level_t level, const char*, const char* function, std::size_t line,
         const char* message, std::size_t) {
  const bool is_first = level == et_pal_log_level_t::kError && said->why[0] == 0;
  if (is_first || level == et_pal_log_level_t::kFatal) {
    std::snprintf(said->why, sizeof(said->why), "%s():%zu %s", function, line, message);
  }
}

/// Makes ExecuTorch write its reasons to `said`. Returns false if there is no memory.
bool begin() {
  void* const shared = mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  said = static_cast<Said*>(shared);
  runtime::runtime_init();
  return runtime::register_pal(runtime::PalImpl::create(log, __FILE__));
}

/// Writes how one program has ended, on one line.
void write_end(int out, const std::string& end) {
  std::string line = end + "\t" + said->why;
  std::replace(line.begin(), line.end(), '\n', ' ');
  dprintf(out, "%s\n", line.c_str());
}

/// Runs programs from `first` on. Ends the process, once all are done.
[[noreturn]] void run_from(std::span<const char* const> paths, std::size_t first, std::uint64_t seed,
                           int out) {
  for (std::size_t i = first; i < paths.size(); ++i) {
    said->done = i;
    said->why[0] = 0;
    alarm(kSeconds);
    const Error error = run_program(paths[i], seed * 1'000'003 + i);
    char end[32] = "ran";
    if (error != Error::Ok) std::snprintf(end, sizeof(end), "refused 0x%02x", static_cast<unsigned>(error));
    write_end(out, end);
  }
  said->done = paths.size();
  _exit(0);
}

}  // namespace

/// Runs `count` programs. Returns 0 once a line for each is written to the descriptor `out`.
extern "C" int judge(const char* const* paths, std::size_t count, std::uint64_t seed, int out) {
  if (said == nullptr && !begin()) return 1;
  for (std::size_t next = 0; next < count; next = said->done + 1) {
    said->done = next;
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      const rlimit none{0, 0};
      setrlimit(RLIMIT_CORE, &none);
      run_from({paths, count}, next, seed, out);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      write_end(out, std::string("SIG") + sigabbrev_np(WTERMSIG(status)));
    } else if (said->done < count) {
      write_end(out, "exit");
    }
  }
  return 0;
}
