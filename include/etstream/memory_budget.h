// SPDX-License-Identifier: BSD-3-Clause
//
// Computes the memory that ExecuTorch's runtime asks for to load and run a program, so that a board's memory
// pools can have exactly these sizes.
//
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   const auto budget = etstream::read_memory_budget(file);
//   if (!budget) return budget.error();
//   for (const etstream::MethodBudget& method : budget->methods) {
//     std::printf("%s: %llu bytes\n", method.name.c_str(),
//                 static_cast<unsigned long long>(method.bits_32.method_allocator()));
//   }
//
// The figures are those of ExecuTorch 1.1 to 1.5. Their structs have the same sizes (docs/formats.md), and
// runtime/executor/method.cpp and tensor_parser_portable.cpp allocate in the same order; ExecuTorch 1.0 has
// larger values and smaller delegates. What backends take is that of 1.5: Ethos-U's has taken the same since
// 1.2, and XNNPACK's since 1.4. Portable tensors are meant, not those of ATen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The bytes that loading a method takes from allocators that begin at a multiple of 16. Each part of the
/// method allocator includes the padding before its pieces.
struct AllocatorBudget {
  std::uint64_t values = 0;     // the method's values, a flag for each input, entries for external constants
  std::uint64_t tensors = 0;    // shapes and strides, without the tensors' data
  std::uint64_t lists = 0;      // lists and strings
  std::uint64_t delegates = 0;  // the runtime's part of delegates, and their compile specs
  std::uint64_t backends = 0;   // what backends take, as far as MethodBudget::Delegate::is_known
  std::uint64_t calls = 0;      // chains, kernels and lists of arguments
  /// The least temp allocator with which the runtime takes nothing more from the method allocator.
  std::uint64_t load_temp = 0;

  /// Returns the bytes that the runtime has taken from its method allocator once the method is loaded.
  [[nodiscard]] std::uint64_t method_allocator() const noexcept {
    return values + tensors + lists + delegates + backends + calls;
  }
};

/// The needs of a method. Sizes are in bytes.
struct MethodBudget {
  /// An area of planned memory.
  struct Planned {
    std::uint32_t id = 0;    // from 1 on; the runtime counts its buffers from 0 on
    std::uint64_t size = 0;  // what the program asks for
    std::uint64_t used = 0;  // the end of the last tensor in it
  };
  /// The parts of a command stream that Vela made for Ethos-U, as far as they are in the program.
  struct EthosU {
    std::optional<std::uint64_t> commands;
    std::optional<std::uint64_t> weights;
    std::optional<std::uint64_t> scratch;  // from the temp allocator, at a multiple of 16, in a call
  };
  /// A delegate, in the method's order.
  struct Delegate {
    std::string backend;
    std::uint64_t size = 0;   // of its data
    bool in_segment = false;  // which a data loader may copy; otherwise in the flatbuffer
    bool is_known = false;    // the library knows what the backend takes from the allocators
    std::optional<EthosU> ethos_u;
  };
  /// The inputs, or the outputs.
  struct Ends {
    std::uint32_t count = 0;
    std::uint64_t size = 0;      // of the tensors; the most if shapes are dynamic
    std::uint64_t provided = 0;  // of those that are not planned: the caller's buffers
  };

  std::string name;
  AllocatorBudget bits_64;  // where pointers have 64 bits
  AllocatorBudget bits_32;  // where they have 32 bits, and 64-bit integers lie at multiples of 8, as on Arm
  std::vector<Planned> planned;
  std::vector<Delegate> delegates;
  Ends inputs;
  Ends outputs;
  std::uint64_t run_temp = 0;      // the most that a known backend takes from the temp allocator in a call
  std::uint32_t kernel_calls = 0;  // whose kernels may take more from it; no file says how much

  /// Returns the backends that take an unknown number of bytes, each once, in the method's order.
  [[nodiscard]] ETSTREAM_EXPORT std::vector<std::string> unknown_backends() const;
};

/// The test cases of a method in a bundle. Runners copy the inputs of a case into planned memory, or use
/// them, and the expected outputs, where they lie.
struct CaseBudget {
  std::string method;
  std::uint32_t test_cases = 0;
  std::uint64_t inputs = 0;            // the bytes of tensors in the case that has the most
  std::uint64_t expected_outputs = 0;  // likewise
};

/// Sizes of pools for all methods of a program, loaded one at a time.
struct PoolSizes {
  std::uint64_t method_allocator = 0;
  std::uint64_t temp_allocator = 0;  // without what kernels take
};

/// The needs of a file. Sizes are in bytes.
struct MemoryBudget {
  std::uint64_t file_size = 0;
  std::uint64_t file_alignment = 16;  // see memory_alignment()
  std::uint64_t flatbuffer_size = 0;  // of the program; loaders read it at once
  std::uint64_t constants_size = 0;   // of the segment of constants, which they read with it
  std::uint64_t external_keys = 0;    // that come from tensor data, whose size is in no figure
  std::vector<MethodBudget> methods;
  std::vector<CaseBudget> cases;

  /// Returns the largest pools of the methods, where pointers have 64 bits, and where they have 32.
  [[nodiscard]] ETSTREAM_EXPORT PoolSizes pools_64() const;
  [[nodiscard]] ETSTREAM_EXPORT PoolSizes pools_32() const;
  /// Returns the largest size of each area of planned memory, by its id - 1.
  [[nodiscard]] ETSTREAM_EXPORT std::vector<std::uint64_t> planned() const;
};

/// Reads the metadata of a .pte or a .bpte file, and the command streams of Ethos-U. Memory grows with the
/// number of methods, delegates, inputs and outputs. May be called from several threads at once. Errors:
/// kUnsupported for another kind of file; kCorrupt, naming file, offset, expected and found; kTooLarge for
/// sums over 2^64 - 1; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<MemoryBudget> read_memory_budget(const ByteSource& file);

}  // namespace etstream
