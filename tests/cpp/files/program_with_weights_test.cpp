// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_weights.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "files/origins/made_program.h"
#include "test_errors.h"
#include "test_files.h"

namespace etstream::program_with_weights_test {
namespace {

made::Constant tensor_named(const std::string& name) { return {made::floats(2, 1), {2}, name}; }

std::vector<std::string> keys_of(const ProgramWithWeights& opened) {
  std::vector<std::string> out;
  for (const TensorDataFile* file : opened.files()) {
    const auto entries = file->entries();
    REQUIRE(entries);
    for (const NamedTensorData& entry : *entries) out.push_back(entry.key);
  }
  return out;
}

TEST_CASE("a program is opened with its files of weights, in their order, and can be moved") {
  const TemporaryFolder folder;
  put_file(folder / "m.pte", made::file({}));
  put_file(folder / "b.ptd", made::tensor_data({tensor_named("b")}));
  put_file(folder / "a.ptd", made::tensor_data({tensor_named("a")}));
  auto opened = ProgramWithWeights::open(folder / "m.pte", {folder / "b.ptd", folder / "a.ptd"});
  REQUIRE_MESSAGE(opened, full_message(opened.error()));
  const ProgramWithWeights moved = std::move(opened).value();
  CHECK(moved.program.file().name() == folder / "m.pte");
  CHECK(keys_of(moved) == std::vector<std::string>{"b", "a"});
  REQUIRE(moved.files().size() == 2);
  CHECK(moved.files()[0] == &moved.weights[0]);
  CHECK(ProgramWithWeights::open(folder / "m.pte", {})->files().empty());
}

TEST_CASE("the first of several shards stands for all, of which none may be missing unless partial") {
  const TemporaryFolder folder;
  put_file(folder / "m.pte", made::file({}));
  const std::string first = folder / "w-00001-of-00002.ptd";
  put_file(first, made::tensor_data({tensor_named("a")}));
  CHECK(error_of(ProgramWithWeights::open(folder / "m.pte", {first})) == containing("w-00002-of-00002.ptd"));
  CHECK(keys_of(*ProgramWithWeights::open(folder / "m.pte", {first}, true)) == std::vector<std::string>{"a"});
  put_file(folder / "w-00002-of-00002.ptd", made::tensor_data({tensor_named("b")}));
  CHECK(keys_of(*ProgramWithWeights::open(folder / "m.pte", {first})) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("files that are missing, or of another kind, are errors") {
  const TemporaryFolder folder;
  put_file(folder / "m.pte", made::file({}));
  put_file(folder / "w.ptd", made::tensor_data({tensor_named("a")}));
  CHECK(code_of(ProgramWithWeights::open(folder / "none.pte", {})) == exactly("kNotFound"));
  CHECK(code_of(ProgramWithWeights::open(folder / "m.pte", {folder / "none.ptd"})) == exactly("kNotFound"));
  CHECK(error_of(ProgramWithWeights::open(folder / "w.ptd", {})) == containing("a program"));
  CHECK(error_of(ProgramWithWeights::open(folder / "m.pte", {folder / "m.pte"})) ==
        containing("tensor data"));
}

}  // namespace
}  // namespace etstream::program_with_weights_test
