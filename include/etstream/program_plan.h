// SPDX-License-Identifier: BSD-3-Clause
//
// Rewrites a program (.pte) with another layout, without exporting it again. The content stays: methods,
// values and instructions are packed again as ExecuTorch packs them, and segments are copied from the program
// that is read.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   auto plan = etstream::plan(*program, {.segment_alignment = 4096});
//   if (!plan) return plan.error();
//   const auto sink = etstream::open_file_sink("aligned.pte").value();
//   if (const auto written = etstream::write(*plan, *sink); !written) return written.error();
//
// Describes a program (.pte) for writing: its tables, and where its data is. This is what ExecuTorch's
// serializer takes as input, without the data in memory.
//
//   const auto json = etstream::ByteSource::file("model.json").value();
//   auto described = etstream::read_program_json(json);
//   if (!described) return described.error();
//   auto plan = etstream::plan(*described);
//   if (!plan) return plan.error();
//
// Rewrites a program (.pte) with changed content, without exporting it again: without some methods, without
// stack traces, or with constants moved to a tensor data file (.ptd) or in from one.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   auto planned = etstream::plan(*program, etstream::ProgramChanges{.drop_methods = {"train"}});
//   if (!planned) return planned.error();
//   const auto sink = etstream::open_file_sink("smaller.pte").value();
//   if (const auto written = etstream::write(planned->program, *sink); !written) return written.error();
//
// Plans a program from another one, or from JSON that describes it, as `etstream pte` does.
//
//   const auto file = etstream::ByteSource::file("model.json");
//   if (!file) return file.error();
//   const auto planned = etstream::plan_program_input(*file, {}, {}, {});
//   if (!planned) return planned.error();
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
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor_data.h"

namespace etstream {

/// The place of the data of delegates: in the flatbuffer, which is limited to 2 GiB, or in segments.
enum class DelegateData { kInline, kInSegments };

/// An option that is not set stays as in the program, as far as the program shows it. A single segment may be
/// aligned to more than was requested, and the alignment of delegates shows only if some are inline.
/// Alignments are powers of two, in bytes.
struct ProgramPlanOptions {
  /// The alignment of each segment, and of the first one after the flatbuffer; from 1 to 2^30. ExecuTorch's
  /// default is 128. A program does not record that a segment had an alignment of its own (named data, at a
  /// backend's request): it is kept only if it divides this one.
  std::optional<std::uint32_t> segment_alignment = std::nullopt;
  /// The alignment of each constant tensor in its segment, up to 65536. ExecuTorch's default is 16. If it is
  /// larger than that of segments, it holds only relative to the segment, as in ExecuTorch. The extended
  /// header grows to it.
  std::optional<std::uint32_t> constant_tensor_alignment = std::nullopt;
  /// The alignment of a delegate's data in the flatbuffer, up to 65536. ExecuTorch's default is 16. It does
  /// not apply to data in segments, but the extended header grows to it even so, as in ExecuTorch.
  std::optional<std::uint32_t> delegate_alignment = std::nullopt;
  /// The new place of the data of delegates. As with ExecuTorch's `extract_delegate_segments`, equal data is
  /// stored once, and empty data stays in the flatbuffer. Moving data into segments reads it to find equal
  /// data.
  std::optional<DelegateData> delegates = std::nullopt;
  /// Makes the two alignments above hold in the file where ExecuTorch 1.5.1 does not: for constant tensors,
  /// if theirs is larger than that of segments, and for delegates in segments. ExecuTorch loads such a
  /// program like any other.
  bool strict_alignment = false;
  /// Moves constants that are in the flatbuffer (Program.constant_buffer, which ExecuTorch 1.3 and later
  /// refuse) into a segment. Older releases write such programs with `extract_constant_segment=False`.
  bool extract_constants = false;
  /// The ExecuTorch release, and how its FlatBuffers builder shares vtables, whose output the plan
  /// reproduces. By default as the program shows them; kLatestRelease and kOfEqualSize for a described
  /// program.
  std::optional<ExecutorchRelease> as_of = std::nullopt;
  std::optional<VtableSharing> vtables = std::nullopt;

  /// Returns whether no option is set.
  [[nodiscard]] bool empty() const noexcept {
    return !segment_alignment && !constant_tensor_alignment && !delegate_alignment && !delegates &&
           !strict_alignment && !extract_constants && !as_of && !vtables;
  }
};

/// Plans the program with these options. Without any, the bytes are the same as before, even if another
/// writer laid out the program; with any but strict_alignment, they are those that ExecuTorch gives for the
/// same content, in the release `as_of` or the one that the program shows. Errors: kInvalidArgument for an
/// invalid alignment; kTooLarge for a flatbuffer over 2^31 - 1 bytes, saying what to do about it; kCorrupt if
/// an index in the program is out of range; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const ProgramFile& program,
                                                    const ProgramPlanOptions& options = {});

/// A program whose data is not laid out yet.
struct ProgramDescription {
  /// The data of a segment.
  struct Segment {
    ByteSource data;
    std::uint32_t alignment = 1;  // its own minimum, a power of two up to 2^30
  };

  /// A flatbuffer of the program's schema, with its objects in any order, without an extended header and
  /// without data: Buffer.storage and BackendDelegateInlineData.data are absent or ignored, and so are the
  /// places of segments.
  ByteSource metadata;
  std::string name = "program";           // in messages
  std::vector<ByteSource> constants;      // of Program.constant_buffer
  std::vector<ByteSource> delegate_data;  // of Program.backend_delegate_data
  std::vector<Segment> segments;          // of Program.segments
  ProgramSchema schema;
};

