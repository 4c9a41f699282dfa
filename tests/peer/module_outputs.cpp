// SPDX-License-Identifier: BSD-3-Clause
//
// Prints the output of ExecuTorch's C++ Module for a program whose weights are in another file.
//
//   module_outputs PROGRAM.pte WEIGHTS.ptd ROWS COLUMNS <tokens >output
//
// Tokens are int64, ROWS * COLUMNS of them; the output is the bytes of the first tensor.
//
//   module_outputs PROGRAM.pte WEIGHTS.ptd CACHE
//
// Loads the program's method with a weight cache of XNNPACK, which is read, or written if it can't be. The
// program has its weights itself if WEIGHTS.ptd is "".
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/options.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

int load_with_cache(const std::string& program, const std::string& weights, const char* cache) {
  using executorch::extension::Module;
  executorch::runtime::BackendOptions<2> options;
  static_cast<void>(options.set_option("weight_cache_enabled", true));
  static_cast<void>(options.set_option("packed_cache_path", cache));
  executorch::runtime::LoadBackendOptionsMap of_backends;
  static_cast<void>(of_backends.set_options("XnnpackBackend", options.view()));
  Module module(program, weights.empty() ? std::vector<std::string>() : std::vector{weights});
  return module.load(of_backends) == executorch::runtime::Error::Ok &&
                 module.load_method("forward") == executorch::runtime::Error::Ok
             ? 0
             : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) return load_with_cache(argv[1], argv[2], argv[3]);
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
