// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1 lets kernels take their arguments from values without a check of their kinds (EValue::to
// ends the process). Operators of the runtime's own return what kernels/prim_ops/register_prim_ops.cpp says.
// The last argument of an operator without an `out` becomes what it returns (codegen/gen.py).
#include "etstream/runtime_checks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/program_model.h"
#include "runtime_checks/kernel_rules.h"
#include "runtime_checks/method_calls.h"
#include "runtime_checks/value_flow.h"

namespace etstream {
namespace {

/// The operators of the runtime's own that return an integer, a double or a boolean, whatever they take.
constexpr std::string_view kGiveInteger[] = {"aten::sym_size.int",
                                             "aten::sym_numel",
                                             "executorch_prim::floordiv.int",
                                             "executorch_prim::mod.int",
                                             "executorch_prim::mod.Scalar",
                                             "executorch_prim::sym_int.Scalar",
                                             "executorch_prim::sym_max.Scalar",
                                             "executorch_prim::sym_min.Scalar",
                                             "executorch_prim::ceil.Scalar",
                                             "executorch_prim::round.Scalar",
                                             "executorch_prim::trunc.Scalar"};
constexpr std::string_view kGiveDouble[] = {"executorch_prim::sym_float.Scalar",
                                            "executorch_prim::truediv.Scalar"};
constexpr std::string_view kGiveBoolean[] = {"executorch_prim::eq.Scalar", "executorch_prim::ge.Scalar",
                                             "executorch_prim::gt.Scalar", "executorch_prim::le.Scalar",
                                             "executorch_prim::lt.Scalar", "executorch_prim::sym_not.Scalar"};
/// The operators that return an integer for two integers, and a double for a double and either.
constexpr std::string_view kCalculate[] = {"executorch_prim::add.Scalar", "executorch_prim::sub.Scalar",
                                           "executorch_prim::mul.Scalar", "executorch_prim::floordiv.Scalar",
                                           "executorch_prim::neg.Scalar"};

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// A bit among the kinds of a value: it is a tensor to which nothing has been written in a run.
constexpr Kinds kEmpty = 0x4000;
/// Another one: it is a tensor of a quantized dtype.
constexpr Kinds kQuantized = 0x2000;

/// Tells a ValueFlow the effects of a method's calls. Marks the values that are replaced or results.
class EffectReader {
 public:
  explicit EffectReader(MethodCalls& calls) : calls_(calls) {}

  Result<ValueFlow> run() {
    ETSTREAM_TRY(calls_.for_each_call(
        [&](const pte::Call&, const GraphCall& call, std::uint32_t) { return note(call); }));
    ETSTREAM_TRY(begin());
    ETSTREAM_TRY(calls_.for_each_call([&](const pte::Call&, const GraphCall& call, std::uint32_t) {
      flow_->begin_instruction();
      return describe(call);
    }));
    if (!flow_->follow()) {
      add_warning(calls_.findings(),
                  calls_.method().corrupt("few enough ways through the instructions to follow their values",
                                          "more, so that the kinds of values that change are not checked"));
    }
    return *std::move(flow_);
  }

 private:
  using Values = std::vector<std::uint32_t>;

  Result<void> note(const GraphCall& call) {
    if (call.kind == CallKind::kMove) calls_.tracked(call.args[1]).is_replaced = true;
    if (call.kind != CallKind::kKernel) return {};
    ETSTREAM_ASSIGN(const Callee* callee, calls_.callee_of(call));
    if (!callee->signature) {
      for (const std::uint32_t value : call.args) calls_.tracked(value).is_replaced = true;
    } else if (!call.args.empty()) {
      TrackedValue& last = calls_.tracked(call.args.back());
      if (callee->signature->back() == Parameter::kView) last.has_no_data = false;
      if (callee->gives_number()) last.is_result = true;
    }
    return {};
  }

  /// Describes what the values hold when the method is loaded, and the inputs when it is run.
  Result<void> begin() {
    std::vector<Kinds> start(calls_.values());
    for (std::uint32_t i = 0; i < start.size(); ++i) {
      start[i] = kinds(calls_.tracked(i).kind);
      if (calls_.tracked(i).is_empty) start[i] |= kEmpty;
      if (calls_.tracked(i).has_scales) start[i] |= kQuantized;
    }
    ETSTREAM_ASSIGN(const auto inputs,
                    calls_.items_of(calls_.method(), calls_.known().execution_plan.inputs));
    flow_.emplace(std::move(start));
    for (const std::int64_t input : inputs) flow_->renew(static_cast<std::uint32_t>(input));
    return {};
  }

