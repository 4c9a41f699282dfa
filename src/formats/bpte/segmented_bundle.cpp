// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/segmented_bundle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "bundled_program_fields_generated.h"
#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/file_plan.h"
#include "core/layout/range_hasher.h"
#include "etstream/program.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/struct_reader.h"
#include "formats/bpte/bundled_program.h"
#include "segmented_bundle_bfbs_generated.h"
#include "segmented_bundle_fields_generated.h"

namespace etstream {
namespace {

using Directory = SegmentedBundleDirectory;

constexpr std::uint32_t kHashedFlag = 1;

/// The header of the directory as it lies in the file, before the entries.
struct DirectoryHeader {
  static constexpr std::array<char, 4> kMagic = {'B', 'P', 'S', 'd'};
  static constexpr std::uint32_t kVersion = 1;

  std::array<char, 4> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t segments = 0;
  std::uint32_t parts = 0;
  std::uint32_t flags = 0;
  std::array<std::uint32_t, 3> reserved{};
  ContentHash metadata{};
  ContentHash own{};  // of the directory, with zeros here
};
static_assert(sizeof(DirectoryHeader) == Directory::kHeaderSize);

template <class T>
void append_bytes(std::vector<std::byte>& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  const std::size_t end = out.size();
  out.resize(end + bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.data() + end);
}

ContentHash hash_of(std::span<const std::byte> bytes) {
  ContentHasher hasher;
  hasher.update(bytes);
  return hasher.hash();
}

std::vector<std::byte> to_bytes(const SegmentedBundleHeader& header) {
  std::vector<std::byte> out(SegmentedBundleHeader::kSize);
  write_extended_header(header.extended, out);
  std::memcpy(out.data() + 32, &header.directory_offset, sizeof(header.directory_offset));
  std::memcpy(out.data() + 40, &header.directory_size, sizeof(header.directory_size));
  return out;
}

/// Returns the directory's bytes, with its own hash.
std::vector<std::byte> to_bytes(const Directory& directory) {
  DirectoryHeader header;
  header.segments = static_cast<std::uint32_t>(directory.segments.size());
  header.parts = static_cast<std::uint32_t>(directory.parts.size());
  header.flags = directory.hashed ? kHashedFlag : 0;
  header.metadata = directory.metadata;
  std::vector<std::byte> out;
  out.reserve(directory.size());
  append_bytes(out, std::span<const DirectoryHeader>(&header, 1));
  append_bytes(out, std::span(directory.segments));
  append_bytes(out, std::span(directory.parts));
  header.own = hash_of(out);
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

/// Calls `visit(range, hash, segment, part)` with each range of the file for which `directory` has a hash, in
/// file order: the metadata, then each segment and its parts. `segment` is the segment's number, or nothing
/// for the metadata. `part` is null except for a part.
template <class AnyDirectory, class Visit>
void visit_hashes(AnyDirectory& directory, const ExtendedHeader& header, Visit visit) {
  constexpr const Directory::Part* kNoPart = nullptr;
  visit(Trailer::Range{0, header.program_size}, directory.metadata, std::optional<std::size_t>(), kNoPart);
  auto part = directory.parts.begin();
  for (std::size_t i = 0; i < directory.segments.size(); ++i) {
    auto& segment = directory.segments[i];
    const std::uint64_t begin = header.segment_base_offset + segment.offset;
    visit(Trailer::Range{begin, segment.size}, segment.hash, std::optional(i), kNoPart);
    for (; part != directory.parts.end() && part->segment == i; ++part) {
      const Directory::Part* const found = &*part;
      visit(Trailer::Range{begin + part->offset, part->size}, part->hash, std::optional(i), found);
    }
  }
}

/// Makes the error "FILE: offset N: segmented bundle: expected..., found...".
template <class... Arguments>
Error wrong(ErrorCode code, const ByteSource& file, std::uint64_t offset, Template<Arguments...> words,
            const Arguments&... arguments) {
  return unexpected(code, {file.name(), offset, "segmented bundle"}, words, arguments...);
}

Result<void> check_segment_entries(const ByteSource& file, const SegmentedBundleHeader& header,
                                   const Directory& directory) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < directory.segments.size(); ++i) {
    const Directory::Segment& segment = directory.segments[i];
    const std::uint64_t place = header.directory_offset + Directory::kHeaderSize + sizeof(segment) * i;
    if (segment.reserved != 0 || segment.reserved_too != decltype(segment.reserved_too){}) {
      return wrong(ErrorCode::kCorrupt, file, place + 24, "zeros, which are reserved, found others");
    }
    if (segment.offset < end ||
        !range_fits(segment.offset, segment.size, header.extended.segment_data_size) ||
        segment.size != segment.same_size) {
      return wrong(ErrorCode::kCorrupt, file, place,
                   "segment {} from offset {} on inside the {} bytes of segments, with its size twice, "
                   "found {} bytes, {} the second time, at {}",
                   i, end, header.extended.segment_data_size, segment.size, segment.same_size,
                   segment.offset);
    }
    end = segment.offset + segment.size;
  }
  return {};
}

Result<void> check_part_entries(const ByteSource& file, std::uint64_t place, const Directory& directory) {
  std::uint32_t segment = 0;
  std::uint64_t end = 0;  // of the part before, in its segment
  for (const Directory::Part& part : directory.parts) {
    if (part.segment > segment) end = 0;
    if (part.segment >= directory.segments.size() || part.segment < segment || part.offset < end ||
        part.reserved != 0 || !range_fits(part.offset, part.size, directory.segments[part.segment].size)) {
      return wrong(ErrorCode::kCorrupt, file, place,
                   "parts in order and apart, inside their segments, found {} bytes at {} of segment {}",
                   part.size, part.offset, part.segment);
    }
    segment = part.segment;
    end = part.offset + part.size;
    place += sizeof(part);
  }
  return {};
}

Result<Directory> read_directory(const ByteSource& file, const SegmentedBundleHeader& header) {
  const std::uint64_t at = header.directory_offset;
  DirectoryHeader head;
  ETSTREAM_TRY(file.read_at(at, std::as_writable_bytes(std::span(&head, 1))));
  if (head.magic != DirectoryHeader::kMagic) {
    return wrong(ErrorCode::kCorrupt, file, at, "the directory's magic BPSd, found none");
  }
  if (head.version != DirectoryHeader::kVersion) {
    return wrong(ErrorCode::kUnsupported, file, at + 4, "directory version {}, found {}",
                 DirectoryHeader::kVersion, head.version);
  }
  const std::uint64_t parts_at = Directory::kHeaderSize + sizeof(Directory::Segment) * head.segments;
  const std::uint64_t size = parts_at + sizeof(Directory::Part) * head.parts;
  if (size != header.directory_size) {
    return wrong(ErrorCode::kCorrupt, file, at + 8,
                 "a directory of {} bytes, found {} segments and {} parts, which take {}",
                 header.directory_size, head.segments, head.parts, size);
  }
  if (head.flags > kHashedFlag || head.reserved != decltype(head.reserved){}) {
    return wrong(ErrorCode::kCorrupt, file, at + 16, "zeros, which are reserved, found others");
  }
  Directory out{head.flags == kHashedFlag, head.metadata, std::vector<Directory::Segment>(head.segments),
                std::vector<Directory::Part>(head.parts)};
  ETSTREAM_TRY(file.read_at(at + Directory::kHeaderSize, std::as_writable_bytes(std::span(out.segments))));
  ETSTREAM_TRY(file.read_at(at + parts_at, std::as_writable_bytes(std::span(out.parts))));
  if (!std::equal(head.own.begin(), head.own.end(), to_bytes(out).begin() + offsetof(DirectoryHeader, own))) {
    return wrong(ErrorCode::kCorrupt, file, at, "a directory with the hash that it names, found another");
  }
  ETSTREAM_TRY(check_segment_entries(file, header, out));
  ETSTREAM_TRY(check_part_entries(file, at + parts_at, out));
  const bool has_hash =
      out.metadata != ContentHash{} || !out.parts.empty() ||
      std::any_of(out.segments.begin(), out.segments.end(),
                  [](const Directory::Segment& segment) { return segment.hash != ContentHash{}; });
  if (!out.hashed && has_hash) {
    return wrong(ErrorCode::kCorrupt, file, at + 16, "no hashes and no parts, as the flags say, found some");
  }
  return out;
}

/// The alignment of the program: the largest page size that devices have, so that it can be mapped in place,
/// and a multiple of every file system's block, so that it can be cloned.
constexpr std::uint32_t kProgramAlignment = 16384;
constexpr std::uint32_t kTensorAlignment = 64;
constexpr std::uint32_t kProgramSegment = 0;
/// The size from which tensor data has a segment of its own. The segment takes about 150 bytes, 1 % of this
/// size. Smaller data does not make the metadata large, which a reader may hold in memory.
constexpr std::uint64_t kSmallestSegment = std::uint64_t{16} << 10;

/// An element of the field `segments`, and where its bytes come from.
struct PlannedSegment {
  ByteSource source;
  std::uint32_t alignment = 1;
  std::string label;
};

/// The content's segments: the program, the large tensors in file order, and what an original file adds.
struct Segments {
  Segments(const BundledProgram& bundle, std::uint32_t program_alignment) {
    add(bundle.program, program_alignment, "program");
    for (const MethodTestSuite& suite : bundle.method_test_suites) {
      for (const MethodTestCase& test_case : suite.test_cases) {
        add(test_case.inputs);
        add(test_case.expected_outputs);
      }
    }
  }

