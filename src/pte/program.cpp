// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program.h"

#include "base/text.h"
#include "base/try.h"
#include "container/data_segments.h"
#include "container/extended_header.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/table_reader.h"
#include "pte/program_parts.h"
#include "pte/segment_uses.h"
#include "pte/value_info.h"

namespace etstream {
namespace {

Result<std::vector<ValueInfo>> read_values(const TableReader& plan, std::string_view which) {
  ETSTREAM_ASSIGN(const TableList values, plan.tables("values"));
  ETSTREAM_ASSIGN(const auto indices, plan.values<std::int32_t>(which));
  std::vector<ValueInfo> out;
  for (const std::int32_t index : indices) {
    if (index < 0 || std::cmp_greater_equal(index, values.size())) {
      return plan.corrupt(text("indices below ", values.size(), " in ExecutionPlan.", which), text(index));
    }
    ETSTREAM_ASSIGN(const TableReader value, values.at(static_cast<std::uint64_t>(index)));
    ETSTREAM_ASSIGN(const auto held, value.member("val"));
    ETSTREAM_ASSIGN(ValueInfo info, read_value_info(held));
    out.push_back(std::move(info));
  }
  return out;
}

}  // namespace

ProgramFile::ProgramFile(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
ProgramFile::ProgramFile(ProgramFile&&) noexcept = default;
ProgramFile& ProgramFile::operator=(ProgramFile&&) noexcept = default;
ProgramFile::~ProgramFile() = default;

Result<ProgramFile> ProgramFile::open(ByteSource file, std::string name, const ProgramSchema& schema) {
  return without_exceptions([&]() -> Result<ProgramFile> {
    ETSTREAM_ASSIGN(auto tables, schema.schema());
    if (name.empty()) name = file.name();
    ETSTREAM_ASSIGN(const ExtendedHeader header, read_extended_header(file, name));
    ETSTREAM_ASSIGN(ByteSource flatbuffer, file.slice(0, header.program_size));
    ETSTREAM_ASSIGN(FlatbufferView view,
                    FlatbufferView::open(*tables, std::move(flatbuffer), std::move(name)));
    ETSTREAM_TRY(verify_flatbuffer(view));
    return ProgramFile(
        std::make_unique<const Parts>(Parts{std::move(tables), std::move(file), header, std::move(view)}));
  });
}

const ByteSource& ProgramFile::file() const noexcept { return parts_->file; }
std::uint64_t ProgramFile::flatbuffer_size() const noexcept { return parts_->header.program_size; }
std::uint32_t ProgramFile::extended_header_size() const noexcept { return parts_->header.length; }
std::uint64_t ProgramFile::segment_base_offset() const noexcept { return parts_->header.segment_base_offset; }
std::uint64_t ProgramFile::segment_data_size() const noexcept { return parts_->header.segment_data_size; }

Result<std::uint32_t> ProgramFile::version() const {
  return without_exceptions([&]() -> Result<std::uint32_t> {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(parts_->view));
    return root.scalar<std::uint32_t>("version");
  });
}

Result<std::vector<MethodInfo>> ProgramFile::methods() const {
  return without_exceptions([&]() -> Result<std::vector<MethodInfo>> {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(parts_->view));
    ETSTREAM_ASSIGN(const TableList plans, root.tables("execution_plan"));
    std::vector<MethodInfo> methods;
    for (std::uint32_t i = 0; i < plans.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader plan, plans.at(i));
      MethodInfo method;
      ETSTREAM_ASSIGN(auto name, plan.string("name"));
      method.name = std::move(name).value_or("");
      ETSTREAM_ASSIGN(method.inputs, read_values(plan, "inputs"));
      ETSTREAM_ASSIGN(method.outputs, read_values(plan, "outputs"));
      methods.push_back(std::move(method));
    }
    return methods;
  });
}

Result<std::vector<SegmentInfo>> ProgramFile::segments() const {
  return without_exceptions([&]() -> Result<std::vector<SegmentInfo>> {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(parts_->view));
    ETSTREAM_ASSIGN(auto segments, read_segments(root, parts_->file, parts_->header.segment_base_offset));
    ETSTREAM_TRY(note_uses(root, segments));
    return segments;
  });
}

Result<std::uint64_t> ProgramFile::segment_alignment() const {
  constexpr std::uint64_t kMost = 65536;
  constexpr std::uint64_t kDefault = 128;  // ExecuTorch's
  ETSTREAM_ASSIGN(const auto segments, this->segments());
  std::uint64_t alignment = kMost;
  int seen = 0;
  for (const SegmentInfo& segment : segments) {
    if (segment.size == 0) continue;
    ++seen;
    while (segment.offset % alignment != 0) alignment /= 2;
  }
  // One segment may lie at a multiple of more by chance.
  return seen > 1 ? alignment : std::min(alignment, kDefault);
}

}  // namespace etstream
