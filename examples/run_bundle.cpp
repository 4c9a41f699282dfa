// SPDX-License-Identifier: BSD-3-Clause
//
// Runs every test case of every method in a bundle on ExecuTorch:
//
//   run_bundle [--copy | --mapped] [--atol X] [--rtol X] [--integer N] MODEL.bpte
//
// The program is mapped in its place in the file if it lies there aligned, and is read into memory otherwise;
// --copy and --mapped insist on one. Exits with 0 if every output is as expected, 1 if not, 2 for a wrong
// command line.
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "etstream/executorch/case_run.h"
#include "etstream/executorch/loaded_method.h"
#include "etstream/executorch/program_loader.h"
#include "etstream/executorch/refusal.h"

namespace {

using etstream::Result;
using executorch::runtime::DataLoader;
using executorch::runtime::Program;

struct Options {
  bool copy = false;
  etstream::Tolerance tolerance;
  std::string file;
};

Result<std::unique_ptr<DataLoader>> open_loader(const etstream::ByteSource& program, bool copy) {
  if (!copy) {
    auto mapped = etstream::open_mapped_program_loader(program);
    if (mapped) std::puts("the program is mapped");
    if (mapped || mapped.error().code != etstream::ErrorCode::kUnsupported) return mapped;
    std::printf("not mapped: %s\n", full_message(mapped.error()).c_str());
  }
  std::puts("the program is read into memory");
  return etstream::open_program_loader(program);
}

/// Returns whether the test case passed, and prints the result.
bool run_case(etstream::LoadedMethod& loaded, const etstream::MethodTestCase& test_case, const char* method,
              std::uint32_t index, const Options& options) {
  const auto run = etstream::run_test_case(loaded.method(), test_case, index, options.tolerance);
  if (!run)
    return std::printf("%s, case %u: ERROR: %s\n", method, index, full_message(run.error()).c_str()), false;
  const char* what = run->outputs.empty() ? "ran, and expects no outputs"
                     : run->passed()      ? "passed"
                                          : "FAILED";
  std::printf("%s, case %u: %s\n", method, index, what);
  for (std::size_t i = 0; i < run->outputs.size(); ++i) {
    std::printf("  output %zu: %s\n", i, etstream::summary(run->outputs[i]).c_str());
  }
  return run->passed();
}

/// Returns whether all test cases passed.
Result<bool> run_bundle(const Options& options) {
  const auto file = etstream::ByteSource::file(options.file);
  if (!file) return file.error();
  const auto bundle = etstream::BundledProgramFile::open(*file);
  if (!bundle) return bundle.error();
  const auto loader = open_loader(bundle->program(), options.copy);
  if (!loader) return loader.error();
  const auto program = Program::load(loader->get(), Program::Verification::InternalConsistency);
  if (!program.ok()) {
    return etstream::refusal(program.error(), options.file + ": the program could not be loaded",
                             {.program = bundle->program()});
  }
  std::uint32_t cases = 0;
  std::uint32_t passed = 0;
  for (const auto& suite : bundle->suites()) {
    auto loaded = etstream::LoadedMethod::load(*program, suite.method_name, nullptr, bundle->program());
    if (!loaded) return loaded.error();
    for (std::uint32_t i = 0; i < suite.test_cases; ++i, ++cases) {
      const auto test_case = bundle->test_case(suite, i);
      if (!test_case) return test_case.error();
      passed += run_case(*loaded, *test_case, suite.method_name.c_str(), i, options) ? 1U : 0U;
    }
  }
  std::printf("%u of %u test cases passed\n", passed, cases);
  return passed == cases;
}

bool read_number(const char* word, double& out) {
  char* end = nullptr;
  out = std::strtod(word, &end);
  return end != word && *end == '\0' && out >= 0 && out <= 1e9;
}

bool read_options(int argc, char** argv, Options& options) {
  double integer = 0;
  const std::map<std::string, double*> numbers = {{"--atol", &options.tolerance.absolute},
                                                  {"--rtol", &options.tolerance.relative},
                                                  {"--integer", &integer}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (const auto number = numbers.find(word); number != numbers.end()) {
      if (++i == argc || !read_number(argv[i], *number->second)) return false;
    } else if (word == "--copy") {
      options.copy = true;
    } else if (options.file.empty() && !word.starts_with("--")) {
      options.file = word;
    } else {
      return false;
    }
  }
  options.tolerance.integer = static_cast<std::uint64_t>(integer);
  return !options.file.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    std::fputs("usage: run_bundle [--copy] [--atol X] [--rtol X] [--integer N] MODEL.bpte\n", stderr);
    return 2;
  }
  executorch::runtime::runtime_init();
  const auto passed = run_bundle(options);
  if (!passed) return std::fprintf(stderr, "error: %s\n", full_message(passed.error()).c_str()), 1;
  return *passed ? 0 : 1;
}
