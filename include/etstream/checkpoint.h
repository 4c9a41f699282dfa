// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint: the tensors of a model by name, read in place from the file formats in which weights are
// kept.
//
//   auto weights = etstream::open_checkpoint("model.safetensors.index.json");
//   if (!weights) return weights.error();
//   for (const etstream::CheckpointTensor& tensor : weights->tensors) std::puts(tensor.name.c_str());
//
// RenameRules: rules in JSON for the names that a checkpoint's tensors get in a tensor data file; with
// ready-made rules from Hugging Face's names to those of ExecuTorch's own Transformer
// (examples/models/llama).
//
//   auto weights = etstream::open_checkpoint("model.safetensors.index.json");
//   if (!weights) return weights.error();
//   const auto rules = etstream::RenameRules::ready_made("llama");
//   if (!rules) return rules.error();
//   const auto report = etstream::apply(*rules, *weights);
//   if (!report) return report.error();
//
// The JSON is one object. Each key is a tensor's name, or a pattern of names in which each '*' matches one or
// more characters other than '.', and one "**" one or more characters; the first rule that matches a tensor
// applies. At most 1024 keys have a '*'.
// The value says what becomes of the tensor:
//
// - "layers.*.wv.weight": its new name, whose '*' stand for what those of the pattern matched, in order
// - null: it is left out
// - ["a", "b"]: it gets several names, which share its bytes
// - {"key": "a"}: its name, and optionally any of
//   "unless": "b", so that it does not get the name if the checkpoint has a tensor b
//   "interleave_rope": true, so that in each head, rows of the first half alternate with those of the
//   second: from Hugging Face's order to Meta's
// - {"split": [NAME or OBJECT, ...]}: it is cut along its first dimension, and each part gets a name.
//   An object may give the "rows" of its part: a number, or "columns" for the tensor's number of columns;
//   other parts share the rest equally
//
// Writes tensors as a safetensors file, which Python loads weights from.
//
//   const auto weights = etstream::open_checkpoint("model.ptd");
//   if (!weights) return weights.error();
//   const auto plan = etstream::plan_safetensors(*weights);
//   if (!plan) return plan.error();
//
// Writes tensors as torch.save does: a zip archive with a pickle, which torch.load reads (.pth, .pt, .bin).
//
//   const auto weights = etstream::open_checkpoint("model.safetensors");
//   if (!weights) return weights.error();
//   const auto plan = etstream::plan_torch_file(*weights);
//   if (!plan) return plan.error();
//
// Makes params.json from the config.json of a Hugging Face checkpoint. ExecuTorch's export_llama reads the
// shape of a checkpoint in Meta's format from it.
//
//   auto weights = etstream::open_checkpoint("Llama-3.2-1B");
//   const auto rules = etstream::RenameRules::ready_made("llama");
//   if (!weights) return weights.error();
//   if (!rules) return rules.error();
//   if (const auto renamed = etstream::apply(*rules, *weights); !renamed) return renamed.error();
//   const auto parameters = etstream::llama_parameters(*weights);
//   if (parameters && *parameters) std::puts((*parameters)->json.c_str());
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/packed_file.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"
#include "etstream/tensor_data.h"

namespace etstream {

/// Opens the file at a path for reading.
using OpenFile = std::function<Result<ByteSource>(const std::string& path)>;

/// Options of the functions that open files of weights.
struct CheckpointOptions {
  /// Opens each file that is read, so that callers can see which these are.
  OpenFile open_file = &ByteSource::file;
  /// Takes each file that is given by itself, without the others of its set; of an index, the files that are
  /// there.
  bool partial = false;
};

/// Opens the checkpoint at `path`. Its format is detected from its content: safetensors; the index of a
/// sharded one (model.safetensors.index.json), whose shards are in the same folder; GGUF, with the files that
/// follow if it is the first of several (split.no, split.count); a program (.pte), whose constants and named
/// data are the tensors; tensor data (.ptd), with the other shards if it is the first of several
/// (NAME-00001-of-00003.ptd); a package (.ptn); a file that torch.save or torch.export.save wrote (.pth,
/// .bin, .pt2), whose pickle is read as data and never executed. A folder stands for the weights in it: those
/// that transformers loads (model.safetensors, or model.safetensors.index.json), or else the only ones there.
/// No tensor's bytes are read, except those of a program's constants without a name, which are named by their
/// SHA-256. Errors: kNotFound, kIo; kUnsupported for another kind of file; kCorrupt, naming file, offset,
/// expected and found, also for files of a set that contradict each other; kInvalidArgument for a file of a
/// set without the others, unless `partial`, and for a folder with no weights, or with several; kTooLarge for
/// a dimension over 2^31 - 1.
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> open_checkpoint(const std::string& path,
                                                                 const CheckpointOptions& options = {});

/// Opens several, as open_checkpoint() does one. All files of a set may be given, in any order, in the place
/// of its index or its first file.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<Checkpoint>> open_checkpoints(
    const std::vector<std::string>& paths, const CheckpointOptions& options = {});

