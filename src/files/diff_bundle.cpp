// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "etstream/inspect.h"
#include "files/diff_list.h"

namespace etstream {
namespace {

std::string case_value_text(const Value& value) {
  return match(
      value, [](std::monostate) { return std::string("nothing"); },
      [](const Tensor& tensor) { return layout_text(tensor); },
      [](const auto& number) { return describe(ValueInfo(number)); });
}

Result<void> compare_case_values(DiffList& list, std::string_view which, const std::vector<Value>& a,
                                 const std::vector<Value>& b) {
  list.compare(text("number of {}s", which), std::to_string(a.size()), std::to_string(b.size()));
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const std::string subject = text("{} {}", which, i);
    const std::string what = case_value_text(a[i]);
    list.compare(subject, what, case_value_text(b[i]));
    const auto* left = std::get_if<Tensor>(&a[i]);
    const auto* right = std::get_if<Tensor>(&b[i]);
    if (left && right) ETSTREAM_TRY(list.compare_bytes(subject, what, left->data, right->data));
  }
  return {};
}

Result<void> compare_suites(DiffList list, const BundledProgramFile& a, const BundledProgramFile::Suite& in_a,
                            const BundledProgramFile& b, const BundledProgramFile::Suite& in_b) {
  list.compare("test cases", std::to_string(in_a.test_cases), std::to_string(in_b.test_cases));
  for (std::uint32_t i = 0; i < std::min(in_a.test_cases, in_b.test_cases); ++i) {
    ETSTREAM_ASSIGN(const MethodTestCase one, a.test_case(in_a, i));
    ETSTREAM_ASSIGN(const MethodTestCase other, b.test_case(in_b, i));
    DiffList within = list.within(text("case {}", i));
    ETSTREAM_TRY(compare_case_values(within, "input", one.inputs, other.inputs));
    ETSTREAM_TRY(
        compare_case_values(within, "expected output", one.expected_outputs, other.expected_outputs));
  }
  return {};
}

Result<bool> compare_programs(DiffList& list, const BundledProgramFile& a, const BundledProgramFile& b) {
  ETSTREAM_ASSIGN(const bool same, same_bytes(a.program(), b.program()));
  if (same) return true;
  ETSTREAM_ASSIGN(const ProgramFile one, a.open_program());
  ETSTREAM_ASSIGN(const ProgramFile other, b.open_program());
  return diff_files(one, other, list.within("program"));
}

}  // namespace

Result<bool> diff_files(const BundledProgramFile& a, const BundledProgramFile& b, DiffList list) {
  const auto format = [](const BundledProgramFile& bundle) {
    return bundle.format() == BundleFormat::kSegmented ? "segmented" : "bp08";
  };
  list.compare_layout("format", format(a), format(b));
  list.compare("version", std::to_string(a.version()), std::to_string(b.version()));
  ETSTREAM_TRY(compare_programs(list, a, b));
  list.compare_layout("program", text("at {}", a.program_offset()), text("at {}", b.program_offset()));
  const auto name = [](const BundledProgramFile::Suite& suite) {
    return text("test suite of {}", quote(suite.method_name));
  };
  for (const auto& [suite, both] : by_key<BundledProgramFile::Suite>(a.suites(), b.suites(), name)) {
    const auto told = [](const BundledProgramFile::Suite* one) {
      return one ? counted(one->test_cases, "case") : "";
    };
    if (both.first && both.second) {
      ETSTREAM_TRY(compare_suites(list.within(suite), a, *both.first, b, *both.second));
    } else {
      list.compare(suite, told(both.first), told(both.second));
    }
  }
  const auto names = [](const BundledProgramFile& bundle) {
    std::string out;
    for (const BundledProgramFile::Suite& suite : bundle.suites())
      out += (out.empty() ? "" : ", ") + quote(suite.method_name);
    return out;
  };
  list.compare("order of test suites", names(a), names(b));
  return !list.has_content();
}

}  // namespace etstream
