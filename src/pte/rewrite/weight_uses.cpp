// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/weight_uses.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "etstream/program_metadata.h"
#include "pte/data_requests.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/editable_program.h"
#include "tensor/dimensions.h"

namespace etstream {
namespace {

bool fits(const TensorLayout& layout, const ByteSource& data) {
  const auto bytes = byte_size(layout.scalar_type, layout.sizes);
  return bytes && *bytes == data.size() && is_permutation(layout.dim_order, layout.sizes.size());
}

class UseReader {
 public:
  explicit UseReader(EditableProgram editable) : editable_(std::move(editable)) {}

  Result<std::vector<WeightUses>> run() {
    const auto is_constant = [](const ProgramTensor& tensor) { return tensor.is_constant(); };
    if (std::any_of(editable_.tensors.begin(), editable_.tensors.end(), is_constant)) {
      ETSTREAM_TRY(read_constants());
    }
    read_named_data();
    read_delegates();
    ETSTREAM_TRY(read_initial_states());
    return std::move(out_);
  }

 private:
  Result<void> read_constants() {
    ETSTREAM_TRY(split_constants(editable_));
    std::map<std::uint32_t, std::size_t> places;  // in out_, by number
    for (std::size_t i = 0; i < editable_.tensors.size(); ++i) {
      const ProgramTensor& tensor = editable_.tensors[i];
      if (!tensor.is_constant()) continue;
      ETSTREAM_ASSIGN(ByteSource data, piece_of(editable_, tensor));
      const auto [place, is_new] = places.try_emplace(tensor.buffer, out_.size());
      if (is_new) {
        const std::string name = tensor.name.empty() ? std::to_string(tensor.buffer) : quote(tensor.name);
        out_.push_back({std::move(data), "constant " + name, {}, {}, {}});
      }
      WeightUses& uses = out_[place->second];
      ETSTREAM_ASSIGN(const pte::Tensor table, editable_.program.tensor_at(tensor.position));
      ETSTREAM_ASSIGN(TensorLayout layout, table.layout());
      if (!fits(layout, uses.data)) uses.kept = KeptBecause::kLayout;
      uses.tensors.push_back({i, tensor.name, std::move(layout)});
    }
    return {};
  }

  void read_named_data() {
    std::map<std::uint32_t, std::size_t> places;  // in out_, by segment
    for (const EditableProgram::NamedData& named : editable_.named_data) {
      // It says something of the program itself.
      if (named.key.starts_with(kMetadataPrefix)) continue;
      const auto [place, is_new] = places.try_emplace(named.segment, out_.size());
      if (is_new) {
        const ByteSource& data = editable_.segments[named.segment].source;
        out_.push_back({data, "named data " + quote(named.key), {}, {}, {}});
      }
      out_[place->second].keys.push_back(named.key);
    }
  }

  void read_delegates() {
    std::set<std::pair<bool, std::uint32_t>> seen;
    for (const DelegateReference& delegate : editable_.delegates) {
      if (!seen.insert({delegate.in_segment, delegate.index}).second) continue;
      const ByteSource& data = delegate.in_segment ? editable_.segments[delegate.index].source
                                                   : editable_.inline_delegates[delegate.index].data;
      out_.push_back({data, "delegate " + printable(delegate.backend), {}, {}, KeptBecause::kDelegate});
    }
  }

  Result<void> read_initial_states() {
    if (editable_.mutable_data.empty()) return {};
    ETSTREAM_TRY(split_mutable_data(editable_));
    // ExecuTorch 1.5.1 reads the first segment of mutable data alone, and writes no other.
    const std::vector<ByteSource>& pieces = *editable_.mutable_data.front().pieces;
    std::set<std::uint32_t> seen;
    for (const ProgramTensor& tensor : editable_.tensors) {
      if (!tensor.has_initial_state() || tensor.buffer >= pieces.size() || !seen.insert(tensor.buffer).second)
        continue;
      const std::string name = tensor.name.empty() ? std::to_string(tensor.buffer) : quote(tensor.name);
      out_.push_back({pieces[tensor.buffer], "initial state " + name, {}, {}, KeptBecause::kInitialState});
    }
    return {};
  }

  EditableProgram editable_;
  std::vector<WeightUses> out_;
};

}  // namespace

Result<ProgramWeights> read_weight_uses(const ProgramFile& program) {
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
  ProgramWeights out;
  ETSTREAM_ASSIGN(out.weights, UseReader(std::move(editable)).run());
  ETSTREAM_ASSIGN(const DataRequests requests, read_data_requests(program.model()));
  out.asked_for = external_keys(requests);
  return out;
}

}  // namespace etstream
