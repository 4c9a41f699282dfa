// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor_data_file.h"

#include <array>
#include <set>
#include <span>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flat_tensor_bfbs_generated.h"
#include "flat_tensor_fields_generated.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/ptd/tensor_data_header.h"
#include "formats/segments/data_segments.h"
#include "formats/segments/file_kind.h"
#include "formats/segments/tensor_shape.h"

namespace etstream {
struct TensorDataFile::Impl {
  ByteSource file;
  TensorDataHeader header;
  FlatbufferView view;  // of the flatbuffer alone
  flat_tensor::Fields fields{view.schema()};

  [[nodiscard]] Result<std::vector<SegmentInfo>> segments(const TableReader& root) const {
    ETSTREAM_ASSIGN(const TableList listed, root.tables(fields.flat_tensor.segments));
    return read_segments(listed, fields.data_segment, file, header.segment_base_offset);
  }
};

namespace {

/// Reads the header. Its ranges are inside the file, and segments lie behind the flatbuffer.
Result<TensorDataHeader> read_tensor_data_header(const ByteSource& file) {
  TensorDataHeader header;
  const std::string name = file.name();
  const auto corrupt = [&]<class... Arguments>(std::size_t offset, Template<Arguments...> words,
                                               const Arguments&... arguments) {
    return unexpected(ErrorCode::kCorrupt, {name, TensorDataHeader::kPosition + offset, "header"}, words,
                      arguments...);
  };
  if (file.size() < TensorDataHeader::kPosition + TensorDataHeader::kSize) {
    return corrupt(0, "{} bytes, found a file of {}", TensorDataHeader::kSize, file.size());
  }
  ETSTREAM_TRY(file.read_at(TensorDataHeader::kPosition, std::as_writable_bytes(std::span(&header, 1))));
  std::array<char, 4> identifier{};
  ETSTREAM_TRY(file.read_at(4, std::as_writable_bytes(std::span(identifier))));
  if (const std::string_view found(identifier.data(), identifier.size()); found != "FT01") {
    return unexpected(ErrorCode::kCorrupt, {name, 4}, "the identifier of tensor data (FT01), found {}",
                      quote(found));
  }
  if (const std::string_view found(header.magic.data(), header.magic.size());
      found != TensorDataHeader::kMagic) {
    return corrupt(0, "the magic {}, found {}", quote(TensorDataHeader::kMagic), quote(found));
  }
  if (header.length < TensorDataHeader::kSize) {
    return corrupt(4, "a length of at least {}, found {}", TensorDataHeader::kSize, header.length);
  }
  if (!range_fits(header.flatbuffer_offset, header.flatbuffer_size, file.size())) {
    return corrupt(8, "a flatbuffer inside the file's {} bytes, found {} bytes from {} on", file.size(),
                   header.flatbuffer_size, header.flatbuffer_offset);
  }
  if (!range_fits(header.segment_base_offset, header.segment_data_size, file.size())) {
    return corrupt(24, "segments inside the file's {} bytes, found {} bytes from {} on", file.size(),
                   header.segment_data_size, header.segment_base_offset);
  }
  if (header.segment_base_offset != 0 && header.segment_base_offset < header.flatbuffer_end()) {
    return corrupt(24, "segments behind the flatbuffer, which ends at {}, found them from {} on",
                   header.flatbuffer_end(), header.segment_base_offset);
  }
  return header;
}

std::string use_of(const NamedTensorData& entry) {
  if (!entry.layout) return quote(entry.key);
  return text("{}: {}", quote(entry.key), describe(*entry.layout));
}

}  // namespace

TensorDataFile::TensorDataFile(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
TensorDataFile::TensorDataFile(TensorDataFile&&) noexcept = default;
TensorDataFile& TensorDataFile::operator=(TensorDataFile&&) noexcept = default;
TensorDataFile::~TensorDataFile() = default;

Result<TensorDataFile> TensorDataFile::open(ByteSource file) {
  const ByteSource whole = file;
  auto opened = without_exceptions([&]() -> Result<TensorDataFile> {
    ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<flat_tensor::FlatTensorBinarySchema>());
    ETSTREAM_ASSIGN(const TensorDataHeader header, read_tensor_data_header(file));
    ETSTREAM_ASSIGN(ByteSource flatbuffer, file.slice(0, header.flatbuffer_end()));
    ETSTREAM_ASSIGN(FlatbufferView view, FlatbufferView::open(*schema, std::move(flatbuffer), file.name()));
    ETSTREAM_TRY(verify_flatbuffer(view));
    return TensorDataFile(std::make_unique<const Impl>(Impl{std::move(file), header, std::move(view)}));
  });
  return unless_other(whole, {"tensor data (FT01)", {FileKind::kTensorData}}, std::move(opened));
}

const ByteSource& TensorDataFile::file() const noexcept { return impl_->file; }
std::uint64_t TensorDataFile::flatbuffer_size() const noexcept { return impl_->header.flatbuffer_end(); }

Result<std::uint32_t> TensorDataFile::version() const {
  return without_exceptions([&]() -> Result<std::uint32_t> {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(impl_->view));
    return root.scalar<std::uint32_t>(impl_->fields.flat_tensor.version);
  });
}

