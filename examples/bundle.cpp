// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles a program with its test cases:  bundle model.pte cases.json model.bpte
#include <cstdio>
#include <utility>

#include "etstream/bundled_program.h"

namespace {

int fail(const etstream::Error& error) {
  std::fprintf(stderr, "%s\n", full_message(error).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: bundle MODEL.pte CASES.json OUT.bpte\n", stderr), 2;

  auto program = etstream::ByteSource::file(argv[1]);
  if (!program) return fail(program.error());
  auto suites = etstream::read_test_cases(argv[2]);
  if (!suites) return fail(suites.error());

  etstream::BundledProgram bundle;
  bundle.program = std::move(*program);
  bundle.method_test_suites = std::move(*suites);
  const auto written = etstream::write_file(bundle, argv[3]);
  return written ? 0 : fail(written.error());
}
