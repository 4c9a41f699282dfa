// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/segmented_bundle_file.h"

#include <span>
#include <utility>

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/text.h"
#include "base/try.h"
#include "bpte/segmented_bundle.h"
#include "container/findings.h"
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
  const auto check_padding = [&](std::uint64_t begin, std::uint64_t end) -> Result<void> {
    ETSTREAM_ASSIGN(const auto wrong, find_nonzero(file_, begin, end));
    if (wrong)
      add_error(findings, finding(file_, wrong->offset, "zero, in the padding, found {}", wrong->value));
    return {};
  };
  std::uint64_t end = header_.extended.program_size;
  for (const auto& segment : directory_.segments) {
    const std::uint64_t begin = header_.extended.segment_base_offset + segment.offset;
    ETSTREAM_TRY(check_padding(end, begin));
    end = begin + segment.stored_size;
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
                  finding(file_, range.offset,
                          "{} of {} bytes with the hash in the directory, found another: it is damaged", what,
                          range.size));
      });
  return {};
}

}  // namespace etstream