  void add(ByteSource source, std::uint32_t alignment, std::string label) {
    all.push_back({std::move(source), alignment, std::move(label)});
  }

  void add(const std::vector<Value>& values) {
    for (const Value& value : values) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (!tensor || tensor->data.size() < kSmallestSegment) continue;
      of_tensors.emplace(tensor, static_cast<std::uint32_t>(all.size()));
      add(tensor->data, kTensorAlignment, "Tensor.data");
    }
  }

  /// Adds the layout of `file`, from which the content was read: the place of each segment in it, and the
  /// rest of its bytes as one more segment.
  Result<void> add_original(const ByteSource& file) {
    std::vector<OriginalPayload> found;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const auto offset = all[i].source.offset_in(file);
      if (offset && all[i].source.size() != 0) found.push_back({*offset, i});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::pair(a.offset, a.segment) < std::pair(b.offset, b.segment);
    });
    std::vector<ByteSource> rest;
    std::uint64_t end = 0;
    for (const OriginalPayload& payload : found) {
      if (payload.offset < end) continue;  // what is shared in the file stays there once
      ETSTREAM_ASSIGN(rest.emplace_back(), file.slice(end, payload.offset - end));
      original_payloads.push_back(payload);
      end = payload.offset + all[payload.segment].source.size();
    }
    ETSTREAM_ASSIGN(rest.emplace_back(), file.slice(end, file.size() - end));
    ETSTREAM_ASSIGN(ByteSource metadata, ByteSource::concatenation(std::move(rest)));
    original_metadata = static_cast<std::uint32_t>(all.size());
    add(std::move(metadata), 1, "original metadata");
    return {};
  }

  [[nodiscard]] bool has(const void* tensor) const { return of_tensors.contains(tensor); }

  std::uint32_t bp08_alignment = 0;  // of the program in a BP08 file of the same content
  std::vector<PlannedSegment> all;
  std::map<const void*, std::uint32_t> of_tensors;
  std::optional<std::uint32_t> original_metadata;
  std::vector<OriginalPayload> original_payloads;
};

