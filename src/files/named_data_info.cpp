// SPDX-License-Identifier: BSD-3-Clause
#include "files/named_data_info.h"

#include <map>
#include <string>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/program_metadata.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/program_model.h"

namespace etstream {
namespace {

class InfoList {
 public:
  explicit InfoList(const KeyNames& names) : names_(names) {}

  /// Returns the entry of a key, and makes it if it is new.
  NamedDataInfo& at(const std::string& key) {
    const auto [place, is_new] = places_.try_emplace(key, out_.size());
    if (!is_new) return out_[place->second];
    const auto name = names_.find(key);
    return out_.emplace_back(
        NamedDataInfo{key, name == names_.end() ? "" : name->second, 0, std::nullopt, {}});
  }
  std::vector<NamedDataInfo> take() { return std::move(out_); }

 private:
  const KeyNames& names_;
  std::vector<NamedDataInfo> out_;
  std::map<std::string, std::size_t> places_;  // in `out_`, by key
};

Result<void> add_tensors(const pte::Program& program, InfoList& out) {
  ETSTREAM_ASSIGN(const auto methods, program.method_names());
  ETSTREAM_ASSIGN(const auto tensors, read_tensors(program));
  for (const ProgramTensor& tensor : tensors) {
    if (!tensor.is_external) continue;
    NamedDataInfo& info = out.at(tensor.name);
    const std::string asker = text("method {}", quote(methods[tensor.method]));
    if (info.asked_by.empty() || info.asked_by.back() != asker) info.asked_by.push_back(asker);
    if (info.offset || info.size != 0) continue;
    ETSTREAM_ASSIGN(const pte::Tensor table, program.tensor_at(tensor.position));
    ETSTREAM_ASSIGN(const TensorLayout layout, table.layout());
    const auto size = byte_size(layout.scalar_type, layout.sizes);
    info.size = size ? *size : 0;
  }
  return {};
}

}  // namespace

Result<std::vector<NamedDataInfo>> read_named_data_info(const ProgramFile& program, std::uint64_t base,
                                                        const KeyNames& names) {
  InfoList out(names);
  ETSTREAM_ASSIGN(const auto named, pte::read_named_data(program.model()));
  for (const pte::NamedPayload& each : named) {
    if (each.key.starts_with(kMetadataPrefix)) continue;
    NamedDataInfo& info = out.at(each.key);
    info.size = each.data.size();
    info.offset = base + each.data.offset_in(program.file()).value_or(0);
  }
  ETSTREAM_TRY(add_tensors(program.model(), out));
  ETSTREAM_ASSIGN(const auto delegates, read_named_data_uses(program));
  for (const DelegateUses& delegate : delegates) {
    for (const NamedDataUse& use : delegate.uses) {
      NamedDataInfo& info = out.at(use.key);
      if (!info.offset && info.size == 0) info.size = use.size.value_or(0);
      info.asked_by.push_back(use.use.empty() ? delegate.asker : text("{}: {}", delegate.asker, use.use));
    }
  }
  return out.take();
}

}  // namespace etstream
