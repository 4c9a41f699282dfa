// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program.h"

#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"
#include "formats/segments/file_kind.h"

namespace etstream {
namespace {

/// Returns about as many bytes as a value takes in the file.
std::uint64_t size_of(const ValueInfo& info) {
  constexpr std::uint64_t kTables = 32;
  const auto* const tensor = std::get_if<TensorInfo>(&info);
  return kTables + (tensor ? 5 * std::uint64_t{tensor->sizes.size()} : 0);
}

/// Reads the values that a method lists in `field`, which may be one value many times.
Result<std::vector<ValueInfo>> read_values(const pte::Method& method, const BoundField& field,
                                           FileBudget& budget) {
  ETSTREAM_ASSIGN(const auto values, method.values());
  ETSTREAM_ASSIGN(const auto numbers, method.numbers<std::int32_t>(field));
  ETSTREAM_ASSIGN(const auto indices, numbers.all());
  std::vector<ValueInfo> out;
  for (const std::int32_t index : indices) {
    if (index < 0 || std::cmp_greater_equal(index, values.size())) {
      return method.corrupt(text("indices below {} in {}", values.size(), field.full_name()),
                            std::to_string(index));
    }
    ETSTREAM_ASSIGN(const pte::Value value, values.at(static_cast<std::uint64_t>(index)));
    ETSTREAM_ASSIGN(const auto held, value.held());
    ETSTREAM_ASSIGN(ValueInfo info, pte::Held::info_of(held));
    ETSTREAM_TRY(budget.reach(value.position(), size_of(info)));
    out.push_back(std::move(info));
  }
  return out;
}

}  // namespace

ProgramFile::ProgramFile(std::unique_ptr<const pte::Program> model) : model_(std::move(model)) {}
ProgramFile::ProgramFile(ProgramFile&&) noexcept = default;
ProgramFile& ProgramFile::operator=(ProgramFile&&) noexcept = default;
ProgramFile::~ProgramFile() = default;

Result<ProgramFile> ProgramFile::open(ByteSource file, std::string name, const ProgramSchema& schema) {
  const ByteSource whole = file;
  auto opened = without_exceptions([&]() -> Result<ProgramFile> {
    ETSTREAM_ASSIGN(auto tables, schema.schema());
    if (name.empty()) name = file.name();
    ETSTREAM_ASSIGN(const ExtendedHeader header, read_extended_header(file, name));
    ETSTREAM_ASSIGN(auto model,
                    pte::Program::open(std::move(tables), std::move(file), header, std::move(name)));
    return ProgramFile(std::move(model));
  });
  return unless_other(whole, {"a program (ET12)", {FileKind::kProgram}}, std::move(opened));
}

const ByteSource& ProgramFile::file() const noexcept { return model_->file(); }
std::uint64_t ProgramFile::flatbuffer_size() const noexcept { return model_->header().program_size; }

Result<std::uint32_t> ProgramFile::version() const {
  return without_exceptions([&] { return model_->version(); });
}

Result<std::vector<MethodInfo>> ProgramFile::methods() const {
  return without_exceptions([&]() -> Result<std::vector<MethodInfo>> {
    std::vector<MethodInfo> methods;
    FileBudget budget(model_->view().name(), model_->view().file().size());
    ETSTREAM_TRY(for_each(model_->methods(), [&](const pte::Method& table) -> Result<void> {
      MethodInfo& method = methods.emplace_back();
      ETSTREAM_ASSIGN(method.name, table.name());
      ETSTREAM_ASSIGN(method.inputs, read_values(table, model_->fields().execution_plan.inputs, budget));
      ETSTREAM_ASSIGN(method.outputs, read_values(table, model_->fields().execution_plan.outputs, budget));
      return {};
    }));
    return methods;
  });
}

Result<std::vector<SegmentInfo>> ProgramFile::segments() const {
  return without_exceptions([&]() -> Result<std::vector<SegmentInfo>> {
    ETSTREAM_ASSIGN(const auto segments, model_->segments());
    return std::vector<SegmentInfo>(segments.begin(), segments.end());
  });
}

Result<std::uint64_t> ProgramFile::segment_alignment() const {
  ETSTREAM_ASSIGN(const auto segments, model_->segments());
  return observed_alignment(segments);
}

}  // namespace etstream