/// A field that comes from segments, or that has another value than in BP08, with the function that reads it
/// from the struct that stands for its table.
struct SegmentedBinding {
  BoundField field;
  FieldValue (*read)(const Segments& segments, const void* object);
};

std::vector<SegmentedBinding> segmented_bindings(const segmented_bundle::Fields& fields) {
  // clang-format off
  return {
      {fields.bundled_program.program, [](const Segments&, const void*) -> FieldValue { return BytesValue(); }},
      {fields.bundled_program.segments, [](const Segments& s, const void*) { return table_vector(s.all); }},
      {fields.bundled_program.program_segment, [](const Segments&, const void*) { return scalar(kProgramSegment); }},
      {fields.bundled_program.program_alignment, [](const Segments& s, const void*) { return scalar(s.bp08_alignment); }},
      {fields.bundled_program.original_file, [](const Segments& s, const void*) { return s.original_metadata ? FieldValue(TableValue{{&s, 0}}) : AbsentValue{}; }},
      {fields.tensor.data, [](const Segments& s, const void* o) { return s.has(o) ? FieldValue(BytesValue()) : get<Tensor>(o).data; }},
      {fields.tensor.data_segment, [](const Segments& s, const void* o) { return s.has(o) ? scalar(s.of_tensors.at(o)) : AbsentValue{}; }},
      {fields.segment.size, [](const Segments&, const void* o) { return scalar(get<PlannedSegment>(o).source.size()); }},
      {fields.segment.alignment, [](const Segments&, const void* o) { return scalar(get<PlannedSegment>(o).alignment); }},
      {fields.original_file.metadata_segment, [](const Segments& s, const void*) { return scalar(*s.original_metadata); }},
      {fields.original_file.payloads, [](const Segments& s, const void*) { return FieldValue(std::as_bytes(std::span(s.original_payloads))); }},
  };
  // clang-format on
}

