// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program_model.h"

#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "container/data_segments.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "pte/segment_uses.h"

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

Program::Program(std::shared_ptr<const Schema> schema, ByteSource file, const ExtendedHeader& header,
                 FlatbufferView view, const TableView& root)
    : schema_(std::move(schema)),
      file_(std::move(file)),
      header_(header),
      view_(std::move(view)),
      fields_{*schema_},
      root_(fields_, TableReader(view_, root, schema_->root_index())) {}

Result<std::uint32_t> Program::version() const { return root_.scalar<std::uint32_t>(fields_.root.version); }

Result<std::optional<Subsegments>> Program::constants() const {
  ETSTREAM_ASSIGN(const auto table, root_.child(fields_.root.constant_segment));
  return table ? std::optional(Subsegments(fields_, *table)) : std::nullopt;
}

Result<std::span<const std::string>> Program::method_names() const {
  const std::lock_guard lock(mutex_);
  if (!method_names_) {
    std::vector<std::string> names;
    ETSTREAM_ASSIGN(const auto methods, this->methods());
    for (std::uint32_t i = 0; i < methods.size(); ++i) {
      ETSTREAM_ASSIGN(const Method method, methods.at(i));
      ETSTREAM_ASSIGN(std::string name, method.name());
      names.push_back(std::move(name));
    }
    method_names_ = std::move(names);
  }
  return std::span<const std::string>(*method_names_);
}

Result<std::span<const SegmentInfo>> Program::segments() const {
  const std::lock_guard lock(mutex_);
  if (!segments_) {
    ETSTREAM_ASSIGN(const TableList listed, root_.tables(fields_.root.segments));
    ETSTREAM_ASSIGN(auto segments,
                    read_segments(listed, fields_.segment, file_, header_.segment_base_offset));
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

Result<ByteSource> Program::tensor_data(const Tensor& tensor, const Storage& storage,
                                        std::uint64_t size) const {
  if (storage.kind == TensorStorage::kMutable) {
    ETSTREAM_ASSIGN(const auto listed, mutable_data());
    if (storage.mutable_data >= listed.size()) {
      return tensor.corrupt(
          text("an index below {} in {}", listed.size(), fields_.root.mutable_data_segments.name()),
          std::to_string(storage.mutable_data));
    }
    ETSTREAM_ASSIGN(const Subsegments pieces, listed.at(storage.mutable_data));
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

Result<ByteSource> Program::delegate_data(std::uint64_t position, bool in_segment,
                                          std::uint32_t index) const {
  if (in_segment) return segment_data(position, index);
  ETSTREAM_ASSIGN(const auto listed, inline_delegates());
  if (index >= listed.size()) {
    return view_.corrupt(
        position, text("an index below {} in {}", listed.size(), fields_.root.backend_delegate_data.name()),
        std::to_string(index));
  }
  ETSTREAM_ASSIGN(const InlineDelegate delegate, listed.at(index));
  return delegate.data();
}

Result<std::vector<NamedPayload>> read_named_data(const Program& program) {
  std::vector<NamedPayload> out;
  ETSTREAM_ASSIGN(const auto listed, program.named_data());
  for (std::uint32_t i = 0; i < listed.size(); ++i) {
    ETSTREAM_ASSIGN(const NamedData named, listed.at(i));
    ETSTREAM_ASSIGN(auto key, named.key());
    ETSTREAM_ASSIGN(const std::uint32_t segment, named.segment());
    ETSTREAM_ASSIGN(ByteSource data, program.segment_data(named.position(), segment));
    out.push_back({std::move(key).value_or(""), std::move(data)});
  }
  return out;
}

}  // namespace etstream::pte
