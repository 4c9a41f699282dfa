// SPDX-License-Identifier: BSD-3-Clause
//
// FlatBuffers' JSON writer, under the name that the installed FlatBuffers has for it.
#pragma once

#include <flatbuffers/idl.h>

#include <string>

namespace etstream {

/// Appends the flatbuffer of the parser's root type to `out` as JSON. Returns false if it can't be text.
/// FlatBuffers has GenerateText(), true for success, up to 23.3, and GenText(), null for success, from 23.5
/// on.
template <class Parser>
[[nodiscard]] bool generate_text(const Parser& parser, const void* flatbuffer, std::string& out) {
  if constexpr (requires { GenText(parser, flatbuffer, &out); }) {
    return GenText(parser, flatbuffer, &out) == nullptr;
  } else {
    return GenerateText(parser, flatbuffer, &out);
  }
}

}  // namespace etstream
