// SPDX-License-Identifier: BSD-3-Clause
#include "test_paths.h"

namespace etstream {

const std::string kExamplesDir = ETSTREAM_EXAMPLES_DIR;
const std::string kFlatcSchemaDir = ETSTREAM_FLATC_SCHEMA_DIR;
const std::string kGoldenDir = ETSTREAM_GOLDEN_DIR;
const std::string kSchemaDir = ETSTREAM_SCHEMA_DIR;

}  // namespace etstream
