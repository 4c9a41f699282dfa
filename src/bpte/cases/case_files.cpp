// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/case_files.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "bpte/cases/tensor_files.h"
#include "flatbuffer/json_reader.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

/// `read`, an error of which is about `place`.
Result<void> about(const std::string& place, Result<void> read) {
  if (!read) read.error().message = place + read.error().message;
  return read;
}

Error unknown_key(const JsonReader& json, std::string_view key, std::string_view expected) {
  return json.error(text("expected {}, found a key {}", expected, quote(key)));
}

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
        return json_.error(
            text("method {} comes twice; write an array of {{\"method\": ..., \"cases\": ...}} instead",
                 quote(name)));
      }
      MethodTestSuite& suite = suites_.emplace_back();
      suite.method_name = name;
      return about(method_text(name), read_cases(suite.test_cases));
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
    return about(has_method ? method_text(suite.method_name) : "", std::move(read));
  }

  Result<void> read_cases(std::vector<MethodTestCase>& cases) {
    return json_.elements([&] {
      auto read = read_case(cases.emplace_back());
      return read ? read : about(text("test case {}: ", cases.size() - 1), std::move(read));
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
      if (!value) return about(text("{}{}: ", what, values.size()), std::move(value).error());
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
    return json_.error(
        text("double {} is not nan, inf or -inf; write other doubles as numbers", quote(name)));
  }

  Result<Value> double_of_bits(const std::string& digits) const {
    std::uint64_t bits = 0;
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, bits, 16);
    if (parsed.ec == std::errc() && parsed.ptr == end) return Value(std::bit_cast<double>(bits));
    return json_.error(text("double_bits {} is not a hexadecimal number of 64 bits", quote(digits)));
  }

  static std::string method_text(std::string_view name) { return text("method {}: ", quote(name)); }

  JsonReader& json_;
  TensorFiles files_;
  std::vector<MethodTestSuite> suites_;
};

}  // namespace

Result<std::vector<MethodTestSuite>> read_test_cases(const std::string& path) {
  return without_exceptions([&]() -> Result<std::vector<MethodTestSuite>> {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
    std::vector<MethodTestSuite> suites;
    ETSTREAM_TRY(read_json(file, ErrorCode::kInvalidArgument, [&](JsonReader& json) -> Result<void> {
      ETSTREAM_ASSIGN(suites, CasesReader(json, path.substr(0, path.rfind('/') + 1)).run());
      return {};
    }));
    return suites;
  });
}

}  // namespace etstream
