// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/program_model.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "formats/segments/data_segments.h"

namespace etstream::pte {

Result<std::unique_ptr<const Program>> Program::open(std::shared_ptr<const Schema> schema, ByteSource file,
                                                     const ExtendedHeader& header, std::string name) {
  ETSTREAM_ASSIGN(ByteSource flatbuffer, file.slice(0, header.program_size));
  ETSTREAM_ASSIGN(FlatbufferView view, FlatbufferView::open(*schema, std::move(flatbuffer), std::move(name)));
  ETSTREAM_TRY(verify_flatbuffer(view));
  ETSTREAM_ASSIGN(const TableView root, view.root());
  return std::unique_ptr<const Program>(
      new Program(std::move(schema), std::move(file), header, std::move(view), root));
}

Result<std::uint64_t> Program::header_alignment() const {
  constexpr std::uint64_t kMost = 65536;
  const std::uint64_t begin = ExtendedHeader::kPosition + ExtendedHeader::kSize;
  const std::uint64_t end = std::min(view_.file().size(), begin + 2 * kMost);
  ETSTREAM_ASSIGN(const auto first, view_.find_nonzero(begin, end));
  return std::min(kMost, std::bit_floor((first ? first->offset : end) - ExtendedHeader::kPosition));
}

Program::Program(std::shared_ptr<const Schema> schema, ByteSource file, const ExtendedHeader& header,
                 FlatbufferView view, const TableView& root)
    : schema_(std::move(schema)),
      file_(std::move(file)),
      header_(header),
      view_(std::move(view)),
      fields_{*schema_},
      root_(fields_, TableReader(view_, root, schema_->root_index())) {}

Result<std::uint32_t> Program::version() const {
  return root_.scalar<std::uint32_t>(fields_.program.version);
}

Result<std::span<const std::string>> Program::method_names() const {
  const std::lock_guard lock(mutex_);
  if (!method_names_) {
    std::vector<std::string> names;
    ETSTREAM_TRY(for_each(methods(), [&](const Method& method) -> Result<void> {
      ETSTREAM_ASSIGN(names.emplace_back(), method.name());
      return {};
    }));
    method_names_ = std::move(names);
  }
  return std::span<const std::string>(*method_names_);
}

Result<std::span<const SegmentInfo>> Program::segments() const {
  const std::lock_guard lock(mutex_);
  if (!segments_) {
    ETSTREAM_ASSIGN(const TableList listed, root_.tables(fields_.program.segments));
    ETSTREAM_ASSIGN(auto segments,
                    read_segments(listed, fields_.data_segment, file_, header_.segment_base_offset));
    ETSTREAM_TRY(note_uses(*this, segments));
    segments_ = std::move(segments);
  }
  return std::span<const SegmentInfo>(*segments_);
}

Result<Tensor> Program::tensor_at(std::uint64_t position) const {
  ETSTREAM_ASSIGN(const TableView table, view_.table(position));
  return Tensor(fields_, TableReader(view_, table, fields_.tensor.index()));
}

Result<ByteSource> Program::segment_data(std::uint64_t position, std::uint64_t index) const {
  ETSTREAM_ASSIGN(const auto segments, this->segments());
  if (index >= segments.size()) {
    return view_.corrupt(position, text("a segment below {}", segments.size()), std::to_string(index));
  }
  const SegmentInfo& segment = segments[static_cast<std::size_t>(index)];
  return file_.slice(segment.offset, segment.size);
}

template <class T>
Result<T> Program::entry(const BoundField& field, std::uint64_t position, std::uint64_t index) const {
  ETSTREAM_ASSIGN(const auto all, root_.list<T>(field));
  if (index < all.size()) return all.at(index);
  return view_.corrupt(position, text("an index below {} in {}", all.size(), field.name()),
                       std::to_string(index));
}

Result<ByteSource> Program::tensor_data(const Tensor& tensor, const Storage& storage,
                                        std::uint64_t size) const {
  if (storage.kind == TensorStorage::kMutable) {
    ETSTREAM_ASSIGN(const auto pieces, entry<Subsegments>(fields_.program.mutable_data_segments,
                                                          tensor.position(), storage.mutable_data));
    return piece(tensor, pieces, storage.index, size);
  }
  ETSTREAM_ASSIGN(const auto pieces, constants());
  if (pieces) {
    ETSTREAM_ASSIGN(const auto offsets, pieces->offsets());
    if (offsets.size() > 0) return piece(tensor, *pieces, storage.index, size);
  }
  return inline_constant(tensor, storage.index, size);
}

Result<ByteSource> Program::inline_constant(const Tensor& tensor, std::uint32_t index,
                                            std::uint64_t size) const {
  ETSTREAM_ASSIGN(const auto constants, inline_constants());
  if (index >= constants.size()) {
    return tensor.corrupt(text("{} of an inline constant from 0 to below {}",
                               fields_.tensor.data_buffer_idx.full_name(), constants.size()),
                          std::to_string(index));
  }
  ETSTREAM_ASSIGN(const InlineConstant constant, constants.at(index));
  ETSTREAM_ASSIGN(const ByteSource whole, constant.data());
  if (whole.size() < size) {
    return tensor.corrupt(text("a tensor's {} bytes in the flatbuffer", size), std::to_string(whole.size()));
  }
  return whole.slice(0, size);
}

Result<ByteSource> Program::piece(const Tensor& tensor, const Subsegments& pieces, std::uint32_t index,
                                  std::uint64_t size) const {
  ETSTREAM_ASSIGN(const auto offsets, pieces.offsets());
  ETSTREAM_TRY(tensor.check_index(fields_.tensor.data_buffer_idx, index, offsets.size()));
  ETSTREAM_ASSIGN(const std::uint32_t segment, pieces.segment());
  ETSTREAM_ASSIGN(const ByteSource whole, segment_data(pieces.position(), segment));
  ETSTREAM_ASSIGN(const std::uint64_t offset, offsets.at(index));
  if (!range_fits(offset, size, whole.size())) {
    return tensor.corrupt(text("a tensor's {} bytes inside its segment's {}", size, whole.size()),
                          text("them at {}", offset));
  }
  return whole.slice(offset, size);
}

Result<ByteSource> Program::delegate_data(const DelegatePlace& place) const {
  if (place.in_segment) return segment_data(place.position, place.index);
  ETSTREAM_ASSIGN(const auto delegate,
                  entry<InlineDelegate>(fields_.program.backend_delegate_data, place.position, place.index));
  return delegate.data();
}

Result<std::vector<NamedPayload>> read_named_data(const Program& program) {
  std::vector<NamedPayload> out;
  ETSTREAM_TRY(for_each(program.named_data(), [&](const NamedData& named) -> Result<void> {
    ETSTREAM_ASSIGN(auto key, named.key());
    ETSTREAM_ASSIGN(const std::uint32_t segment, named.segment());
    ETSTREAM_ASSIGN(ByteSource data, program.segment_data(named.position(), segment));
    ETSTREAM_ASSIGN(ByteSource key_place, named.key_place());
    out.push_back({std::move(key).value_or(""), std::move(data), std::move(key_place)});
    return {};
  }));
  return out;
}

}  // namespace etstream::pte

