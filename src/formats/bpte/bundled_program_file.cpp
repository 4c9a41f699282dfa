// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/bundled_program.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "bundled_program_fields_generated.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/file_plan.h"
#include "core/layout/same_bytes.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/table_reader.h"
#include "formats/bpte/bundled_program.h"
#include "formats/bpte/segmented_bundle.h"
#include "formats/bpte/test_cases.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"
#include "formats/segments/file_kind.h"

namespace etstream {
namespace {

constexpr std::uint32_t kBundledProgramVersion = 2;  // that ExecuTorch 1.5.1 writes
constexpr std::uint64_t kLoadedAlignment = 16;       // of a program in memory

/// Adds an error for each absent field that ExecuTorch's reader reads unchecked.
class PresenceCheck : public FlatbufferVisitor {
 public:
  PresenceCheck(const FlatbufferView& view, const bundled_program::Fields& fields, Findings& findings)
      : view_(view),
        findings_(findings),
        needed_{&fields.bundled_program.method_test_suites.type(),
                &fields.bundled_program.program.type(),
                &fields.bundled_method_test_suite.method_name.type(),
                &fields.bundled_method_test_suite.test_cases.type(),
                &fields.bundled_method_test_case.inputs.type(),
                &fields.bundled_method_test_case.expected_outputs.type(),
                &fields.tensor.sizes.type(),
                &fields.tensor.data.type(),
                &fields.tensor.dim_order.type()} {}

  Result<void> absent(const TableView& table, const TableType& declared, const FieldType& field) {
    if (std::find(needed_.begin(), needed_.end(), &field) == needed_.end()) return {};
    const std::string expected = text("{}.{}, which ExecuTorch reads unchecked", declared.name, field.name);
    add_error(findings_, view_.corrupt(table.position, expected, "none"));
    return {};
  }

 private:
  const FlatbufferView& view_;
  Findings& findings_;
  const std::array<const FieldType*, 9> needed_;
};

/// Returns the program's alignment with which packing gives the file again, if there is one.
Result<std::optional<std::uint32_t>> alignment_that_gives(const BundledProgram& bundle,
                                                          const BundledProgramFile& file) {
  constexpr std::uint32_t kLargest = 65536;
  constexpr std::uint32_t kUsual = 32;
  std::vector<std::uint32_t> candidates = {kUsual};
  for (std::uint32_t alignment = kLargest; alignment > 0; alignment /= 2) {
    if (alignment != kUsual && file.program_offset() % alignment == 0) candidates.push_back(alignment);
  }
  for (const std::uint32_t alignment : candidates) {
    ETSTREAM_ASSIGN(const FilePlan plan, plan(bundle, {.program_alignment = alignment, .unchecked = true}));
    ETSTREAM_ASSIGN(const bool same, gives_same_bytes(plan, file.file()));
    if (same) return std::optional(alignment);
  }
  return std::optional<std::uint32_t>();
}

Result<FilePlan> to_segmented(const BundledProgramFile& file, bool hash) {
  ETSTREAM_ASSIGN(const BundledProgram bundle, file.read());
  ETSTREAM_ASSIGN(const auto alignment, alignment_that_gives(bundle, file));
  if (alignment) return plan_segmented_bundle(bundle, {.hash = hash, .program_alignment = *alignment});
  return plan_segmented_bundle(bundle, {.hash = hash, .original = &file.file()});
}

/// Plans the original file whose layout was kept: its metadata, with the payloads put back in.
Result<FilePlan> as_it_was(const OriginalFile& original) {
  FilePlan plan;
  std::uint64_t used = 0;
  for (const OriginalFile::Payload& payload : original.payloads) {
    ETSTREAM_ASSIGN(ByteSource before, original.metadata.slice(used, payload.offset - plan.size));
    used += before.size();
    ETSTREAM_TRY(append(plan, 1, "metadata", std::move(before)));
    ETSTREAM_TRY(append(plan, 1, "payload", payload.source));
  }
  ETSTREAM_ASSIGN(ByteSource last, original.metadata.slice(used, original.metadata.size() - used));
  ETSTREAM_TRY(append(plan, 1, "metadata", std::move(last)));
  plan.payload_size = plan.size;
  return plan;
}

std::string name_of_program(const BundledProgramFile& bundle) {
  return text("{}: program at {}", bundle.file().name(), bundle.program_offset());
}

/// Turns an Error or a Finding about the program into one about the bundle's file, with the offset in that
/// file.
void place_in_file(auto& problem, const BundledProgramFile& bundle) {
  if (problem.file != name_of_program(bundle)) return;
  problem.file = bundle.file().name();
  if (problem.offset) *problem.offset += bundle.program_offset();
}

}  // namespace

struct BundledProgramFile::Impl {
  ByteSource file;
  FlatbufferView view;                           // of the metadata
  std::optional<SegmentedBundleFile> segmented;  // none of BP08
  bundled_program::Fields fields{view.schema()};
  std::uint32_t version = 0;
  ByteSource program = {};
  std::uint64_t program_offset = 0;
  std::vector<Suite> suites = {};

