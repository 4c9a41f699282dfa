// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/segmented_bundle.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "bundled_program_fields_generated.h"
#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/append.h"
#include "etstream/program.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/struct_reader.h"
#include "formats/bpte/bundled_program_schema.h"
#include "formats/bpte/segmented_bundle_file.h"
#include "segmented_bundle_bfbs_generated.h"
#include "segmented_bundle_fields_generated.h"

namespace etstream {
namespace {

using Directory = SegmentedBundleDirectory;

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
      ETSTREAM_ASSIGN(ByteSource before, file.slice(end, payload.offset - end));
      rest.push_back(std::move(before));
      original_payloads.push_back(payload);
      end = payload.offset + all[payload.segment].source.size();
    }
    ETSTREAM_ASSIGN(ByteSource last, file.slice(end, file.size() - end));
    rest.push_back(std::move(last));
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
