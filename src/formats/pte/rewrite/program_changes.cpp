// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_plan.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/pte/rewrite/program_plan.h"
#include "formats/segments/file_kind.h"

namespace etstream {

Result<std::map<std::string, std::string>> read_constant_keys(const ByteSource& json) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  if (json.size() > kMost) {
    return error_in(ErrorCode::kTooLarge, json.name(), "expected at most {} bytes, found {}", kMost,
                    json.size());
  }
  std::map<std::string, std::string> out;
  auto read = read_json(json, ErrorCode::kInvalidArgument, [&](JsonReader& reader) {
    return reader.different_members([&](std::string_view key) -> Result<void> {
      const JsonTape::Value value = reader.take();
      if (value.kind != JsonReader::Kind::kString) {
        return reader.error(text("{}: expected a string, found {}", quote(key), name_of(value.kind)));
      }
      out[std::string(key)] = value.string;
      return {};
    });
  });
  ETSTREAM_TRY(unless_other(json, {"keys as JSON", {}, JsonContent::kOther}, std::move(read)));
  return out;
}

namespace {

/// Returns the numbers of the methods of these names.
Result<std::set<std::uint32_t>> find_methods(const EditableProgram& editable,
                                             const std::vector<std::string>& names) {
  std::set<std::uint32_t> found;
  std::set<std::string_view> wanted(names.begin(), names.end());
  ETSTREAM_ASSIGN(const auto methods, editable.program.method_names());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    if (std::ranges::find(names, methods[i]) != names.end()) found.insert(i);
    wanted.erase(methods[i]);
  }
  if (!wanted.empty()) {
    return error_in(ErrorCode::kNotFound, editable.program.name(), "has no method {}, it has {}",
                    quote(*wanted.begin()), names_text(methods));
  }
  if (found.size() == methods.size()) {
    return error_in(ErrorCode::kInvalidArgument, editable.program.name(), "no method would be left of {}",
                    names_text(methods));
  }
  return found;
}

/// Removes mutable data of which only a placeholder is left, as ExecuTorch writes none.
void remove_mutable_data(EditableProgram& editable) {
  std::erase(editable.order, *editable.mutable_data.front().segment);
  editable.mutable_data.clear();
  editable.has_same_mutable_data = false;
}

/// Removes the data of tensors that are gone. The constants are split, if one of them goes.
Result<void> remove_tensor_data(EditableProgram& editable, const std::vector<ProgramTensor>& gone) {
  if (any_of(gone, TensorStorage::kConstant)) {
    remove_pieces(editable, *editable.constants, gone, TensorStorage::kConstant);
  }
  // ExecuTorch 1.5.1 reads only the first segment of mutable data, and writes no other.
  if (any_of(gone, TensorStorage::kMutable) && editable.mutable_data.size() == 1 &&
      editable.mutable_data.front().segment) {
    ETSTREAM_TRY(split_mutable_data(editable));
    remove_pieces(editable, editable.mutable_data.front(), gone, TensorStorage::kMutable);
    if (editable.mutable_data.front().pieces->size() <= 1) remove_mutable_data(editable);
  }
  return {};
}

/// Returns those of the keys that the data of these delegates contains.
Result<std::set<std::string>> keys_in(const EditableProgram& editable,
                                      const std::vector<DelegateReference>& delegates,
                                      const std::set<std::string>& keys) {
  std::set<std::string> found;
  std::set<std::pair<bool, std::uint32_t>> read;
  for (const DelegateReference& reference : delegates) {
    if (!read.insert({reference.in_segment, reference.index}).second) continue;
    ETSTREAM_TRY(find_keys(data_of(editable, reference), keys, found));
  }
  return found;
}

/// Removes named data that no delegate asks for any more. Backends ask for it by keys that their delegates'
/// data contains.
Result<void> remove_unused_named_data(EditableProgram& editable, const std::vector<DelegateReference>& gone) {
  std::set<std::string> keys;
  for (const EditableProgram::NamedData& named : editable.named_data) keys.insert(named.key);
  if (keys.empty()) return {};
  ETSTREAM_ASSIGN(std::set<std::string> unused, keys_in(editable, gone, keys));
  ETSTREAM_ASSIGN(const std::set<std::string> used, keys_in(editable, editable.delegates, unused));
  for (const std::string& key : used) unused.erase(key);
  for (const ProgramTensor& tensor : editable.tensors) unused.erase(tensor.name);
  remove_named_data(editable, unused);
  return {};
}

