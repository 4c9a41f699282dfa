// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/bundled_program_file.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "bpte/bundled_program_parts.h"
#include "bpte/bundled_program_schema.h"
#include "bpte/test_case_check.h"
#include "container/findings.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/table_reader.h"

namespace etstream {
namespace {

constexpr std::uint32_t kBundledProgramVersion = 2;  // that ExecuTorch 1.5.1 writes
constexpr std::uint64_t kLoadedAlignment = 16;       // of a program in memory

Result<Value> read_tensor(const TableReader& table, const SegmentedBundleParts* segmented) {
  Tensor tensor;
  ETSTREAM_ASSIGN(tensor.scalar_type, table.scalar<ScalarType>("scalar_type"));
  for (const std::string_view name : {"sizes", "dim_order"}) {
    ETSTREAM_ASSIGN(const auto vector, table.vector(name));
    if (vector && vector->count > kMostDimensions) {
      return table.corrupt(text("at most ", kMostDimensions, " dimensions in Tensor.", name),
                           text(vector->count));
    }
  }
  ETSTREAM_ASSIGN(tensor.sizes, table.values<std::int32_t>("sizes"));
  ETSTREAM_ASSIGN(tensor.dim_order, table.values<std::uint8_t>("dim_order"));
  if (segmented) {
    ETSTREAM_ASSIGN(const auto segment, segmented->data_segment(table));
    if (segment) {
      tensor.data = segmented->segment(*segment);
      return Value(std::move(tensor));
    }
  }
  ETSTREAM_ASSIGN(auto data, table.bytes("data"));
  tensor.data = std::move(data).value_or(ByteSource());
  return Value(std::move(tensor));
}

Result<Value> read_value(const TableReader& table, const SegmentedBundleParts* segmented) {
  ETSTREAM_ASSIGN(const auto held, table.member("val"));
  if (!held) return Value(std::monostate{});
  const std::string& kind = held->type_name();
  if (kind == "Tensor") return read_tensor(*held, segmented);
  if (kind == "Int") {
    ETSTREAM_ASSIGN(const auto scalar, held->scalar<std::int64_t>("int_val"));
    return Value(scalar);
  }
  if (kind == "Bool") {
    ETSTREAM_ASSIGN(const auto scalar, held->scalar<std::uint8_t>("bool_val"));
    return Value(scalar != 0);
  }
  ETSTREAM_ASSIGN(const auto scalar, held->scalar<double>("double_val"));
  return Value(scalar);
}

Result<std::vector<Value>> read_values(const TableReader& test_case, std::string_view which,
                                       const SegmentedBundleParts* segmented) {
  ETSTREAM_ASSIGN(const TableList list, test_case.tables(which));
  std::vector<Value> values;
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader table, list.at(i));
    ETSTREAM_ASSIGN(Value value, read_value(table, segmented));
    values.push_back(std::move(value));
  }
  return values;
}

/// ExecuTorch's reader takes these to be there. Adds an error for each that is not.
Result<void> check_present(const TableReader& table, std::span<const std::string_view> names,
                           const ByteSource& file, Findings& findings) {
  for (const std::string_view name : names) {
    ETSTREAM_ASSIGN(const auto vector, table.vector(name));
    if (vector) continue;
    add_error(findings, text(file.name(), ": offset ", table.position(), ": expected ", table.type_name(),
                             ".", name, ", which ExecuTorch reads unchecked, found none"));
  }
  return {};
}

Result<void> check_values_present(const TableReader& test_case, std::string_view which,
                                  const ByteSource& file, Findings& findings) {
  static constexpr std::array<std::string_view, 3> kTensor = {"sizes", "data", "dim_order"};
  ETSTREAM_ASSIGN(const TableList list, test_case.tables(which));
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader value, list.at(i));
    ETSTREAM_ASSIGN(const auto held, value.member("val"));
    if (held && held->type_name() == "Tensor") ETSTREAM_TRY(check_present(*held, kTensor, file, findings));
  }
  return {};
}

}  // namespace

Result<void> BundledProgramFile::Parts::fill() {
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
  ETSTREAM_ASSIGN(version, root.scalar<std::uint32_t>("version"));
  if (segmented) {
    ETSTREAM_TRY(segmented->match(root));
    program = segmented->program();
    program_offset = program.offset_in(file).value_or(0);
  } else {
    ETSTREAM_ASSIGN(const auto where, root.vector("program"));
    ETSTREAM_ASSIGN(auto bytes, root.bytes("program"));
    program = std::move(bytes).value_or(ByteSource());
    program_offset = where ? where->elements() : 0;
  }
  ETSTREAM_ASSIGN(const TableList list, root.tables("method_test_suites"));
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader table, list.at(i));
    ETSTREAM_ASSIGN(auto name, table.string("method_name"));
    ETSTREAM_ASSIGN(const TableList cases, table.tables("test_cases"));
    suites.push_back({std::move(name).value_or(""), cases.size(), table.position()});
  }
  return {};
}

