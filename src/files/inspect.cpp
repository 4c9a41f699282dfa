// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/inspect.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "files/pieces.h"
#include "formats/checkpoint/weight_sets.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/program_model.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::uint64_t kLargestShown = 65536;
constexpr std::string_view kProgramAbove = "program/";  // before the pieces of the program of a bundle

/// A source that counts what is read from it.
class Counted final : public ByteStorage {
 public:
  explicit Counted(ByteSource source) : source_(std::move(source)) {}

  std::uint64_t size() const noexcept override { return source_.size(); }
  std::string name() const override { return source_.name(); }
  Result<void> check_unchanged() const override { return source_.check_unchanged(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    bytes_read_ += out.size();
    return source_.read_at(offset, out);
  }
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  const ByteSource source_;
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

/// Returns what to do with each piece of a file: unless it is empty, it is a part.
VisitPiece part_adder(const ByteSource& file, FileInspection& inspection) {
  return [&](const Piece& piece) {
    if (piece.data.size() == 0) return true;
    const std::uint64_t offset = piece.data.offset_in(file).value_or(0);
    std::uint64_t alignment = kLargestShown;
    while (offset % alignment != 0) alignment /= 2;
    inspection.parts.push_back({piece.path, piece.what, piece.kind, 0, offset, piece.data.size(), alignment});
    return true;
  };
}

/// The sizes of constants by their offsets in the program.
using ConstantSizes = std::map<std::uint64_t, std::uint64_t>;

void note_constants(const ProgramGraph& graph, const ByteSource& program, ConstantSizes& sizes) {
  for (const GraphValue& value : graph.values) {
    if (value.storage != TensorStorage::kConstant || value.size == 0) continue;
    std::uint64_t& size = sizes[value.data.offset_in(program).value_or(0)];
    size = std::max(size, value.size);
  }
}

void count_calls(const ProgramGraph& graph, InspectedMethod& method) {
  method.instructions = static_cast<std::uint32_t>(graph.calls.size());
  for (const GraphDelegate& delegate : graph.delegates) method.delegates.push_back({delegate, {}, 0});
  std::map<std::string, std::uint32_t> calls;
  for (const GraphCall& call : graph.calls) {
    if (call.kind == CallKind::kKernel) ++calls[graph.name_of(call)];
    if (call.kind == CallKind::kDelegate) ++method.delegates[call.callee].calls;
  }
  for (const auto& [name, count] : calls) method.operators.push_back({name, count});
  std::ranges::stable_sort(method.operators, std::greater(), &InspectedMethod::Operator::calls);
}

void list_tensors(const ProgramGraph& graph, InspectedMethod& method) {
  for (std::uint32_t id = 1; id < graph.memory_sizes.size(); ++id) {
    method.memories.push_back({id, graph.memory_sizes[id]});
  }
  for (std::uint32_t i = 0; i < graph.values.size(); ++i) {
    const GraphValue& value = graph.values[i];
    const auto* info = std::get_if<TensorInfo>(&value.info);
    if (!info) continue;
    method.tensors.push_back({i, value.name, *info, value.storage, value.size, value.data_index,
                              value.memory_id, value.memory_offset});
    if (value.memory_id == 0) continue;
    InspectedMethod::Memory& memory = method.memories[value.memory_id - 1];
    ++memory.tensors;
    memory.tensor_bytes += value.size;
  }
  std::ranges::stable_sort(method.tensors, std::greater(), &InspectedMethod::Tensor::size);
}

/// Sets the paths of delegates, and the payloads with theirs.
void add_paths(std::string_view above, std::vector<DelegatePayload> payloads, FileInspection& inspection) {
  std::vector<std::string> names;
  for (const InspectedMethod& method : inspection.methods) names.push_back(method.name);
  const std::vector<std::string> methods = method_paths(above, names);
  std::map<SourcePlace, std::string> first;  // that has the data
  for (std::size_t i = 0; i < methods.size(); ++i) {
    std::size_t number = 0;
    for (InspectedMethod::Delegate& delegate : inspection.methods[i].delegates) {
      delegate.path = delegate_path(methods[i], number++);
      first.try_emplace(delegate.data.place(), delegate.path);
    }
  }
  for (DelegatePayload& payload : payloads) {
    std::string path = first[payload.data.place()];
    std::vector<std::string> parts = part_paths(path, payload);
    inspection.payloads.push_back({std::move(payload), std::move(path), std::move(parts)});
  }
}

/// Sets the program's bytes, and its methods from one graph at a time.
Result<void> set_program(const ProgramFile& program, FileInspection& inspection) {
  ETSTREAM_ASSIGN(auto methods, program.methods());
  ProgramBytes& bytes = inspection.program.emplace();
  bytes.flatbuffer_size = program.flatbuffer_size();
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  std::uint64_t end = bytes.flatbuffer_size;
  for (const SegmentInfo& segment : segments) {
    const bool is_behind = segment.size > 0 && segment.offset >= end;
    bytes.segments.push_back({segment, is_behind ? segment.offset - end : 0});
    bytes.padding += bytes.segments.back().padding;
    if (segment.size > 0) end = std::max(end, segment.offset + segment.size);
  }
  ConstantSizes constants;
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program, i));
    note_constants(graph, program.file(), constants);
    InspectedMethod& method = inspection.methods.emplace_back();
    static_cast<MethodInfo&>(method) = std::move(methods[i]);
    count_calls(graph, method);
    list_tensors(graph, method);
  }
  bytes.constants = static_cast<std::uint32_t>(constants.size());
  for (const auto& constant : constants) bytes.constant_bytes += constant.second;
  return {};
}

