// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/inspect.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"
#include "etstream/program_metadata.h"
#include "files/any_file.h"
#include "files/named_data_info.h"
#include "files/weight_paths.h"
#include "formats/checkpoint/weight_sets.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::uint64_t kLargestShown = 65536;

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

/// Describes a Tensor or a TensorInfo, "float32 [1, 3]", with its dim_order unless it is contiguous. `bound`
/// follows the sizes.
template <class Shaped>
std::string tensor_text(const Shaped& tensor, std::string_view bound = "") {
  const bool is_contiguous = tensor.dim_order == contiguous_dim_order(tensor.sizes.size());
  return text("{} {}{}{}", name_of(tensor.scalar_type), list_text(tensor.sizes), bound,
              is_contiguous ? "" : text(" in dim_order {}", list_text(tensor.dim_order)));
}

void add_part(FileInspection& inspection, std::string name, std::uint64_t offset, std::uint64_t size) {
  std::uint64_t alignment = kLargestShown;
  while (offset % alignment != 0) alignment /= 2;
  inspection.parts.push_back({std::move(name), offset, size, alignment});
}

/// Adds the part at `data`, unless it is empty.
void add_part(FileInspection& inspection, std::string name, const ByteSource& data, const ByteSource& file) {
  if (data.size() > 0) add_part(inspection, std::move(name), data.offset_in(file).value_or(0), data.size());
}

void add_segments(const std::vector<SegmentInfo>& segments, std::string_view prefix, std::uint64_t base,
                  FileInspection& inspection) {
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].size == 0) continue;
    const std::string use = segments[i].use.empty() ? "" : text(" ({})", segments[i].use);
    add_part(inspection, text("{}segment {}{}", prefix, i, use), base + segments[i].offset, segments[i].size);
  }
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
  for (const GraphDelegate& delegate : graph.delegates) method.delegates.push_back({delegate});
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

/// Adds the parts of a program that begins at `base` in the file.
Result<void> add_program(const ProgramFile& program, std::string_view prefix, std::uint64_t base,
                         const KeyNames& names, FileInspection& inspection) {
  ETSTREAM_TRY(set_program(program, inspection));
  add_part(inspection, text("{}flatbuffer", prefix), base, program.flatbuffer_size());
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  add_segments(segments, prefix, base, inspection);
  ETSTREAM_ASSIGN(inspection.payloads, read_delegate_payloads(program));
  ETSTREAM_ASSIGN(inspection.program_data, read_named_data_info(program, base, names));
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

/// Adds the tensors among the values. `bundle` is the file with their data.
void add_tensors(const std::vector<Value>& values, const std::string& where, const ByteSource& bundle,
                 FileInspection& inspection) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&values[i]);
    if (!tensor) continue;
    add_part(inspection, text("{}{}: {}", where, i, tensor_text(*tensor)), tensor->data, bundle);
  }
}

Result<void> add_file(const BundledProgramFile& bundle, const KeyNames& names, FileInspection& inspection) {
  inspection.version = bundle.version();
  inspection.suites = bundle.suites();
  const auto program = bundle.open_program();
  if (program) {
    ETSTREAM_ASSIGN(inspection.memory_alignment, memory_alignment(bundle, *program));
    ETSTREAM_TRY(add_program(*program, "program: ", bundle.program_offset(), names, inspection));
  } else {
    add_part(inspection, "program (not one that can be read)", bundle.program_offset(),
             bundle.program().size());
  }
  for (const auto& suite : bundle.suites()) {
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle.test_case(suite, i));
      const std::string where = text("{} case {}", quote(suite.method_name), i);
      add_tensors(test_case.inputs, where + " input ", bundle.file(), inspection);
      add_tensors(test_case.expected_outputs, where + " expected output ", bundle.file(), inspection);
    }
  }
  return {};
}