  Result<void> fill() {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
    ETSTREAM_ASSIGN(version, root.scalar<std::uint32_t>(fields.bundled_program.version));
    if (segmented) {
      ETSTREAM_TRY(segmented->match(root));
      program = segmented->program();
      program_offset = program.offset_in(file).value_or(0);
    } else {
      ETSTREAM_ASSIGN(const auto where, root.vector(fields.bundled_program.program));
      ETSTREAM_ASSIGN(auto bytes, root.bytes(fields.bundled_program.program));
      program = std::move(bytes).value_or(ByteSource());
      program_offset = where ? where->elements() : 0;
    }
    const auto add_suite = [&](const TableReader& table) -> Result<void> {
      ETSTREAM_ASSIGN(auto name, table.string(fields.bundled_method_test_suite.method_name));
      ETSTREAM_ASSIGN(const TableList cases, table.tables(fields.bundled_method_test_suite.test_cases));
      suites.push_back({std::move(name).value_or(""), cases.size(), table.position()});
      return {};
    };
    return for_each(root.tables(fields.bundled_program.method_test_suites), add_suite);
  }

  Result<TableReader> test_case(const Suite& suite, std::uint32_t index) const {
    ETSTREAM_ASSIGN(const TableView table, view.table(suite.position));
    const TableReader reader(view, table, fields.bundled_method_test_suite.index());
    ETSTREAM_ASSIGN(const TableList cases, reader.tables(fields.bundled_method_test_suite.test_cases));
    if (index >= cases.size()) {
      return make_error(ErrorCode::kInvalidArgument, "there is no test case {} among the {} of method {}",
                        index, cases.size(), quote(suite.method_name));
    }
    return cases.at(index);
  }

  Result<ByteSource> read_data(const TableReader& tensor) const {
    if (segmented) {
      ETSTREAM_ASSIGN(const auto segment, segmented->data_segment(tensor));
      if (segment) return segmented->segment(*segment);
    }
    ETSTREAM_ASSIGN(auto data, tensor.bytes(fields.tensor.data));
    return std::move(data).value_or(ByteSource());
  }

  Result<Value> read_value(const TableReader& table) const {
    ETSTREAM_ASSIGN(const auto held, table.member(fields.value.val));
    if (!held) return Value(std::monostate{});
    if (held->type() == fields.tensor.index()) {
      ETSTREAM_ASSIGN(TensorLayout layout, read_tensor_layout(*held, fields.tensor));
      ETSTREAM_ASSIGN(ByteSource data, read_data(*held));
      return Value(Tensor{layout.scalar_type, std::move(layout.sizes), std::move(layout.dim_order), data});
    }
    if (held->type() == fields.int_.index()) {
      ETSTREAM_ASSIGN(const auto scalar, held->scalar<std::int64_t>(fields.int_.int_val));
      return Value(scalar);
    }
    if (held->type() == fields.bool_.index()) {
      ETSTREAM_ASSIGN(const auto scalar, held->scalar<std::uint8_t>(fields.bool_.bool_val));
      return Value(scalar != 0);
    }
    ETSTREAM_ASSIGN(const auto scalar, held->scalar<double>(fields.double_.double_val));
    return Value(scalar);
  }

  Result<std::vector<Value>> read_values(const TableReader& test_case, const BoundField& which) const {
    std::vector<Value> values;
    ETSTREAM_TRY(for_each(test_case.tables(which), [&](const TableReader& table) -> Result<void> {
      ETSTREAM_ASSIGN(values.emplace_back(), read_value(table));
      return {};
    }));
    return values;
  }