  Result<void> describe(const GraphCall& call) {
    switch (call.kind) {
      case CallKind::kKernel:
        return describe_kernel(call);
      case CallKind::kJumpIfFalse:
        return describe_jump(call.args[0], call.destination);
      case CallKind::kMove:
        flow_->copy(call.args[0], call.args[1]);
        return {};
      case CallKind::kDelegate:
        // The call may write to any of them.
        for (const std::uint32_t value : call.args) ETSTREAM_TRY(fill(value));
        return {};
      case CallKind::kFree:
        break;
    }
    return {};
  }

  Result<void> describe_jump(std::uint32_t condition, std::uint32_t to) {
    std::optional<std::uint32_t> only_unless;
    if (calls_.tracked(condition).kind == pte::ValueKind::kBool) {
      ETSTREAM_ASSIGN(const pte::Held held, calls_.held_by(condition));
      ETSTREAM_ASSIGN(const auto is_true, held.scalar<std::uint8_t>(calls_.known().bool_.bool_val));
      if (is_true == 0) only_unless = condition;
    }
    flow_->jump(to, only_unless);
    return {};
  }

  Result<void> describe_kernel(const GraphCall& call) {
    ETSTREAM_ASSIGN(const Callee* callee, calls_.callee_of(call));
    if (!callee->signature) {
      for (const std::uint32_t value : call.args) {
        ETSTREAM_TRY(fill(value));
        flow_->set(value, kAnything);
      }
      return {};
    }
    if (call.args.size() != callee->signature->size()) return {};
    return callee->gives_number() ? describe_number(callee->name, call.args)
                                  : describe_written(*callee->signature, call.args);
  }

  Result<void> describe_number(std::string_view name, const Values& args) {
    const std::uint32_t to = args.back();
    if (is_among(name, kGiveInteger)) {
      flow_->set(to, kinds(pte::ValueKind::kInt));
    } else if (is_among(name, kGiveDouble)) {
      flow_->set(to, kinds(pte::ValueKind::kDouble));
    } else if (is_among(name, kGiveBoolean)) {
      flow_->set(to, kinds(pte::ValueKind::kBool));
    } else if (is_among(name, kCalculate)) {
      flow_->calculate(args[0], args[args.size() - 2], to);
    } else if (name == "executorch_prim::sym_ite.Scalar") {
      flow_->choose(args[1], args[2], to);
    } else if (name == "aten::_local_scalar_dense") {
      ETSTREAM_ASSIGN(const Kinds kinds, kinds_of_element(args[0]));
      flow_->set(to, kinds);
    } else {
      flow_->set(to, kAnything);
    }
    return {};
  }

  /// Returns the kinds of number as which an element of a tensor is read.
  Result<Kinds> kinds_of_element(std::uint32_t value) const {
    if (!calls_.tracked(value).is_own_tensor()) return kAnything;
    ETSTREAM_ASSIGN(const TensorInfo tensor, calls_.tensor_in(value));
    constexpr ScalarType kIntegerTypes[] = {ScalarType::kUInt8, ScalarType::kInt8, ScalarType::kInt16,
                                            ScalarType::kInt32, ScalarType::kInt64};
    const ScalarType dtype = tensor.scalar_type;
    if (std::ranges::count(kIntegerTypes, dtype) > 0) return kinds(pte::ValueKind::kInt);
    if (dtype == ScalarType::kFloat32 || dtype == ScalarType::kFloat64) return kinds(pte::ValueKind::kDouble);
    return dtype == ScalarType::kBool ? kinds(pte::ValueKind::kBool) : kAnything;
  }

  Result<void> describe_written(Signature signature, const Values& args) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (is_written(signature[i]) || signature[i] == Parameter::kView) ETSTREAM_TRY(fill(args[i]));
    }
    // This operator works in place: the others return nothing.
    const bool works_in_place = is_written(signature.front()) && signature.back() == Parameter::kReturn;
    if (works_in_place && !calls_.tracked(args.back()).is_own_tensor()) flow_->copy(args[0], args.back());
    return {};
  }

