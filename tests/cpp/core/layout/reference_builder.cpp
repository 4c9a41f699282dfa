// SPDX-License-Identifier: BSD-3-Clause
#include "reference_builder.h"

#include <string>

namespace etstream::testing {

using Ref = ReferenceBuilder::Ref;

namespace {

/// Starts a vector of bytes. FlatBuffers asks for their alignment too from 22.9 on.
template <class Builder>
void start_vector(Builder& builder, std::size_t size) {
  if constexpr (requires { builder.StartVector(size, std::size_t{1}, std::size_t{1}); }) {
    builder.StartVector(size, std::size_t{1}, std::size_t{1});
  } else {
    builder.StartVector(size, 1);
  }
}

}  // namespace

Ref ReferenceBuilder::add_string(std::string_view string) {
  return builder_.CreateString(string.data(), string.size()).o;
}

Ref ReferenceBuilder::add_vector(std::span<const std::byte> elements, std::uint32_t element_size,
                                 std::uint32_t alignment) {
  if (elements.empty()) {
    builder_.Align(sizeof(flatbuffers::uoffset_t));
    builder_.Align(alignment);
  }
  // This does what ForceVectorAlignment does, without its assertion that nobody aligns to more than 32.
  builder_.PreAlign(elements.size(), alignment);
  start_vector(builder_, elements.size());
  push(elements);
  return builder_.EndVector(elements.size() / element_size);
}

Ref ReferenceBuilder::add_struct(std::span<const std::byte> bytes, std::uint32_t alignment) {
  builder_.Align(alignment);
  push(bytes);
  return builder_.GetSize();
}

void ReferenceBuilder::push(std::span<const std::byte> bytes) {
  builder_.PushBytes(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

Ref ReferenceBuilder::add_vector(std::span<const Ref> elements) {
  return builder_.CreateVector(elements.data(), elements.size()).o;
}

void ReferenceBuilder::add_scalar(std::uint16_t id, std::uint64_t bits, unsigned width) {
  const auto slot = flatbuffers::FieldIndexToOffset(id);
  switch (width) {
    case 1:
      return builder_.AddElement(slot, static_cast<std::uint8_t>(bits));
    case 2:
      return builder_.AddElement(slot, static_cast<std::uint16_t>(bits));
    case 4:
      return builder_.AddElement(slot, static_cast<std::uint32_t>(bits));
    default:
      return builder_.AddElement(slot, bits);
  }
}

std::vector<std::byte> ReferenceBuilder::finish(Ref root, std::string_view identifier) {
  builder_.Finish(root, identifier.empty() ? nullptr : std::string(identifier).c_str());
  const auto bytes = std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace etstream::testing