/// The files that paths stand for.
struct WeightPaths {
  std::vector<std::string> files;  // in the order given, those that a path stands for in its place
  std::vector<Error> problems;     // that open_checkpoints() has with their sets
};

/// Finds the files of the sets that `paths` belong to, and checks that these are complete. Errors: those of
/// open_checkpoints() that are about one file.
[[nodiscard]] ETSTREAM_EXPORT Result<WeightPaths> find_weights(const std::vector<std::string>& paths,
                                                               const CheckpointOptions& options = {});

/// Returns the files of find_weights(). Errors: also those that it reports as problems.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<std::string>> whole_sets(
    const std::vector<std::string>& paths, const CheckpointOptions& options = {});

/// Keeps only the tensors whose names match one of `globs`, in which * matches any run of characters and ?
/// any single one. Error: kNotFound for a glob that matches no tensor.
[[nodiscard]] ETSTREAM_EXPORT Result<void> select(Checkpoint& checkpoint,
                                                  const std::vector<std::string>& globs);

/// The type that floating-point tensors with a matching name are converted to.
struct DtypeRule {
  std::string glob = "*";
  ScalarType type = ScalarType::kFloat32;
};

/// Converts floating-point tensors while they are read, each by the last rule that it matches; others stay as
/// they are. Weights of FP8 with scales are first multiplied by these, as transformers does, in the type of
/// the model in config.json beside their file; the scales are taken out. The bits are those that torch 2.13
/// gives: values are rounded to nearest, ties to even, and float64 is first rounded to float32; too large a
/// value becomes infinity, or what torch makes of it in a type without infinity. Errors: kInvalidArgument for
/// a type that is not floating-point, kNotFound for a glob, other than "*", that matches no tensor,
/// kUnsupported for other quantised numbers, whose scales are not applied.
[[nodiscard]] ETSTREAM_EXPORT Result<void> convert(Checkpoint& checkpoint,
                                                   const std::vector<DtypeRule>& rules);

/// Returns all tensors of several checkpoints, in the order given.
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> join(std::vector<Checkpoint> checkpoints);

/// Keeps one tensor of each name, after comparing the bytes of tensors with the same name. Errors:
/// kInvalidArgument, naming both files, where their bytes or layouts differ; read errors.
[[nodiscard]] ETSTREAM_EXPORT Result<void> merge(Checkpoint& checkpoint);

/// Opens several as one: all their tensors, each name once. Errors: those of open_checkpoints() and merge().
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> open_joined_checkpoint(
    const std::vector<std::string>& paths, const CheckpointOptions& options = {});

/// The base of an update (packed_file.h): a file; a checkpoint; or a file of weights, which may be either.
/// The recipe in an update from a checkpoint has hashes of the tensors that it takes, so the checkpoint may
/// be in other files, and tensors may have other names.
struct UpdateBase {
  std::optional<ByteSource> file;
  std::optional<Checkpoint> checkpoint;

  /// Opens the file at a path, or the checkpoint at the paths, as open_joined_checkpoint() does. Errors:
  /// those of opening the file, or else of opening the checkpoint.
  [[nodiscard]] static ETSTREAM_EXPORT Result<UpdateBase> open(const std::vector<std::string>& paths,
                                                               const CheckpointOptions& options = {});
  /// Returns what unpack() and unpacked() take. Errors of the function: kInvalidArgument where the update was
  /// made from the other, or a tensor is not there; kUnsupported for a step that is not known; kCorrupt.
  [[nodiscard]] ETSTREAM_EXPORT OpenBase opener() const;
};

/// Options of describe_tensor_data().
struct TensorDataOptions {
  /// Stores equal bytes once, under all names that have them. To find them, tensors of equal size are read:
  /// some bytes of each, and all bytes of those that agree in these.
  bool share_equal = true;
  /// Accepts tensors of types that ExecuTorch lacks, such as quantised blocks, as data without a layout,
  /// which a backend requests by name.
  bool allow_opaque = false;
  std::uint32_t segment_alignment = TensorData().segment_alignment;
};

/// Describes the .ptd file of the tensors, in their order, for planning. Errors: kUnsupported for a type that
/// ExecuTorch lacks, unless allow_opaque is set; read errors; with share_equal, kTooLarge if tensors of equal
/// size overlap so that each byte would be read more than 4 times on average.
[[nodiscard]] ETSTREAM_EXPORT Result<TensorData> describe_tensor_data(Checkpoint checkpoint,
                                                                      const TensorDataOptions& options = {});

struct RenameRuleSet;

