// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/case_files.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/temporary_posix.h"
#include "core/layout/file_plan.h"
#include "etstream/bundled_program.h"
#include "etstream/file_kind.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"
#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "formats/bpte/test_cases.h"
#include "formats/safetensors/safetensors.h"
#include "formats/segments/file_kind.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/npy.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

/// Returns `read`, whose error is about `place`.
Result<void> within(std::string_view place, Result<void> read) {
  if (!read) return about(std::move(read).error(), place);
  return read;
}

Error unknown_key(const JsonReader& json, std::string_view key, std::string_view expected) {
  return json.error(text("expected {}, found a key {}", expected, quote(key)));
}

/// Returns whether a file begins like NumPy's files.
bool begins_as_npy(const ByteSource& file) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  std::string begin(kMagic.size(), '\0');
  return file.read_at(0, std::as_writable_bytes(std::span(begin))) && begin == kMagic;
}

/// A tensor as a test case refers to it, by one of `npy`, `safetensors` and `raw`.
struct TensorReference {
  std::optional<std::string> npy;
  std::optional<std::string> safetensors;
  std::optional<std::string> name;  // with safetensors
  std::optional<std::string> raw;
  std::optional<std::string> dtype;                // with raw
  std::optional<std::vector<std::int64_t>> shape;  // with raw
  std::optional<std::vector<std::int64_t>> dim_order;
};

Result<std::vector<std::int32_t>> sizes_of(std::span<const std::int64_t> shape) {
  std::vector<std::int32_t> sizes;
  for (const std::int64_t size : shape) {
    if (size < 0 || !std::in_range<std::int32_t>(size)) {
      return make_error(ErrorCode::kInvalidArgument, "a dimension has size {}, expected 0 to 2147483647",
                        size);
    }
    sizes.push_back(static_cast<std::int32_t>(size));
  }
  return sizes;
}

Result<std::vector<std::uint8_t>> dim_order_of(const std::vector<std::int64_t>& given,
                                               std::size_t dimensions) {
  constexpr std::uint8_t kNone = kMostDimensions;
  std::vector<std::uint8_t> order(given.size());
  std::ranges::transform(given, order.begin(), [](std::int64_t dimension) {
    return std::in_range<std::uint8_t>(dimension) ? static_cast<std::uint8_t>(dimension) : kNone;
  });
  if (is_permutation(order, dimensions)) return order;
  return make_error(ErrorCode::kInvalidArgument,
                    "dim_order is not a permutation of the tensor's {} dimensions", dimensions);
}

/// Opens the files of tensors that test cases refer to, each once.
class TensorFiles {
 public:
  /// `folder` is what relative paths start from, empty for the current folder.
  explicit TensorFiles(std::string folder) : folder_(std::move(folder)) {}

  Result<Tensor> open(const TensorReference& reference) {
    ETSTREAM_ASSIGN(Tensor tensor, open_from_file(reference));
    if (tensor.sizes.size() > kMostDimensions) {
      return make_error(ErrorCode::kInvalidArgument,
                        "a tensor has {} dimensions, ExecuTorch's have at most {}", tensor.sizes.size(),
                        kMostDimensions);
    }
    tensor.dim_order = contiguous_dim_order(tensor.sizes.size());
    tensor.any_order = !reference.dim_order;
    if (!reference.dim_order) return tensor;
    ETSTREAM_ASSIGN(auto order, dim_order_of(*reference.dim_order, tensor.sizes.size()));
    // Raw bytes have no order but the one that is given with them.
    if (!reference.raw) return with_dim_order(tensor, std::move(order));
    tensor.dim_order = std::move(order);
    return tensor;
  }

 private:
  Result<Tensor> open_from_file(const TensorReference& reference) {
    const int kinds =
        reference.npy.has_value() + reference.safetensors.has_value() + reference.raw.has_value();
    if (kinds != 1) {
      return make_error(ErrorCode::kInvalidArgument,
                        "a tensor is given by one of npy, safetensors and raw, not by {}",
                        kinds == 0 ? "none" : "several");
    }
    if (reference.safetensors.has_value() != reference.name.has_value()) {
      return make_error(ErrorCode::kInvalidArgument, "safetensors and name go together");
    }
    const bool raw = reference.raw.has_value();
    if (raw != reference.dtype.has_value() || raw != reference.shape.has_value()) {
      return make_error(ErrorCode::kInvalidArgument, "raw, dtype and shape go together");
    }
    if (reference.raw) return open_raw(reference);
    if (reference.safetensors) return open_from_safetensors(*reference.safetensors, *reference.name);
    ETSTREAM_ASSIGN(const ByteSource file, open_file(*reference.npy));
    return begins_as_npy(file) ? open_npy(file)
                               : unless_other(file, {"a NumPy array (.npy)"}, open_npy(file));
  }

