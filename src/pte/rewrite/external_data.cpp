// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/external_data.h"

#include <algorithm>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "io/read_pieces.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/named_data.h"
#include "tensor/dimensions.h"

namespace etstream {

std::uint32_t ExternalData::add_buffer(ByteSource data) {
  data_.buffers.push_back({std::move(data)});
  return static_cast<std::uint32_t>(data_.buffers.size() - 1);
}

bool ExternalData::add(const std::string& key, std::uint32_t buffer,
                       const std::optional<TensorLayout>& layout) {
  const auto [there, added] = entries_.try_emplace(key, data_.entries.size());
  if (added) {
    data_.entries.push_back({key, buffer, layout});
    return true;
  }
  TensorData::Entry& entry = data_.entries[there->second];
  if (entry.buffer != buffer) return false;
  if (!entry.layout) entry.layout = layout;
  return !layout || entry.layout == layout;
}

std::optional<std::uint32_t> ExternalData::find(const std::string& key) const {
  const auto there = entries_.find(key);
  if (there == entries_.end()) return std::nullopt;
  return data_.entries[there->second].buffer;
}

std::string key_suffix(const TensorLayout& layout) {
  return text(":{}{}", name_of(layout.scalar_type), list_text(layout.sizes));
}

Result<std::string> sha256_of(const ByteSource& source) {
  Sha256 hasher;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { hasher.update(bytes); }));
  return hasher.hex();
}

void make_external(EditableProgram& editable, const ExternalUses& uses) {
  std::set<std::uint32_t> gone;
  for (const ExternalUses::Tensor& use : uses.tensors) {
    ProgramTensor& tensor = editable.tensors[use.index];
    gone.insert(tensor.buffer);
    tensor.name = use.key;
    tensor.buffer = use.buffer;
    tensor.is_external = true;
    editable.changed_tensors.insert(use.index);
  }
  if (editable.constants && editable.constants->pieces) {
    if (std::ranges::any_of(editable.tensors, &ProgramTensor::is_constant)) {
      remove_pieces(editable, *editable.constants, std::move(gone), &ProgramTensor::is_constant);
    } else {
      std::vector<ByteSource>& pieces = *editable.constants->pieces;
      pieces.resize(std::min<std::size_t>(pieces.size(), 1));
    }
  }
  remove_named_data(editable, uses.named_data);
}

}  // namespace etstream
