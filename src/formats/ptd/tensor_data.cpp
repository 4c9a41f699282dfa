// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor_data.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/file_plan.h"
#include "etstream/packed_file.h"
#include "flat_tensor_bfbs_generated.h"
#include "flat_tensor_fields_generated.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/struct_reader.h"
#include "flatbuffer/table_reader.h"
#include "formats/segments/data_segments.h"
#include "formats/segments/file_kind.h"
#include "formats/tensor/dimensions.h"

namespace etstream {

/// The header of the file as it lies at offset 8, little-endian (extension/flat_tensor/serialize of
/// ExecuTorch 1.5.1). The flatbuffer's first 8 bytes lie before the header, and the others follow it. The
/// flatbuffer's size does not count the header. Its offset is the header's length with the padding behind it,
/// so that offset and size add up to the flatbuffer's end. Offsets are from the start of the file.
struct TensorDataHeader {
  static constexpr std::uint64_t kPosition = 8;
  static constexpr std::string_view kMagic = "FH01";
  static constexpr std::uint32_t kSize = 40;
  static constexpr std::uint32_t kPaddedSize = 48;  // as ExecuTorch writes it

  std::array<char, 4> magic = {'F', 'H', '0', '1'};
  std::uint32_t length = kSize;
  std::uint64_t flatbuffer_offset = kPaddedSize;
  std::uint64_t flatbuffer_size = 0;
  std::uint64_t segment_base_offset = 0;
  std::uint64_t segment_data_size = 0;

  [[nodiscard]] std::uint64_t flatbuffer_end() const noexcept { return flatbuffer_offset + flatbuffer_size; }
};
static_assert(sizeof(TensorDataHeader) == TensorDataHeader::kSize);

namespace {

constexpr std::uint32_t kMostDataAlignment = std::uint32_t{1} << 30;

/// The structs from which the schema's tables are read.
struct DataSegmentTable {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
struct NamedDataTable {
  const TensorData::Entry* entry = nullptr;
  std::uint32_t segment = 0;
};
struct FlatTensorTable {
  std::vector<DataSegmentTable> segments;
  std::vector<NamedDataTable> named_data;
};

std::vector<FieldBinding> bindings_of(const flat_tensor::Fields& fields) {
  // clang-format off
  return {
      {fields.flat_tensor.segments, [](const void* o) { return table_vector(get<FlatTensorTable>(o).segments); }},
      {fields.flat_tensor.named_data, [](const void* o) { return table_vector(get<FlatTensorTable>(o).named_data); }},
      {fields.data_segment.offset, [](const void* o) { return scalar(get<DataSegmentTable>(o).offset); }},
      {fields.data_segment.size, [](const void* o) { return scalar(get<DataSegmentTable>(o).size); }},
      {fields.named_data.key, [](const void* o) -> FieldValue { return std::string_view(get<NamedDataTable>(o).entry->key); }},
      {fields.named_data.segment_index, [](const void* o) { return scalar(get<NamedDataTable>(o).segment); }},
      {fields.named_data.tensor_layout, [](const void* o) -> FieldValue {
        const auto& layout = get<NamedDataTable>(o).entry->layout;
        return layout ? FieldValue(TableValue{{&*layout, 0}}) : AbsentValue{};
      }},
      {fields.tensor_layout.scalar_type, [](const void* o) { return scalar(get<TensorLayout>(o).scalar_type); }},
      {fields.tensor_layout.sizes, [](const void* o) { return scalar_vector(get<TensorLayout>(o).sizes); }},
      {fields.tensor_layout.dim_order, [](const void* o) { return scalar_vector(get<TensorLayout>(o).dim_order); }},
  };
  // clang-format on
}

template <class... Arguments>
Error invalid(Template<Arguments...> words, const Arguments&... arguments) {
  return make_error(ErrorCode::kInvalidArgument, words, arguments...);
}

Result<void> check_segment_alignment(std::uint32_t alignment) {
  return check_alignment("segment alignment", alignment, kMostDataAlignment);
}

Result<void> check_entry(const TensorData& data, const TensorData::Entry& entry) {
  const std::string name = text("tensor data: key {}", quote(entry.key));
  if (entry.buffer >= data.buffers.size()) {
    return invalid("{}: expected a buffer below {}, found {}", name, data.buffers.size(), entry.buffer);
  }
  if (!entry.layout || data.unchecked) return {};
  const TensorLayout& layout = *entry.layout;
  const auto bytes = byte_size(layout.scalar_type, layout.sizes);
  if (!bytes) return error_in(bytes.error().code, name, "{}", bytes.error().message);
  const std::uint64_t size = data.buffers[entry.buffer].data.size();
  if (*bytes != size) {
    return invalid("{}: expected the {} bytes of {}, found {}", name, *bytes, describe(layout), size);
  }
  if (!is_permutation(layout.dim_order, layout.sizes.size())) {
    return invalid("{}: expected each of its {} dimensions once as dim_order, found {}", name,
                   layout.sizes.size(), list_text(layout.dim_order));
  }
  return {};
}

Result<void> check(const TensorData& data) {
  ETSTREAM_TRY(check_segment_alignment(data.segment_alignment));
  for (const TensorData::Buffer& buffer : data.buffers)
    ETSTREAM_TRY(check_segment_alignment(buffer.alignment));
  for (const TensorData::Entry& entry : data.entries) ETSTREAM_TRY(check_entry(data, entry));
  const auto repeated = first_repeated(data.entries, &TensorData::Entry::key);
  if (repeated) return invalid("tensor data: key {} comes twice", quote(*repeated));
  return {};
}

constexpr std::string_view kEnding = ".ptd";

/// A buffer, and the entries that share it, by key.
struct KeyGroup {
  std::uint32_t buffer = 0;
  std::vector<const TensorData::Entry*> entries;
};

/// Returns the buffers that have entries, sorted by their first keys.
Result<std::vector<KeyGroup>> sorted_groups(const TensorData& data) {
  std::vector<KeyGroup> all(data.buffers.size());
  for (const TensorData::Entry& entry : data.entries) {
    if (entry.buffer >= all.size()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "tensor data: key {}: expected a buffer below {}, found {}", quote(entry.key),
                        all.size(), entry.buffer);
    }
    all[entry.buffer].entries.push_back(&entry);
  }
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    all[i].buffer = i;
    std::ranges::sort(all[i].entries, {}, &TensorData::Entry::key);
  }
  std::erase_if(all, [](const KeyGroup& group) { return group.entries.empty(); });
  std::ranges::sort(all, {},
                    [](const KeyGroup& group) { return std::string_view(group.entries.front()->key); });
  return all;
}

/// Returns the tensor data of some groups: entries by key, and buffers in the order of the entries.
TensorData shard_of(const TensorData& data, std::span<const KeyGroup> groups) {
  TensorData out;
  out.segment_alignment = data.segment_alignment;
  out.unchecked = data.unchecked;
  for (const KeyGroup& group : groups) {
    for (const TensorData::Entry* const entry : group.entries) out.entries.push_back(*entry);
  }
  std::ranges::sort(out.entries, {}, &TensorData::Entry::key);
  std::map<std::uint32_t, std::uint32_t> numbers;  // here, by those there
  for (TensorData::Entry& entry : out.entries) {
    const auto [number, is_new] =
        numbers.try_emplace(entry.buffer, static_cast<std::uint32_t>(out.buffers.size()));
    if (is_new) out.buffers.push_back(data.buffers[entry.buffer]);
    entry.buffer = number->second;
  }
  return out;
}

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

Result<FilePlan> plan(const TensorData& data) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_TRY(check(data));
    FlatTensorTable root;
    std::vector<Segment> segments;
    std::vector<std::optional<std::uint32_t>> numbers(data.buffers.size());  // of their segments
    for (const TensorData::Entry& entry : data.entries) {
      auto& number = numbers[entry.buffer];
      if (!number) {
        const TensorData::Buffer& buffer = data.buffers[entry.buffer];
        number = static_cast<std::uint32_t>(segments.size());
        segments.push_back({buffer.data, std::max(buffer.alignment, data.segment_alignment), entry.key});
      }
      root.named_data.push_back({&entry, *number});
    }
    ETSTREAM_ASSIGN(const auto offsets, place(segments));
    for (std::size_t i = 0; i < segments.size(); ++i) {
      root.segments.push_back({offsets[i], segments[i].source.size()});
    }
    ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<flat_tensor::FlatTensorBinarySchema>());
    const auto bindings = bindings_of(flat_tensor::Fields(*schema));
    StructReader reader(bind_fields(*schema, bindings), &root);
    ETSTREAM_ASSIGN(
        FilePlan plan,
        pack(*schema, reader, {.header_size = TensorDataHeader::kPaddedSize, .order = ObjectOrder::kFlatc}));
    TensorDataHeader header;
    header.flatbuffer_size = plan.size - TensorDataHeader::kPaddedSize;
    ETSTREAM_ASSIGN(header.segment_base_offset, append(plan, segments, offsets, data.segment_alignment));
    header.segment_data_size = plan.size - header.segment_base_offset;
    std::vector<std::byte> padded(TensorDataHeader::kPaddedSize);
    std::ranges::copy(std::as_bytes(std::span(&header, 1)), padded.begin());
    fill_header(plan, std::move(padded));
    plan.payload_size = plan.size - plan.metadata_size;
    return plan;
  });
}

