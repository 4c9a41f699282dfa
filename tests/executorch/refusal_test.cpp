// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/refusal.h"

#include <doctest/doctest.h>

#include <map>

#include "etstream/executorch/loaded_method.h"
#include "etstream/executorch/program_loader.h"
#include "etstream/program_changes.h"
#include "etstream/program_weights.h"
#include "etstream/write.h"
#include "example_bundle.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;

/// A map that has keys, and no data for any.
class Keys final : public runtime::NamedDataMap {
 public:
  explicit Keys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  runtime::Result<const runtime::TensorLayout> get_tensor_layout(std::string_view) const override {
    return runtime::Error::NotFound;
  }
  runtime::Result<runtime::FreeableBuffer> get_data(std::string_view) const override {
    return runtime::Error::NotFound;
  }
  runtime::Error load_data_into(std::string_view, void*, size_t) const override {
    return runtime::Error::NotFound;
  }
  runtime::Result<std::uint32_t> get_num_keys() const override {
    return static_cast<std::uint32_t>(keys_.size());
  }
  runtime::Result<const char*> get_key(std::uint32_t index) const override { return keys_[index].c_str(); }

 private:
  const std::vector<std::string> keys_;
};

std::string changed(std::string program, std::string_view from, std::string_view to) {
  REQUIRE(from.size() == to.size());
  for (std::size_t at = 0; (at = program.find(from, at)) != std::string::npos;) {
    program.replace(at, to.size(), to);
  }
  return program;
}

/// Returns the error of loading a method of the program.
doctest::String error_of_loading(const std::string& program,
                                 const runtime::NamedDataMap* named_data = nullptr, bool is_known = true) {
  const ByteSource source = source_of(program);
  const auto loader = open_program_loader(source).value();
  const auto loaded = runtime::Program::load(loader.get());
  REQUIRE(loaded.ok());
  return error_of(LoadedMethod::load(*loaded, "forward", named_data, is_known ? source : ByteSource()));
}

std::string example_program() { return content_of(example("model.pte")); }

/// Makes the program of examples/ without its constants, which are 4.
std::string thin_program() {
  const auto program = ProgramFile::open(ByteSource::file(example("model.pte")).value()).value();
  const auto planned = plan(program, ProgramChanges{.constants_out = ConstantsOut{}});
  REQUIRE_MESSAGE(planned, planned.error().message);
  std::vector<std::byte> bytes;
  const auto sink = open_memory_sink(bytes);
  REQUIRE(write(planned->program, *sink));
  return text_of(bytes);
}

TEST_CASE("an operator without a kernel is named") {
  const std::string program = changed(example_program(), "aten::relu", "aten::rexu");
  CHECK(error_of_loading(program) ==
        exactly("kUnsupported: method 'forward': could not be loaded: ExecuTorch says Error::OperatorMissing "
                "(0x14): "
                "operator 'aten::rexu.out' has no kernel here; link what registers it"));
  CHECK(error_of_loading(changed(program, "aten::addmm", "aten::adxmm")) ==
        containing("2 operators have ('aten::"));
  // The error has the number alone, if the file is not known.
  CHECK(error_of_loading(program, nullptr, false) ==
        exactly("kUnsupported: method 'forward': could not be loaded: ExecuTorch says Error::OperatorMissing "
                "(0x14)"));
}

TEST_CASE("a backend that is not registered is named") {
  const std::string delegated = content_of(example("../tests/golden/delegated_program/program.pte"));
  CHECK(error_of_loading(changed(delegated, "XnnpackBackend", "NobodysBackend")) ==
        containing("backend 'NobodysBackend' has not been registered here; link what registers it"));
}

TEST_CASE("keys that are nowhere are counted and named") {
  const std::string program = thin_program();
  const auto keys = external_keys(ProgramFile::open(source_of(program)).value()).value();
  REQUIRE(keys.size() == 4);
  CHECK(error_of_loading(program) ==
        containing("4 of the 4 keys that the program asks for are not in it: '" + keys[0] + "', '"));
  CHECK(error_of_loading(program) == containing(keys[3] + "'; named_data takes the .ptd file with them"));
  const Keys three({keys[0], keys[1], keys[3]});
  CHECK(error_of(
            Result<void>(refusal(runtime::Error::NotFound, "x", {source_of(program), "forward", &three}))) ==
        exactly("kUnsupported: x: ExecuTorch says Error::NotFound (0x20): 1 of the 4 keys that the program "
                "asks for "
                "is not "
                "in named_data: '" +
                keys[2] + "'"));
}

TEST_CASE("a number has words where the file has no cause, and none where they would say nothing") {
  const ByteSource program = source_of(example_program());
  const auto said = [&](runtime::Error number) {
    return error_of(Result<void>(refusal(number, "x", {program, "forward"})));
  };
  CHECK(said(runtime::Error::InvalidProgram) == containing("made by or for another version of ExecuTorch"));
  CHECK(said(runtime::Error::InvalidArgument) == containing("kInvalidArgument: x"));
  CHECK(said(runtime::Error::OperatorMissing) ==
        containing("none for the dtypes or the orders of dimensions"));
  CHECK(said(runtime::Error::MemoryAllocationFailed) ==
        exactly("kOutOfMemory: x: ExecuTorch says Error::MemoryAllocationFailed (0x21)"));
  CHECK(said(runtime::Error::Internal) == exactly("kCorrupt: x: ExecuTorch says Error::Internal (0x1)"));
}

TEST_CASE("what is wrong with the file itself is the cause") {
  // A list in the flatbuffer leads out of it.
  std::string damaged = example_program();
  const std::size_t at = damaged.find("aten::relu");
  damaged[at - 4] = '\x7f';
  CHECK(
      error_of(Result<void>(refusal(runtime::Error::InvalidProgram, "x", {source_of(damaged), "forward"}))) ==
      containing("Error::InvalidProgram (0x23): "));
}

}  // namespace
}  // namespace etstream
