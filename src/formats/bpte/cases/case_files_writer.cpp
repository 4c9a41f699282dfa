// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/temporary_posix.h"
#include "core/layout/append.h"
#include "etstream/case_files.h"
#include "etstream/disk_limit.h"
#include "flatbuffer/json/json_text.h"
#include "formats/bpte/case_layout.h"
#include "formats/bpte/cases/suite_labels.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/npy.h"

namespace etstream {
namespace {

using Suite = BundledProgramFile::Suite;

ByteSource owned(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return ByteSource::owned({bytes.begin(), bytes.end()});
}

/// Spells a number so that it reads back as the same double and not as an integer.
std::string json_double(double value) {
  constexpr auto kNan = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (std::isfinite(value)) return json_number(value);
  if (std::isinf(value)) return value > 0 ? R"({"double": "inf"})" : R"({"double": "-inf"})";
  if (bits == kNan) return R"({"double": "nan"})";
  return text(R"({{"double_bits": "{:x}"}})", bits);
}

class TestCasesWriter {
 public:
  TestCasesWriter(const BundledProgramFile& bundle, const AtomicFolder& folder, Progress progress)
      : bundle_(bundle), folder_(folder), progress_(std::move(progress)), methods_(bundle.open_program()) {}

  Result<void> run() {
    ETSTREAM_ASSIGN(const auto json, open_file("cases.json"));
    const auto& suites = bundle_.suites();
    const std::vector<std::string> labels = suite_labels(suites);
    // Reading sorts an object of methods by name, so that another order, or a method twice, needs a list.
    const bool as_object =
        std::adjacent_find(suites.begin(), suites.end(), [](const Suite& a, const Suite& b) {
          return a.method_name >= b.method_name;
        }) == suites.end();
    ETSTREAM_TRY(json->append(owned(as_object ? "{" : "[")));
    for (std::size_t i = 0; i < suites.size(); ++i) {
      const auto name = json_string(suites[i].method_name);
      if (!name) {
        return make_error(ErrorCode::kUnsupported, "method name {} is not UTF-8, as JSON needs it",
                          quote(suites[i].method_name));
      }
      ETSTREAM_TRY(
          json->append(owned(text("{}{}{}{}", i == 0 ? "\n" : ",\n", as_object ? "" : "{\"method\": ", *name,
                                  as_object ? ": [" : ", \"cases\": ["))));
      ETSTREAM_TRY(write_suite(suites[i], labels[i], *json));
      ETSTREAM_TRY(json->append(owned(as_object ? "]" : "]}")));
    }
    ETSTREAM_TRY(json->append(owned(as_object ? "\n}\n" : "\n]\n")));
    return json->commit();
  }

 private:
  Result<void> write_suite(const Suite& suite, const std::string& label, Sink& json) {
    const MethodInfo* const method = methods_.find(suite.method_name);
    const std::vector<ValueInfo> none;
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle_.test_case(suite, i));
      const std::string prefix = text("{}_{}", label, i);
      ETSTREAM_ASSIGN(
          const std::string inputs,
          values(test_case.inputs, method != nullptr ? method->inputs : none, prefix + "_input_"));
      ETSTREAM_ASSIGN(const std::string outputs,
                      values(test_case.expected_outputs, method != nullptr ? method->outputs : none,
                             prefix + "_output_"));
      ETSTREAM_TRY(json.append(owned(text("{}  {{\"inputs\": {},\n   \"expected_outputs\": {}}}",
                                          i == 0 ? "\n" : ",\n", inputs, outputs))));
    }
    return {};
  }

  Result<std::string> values(const std::vector<Value>& values, const std::vector<ValueInfo>& infos,
                             const std::string& prefix) {
    std::string out = "[";
    for (std::size_t i = 0; i < values.size(); ++i) {
      ETSTREAM_ASSIGN(const std::string value, this->value(values[i], infos, i, text("{}{}", prefix, i)));
      out += (i == 0 ? "" : ", ") + value;
    }
    return out + "]";
  }

