// SPDX-License-Identifier: BSD-3-Clause
//
// Lists the test cases in a bundle:  read model.bpte
#include <cstdio>

#include "etstream/bundled_program.h"

namespace {

etstream::Result<void> list(const char* path) {
  const auto file = etstream::ByteSource::file(path);
  if (!file) return file.error();
  const auto bundle = etstream::BundledProgramFile::open(*file);
  if (!bundle) return bundle.error();
  for (const auto& suite : bundle->suites()) {
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      const auto test_case = bundle->test_case(suite, i);
      if (!test_case) return test_case.error();
      std::printf("%s, case %u: %zu inputs, %zu expected outputs\n", suite.method_name.c_str(), i,
                  test_case->inputs.size(), test_case->expected_outputs.size());
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: read MODEL.bpte\n", stderr), 2;
  const auto listed = list(argv[1]);
  if (!listed) std::fprintf(stderr, "%s\n", full_message(listed.error()).c_str());
  return listed ? 0 : 1;
}