Result<std::vector<NamedTensorData>> TensorDataFile::entries() const {
  return without_exceptions([&]() -> Result<std::vector<NamedTensorData>> {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(impl_->view));
    ETSTREAM_ASSIGN(const auto segments, impl_->segments(root));
    const flat_tensor::NamedDataFields& fields = impl_->fields.named_data;
    ETSTREAM_ASSIGN(const TableList listed, root.tables(impl_->fields.flat_tensor.named_data));
    std::vector<NamedTensorData> entries;
    for (std::uint32_t i = 0; i < listed.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader named, listed.at(i));
      NamedTensorData entry;
      ETSTREAM_ASSIGN(auto key, named.string(fields.key));
      entry.key = std::move(key).value_or("");
      ETSTREAM_ASSIGN(entry.key_place, named.characters(fields.key));
      ETSTREAM_ASSIGN(const auto layout, named.child(fields.tensor_layout));
      if (layout) {
        ETSTREAM_ASSIGN(entry.layout, read_tensor_layout(*layout, impl_->fields.tensor_layout));
      }
      ETSTREAM_ASSIGN(entry.segment, named.scalar<std::uint32_t>(fields.segment_index));
      if (entry.segment >= segments.size()) {
        return named.corrupt(text("a segment below {}", segments.size()), std::to_string(entry.segment));
      }
      const SegmentInfo& segment = segments[entry.segment];
      entry.offset = segment.offset;
      ETSTREAM_ASSIGN(entry.data, impl_->file.slice(segment.offset, segment.size));
      entries.push_back(std::move(entry));
    }
    return entries;
  });
}

Result<std::vector<SegmentInfo>> TensorDataFile::segments() const {
  return without_exceptions([&]() -> Result<std::vector<SegmentInfo>> {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(impl_->view));
    ETSTREAM_ASSIGN(auto segments, impl_->segments(root));
    ETSTREAM_ASSIGN(const auto entries, this->entries());
    std::vector<std::uint64_t> more(segments.size());
    for (const NamedTensorData& entry : entries) {
      std::string& use = segments[entry.segment].use;
      if (use.empty()) {
        use = use_of(entry);
      } else {
        ++more[entry.segment];
      }
    }
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (more[i] > 0) segments[i].use += text(" and {}", counted(more[i], "more key"));
    }
    return segments;
  });
}

