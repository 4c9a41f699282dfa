// SPDX-License-Identifier: BSD-3-Clause
//
// Weights that several programs (.pte) of one model have in common, moved into one file of tensor data (.ptd)
// that all of them run with: a portable program and those for backends, for one.
//
//   const auto a = etstream::ProgramFile::open(etstream::ByteSource::file("portable.pte").value()).value();
//   const auto b = etstream::ProgramFile::open(etstream::ByteSource::file("xnnpack.pte").value()).value();
//   const auto planned = etstream::plan(etstream::SharedWeights{.programs = {&a, &b}});
//   if (!planned) return planned.error();
//   std::printf("%zu bytes become %zu\n", static_cast<std::size_t>(a.file().size() + b.file().size()),
//               static_cast<std::size_t>(planned->size()));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"

namespace etstream {

/// Below it an entry of tensor data, and the keys in the programs, take about as many bytes as they save.
inline constexpr std::uint64_t kDefaultLeastShared = 512;

struct SharedWeights {
  std::vector<const ProgramFile*> programs;  // which outlive the plan's making, but need not outlive the plan
  std::uint64_t least_size = kDefaultLeastShared;  // of what is moved, in bytes, at least 1
};

/// Why data stays in a program.
enum class KeptBecause {
  kInOneProgram,       // no other program has it
  kSmall,              // it is smaller than SharedWeights::least_size
  kOtherDataUnderKey,  // a delegate asks for it by a key that stands for other data in another program
  kLayout,             // its tensor is of another size than it, or of a dim_order that is none
  kDelegate,      // it is what a delegate itself consists of, which ExecuTorch only loads from the program
  kInitialState,  // it is what a mutable tensor begins with
};

/// For people: "no other program has it".
[[nodiscard]] ETSTREAM_EXPORT std::string_view describe(KeptBecause reason);

/// Bytes that programs have, be it one alone.
struct ProgramData {
  struct Use {
    std::uint32_t program = 0;  // an index in SharedWeights::programs
    std::string label;  // "constant 'linear.weight'", "named data '5ac1...'", "delegate XnnpackBackend"
    std::optional<KeptBecause> kept;  // where it stays there
  };

  std::uint64_t size = 0;
  std::vector<Use> uses;
  std::vector<std::string> keys;  // by which programs ask for it in the tensor data; none where all keep it
};

/// A tensor that asks for its data by another key than its fully qualified name, which stands for other data.
struct RenamedKey {
  std::uint32_t program = 0;
  std::string name;
  std::string key;
};

struct SharedWeightsPlan {
  std::vector<FilePlan> programs;   // in the order given; a copy of one that shares nothing
  std::optional<FilePlan> weights;  // none where the programs have nothing in common
  TensorData tensor_data;           // what it is the plan of; split() makes shards of it
  std::vector<ProgramData> data;    // in the order in which the programs have it
  std::vector<RenamedKey> renamed;  // in the order of the programs

  /// Of all files together, in bytes.
  [[nodiscard]] ETSTREAM_EXPORT std::uint64_t size() const noexcept;
};

/// The plan of the programs without the constants and the named data whose bytes at least two of them have,
/// and of the tensor data that has these under every key that is asked for. Whatever else is in a program
/// stays as it is. Each runs with the tensor data, `Module(program, weights)`, as it did without: a key never
/// gives other bytes than the program had under it. Constants without a name go by the SHA-256 of their
/// bytes, as XNNPACK's do. Where names clash, a tensor is renamed, and what a delegate asks for stays in its
/// program.
///
/// Reads payloads of equal size, in bounded memory, and of what has no name all once more. Memory: that of
/// plan(ProgramFile, ...) and about 200 bytes a constant. Errors: kInvalidArgument for fewer than two
/// programs, or a least_size of 0; those of plan(ProgramFile, ProgramChanges).
[[nodiscard]] ETSTREAM_EXPORT Result<SharedWeightsPlan> plan(const SharedWeights& description);

}  // namespace etstream
