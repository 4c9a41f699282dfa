// SPDX-License-Identifier: BSD-3-Clause
//
//   run_with_shards MODEL.pte WEIGHTS.ptd...
//
// Runs the method forward on 8 ones, with all shards as data files, and prints the output.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  executorch::extension::Module module(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  auto input = executorch::extension::make_tensor_ptr({1, 8}, std::vector<float>(8, 1.0F));
  const auto outputs = module.forward(input);
  if (!outputs.ok()) {
    std::fprintf(stderr, "error 0x%x\n", static_cast<unsigned>(outputs.error()));
    return 1;
  }
  const auto& tensor = outputs->at(0).toTensor();
  for (int i = 0; i < tensor.numel(); ++i) std::printf("%.9g\n", tensor.const_data_ptr<float>()[i]);
  return 0;
}