/// Gives the fields of BP08 from the description, and the new ones from the segments.
class SegmentedReader final : public StructReader {
 public:
  SegmentedReader(const BundledProgram& bundle, BoundFields<FieldBinding> common, const Segments& segments,
                  BoundFields<SegmentedBinding> own)
      : StructReader(std::move(common), &bundle), own_(std::move(own)), segments_(segments) {}

  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    const SegmentedBinding* binding = own_[table][field];
    return binding ? binding->read(segments_, node.object) : StructReader::field(node, table, field);
  }

 private:
  const BoundFields<SegmentedBinding> own_;
  const Segments& segments_;
};

/// Puts segments and directory behind the metadata.
class Planner {
 public:
  Planner(FilePlan metadata, const Segments& segments) : layout_(std::move(metadata)), segments_(segments) {
    header_.extended.length = SegmentedBundleHeader::kSize;
    header_.extended.program_size = layout_.size;
  }

  Result<FilePlan> run(bool hash, const std::vector<Directory::Part>& parts) {
    directory_.hashed = hash;
    if (hash) directory_.parts = parts;
    for (const PlannedSegment& segment : segments_.all) ETSTREAM_TRY(place(segment));
    header_.extended.segment_data_size = layout_.size - header_.extended.segment_base_offset;
    ETSTREAM_TRY(pad(layout_, Directory::kAlignment));
    header_.directory_offset = layout_.size;
    header_.directory_size = directory_.size();
    ETSTREAM_TRY(
        append(layout_, 1, "directory",
               hash ? ByteSource::zeros(directory_.size()) : ByteSource::owned(to_bytes(directory_))));
    fill_header(layout_, to_bytes(header_));
    if (hash) layout_.trailer = trailer();
    layout_.payload_size = layout_.size - layout_.metadata_size;
    return std::move(layout_);
  }

 private:
  Result<void> place(const PlannedSegment& segment) {
    ETSTREAM_TRY(pad(layout_, segment.alignment));
    if (directory_.segments.empty()) header_.extended.segment_base_offset = layout_.size;
    const std::uint64_t offset = layout_.size - header_.extended.segment_base_offset;
    const std::uint64_t size = segment.source.size();
    directory_.segments.push_back({.offset = offset, .size = size, .same_size = size});
    return append(layout_, segment.alignment, segment.label, segment.source);
  }