  Result<Tensor> open_from_safetensors(const std::string& path, const std::string& name) {
    auto file_tensors = safetensors_.find(path);
    if (file_tensors == safetensors_.end()) {
      ETSTREAM_ASSIGN(const ByteSource file, open_file(path));
      ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
      file_tensors = safetensors_.try_emplace(path).first;
      for (CheckpointTensor& tensor : opened.tensors) {
        file_tensors->second.emplace(tensor.name, std::move(tensor));
      }
    }
    const auto found = file_tensors->second.find(name);
    if (found == file_tensors->second.end()) {
      return error_in(ErrorCode::kNotFound, path, "there is no tensor {} among its {}", quote(name),
                      file_tensors->second.size());
    }
    const CheckpointTensor& tensor = found->second;
    if (!tensor.layout) {
      return error_in(ErrorCode::kUnsupported, path,
                      "tensor {} is of type {}, which ExecuTorch has no tensors of", quote(name),
                      quote(type_without_layout(tensor)));
    }
    return Tensor{tensor.layout->scalar_type, tensor.layout->sizes, {}, tensor.data};
  }

  Result<Tensor> open_raw(const TensorReference& reference) {
    const auto type = find_scalar_type(*reference.dtype);
    if (!type) {
      return make_error(ErrorCode::kInvalidArgument,
                        "unknown dtype {}; expected a name that torch uses, such as float32 or int64",
                        quote(*reference.dtype));
    }
    ETSTREAM_ASSIGN(auto sizes, sizes_of(std::span(*reference.shape)));
    ETSTREAM_ASSIGN(const std::uint64_t expected, byte_size(*type, sizes));
    ETSTREAM_ASSIGN(ByteSource file, open_file(*reference.raw));
    if (file.size() != expected) {
      return error_in(ErrorCode::kInvalidArgument, file.name(),
                      "is {} bytes, expected {} for the shape and dtype given", file.size(), expected);
    }
    return Tensor{*type, std::move(sizes), {}, std::move(file)};
  }

  Result<ByteSource> open_file(const std::string& path) {
    if (const auto opened = files_.find(path); opened != files_.end()) return opened->second;
    ETSTREAM_ASSIGN(ByteSource file, ByteSource::file(path.starts_with('/') ? path : folder_ + path));
    files_.emplace(path, file);
    return file;
  }

  std::string folder_;
  std::map<std::string, ByteSource> files_;  // by path, of npy and raw tensors
  std::map<std::string, std::map<std::string, CheckpointTensor>> safetensors_;  // by path, by name
};

class CasesReader {
 public:
  CasesReader(JsonReader& json, std::string folder) : json_(json), files_(std::move(folder)) {}

  Result<std::vector<MethodTestSuite>> run() {
    const JsonTape::Value all = json_.next();
    if (all.kind == Kind::kArray) {
      ETSTREAM_TRY(json_.elements([&] { return read_suite(suites_.emplace_back()); }));
    } else if (all.kind == Kind::kObject) {
      ETSTREAM_TRY(read_methods());
    } else {
      return json_.unexpected(all, "an object of methods, or an array of suites");
    }
    return std::move(suites_);
  }

 private:
  Result<void> read_methods() {
    std::set<std::string_view> names;
    ETSTREAM_TRY(json_.members([&](std::string_view name) -> Result<void> {
      if (!names.insert(name).second) {
        return with_advice(json_.error(text("method {} comes twice", quote(name))),
                           {R"(write an array of {"method": ..., "cases": ...} instead)"});
      }
      MethodTestSuite& suite = suites_.emplace_back();
      suite.method_name = name;
      return within(method_text(name), read_cases(suite.test_cases));
    }));
    std::sort(suites_.begin(), suites_.end(),
              [](const auto& a, const auto& b) { return a.method_name < b.method_name; });
    return {};
  }

  Result<void> read_suite(MethodTestSuite& suite) {
    bool has_method = false;
    bool has_cases = false;
    auto read = json_.different_members([&](std::string_view key) -> Result<void> {
      if (key == "cases") {
        has_cases = true;
        return read_cases(suite.test_cases);
      }
      if (key != "method") return unknown_key(json_, key, "method or cases");
      ETSTREAM_ASSIGN(const auto name, json_.take(Kind::kString));
      suite.method_name = name.string;
      has_method = true;
      return {};
    });
    if (read && !(has_method && has_cases)) read = json_.error("a suite needs method and cases");
    return within(has_method ? method_text(suite.method_name) : "", std::move(read));
  }

  Result<void> read_cases(std::vector<MethodTestCase>& cases) {
    return json_.elements([&] {
      MethodTestCase& test_case = cases.emplace_back();
      return within(text("test case {}", cases.size() - 1), read_case(test_case));
    });
  }

  Result<void> read_case(MethodTestCase& test_case) {
    bool has_inputs = false;
    ETSTREAM_TRY(json_.different_members([&](std::string_view key) -> Result<void> {
      if (key == "expected_outputs") return read_values("expected output ", test_case.expected_outputs);
      if (key != "inputs") return unknown_key(json_, key, "inputs or expected_outputs");
      has_inputs = true;
      return read_values("input ", test_case.inputs);
    }));
    return has_inputs ? Result<void>() : json_.error("a test case needs inputs");
  }

