// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1 lets kernels take their arguments from values without a check of their kinds (EValue::to
// ends the process).
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
#include "runtime_checks/method_flow.h"

namespace etstream {
namespace {

/// Returns the kinds that a value may hold and that are not `taken`; nothing if it may hold anything.
Kinds others(Kinds held, Kinds taken) {
  if ((held & kAnything) != 0) return 0;
  return static_cast<Kinds>(held & ~(taken | kEmpty | kQuantized));
}

/// The arguments that calls of XNNPACK's delegates must pass.
struct DelegateArguments {
  /// The arguments by the place of the delegates' data: true and a segment, or false and an entry in the
  /// flatbuffer.
  std::map<std::pair<bool, std::uint32_t>, std::vector<XnnpackArgument>> payloads;
  std::vector<const std::vector<XnnpackArgument>*> of_delegates;  // null where they are not known
};

Result<void> verify_compile_specs(MethodCalls& calls, const pte::Delegate& delegate) {
  const auto& known = calls.known().compile_spec;
  return for_each(delegate.compile_specs(), [&](const pte::View& spec) -> Result<void> {
    for (const BoundField* field : {&known.key, &known.value}) {
      ETSTREAM_ASSIGN(const bool is_there, spec.has(*field));
      if (!is_there) calls.error(spec, field->full_name(), "none");
    }
    return {};
  });
}

/// Returns the arguments that calls of a delegate must pass, if they are known. Messages call its data
/// `name`, which several delegates may share.
Result<const std::vector<XnnpackArgument>*> verify_payload(MethodCalls& calls, const pte::Delegate& delegate,
                                                           const std::string& id, const std::string& name,
                                                           const NamedDataSizes& named_data,
                                                           DelegateArguments& out) {
  ETSTREAM_ASSIGN(const auto place, delegate.place());
  const auto [found, is_new] = out.payloads.try_emplace({place->in_segment, place->index});
  const bool is_xnnpack = id == kXnnpackBackend;
  const auto* const arguments = is_xnnpack ? &found->second : nullptr;
  if (!is_new) return arguments;
  ETSTREAM_ASSIGN(const ByteSource payload, calls.program().delegate_data(*place));
  ETSTREAM_TRY(calls.budget().spend(payload.size()));
  if (is_xnnpack) {
    ETSTREAM_ASSIGN(found->second, verify_xnnpack(payload, name, named_data, calls.findings()));
    return arguments;
  }
  const auto read = read_backend_payload(id, payload, name);
  if (!read) {
    ETSTREAM_TRY(note_corrupt(read.error(), calls.findings()));
  } else if (const std::string_view beginning = beginning_of_payloads(id); !*read && !beginning.empty()) {
    add_warning(calls.findings(), text("{}: expected data that begins with {}", name, beginning));
  }
  return arguments;
}

/// Adds to the findings of `calls` the reasons why delegates can't be loaded.
Result<DelegateArguments> verify_delegates(MethodCalls& calls, const NamedDataSizes& named_data) {
  DelegateArguments out;
  ETSTREAM_ASSIGN(const std::string method, calls.method().name());
  const auto verify = [&](const pte::Delegate& delegate, std::uint32_t number) -> Result<void> {
    ETSTREAM_TRY(verify_compile_specs(calls, delegate));
    ETSTREAM_ASSIGN(const std::string id, delegate.backend());
    if (!is_utf8(id)) calls.error(delegate, "a delegate's id in UTF-8", quote(id));
    const std::string name =
        text("{}: method {}, delegate {} ({})", calls.program().name(), quote(method), number, printable(id));
    ETSTREAM_ASSIGN(out.of_delegates.emplace_back(),
                    verify_payload(calls, delegate, id, name, named_data, out));
    return {};
  };
  ETSTREAM_TRY(for_each(calls.method().delegates(), verify));
  return out;
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
    ETSTREAM_ASSIGN(delegates_, verify_delegates(calls_, named_data_));
    ETSTREAM_TRY(calls_.read_values());
    ETSTREAM_ASSIGN(flow_, MethodFlow::follow(calls_));
    const auto verify = [&](const pte::Call& call, std::uint32_t number, std::uint32_t) {
      return values().go_to(number) ? verify_call(call) : Result<void>();
    };
    ETSTREAM_TRY(calls_.for_each_call(verify));
    return values().go_to(values().instructions()) ? verify_outputs() : Result<void>();
  }

