// SPDX-License-Identifier: BSD-3-Clause
//
// Measures a call of the library, and prints the median of many calls in microseconds:
//
//   flatc_call compile|decompile SCHEMA FILE
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "etstream/flatbuffer_text.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool compiles = std::string(argv[1]) == "compile";
  const auto schema = etstream::FlatbufferText::open(argv[2]).value();
  std::ifstream file(argv[3], std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const bool done = compiles ? schema.compile(content).has_value()
                               : schema.decompile(std::as_bytes(std::span(content))).has_value();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    if (!done) return 1;
  }
  std::nth_element(times.begin(), times.begin() + 500, times.end());
  std::printf("%.1f\n", times[500]);
}