  /// Returns the directory, made from the hashes of metadata, segments and parts.
  Trailer trailer() {
    Trailer out;
    visit_hashes(directory_, header_.extended,
                 [&](const Trailer::Range& range, auto&&...) { out.hashed.push_back(range); });
    out.bytes = [directory = directory_,
                 header = header_.extended](std::span<const ContentHash> hashes) mutable {
      auto next = hashes.begin();
      visit_hashes(directory, header, [&](const auto&, ContentHash& hash, auto&&...) { hash = *next++; });
      return to_bytes(directory);
    };
    return out;
  }

  FilePlan layout_;
  const Segments& segments_;
  SegmentedBundleHeader header_;
  Directory directory_;
};

/// Finds the program's own alignment, and the parts of it that are hashed separately; nothing if the program
/// can't be read.
struct ProgramExtents {
  std::uint32_t alignment = kProgramAlignment;
  std::vector<Directory::Part> parts;
};

Result<ProgramExtents> extents_of(const ByteSource& source) {
  ProgramExtents out;
  const auto program = ProgramFile::open(source);
  if (!program) {
    if (program.error().code == ErrorCode::kCorrupt) return out;
    return program.error();
  }
  ETSTREAM_ASSIGN(const auto alignment, program->segment_alignment());
  out.alignment = std::max(kProgramAlignment, static_cast<std::uint32_t>(alignment));
  ETSTREAM_ASSIGN(auto segments, program->segments());
  std::sort(segments.begin(), segments.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.offset < b.offset; });
  out.parts.push_back({.segment = kProgramSegment, .size = program->flatbuffer_size()});
  std::uint64_t end = program->flatbuffer_size();
  for (const SegmentInfo& segment : segments) {
    if (segment.size == 0 || segment.offset < end) continue;
    out.parts.push_back({.segment = kProgramSegment, .offset = segment.offset, .size = segment.size});
    end = segment.offset + segment.size;
  }
  return out;
}

}  // namespace

Result<SegmentedBundleHeader> read_segmented_bundle_header(const ByteSource& file) {
  constexpr std::uint64_t kPosition = ExtendedHeader::kPosition;
  SegmentedBundleHeader header;
  ETSTREAM_ASSIGN(header.extended, read_extended_header(file, file.name()));
  if (header.extended.length < SegmentedBundleHeader::kSize) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 4,
                 "an extended header of at least {} bytes, found {}", SegmentedBundleHeader::kSize,
                 header.extended.length);
  }
  std::array<std::uint64_t, 4> own{};  // behind the extended header
  ETSTREAM_TRY(file.read_at(kPosition + ExtendedHeader::kSize, std::as_writable_bytes(std::span(own))));
  header.directory_offset = own[0];
  header.directory_size = own[1];
  if (own[2] != 0 || own[3] != 0) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 48, "zeros, which are reserved, found others");
  }
  const auto end = checked_add(header.directory_offset, header.directory_size);
  if (!end || *end != file.size() || header.directory_size < Directory::kHeaderSize ||
      header.directory_offset % Directory::kAlignment != 0 ||
      header.directory_offset < header.extended.program_size) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 32,
                 "a directory behind the metadata that ends the file's {} bytes, found {} bytes from {} on",
                 file.size(), header.directory_size, header.directory_offset);
  }
  const ExtendedHeader& extended = header.extended;
  const auto segments_end = checked_add(extended.segment_base_offset, extended.segment_data_size);
  if (!segments_end || *segments_end > header.directory_offset ||
      extended.segment_base_offset < extended.program_size) {
    return wrong(ErrorCode::kCorrupt, file, kPosition + 16,
                 "segments between metadata and directory, found {} bytes from {} on",
                 extended.segment_data_size, extended.segment_base_offset);
  }
  return header;
}