  Result<void> read_values(std::string_view what, std::vector<Value>& values) {
    return json_.elements([&]() -> Result<void> {
      auto value = read_value();
      if (!value) return about(std::move(value).error(), text("{}{}", what, values.size()));
      values.push_back(*std::move(value));
      return {};
    });
  }

  Result<Value> read_value() {
    if (json_.next().kind == Kind::kObject) return read_reference();
    const JsonTape::Value value = json_.take();
    if (value.kind == Kind::kNull) return Value(std::monostate{});
    if (value.kind == Kind::kBool) return Value(value.boolean);
    if (value.kind == Kind::kInteger) return Value(value.integer);
    if (value.kind == Kind::kDouble) return Value(value.number);
    return json_.unexpected(value, "a number, true, false, null, or an object that gives a tensor");
  }

  Result<Value> read_reference() {
    TensorReference tensor;
    std::optional<std::string> number;  // {"double": this}
    std::optional<std::string> bits;    // {"double_bits": this}
    const auto text_member = [&](std::string_view key) -> std::optional<std::string>* {
      if (key == "npy") return &tensor.npy;
      if (key == "safetensors") return &tensor.safetensors;
      if (key == "name") return &tensor.name;
      if (key == "raw") return &tensor.raw;
      if (key == "dtype") return &tensor.dtype;
      if (key == "double") return &number;
      return key == "double_bits" ? &bits : nullptr;
    };
    const auto numbers_member = [&](std::string_view key) -> std::optional<std::vector<std::int64_t>>* {
      if (key == "shape") return &tensor.shape;
      return key == "dim_order" ? &tensor.dim_order : nullptr;
    };
    int keys = 0;
    ETSTREAM_TRY(json_.members([&](std::string_view key) -> Result<void> {
      ++keys;
      if (auto* member = text_member(key); member && !*member) {
        ETSTREAM_ASSIGN(const auto value, json_.take(Kind::kString));
        member->emplace(value.string);
        return {};
      }
      if (auto* member = numbers_member(key); member && !*member) {
        member->emplace();
        return json_.elements([&]() -> Result<void> {
          ETSTREAM_ASSIGN(const auto value, json_.take(Kind::kInteger));
          (*member)->push_back(value.integer);
          return {};
        });
      }
      return unknown_key(
          json_, key, "each of npy, safetensors, name, raw, dtype, shape, dim_order and double at most once");
    }));
    if ((number || bits) && keys > 1) {
      return json_.error("double and double_bits stand alone in their object");
    }
    if (number) return double_value(*number);
    if (bits) return double_of_bits(*bits);
    ETSTREAM_ASSIGN(Tensor opened, files_.open(tensor));
    return Value(std::move(opened));
  }

  Result<Value> double_value(const std::string& name) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (name == "nan") return Value(std::numeric_limits<double>::quiet_NaN());
    if (name == "inf") return Value(kInfinity);
    if (name == "-inf") return Value(-kInfinity);
    return with_advice(json_.error(text("double {} is not nan, inf or -inf", quote(name))),
                       {"write other doubles as numbers"});
  }

  Result<Value> double_of_bits(const std::string& digits) const {
    std::uint64_t bits = 0;
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, bits, 16);
    if (parsed.ec == std::errc() && parsed.ptr == end) return Value(std::bit_cast<double>(bits));
    return json_.error(text("double_bits {} is not a hexadecimal number of 64 bits", quote(digits)));
  }

  static std::string method_text(std::string_view name) { return text("method {}", quote(name)); }

  JsonReader& json_;
  TensorFiles files_;
  std::vector<MethodTestSuite> suites_;
};

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
      : bundle_(bundle),
        folder_(folder),
        progress_(std::move(progress)),
        methods_(methods_of(bundle.open_program())) {}

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
    const MethodInfo* const method = names_.find(suite.method_name);
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
  const std::vector<MethodInfo> methods_;
  const MethodNames names_{methods_};
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

Result<std::vector<MethodTestSuite>> read_test_cases(const std::string& path) {
  return without_exceptions([&]() -> Result<std::vector<MethodTestSuite>> {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
    std::vector<MethodTestSuite> suites;
    auto read = read_json(file, ErrorCode::kInvalidArgument, [&](JsonReader& json) -> Result<void> {
      ETSTREAM_ASSIGN(suites, CasesReader(json, path.substr(0, path.rfind('/') + 1)).run());
      return {};
    });
    ETSTREAM_TRY(unless_other(file, {"test cases as JSON", {}, JsonContent::kTestCases}, std::move(read)));
    return suites;
  });
}

std::vector<std::string> suite_labels(const std::vector<BundledProgramFile::Suite>& suites) {
  constexpr std::size_t kLongest = 64;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::set<std::string_view> seen;
  std::vector<std::string> out;
  out.reserve(suites.size());
  for (std::size_t i = 0; i < suites.size(); ++i) {
    const std::string& name = suites[i].method_name;
    const bool plain = !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, is_plain);
    // A plain word has no '-'.
    out.push_back(plain && seen.insert(name).second ? name : text("suite-{}", i));
  }
  return out;
}

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