  /// Follows a write to `value`, or to the tensors of that list.
  Result<void> fill(std::uint32_t value) {
    fill_tensor(value);
    if (!calls_.tracked(value).is_list_of_tensors()) return {};
    ETSTREAM_ASSIGN(const auto items, calls_.items_of(value));
    for (const std::int64_t item : items) {
      if (item != -1) fill_tensor(static_cast<std::uint32_t>(item));
    }
    return {};
  }

  void fill_tensor(std::uint32_t value) {
    const TrackedValue& held = calls_.tracked(value);
    const Kinds quantized = held.has_scales ? kQuantized : Kinds{};
    if (held.is_empty) flow_->set(value, kinds(pte::ValueKind::kTensor, quantized));
  }

  MethodCalls& calls_;
  std::optional<ValueFlow> flow_;
};

/// Returns the kinds that a value may hold and that are not `taken`; nothing if it may hold anything.
Kinds others(Kinds held, Kinds taken) {
  if ((held & kAnything) != 0) return 0;
  return static_cast<Kinds>(held & ~(taken | kEmpty | kQuantized));
}

/// Checks that the delegates of a method can be loaded, and that calls give operators and delegates what they
/// take: not arguments of another kind than an operator's schema has, lists with items of another kind,
/// tensors without memory, or names that are no text. Adds what ExecuTorch 1.5.1 would refuse, or what would
/// end the process. The kinds of values are followed through the instructions. All indices of `method` are in
/// range. `named_data` is the program's own. Memory: 17 bytes a value, 56 an operator, 20 an instruction, 8 a
/// delegate, and that of the largest graph of XNNPACK's.
class CallVerifier {
 public:
  CallVerifier(const pte::Program& program, const pte::Method& method, const NamedDataSizes& named_data,
               Findings& findings)
      : calls_(program, method, findings), known_(program.fields()), named_data_(named_data) {}

  Result<void> run() {
    ETSTREAM_ASSIGN(const std::string method, calls_.method().name());
    ETSTREAM_TRY(for_each(calls_.method().delegates(), [&](const pte::Delegate& each, std::uint32_t number) {
      return verify_delegate(each, text("method {}, delegate {}", quote(method), number));
    }));
    ETSTREAM_TRY(calls_.read_values());
    ETSTREAM_ASSIGN(flow_, EffectReader(calls_).run());
    const auto verify = [&](const pte::Call& table, const GraphCall& call, std::uint32_t number) {
      return flow_->go_to(number) ? verify_call(table, call) : Result<void>();
    };
    ETSTREAM_TRY(calls_.for_each_call(verify, true));
    return flow_->go_to(flow_->instructions()) ? verify_outputs() : Result<void>();
  }

 private:
  using Values = std::vector<std::uint32_t>;

  TrackedValue& tracked(std::int64_t value) { return calls_.tracked(value); }
  /// Returns the kinds that the value may hold before the call that is being verified.
  Kinds kinds_of(std::int64_t value) { return flow_->kinds_of(static_cast<std::uint32_t>(value)); }

  /// Finds the reasons why a delegate, which messages call `name`, can't be loaded.
  Result<void> verify_delegate(const pte::Delegate& delegate, std::string_view name) {
    const auto& known = known_.compile_spec;
    ETSTREAM_TRY(for_each(delegate.compile_specs(), [&](const pte::View& spec) -> Result<void> {
      for (const BoundField* field : {&known.key, &known.value}) {
        ETSTREAM_ASSIGN(const bool is_there, spec.has(*field));
        if (!is_there) calls_.error(spec, field->full_name(), "none");
      }
      return {};
    }));
    ETSTREAM_ASSIGN(const std::string id, delegate.backend());
    if (!is_utf8(id)) calls_.error(delegate, "a delegate's id in UTF-8", quote(id));
    ETSTREAM_ASSIGN(const auto place, delegate.place());
    const auto [found, is_new] = payloads_.try_emplace({place->in_segment, place->index});
    const bool is_xnnpack = id == kXnnpackBackend;
    arguments_.push_back(is_xnnpack ? &found->second : nullptr);
    if (!is_new) return {};
    ETSTREAM_ASSIGN(const ByteSource payload, calls_.program().delegate_data(*place));
    ETSTREAM_TRY(calls_.budget().spend(payload.size()));
    const std::string whole_name = text("{}: {} ({})", calls_.program().name(), name, printable(id));
    if (is_xnnpack) {
      ETSTREAM_ASSIGN(found->second, verify_xnnpack(payload, whole_name, named_data_, calls_.findings()));
      return {};
    }
    const auto read = read_backend_payload(id, payload, whole_name);
    if (!read) return note_corrupt(read.error(), calls_.findings());
    if (const std::string_view beginning = beginning_of_payloads(id); !*read && !beginning.empty()) {
      add_warning(calls_.findings(), text("{}: expected data that begins with {}", whole_name, beginning));
    }
    return {};
  }

