// SPDX-License-Identifier: BSD-3-Clause
//
// These checks follow ExecuTorch 1.5.1, runtime/executor/program.cpp.
#include "formats/pte/load_verify.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_walk.h"
#include "formats/pte/program_model.h"

namespace etstream {
namespace {

constexpr std::uint32_t kNewestVersion = 0;  // ExecuTorch 1.5.1 loads no later one

/// Returns the segment of constants, if it is empty though some constants are said to be in it.
Result<std::optional<pte::Subsegments>> find_empty_constants(const pte::Program& program) {
  ETSTREAM_ASSIGN(auto constants, program.constants());
  if (!constants) return constants;
  ETSTREAM_ASSIGN(const auto offsets, constants->offsets());
  ETSTREAM_ASSIGN(const std::uint32_t index, constants->segment());
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  if (offsets.size() <= 1 || index >= segments.size() || segments[index].size != 0) constants.reset();
  return constants;
}

Result<std::uint64_t> count_constant_tensors(const pte::Program& program) {
  std::uint64_t count = 0;
  ETSTREAM_TRY(for_each(program.methods(), [&](const pte::Method& method) -> Result<void> {
    ETSTREAM_ASSIGN(const auto values, method.values());
    return for_each(values, [&](const pte::Value& value) -> Result<void> {
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (!held || held->kind() != pte::ValueKind::kTensor) return {};
      ETSTREAM_ASSIGN(const pte::Storage storage, held->tensor().storage());
      count += storage.kind == TensorStorage::kConstant ? 1 : 0;
      return {};
    });
  }));
  return count;
}

/// Finds constants without bytes. ExecuTorch's loaders of files give an empty segment no place in memory. The
/// runtime then takes the constants for constants in the flatbuffer, and refuses them.
Result<void> verify_constants(const pte::Program& program, LoadedFrom from, Findings& findings) {
  ETSTREAM_ASSIGN(const auto empty, find_empty_constants(program));
  if (!empty) return {};
  ETSTREAM_ASSIGN(const std::uint64_t tensors, count_constant_tensors(program));
  if (tensors == 0) return {};
  const Error found = with_advice(
      program.view().corrupt(empty->position(),
                             "a constant that has bytes, or ExecuTorch loads no method from a file (0x23)",
                             text("{}, all of them empty", counted(tensors, "constant"))),
      {AdviceTerm::kMoveConstantsOut, " moves them to a file of their own, with which the program runs"});
  from == LoadedFrom::kFile ? add_error(findings, found) : add_warning(findings, found);
  return {};
}

Result<void> verify_version(const pte::Program& program, Findings& findings) {
  ETSTREAM_ASSIGN(const std::uint32_t version, program.version());
  if (version > kNewestVersion) {
    add_error(findings,
              program.view().corrupt(
                  program.root().position(),
                  text("schema version {}, the latest that ExecuTorch 1.5 loads (0x23)", kNewestVersion),
                  std::to_string(version)));
  }
  return {};
}

/// Warns of a program of more tables than FlatBuffers' verifier takes by default.
Result<void> verify_tables(const pte::Program& program, Findings& findings) {
  constexpr std::uint64_t kMostTables = 1'000'000;
  struct CountTables : FlatbufferVisitor {
    Result<void> begin_table(const TableView&, const TableType&) { return ++tables, Result<void>(); }
    std::uint64_t tables = 0;
  } count;
  if (program.view().file().size() <= kMostTables) return {};  // fewer bytes than so many tables take
  ETSTREAM_TRY(walk_flatbuffer(program.view(), count));
  if (count.tables > kMostTables) {
    add_warning(findings,
                program.view().corrupt(
                    program.root().position(),
                    text("at most {} tables, or executorch.runtime in Python refuses the program (0x23) "
                         "unless its verification is Minimal",
                         kMostTables),
                    text("{}", count.tables)));
  }
  return {};
}

}  // namespace

Result<bool> verify_loadable(const ProgramFile& program, LoadedFrom from, Findings& findings) {
  const std::size_t errors_before = findings.errors.size();
  ETSTREAM_TRY(program.verify(findings));
  if (findings.errors.size() != errors_before) return false;
  ETSTREAM_TRY(verify_version(program.model(), findings));
  ETSTREAM_TRY(verify_tables(program.model(), findings));
  ETSTREAM_TRY(note_corrupt(verify_constants(program.model(), from, findings), findings));
  return true;
}

}  // namespace etstream