/// Options of read_program_json().
struct ProgramJsonOptions {
  std::string folder;  // that paths in the JSON are relative to; if empty, the current one
  ProgramSchema schema;
  /// The program from which segments that have no data in the JSON get it, by index. Must outlive only the
  /// call.
  const ProgramFile* segments_from = nullptr;
};

/// Reads a description from JSON in ExecuTorch's schema, as ExecuTorch's own `_program_to_json`, flatc and
/// `etstream decompile` write it. Data may be an array of numbers, base64, or {"file": PATH, "offset": N,
/// "size": N}, in which offset and size are optional. An entry of `segments` has its `data` besides the
/// schema's fields, and may have an `alignment`. Memory: that of the text without data in files. Errors:
/// kInvalidArgument for what the schema lacks or does not allow, naming file, line and place, and for a
/// segment without data or of another size than its entry gives; kCorrupt for invalid JSON; kNotFound, kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramDescription> read_program_json(
    const ByteSource& json, const ProgramJsonOptions& options = {});

/// Plans the program, byte for byte as `serialize_pte_binary` of the release `as_of` writes it with these
/// options: constants are in a segment, and so is the data of delegates unless inline is requested. Defaults
/// are those of ExecutorchBackendConfig. Errors: kInvalidArgument if the lists are not as long as those of
/// the metadata; kCorrupt for invalid metadata; those of plan(ProgramFile, ProgramPlanOptions).
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const ProgramDescription& program,
                                                    const ProgramPlanOptions& options = {});

/// The keys of constants in a tensor data file.
struct ConstantsOut {
  /// Maps a constant to its key, by the SHA-256 of its bytes (64 hexadecimal digits, lower case) or by its
  /// number in the program's constants (decimal). The key of any other constant is its tensor's fully
  /// qualified name, or its SHA-256 if it has no name. If tensors of several layouts share the bytes, the
  /// keys of all but the first are "KEY:TYPE[SIZES]". An entry for a constant that the program lacks is an
  /// error.
  std::map<std::string, std::string> keys;
};

/// Reads ConstantsOut::keys from a JSON object. Errors: kTooLarge over 64 MiB; kCorrupt for invalid JSON;
/// kInvalidArgument for anything but an object of strings; read errors.
[[nodiscard]] ETSTREAM_EXPORT Result<std::map<std::string, std::string>> read_constant_keys(
    const ByteSource& json);

/// Changes of a program's content; options of its layout are ProgramPlanOptions.
struct ProgramChanges {
  /// The names of methods to drop, with the constants, mutable data and delegate data that only they use, and
  /// the named data whose keys occur in the data of their delegates and of no others.
  std::vector<std::string> drop_methods = {};
  /// Drops the stack traces, which show where in the model's source an instruction comes from.
  bool drop_stack_traces = false;
  /// Moves all constants, and named data except metadata, into a tensor data file, without which the program
  /// can't be loaded any more. ExecuTorch loads both with `Module(program, weights)`.
  std::optional<ConstantsOut> constants_out = std::nullopt;
  /// Moves external tensors and named data in from these files, which must only outlive the call. Tensors
  /// that are in none of the files stay external.
  std::vector<const TensorDataFile*> constants_in = {};

  /// Metadata to add: values by key, without the prefix "metadata."; see program.h. It replaces
  /// existing values under these keys, and stays in the program when constants are moved out.
  std::map<std::string, ByteSource> metadata = {};

  /// Returns whether nothing is to change.
  [[nodiscard]] bool empty() const noexcept {
    return drop_methods.empty() && !drop_stack_traces && !constants_out && constants_in.empty() &&
           metadata.empty();
  }
};

/// The plan of a changed program, and what has moved out of it.
struct ProgramPlan {
  FilePlan program;
  std::optional<TensorData> tensor_data;  // if constants are moved out
};

/// Plans the program with these changes and options. Reads constants if their SHA-256 is needed. Errors:
/// those of plan(ProgramFile, ProgramPlanOptions); kNotFound for a method or a constant that the program does
/// not have; kInvalidArgument for dropping all methods, for a key that two constants would have, for moving
/// constants out where there are none, and for moving constants both ways.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan(const ProgramFile& program,
                                                       const ProgramChanges& changes,
                                                       const ProgramPlanOptions& options = {});

/// Does the same for a described program, which is packed only once, with its changes. Further errors: those
/// of plan(ProgramDescription).
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan(const ProgramDescription& program,
                                                       const ProgramChanges& changes,
                                                       const ProgramPlanOptions& options = {});

/// Options for a program that may be given as JSON.
struct ProgramInputOptions {
  std::string folder;  // that paths in JSON are relative to
  ProgramSchema schema;
  std::optional<ByteSource> segments_from;  // a program, for JSON; see ProgramJsonOptions
  /// The sharing of vtables in a program that JSON describes, unless its options say otherwise.
  VtableSharing described_vtables = VtableSharing::kOfEqualSize;
  Warn warn = {};  // of what ProgramFile::verify() warns of
};

/// Plans the program in `file`, or the one that it describes in JSON, with these changes. Verifies it: before
/// planning a program, or after all changes to a described one. Moves constants from the flatbuffer into a
/// segment, where ExecuTorch 1.3 and later need them, unless options.as_of is an earlier release. Errors:
/// those of require_sound(), ProgramFile::open(), read_program_json() and plan(ProgramFile); kInvalidArgument
/// if `segments_from` is given for a program that is no JSON.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan_program_input(const ByteSource& file,
                                                                     const ProgramInputOptions& input,
                                                                     const ProgramChanges& changes,
                                                                     const ProgramPlanOptions& options);

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
