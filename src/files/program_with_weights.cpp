// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_with_weights.h"

#include <utility>

#include "core/base/try.h"
#include "etstream/bundled_program_file.h"
#include "etstream/checkpoint.h"

namespace etstream {

Result<ProgramWithWeights> ProgramWithWeights::open(const std::string& program,
                                                    const std::vector<std::string>& weights, bool partial) {
  return without_exceptions([&]() -> Result<ProgramWithWeights> {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(program));
    ETSTREAM_ASSIGN(ProgramFile opened, open_program(file));
    return open(std::move(opened), weights, partial);
  });
}

Result<ProgramWithWeights> ProgramWithWeights::open(ProgramFile program,
                                                    const std::vector<std::string>& weights, bool partial) {
  return without_exceptions([&]() -> Result<ProgramWithWeights> {
    ProgramWithWeights out{std::move(program), {}};
    ETSTREAM_ASSIGN(const auto paths, whole_sets(weights, {.partial = partial}));
    for (const std::string& path : paths) {
      ETSTREAM_ASSIGN(ByteSource data, ByteSource::file(path));
      ETSTREAM_ASSIGN(TensorDataFile tensors, TensorDataFile::open(std::move(data)));
      out.weights.push_back(std::move(tensors));
    }
    return out;
  });
}

std::vector<const TensorDataFile*> ProgramWithWeights::files() const {
  std::vector<const TensorDataFile*> out;
  for (const TensorDataFile& file : weights) out.push_back(&file);
  return out;
}

}  // namespace etstream
