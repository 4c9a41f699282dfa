// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/segmented_bundle.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "bpte/bundled_program_bindings.h"
#include "bpte/segmented_bundle_directory.h"
#include "etstream/program.h"
#include "flatbuffer/embedded_schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/struct_reader.h"
#include "layout/append.h"
#include "segmented_bundle_bfbs_generated.h"

namespace etstream {
namespace {

using Directory = SegmentedBundleDirectory;

/// The largest page size that devices have, so that the program can be mapped where it lies, and a multiple
/// of every file system's block, so that it can be cloned.
constexpr std::uint32_t kProgramAlignment = 16384;
constexpr std::uint32_t kTensorAlignment = 64;
constexpr std::uint32_t kProgramSegment = 0;
/// Tensor data from this size on has a segment of its own: the 150 bytes or so that this takes are 1 % of it,
/// and what is smaller does not make the metadata, which a reader may hold in memory, large.
constexpr std::uint64_t kSmallestSegment = std::uint64_t{16} << 10;

/// What the field `segments` says of one, and where its bytes come from.
struct PlannedSegment {
  std::uint64_t size = 0;
  std::uint32_t alignment = 1;
  ByteSource source;
  std::string label;
};

struct OriginalPayloadStruct {
  std::uint64_t offset = 0;
  std::uint32_t segment = 0;
  std::uint32_t padding = 0;
};

/// The content's segments: the program, the large tensors in file order, and what an original file adds.
class Segments {
 public:
  Segments(const BundledProgram& bundle, std::uint32_t program_alignment) {
    add(bundle.program, program_alignment, "program");
    for (const MethodTestSuite& suite : bundle.method_test_suites) {
      for (const MethodTestCase& test_case : suite.test_cases) {
        add(test_case.inputs);
        add(test_case.expected_outputs);
      }
    }
  }

  /// Adds what keeps the layout of `file`, from which the content was read: where in it which segment lies,
  /// and the rest of it as one segment more.
  Result<void> add_original(const ByteSource& file) {
    std::vector<OriginalPayloadStruct> found;
    for (std::uint32_t i = 0; i < all_.size(); ++i) {
      const auto offset = all_[i].source.offset_in(file);
      if (offset && all_[i].size != 0) found.push_back({*offset, i, 0});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::pair(a.offset, a.segment) < std::pair(b.offset, b.segment);
    });
    std::vector<ByteSource> rest;
    std::uint64_t end = 0;
    for (const OriginalPayloadStruct& payload : found) {
      if (payload.offset < end) continue;  // what is shared in the file stays there once
      ETSTREAM_ASSIGN(ByteSource before, file.slice(end, payload.offset - end));
      rest.push_back(std::move(before));
      original_payloads_.push_back(payload);
      end = payload.offset + all_[payload.segment].size;
    }
    ETSTREAM_ASSIGN(ByteSource last, file.slice(end, file.size() - end));
    rest.push_back(std::move(last));
    ETSTREAM_ASSIGN(ByteSource metadata, ByteSource::concatenation(std::move(rest)));
    original_metadata_ = add(std::move(metadata), 1, "original metadata");
    return {};
  }

  [[nodiscard]] const std::vector<PlannedSegment>& all() const { return all_; }
  [[nodiscard]] std::optional<std::uint32_t> of(const void* tensor) const {
    const auto found = of_tensors_.find(tensor);
    return found == of_tensors_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::optional<std::uint32_t> original_metadata() const { return original_metadata_; }
  [[nodiscard]] const std::vector<OriginalPayloadStruct>& original_payloads() const {
    return original_payloads_;
  }

 private:
  std::uint32_t add(ByteSource source, std::uint32_t alignment, std::string label) {
    const auto number = static_cast<std::uint32_t>(all_.size());
    const std::uint64_t size = source.size();
    all_.push_back({size, alignment, std::move(source), std::move(label)});
    return number;
  }
  void add(const std::vector<Value>& values) {
    for (const Value& value : values) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (!tensor || tensor->data.size() < kSmallestSegment) continue;
      of_tensors_.emplace(tensor, add(tensor->data, kTensorAlignment, "Tensor.data"));
    }
  }