Result<SegmentedBundleFile> SegmentedBundleFile::open(ByteSource file) {
  ETSTREAM_ASSIGN(const SegmentedBundleHeader header, read_segmented_bundle_header(file));
  ETSTREAM_ASSIGN(SegmentedBundleDirectory directory, read_directory(file, header));
  ETSTREAM_ASSIGN(const Schema* schema, segmented_bundle_schema());
  return SegmentedBundleFile(std::move(file), header, std::move(directory), *schema);
}

Result<void> SegmentedBundleFile::match(const TableReader& root) {
  ETSTREAM_ASSIGN(const TableList listed, root.tables(fields_.bundled_program.segments));
  const auto& segments = directory_.segments;
  if (listed.size() != segments.size()) {
    return root.corrupt(text("the {} segments of the directory", segments.size()),
                        std::to_string(listed.size()));
  }
  for (std::uint32_t i = 0; i < listed.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader segment, listed.at(i));
    ETSTREAM_ASSIGN(const auto size, segment.scalar<std::uint64_t>(fields_.segment.size));
    ETSTREAM_ASSIGN(const auto alignment, segment.scalar<std::uint32_t>(fields_.segment.alignment));
    const std::uint64_t offset = header_.extended.segment_base_offset + segments[i].offset;
    if (size != segments[i].size || !is_power_of_two(alignment) || offset % alignment != 0) {
      return segment.corrupt(
          text("a segment of {} bytes, aligned as it lies at {}", segments[i].size, offset),
          text("{} bytes, aligned to {}", size, alignment));
    }
  }
  ETSTREAM_ASSIGN(program_segment_, root.scalar<std::uint32_t>(fields_.bundled_program.program_segment));
  if (program_segment_ >= segments.size()) {
    return root.corrupt(text("a program_segment below {}", segments.size()),
                        std::to_string(program_segment_));
  }
  ETSTREAM_ASSIGN(program_alignment_, root.scalar<std::uint32_t>(fields_.bundled_program.program_alignment));
  return read_original_file(root);
}

Result<void> SegmentedBundleFile::read_original_file(const TableReader& root) {
  ETSTREAM_ASSIGN(const auto table, root.child(fields_.bundled_program.original_file));
  if (!table) return {};
  ETSTREAM_ASSIGN(const auto metadata, table->scalar<std::uint32_t>(fields_.original_file.metadata_segment));
  ETSTREAM_ASSIGN(const auto payloads, table->bytes(fields_.original_file.payloads));
  const std::uint64_t count = payloads ? payloads->size() / sizeof(OriginalPayload) : 0;
  const std::size_t segments = directory_.segments.size();
  if (metadata >= segments || count >= segments) {
    return table->corrupt(text("an original file of less than {} segments", segments),
                          text("metadata in segment {}, and {} payloads", metadata, count));
  }
  OriginalFile out{segment(metadata), {}};
  std::uint64_t end = 0;   // of what the payloads and the metadata before them make
  std::uint64_t used = 0;  // of the metadata
  for (std::uint64_t i = 0; i < count; ++i) {
    OriginalPayload payload;
    ETSTREAM_TRY(payloads->read_at(i * sizeof(payload), std::as_writable_bytes(std::span(&payload, 1))));
    const auto [offset, number, padding] = payload;
    if (number >= segments || offset < end || offset - end > out.metadata.size() - used) {
      return table->corrupt(
          text("payloads of an original file in order, inside it, of segments below {}", segments),
          text("payload {} at {} of segment {}", i, offset, number));
    }
    used += offset - end;
    out.payloads.push_back({offset, segment(number)});
    end = offset + out.payloads.back().source.size();
  }
  original_file_ = std::move(out);
  return {};
}

ByteSource SegmentedBundleFile::segment(std::uint32_t number) const {
  const auto& segment = directory_.segments[number];
  // The directory was read inside the file's bounds.
  return file_.slice(header_.extended.segment_base_offset + segment.offset, segment.size).value();
}