/// Adds what a program has that begins at `base` in the file. `above` goes before the paths of its pieces.
Result<void> add_program(const ProgramFile& program, std::string_view above, std::uint64_t base,
                         const KeyNames& names, FileInspection& inspection) {
  ETSTREAM_TRY(set_program(program, inspection));
  ETSTREAM_ASSIGN(auto payloads, read_delegate_payloads(program));
  add_paths(above, std::move(payloads), inspection);
  ETSTREAM_ASSIGN(inspection.program_data, read_named_data_info(program, above, base, names));
  ETSTREAM_ASSIGN(const auto metadata, read_metadata(program));
  for (const MetadataEntry& entry : metadata) {
    ETSTREAM_ASSIGN(std::string value, describe(entry));
    inspection.metadata.emplace_back(entry.key, std::move(value));
  }
  return {};
}

Result<void> add_file(const ProgramFile& program, const KeyNames& names, FileInspection& inspection) {
  ETSTREAM_ASSIGN(inspection.version, program.version());
  ETSTREAM_ASSIGN(inspection.memory_alignment, memory_alignment(program));
  return add_program(program, "", 0, names, inspection);
}

Result<void> add_file(const BundledProgramFile& bundle, const KeyNames& names, FileInspection& inspection) {
  inspection.version = bundle.version();
  inspection.suites = bundle.suites();
  const auto program = bundle.open_program();
  ETSTREAM_TRY(for_each_part(bundle, program, part_adder(bundle.file(), inspection)));
  if (!program) return {};
  ETSTREAM_ASSIGN(inspection.memory_alignment, memory_alignment(bundle, *program));
  return add_program(*program, kProgramAbove, bundle.program_offset(), names, inspection);
}

Result<void> add_file(const TensorDataFile& file, const KeyNames& /*names*/, FileInspection& inspection) {
  ETSTREAM_ASSIGN(inspection.version, file.version());
  ETSTREAM_ASSIGN(inspection.memory_alignment, memory_alignment(file));
  ETSTREAM_ASSIGN(inspection.named_data, file.entries());
  return {};
}