  Result<void> verify_call(const pte::Call& table, const GraphCall& call) {
    switch (call.kind) {
      case CallKind::kKernel:
        return verify_kernel(table, call);
      case CallKind::kDelegate:
        return verify_delegate_call(table, call);
      case CallKind::kJumpIfFalse:
        check_kinds(table, "a jump", 0, kinds(pte::ValueKind::kTensor, pte::ValueKind::kBool), call.args[0]);
        return {};
      case CallKind::kFree:
        if (call.args.empty()) return {};  // of a kind that is not known
        if (tracked(call.args[0]).is_planned && !tracked(call.args[0]).is_replaced) {
          calls_.error(table, "memory that was given by a call before",
                       text("value {}, whose memory is planned", call.args[0]));
        }
        return check_argument(table, "freeing memory", 0, Parameter::kShape, call.args[0]);
      case CallKind::kMove:
        break;
    }
    return {};
  }

  Result<void> verify_kernel(const pte::Call& table, const GraphCall& call) {
    ETSTREAM_ASSIGN(const Callee* callee, calls_.callee_of(call));
    if (!callee->signature) return {};
    const Values& args = call.args;
    const Signature signature = *callee->signature;
    for (std::uint32_t i = 0; i < args.size() && i < signature.size(); ++i) {
      const Parameter parameter = signature[i];
      if (parameter == Parameter::kReturn) {
        check_result(table, *callee, i, args[i]);
        continue;
      }
      if (parameter != Parameter::kView && !is_written(parameter)) {
        check_filled(table, callee->name, i, args[i]);
      }
      ETSTREAM_TRY(check_argument(table, callee->name, i, parameter, args[i]));
    }
    if (args.size() != signature.size()) {
      calls_.error(table,
                   text("{} of {}, with what it gives", counted(signature.size(), "argument"), callee->name),
                   text("{}", args.size()));
      return {};
    }
    if (reads_indices(callee->name)) ETSTREAM_TRY(check_apart(table, *callee, args));
    return has_kernel_rules(callee->name) ? check_rules(table, callee->name, args) : Result<void>();
  }

