// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/test_cases.h"

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
#include "flatbuffer/json_stream.h"

namespace etstream {
namespace {

using Kind = JsonEvent::Kind;

/// Builds suites from the events of the JSON file: a state for each place in its grammar.
class Builder final : public JsonHandler {
 public:
  explicit Builder(std::string folder) : files_(std::move(folder)) {}

  Result<void> on(const JsonEvent& event) override {
    auto taken = dispatch(event);
    if (!taken) taken.error().message = where() + taken.error().message;
    return taken;
  }

  std::vector<MethodTestSuite> take_suites() {
    if (sorted_) {
      std::sort(suites_.begin(), suites_.end(),
                [](const auto& a, const auto& b) { return a.method_name < b.method_name; });
    }
    return std::move(suites_);
  }

 private:
  enum class State {
    kStart,
    kMethods,       // {"forward": here
    kSuites,        // [here
    kSuite,         // [{here
    kMethodName,    // [{"method": here
    kBeginCases,    // "cases": here
    kCases,         // [here
    kCase,          // [{here
    kBeginValues,   // "inputs": here
    kValues,        // "inputs": [here
    kReference,     // {here
    kText,          // {"npy": here
    kBeginNumbers,  // {"shape": here
    kNumbers,       // {"shape": [here
    kEnd,
  };

  Result<void> dispatch(const JsonEvent& event) {
    switch (state_) {
      case State::kStart:
        return on_start(event);
      case State::kMethods:
        return on_method(event);
      case State::kSuites:
        return on_suites(event);
      case State::kSuite:
        return on_suite(event);
      case State::kMethodName:
        if (event.kind == Kind::kString) suites_.back().method_name = event.string;
        return step(event, Kind::kString, State::kSuite);
      case State::kBeginCases:
        return step(event, Kind::kBeginArray, State::kCases);
      case State::kCases:
        return on_cases(event);
      case State::kCase:
        return on_case(event);
      case State::kBeginValues:
        return step(event, Kind::kBeginArray, State::kValues);
      case State::kValues:
        return on_value(event);
      case State::kReference:
        return on_reference(event);
      case State::kText:
        if (event.kind == Kind::kString) text_->emplace(event.string);
        return step(event, Kind::kString, State::kReference);
      case State::kBeginNumbers:
        return step(event, Kind::kBeginArray, State::kNumbers);
      case State::kNumbers:
        return on_number(event);
      case State::kEnd:
        break;
    }
    return {};
  }

  Result<void> step(const JsonEvent& event, Kind expected, State next) {
    if (event.kind != expected) return unexpected(event, name_of(expected));
    state_ = next;
    return {};
  }

  static Error unexpected(const JsonEvent& event, std::string_view expected) {
    return make_error(ErrorCode::kInvalidArgument, "expected ", expected, ", found ", name_of(event.kind),
                      event.kind == Kind::kKey ? " " + quote(event.string) : "");
  }

  Result<void> on_start(const JsonEvent& event) {
    sorted_ = event.kind == Kind::kBeginObject;
    if (sorted_) return step(event, Kind::kBeginObject, State::kMethods);
    if (event.kind == Kind::kBeginArray) return step(event, Kind::kBeginArray, State::kSuites);
    return unexpected(event, "an object of methods, or an array of suites");
  }

  Result<void> on_method(const JsonEvent& event) {
    if (event.kind == Kind::kEndObject) return step(event, Kind::kEndObject, State::kEnd);
    if (!methods_.emplace(event.string).second) {
      return make_error(ErrorCode::kInvalidArgument, "method ", quote(event.string),
                        " comes twice; write an array of {\"method\": ..., \"cases\": ...} instead");
    }
    suites_.push_back({std::string(event.string), {}});
    state_ = State::kBeginCases;
    return {};
  }

  Result<void> on_suites(const JsonEvent& event) {
    if (event.kind == Kind::kEndArray) return step(event, Kind::kEndArray, State::kEnd);
    ETSTREAM_TRY(step(event, Kind::kBeginObject, State::kSuite));
    suites_.emplace_back();
    keys_.clear();
    suite_keys_.clear();
    return {};
  }