Result<void> add_file(const WeightFile& checkpoint, const KeyNames& /*names*/, FileInspection& inspection) {
  inspection.version = checkpoint.version;
  return {};
}

Result<void> add_file(const FatContainerFile& container, const KeyNames& /*names*/,
                      FileInspection& inspection) {
  inspection.version = FatContainerFile::version();
  ETSTREAM_ASSIGN(inspection.memory_alignment, memory_alignment(container));
  return {};
}

Result<void> add_file(const NativePackageFile& /*package*/, const KeyNames& /*names*/,
                      FileInspection& /*inspection*/) {
  return {};
}

/// Sorts the parts by their places, each once though it may be shared, and sets metadata_size to the bytes
/// outside of them. What is in a segment as a whole says more than the segment.
void settle_parts(FileInspection& inspection) {
  auto& parts = inspection.parts;
  const auto place = [](const FilePart& part) { return std::pair(part.offset, part.size); };
  std::ranges::stable_sort(parts, {}, place);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    FilePart* const last = kept > 0 ? &parts[kept - 1] : nullptr;
    if (last == nullptr || place(*last) != place(parts[i])) {
      if (kept++ != i) parts[kept - 1] = std::move(parts[i]);
    } else if (last->kind == ContentKind::kContainer && parts[i].kind != ContentKind::kContainer) {
      *last = std::move(parts[i]);
    } else {
      ++last->others;
    }
  }
  parts.resize(kept);
  std::uint64_t end = 0;
  std::uint64_t payload = 0;
  for (const FilePart& part : parts) {
    const std::uint64_t part_end = part.offset + part.size;
    if (part_end <= end) continue;
    payload += part_end - std::max(end, part.offset);
    end = part_end;
  }
  inspection.metadata_size = inspection.size - payload;
}

Result<FileInspection> inspect_update(const ByteSource& file) {
  FileInspection out;
  ETSTREAM_ASSIGN(out.update, read_update(file));
  out.format = FileKind::kUpdate;
  out.size = out.bytes_read = file.size();
  out.version = 1;
  ETSTREAM_TRY(for_each_piece(file, part_adder(file, out)));
  settle_parts(out);
  ETSTREAM_TRY(file.check_unchanged());
  return out;
}

/// Returns what says more of a piece: the name that its key stands for, and the first user of named data.
SayMore names_and_users(const KeyNames& names, const FileInspection& inspection) {
  std::map<std::string_view, std::string_view> users;
  for (const NamedDataInfo& info : inspection.program_data) {
    if (!info.asked_by.empty()) users.emplace(info.path, info.asked_by.front());
  }
  return [&names, users = std::move(users)](const Piece& piece, FileContent& content) {
    if (piece.kind != ContentKind::kNamedData && piece.kind != ContentKind::kTensor) return;
    const bool is_bundled = piece.path.starts_with(kProgramAbove);  // and names leave that out
    const auto name =
        names.find(!piece.key.empty() ? piece.key : piece.path.substr(is_bundled ? kProgramAbove.size() : 0));
    if (name != names.end()) content.name = name->second;
    const auto user = users.find(piece.path);
    if (user != users.end())
      content.detail = text("{}{}{}", user->second, piece.what.empty() ? "" : ", ", piece.what);
  };
}

}  // namespace