  std::vector<PlannedSegment> all_;
  std::unordered_map<const void*, std::uint32_t> of_tensors_;
  std::optional<std::uint32_t> original_metadata_;
  std::vector<OriginalPayloadStruct> original_payloads_;
};

/// Gives the fields of BP08 from the description, and the new ones from the segments.
class SegmentedReader final : public ValueReader {
 public:
  /// A field, and what gives it from the struct that stands for its table.
  struct Binding {
    std::string_view table;
    std::string_view field;
    FieldValue (SegmentedReader::*read)(const void* object) const;
  };
  static const std::array<Binding, 11> kBindings;

  SegmentedReader(StructReader& inner, BoundFields<Binding> bound, const Segments& segments,
                  std::uint32_t program_alignment)
      : inner_(inner), bound_(std::move(bound)), segments_(segments), program_alignment_(program_alignment) {}

  ValueNode root() override { return inner_.root(); }
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override { return inner_.element(vector, i); }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    const Binding* binding = bound_[table][field];
    return binding ? (this->*binding->read)(node.object) : inner_.field(node, table, field);
  }

 private:
  FieldValue empty(const void*) const { return BytesValue(); }
  FieldValue segments(const void*) const { return table_vector(segments_.all()); }
  FieldValue program_segment(const void*) const { return scalar(kProgramSegment); }
  FieldValue program_alignment(const void*) const { return scalar(program_alignment_); }
  FieldValue original_file(const void*) const {
    return segments_.original_metadata() ? FieldValue(TableValue{{&segments_, 0}}) : AbsentValue{};
  }
  FieldValue data(const void* tensor) const {
    return segments_.of(tensor) ? FieldValue(BytesValue()) : get<Tensor>(tensor).data;
  }
  FieldValue data_segment(const void* tensor) const {
    const auto segment = segments_.of(tensor);
    return segment ? scalar(*segment) : AbsentValue{};
  }
  FieldValue size(const void* segment) const { return scalar(get<PlannedSegment>(segment).size); }
  FieldValue alignment(const void* segment) const { return scalar(get<PlannedSegment>(segment).alignment); }
  FieldValue metadata_segment(const void*) const { return scalar(*segments_.original_metadata()); }
  FieldValue payloads(const void*) const { return std::as_bytes(std::span(segments_.original_payloads())); }

  StructReader& inner_;
  const BoundFields<Binding> bound_;
  const Segments& segments_;
  const std::uint32_t program_alignment_;
};

constexpr std::array<SegmentedReader::Binding, 11> SegmentedReader::kBindings = {{
    {"BundledProgram", "program", &SegmentedReader::empty},
    {"BundledProgram", "segments", &SegmentedReader::segments},
    {"BundledProgram", "program_segment", &SegmentedReader::program_segment},
    {"BundledProgram", "program_alignment", &SegmentedReader::program_alignment},
    {"BundledProgram", "original_file", &SegmentedReader::original_file},
    {"Tensor", "data", &SegmentedReader::data},
    {"Tensor", "data_segment", &SegmentedReader::data_segment},
    {"Segment", "size", &SegmentedReader::size},
    {"Segment", "alignment", &SegmentedReader::alignment},
    {"OriginalFile", "metadata_segment", &SegmentedReader::metadata_segment},
    {"OriginalFile", "payloads", &SegmentedReader::payloads},
}};

/// Puts segments and directory behind the metadata.
class Planner {
 public:
  Planner(FilePlan metadata, const Segments& segments) : layout_(std::move(metadata)), segments_(segments) {
    header_.extended.length = SegmentedBundleHeader::kSize;
    header_.extended.program_size = layout_.size;
  }

