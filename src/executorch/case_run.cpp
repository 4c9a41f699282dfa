// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/case_run.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/dim_order.h"
#include "etstream/executorch/refusal.h"
#include "executorch/aligned_buffer.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;
using runtime::EValue;
using runtime::Tag;

std::string tag_text(Tag tag) {
  char name[runtime::kTagNameBufferSize];
  runtime::tag_to_string(tag, name, sizeof(name));
  return name;
}

/// Returns the tag under which ExecuTorch holds a value.
Tag tag_of(const Value& value) noexcept {
  constexpr Tag kTags[] = {Tag::None, Tag::Tensor, Tag::Int, Tag::Bool, Tag::Double};
  return kTags[value.index()];
}

ScalarType scalar_type_of(::executorch::aten::ScalarType type) noexcept {
  return static_cast<ScalarType>(type);  // the numbers are ExecuTorch's
}

/// Returns an error if a tensor of a test case can't stand for one of the method's, as far as this is known
/// before it runs. A dynamic dimension may be smaller than planned; whether it is dynamic shows when the
/// tensor is set.
Result<void> check_tensor(const runtime::TensorInfo& info, const Tensor& tensor, const std::string& where) {
  const ScalarType wanted = scalar_type_of(info.scalar_type());
  if (tensor.scalar_type != wanted) {
    return make_error(ErrorCode::kInvalidArgument, "{}is {}, expected {}", where, name_of(tensor.scalar_type),
                      name_of(wanted));
  }
  const std::size_t dimensions = info.sizes().size();
  if (tensor.sizes.size() != dimensions) {
    return make_error(ErrorCode::kInvalidArgument, "{}has {} dimensions, expected {}", where,
                      tensor.sizes.size(), dimensions);
  }
  if (tensor.dim_order.size() != dimensions) {
    return make_error(ErrorCode::kInvalidArgument, "{}has a dim_order of {} dimensions, expected {}", where,
                      tensor.dim_order.size(), dimensions);
  }
  // ExecuTorch aborts if a product of sizes is over its range, even if another size is 0.
  std::vector<std::int32_t> sizes = tensor.sizes;
  std::replace(sizes.begin(), sizes.end(), 0, 1);
  const auto most = byte_size(wanted, sizes);
  const auto bytes = byte_size(wanted, tensor.sizes);
  if (!most || !bytes || *most > std::numeric_limits<std::ptrdiff_t>::max() || *bytes > info.nbytes()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}has a negative size, or more than the {} bytes that the method has for it", where,
                      info.nbytes());
  }
  if (tensor.data.size() == *bytes) return {};
  return make_error(ErrorCode::kInvalidArgument, "{}has {} bytes of data, expected {} for its shape", where,
                    tensor.data.size(), *bytes);
}

/// A run of a test case, with its state.
class CaseRun {
 public:
  CaseRun(runtime::Method& method, const MethodTestCase& test_case, std::string where)
      : method_(method), meta_(method.method_meta()), test_case_(test_case), where_(std::move(where)) {}

  Result<void> check() const {
    ETSTREAM_TRY(check_values(true, test_case_.inputs, meta_.num_inputs()));
    if (test_case_.expected_outputs.empty()) return {};
    return check_values(false, test_case_.expected_outputs, meta_.num_outputs());
  }

  Result<void> set_inputs() {
    for (std::size_t i = 0; i < test_case_.inputs.size(); ++i) {
      ETSTREAM_TRY(set_input(i));
    }
    return {};
  }

  /// Gives memory to the outputs for which the plan has none.
  Result<void> place_outputs() {
    for (std::size_t i = 0; i < meta_.num_outputs(); ++i) {
      const auto tag = meta_.output_tag(i);
      if (!tag.ok() || *tag != Tag::Tensor) continue;
      const auto info = meta_.output_tensor_meta(i);
      if (!info.ok() || info->is_memory_planned() || info->nbytes() == 0) continue;
      ETSTREAM_ASSIGN(const auto bytes, allocate(info->nbytes(), text("{}output {}: ", where_, i)));
      const auto error = method_.set_output_data_ptr(bytes.data(), bytes.size(), i);
      if (error != runtime::Error::Ok)
        return refusal(error, text("{}output {} could not be placed", where_, i));
    }
    return {};
  }

  Result<void> execute() {
    // Anyone may write kernels, and some throw.
    try {
      const auto error = method_.execute();
      if (error == runtime::Error::Ok) return {};
      return failed(text("ExecuTorch says {}", runtime::to_string(error)));
    } catch (const std::exception& thrown) {
      return failed(text("a kernel threw {}", quote(thrown.what())));
    }
  }

  Result<TestCaseRun> compare_outputs(const Tolerance& tolerance) const {
    TestCaseRun out;
    for (std::size_t i = 0; i < test_case_.expected_outputs.size(); ++i) {
      auto compared = compare_output(i, tolerance);
      if (!compared) {
        compared.error().message = text("{}output {} {}", where_, i, compared.error().message);
        return std::move(compared).error();
      }
      out.outputs.push_back(*std::move(compared));
    }
    return out;
  }

 private:
  Error failed(const std::string& why) const {
    return make_error(ErrorCode::kInvalidArgument, "{}the method failed: {}", where_, why);
  }