Result<std::optional<std::uint32_t>> SegmentedBundleFile::data_segment(const TableReader& tensor) const {
  ETSTREAM_ASSIGN(const bool has, tensor.has(fields_.tensor.data_segment));
  if (!has) return std::optional<std::uint32_t>();
  ETSTREAM_ASSIGN(const auto number, tensor.scalar<std::uint32_t>(fields_.tensor.data_segment));
  ETSTREAM_ASSIGN(const auto inline_data, tensor.bytes(fields_.tensor.data));
  if (number >= directory_.segments.size() || (inline_data && inline_data->size() != 0)) {
    return tensor.corrupt(text("a data_segment below {} and no data beside it", directory_.segments.size()),
                          std::to_string(number));
  }
  return std::optional(number);
}

Result<void> SegmentedBundleFile::verify(const std::vector<std::string>& names, Findings& findings) const {
  const auto check_padding = [&](std::uint64_t begin, std::uint64_t end) -> Result<void> {
    ETSTREAM_ASSIGN(const auto wrong, find_nonzero(file_, begin, end));
    if (wrong) {
      add_error(findings, unexpected(ErrorCode::kCorrupt, {file_.name(), wrong->offset},
                                     "zero, in the padding, found {}", wrong->value));
    }
    return {};
  };
  std::uint64_t end = header_.extended.program_size;
  for (const auto& segment : directory_.segments) {
    const std::uint64_t begin = header_.extended.segment_base_offset + segment.offset;
    ETSTREAM_TRY(check_padding(end, begin));
    end = begin + segment.size;
  }
  ETSTREAM_TRY(check_padding(end, header_.directory_offset));
  if (!directory_.hashed) {
    add_warning(findings, text("{}: was written without hashes, so damage can't be found", file_.name()));
    return {};
  }
  std::vector<Trailer::Range> ranges;
  visit_hashes(directory_, header_.extended,
               [&](const Trailer::Range& range, auto&&...) { ranges.push_back(range); });
  RangeHasher hasher(ranges);
  ETSTREAM_ASSIGN(const ByteSource before, file_.slice(0, header_.directory_offset));
  ETSTREAM_TRY(read_pieces(before, [&](std::span<const std::byte> bytes) { hasher.pass(bytes); }));
  auto found = hasher.hashes().begin();
  visit_hashes(
      directory_, header_.extended,
      [&](const Trailer::Range& range, const ContentHash& hash, std::optional<std::size_t> segment,
          const SegmentedBundleDirectory::Part* part) {
        if (*found++ == hash) return;
        const std::string what = part ? text("the part of {} at its offset {}", names[*segment], part->offset)
                                 : segment ? text("segment {} ({})", *segment, names[*segment])
                                           : "the metadata";
        add_error(findings,
                  unexpected(ErrorCode::kCorrupt, {file_.name(), range.offset},
                             "{} of {} bytes with the hash in the directory, found another: it is damaged",
                             what, range.size));
      });
  return {};
}

Result<const Schema*> segmented_bundle_schema() {
  return embedded_schema<segmented_bundle::BundledProgramBinarySchema>();
}

Result<FilePlan> plan_segmented_bundle(const BundledProgram& bundle, const SegmentedBundleOptions& options) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const Schema* schema, segmented_bundle_schema());
    ETSTREAM_ASSIGN(const ProgramExtents program, extents_of(bundle.program));
    Segments segments(bundle, program.alignment);
    segments.bp08_alignment = options.program_alignment;
    if (options.original) ETSTREAM_TRY(segments.add_original(*options.original));
    const auto common = bundled_program_bindings(bundled_program::Fields(*schema));
    const auto own = segmented_bindings(segmented_bundle::Fields(*schema));
    SegmentedReader reader(bundle, bind_fields(*schema, common), segments, bind_fields(*schema, own));
    ETSTREAM_ASSIGN(FilePlan metadata, pack(*schema, reader, {.header_size = SegmentedBundleHeader::kSize}));
    return Planner(std::move(metadata), segments).run(options.hash, program.parts);
  });
}

}  // namespace etstream
