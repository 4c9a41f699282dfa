// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/loaded_method.h"

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/executorch/refusal.h"
#include "executorch/aligned_buffer.h"

namespace etstream {

namespace runtime = ::executorch::runtime;

/// The members in the order in which they are made; the method is destroyed first, as it points into all
/// others.
struct LoadedMethod::Impl {
  std::vector<AlignedBuffer> buffers;
  std::vector<runtime::Span<std::uint8_t>> spans;
  std::optional<runtime::HierarchicalAllocator> planned_memory;
  ::executorch::extension::MallocMemoryAllocator method_allocator;
  ::executorch::extension::MallocMemoryAllocator temporary_allocator;
  std::optional<runtime::MemoryManager> memory_manager;
  std::optional<runtime::Method> method;

  Result<void> allocate(const runtime::MethodMeta& meta, const std::string& where) {
    for (std::size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      const auto size = meta.memory_planned_buffer_size(i);
      const auto device = meta.memory_planned_buffer_device(i);
      if (!size.ok() || *size < 0) {
        return make_error(ErrorCode::kCorrupt, "{}planned buffer {} has no size", where, i);
      }
      if (device.ok() && !device->is_cpu()) {
        return make_error(ErrorCode::kUnsupported, "{}planned buffer {} is not in the CPU's memory", where,
                          i);
      }
      auto buffer = AlignedBuffer::allocate(static_cast<std::size_t>(*size));
      if (!buffer) {
        return make_error(ErrorCode::kOutOfMemory, "{}no memory for a planned buffer of {} bytes", where,
                          *size);
      }
      buffers.push_back(*std::move(buffer));
      const auto bytes = buffers.back().bytes();
      // State without an initial value in the program begins as zeros, as under ExecuTorch's own Module.
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      spans.emplace_back(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
    }
    planned_memory.emplace(runtime::Span<runtime::Span<std::uint8_t>>(spans.data(), spans.size()));
    memory_manager.emplace(&method_allocator, &*planned_memory, &temporary_allocator);
    return {};
  }
};

LoadedMethod::LoadedMethod(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadedMethod::LoadedMethod(LoadedMethod&&) noexcept = default;
LoadedMethod& LoadedMethod::operator=(LoadedMethod&&) noexcept = default;
LoadedMethod::~LoadedMethod() = default;

runtime::Method& LoadedMethod::method() noexcept { return *impl_->method; }

Result<LoadedMethod> LoadedMethod::load(const runtime::Program& program, const std::string& name,
                                        const runtime::NamedDataMap* named_data, const ByteSource& file) {
  return without_exceptions([&]() -> Result<LoadedMethod> {
    runtime::runtime_init();
    const std::string where = text("method {}: ", quote(name));
    const auto meta = program.method_meta(name.c_str());
    if (!meta.ok()) return make_error(ErrorCode::kNotFound, "{}the program has no such method", where);
    auto impl = std::make_unique<Impl>();
    ETSTREAM_TRY(impl->allocate(*meta, where));
    auto method = program.load_method(name.c_str(), &*impl->memory_manager, nullptr, named_data);
    if (!method.ok()) {
      return refusal(method.error(), text("{}could not be loaded", where), {file, name, named_data});
    }
    impl->method.emplace(std::move(*method));
    return LoadedMethod(std::move(impl));
  });
}

}  // namespace etstream