  /// Returns the content of each segment of a segmented bundle: the program, or a tensor of a test case.
  Result<std::vector<std::string>> segment_names() const {
    std::vector<std::string> names(segmented->directory().segments.size(), "what nothing refers to");
    names[segmented->program_segment()] = "the program";
    for (const Suite& suite : suites) {
      for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
        ETSTREAM_ASSIGN(const TableReader table, test_case(suite, i));
        for (const auto& [which, what] :
             {std::pair(&fields.bundled_method_test_case.inputs, "input"),
              std::pair(&fields.bundled_method_test_case.expected_outputs, "expected output")}) {
          ETSTREAM_ASSIGN(const TableList list, table.tables(*which));
          for (std::uint32_t j = 0; j < list.size(); ++j) {
            ETSTREAM_ASSIGN(const TableReader value, list.at(j));
            ETSTREAM_ASSIGN(const auto held, value.member(fields.value.val));
            if (!held || held->type() != fields.tensor.index()) continue;
            ETSTREAM_ASSIGN(const auto segment, segmented->data_segment(*held));
            if (segment) names[*segment] = text("{} case {} {} {}", quote(suite.method_name), i, what, j);
          }
        }
      }
    }
    return names;
  }
};

BundledProgramFile::BundledProgramFile(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
BundledProgramFile::BundledProgramFile(BundledProgramFile&&) noexcept = default;
BundledProgramFile& BundledProgramFile::operator=(BundledProgramFile&&) noexcept = default;
BundledProgramFile::~BundledProgramFile() = default;

Result<BundledProgramFile> BundledProgramFile::open(ByteSource file) {
  const ByteSource whole = file;
  auto opened = without_exceptions([&]() -> Result<BundledProgramFile> {
    std::optional<SegmentedBundleFile> segmented;
    if (const auto kind = file_kind(file); kind && *kind == FileKind::kSegmentedBundle) {
      ETSTREAM_ASSIGN(segmented, SegmentedBundleFile::open(file));
    }
    ETSTREAM_ASSIGN(const Schema* schema, segmented ? segmented_bundle_schema() : bundled_program_schema());
    ETSTREAM_ASSIGN(FlatbufferView view,
                    FlatbufferView::open(*schema, segmented ? segmented->metadata() : file, file.name()));
    ETSTREAM_TRY(verify_flatbuffer(view));
    auto impl = std::make_unique<Impl>(
        Impl{.file = std::move(file), .view = std::move(view), .segmented = std::move(segmented)});
    ETSTREAM_TRY(impl->fill());
    return BundledProgramFile(std::move(impl));
  });
  return unless_other(whole,
                      {"a bundle (BP08, BPS1)", {FileKind::kBundledProgram, FileKind::kSegmentedBundle}},
                      std::move(opened));
}

const ByteSource& BundledProgramFile::file() const noexcept { return impl_->file; }
BundleFormat BundledProgramFile::format() const noexcept {
  return impl_->segmented ? BundleFormat::kSegmented : BundleFormat::kBp08;
}
std::uint32_t BundledProgramFile::version() const noexcept { return impl_->version; }
const ByteSource& BundledProgramFile::program() const noexcept { return impl_->program; }
std::uint64_t BundledProgramFile::program_offset() const noexcept { return impl_->program_offset; }
const std::vector<BundledProgramFile::Suite>& BundledProgramFile::suites() const noexcept {
  return impl_->suites;
}

Result<ProgramFile> BundledProgramFile::open_program() const {
  auto program = ProgramFile::open(this->program(), name_of_program(*this));
  if (!program) place_in_file(program.error(), *this);
  return program;
}

Result<MethodTestCase> BundledProgramFile::test_case(const Suite& suite, std::uint32_t index) const {
  return without_exceptions([&]() -> Result<MethodTestCase> {
    ETSTREAM_ASSIGN(const TableReader table, impl_->test_case(suite, index));
    const auto& fields = impl_->fields.bundled_method_test_case;
    MethodTestCase test_case;
    ETSTREAM_ASSIGN(test_case.inputs, impl_->read_values(table, fields.inputs));
    ETSTREAM_ASSIGN(test_case.expected_outputs, impl_->read_values(table, fields.expected_outputs));
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
        ETSTREAM_ASSIGN(out.test_cases.emplace_back(), test_case(suite, i));
      }
    }
    return bundle;
  });
}

Result<void> BundledProgramFile::verify(Findings& findings) const {
  const auto check = [](const ProgramFile& program, Findings& found) -> Result<void> {
    ETSTREAM_TRY(verify_loadable(program, LoadedFrom::kMemory, found));
    return {};
  };
  return verify(open_program(), check, findings);
}