Result<void> add_file(const TensorDataFile& file, const KeyNames& /*names*/, FileInspection& inspection) {
  ETSTREAM_ASSIGN(inspection.version, file.version());
  ETSTREAM_ASSIGN(inspection.memory_alignment, memory_alignment(file));
  ETSTREAM_ASSIGN(inspection.named_data, file.entries());
  add_part(inspection, "flatbuffer", 0, file.flatbuffer_size());
  ETSTREAM_ASSIGN(const auto segments, file.segments());
  add_segments(segments, "", 0, inspection);
  return {};
}

Result<void> add_file(const CheckpointFile& checkpoint, const KeyNames& /*names*/,
                      FileInspection& inspection) {
  inspection.version = checkpoint.version;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    // Elements that are scattered, as in torch's files, are no part of the file by themselves.
    const std::string_view elsewhere = tensor.layout || tensor.shape ? ", strided" : ", in parts";
    const std::string_view how = tensor.data.offset_in(checkpoint.file) ? "" : elsewhere;
    add_part(inspection, text("{}: {}{}", quote(tensor.name), type_text(tensor), how), tensor.data,
             checkpoint.file);
  }
  return {};
}

Result<void> add_file(const FatContainerFile& container, const KeyNames& /*names*/,
                      FileInspection& inspection) {
  inspection.version = FatContainerFile::version();
  ETSTREAM_ASSIGN(inspection.memory_alignment, memory_alignment(container));
  for (const FatPayload& payload : container.payloads()) {
    if (payload.data.size() == 0) continue;
    ETSTREAM_ASSIGN(const auto kind, kind_of(payload));
    const std::string what = kind ? text(": {}", describe(*kind)) : "";
    add_part(inspection, text("payload {}{}", quote(payload.name), what), payload.offset,
             payload.data.size());
  }
  return {};
}

Result<void> add_file(const NativePackageFile& package, const KeyNames& /*names*/,
                      FileInspection& inspection) {
  add_part(inspection, "graph", package.graph(), package.file());
  std::vector<std::string> names;
  names.reserve(package.constants().size());
  for (const CheckpointTensor& constant : package.constants()) names.push_back(quote(constant.name));
  for (const ConstantAlias& alias : package.aliases()) names[alias.constant] += ", " + quote(alias.key);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const CheckpointTensor& constant = package.constants()[i];
    add_part(inspection, text("{}: {}", names[i], type_text(constant)), constant.data, package.file());
  }
  return {};
}

/// Sorts the parts by their places, each once though it may be shared, and sets metadata_size to the bytes
/// outside of them.
void settle_parts(FileInspection& inspection) {
  auto& parts = inspection.parts;
  const auto place = [](const FilePart& part) { return std::pair(part.offset, part.size); };
  std::ranges::stable_sort(parts, {}, place);
  const auto at_one_place = [&](const FilePart& a, const FilePart& b) { return place(a) == place(b); };
  parts.erase(std::unique(parts.begin(), parts.end(), at_one_place), parts.end());
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
  std::uint64_t begin = 0;
  for (const UpdateSummary::Piece& piece : out.update->piece_list) {
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
    const std::uint64_t end = std::min(begin + kPiece, out.update->original_size);
    add_part(out, text("bytes {} to {}, of which {} change", begin, end, piece.changed_size), piece.offset,
             piece.size);
    begin = end;
  }
  settle_parts(out);
  ETSTREAM_TRY(file.check_unchanged());
  return out;
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
    settle_parts(inspection);
    inspection.bytes_read = counted->bytes_read();
    if (options.duplicates || options.contents) {
      ETSTREAM_ASSIGN(inspection.contents, read_contents(file));
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

std::string describe(const ValueInfo& info) {
  return match(
      info,
      [](const TensorInfo& tensor) {
        const bool dynamic = tensor.dynamism != ShapeDynamism::kStatic;
        return tensor_text(tensor, dynamic ? " at most" : "");
      },
      [](std::int64_t value) { return text("integer {}", value); },
      [](bool value) { return std::string(value ? "bool true" : "bool false"); },
      [](double value) { return text("double {}", exact_text(value)); },
      [](const OtherInfo& other) { return other.kind; });
}

}  // namespace etstream
