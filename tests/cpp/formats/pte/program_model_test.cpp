// SPDX-License-Identifier: BSD-3-Clause
//
// The model of a program: fields are bound against any schema, and each part is read once.
#include "formats/pte/program_model.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "counted_bytes.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "file_bytes.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream {
namespace {

using Replacements = std::vector<std::pair<std::string_view, std::string_view>>;

Result<ProgramSchema> changed_schema(const TemporaryFolder& folder, const Replacements& replacements) {
  std::string schema = content_of(kSchemaDir + "/program.fbs");
  for (const auto& [from, to] : replacements) {
    const std::size_t at = schema.find(from);
    REQUIRE(at != std::string::npos);
    schema.replace(at, from.size(), to);
  }
  std::ofstream(folder / "program.fbs") << schema;
  std::filesystem::copy(kSchemaDir + "/scalar_type.fbs", folder / "scalar_type.fbs",
                        std::filesystem::copy_options::overwrite_existing);
  return ProgramSchema::load(folder / "program.fbs");
}

/// Returns a newer schema, in which every table has another index and there is another instruction.
ProgramSchema newer_schema(const TemporaryFolder& folder) {
  return changed_schema(folder,
                        {{"table ContainerMetadata", "table AFirst { x:int; }\ntable ContainerMetadata"},
                         {"JumpFalseCall, FreeCall }", "JumpFalseCall, FreeCall, AFirst }"}})
      .value();
}

ProgramPlanOptions other_layout() { return {.segment_alignment = 4096, .constant_tensor_alignment = 64}; }

}  // namespace

TEST_CASE("a program is the same by a schema that a user brings, whatever the numbers of its tables") {
  const TemporaryFolder folder;
  const ByteSource file = source_of(real_program());
  const ProgramFile known = ProgramFile::open(file).value();
  const ProgramFile newer = ProgramFile::open(file, {}, newer_schema(folder)).value();
  REQUIRE(newer.model().fields().execution_plan.index() != known.model().fields().execution_plan.index());

  Findings findings;
  REQUIRE(newer.verify(findings));
  CHECK(findings.ok());
  CHECK(newer.segments().value().front().use == "constants");
  const ProgramGraph a = ProgramGraph::read(known, 0).value();
  const ProgramGraph b = ProgramGraph::read(newer, "forward").value();
  REQUIRE(a.values.size() == b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    CHECK(kind_of(a.values[i].info) == kind_of(b.values[i].info));
    CHECK(a.values[i].storage == b.values[i].storage);
  }
  CHECK(a.calls.size() == b.calls.size());
  const auto written = [](const ProgramFile& program) {
    const FilePlan plan = etstream::plan(program, other_layout()).value();
    std::string out;
    for (const Extent& extent : plan.extents) out += text_of(extent.source);
    return out;
  };
  CHECK(written(known) == written(newer));
}

TEST_CASE("a schema that does not only add to ExecuTorch's is refused with what differs") {
  const TemporaryFolder folder;
  const auto refused = [&](std::string_view from, std::string_view to) {
    return error_of(changed_schema(folder, {{from, to}}));
  };
  const auto named = [](const std::string& what) {
    return containing(": " + what + " is not that of ExecuTorch 1.5.1, or not there");
  };
  CHECK(refused("\"ET12\"", "\"ET13\"") == named("the root table or the file identifier"));
  CHECK(refused("JumpFalseCall, FreeCall }", "FreeCall, JumpFalseCall }") ==
        named("field Instruction.instr_args"));
  CHECK(refused("JumpFalseCall, FreeCall }", "JumpFalseCall }") == named("field Instruction.instr_args"));
  CHECK(refused("  version:uint;", "  edition:uint;") == named("field Program.version"));
  CHECK(refused("  version:uint;", "  version:ulong;") == named("field Program.version"));
  CHECK(refused("  version:uint;", "  version:uint = 1;") == named("field Program.version"));
  CHECK(refused("FreeCall { value_index:int; }", "FreeCall { value_index:float; }") ==
        named("field FreeCall.value_index"));
  CHECK(refused("FreeCall { value_index:int; }", "FreeCall {}") == named("field FreeCall.value_index"));
}

TEST_CASE("an instruction that the library does not know is an error, not the end of the program") {
  const TemporaryFolder folder;
  const ProgramSchema schema = newer_schema(folder);
  std::string bytes = real_program();
  const ProgramFile real = ProgramFile::open(source_of(bytes)).value();
  const pte::Method method = real.model().methods().value().at(0).value();
  const pte::Chain chain = method.chains().value().at(0).value();
  const pte::Instruction instruction = chain.instructions().value().at(0).value();
  // The union's type lies in the field before it.
  FieldType type = real.model().fields().instruction.instr_args.type();
  type.id = 0;
  type.kind = FieldKind::kScalar;
  type.width = type.natural_alignment = 1;
  const TableView table = real.model().view().table(instruction.position()).value();
  const auto position = real.model().view().find(table, type).value();
  REQUIRE(position);
  bytes[*position] = 6;  // AFirst
  const auto newer = ProgramFile::open(source_of(bytes), "newer.pte", schema);
  REQUIRE_MESSAGE(newer, newer.error().message);
  CHECK(error_of(ProgramGraph::read(*newer, 0)) ==
        containing("expected an instruction that ExecuTorch 1.5.1 has, found AFirst"));
  Findings findings;
  CHECK(newer->verify(findings));
}

TEST_CASE("metadata is read once, however much is asked of a program") {
  const auto storage = std::make_shared<CountedBytes>(real_program());
  const ProgramFile program = ProgramFile::open(ByteSource(storage)).value();
  CHECK(storage->reads() == 2);  // the extended header, and the one page that the flatbuffer is
  REQUIRE(ProgramGraph::read(program, 0));
  REQUIRE(program.methods());
  REQUIRE(program.segments());
  CHECK(storage->reads() == 2);
  Findings findings;
  REQUIRE(program.verify(findings));
  CHECK(storage->reads() == 3);  // the zeros before the segment
}

TEST_CASE("verify reads a file's kind, its header, its metadata and its padding once") {
  const auto storage = std::make_shared<CountedBytes>(real_program());
  REQUIRE(verify(ByteSource(storage), {}));
  CHECK(storage->reads() == 4);
}

}  // namespace etstream