/// A value, cheap to copy. Const use from several threads is safe. By default, it has no rules.
class ETSTREAM_EXPORT RenameRules {
 public:
  /// Reads rules from JSON. Errors: kCorrupt for invalid JSON, kInvalidArgument for any other JSON than such
  /// an object, both with the line; kTooLarge over 64 MiB; read errors.
  [[nodiscard]] static Result<RenameRules> read(const ByteSource& json);

  /// Rules for the models that ExecuTorch's examples/models/`name` makes from Hugging Face's. Error:
  /// kNotFound, which lists the names that exist.
  [[nodiscard]] static Result<RenameRules> ready_made(std::string_view name);
  [[nodiscard]] static std::vector<std::string> ready_made_names();

  /// Returns the ready-made rules of this name, or else reads those in the file at this path. Errors: those
  /// of read() and of opening the file; kNotFound if there are neither.
  [[nodiscard]] static Result<RenameRules> open(const std::string& name_or_path);

  /// Returns the library's internal representation; null for no rules.
  [[nodiscard]] const std::shared_ptr<const RenameRuleSet>& set() const noexcept { return set_; }

 private:
  std::shared_ptr<const RenameRuleSet> set_;
};

/// Options of apply(RenameRules).
struct RenameOptions {
  /// The number of rows of a query or key projection that make up a head. If it is not given, it is read from
  /// config.json next to the checkpoint's first file: "head_dim", or "hidden_size" over
  /// "num_attention_heads".
  std::optional<std::uint32_t> head_dim;
};

/// The rules and the tensors that apply() found no counterpart for.
struct RenameReport {
  /// The patterns of rules that apply to no tensor. Of ready-made rules, this leaves out those for tensors
  /// that models of the family may lack: tensors that are left out, and tensors whose name another one gets.
  std::vector<std::string> unmatched_rules;
  std::vector<std::string> left_over_keys;  // of tensors without a rule, which keep their names
};

/// Gives the checkpoint's tensors their new names; their order stays. Reads no tensor: reordered rows are
/// read when their source is, in at most 256 KiB of memory. After an error the checkpoint is unchanged.
/// Errors: kInvalidArgument, naming both, for two tensors that would have one name, unless they had one
/// before, which merge() resolves; for rules that apply to no tensor, and ready-made ones that apply to no
/// layer and leave tensors over; for rows that can't be cut or ordered as a rule says; where a rule needs
/// the size of a head and it is unknown; for ready-made rules where config.json beside a file has a
/// model_type that they are not for. kUnsupported for such a rule on a tensor whose rows are not stored
/// one after another, or that has no layout. Rules that are ready-made, or cut or order rows, apply scales as
/// convert() does, with its errors. Errors reading config.json.
[[nodiscard]] ETSTREAM_EXPORT Result<RenameReport> apply(const RenameRules& rules, Checkpoint& checkpoint,
                                                         const RenameOptions& options = {});

/// Plans the file, byte for byte as safetensors 0.8.0 writes it with {"format": "pt"} as metadata, which
/// transformers requires: tensors by type, then by name. Errors: kUnsupported for data without a layout, a
/// type that safetensors lacks, a tensor whose elements are not stored in the order of its dimensions, and a
/// name that is not UTF-8; kInvalidArgument for a name that is repeated, or is "__metadata__"; kTooLarge for
/// a header over 100,000,000 bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan_safetensors(const Checkpoint& checkpoint);

/// Plans the file of a dict of tensors by name, in their order, for torch.load with weights_only and mmap or
/// without. Its pickle is the one that torch 2.13 writes. Tensors begin at multiples of 64 bytes of the file;
/// those that are the same bytes of the same source share a storage. The checksums of the archive, which
/// torch does not check, are computed as the tensors are written. Errors: kUnsupported for data without a
/// layout, a type that torch has no tensors of or quantised ones, and a name that is not UTF-8;
/// kInvalidArgument for a name that is repeated; kTooLarge over 65,533 storages.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan_torch_file(const Checkpoint& checkpoint);

/// The kind of a model, and the file that ExecuTorch's export reads its parameters from.
struct LlamaParameters {
  std::string model_type;  // that config.json says: "llama"
  std::string json;  // the text of params.json; "" for another than "llama", "mistral", "qwen2", "qwen3"
  std::vector<std::string> unknown;  // members of config.json that are not known, and not in `json`
};

/// Returns the content of params.json for a checkpoint whose tensors have Meta's names
/// (tok_embeddings.weight), as the ready-made rules for its model give them. Reads config.json beside its
/// first file. Returns nothing for tensors of other names, and if there is no config.json or it has no
/// model_type. Errors: kCorrupt for a config.json that is not JSON or lacks a value that is needed;
/// kUnsupported for a model that ExecuTorch's Transformer would compute in another way: another activation,
/// other RoPE than Llama 3's, other biases than Qwen2's, windows shorter than a sequence; for quantised
/// weights, whose scales are not applied; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<std::optional<LlamaParameters>> llama_parameters(
    const Checkpoint& checkpoint);

}  // namespace etstream