namespace etstream {

Result<std::vector<ProgramTensor>> read_tensors(const pte::Program& program) {
  std::vector<ProgramTensor> out;
  ETSTREAM_TRY(for_each(program.methods(), [&](const pte::Method& method, std::uint32_t number) {
    return for_each(method.values(), [&](const pte::Value& value) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (!held || held->kind() != pte::ValueKind::kTensor) return {};
      ETSTREAM_ASSIGN(pte::Storage storage, held->tensor().storage());
      out.push_back({held->position(), number, storage.index, storage.is_planned,
                     storage.kind == TensorStorage::kExternal, std::move(storage.name),
                     storage.extra_position, storage.has_other_info});
      return {};
    });
  }));
  return out;
}

Result<std::vector<DelegateReference>> read_delegate_references(const pte::Program& program) {
  std::vector<DelegateReference> out;
  ETSTREAM_TRY(for_each(program.methods(), [&](const pte::Method& method, std::uint32_t number) {
    return for_each(method.delegates(), [&](const pte::Delegate& delegate, std::uint32_t i) -> Result<void> {
      ETSTREAM_ASSIGN(std::string backend, delegate.backend());
      ETSTREAM_ASSIGN(const auto place, delegate.place());
      if (place) out.push_back({*place, number, i, std::move(backend)});
      return {};
    });
  }));
  return out;
}

Result<void> note_uses(const pte::Program& program, std::vector<SegmentInfo>& segments) {
  const auto note = [&](std::uint64_t index, std::string_view use) {
    if (index < segments.size() && segments[index].use.empty()) segments[index].use = use;
  };
  const auto note_listed = [&](const auto& tables, std::string_view use) {
    return for_each(tables, [&](const auto& table) -> Result<void> {
      ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
      note(index, use);
      return {};
    });
  };
  ETSTREAM_ASSIGN(const auto constants, program.constants());
  if (constants) {
    ETSTREAM_ASSIGN(const auto offsets, constants->offsets());
    ETSTREAM_ASSIGN(const std::uint32_t index, constants->segment());
    // A table without offsets is a formality, and the segment that it names belongs to others.
    if (offsets.size() > 0) note(index, "constants");
  }
  ETSTREAM_TRY(note_listed(program.mutable_data(), "mutable data"));
  ETSTREAM_TRY(note_listed(program.named_data(), "named data"));
  ETSTREAM_ASSIGN(const auto delegates, read_delegate_references(program));
  for (const DelegateReference& reference : delegates) {
    if (reference.in_segment) note(reference.index, text("delegate {}", reference.backend));
  }
  return {};
}

}  // namespace etstream