Result<FileInspection> inspect(const ByteSource& source, const InspectOptions& options) {
  return without_exceptions([&]() -> Result<FileInspection> {
    const auto counted = std::make_shared<Counted>(source);
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(ByteSource(counted)));
    if (kind == FileKind::kUpdate) return inspect_update(source);
    ETSTREAM_ASSIGN(const AnyFile file, open_any(ByteSource(counted), kind));
    FileInspection inspection;
    inspection.format = kind_of(file);
    inspection.size = source.size();
    inspection.names = options.names;
    ETSTREAM_TRY(
        match(file, [&](const auto& opened) { return add_file(opened, options.names, inspection); }));
    if (!std::holds_alternative<BundledProgramFile>(file)) {
      ETSTREAM_TRY(for_each_piece(file, Pieces::kOutermost, part_adder(source_of(file), inspection)));
    }
    settle_parts(inspection);
    inspection.bytes_read = counted->bytes_read();
    if (options.duplicates || options.contents) {
      ETSTREAM_ASSIGN(inspection.contents, read_contents(file, names_and_users(options.names, inspection)));
    }
    if (options.duplicates) {
      ETSTREAM_ASSIGN(inspection.duplicates, find_duplicates(source, inspection.contents));
      if (!options.contents) inspection.contents = {};
    }
    ETSTREAM_TRY(source.check_unchanged());
    return inspection;
  });
}

namespace {

/// Adds the parts of another file of a set.
void add_inspection(FileInspection& whole, FileInspection file, std::string path, std::size_t tensors) {
  const auto number = static_cast<std::uint32_t>(whole.files.size());
  if (number == 0) {
    whole.format = file.format;
    whole.version = file.version;
  }
  whole.files.push_back({std::move(path), file.size, tensors});
  whole.size += file.size;
  whole.metadata_size += file.metadata_size;
  whole.bytes_read += file.bytes_read;
  for (FilePart& part : file.parts) {
    part.file = number;
    whole.parts.push_back(std::move(part));
  }
  std::ranges::move(file.named_data, std::back_inserter(whole.named_data));
}

Result<FileInspection> inspect_several(const std::string& path, const InspectOptions& options,
                                       const OpenFile& open_file) {
  if (options.duplicates || options.contents) {
    return with_advice(error_in(ErrorCode::kInvalidArgument, path,
                                "stands for several files, and what is in a file twice is found in one"),
                       {"give one of them"});
  }
  ETSTREAM_ASSIGN(OpenedWeights opened, open_weights({path}, {.open_file = open_file}));
  FileInspection out;
  for (const GivenWeights& given : opened.given) {
    for (const WeightFile& file : given.files) {
      ETSTREAM_ASSIGN(FileInspection found, inspect(file.file));
      add_inspection(out, std::move(found), file.path, file.tensors.size());
    }
  }
  for (const auto* const errors : {&opened.problems, &opened.flaws, &opened.warnings}) {
    for (const Error& error : *errors) out.notes.emplace_back(error);
  }
  return out;
}

}  // namespace

Result<FileInspection> inspect(const std::string& path, const InspectOptions& options,
                               const OpenFile& open_file) {
  return without_exceptions([&]() -> Result<FileInspection> {
    ETSTREAM_ASSIGN(const ReportedPath reported, reported_path(path, open_file));
    if (reported.has_several) return inspect_several(path, options, open_file);
    InspectOptions named = options;
    if (named.names.empty()) {
      ETSTREAM_ASSIGN(named.names, read_key_names_beside(reported.path, open_file));
    }
    ETSTREAM_ASSIGN(FileInspection out, inspect(reported.file, named));
    ETSTREAM_ASSIGN(const auto place, place_in_set(reported, open_file));
    if (place) out.notes.emplace_back(text("It is {}. The others are not listed here.", describe(*place)));
    if (const auto packed = packed_summary(reported.file)) {
      out.notes.emplace_back(
          text("It is packed, in {} ({} bytes). Offsets and sizes are those of the unpacked file.",
               readable_size(packed->packed_size), packed->packed_size));
    }
    return out;
  });
}

std::string piece_path(const FileInspection& inspection, const InspectedMethod::Tensor& tensor) {
  const bool is_alone = inspection.format == FileKind::kProgram;
  return data_path(is_alone ? "" : kProgramAbove, tensor.storage, tensor.data_index);
}

std::vector<std::string> named_paths(const FileInspection& inspection) {
  const auto before = repeats(inspection.named_data, &NamedTensorData::key);
  std::vector<std::string> out;
  for (const NamedTensorData& each : inspection.named_data) {
    out.push_back(numbered(named_path("", each.key), before[out.size()]));
  }
  return out;
}