  /// Finds a call that writes to the memory of its indices.
  Result<void> check_apart(const pte::Call& table, const Callee& callee, const Values& args) {
    const Signature signature = *callee.signature;
    std::vector<PlannedPlace> written;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!is_written(signature[i])) continue;
      ETSTREAM_ASSIGN(const auto place, calls_.place_of(args[i]));
      if (place) written.push_back(*place);
    }
    bool is_hit = false;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (is_written(signature[i]) || signature[i] == Parameter::kReturn) continue;
      std::vector<std::int64_t> read = {args[i]};
      if (tracked(args[i]).kind == pte::ValueKind::kOptionalTensorList) {
        read.clear();
        if (tracked(args[i]).is_replaced) continue;
        ETSTREAM_ASSIGN(read, calls_.items_of(args[i]));
      }
      for (const std::int64_t value : read) {
        if (value == -1) continue;
        ETSTREAM_ASSIGN(const auto indices, calls_.place_of(value));
        is_hit |= indices && indices->may_hold_indices() &&
                  std::ranges::any_of(written, [&](const auto& each) { return each.overlaps(*indices); });
      }
    }
    if (!is_hit) return {};
    calls_.error(table, text("indices of {} apart from what it writes to", callee.name),
                 "both in the same memory");
    return {};
  }

  /// Returns the layouts of the tensors in a list of optional ones; none for one that another value replaces.
  Result<std::vector<std::optional<TensorLayout>>> layouts_of_items(std::uint32_t list) {
    ETSTREAM_ASSIGN(const auto items, calls_.items_of(list));
    std::vector<std::optional<TensorLayout>> out(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i] == -1 || !tracked(items[i]).is_own_tensor()) continue;
      ETSTREAM_ASSIGN(const TensorInfo info, calls_.tensor_in(items[i]));
      out[i] = TensorLayout{info.scalar_type, info.sizes, info.dim_order};
    }
    return out;
  }

  Result<void> check_rules(const pte::Call& table, std::string_view name, const Values& args) {
    std::vector<KernelArgument> arguments(args.size());
    for (std::size_t i = 0; i < args.size(); ++i) {
      const TrackedValue& held = tracked(args[i]);
      if (held.is_replaced || held.is_result) continue;
      if (held.kind == pte::ValueKind::kInt) {
        ETSTREAM_ASSIGN(const pte::Held integer, calls_.held_by(args[i]));
        ETSTREAM_ASSIGN(arguments[i].integer, integer.scalar<std::int64_t>(known_.int_.int_val));
      } else if (held.kind == pte::ValueKind::kTensor) {
        ETSTREAM_ASSIGN(const TensorInfo info, calls_.tensor_in(args[i]));
        arguments[i].tensor = TensorLayout{info.scalar_type, info.sizes, info.dim_order};
        arguments[i].has_fixed_sizes = info.dynamism == ShapeDynamism::kStatic;
      } else if (held.kind == pte::ValueKind::kOptionalTensorList) {
        ETSTREAM_ASSIGN(arguments[i].items, layouts_of_items(args[i]));
      }
    }
    const auto broken = find_broken_rule(name, arguments);
    if (broken) calls_.error(table, text("{} of {}", broken->expected, name), broken->found);
    return {};
  }

  /// Checks that a value holds, on every path to this place, one of the kinds that are `taken`. Finds the
  /// others.
  bool check_kinds(const pte::View& call, std::string_view name, std::uint32_t number, Kinds taken,
                   std::uint32_t value) {
    const Kinds wrong = others(kinds_of(value), taken);
    if (wrong != 0) {
      calls_.error(call, text("{} as argument {} of {}", name_of_kinds(taken), number, name),
                   name_of_kinds(wrong));
    }
    return wrong == 0;
  }

  /// Finds a value that can't hold the result of a call.
  void check_result(const pte::View& call, const Callee& callee, std::uint32_t number, std::uint32_t value) {
    const TrackedValue& held = tracked(value);
    if (!callee.gives_number() || held.is_replaced) return;
    const Kinds wrong = others(kinds(held.kind), kinds_taken(Parameter::kOptionalScalar));
    if (wrong == 0) return;
    calls_.error(call, text("{} as argument {} of {}", name_of_kinds(kAnyNumber), number, callee.name),
                 name_of_kinds(wrong));
  }

  /// Finds a tensor that a call reads before it gets its memory and its shape.
  void check_filled(const pte::View& call, std::string_view name, std::uint32_t number, std::uint32_t value) {
    const Kinds held = kinds_of(value);
    if ((held & kAnything) != 0 || (held & kEmpty) == 0 || tracked(value).has_no_data) return;
    calls_.error(call, text("a tensor that a call before gives, as argument {} of {}", number, name),
                 text("value {}, which none does on a way here", value));
  }

  /// Finds a value that can't be argument `number` of a call.
  Result<void> check_argument(const pte::View& call, std::string_view name, std::uint32_t number,
                              Parameter parameter, std::uint32_t value) {
    if (!check_kinds(call, name, number, kinds_taken(parameter), value)) return {};
    const TrackedValue& held = tracked(value);
    if (held.is_replaced) return {};
    if (held.kind == pte::ValueKind::kIntList) return check_integers(value);
    if (held.is_list_of_tensors()) return check_memory_of_items(call, name, value);
    const auto place = [&](std::string_view what) {
      return text("{} as argument {} of {}", what, number, name);
    };
    const bool has_data_read = parameter == Parameter::kTensor || parameter == Parameter::kOptionalTensor ||
                               parameter == Parameter::kOut;
    if (held.has_no_data && has_data_read) {
      calls_.error(call, place("a tensor with memory"), text("value {}, which nothing gives any", value));
    }
    if (held.is_constant && is_written(parameter)) {
      calls_.error(call, place("a tensor that can be written"), text("value {}, a constant", value));
    }
    return {};
  }

  /// Finds items that are not integers in the list that is value `value`. An operator that takes the list
  /// reads them.
  Result<void> check_integers(std::uint32_t value) {
    if (tracked(value).is_checked) return {};
    ETSTREAM_ASSIGN(const auto list, calls_.held_by(value));
    ETSTREAM_ASSIGN(const auto items, calls_.items_of(list, *list.items()));
    bool is_final = true;
    for (const std::int64_t item : items) {
      const Kinds wrong = others(kinds_of(item), kinds(pte::ValueKind::kInt));
      is_final = wrong != 0 || (is_final && !flow_->is_changed(static_cast<std::uint32_t>(item)));
      if (wrong == 0) continue;
      calls_.error(list, text("{} of integers", list.items()->full_name()), name_of_kinds(wrong));
    }
    tracked(value).is_checked = is_final;
    return {};
  }

  Result<void> check_memory_of_items(const pte::View& call, std::string_view name, std::uint32_t value) {
    if (std::exchange(tracked(value).is_checked, true)) return {};
    ETSTREAM_ASSIGN(const auto items, calls_.items_of(value));
    for (const std::int64_t item : items) {
      if (item == -1 || !tracked(item).has_no_data || tracked(item).is_replaced) continue;
      calls_.error(call, text("tensors with memory in a list for {}", name),
                   text("value {}, which nothing gives any", item));
    }
    return {};
  }

  Result<void> verify_delegate_call(const pte::Call& table, const GraphCall& call) {
    const auto* wanted = arguments_[call.callee];
    if (!wanted) return {};
    ETSTREAM_TRY(calls_.budget().reach(table.position(), wanted->size()));
    for (const XnnpackArgument& each : *wanted) {
      if (each.number >= call.args.size()) {
        calls_.error(table, text("more than {} arguments of {}", each.number, kXnnpackBackend),
                     text("{}", call.args.size()));
        continue;
      }
      const std::uint32_t value = call.args[each.number];
      ETSTREAM_TRY(check_argument(table, kXnnpackBackend, each.number, Parameter::kTensor, value));
      const TrackedValue& held = tracked(value);
      if (!held.is_own_tensor() || held.width >= each.width) continue;
      calls_.error(
          table, text("elements of {} bytes in argument {} of {}", each.width, each.number, kXnnpackBackend),
          text("{}", held.width));
    }
    return {};
  }

  /// Finds outputs that are lists, or tensors of quantized dtypes: ExecuTorch's Python functions end the
  /// process if there is one. They make torch's tensor of such a dtype without a quantizer, and copy it.
  Result<void> verify_outputs() {
    using enum pte::ValueKind;
    constexpr Kinds kLists = kinds(kTensorList, kOptionalTensorList, kIntList, kDoubleList, kBoolList);
    ETSTREAM_ASSIGN(const auto outputs, calls_.items_of(calls_.method(), known_.execution_plan.outputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Kinds wrong = others(kinds_of(outputs[i]), static_cast<Kinds>(~kLists));
      if (wrong != 0) {
        calls_.error(calls_.method(), text("an output {} that is no list", i), name_of_kinds(wrong));
      } else if ((kinds_of(outputs[i]) & kQuantized) != 0) {
        calls_.error(
            calls_.method(),
            text("an output {} of no quantized dtype, on which ExecuTorch's Python functions crash", i),
            "one");
      }
    }
    return {};
  }

  MethodCalls calls_;
  const program::Fields& known_;
  const NamedDataSizes& named_data_;
  /// The arguments that calls of XNNPACK's delegates must pass, by the place of the delegates' data: true and
  /// a segment, or false and an entry in the flatbuffer.
  std::map<std::pair<bool, std::uint32_t>, std::vector<XnnpackArgument>> payloads_;
  std::vector<const std::vector<XnnpackArgument>*> arguments_;  // by delegate; null where not known
  std::optional<ValueFlow> flow_;
};

Result<void> verify_methods(const pte::Program& program, Findings& findings) {
  NamedDataSizes sizes;
  ETSTREAM_ASSIGN(auto named_data, read_named_data(program));
  for (pte::NamedPayload& named : named_data) sizes.try_emplace(std::move(named.key), named.data.size());
  return for_each(program.methods(), [&](const pte::Method& method) {
    return CallVerifier(program, method, sizes, findings).run();
  });
}

}  // namespace

Result<void> verify_calls(const ProgramFile& program, Findings& findings) {
  return without_exceptions(
      [&] { return note_corrupt(verify_methods(program.model(), findings), findings); });
}

}  // namespace etstream
