// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor_layout.h"

#include "base/text.h"
#include "tensor/dimensions.h"

namespace etstream {

std::string describe(const TensorLayout& layout) {
  return text("{} {}", name_of(layout.scalar_type), list_text(layout.sizes));
}

}  // namespace etstream