  Result<void> on_suite(const JsonEvent& event) {
    if (event.kind == Kind::kEndObject) {
      if (keys_.size() == 2) return step(event, Kind::kEndObject, State::kSuites);
      return make_error(ErrorCode::kInvalidArgument, "a suite needs method and cases");
    }
    ETSTREAM_TRY(once(event));
    if (event.string == "method") {
      state_ = State::kMethodName;
    } else if (event.string == "cases") {
      suite_keys_ = keys_;
      state_ = State::kBeginCases;
    } else {
      return unexpected(event, "method or cases");
    }
    return {};
  }

  Result<void> on_cases(const JsonEvent& event) {
    if (event.kind == Kind::kEndArray) {
      keys_ = suite_keys_;
      state_ = sorted_ ? State::kMethods : State::kSuite;
      return {};
    }
    keys_.clear();
    ETSTREAM_TRY(step(event, Kind::kBeginObject, State::kCase));
    suites_.back().test_cases.emplace_back();
    return {};
  }

  Result<void> on_case(const JsonEvent& event) {
    if (event.kind == Kind::kEndObject) {
      if (keys_.contains("inputs")) return step(event, Kind::kEndObject, State::kCases);
      return make_error(ErrorCode::kInvalidArgument, "a test case needs inputs");
    }
    ETSTREAM_TRY(once(event));
    MethodTestCase& test_case = suites_.back().test_cases.back();
    if (event.string == "inputs") {
      values_ = &test_case.inputs;
    } else if (event.string == "expected_outputs") {
      values_ = &test_case.expected_outputs;
    } else {
      return unexpected(event, "inputs or expected_outputs");
    }
    in_outputs_ = values_ == &test_case.expected_outputs;
    state_ = State::kBeginValues;
    return {};
  }

  /// Refuses a key that the object has had already.
  Result<void> once(const JsonEvent& event) {
    if (keys_.emplace(event.string).second) return {};
    return make_error(ErrorCode::kInvalidArgument, quote(event.string), " comes twice");
  }

  Result<void> on_value(const JsonEvent& event) {
    switch (event.kind) {
      case Kind::kEndArray:
        values_ = nullptr;
        return step(event, Kind::kEndArray, State::kCase);
      case Kind::kNull:
        values_->emplace_back(std::monostate{});
        return {};
      case Kind::kBool:
        values_->emplace_back(event.boolean);
        return {};
      case Kind::kInteger:
        values_->emplace_back(event.integer);
        return {};
      case Kind::kDouble:
        values_->emplace_back(event.number);
        return {};
      case Kind::kBeginObject:
        reference_ = {};
        double_.reset();
        double_bits_.reset();
        reference_keys_ = 0;
        return step(event, Kind::kBeginObject, State::kReference);
      default:
        return unexpected(event, "a number, true, false, null, or an object that gives a tensor");
    }
  }

  Result<void> on_reference(const JsonEvent& event) {
    if (event.kind == Kind::kEndObject) {
      state_ = State::kValues;
      return finish_value();
    }
    ++reference_keys_;
    if (std::optional<std::string>* text = text_member(event.string); text && !*text) {
      text_ = text;
      state_ = State::kText;
      return {};
    }
    if (std::optional<std::vector<std::int64_t>>* numbers = numbers_member(event.string);
        numbers && !*numbers) {
      numbers_ = &numbers->emplace();
      state_ = State::kBeginNumbers;
      return {};
    }
    return unexpected(event,
                      "each of npy, safetensors, name, raw, dtype, shape, dim_order and double at most once");
  }

  std::optional<std::string>* text_member(std::string_view key) {
    if (key == "npy") return &reference_.npy;
    if (key == "safetensors") return &reference_.safetensors;
    if (key == "name") return &reference_.name;
    if (key == "raw") return &reference_.raw;
    if (key == "dtype") return &reference_.dtype;
    if (key == "double") return &double_;
    if (key == "double_bits") return &double_bits_;
    return nullptr;
  }

