// SPDX-License-Identifier: BSD-3-Clause
//
// Prints the output of ExecuTorch's C++ Module for a program whose weights are in another file.
//
//   module_outputs PROGRAM.pte WEIGHTS.ptd ROWS COLUMNS <tokens >output
//
// Tokens are int64, ROWS * COLUMNS of them; the output is the bytes of the first tensor.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int rows = std::atoi(argv[3]);
  const int columns = std::atoi(argv[4]);
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  if (std::fread(tokens.data(), sizeof(std::int64_t), tokens.size(), stdin) != tokens.size()) return 2;
  executorch::extension::Module module(argv[1], argv[2]);
  const auto input =
      executorch::extension::from_blob(tokens.data(), {rows, columns}, executorch::aten::ScalarType::Long);
  const auto outputs = module.forward(input);
  if (!outputs.ok()) {
    std::fprintf(stderr, "error 0x%x\n", static_cast<unsigned>(outputs.error()));
    return 1;
  }
  const auto tensor = outputs->at(0).toTensor();
  return std::fwrite(tensor.const_data_ptr(), 1, tensor.nbytes(), stdout) == tensor.nbytes() ? 0 : 1;
}
