// SPDX-License-Identifier: BSD-3-Clause
#include "pte/data_requests.h"

#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "container/tensor_shape.h"
#include "flatbuffer/table_reader.h"
#include "pte/delegate_references.h"
#include "pte/program_parts.h"
#include "pte/program_payloads.h"
#include "pte/program_tensors.h"
#include "pte/xnnpack_payload.h"

namespace etstream {
namespace {

class RequestReader {
 public:
  explicit RequestReader(const ProgramFile& program) : program_(program), view_(program.parts().view) {}

  Result<DataRequests> run() {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view_));
    ETSTREAM_TRY(read_methods(root));
    ETSTREAM_TRY(read_named_data(root));
    ETSTREAM_TRY(read_tensor_requests(root));
    ETSTREAM_TRY(read_delegate_requests(root));
    return std::move(out_);
  }

 private:
  Result<void> read_methods(const TableReader& root) {
    ETSTREAM_ASSIGN(const TableList plans, root.tables("execution_plan"));
    for (std::uint32_t i = 0; i < plans.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader plan, plans.at(i));
      ETSTREAM_ASSIGN(const auto name, plan.string("name"));
      methods_.push_back(text("method ", quote(name.value_or(""))));
    }
    return {};
  }

  Result<void> read_named_data(const TableReader& root) {
    ETSTREAM_ASSIGN(const auto segments, program_.segments());
    ETSTREAM_ASSIGN(const TableList listed, root.tables("named_data"));
    for (std::uint32_t i = 0; i < listed.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader named, listed.at(i));
      ETSTREAM_ASSIGN(auto key, named.string("key"));
      ETSTREAM_ASSIGN(const auto index, named.scalar<std::uint32_t>("segment_index"));
      if (index >= segments.size()) {
        return named.corrupt(text("a segment below ", segments.size()), text(index));
      }
      ETSTREAM_ASSIGN(ByteSource data, program_.file().slice(segments[index].offset, segments[index].size));
      out_.named_data.try_emplace(std::move(key).value_or(""), std::move(data));
    }
    return {};
  }

  Result<void> read_tensor_requests(const TableReader& root) {
    ETSTREAM_ASSIGN(const auto tensors, read_tensors(root));
    std::set<std::pair<std::uint32_t, std::string_view>> seen;  // constants by method and key
    for (const ProgramTensor& tensor : tensors) {
      if (!tensor.is_external) continue;
      ETSTREAM_ASSIGN(const TableReader table, table_of(view_, tensor));
      ETSTREAM_ASSIGN(TensorLayout layout, read_tensor_layout(table));
      const bool is_first = tensor.is_planned || seen.insert({tensor.method, tensor.name}).second;
      out_.tensors.push_back(
          {tensor.name, methods_[tensor.method], std::move(layout), tensor.is_planned, is_first});
    }
    return {};
  }

  Result<void> read_delegate_requests(const TableReader& root) {
    ETSTREAM_ASSIGN(const ProgramPayloads payloads, ProgramPayloads::read(program_));
    ETSTREAM_ASSIGN(const auto references, read_delegate_references(root));
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;  // data by its offset and size
    std::uint64_t total = 0;
    for (const DelegateReference& reference : references) {
      ETSTREAM_ASSIGN(const TableReader table, table_of(view_, reference));
      ETSTREAM_ASSIGN(ByteSource data, payloads.delegate(table, reference.in_segment, reference.index));
      if (!seen.insert({data.offset_in(program_.file()).value_or(0), data.size()}).second) continue;
      // Segments that lie over each other would have the same bytes read over and over.
      total += data.size();
      if (total > program_.file().size()) {
        return table.corrupt("data of delegates that is apart from each other", "data over other data");
      }
      ETSTREAM_TRY(read_delegate(reference, std::move(data)));
    }
    return {};
  }

  Result<void> read_delegate(const DelegateReference& reference, ByteSource data) {
    if (reference.backend != kXnnpackBackend) {
      out_.others.push_back(std::move(data));
      return {};
    }
    const std::string asker = text(methods_[reference.method], ", delegate ", reference.delegate, " (",
                                   printable(reference.backend), ")");
    auto constants = read_xnnpack_constants(data, text(view_.name(), ": ", asker));
    if (constants) {
      for (XnnpackConstant& constant : *constants) {
        out_.delegates.push_back({std::move(constant.key), asker, constant.size});
      }
      return {};
    }
    const ErrorCode code = constants.error().code;
    if (code != ErrorCode::kCorrupt && code != ErrorCode::kTooLarge) return std::move(constants).error();
    out_.errors.push_back(std::move(constants).error().message);
    out_.others.push_back(std::move(data));
    return {};
  }

  const ProgramFile& program_;
  const FlatbufferView& view_;
  std::vector<std::string> methods_;
  DataRequests out_;
};

}  // namespace

Result<DataRequests> read_data_requests(const ProgramFile& program) { return RequestReader(program).run(); }

}  // namespace etstream
