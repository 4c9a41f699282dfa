// SPDX-License-Identifier: BSD-3-Clause
#include "weights/checkpoint_file.h"

#include <map>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "tensor/dimensions.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"

namespace etstream {

std::string type_text(const CheckpointTensor& tensor) {
  return tensor.layout ? describe(*tensor.layout) : printable(tensor.type);
}

Result<CheckpointFile> open_safetensors_file(const ByteSource& file) {
  CheckpointFile out;
  out.file = file;
  out.kind = FileKind::kSafetensors;
  ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
  out.tensors = std::move(opened.tensors);
  return out;
}

Result<CheckpointFile> open_gguf_file(const ByteSource& file) {
  CheckpointFile out;
  out.file = file;
  out.kind = FileKind::kGguf;
  ETSTREAM_ASSIGN(GgufFile opened, open_gguf(file));
  out.version = opened.version;
  out.metadata = std::move(opened.metadata);
  std::map<std::string, std::string> shapes;  // of quantised blocks
  for (const GgufTensor& tensor : opened.tensors) {
    if (!tensor.scalar_type) shapes[tensor.name] = " " + list_text(tensor.shape);
  }
  out.tensors = checkpoint_tensors(std::move(opened), file);
  for (CheckpointTensor& tensor : out.tensors) tensor.type += shapes[tensor.name];
  return out;
}

}  // namespace etstream