 private:
  [[nodiscard]] ValueFlow& values() { return flow_->values(); }
  TrackedValue& tracked(std::int64_t value) { return calls_.tracked(value); }
  /// Returns the kinds that the value may hold before the call that is being verified.
  Kinds kinds_of(std::int64_t value) { return values().kinds_of(static_cast<std::uint32_t>(value)); }

  Result<void> verify_call(const pte::Call& call) {
    switch (call.kind().value_or(CallKind::kMove)) {
      case CallKind::kKernel:
        return verify_kernel(call);
      case CallKind::kDelegate:
        return verify_delegate_call(call);
      case CallKind::kJumpIfFalse: {
        ETSTREAM_ASSIGN(const auto condition,
                        call.scalar<std::int32_t>(known_.jump_false_call.cond_value_index));
        check_kinds(call, "a jump", 0, kinds(pte::ValueKind::kTensor, pte::ValueKind::kBool), condition);
        return {};
      }
      case CallKind::kFree: {
        ETSTREAM_ASSIGN(const auto freed, call.scalar<std::int32_t>(known_.free_call.value_index));
        if (tracked(freed).is_planned && !tracked(freed).is_replaced) {
          calls_.error(call, "memory that was given by a call before",
                       text("value {}, whose memory is planned", freed));
        }
        return check_argument(call, "freeing memory", 0, Parameter::kShape, freed);
      }
      case CallKind::kMove:
        break;
    }
    return {};
  }

  Result<void> verify_kernel(const pte::Call& call) {
    ETSTREAM_ASSIGN(const Callee* callee, calls_.callee_of(call));
    if (!callee->signature) return {};
    ETSTREAM_ASSIGN(const auto args, calls_.arguments_of(call));
    const Signature signature = *callee->signature;
    for (std::uint32_t i = 0; i < args.size() && i < signature.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
      const Parameter parameter = signature[i];
      if (parameter == Parameter::kReturn) {
        check_result(call, *callee, i, value);
        continue;
      }
      if (parameter != Parameter::kView && !is_written(parameter)) {
        check_filled(call, callee->name, i, value);
      }
      ETSTREAM_TRY(check_argument(call, callee->name, i, parameter, value));
    }
    if (args.size() != signature.size()) {
      calls_.error(call,
                   text("{} of {}, with what it gives", counted(signature.size(), "argument"), callee->name),
                   text("{}", args.size()));
      return {};
    }
    if (reads_indices(callee->name)) ETSTREAM_TRY(check_apart(call, *callee, args));
    return has_kernel_rules(callee->name) ? check_rules(call, *callee, args) : Result<void>();
  }

  /// Finds a call that writes to the memory of its indices.
  Result<void> check_apart(const pte::Call& call, const Callee& callee,
                           const NumberList<std::int32_t>& args) {
    std::vector<PlannedPlace> written;
    bool is_hit = false;
    for (const bool is_output : {true, false}) {
      ETSTREAM_TRY(for_each(args, [&](std::int32_t value, std::uint32_t i) -> Result<void> {
        const Parameter parameter = (*callee.signature)[i];
        if (parameter == Parameter::kReturn || is_written(parameter) != is_output) return {};
        if (is_output) {
          ETSTREAM_ASSIGN(const auto place, calls_.place_of(value));
          if (place) written.push_back(*place);
          return {};
        }
        ETSTREAM_ASSIGN(const bool is_there, tracked(value).kind == pte::ValueKind::kOptionalTensorList
                                                 ? is_item_in(value, written)
                                                 : is_in(value, written));
        is_hit |= is_there;
        return {};
      }));
    }
    if (!is_hit) return {};
    calls_.error(call, text("indices of {} apart from what it writes to", callee.name),
                 "both in the same memory");
    return {};
  }

  /// Returns whether a tensor of a list of optional ones is_in() the `written`.
  Result<bool> is_item_in(std::int32_t value, std::span<const PlannedPlace> written) {
    bool out = false;
    if (tracked(value).is_replaced) return out;
    const auto look = [&](std::int32_t item) -> Result<void> {
      if (item == -1) return {};
      ETSTREAM_ASSIGN(const bool is_there, is_in(item, written));
      out |= is_there;
      return {};
    };
    ETSTREAM_TRY(for_each(calls_.items_of<std::int32_t>(value), look));
    return out;
  }

