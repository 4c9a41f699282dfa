// SPDX-License-Identifier: BSD-3-Clause
#include "weights/checkpoint_file.h"

#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"

namespace etstream {

std::string type_text(const CheckpointTensor& tensor) {
  return tensor.layout ? describe(*tensor.layout) : printable(tensor.type);
}

Result<CheckpointFile> open_safetensors_file(const ByteSource& file) {
  ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
  return CheckpointFile{file, FileKind::kSafetensors, 0, {}, std::move(opened.tensors)};
}

Result<CheckpointFile> open_gguf_file(const ByteSource& file) {
  ETSTREAM_ASSIGN(GgufFile opened, open_gguf(file));
  CheckpointFile out{file, FileKind::kGguf, opened.version, opened.metadata, {}};
  out.tensors = checkpoint_tensors(std::move(opened), file, true);
  return out;
}

}  // namespace etstream
