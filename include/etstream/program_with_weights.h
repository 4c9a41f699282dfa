// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramWithWeights: a program, open with the tensor data files that it runs with.
//
//   const auto opened = etstream::ProgramWithWeights::open("model.pte", {"weights.ptd"});
//   if (!opened) return opened.error();
//   std::printf("%zu files of weights\n", opened->weights.size());
#pragma once

#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"

namespace etstream {

/// A program and its weights, both open.
struct ETSTREAM_EXPORT ProgramWithWeights {
  ProgramFile program;
  std::vector<TensorDataFile> weights;

  /// Opens the files at these paths: a program or a bundle with one, and tensor data, of which the first of
  /// several shards stands for all, unless `partial`. Errors: those of opening them; kNotFound for a shard
  /// without the others.
  [[nodiscard]] static Result<ProgramWithWeights> open(const std::string& program,
                                                       const std::vector<std::string>& weights,
                                                       bool partial = false);
  /// Opens the weights of a program that is open.
  [[nodiscard]] static Result<ProgramWithWeights> open(ProgramFile program,
                                                       const std::vector<std::string>& weights,
                                                       bool partial = false);

  /// Returns the files of weights, which this owns.
  [[nodiscard]] std::vector<const TensorDataFile*> files() const;
};

}  // namespace etstream