namespace {

/// Checks an entry's layout against `data_size`, the size of its segment in bytes.
Result<void> check_entry(const TableReader& named, const flat_tensor::Fields& fields, std::uint64_t data_size,
                         Findings& findings) {
  ETSTREAM_ASSIGN(const auto layout, named.child(fields.named_data.tensor_layout));
  if (!layout) return {};
  ETSTREAM_ASSIGN(const auto bytes, check_shape(*layout, fields.tensor_layout, findings));
  if (!bytes || *bytes == data_size) return {};
  const Error wrong = layout->corrupt(text("data of the {} bytes that its layout says", *bytes),
                                      text("a segment of {}", data_size));
  // A reader takes as many bytes as the layout says.
  if (*bytes > data_size) {
    add_error(findings, wrong);
  } else {
    add_warning(findings, wrong);
  }
  return {};
}

Result<void> check_entries(const TableReader& root, const flat_tensor::Fields& all,
                           const TensorDataHeader& header, const std::vector<SegmentInfo>& segments,
                           Findings& findings) {
  const flat_tensor::NamedDataFields& fields = all.named_data;
  ETSTREAM_ASSIGN(const TableList listed, root.tables(all.flat_tensor.named_data));
  std::set<std::string> keys;
  for (std::uint32_t i = 0; i < listed.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader named, listed.at(i));
    const auto error = [&](std::string_view expected, std::string_view found) {
      add_error(findings, named.corrupt(expected, found));
    };
    ETSTREAM_ASSIGN(const auto key, named.string(fields.key));
    if (!key) error(fields.key.full_name(), "none");
    if (key && !keys.insert(*key).second) error("each key once", quote(*key));
    ETSTREAM_ASSIGN(const auto index, named.scalar<std::uint32_t>(fields.segment_index));
    if (index >= segments.size()) {
      error(text("{} from 0 to below {}", fields.segment_index.full_name(), segments.size()),
            std::to_string(index));
      continue;
    }
    // ExecuTorch compares two ends that it counts differently: a segment's end from the base offset, and the
    // end of all segments from the beginning of the file.
    const SegmentInfo& segment = segments[index];
    const std::uint64_t end = segment.offset - header.segment_base_offset + segment.size;
    const std::uint64_t announced = header.segment_base_offset + header.segment_data_size;
    if (end > announced) {
      error(text("a segment inside the {} bytes that the header announces, or ExecuTorch does not load it",
                 announced),
            text("its end at {}", end));
    }
    ETSTREAM_TRY(check_entry(named, all, segment.size, findings));
  }
  return {};
}

}  // namespace

Result<void> TensorDataFile::verify(Findings& findings) const {
  constexpr std::uint32_t kVersion = 0;  // that ExecuTorch 1.5.1 writes
  return without_exceptions([&]() -> Result<void> {
    const auto check = [&]() -> Result<void> {
      const FlatbufferView& view = impl_->view;
      const TensorDataHeader& header = impl_->header;
      const flat_tensor::Fields& fields = impl_->fields;
      const UsedRange header_range{TensorDataHeader::kPosition, TensorDataHeader::kPosition + header.length};
      ETSTREAM_ASSIGN(auto flaws, find_flaws_of_layout(view, {header_range}));
      add_warnings(findings, std::move(flaws));
      ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
      ETSTREAM_ASSIGN(const auto version, root.scalar<std::uint32_t>(fields.flat_tensor.version));
      if (version > kVersion) {
        add_error(findings, root.corrupt(text("schema version {}", kVersion), std::to_string(version)));
      }
      for (const BoundField* const needed : {&fields.flat_tensor.segments, &fields.flat_tensor.named_data}) {
        ETSTREAM_ASSIGN(const bool has, root.has(*needed));
        if (!has) add_error(findings, root.corrupt(needed->full_name(), "none"));
      }
      ETSTREAM_ASSIGN(const auto segments, impl_->segments(root));
      const SegmentRoom room{"the file", header.flatbuffer_end(), header.segment_base_offset,
                             header.segment_data_size, TensorDataHeader::kPosition + 32};
      ETSTREAM_TRY(check_segments(view, impl_->file, segments, room, findings));
      return check_entries(root, fields, header, segments, findings);
    };
    auto done = check();
    if (done || done.error().code != ErrorCode::kCorrupt) return done;
    add_error(findings, std::move(done).error());
    return {};
  });
}

}  // namespace etstream