Result<std::vector<TensorData>> split(const TensorData& data, std::uint64_t most) {
  return without_exceptions([&]() -> Result<std::vector<TensorData>> {
    if (most == 0) {
      return make_error(ErrorCode::kInvalidArgument, "a shard of at most 0 bytes: expected at least 1");
    }
    ETSTREAM_ASSIGN(const std::vector<KeyGroup> groups, sorted_groups(data));
    std::vector<TensorData> out;
    auto begin = groups.begin();
    std::uint64_t size = 0;
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      const std::uint64_t bytes = data.buffers[group->buffer].data.size();
      if (bytes > most) {
        return make_error(
            ErrorCode::kInvalidArgument,
            "{} has {}, and a shard at most {}: give shards at least as many, as no data is cut",
            quote(group->entries.front()->key), counted(bytes, "byte"), most);
      }
      if (bytes > most - size && group != begin) {
        out.push_back(shard_of(data, {begin, group}));
        begin = group;
        size = 0;
      }
      size += bytes;
    }
    if (begin != groups.end() || out.empty()) out.push_back(shard_of(data, {begin, groups.end()}));
    return out;
  });
}

std::string shard_path(const std::string& path, std::uint32_t number, std::uint32_t count) {
  std::string_view stem = unpacked_name(path);
  const std::string_view suffix = std::string_view(path).substr(stem.size());
  if (stem.ends_with(kEnding)) stem.remove_suffix(kEnding.size());
  return text("{}-{:05}-of-{:05}{}{}", stem, number, count, kEnding, suffix);
}

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
    std::vector<NamedTensorData> entries;
    const auto add = [&](const TableReader& named) -> Result<void> {
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
      return {};
    };
    ETSTREAM_TRY(for_each(root.tables(impl_->fields.flat_tensor.named_data), add));
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
    return note_corrupt(check(), findings);
  });
}

}  // namespace etstream
