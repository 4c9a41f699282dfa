// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/case_files.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/dim_order.h"
#include "etstream/file_kind.h"
#include "flatbuffer/json/json_reader.h"
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

}  // namespace etstream
