// SPDX-License-Identifier: BSD-3-Clause
#include "reference_builder.h"

#include <string>

namespace etstream::testing {
namespace {

using Ref = ReferenceBuilder::Ref;

template <class T>
Ref create_vector(flatbuffers::FlatBufferBuilder& builder, std::span<const std::byte> elements) {
  return builder.CreateVector(reinterpret_cast<const T*>(elements.data()), elements.size() / sizeof(T)).o;
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
  // What ForceVectorAlignment does, without its assertion that nobody aligns to more than 32.
  builder_.PreAlign(elements.size(), alignment);
  switch (element_size) {
    case 1:
      return create_vector<std::uint8_t>(builder_, elements);
    case 2:
      return create_vector<std::uint16_t>(builder_, elements);
    case 4:
      return create_vector<std::uint32_t>(builder_, elements);
    default:
      return create_vector<std::uint64_t>(builder_, elements);
  }
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
  builder_.Finish(root, std::string(identifier).c_str());
  const auto bytes = std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace etstream::testing
