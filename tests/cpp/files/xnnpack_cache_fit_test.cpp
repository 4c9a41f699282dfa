// SPDX-License-Identifier: BSD-3-Clause
//
// A program that ExecuTorch wrote, and the weight cache that its runtime wrote for that.
#include "files/xnnpack_cache_fit.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "etstream/program_changes.h"
#include "etstream/tensor_data.h"
#include "etstream/verify.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "test_errors.h"
#include "test_paths.h"

namespace etstream::xnnpack_cache_fit_test {
namespace {

const std::string kMatrix = "7a3c06cfb2fbaf0c864167c11e30fda1f77447e3998d704800da475236c7d7d3";
const std::string kBias = "0e46b0f0450941b9cf7ce388df558a92c5d042dae3f9a46a64c946ea56f25415";

std::string program() { return content_of(kGoldenDir + "/delegated_program/program.pte"); }
std::string cache() { return content_of(kGoldenDir + "/xnnpack_cache/cache.xpwc"); }

FileFindings found(const std::string& program, const std::vector<std::string>& others) {
  std::vector<ByteSource> files;
  for (const std::string& other : others) files.push_back(file_of(other));
  auto findings = verify(file_of(program), files);
  REQUIRE_MESSAGE(findings, findings.error().message);
  REQUIRE_MESSAGE(findings->ok(), lines_of(findings->errors));
  return std::move(findings).value();
}

TEST_CASE("a program finds its weights in the cache that was written for it") {
  const FileFindings findings = found(program(), {cache()});
  CHECK(lines_of(findings.warnings) == "");
  REQUIRE(findings.xnnpack_caches.size() == 1);
  CHECK(findings.xnnpack_caches[0].file == "bad");
  CHECK(findings.xnnpack_caches[0].misses.empty());
  CHECK(findings.xnnpack_caches[0].unasked.empty());
}

TEST_CASE("weights of another key are missed, and those that are there are not asked for") {
  std::string other = cache();
  other[other.find(kMatrix)] = 'f';
  const FileFindings findings = found(program(), {other});
  const XnnpackCacheFit& fit = findings.xnnpack_caches.at(0);
  CHECK(fit.misses == std::vector{kMatrix});
  CHECK(fit.unasked == std::vector{"f" + kMatrix.substr(1) + kBias});
  CHECK(
      exactly(lines_of(findings.warnings)) ==
      exactly(
          "bad: expected packed weights of key '" + kMatrix +
          "' for method 'forward', delegate 0 (XnnpackBackend), XNNFullyConnected 0, found none: ExecuTorch "
          "packs them into memory each time that it loads the method\n"
          "bad: expected weights that bad looks up, found 1 of other weights, '" +
          fit.unasked[0] + "' first\n"));
}

TEST_CASE("weights are found without the bias, which not each kernel packs, but not with another one") {
  std::string other = cache();
  other[other.find(kBias)] = 'f';
  CHECK(found(program(), {other}).xnnpack_caches.at(0).misses == std::vector{kMatrix});
  other = cache();
  const std::size_t length = other.find(kMatrix) - 4;
  other.replace(length, 4 + kMatrix.size() + kBias.size(), std::string("\x40\0\0\0", 4) + kMatrix);
  CHECK(lines_of(found(program(), {other}).warnings) == "");
}

TEST_CASE(
    "packed weights are looked up once for each pair of constants, in proportion to the program's size") {
  using namespace made_xnnpack;  // NOLINT: the parts of a graph
  const auto program_of_pairs = [](std::uint32_t count, std::uint32_t repeats) {
    auto graph = empty_graph();
    for (std::uint32_t i = 1; i <= count; ++i) {
      const std::string key = std::string(8192, 'k') + std::to_string(i);
      add_value(graph,
                tensor_of(i, xnnpack_graph::XNNDatatype_xnn_datatype_fp32, {1}, add_constant(graph, key, 4)));
    }
    for (std::uint32_t i = 0; i < count * count * repeats; ++i) {
      add_linear(graph, 1 + i % count, 1 + i / count % count, 0);
    }
    made::Program out;
    out.delegates = {{"XnnpackBackend", payload_of(graph)}};
    return made::file(out);
  };
  Findings findings;
  const auto fit = [&](const std::string& program) {
    return fit_xnnpack_cache(ProgramFile::open(file_of(program)).value(),
                             XnnpackCacheFile::open(file_of(cache())).value(), findings);
  };
  const auto few = fit(program_of_pairs(2, 1000));
  REQUIRE_MESSAGE(few, few.error().message);
  CHECK(few->misses.size() == 2);
  CHECK(error_of(fit(program_of_pairs(60, 1))) == containing("kTooLarge: bad: expected payloads that share"));
}

TEST_CASE("a program without weights of its own is checked with a cache and tensor data") {
  const ByteSource file = file_of(program());
  const auto opened = ProgramFile::open(file);
  auto moved = plan(*opened, ProgramChanges{.constants_out = ConstantsOut{}});
  REQUIRE_MESSAGE(moved, moved.error().message);
  const auto weights = plan(*moved->tensor_data);
  REQUIRE(weights);
  const std::string thin = written(moved->program);
  const FileFindings both = found(thin, {cache(), written(*weights)});
  CHECK(both.xnnpack_caches.at(0).misses.empty());
  CHECK(lines_of(both.warnings) == "");
  // With the cache alone, keys are still to come from a file.
  CHECK(found(thin, {cache()}).external_keys->size() == 3);
}

TEST_CASE("a program without delegates asks for no weights, and a cache is not first") {
  CHECK(found(real_program(), {cache()}).xnnpack_caches.at(0).unasked.size() == 1);
  CHECK(error_of(verify(file_of(cache()), {file_of(program())})) ==
        exactly("kUnsupported: bad: is a weight cache of XNNPACK (XPWC), expected the program or the bundle "
                "that the "
                "files after it are for; give that first"));
}

}  // namespace
}  // namespace etstream::xnnpack_cache_fit_test