  /// Returns whether a value is a tensor of integers in memory where one of the `written` lies too.
  Result<bool> is_in(std::int32_t value, std::span<const PlannedPlace> written) {
    ETSTREAM_ASSIGN(const auto indices, calls_.place_of(value));
    return indices && indices->may_hold_indices() &&
           std::ranges::any_of(written, [&](const PlannedPlace& each) { return each.overlaps(*indices); });
  }

  /// Returns the layouts of the tensors in a list of optional ones; none for one that another value replaces.
  Result<std::vector<std::optional<TensorLayout>>> layouts_of_items(std::int32_t list) {
    std::vector<std::optional<TensorLayout>> out;
    ETSTREAM_TRY(for_each(calls_.items_of<std::int32_t>(list), [&](std::int32_t item) -> Result<void> {
      out.emplace_back();
      if (item == -1 || tracked(item).is_replaced || tracked(item).kind != pte::ValueKind::kTensor) return {};
      ETSTREAM_ASSIGN(const pte::Held tensor, calls_.held_by(item));
      ETSTREAM_ASSIGN(out.back(), tensor.tensor().layout());
      return {};
    }));
    return out;
  }

  Result<void> check_rules(const pte::Call& call, const Callee& callee,
                           const NumberList<std::int32_t>& args) {
    std::vector<KernelArgument> arguments(args.size());
    ETSTREAM_TRY(for_each(args, [&](std::int32_t value, std::uint32_t i) -> Result<void> {
      const TrackedValue& held = tracked(value);
      if (held.is_replaced || held.is_result) return {};
      if (held.kind == pte::ValueKind::kInt) {
        ETSTREAM_ASSIGN(const pte::Held integer, calls_.held_by(value));
        ETSTREAM_ASSIGN(arguments[i].integer, integer.scalar<std::int64_t>(known_.int_.int_val));
      } else if (held.kind == pte::ValueKind::kTensor) {
        ETSTREAM_ASSIGN(const pte::Held tensor, calls_.held_by(value));
        ETSTREAM_ASSIGN(const TensorInfo info, tensor.tensor().info());
        arguments[i].tensor = TensorLayout{info.scalar_type, info.sizes, info.dim_order};
        arguments[i].has_fixed_sizes = info.dynamism == ShapeDynamism::kStatic;
      } else if (held.kind == pte::ValueKind::kOptionalTensorList) {
        ETSTREAM_ASSIGN(arguments[i].items, layouts_of_items(value));
      }
      return {};
    }));
    const auto broken = find_broken_rule(callee.name, arguments);
    if (broken) calls_.error(call, text("{} of {}", broken->expected, callee.name), broken->found);
    return {};
  }

  /// Checks that a value holds, on every path to this place, one of the kinds that are `taken`. Finds the
  /// others.
  bool check_kinds(const pte::View& call, std::string_view name, std::uint32_t number, Kinds taken,
                   std::int32_t value) {
    const Kinds wrong = others(kinds_of(value), taken);
    if (wrong != 0) {
      calls_.error(call, text("{} as argument {} of {}", name_of_kinds(taken), number, name),
                   name_of_kinds(wrong));
    }
    return wrong == 0;
  }

  /// Finds a value that can't hold the result of a call.
  void check_result(const pte::View& call, const Callee& callee, std::uint32_t number, std::int32_t value) {
    const TrackedValue& held = tracked(value);
    if (!callee.gives_number() || held.is_replaced) return;
    const Kinds wrong = others(kinds(held.kind), kinds_taken(Parameter::kOptionalScalar));
    if (wrong == 0) return;
    calls_.error(call, text("{} as argument {} of {}", name_of_kinds(kAnyNumber), number, callee.name),
                 name_of_kinds(wrong));
  }

  /// Finds a tensor that a call reads before it gets its memory and its shape.
  void check_filled(const pte::View& call, std::string_view name, std::uint32_t number, std::int32_t value) {
    const Kinds held = kinds_of(value);
    if ((held & kAnything) != 0 || (held & kEmpty) == 0 || tracked(value).has_no_data) return;
    calls_.error(call, text("a tensor that a call before gives, as argument {} of {}", number, name),
                 text("value {}, which none does on a way here", value));
  }

