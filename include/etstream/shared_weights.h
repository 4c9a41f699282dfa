// SPDX-License-Identifier: BSD-3-Clause
//
// Moves weights that several programs (.pte) of one model have in common into one tensor data file (.ptd)
// with which all of them run: for example a portable program and those for backends.
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

/// Below this size, an entry of tensor data and the keys in the programs need about as many bytes as they
/// save.
inline constexpr std::uint64_t kDefaultLeastShared = 512;

/// Programs to take equal weights out of.
struct SharedWeights {
  std::vector<const ProgramFile*> programs;        // which must outlive only the call of plan()
  std::uint64_t least_size = kDefaultLeastShared;  // the smallest data to move, in bytes; at least 1
};

/// The reason why data stays in a program.
enum class KeptBecause {
  kInOneProgram,       // no other program has it
  kSmall,              // it is smaller than SharedWeights::least_size
  kOtherDataUnderKey,  // a delegate asks for it by a key under which another program has other data
  kLayout,             // its tensor has another size than the data, or an invalid dim_order
  kDelegate,           // it is a delegate's own data, which ExecuTorch only loads from the program
  kInitialState,       // it is the initial value of a mutable tensor
};

/// Describes the reason for people: "no other program has it".
[[nodiscard]] ETSTREAM_EXPORT std::string_view describe(KeptBecause reason);

/// Data that one or several programs have.
struct ProgramData {
  /// A use of the data in one of the programs.
  struct Use {
    std::uint32_t program = 0;  // an index in SharedWeights::programs
    std::string label;  // "constant 'linear.weight'", "named data '5ac1...'", "delegate XnnpackBackend"
    std::optional<KeptBecause> kept;  // why, if it stays in the program
  };

  std::uint64_t size = 0;
  std::vector<Use> uses;
  std::vector<std::string> keys;  // its keys in the tensor data; empty if all programs keep it
};

/// A tensor that asks for its data by another key than its fully qualified name, because that name stands for
/// other data.
struct RenamedKey {
  std::uint32_t program = 0;
  std::string name;
  std::string key;
};

/// Plans of all files: the programs, and the tensor data that they share.
struct SharedWeightsPlan {
  std::vector<FilePlan> programs;   // in the order given; a copy for one that shares nothing
  std::optional<FilePlan> weights;  // none if the programs have nothing in common
  TensorData tensor_data;           // what `weights` is the plan of; split() makes shards of it
  std::vector<ProgramData> data;    // in the order of the programs
  std::vector<RenamedKey> renamed;  // in the order of the programs

  /// Returns the size of all files together, in bytes.
  [[nodiscard]] ETSTREAM_EXPORT std::uint64_t size() const noexcept;
};

/// Plans the programs without the constants and the named data whose bytes at least two of them have, and the
/// tensor data that has these under every key that is asked for. The rest of a program is unchanged. Each
/// runs with the tensor data, `Module(program, weights)`, as it did before: a key never gives other bytes
/// than the program had under it. Constants without a name have the SHA-256 of their bytes as key, as
/// XNNPACK's do. If names clash, a tensor is renamed, and data that a delegate asks for stays in its program.
///
/// Reads payloads of equal size, in bounded memory, and once more those without a name. Memory: that of
/// plan(ProgramFile, ...) and about 200 bytes per constant. Errors: kInvalidArgument for fewer than two
/// programs, or a least_size of 0; kTooLarge if payloads of equal size overlap so that each byte would be
/// read more than 4 times on average; those of plan(ProgramFile, ProgramChanges).
[[nodiscard]] ETSTREAM_EXPORT Result<SharedWeightsPlan> plan(const SharedWeights& description);

}  // namespace etstream
