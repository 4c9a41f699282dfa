// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/segmented_bundle_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/text.h"
#include "base/try.h"
#include "bpte/segmented_bundle.h"
#include "container/findings.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "io/find_nonzero.h"
#include "io/read_pieces.h"
#include "layout/range_hasher.h"

namespace etstream {
namespace {

/// "FILE: offset N: expected..., found...".
template <class... Arguments>
Error finding(const ByteSource& file, std::uint64_t offset, Template<Arguments...> words,
              const Arguments&... arguments) {
  return unexpected(ErrorCode::kCorrupt, {file.name(), offset}, words, arguments...);
}

}  // namespace

Result<SegmentedBundleFile> SegmentedBundleFile::open(ByteSource file) {
  ETSTREAM_ASSIGN(const SegmentedBundleHeader header, read_segmented_bundle_header(file));
  ETSTREAM_ASSIGN(SegmentedBundleDirectory directory, read_segmented_bundle_directory(file, header));
  ETSTREAM_ASSIGN(const Schema* schema, segmented_bundle_schema());
  return SegmentedBundleFile(std::move(file), header, std::move(directory), *schema);
}

Result<FlatbufferView> SegmentedBundleFile::view() const {
  ETSTREAM_ASSIGN(ByteSource metadata, file_.slice(0, header_.extended.program_size));
  ETSTREAM_ASSIGN(FlatbufferView view,
                  FlatbufferView::open(fields_.schema, std::move(metadata), file_.name()));
  ETSTREAM_TRY(verify_flatbuffer(view));
  return view;
}

Result<void> SegmentedBundleFile::match(const TableReader& root) {
  ETSTREAM_ASSIGN(const TableList listed, root.tables(fields_.root.segments));
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
    if (size != segments[i].logical_size || !is_power_of_two(alignment) || offset % alignment != 0) {
      return segment.corrupt(
          text("a segment of {} bytes, aligned as it lies at {}", segments[i].logical_size, offset),
          text("{} bytes, aligned to {}", size, alignment));
    }
  }
  ETSTREAM_ASSIGN(program_segment_, root.scalar<std::uint32_t>(fields_.root.program_segment));
  if (program_segment_ >= segments.size()) {
    return root.corrupt(text("a program_segment below {}", segments.size()),
                        std::to_string(program_segment_));
  }
  ETSTREAM_ASSIGN(program_alignment_, root.scalar<std::uint32_t>(fields_.root.program_alignment));
  return read_original_file(root);
}

Result<void> SegmentedBundleFile::read_original_file(const TableReader& root) {
  ETSTREAM_ASSIGN(const auto table, root.child(fields_.root.original_file));
  if (!table) return {};
  ETSTREAM_ASSIGN(const auto metadata, table->scalar<std::uint32_t>(fields_.original_file.metadata_segment));
  ETSTREAM_ASSIGN(const auto payloads, table->bytes(fields_.original_file.payloads));
  constexpr std::uint64_t kStruct = 16;
  const std::uint64_t count = payloads ? payloads->size() / kStruct : 0;
  const std::size_t segments = directory_.segments.size();
  if (metadata >= segments || count >= segments) {
    return table->corrupt(text("an original file of less than {} segments", segments),
                          text("metadata in segment {}, and {} payloads", metadata, count));
  }
  OriginalFile out{segment(metadata), {}};
  std::uint64_t end = 0;   // of what the payloads and the metadata before them make
  std::uint64_t used = 0;  // of the metadata
  for (std::uint64_t i = 0; i < count; ++i) {
    std::array<std::byte, kStruct> bytes{};
    ETSTREAM_TRY(payloads->read_at(i * kStruct, bytes));
    std::uint64_t offset = 0;
    std::uint32_t number = 0;
    std::memcpy(&offset, bytes.data(), sizeof(offset));
    std::memcpy(&number, bytes.data() + sizeof(offset), sizeof(number));
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
  return file_.slice(header_.extended.segment_base_offset + segment.offset, segment.stored_size).value();
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
  const std::uint64_t base = header_.extended.segment_base_offset;
  std::uint64_t end = header_.extended.program_size;
  const auto check_padding = [&](std::uint64_t next) -> Result<void> {
    ETSTREAM_ASSIGN(const auto wrong, find_nonzero(file_, end, next));
    if (wrong)
      add_error(findings, finding(file_, wrong->offset, "zero, in the padding, found {}", wrong->value));
    return {};
  };
  std::vector<Trailer::Range> ranges = {{0, end}};
  std::vector<std::pair<ContentHash, std::string>> told = {{directory_.metadata, "the metadata"}};
  std::size_t part = 0;
  for (std::size_t i = 0; i < directory_.segments.size(); ++i) {
    const auto& segment = directory_.segments[i];
    ETSTREAM_TRY(check_padding(base + segment.offset));
    end = base + segment.offset + segment.stored_size;
    ranges.push_back({base + segment.offset, segment.stored_size});
    told.emplace_back(segment.hash, text("segment {} ({})", i, names[i]));
    for (; part < directory_.parts.size() && directory_.parts[part].segment == i; ++part) {
      const auto& piece = directory_.parts[part];
      ranges.push_back({base + segment.offset + piece.offset, piece.size});
      told.emplace_back(piece.hash, text("the part of {} at its offset {}", names[i], piece.offset));
    }
  }
  ETSTREAM_TRY(check_padding(header_.directory_offset));
  if (!directory_.hashed) {
    add_warning(findings, text("{}: was written without hashes, so damage can't be found", file_.name()));
    return {};
  }
  RangeHasher hasher(ranges);
  ETSTREAM_ASSIGN(const ByteSource before, file_.slice(0, header_.directory_offset));
  ETSTREAM_TRY(read_pieces(before, [&](std::span<const std::byte> bytes) { hasher.pass(bytes); }));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (hasher.hashes()[i] == told[i].first) continue;
    add_error(findings, finding(file_, ranges[i].offset,
                                "{} of {} bytes with the hash in the directory, found another: it is damaged",
                                told[i].second, ranges[i].size));
  }
  return {};
}

}  // namespace etstream