  std::optional<std::vector<std::int64_t>>* numbers_member(std::string_view key) {
    if (key == "shape") return &reference_.shape;
    if (key == "dim_order") return &reference_.dim_order;
    return nullptr;
  }

  Result<void> on_number(const JsonEvent& event) {
    if (event.kind == Kind::kEndArray) return step(event, Kind::kEndArray, State::kReference);
    numbers_->push_back(event.integer);
    return step(event, Kind::kInteger, State::kNumbers);
  }

  Result<void> finish_value() {
    if (!double_ && !double_bits_) return finish_tensor();
    if (reference_keys_ > 1) {
      return make_error(ErrorCode::kInvalidArgument, "double and double_bits stand alone in their object");
    }
    return double_ ? finish_double() : finish_double_bits();
  }

  Result<void> finish_double() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (*double_ == "nan") {
      values_->emplace_back(std::numeric_limits<double>::quiet_NaN());
    } else if (*double_ == "inf" || *double_ == "-inf") {
      values_->emplace_back(*double_ == "inf" ? kInfinity : -kInfinity);
    } else {
      return make_error(ErrorCode::kInvalidArgument, "double ", quote(*double_),
                        " is not nan, inf or -inf; write other doubles as numbers");
    }
    return {};
  }

  Result<void> finish_double_bits() {
    std::uint64_t bits = 0;
    const char* end = double_bits_->data() + double_bits_->size();
    const auto parsed = std::from_chars(double_bits_->data(), end, bits, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return make_error(ErrorCode::kInvalidArgument, "double_bits ", quote(*double_bits_),
                        " is not a hexadecimal number of 64 bits");
    }
    values_->emplace_back(std::bit_cast<double>(bits));
    return {};
  }

  Result<void> finish_tensor() {
    ETSTREAM_ASSIGN(Tensor tensor, files_.open(reference_));
    values_->emplace_back(std::move(tensor));
    return {};
  }

  /// Which value it is that an error is about.
  std::string where() const {
    switch (state_) {
      case State::kStart:
      case State::kMethods:
      case State::kSuites:
      case State::kEnd:
        return "";
      case State::kSuite:
      case State::kMethodName:
      case State::kBeginCases:
        return method_text();
      case State::kCases:
        return method_text() + case_text(suites_.back().test_cases.size());
      default:
        break;
    }
    std::string out = method_text() + case_text(suites_.back().test_cases.size() - 1);
    if (values_) out += text(in_outputs_ ? "expected output " : "input ", values_->size(), ": ");
    return out;
  }
  std::string method_text() const {
    const bool named = sorted_ || keys_.contains("method") || suite_keys_.contains("method");
    return named ? text("method ", quote(suites_.back().method_name), ": ") : "";
  }
  static std::string case_text(std::size_t index) { return text("test case ", index, ": "); }

  TensorFiles files_;
  State state_ = State::kStart;
  bool sorted_ = false;  // suites come as an object of methods
  std::vector<MethodTestSuite> suites_;
  std::set<std::string, std::less<>> methods_;     // that have come, where each may come once
  std::set<std::string, std::less<>> keys_;        // of the suite or the case that is being read
  std::set<std::string, std::less<>> suite_keys_;  // kept while its cases are read
  std::vector<Value>* values_ = nullptr;           // that are being read
  bool in_outputs_ = false;
  TensorReference reference_;               // that is being read
  std::optional<std::string> double_;       // {"double": this}
  std::optional<std::string> double_bits_;  // {"double_bits": this}
  int reference_keys_ = 0;                  // how many the object has had
  std::optional<std::string>* text_ = nullptr;
  std::vector<std::int64_t>* numbers_ = nullptr;
};

}  // namespace

Result<std::vector<MethodTestSuite>> read_test_cases(const std::string& path) {
  return without_exceptions([&]() -> Result<std::vector<MethodTestSuite>> {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
    Builder builder(path.substr(0, path.rfind('/') + 1));
    ETSTREAM_TRY(parse_json(file, builder));
    return builder.take_suites();
  });
}

}  // namespace etstream
