// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/dropped_methods.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "io/read_pieces.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/delegate_data.h"
#include "pte/rewrite/named_data.h"

namespace etstream {
namespace {

using TensorTest = std::function<bool(const ProgramTensor&)>;

/// The numbers of the methods of these names.
Result<std::set<std::uint32_t>> find_methods(const EditableProgram& editable,
                                             const std::vector<std::string>& names) {
  std::set<std::uint32_t> found;
  std::set<std::string_view> wanted(names.begin(), names.end());
  std::string there;
  ETSTREAM_ASSIGN(const auto methods, editable.program.method_names());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    if (std::find(names.begin(), names.end(), methods[i]) != names.end()) found.insert(i);
    wanted.erase(methods[i]);
    there += (there.empty() ? "" : ", ") + quote(methods[i]);
  }
  if (!wanted.empty()) {
    return make_error(ErrorCode::kNotFound, "{}: has no method {}, it has {}", editable.program.name(),
                      quote(std::string(*wanted.begin())), there);
  }
  if (found.size() == methods.size()) {
    return make_error(ErrorCode::kInvalidArgument, "{}: no method would be left of {}",
                      editable.program.name(), there);
  }
  return found;
}

/// The pieces that `gone` tensors use and none of the program's does, of the tensors that `uses` them.
std::set<std::uint32_t> unused_pieces(const EditableProgram& editable, const std::vector<ProgramTensor>& gone,
                                      const TensorTest& uses) {
  std::set<std::uint32_t> unused;
  for (const ProgramTensor& tensor : gone) {
    if (uses(tensor)) unused.insert(tensor.buffer);
  }
  for (const ProgramTensor& tensor : editable.tensors) {
    if (uses(tensor)) unused.erase(tensor.buffer);
  }
  return unused;
}

/// Only a placeholder is left of it, which ExecuTorch does not write.
void remove_mutable_data(EditableProgram& editable) {
  std::erase(editable.order, *editable.mutable_data.front().segment);
  editable.mutable_data.clear();
  editable.has_same_mutable_data = false;
}

Result<void> remove_tensor_data(EditableProgram& editable, const std::vector<ProgramTensor>& gone) {
  const auto any = [&](const TensorTest& test) { return std::any_of(gone.begin(), gone.end(), test); };
  const auto is_constant = [](const ProgramTensor& tensor) { return tensor.is_constant(); };
  const auto has_state = [](const ProgramTensor& tensor) { return tensor.has_initial_state(); };
  if (any(is_constant)) {
    ETSTREAM_TRY(split_constants(editable));
    remove_pieces(editable, *editable.constants, unused_pieces(editable, gone, is_constant), is_constant);
  }
  // ExecuTorch 1.5.1 reads the first segment of mutable data alone, and writes no other.
  if (any(has_state) && editable.mutable_data.size() == 1 && editable.mutable_data.front().segment) {
    ETSTREAM_TRY(split_mutable_data(editable));
    remove_pieces(editable, editable.mutable_data.front(), unused_pieces(editable, gone, has_state),
                  has_state);
    if (editable.mutable_data.front().pieces->size() <= 1) remove_mutable_data(editable);
  }
  return {};
}

/// The keys of named data that the data of these delegates holds.
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

/// Backends ask for named data by keys that their delegates' data holds.
Result<void> remove_unused_named_data(EditableProgram& editable, const std::vector<DelegateReference>& gone) {
  std::set<std::string> keys;
  for (const EditableProgram::NamedData& named : editable.named_data) keys.insert(named.key);
  if (keys.empty()) return {};
  ETSTREAM_ASSIGN(std::set<std::string> unused, keys_in(editable, gone, keys));
  ETSTREAM_ASSIGN(const std::set<std::string> used, keys_in(editable, editable.delegates, unused));
  for (const std::string& key : used) unused.erase(key);
  for (const ProgramTensor& tensor : editable.tensors) unused.erase(tensor.name);
  if (unused.empty()) return {};
  remove_named_data(editable, unused);
  return {};
}

}  // namespace

Result<void> drop_methods(EditableProgram& editable, const std::vector<std::string>& names) {
  ETSTREAM_ASSIGN(const auto dropped, find_methods(editable, names));
  const auto take_out = [&](auto& all) {
    const auto is_kept = [&](const auto& one) { return !dropped.contains(one.method); };
    const auto first_gone = std::stable_partition(all.begin(), all.end(), is_kept);
    std::remove_reference_t<decltype(all)> gone(first_gone, all.end());
    all.erase(first_gone, all.end());
    return gone;
  };
  std::vector<std::uint64_t> kept;
  for (std::uint32_t i = 0; i < editable.methods.size(); ++i) {
    if (!dropped.contains(i)) kept.push_back(editable.methods[i]);
  }
  editable.methods = std::move(kept);
  editable.has_all_methods = false;
  // Of a constant that none but they use only their tensors say how long it is.
  const auto is_gone = [&](const ProgramTensor& tensor) { return dropped.contains(tensor.method); };
  if (std::any_of(editable.tensors.begin(), editable.tensors.end(),
                  [&](const ProgramTensor& tensor) { return is_gone(tensor) && tensor.is_constant(); })) {
    ETSTREAM_TRY(split_constants(editable));
  }
  const std::vector<ProgramTensor> gone_tensors = take_out(editable.tensors);
  const std::vector<DelegateReference> gone_delegates = take_out(editable.delegates);
  ETSTREAM_TRY(remove_tensor_data(editable, gone_tensors));
  ETSTREAM_TRY(remove_unused_named_data(editable, gone_delegates));
  remove_delegate_data(editable, gone_delegates);
  return {};
}

}  // namespace etstream
