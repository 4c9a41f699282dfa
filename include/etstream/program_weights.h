// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the names that the keys of named data stand for. Backends name data by its hash; a file of names,
// which Python's etstream.executorch writes at export time, lists the parameters that became it:
//
//   {"3f0c...": "layers.0.weight", "scale_9a4e...": ["layers.0.weight (scales)", "layers.1.weight (scales)"]}
//
//   const auto names = etstream::read_key_names(etstream::ByteSource::file("model.names.json").value());
//   if (!names) return names.error();
//   for (const auto& [key, name] : *names) std::printf("%s is %s\n", key.c_str(), name.c_str());
//
// Checks whether a program gets what it needs from the tensor data files (.ptd) that it is to run with.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   const auto weights = etstream::TensorDataFile::open(etstream::ByteSource::file("model.ptd").value());
//   if (!program || !weights) return (program ? weights.error() : program.error());
//   const etstream::Findings findings = etstream::verify(*program, {&*weights}).value();
//   for (const etstream::Finding& error : findings.errors) std::puts(full_message(error).c_str());
//
// ProgramWithWeights: a program, open with the tensor data files that it runs with.
//
//   const auto opened = etstream::ProgramWithWeights::open("model.pte", {"weights.ptd"});
//   if (!opened) return opened.error();
//   std::printf("%zu files of weights\n", opened->weights.size());
//
// Plans programs that share weights with the container that they may go into, as `etstream share` does.
//
//   std::vector<etstream::SharingInput> inputs;
//   for (const std::string name : {"xnnpack", "vulkan"}) {
//     auto program = etstream::ByteSource::file(name + ".pte");
//     if (!program) return program.error();
//     inputs.push_back({name, *std::move(program)});
//   }
//   const auto planned = etstream::plan_sharing(inputs, {.into_container = true});
//   if (!planned) return planned.error();
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor_data.h"

namespace etstream {

/// The name of a parameter by key; several equal parameters have all their names: "a, b".
using KeyNames = std::map<std::string, std::string>;

/// Reads a JSON object whose values are strings, or lists of strings. Memory: that of the keys and names.
/// Errors: kTooLarge over 64 MiB; kCorrupt for invalid JSON; kInvalidArgument for another value; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<KeyNames> read_key_names(const ByteSource& json);

/// Reads MODEL.names.json beside MODEL.pte, or beside another file at that path. Returns no names if there is
/// no such file. Errors: those of read_key_names().
[[nodiscard]] ETSTREAM_EXPORT Result<KeyNames> read_key_names_beside(
    const std::string& path, const OpenFile& open_file = &ByteSource::file);

/// Checks whether ExecuTorch 1.5.1 can load `program` with all of `weights`, each of which verify() finds
/// sound by itself. Finds at most 100 errors and 100 warnings.
///
/// Errors: an external tensor whose key is in no file, or in one with another dtype, other sizes or another
/// dim_order, or without a layout; named data that a delegate asks for and that is in neither the program nor
/// a file, or is too short; a key in two files; a key that a delegate asks for and that has different bytes
/// in the program and in a file, of which ExecuTorch uses the file's; files without any key. Warnings: keys
/// that nothing asks for; keys with the same bytes in both the program and a file; a different layout or
/// longer data that ExecuTorch does not compare, as long as no read is out of bounds.
///
/// The keys that delegates of XNNPACK, Vulkan and Ethos-U ask for are read from their data. Those of
/// other backends are not known: a key counts as asked for if their data contains its bytes. Payloads are
/// read for this, and to compare two of them. Memory: 300 bytes per key and per tensor. Errors: kCorrupt for
/// a reference in metadata that can't be followed, which verify() of the file reports; kTooLarge for names
/// over 1 MiB; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> verify(const ProgramFile& program,
                                                      const std::vector<const TensorDataFile*>& weights);

/// Returns the keys that `program` asks for and does not contain, sorted, each once: those of external
/// tensors, and of named data of delegates. Errors: as of verify().
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<std::string>> external_keys(const ProgramFile& program);

/// A program and its weights, both open.
struct ETSTREAM_EXPORT ProgramWithWeights {
  ProgramFile program;
  std::vector<TensorDataFile> weights;

  /// Opens the files at these paths: a program or a bundle with one, and tensor data, of which the first of
  /// several shards stands for all, unless `partial`. Errors: those of opening them; kNotFound for a shard
  /// without the others.
  [[nodiscard]] static Result<ProgramWithWeights> open(const std::string& program,
                                                       const std::vector<std::string>& weights,
                                                       bool partial = false);
  /// Opens the weights of a program that is open.
  [[nodiscard]] static Result<ProgramWithWeights> open(ProgramFile program,
                                                       const std::vector<std::string>& weights,
                                                       bool partial = false);

  /// Returns the files of weights, which this owns.
  [[nodiscard]] std::vector<const TensorDataFile*> files() const;
};

/// A program that gets its weights from a file that others share.
struct SharingInput {
  std::string name;  // of the payload in a container, and what reports call it
  ByteSource program;
};

/// Options of plan_sharing().
struct SharingOptions {
  std::uint64_t least_size = kDefaultLeastShared;  // in bytes, of weights that are shared
  bool into_container = false;                     // also plan a fat container of the programs as they become
  std::uint32_t container_alignment = 1;           // of its payloads
};

/// Plans of the files and, if it is requested, of the container.
struct SharingPlan {
  SharedWeightsPlan files;
  std::optional<FilePlan> container;
};

/// Opens, checks and plans programs that share weights. Errors: those of ProgramFile::open(), of
/// plan(SharedWeights) and plan(FatContainer); kCorrupt for a program that verify() finds an error in.
[[nodiscard]] ETSTREAM_EXPORT Result<SharingPlan> plan_sharing(const std::vector<SharingInput>& inputs,
                                                               const SharingOptions& options);

}  // namespace etstream
