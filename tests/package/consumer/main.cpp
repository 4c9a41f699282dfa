// SPDX-License-Identifier: BSD-3-Clause
//
// A program of another author:  consumer MODEL.pte CASES.json OUT.bpte
#include <cstdio>

#include "etstream/bundled_program.h"
#include "etstream/version.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  etstream::BundledProgram bundle;
  bundle.program = etstream::ByteSource::file(argv[1]).value();
  bundle.method_test_suites = etstream::read_test_cases(argv[2]).value();
  etstream::write_file(bundle, argv[3]).value();
  std::puts("etstream " ETSTREAM_VERSION);
}
