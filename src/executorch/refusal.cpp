// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/refusal.h"

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/program.h"
#include "etstream/program_graph.h"
#include "etstream/program_weights.h"
#include "etstream/verify.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;

/// A cause; empty if the question finds nothing.
using Cause = std::optional<Finding>;
/// The questions about an attempt that failed. Errors: those of reading the program.
using Question = Result<Cause> (*)(const LoadAttempt&);

Finding advised(std::string message, std::string advice) {
  Finding out(std::move(message));
  out.advice.emplace_back(std::move(advice));
  return out;
}

/// Says that what is missing has to be linked.
Finding not_linked(std::string message, std::size_t missing) {
  return advised(std::move(message), text("link what registers {}", missing == 1 ? "it" : "them"));
}

/// Begins a sentence: "operator 'aten::sin.out' has", "2 operators have ('a', 'b')"
std::string subject(std::string_view noun, const std::vector<std::string>& names) {
  if (names.size() == 1) return text("{} {} has", noun, quote(names.front()));
  return text("{} have ({})", counted(names.size(), noun), names_text(names));
}

Result<ProgramGraph> graph_of(const LoadAttempt& attempt) {
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(attempt.program));
  return ProgramGraph::read(program, attempt.method);
}

Result<Cause> missing_operators(const LoadAttempt& attempt) {
  std::set<std::string> here;
  for (const runtime::Kernel& kernel : runtime::get_registered_kernels()) here.insert(kernel.name_);
  ETSTREAM_ASSIGN(const ProgramGraph graph, graph_of(attempt));
  std::vector<std::string> missing;
  for (const GraphOperator& asked : graph.operators) {
    const std::string name = asked.overload.empty() ? asked.name : text("{}.{}", asked.name, asked.overload);
    if (!here.contains(name)) missing.push_back(name);
  }
  if (missing.empty()) {
    return Cause(
        "its operators have kernels here, but none for the dtypes or the orders of dimensions of some call, "
        "which ExecuTorch's log names");
  }
  return Cause(not_linked(text("{} no kernel here", subject("operator", missing)), missing.size()));
}

Result<Cause> missing_backends(const LoadAttempt& attempt) {
  ETSTREAM_ASSIGN(const ProgramGraph graph, graph_of(attempt));
  std::set<std::string> asked;
  for (const GraphDelegate& delegate : graph.delegates) asked.insert(delegate.backend);
  std::vector<std::string> missing;
  std::vector<std::string> unavailable;
  for (const std::string& name : asked) {
    const auto* const backend = runtime::get_backend_class(name.c_str());
    if (backend == nullptr) missing.push_back(name);
    if (backend != nullptr && !backend->is_available()) unavailable.push_back(name);
  }
  if (!missing.empty()) {
    return Cause(
        not_linked(text("{} not been registered here", subject("backend", missing)), missing.size()));
  }
  if (unavailable.empty()) return Cause();
  return Cause(text("{} been registered, but can't run here", subject("backend", unavailable)));
}

/// Returns the keys of a map; leaves out keys that it can't tell.
std::set<std::string> keys_of(const runtime::NamedDataMap* map) {
  std::set<std::string> out;
  const auto count = map == nullptr ? runtime::Result<std::uint32_t>(0U) : map->get_num_keys();
  for (std::uint32_t i = 0; count.ok() && i < *count; ++i) {
    if (const auto key = map->get_key(i); key.ok()) out.insert(*key);
  }
  return out;
}

Result<Cause> missing_keys(const LoadAttempt& attempt) {
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(attempt.program));
  ETSTREAM_ASSIGN(const auto keys, external_keys(program));
  const auto there = keys_of(attempt.named_data);
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!there.contains(key)) missing.push_back(key);
  }
  if (missing.empty()) return Cause();
  const std::string count = text("{} of the {} that the program asks for {}", missing.size(),
                                 counted(keys.size(), "key"), missing.size() == 1 ? "is" : "are");
  if (attempt.named_data != nullptr)
    return Cause(text("{} not in named_data: {}", count, names_text(missing)));
  return Cause(advised(text("{} not in it: {}", count, names_text(missing)),
                       "named_data takes the .ptd file with them"));
}

Result<Cause> first_unsound(const LoadAttempt& attempt) {
  ETSTREAM_ASSIGN(const Findings findings, verify(attempt.program));
  return findings.ok() ? Cause() : Cause(findings.errors.front());
}

struct Meaning {
  runtime::Error number;
  ErrorCode code;
  std::vector<Question> questions;  // in this order
  std::string_view words;           // where none finds a cause
};

/// Returns the meaning of each of ExecuTorch's numbers (runtime/core/error.h).
const Meaning& meaning_of(runtime::Error number) {
  using Number = runtime::Error;
  static const std::vector<Meaning> kMeanings = {
      {Number::InvalidState, ErrorCode::kCorrupt, {missing_keys, first_unsound}, ""},
      {Number::NotSupported,
       ErrorCode::kUnsupported,
       {},
       "an input may not have the shape that the method was exported with"},
      {Number::NotImplemented, ErrorCode::kUnsupported, {}, ""},
      {Number::InvalidArgument,
       ErrorCode::kInvalidArgument,
       {first_unsound},
       "an input may not fit the bounds that the method was exported with"},
      {Number::OperatorMissing, ErrorCode::kUnsupported, {missing_operators}, ""},
      {Number::NotFound, ErrorCode::kUnsupported, {missing_backends, missing_keys, first_unsound}, ""},
      {Number::MemoryAllocationFailed, ErrorCode::kOutOfMemory, {}, ""},
      {Number::OutOfResources, ErrorCode::kOutOfMemory, {}, ""},
      {Number::AccessFailed, ErrorCode::kIo, {}, ""},
      {Number::InvalidProgram,
       ErrorCode::kCorrupt,
       {first_unsound},
       "the program was made by or for another version of ExecuTorch, or all of its constants are empty"},
      {Number::InvalidExternalData,
       ErrorCode::kCorrupt,
       {missing_keys, first_unsound},
       "the weights are not those that the program was exported with"},
      {Number::DelegateInvalidCompatibility,
       ErrorCode::kCorrupt,
       {missing_backends, first_unsound},
       "the program was lowered for another version of its backend"},
  };
  static const Meaning kOther = {Number::Internal, ErrorCode::kCorrupt, {}, ""};
  const auto found = std::ranges::find(kMeanings, number, &Meaning::number);
  return found == kMeanings.end() ? kOther : *found;
}

Error with_cause(const Meaning& meaning, std::string said, const LoadAttempt& attempt) {
  if (attempt.program.size() > 0) {
    for (const Question question : meaning.questions) {
      // A file that can't be read explains nothing.
      const auto cause = question(attempt);
      if (!cause || !*cause) continue;
      return with_advice(make_error(meaning.code, "{}: {}", said, (*cause)->message), (*cause)->advice);
    }
  }
  if (!meaning.words.empty()) said += text(": {}", meaning.words);
  return Error{meaning.code, std::move(said)};
}

}  // namespace

Error refusal(runtime::Error error, std::string_view what, const LoadAttempt& attempt) {
  Error out;
  const auto told = without_exceptions([&]() -> Result<void> {
    const std::string said = text("{}: ExecuTorch says {} (0x{:x})", what, runtime::to_string(error),
                                  static_cast<std::uint32_t>(error));
    out = with_cause(meaning_of(error), said, attempt);
    return {};
  });
  return told ? out : told.error();
}

}  // namespace etstream