std::string describe(const ValueInfo& info) {
  return match(
      info,
      [](const TensorInfo& tensor) {
        const bool is_contiguous = tensor.dim_order == contiguous_dim_order(tensor.sizes.size());
        return text("{} {}{}{}", name_of(tensor.scalar_type), list_text(tensor.sizes),
                    tensor.dynamism == ShapeDynamism::kStatic ? "" : " at most",
                    is_contiguous ? "" : text(" in dim_order {}", list_text(tensor.dim_order)));
      },
      [](std::int64_t value) { return text("integer {}", value); },
      [](bool value) { return std::string(value ? "bool true" : "bool false"); },
      [](double value) { return text("double {}", exact_text(value)); },
      [](const OtherInfo& other) { return other.kind; });
}

namespace {

class InfoList {
 public:
  explicit InfoList(const KeyNames& names) : names_(names) {}

  /// Returns the entry of a key, and makes it if it is new.
  NamedDataInfo& at(const std::string& key) {
    const auto [place, is_new] = places_.try_emplace(key, out_.size());
    if (!is_new) return out_[place->second];
    const auto name = names_.find(key);
    return out_.emplace_back(
        NamedDataInfo{key, {}, name == names_.end() ? "" : name->second, 0, std::nullopt, {}});
  }
  std::vector<NamedDataInfo> take() { return std::move(out_); }

 private:
  const KeyNames& names_;
  std::vector<NamedDataInfo> out_;
  std::map<std::string, std::size_t> places_;  // in `out_`, by key
};

Result<void> add_tensors(const pte::Program& program, InfoList& out) {
  ETSTREAM_ASSIGN(const auto methods, program.method_names());
  ETSTREAM_ASSIGN(const auto tensors, read_tensors(program));
  for (const ProgramTensor& tensor : tensors) {
    if (tensor.kind != TensorStorage::kExternal) continue;
    NamedDataInfo& info = out.at(tensor.name);
    const std::string asker = text("method {}", quote(methods[tensor.method]));
    if (info.asked_by.empty() || info.asked_by.back() != asker) info.asked_by.push_back(asker);
    if (info.offset || info.size != 0) continue;
    ETSTREAM_ASSIGN(const pte::Tensor table, program.tensor_at(tensor.position));
    ETSTREAM_ASSIGN(const TensorLayout layout, table.layout());
    const auto size = byte_size(layout.scalar_type, layout.sizes);
    info.size = size ? *size : 0;
  }
  return {};
}

}  // namespace

Result<std::vector<NamedDataInfo>> read_named_data_info(const ProgramFile& program, std::string_view above,
                                                        std::uint64_t base, const KeyNames& names) {
  InfoList out(names);
  ETSTREAM_ASSIGN(const auto named, pte::read_named_data(program.model()));
  for (const pte::NamedPayload& each : named) {
    if (each.key.starts_with(kMetadataPrefix)) continue;
    NamedDataInfo& info = out.at(each.key);
    if (info.offset) continue;  // ExecuTorch takes the first of a key
    info.path = named_path(above, each.key);
    info.size = each.data.size();
    info.offset = base + each.data.offset_in(program.file()).value_or(0);
  }
  ETSTREAM_TRY(add_tensors(program.model(), out));
  ETSTREAM_ASSIGN(const auto delegates, read_named_data_uses(program));
  for (const DelegateUses& delegate : delegates) {
    for (const NamedDataUse& use : delegate.uses) {
      NamedDataInfo& info = out.at(use.key);
      if (!info.offset && info.size == 0) info.size = use.size.value_or(0);
      info.asked_by.push_back(use.use.empty() ? delegate.asker : text("{}: {}", delegate.asker, use.use));
    }
  }
  return out.take();
}

}  // namespace etstream
