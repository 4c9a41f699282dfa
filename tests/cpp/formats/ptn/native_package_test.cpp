// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/native_package.h"

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include <memory>
#include <string>
#include <utility>

#include "etstream/tensor.h"
#include "etstream/verify.h"
#include "file_bytes.h"
#include "formats/zip/zip.h"
#include "native_graph_generated.h"
#include "test_errors.h"
#include "test_sources.h"
#include "test_torch_files.h"

namespace etstream::native_package_test {
namespace {

CheckpointTensor constant(std::string name, const std::string& bytes, ScalarType type = ScalarType::kUInt8) {
  const auto count = static_cast<std::int32_t>(bytes.size() / item_size(type));
  return {std::move(name), "", TensorLayout{type, {count}, {0}}, source_of(bytes)};
}

/// Makes a graph that asks for these keys; it changes those that begin with '!'.
ByteSource graph_of(const std::vector<std::string>& keys) {
  native_graph::ProgramT program;
  auto method = std::make_unique<native_graph::MethodT>();
  method->name = "forward";
  method->graph = std::make_unique<native_graph::GraphT>();
  for (const std::string& key : keys) {
    auto reference = std::make_unique<native_graph::NamedTensorRefT>();
    reference->name = key;
    reference->data_key = key;
    reference->meta = std::make_unique<native_graph::TensorMetaT>();
    reference->mutated = key.starts_with("!");
    method->constants.push_back(std::move(reference));
  }
  program.methods.push_back(std::move(method));
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(native_graph::Program::Pack(builder, &program), native_graph::ProgramIdentifier());
  return source_of(finished(builder));
}

NativePackage four_constants() {
  NativePackage out;
  out.graph = graph_of({"b", "a", "!state", "same"});
  out.constants = {constant("b", "12345678", ScalarType::kFloat32), constant("a", "123"),
                   constant("!state", "123"), constant("same", "123")};
  return out;
}

std::string bytes_of_package(const NativePackage& package) {
  const auto planned = plan(package);
  REQUIRE_MESSAGE(planned, planned.error().message);
  return text_of(source_of(*planned).value());
}

NativePackageFile opened(const std::string& bytes) {
  auto file = NativePackageFile::open(source_of(bytes));
  REQUIRE_MESSAGE(file, file.error().message);
  return std::move(file).value();
}

TEST_CASE("a package without constants is whole") {
  NativePackage package;
  package.graph = graph_of({});
  const std::string bytes = bytes_of_package(package);
  CHECK(opened(bytes).constants().empty());
  CHECK(opened(bytes).members().size() == 1);
  CHECK(findings_of(bytes).errors.empty());
  CHECK(findings_of(bytes).warnings.empty());
}

TEST_CASE("the time of members is one that a zip archive can say") {
  constexpr int ArchiveTime::*kFields[] = {&ArchiveTime::year, &ArchiveTime::month,  &ArchiveTime::day,
                                           &ArchiveTime::hour, &ArchiveTime::minute, &ArchiveTime::second};
  const ArchiveTime first{1980, 1, 1, 0, 0, 0};
  const ArchiveTime last{2107, 12, 31, 23, 59, 60};
  NativePackage package = four_constants();
  const auto refuses = [&](const ArchiveTime& time) {
    package.modified = time;
    return !plan(package).has_value();
  };
  for (int ArchiveTime::*const field : kFields) {
    for (const int by : {-1, 1}) {
      ArchiveTime outside = by < 0 ? first : last;
      outside.*field += by;
      CHECK(refuses(outside));
    }
  }
  CHECK_FALSE(refuses(first));
  CHECK_FALSE(refuses(last));
  const auto member = read_zip(source_of(bytes_of_package(package)))->members[0];
  CHECK(member.day == (127 << 9 | 12 << 5 | 31));
  CHECK(member.time == (23 << 11 | 59 << 5 | 30));
}

// More is in tests/cli/cases/writes_a_package.sh and tests/python/test_native_packages.py.
TEST_CASE("what no reader would take is refused") {
  const auto refused = [](auto change) {
    NativePackage package = four_constants();
    change(package);
    return error_of(plan(package));
  };
  CHECK(refused([](auto& p) { p.graph = source_of("no graph at all"); }) ==
        containing("kUnsupported: memory: is text"));
  CHECK(refused([](auto& p) {
          std::string graph = text_of(p.graph);
          const auto* const state =
              native_graph::GetProgram(graph.data())->methods()->Get(0)->constants()->Get(2);
          const auto* const vtable = reinterpret_cast<const flatbuffers::Table*>(state)->GetVTable();
          const auto at = static_cast<std::size_t>(reinterpret_cast<const char*>(vtable) - graph.data());
          graph.replace(at + native_graph::NamedTensorRef::VT_NAME, 2, 2, '\0');
          p.graph = source_of(graph);
        }) == containing("name"));
  CHECK(refused([](auto& p) { p.constants.pop_back(); }) ==
        containing("the graph asks for 1 constant that is not given: 'same'"));
  CHECK(refused([](auto& p) { p.constants.push_back(constant("a", "x")); }) ==
        "kInvalidArgument: constant 'a' comes twice");
  CHECK(refused([](auto& p) { p.constants.push_back(constant("__metadata__", "x")); }) ==
        containing("which safetensors reserves"));
  CHECK(refused([](auto& p) { p.constants.push_back(constant("\xff", "x")); }) == containing("is not UTF-8"));
  CHECK(refused([](auto& p) { p.constants[0].layout.reset(); }) == containing("kUnsupported: "));
  CHECK(refused([](auto& p) { p.alignment = 65536; }) == containing("from 1 to 32768"));
}

TEST_CASE("state that has bytes in common with another constant is refused") {
  const ByteSource shared = source_of("12345678");
  const auto with = [&](const char* name, std::uint64_t offset, const char* other, std::uint64_t at) {
    NativePackage package = four_constants();
    for (CheckpointTensor& tensor : package.constants) {
      if (tensor.name == name) tensor.data = shared.slice(offset, 3).value();
      if (tensor.name == other) tensor.data = shared.slice(at, 3).value();
    }
    return error_of(plan(package));
  };
  const char* const kCommon = "constants '!state' and 'a' have bytes in common";
  CHECK(with("!state", 0, "a", 0) == containing(kCommon));
  CHECK(with("!state", 0, "a", 2) == containing(kCommon));
  CHECK(with("!state", 2, "a", 0) == containing(kCommon));
  CHECK(with("!state", 3, "a", 0) == "no error");
  CHECK(with("same", 1, "a", 0) == "no error");
  NativePackage package = four_constants();
  const auto with_parts = [&](std::uint64_t same, std::uint64_t state) {
    package.constants[2].data = shared.slice(state, 3).value();
    package.constants[3].data = shared.slice(same, 3).value();
    return error_of(plan(package));
  };
  package.constants[0].data = shared;  // all of it, beyond the constant that begins next
  CHECK(with_parts(1, 5) == containing("constants '!state' and 'b' have bytes in common"));
  package = four_constants();
  package.constants.push_back(constant("one", "2"));
  package.constants.back().data = shared.slice(1, 1).value();
  CHECK(with_parts(5, 0) == containing("constants '!state' and 'one' have bytes in common"));
  package.constants.back() = constant("none", "");
  package.constants.back().data = shared.slice(1, 0).value();
  CHECK(with_parts(5, 0) == "no error");
  package = four_constants();
  package.constants[1].data = shared.slice(0, 3).value();
  CHECK(with_parts(2, 4) == containing("constants '!state' and 'same' have bytes in common"));
  package.constants[1].data = shared.slice(0, 5).value();
  package.constants[1].layout->sizes = {5};
  CHECK(with_parts(2, 4) == containing("constants '!state' and 'a' have bytes in common"));
}

TEST_CASE("damaged members are errors, and what a runtime does not take is said") {
  const std::string good = bytes_of_package(four_constants());
  const auto changed = [&](const std::string& from, const std::string& to) {
    REQUIRE(from.size() == to.size());
    std::string out = good;
    const auto at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, to.size(), to);
  };
  const auto error = [](const std::string& bytes) {
    return error_of(NativePackageFile::open(source_of(bytes)));
  };
  CHECK(error(changed("\"U8\"", "\"F8\"")) == "no error");
  CHECK(error(changed("{\"!state", "[\"!state")) == containing("kCorrupt: program.safetensors: "));
  CHECK(error(changed("\"same\": \"a\"", "\"same\": \"c\"")) ==
        containing("aliases.json: alias 'same' stands for 'c', which is no constant"));
  CHECK(error(changed("\"same\": \"a\"", "\"b\": \"a\"   ")) ==
        containing("aliases.json: 'b' is an alias, and a constant"));
  CHECK(error(changed("\"same\": \"a\"", "\"same\": 12 ")) == containing("expected the name of a constant"));
  CHECK(error(changed("{\n  \"same\": \"a\"", "{\"!state\": \"a\" ")) ==
        containing("aliases.json: '!state' is an alias, and a constant"));
  std::string no_graph = good;
  for (auto at = no_graph.find("program.ptg"); at != std::string::npos; at = no_graph.find("program.ptg")) {
    no_graph.replace(at, 11, "Program.ptg");
  }
  CHECK(error(no_graph) == containing("expected a member program.ptg, as a package (.ptn) has it, found none "
                                      "among 3 members"));
  const auto first_error = [](const std::string& bytes) {
    return exactly(findings_of(bytes).errors.at(0).message);
  };
  std::string other_time = good;
  ++other_time[10];  // in the header of the first member
  CHECK(error(other_time) ==
        containing("expected the time of the directory and no later version for member 'program.ptg'"));
  CHECK(first_error(changed("12345678", "12345679")) ==
        containing("expected member 'program.safetensors' with the checksum "));
  CHECK(first_error(changed("NPTG", "NPTX")) == containing("expected member 'program.ptg'"));
}

TEST_CASE("members that a package can hold and a runtime does not take are said") {
  const std::string graph = text_of(graph_of({}));
  const auto findings = [&](const ZipMembers& members) { return findings_of(zip_of(members)); };
  CHECK(findings({{"program.ptg", graph}}).ok());
  CHECK(exactly(findings({{"program.ptg", graph + graph}, {"aliases.json", "{}"}}).errors.at(0).message) ==
        "bad: there are aliases, and no constants");
  CHECK(exactly(findings({{"program.ptg", graph.substr(0, 8)}}).errors.at(0).message) ==
        containing("program.ptg"));
  CHECK(findings({{"program.ptg", graph.substr(0, 8)}, {"aliases.json", "{}"}}).errors.size() == 2);
  CHECK(exactly(findings({{"program.ptg", "no graph at all"}}).errors.at(0).message) ==
        containing("bad: program.ptg: "));
  const auto of_type = [&](const std::string& type) {
    const std::string header = "{\"a\":{\"dtype\":\"" + type + "\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    return findings({{"program.ptg", text_of(graph_of({"a"}))},
                     {"program.safetensors", little_endian(header.size(), 8) + header + "x"}});
  };
  CHECK(of_type("U8").ok());
  CHECK(exactly(of_type("F8_E5M2").errors.at(0).message) ==
        "bad: constant 'a' is of type F8_E5M2, which ExecuTorch's runtime does not take");
  CHECK(exactly(of_type("F9").errors.at(0).message) == containing("constant 'a' is of type F9"));
}

TEST_CASE("constants that nobody asks for, and metadata, are warned of") {
  NativePackage package = four_constants();
  package.constants.push_back(constant("more", "x"));
  const Findings findings = findings_of(bytes_of_package(package));
  CHECK(findings.ok());
  REQUIRE(findings.warnings.size() == 1);
  CHECK(exactly(findings.warnings[0].message) == "bad: the graph does not ask for constant 'more'");
}

}  // namespace
}  // namespace etstream::native_package_test