/// Takes the methods of these names out of the program, with the constants, mutable data and delegates' data
/// that only they use, and the named data whose key only the data of their delegates contains. Errors:
/// kNotFound, naming the methods that there are; kInvalidArgument if none would be left; those of reading the
/// data of delegates.
Result<void> drop_methods(EditableProgram& editable, const std::vector<std::string>& names) {
  ETSTREAM_ASSIGN(const auto dropped, find_methods(editable, names));
  const auto take_out = [&](auto& all) {
    const auto is_kept = [&](const auto& one) { return !dropped.contains(one.method); };
    const auto first_gone = std::stable_partition(all.begin(), all.end(), is_kept);
    std::remove_reference_t<decltype(all)> gone(first_gone, all.end());
    all.erase(first_gone, all.end());
    return gone;
  };
  std::uint32_t method = 0;
  std::erase_if(editable.methods, [&](std::uint64_t) { return dropped.contains(method++); });
  editable.has_all_methods = false;
  // Only the tensors of dropped methods know the size of a constant that nothing else uses.
  if (std::ranges::any_of(editable.tensors, [&](const ProgramTensor& tensor) {
        return dropped.contains(tensor.method) && tensor.kind == TensorStorage::kConstant;
      })) {
    ETSTREAM_TRY(split_constants(editable));
  }
  const std::vector<ProgramTensor> gone_tensors = take_out(editable.tensors);
  const std::vector<DelegateReference> gone_delegates = take_out(editable.delegates);
  ETSTREAM_TRY(remove_tensor_data(editable, gone_tensors));
  ETSTREAM_TRY(remove_unused_named_data(editable, gone_delegates));
  remove_delegate_data(editable, gone_delegates);
  return {};
}

Result<void> check(const ProgramChanges& changes, const ProgramPlanOptions& options) {
  if (changes.constants_out && !changes.constants_in.empty()) {
    return Error{ErrorCode::kInvalidArgument, "constants can't be moved out and in at once"};
  }
  return check(options);
}

Result<ProgramPlan> plan_changed(EditableProgram editable, const ProgramStyle& observed,
                                 const ProgramChanges& changes, const ProgramPlanOptions& options) {
  ProgramPlan out;
  editable.has_stack_traces = !changes.drop_stack_traces;
  if (!changes.drop_methods.empty()) ETSTREAM_TRY(drop_methods(editable, changes.drop_methods));
  ETSTREAM_TRY(move_constants_in(editable, changes.constants_in));
  if (changes.constants_out) {
    ETSTREAM_ASSIGN(out.tensor_data, move_constants_out(editable, *changes.constants_out));
    out.tensor_data->segment_alignment =
        default_segment_alignment(options.as_of.value_or(observed.writer.release));
  }
  ETSTREAM_TRY(add_metadata(editable, changes.metadata));
  ETSTREAM_ASSIGN(out.program, lay_out(std::move(editable), observed, options));
  return out;
}

}  // namespace

Result<ProgramPlan> plan(const ProgramFile& program, const ProgramChanges& changes,
                         const ProgramPlanOptions& options) {
  return without_exceptions([&]() -> Result<ProgramPlan> {
    if (changes.empty() && options.empty()) return ProgramPlan{plan_copy(program.file(), "program"), {}};
    ETSTREAM_TRY(check(changes, options));
    ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
    ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(editable));
    return plan_changed(std::move(editable), observed, changes, options);
  });
}

Result<ProgramPlan> plan(const ProgramDescription& program, const ProgramChanges& changes,
                         const ProgramPlanOptions& options) {
  return without_exceptions([&]() -> Result<ProgramPlan> {
    ETSTREAM_TRY(check(changes, options));
    ETSTREAM_ASSIGN(auto schema, program.schema.schema());
    ExtendedHeader none;
    none.program_size = program.metadata.size();
    ETSTREAM_ASSIGN(const auto model,
                    pte::Program::open(std::move(schema), program.metadata, none, program.name));
    ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(*model, program));
    ProgramPlanOptions wanted = options;
    if (!wanted.delegates) wanted.delegates = DelegateData::kInSegments;
    return plan_changed(std::move(editable), {}, changes, wanted);
  });
}

}  // namespace etstream