Result<TableReader> BundledProgramFile::Parts::test_case(const Suite& suite, std::uint32_t index) const {
  const auto type = view.schema().find_table("BundledMethodTestSuite");
  ETSTREAM_ASSIGN(const TableView table, view.table(suite.position));
  ETSTREAM_ASSIGN(const TableList cases, TableReader(view, table, *type).tables("test_cases"));
  if (index >= cases.size()) {
    return make_error(ErrorCode::kInvalidArgument, "there is no test case ", index, " among the ",
                      cases.size(), " of method ", quote(suite.method_name));
  }
  return cases.at(index);
}

Result<std::vector<std::string>> BundledProgramFile::Parts::segment_names() const {
  std::vector<std::string> names(segmented->directory().segments.size(), "what nothing refers to");
  names[segmented->program_segment()] = "the program";
  for (const Suite& suite : suites) {
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      ETSTREAM_ASSIGN(const TableReader table, test_case(suite, i));
      for (const auto& [which, what] :
           {std::pair("inputs", "input"), std::pair("expected_outputs", "expected output")}) {
        ETSTREAM_ASSIGN(const TableList list, table.tables(which));
        for (std::uint32_t j = 0; j < list.size(); ++j) {
          ETSTREAM_ASSIGN(const TableReader value, list.at(j));
          ETSTREAM_ASSIGN(const auto held, value.member("val"));
          if (!held || held->type_name() != "Tensor") continue;
          ETSTREAM_ASSIGN(const auto segment, segmented->data_segment(*held));
          if (segment) names[*segment] = text(quote(suite.method_name), " case ", i, " ", what, " ", j);
        }
      }
    }
  }
  return names;
}

Result<void> BundledProgramFile::Parts::add_flaws_of_layout(Findings& findings) const {
  std::vector<UsedRange> header;
  if (segmented) header.push_back(segmented->header_range());
  ETSTREAM_ASSIGN(auto flaws, find_flaws_of_layout(view, header));
  add_warnings(findings, std::move(flaws));
  return {};
}

Result<void> BundledProgramFile::Parts::check_all_present(Findings& findings) const {
  static constexpr std::array<std::string_view, 2> kRoot = {"method_test_suites", "program"};
  static constexpr std::array<std::string_view, 2> kSuite = {"method_name", "test_cases"};
  static constexpr std::array<std::string_view, 2> kCase = {"inputs", "expected_outputs"};
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
  ETSTREAM_TRY(check_present(root, kRoot, view.file(), findings));
  ETSTREAM_ASSIGN(const TableList list, root.tables("method_test_suites"));
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader suite, list.at(i));
    ETSTREAM_TRY(check_present(suite, kSuite, view.file(), findings));
    ETSTREAM_ASSIGN(const TableList cases, suite.tables("test_cases"));
    for (std::uint32_t j = 0; j < cases.size(); ++j) {
      ETSTREAM_ASSIGN(const TableReader test_case, cases.at(j));
      ETSTREAM_TRY(check_present(test_case, kCase, view.file(), findings));
      for (const std::string_view which : kCase) {
        ETSTREAM_TRY(check_values_present(test_case, which, view.file(), findings));
      }
    }
  }
  return {};
}