  /// Finds a value that can't be argument `number` of a call.
  Result<void> check_argument(const pte::View& call, std::string_view name, std::uint32_t number,
                              Parameter parameter, std::int32_t value) {
    if (!check_kinds(call, name, number, kinds_taken(parameter), value)) return {};
    const TrackedValue& held = tracked(value);
    if (held.is_replaced) return {};
    if (held.kind == pte::ValueKind::kIntList) return check_integers(value);
    if (calls_.is_list_of_tensors(value)) return check_memory_of_items(call, name, value);
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
  Result<void> check_integers(std::int32_t value) {
    if (tracked(value).is_checked) return {};
    ETSTREAM_ASSIGN(const auto list, calls_.held_by(value));
    bool is_final = true;
    ETSTREAM_TRY(for_each(calls_.items_of<std::int64_t>(list, *list.items()), [&](std::int64_t item) {
      const Kinds wrong = others(kinds_of(item), kinds(pte::ValueKind::kInt));
      is_final = wrong != 0 || (is_final && !values().is_changed(static_cast<std::uint32_t>(item)));
      if (wrong == 0) return;
      calls_.error(list, text("{} of integers", list.items()->full_name()), name_of_kinds(wrong));
    }));
    tracked(value).is_checked = is_final;
    return {};
  }

  Result<void> check_memory_of_items(const pte::View& call, std::string_view name, std::int32_t value) {
    if (std::exchange(tracked(value).is_checked, true)) return {};
    return for_each(calls_.items_of<std::int32_t>(value), [&](std::int32_t item) {
      if (item == -1 || !tracked(item).has_no_data || tracked(item).is_replaced) return;
      calls_.error(call, text("tensors with memory in a list for {}", name),
                   text("value {}, which nothing gives any", item));
    });
  }

  Result<void> verify_delegate_call(const pte::Call& call) {
    ETSTREAM_ASSIGN(const auto index, call.scalar<std::int32_t>(known_.delegate_call.delegate_index));
    ETSTREAM_ASSIGN(const auto args, calls_.arguments_of(call));
    const auto* wanted = delegates_.of_delegates[static_cast<std::size_t>(index)];
    if (!wanted) return {};
    ETSTREAM_TRY(calls_.budget().reach(call.position(), wanted->size()));
    for (const XnnpackArgument& each : *wanted) {
      if (each.number >= args.size()) {
        calls_.error(call, text("more than {} arguments of {}", each.number, kXnnpackBackend),
                     text("{}", args.size()));
        continue;
      }
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(each.number));
      ETSTREAM_TRY(check_argument(call, kXnnpackBackend, each.number, Parameter::kTensor, value));
      const TrackedValue& held = tracked(value);
      if (held.kind != pte::ValueKind::kTensor || held.is_replaced || held.width >= each.width) continue;
      calls_.error(
          call, text("elements of {} bytes in argument {} of {}", each.width, each.number, kXnnpackBackend),
          text("{}", held.width));
    }
    return {};
  }

  /// Finds outputs that are lists, or tensors of quantized dtypes: ExecuTorch's Python functions end the
  /// process if there is one. They make torch's tensor of such a dtype without a quantizer, and copy it.
  Result<void> verify_outputs() {
    using enum pte::ValueKind;
    constexpr Kinds kLists = kinds(kTensorList, kOptionalTensorList, kIntList, kDoubleList, kBoolList);
    return for_each(
        calls_.items_of<std::int32_t>(calls_.method(), known_.execution_plan.outputs),
        [&](std::int32_t value, std::uint32_t i) {
          const Kinds wrong = others(kinds_of(value), static_cast<Kinds>(~kLists));
          if (wrong != 0) {
            calls_.error(calls_.method(), text("an output {} that is no list", i), name_of_kinds(wrong));
          } else if ((kinds_of(value) & kQuantized) != 0) {
            calls_.error(
                calls_.method(),
                text("an output {} of no quantized dtype, on which ExecuTorch's Python functions crash", i),
                "one");
          }
        });
  }

  MethodCalls calls_;
  const program::Fields& known_;
  const NamedDataSizes& named_data_;
  DelegateArguments delegates_;
  std::optional<MethodFlow> flow_;
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