Result<void> BundledProgramFile::verify(const Result<ProgramFile>& program, const CheckProgram& check,
                                        Findings& findings) const {
  return without_exceptions([&]() -> Result<void> {
    std::vector<UsedRange> header;
    if (impl_->segmented) header.push_back(impl_->segmented->header_range());
    ETSTREAM_ASSIGN(auto flaws, find_flaws_of_layout(impl_->view, header));
    add_warnings(findings, std::move(flaws));
    PresenceCheck presence(impl_->view, impl_->fields, findings);
    ETSTREAM_TRY(walk_flatbuffer(impl_->view, presence));
    if (impl_->segmented) {
      ETSTREAM_ASSIGN(const auto names, impl_->segment_names());
      ETSTREAM_TRY(impl_->segmented->verify(names, findings));
    }
    if (version() != kBundledProgramVersion) {
      add_warning(findings, text("{}: schema version {}, expected {}", file().name(), version(),
                                 kBundledProgramVersion));
    }
    if (!program) return program.error();
    const std::size_t errors_before = findings.errors.size();
    const std::size_t warnings_before = findings.warnings.size();
    ETSTREAM_TRY(check(*program, findings));
    for (Finding& error : std::span(findings.errors).subspan(errors_before)) place_in_file(error, *this);
    for (Finding& warning : std::span(findings.warnings).subspan(warnings_before))
      place_in_file(warning, *this);
    // ExecuTorch's own layout gives a program in a bundle a smaller alignment than its segments ask for. That
    // matters only if the program is mapped, and mapping reports it as an error.
    if (program_offset() % kLoadedAlignment != 0) {
      const std::string expected =
          text("the program at a multiple of {}, or ExecuTorch does not load it", kLoadedAlignment);
      add_error(findings, impl_->view.corrupt(program_offset(), expected, "one that is not"));
    }
    ETSTREAM_ASSIGN(const auto methods, program->methods());
    const MethodNames names(methods);
    for (const Suite& suite : suites()) {
      const MethodInfo* method = names.find(suite.method_name, findings);
      for (std::uint32_t i = 0; method && i < suite.test_cases; ++i) {
        ETSTREAM_ASSIGN(const MethodTestCase test_case, this->test_case(suite, i));
        check_test_case(*method, test_case, i, findings);
      }
    }
    return {};
  });
}

Result<void> BundledProgramFile::check_hashes() const {
  return without_exceptions([&]() -> Result<void> {
    if (!impl_->segmented) return {};
    Findings findings;
    ETSTREAM_ASSIGN(const auto names, impl_->segment_names());
    ETSTREAM_TRY(impl_->segmented->verify(names, findings));
    return require_sound(file().name(), findings);
  });
}

Result<FilePlan> BundledProgramFile::plan_as(BundleFormat to, bool hash) const {
  return without_exceptions([&]() -> Result<FilePlan> {
    if (format() == to) {
      if (impl_->segmented && impl_->segmented->is_hashed() != hash) {
        return with_advice(error_in(ErrorCode::kInvalidArgument, file().name(),
                                    "expected a segmented bundle {} hashes, found one {}",
                                    hash ? "with" : "without", hash ? "without" : "with them"),
                           {"convert it to bp08 first"});
      }
      return plan_copy(file(), "bundle");
    }
    if (to == BundleFormat::kSegmented) return to_segmented(*this, hash);
    ETSTREAM_TRY(check_hashes());
    const auto& segmented = *impl_->segmented;
    if (segmented.original_file()) return as_it_was(*segmented.original_file());
    ETSTREAM_ASSIGN(const BundledProgram bundle, read());
    return plan(bundle, {.program_alignment = segmented.program_alignment(), .unchecked = true});
  });
}

Result<ProgramFile> open_program(const ByteSource& file) {
  return without_exceptions([&]() -> Result<ProgramFile> {
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    if (kind == FileKind::kProgram) return ProgramFile::open(file);
    if (kind != FileKind::kBundledProgram && kind != FileKind::kSegmentedBundle) {
      const Expected expected = {"a program or a bundle",
                                 {FileKind::kProgram, FileKind::kBundledProgram, FileKind::kSegmentedBundle}};
      return explain(file, expected,
                     error_in(ErrorCode::kUnsupported, file.name(), "expected {}", expected.what));
    }
    ETSTREAM_ASSIGN(const BundledProgramFile bundle, BundledProgramFile::open(file));
    return bundle.open_program();
  });
}

}  // namespace etstream