  Result<FilePlan> run(bool hash, const std::vector<Directory::Part>& parts) {
    if (hash) directory_.parts = parts;
    for (const PlannedSegment& segment : segments_.all()) ETSTREAM_TRY(place(segment));
    header_.extended.segment_data_size = layout_.size - header_.extended.segment_base_offset;
    ETSTREAM_TRY(pad(layout_, Directory::kAlignment));
    header_.directory_offset = layout_.size;
    header_.directory_size = directory_.size();
    ETSTREAM_TRY(append(layout_, 1, "directory", directory_source(hash)));
    layout_.extents[1].source = ByteSource::owned(to_bytes(header_));
    if (hash) layout_.trailer = trailer();
    layout_.payload_size = layout_.size - layout_.metadata_size;
    return std::move(layout_);
  }

 private:
  Result<void> place(const PlannedSegment& segment) {
    ETSTREAM_TRY(pad(layout_, segment.alignment));
    if (directory_.segments.empty()) header_.extended.segment_base_offset = layout_.size;
    const std::uint64_t offset = layout_.size - header_.extended.segment_base_offset;
    directory_.segments.push_back({offset, segment.size, segment.size, 0, {}});
    return append(layout_, segment.alignment, segment.label, segment.source);
  }

  ByteSource directory_source(bool hash) const {
    if (hash) return ByteSource::zeros(directory_.size());
    return ByteSource::owned(to_bytes(directory_));
  }

  /// The directory is what the hashes of metadata, segments and parts make of it.
  Trailer trailer() const {
    const std::uint64_t base = header_.extended.segment_base_offset;
    Trailer out;
    out.hashed.push_back({0, header_.extended.program_size});
    struct Target {
      bool is_part = false;
      std::size_t index = 0;
    };
    auto targets = std::make_shared<std::vector<Target>>();
    for (std::size_t i = 0, part = 0; i < directory_.segments.size(); ++i) {
      const Directory::Segment& segment = directory_.segments[i];
      out.hashed.push_back({base + segment.offset, segment.stored_size});
      targets->push_back({false, i});
      for (; part < directory_.parts.size() && directory_.parts[part].segment == i; ++part) {
        const Directory::Part& piece = directory_.parts[part];
        out.hashed.push_back({base + segment.offset + piece.offset, piece.size});
        targets->push_back({true, part});
      }
    }
    out.bytes = [directory = directory_, targets](std::span<const ContentHash> hashes) mutable {
      directory.hashed = true;
      directory.metadata = hashes[0];
      for (std::size_t i = 0; i < targets->size(); ++i) {
        const Target& target = (*targets)[i];
        (target.is_part ? directory.parts[target.index].hash : directory.segments[target.index].hash) =
            hashes[i + 1];
      }
      return to_bytes(directory);
    };
    return out;
  }

  FilePlan layout_;
  const Segments& segments_;
  SegmentedBundleHeader header_;
  Directory directory_;
};

/// The program's own alignment, and its parts that lie apart, which are hashed each; none of a program that
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
  out.parts.push_back({kProgramSegment, 0, program->flatbuffer_size(), {}});
  std::uint64_t end = program->flatbuffer_size();
  for (const SegmentInfo& segment : segments) {
    if (segment.size == 0 || segment.offset < end) continue;
    out.parts.push_back({kProgramSegment, segment.offset, segment.size, {}});
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
    if (options.original) ETSTREAM_TRY(segments.add_original(*options.original));
    ETSTREAM_ASSIGN(auto bound, bind_fields(*schema, bundled_program_bindings()));
    StructReader fields(std::move(bound), &bundle);
    using Bindings = std::span<const SegmentedReader::Binding>;
    ETSTREAM_ASSIGN(auto own, bind_fields(*schema, Bindings(SegmentedReader::kBindings)));
    SegmentedReader reader(fields, std::move(own), segments, options.program_alignment);
    ETSTREAM_ASSIGN(FilePlan metadata, pack(*schema, reader, {.header_size = SegmentedBundleHeader::kSize}));
    return Planner(std::move(metadata), segments).run(options.hash, program.parts);
  });
}

}  // namespace etstream
