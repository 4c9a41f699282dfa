// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace etstream {

// Folders of the tree and of the build that tests read. One object has their paths, so that a compiler's
// cache knows all others in whichever folder the tree lies.
extern const std::string kExamplesDir;
extern const std::string kFlatcSchemaDir;
extern const std::string kGoldenDir;
extern const std::string kSchemaDir;

}  // namespace etstream