  Result<void> check_values(bool are_inputs, const std::vector<Value>& values, std::size_t wanted) const {
    const std::string_view what = are_inputs ? "input" : "expected output";
    if (values.size() != wanted) {
      return make_error(ErrorCode::kInvalidArgument, "{}{} given, the method has {}", where_,
                        counted(values.size(), what), wanted);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string where = text("{}{} {} ", where_, what, i);
      const auto tag = are_inputs ? meta_.input_tag(i) : meta_.output_tag(i);
      if (!tag.ok() || *tag != tag_of(values[i])) {
        return make_error(ErrorCode::kInvalidArgument, "{}is a {}, expected a {}", where,
                          tag_text(tag_of(values[i])),
                          tag.ok() ? tag_text(*tag) : "value that the method can have");
      }
      if (*tag != Tag::Tensor) continue;
      const auto info = are_inputs ? meta_.input_tensor_meta(i) : meta_.output_tensor_meta(i);
      if (!info.ok()) return refusal(info.error(), text("{}has no description in the program", where));
      ETSTREAM_TRY(check_tensor(*info, std::get<Tensor>(values[i]), where));
    }
    return {};
  }

  Result<void> set_input(std::size_t i) {
    const Value& value = test_case_.inputs[i];
    if (const auto* tensor = std::get_if<Tensor>(&value)) return set_tensor(i, *tensor);
    EValue scalar;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) scalar = EValue(*integer);
    if (const auto* truth = std::get_if<bool>(&value)) scalar = EValue(*truth);
    if (const auto* number = std::get_if<double>(&value)) scalar = EValue(*number);
    const auto error = method_.set_input(scalar, i);
    if (error == runtime::Error::Ok) return {};
    return make_error(ErrorCode::kInvalidArgument,
                      "{}input {} is another value than the one that the method was exported with, which "
                      "alone ExecuTorch takes",
                      where_, i);
  }

  Result<void> set_tensor(std::size_t i, const Tensor& tensor) {
    const std::string where = text("{}input {}: ", where_, i);
    const auto info = meta_.input_tensor_meta(i);
    if (!info.ok()) return refusal(info.error(), text("{}has no description in the program", where));
    const auto order = info->dim_order();
    auto placed = with_dim_order(tensor, {order.begin(), order.end()});
    if (!placed) {
      placed.error().message.insert(0, where);
      return std::move(placed).error();
    }
    ETSTREAM_ASSIGN(const auto bytes, allocate(static_cast<std::size_t>(placed->data.size()), where));
    ETSTREAM_TRY(placed->data.read_at(0, bytes));
    ::executorch::aten::TensorImpl impl(info->scalar_type(), static_cast<ssize_t>(placed->sizes.size()),
                                        placed->sizes.data(), bytes.data(), placed->dim_order.data());
    const auto error = method_.set_input(EValue(::executorch::aten::Tensor(&impl)), i);
    if (error != runtime::Error::Ok) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}the method does not take its shape: ExecuTorch says {}", where,
                        runtime::to_string(error));
    }
    // The output was copied to its planned place.
    if (info->is_memory_planned()) buffers_.pop_back();
    return {};
  }

  Result<Comparison> compare_output(std::size_t i, const Tolerance& tolerance) const {
    const Value& expected = test_case_.expected_outputs[i];
    const EValue& output = method_.get_output(i);
    if (output.isInt()) return compare(expected, output.toInt(), tolerance);
    if (output.isBool()) return compare(expected, output.toBool(), tolerance);
    if (output.isDouble()) return compare(expected, output.toDouble(), tolerance);
    if (output.isNone()) return compare(expected, std::monostate(), tolerance);
    const auto* tensor = std::get_if<Tensor>(&expected);
    if (!output.isTensor() || !tensor) {
      return make_error(ErrorCode::kInvalidArgument, "is a {}, which no test case can hold",
                        tag_text(output.tag));
    }
    ETSTREAM_ASSIGN(Tensor actual, tensor_of(output.toTensor()));
    if (actual.sizes == tensor->sizes) {
      ETSTREAM_ASSIGN(actual, with_dim_order(actual, tensor->dim_order));
    }
    return compare(expected, actual, tolerance);
  }

  /// Returns the method's tensor, whose data stays in its place.
  static Result<Tensor> tensor_of(const ::executorch::aten::Tensor& tensor) {
    if (!tensor.unsafeGetTensorImpl()->device().is_cpu()) {
      return make_error(ErrorCode::kUnsupported, "is not in the CPU's memory");
    }
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    if (!data && tensor.nbytes() > 0) {
      return make_error(ErrorCode::kInvalidArgument, "has no data");
    }
    const auto sizes = tensor.sizes();
    const auto order = tensor.dim_order();
    return Tensor{scalar_type_of(tensor.scalar_type()),
                  {sizes.begin(), sizes.end()},
                  {order.begin(), order.end()},
                  ByteSource::memory({data, tensor.nbytes()})};
  }

  Result<std::span<std::byte>> allocate(std::size_t size, const std::string& where) {
    auto buffer = AlignedBuffer::allocate(size);
    if (!buffer) return make_error(ErrorCode::kOutOfMemory, "{}no memory for {} bytes", where, size);
    buffers_.push_back(*std::move(buffer));
    return buffers_.back().bytes();
  }

  runtime::Method& method_;
  const runtime::MethodMeta meta_;
  const MethodTestCase& test_case_;
  const std::string where_;
  std::vector<AlignedBuffer> buffers_;
};

}  // namespace

bool TestCaseRun::passed() const noexcept {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const Comparison& output) { return output.passed(); });
}

Result<TestCaseRun> run_test_case(runtime::Method& method, const MethodTestCase& test_case, std::size_t index,
                                  const Tolerance& tolerance) {
  return without_exceptions([&]() -> Result<TestCaseRun> {
    CaseRun run(method, test_case,
                text("method {}, test case {}: ", quote(method.method_meta().name()), index));
    ETSTREAM_TRY(run.check());
    ETSTREAM_TRY(run.set_inputs());
    ETSTREAM_TRY(run.place_outputs());
    ETSTREAM_TRY(run.execute());
    return run.compare_outputs(tolerance);
  });
}

}  // namespace etstream