BundledProgramFile::BundledProgramFile(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
BundledProgramFile::BundledProgramFile(BundledProgramFile&&) noexcept = default;
BundledProgramFile& BundledProgramFile::operator=(BundledProgramFile&&) noexcept = default;
BundledProgramFile::~BundledProgramFile() = default;

Result<BundledProgramFile> BundledProgramFile::open(ByteSource file) {
  return without_exceptions([&]() -> Result<BundledProgramFile> {
    const auto with = [](Parts filled) -> Result<BundledProgramFile> {
      auto parts = std::make_unique<Parts>(std::move(filled));
      ETSTREAM_TRY(parts->fill());
      return BundledProgramFile(std::move(parts));
    };
    const auto kind = file_kind(file);
    if (!kind || *kind != FileKind::kSegmentedBundle) {
      ETSTREAM_ASSIGN(const Schema* schema, bundled_program_schema());
      ETSTREAM_ASSIGN(FlatbufferView view, FlatbufferView::open(*schema, file, file.name()));
      ETSTREAM_TRY(verify_flatbuffer(view));
      return with(Parts{std::move(file), std::move(view), {}, 0, {}, 0, {}});
    }
    ETSTREAM_ASSIGN(SegmentedBundleParts segmented, SegmentedBundleParts::open(file));
    ETSTREAM_ASSIGN(FlatbufferView view, segmented.view());
    return with(Parts{std::move(file), std::move(view), std::move(segmented), 0, {}, 0, {}});
  });
}

const ByteSource& BundledProgramFile::file() const noexcept { return parts_->file; }
BundleFormat BundledProgramFile::format() const noexcept {
  return parts_->segmented ? BundleFormat::kSegmented : BundleFormat::kBp08;
}
std::uint32_t BundledProgramFile::version() const noexcept { return parts_->version; }
const ByteSource& BundledProgramFile::program() const noexcept { return parts_->program; }
std::uint64_t BundledProgramFile::program_offset() const noexcept { return parts_->program_offset; }
const std::vector<BundledProgramFile::Suite>& BundledProgramFile::suites() const noexcept {
  return parts_->suites;
}

Result<ProgramFile> BundledProgramFile::open_program() const {
  return ProgramFile::open(program(), text(file().name(), ": program at ", program_offset()));
}

Result<MethodTestCase> BundledProgramFile::test_case(const Suite& suite, std::uint32_t index) const {
  return without_exceptions([&]() -> Result<MethodTestCase> {
    ETSTREAM_ASSIGN(const TableReader table, parts_->test_case(suite, index));
    MethodTestCase test_case;
    ETSTREAM_ASSIGN(test_case.inputs, read_values(table, "inputs", parts_->segmented_parts()));
    ETSTREAM_ASSIGN(test_case.expected_outputs,
                    read_values(table, "expected_outputs", parts_->segmented_parts()));
    return test_case;
  });
}

Result<BundledProgram> BundledProgramFile::read() const {
  return without_exceptions([&]() -> Result<BundledProgram> {
    BundledProgram bundle;
    bundle.version = version();
    bundle.program = program();
    for (const Suite& suite : suites()) {
      MethodTestSuite& out = bundle.method_test_suites.emplace_back();
      out.method_name = suite.method_name;
      for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
        ETSTREAM_ASSIGN(MethodTestCase test_case, this->test_case(suite, i));
        out.test_cases.push_back(std::move(test_case));
      }
    }
    return bundle;
  });
}

Result<void> BundledProgramFile::verify(Findings& findings) const { return verify(open_program(), findings); }

Result<void> BundledProgramFile::verify(const Result<ProgramFile>& program, Findings& findings) const {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_TRY(parts_->add_flaws_of_layout(findings));
    ETSTREAM_TRY(parts_->check_all_present(findings));
    if (parts_->segmented) {
      ETSTREAM_ASSIGN(const auto names, parts_->segment_names());
      ETSTREAM_TRY(parts_->segmented->verify(names, findings));
    }
    if (version() != kBundledProgramVersion) {
      add_warning(findings,
                  text(file().name(), ": schema version ", version(), ", expected ", kBundledProgramVersion));
    }
    if (!program) return program.error();
    ETSTREAM_TRY(program->verify(findings));
    // That a program in a bundle is aligned to less than its segments ask for is ExecuTorch's own layout:
    // only who maps the program meets it, and is told then.
    if (program_offset() % kLoadedAlignment != 0) {
      const std::string expected =
          text("the program at a multiple of ", kLoadedAlignment, ", or ExecuTorch does not load it");
      add_error(findings, parts_->view.corrupt(program_offset(), expected, "one that is not").message);
    }
    ETSTREAM_ASSIGN(const auto methods, program->methods());
    for (const Suite& suite : suites()) {
      const MethodInfo* method = find_method(methods, suite.method_name, findings);
      for (std::uint32_t i = 0; method && i < suite.test_cases; ++i) {
        ETSTREAM_ASSIGN(const MethodTestCase test_case, this->test_case(suite, i));
        check_test_case(*method, test_case, i, findings);
      }
    }
    return {};
  });
}

Result<ProgramFile> open_program(const ByteSource& file) {
  return without_exceptions([&]() -> Result<ProgramFile> {
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    if (kind == FileKind::kProgram) return ProgramFile::open(file);
    if (kind != FileKind::kBundledProgram && kind != FileKind::kSegmentedBundle) {
      return make_error(ErrorCode::kUnsupported, file.name(),
                        ": expected a program or a bundle, found weights (.ptd, .safetensors)");
    }
    ETSTREAM_ASSIGN(const BundledProgramFile bundle, BundledProgramFile::open(file));
    return bundle.open_program();
  });
}

}  // namespace etstream
