// SPDX-License-Identifier: BSD-3-Clause
//
// What a ProgramFile is made of, for the files that implement it.
#pragma once

#include <memory>

#include "container/extended_header.h"
#include "etstream/program.h"
#include "flatbuffer/flatbuffer_view.h"

namespace etstream {

struct ProgramFile::Parts {
  std::shared_ptr<const Schema> schema;
  ByteSource file;
  ExtendedHeader header;
  FlatbufferView view;  // of the flatbuffer alone
};

}  // namespace etstream