  Result<std::string> value(const Value& value, const std::vector<ValueInfo>& infos, std::size_t index,
                            const std::string& file_name) {
    if (const auto* tensor = std::get_if<Tensor>(&value)) {
      // A tensor without an order in the file is read as contiguous, and then laid out as the method has it.
      const auto contiguous = contiguous_dim_order(tensor->sizes.size());
      const auto order = order_in_method(infos, index, *tensor).value_or(contiguous);
      return this->tensor(*tensor, tensor->dim_order != contiguous || order != contiguous, file_name);
    }
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
    if (const auto* boolean = std::get_if<bool>(&value)) return std::string(*boolean ? "true" : "false");
    if (const auto* number = std::get_if<double>(&value)) return json_double(*number);
    return std::string("null");
  }

  Result<std::string> tensor(const Tensor& tensor, bool says_order, const std::string& file_name) {
    const auto expected = byte_size(tensor.scalar_type, tensor.sizes);
    if (!expected || tensor.data.size() != *expected) {
      return error_in(ErrorCode::kUnsupported, bundle_.file().name(),
                      "{}: a tensor of {} bytes, which its type and sizes don't say, fits no test case",
                      file_name, tensor.data.size());
    }
    if (!is_permutation(tensor.dim_order, tensor.sizes.size())) {
      return error_in(ErrorCode::kUnsupported, bundle_.file().name(),
                      "{}: a tensor whose dim_order is no permutation fits no test case", file_name);
    }
    const std::string order = says_order ? text(R"(, "dim_order": {})", list_text(tensor.dim_order)) : "";
    if (const auto header = npy_header(tensor)) {
      const std::string npy = file_name + ".npy";
      ETSTREAM_ASSIGN(ByteSource file, ByteSource::concatenation({owned(*header), tensor.data}));
      ETSTREAM_TRY(write_tensor(std::move(file), npy));
      return text(R"({{"npy": "{}"{}}})", npy, order);
    }
    const std::string raw = file_name + ".bin";
    ETSTREAM_TRY(write_tensor(tensor.data, raw));
    return text(R"({{"raw": "{}", "dtype": "{}", "shape": {}{}}})", raw, name_of(tensor.scalar_type),
                list_text(tensor.sizes), order);
  }

  Result<std::unique_ptr<Sink>> open_file(const std::string& name) {
    ETSTREAM_ASSIGN(const std::string path, folder_.path_of(name));
    return open_file_sink(path, {.sync = false});
  }

  Result<void> write_tensor(ByteSource source, const std::string& name) {
    ETSTREAM_ASSIGN(const auto sink, open_file(name));
    return write(plan_copy(std::move(source), "tensor"), *sink, progress_);
  }

  const BundledProgramFile& bundle_;
  const AtomicFolder& folder_;
  const Progress progress_;
  const ProgramMethods methods_;
};

/// Checks how much of the disk the tensors take, whose bytes cases may share in the bundle.
Result<void> check_disk_for(const BundledProgramFile& bundle, std::optional<std::uint64_t> max_disk) {
  FilePlan all;
  for (const Suite& suite : bundle.suites()) {
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle.test_case(suite, i));
      for (const std::vector<Value>* const values : {&test_case.inputs, &test_case.expected_outputs}) {
        for (const Value& value : *values) {
          const auto* const tensor = std::get_if<Tensor>(&value);
          if (tensor) ETSTREAM_TRY(append(all, 1, "tensor", tensor->data));
        }
      }
    }
  }
  const FilePlan* const plan = &all;
  return check_disk({&plan, 1}, max_disk);
}

}  // namespace

Result<std::unique_ptr<PendingOutput>> write_test_cases_uncommitted(const BundledProgramFile& bundle,
                                                                    const std::string& folder,
                                                                    const FileSinkOptions& options,
                                                                    const Progress& progress,
                                                                    std::optional<std::uint64_t> max_disk) {
  return without_exceptions([&]() -> Result<std::unique_ptr<PendingOutput>> {
    ETSTREAM_TRY(check_disk_for(bundle, max_disk));
    ETSTREAM_ASSIGN(auto created, AtomicFolder::create(folder, options));
    if (const auto written = TestCasesWriter(bundle, *created, progress).run(); !written) {
      return created->in_terms_of_destination(written.error());
    }
    return std::unique_ptr<PendingOutput>(std::move(created));
  });
}

Result<void> write_test_cases(const BundledProgramFile& bundle, const std::string& folder,
                              const FileSinkOptions& options, const Progress& progress,
                              std::optional<std::uint64_t> max_disk) {
  ETSTREAM_ASSIGN(const auto written,
                  write_test_cases_uncommitted(bundle, folder, options, progress, max_disk));
  return written->commit();
}

}  // namespace etstream
