// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1: kernels take their arguments from values without asking what these hold (EValue::to ends
// the process).
#include "pte/call_verify.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "etstream/scalar_type.h"
#include "pte/delegate_verify.h"
#include "pte/kernel_rules.h"
#include "pte/method_calls.h"
#include "pte/method_flow.h"
#include "pte/xnnpack_payload.h"

namespace etstream {
namespace {

constexpr std::string_view kKinds = "TLOIDBNAFG0";

class CallVerifier {
 public:
  CallVerifier(const pte::Program& program, const pte::Method& method, Findings& findings)
      : calls_(program, method, findings), known_(program.fields()) {}

  Result<void> run() {
    ETSTREAM_TRY(delegates_.verify(calls_));
    ETSTREAM_TRY(calls_.read_values());
    ETSTREAM_ASSIGN(flow_, MethodFlow::follow(calls_));
    ETSTREAM_TRY(calls_.for_each_call(
        [&](const std::optional<pte::Call>& call, std::uint32_t number) {
          return call && values().go_to(number) ? verify_call(*call) : Result<void>();
        },
        [](std::uint32_t) {}));
    return values().go_to(values().instructions()) ? verify_outputs() : Result<void>();
  }

 private:
  [[nodiscard]] ValueFlow& values() { return flow_->values(); }
  Slot& slot(std::int64_t value) { return calls_.slot(value); }

  Result<void> verify_call(const pte::Call& call) {
    switch (call.kind().value_or(GraphCall::Kind::kMove)) {
      case GraphCall::Kind::kKernel:
        return verify_kernel(call);
      case GraphCall::Kind::kDelegate:
        return verify_delegate_call(call);
      case GraphCall::Kind::kJumpIfFalse: {
        ETSTREAM_ASSIGN(const auto condition,
                        call.scalar<std::int32_t>(known_.jump_false_call.cond_value_index));
        check_kinds(call, "a jump", 0, 'T', condition, "B");
        return {};
      }
      case GraphCall::Kind::kFree: {
        ETSTREAM_ASSIGN(const auto freed, call.scalar<std::int32_t>(known_.free_call.value_index));
        if (slot(freed).is_planned && !slot(freed).is_replaced) {
          calls_.error(call, "memory that was given by a call before",
                       text("value {}, whose memory is planned", freed));
        }
        return check_argument(call, "freeing memory", 0, 'M', freed, false);
      }
      case GraphCall::Kind::kMove:
        break;
    }
    return {};
  }

  Result<void> verify_kernel(const pte::Call& call) {
    ETSTREAM_ASSIGN(const Callee* callee, calls_.callee_of(call));
    if (!callee->signature) return {};
    ETSTREAM_ASSIGN(const auto args, calls_.arguments_of(call));
    std::uint32_t next = 0;
    bool is_written = false;
    for (const char letter : *callee->signature) {
      if (letter == '>') {
        is_written = true;
        continue;
      }
      if (next < args.size()) {
        ETSTREAM_ASSIGN(const std::int32_t value, args.at(next));
        if (!is_written && letter != 'V' && letter != '*') check_filled(call, callee->name, next, value);
        ETSTREAM_TRY(letter == '*' ? check_result(call, *callee, next, value)
                                   : check_argument(call, callee->name, next, letter, value, is_written));
      }
      ++next;
      is_written = false;
    }
    if (next != args.size()) {
      calls_.error(call, text("{} of {}, with what it gives", counted(next, "argument"), callee->name),
                   text("{}", args.size()));
      return {};
    }
    if (reads_indices(callee->name)) ETSTREAM_TRY(check_apart(call, *callee, args));
    ETSTREAM_TRY(check_in_place(call, *callee, args));
    if (!has_kernel_rules(callee->name, *callee->signature)) return {};
    return check_rules(call, *callee, args);
  }

  /// That what a call writes to is not where its indices are.
  Result<void> check_apart(const pte::Call& call, const Callee& callee,
                           const NumberList<std::int32_t>& args) {
    std::vector<PlannedPlace> written;
    bool is_hit = false;
    for (const bool is_output : {true, false}) {
      std::uint32_t next = 0;
      for (std::size_t i = 0; i < callee.signature->size(); ++i) {
        const char letter = (*callee.signature)[i];
        if (letter == '>') continue;
        ETSTREAM_ASSIGN(const std::int32_t value, args.at(next++));
        if (letter == '*' || is_output != (i > 0 && (*callee.signature)[i - 1] == '>')) continue;
        ETSTREAM_ASSIGN(const auto place, tensor_place(value));
        if (is_output && place) written.push_back(*place);
        if (is_output) continue;
        ETSTREAM_ASSIGN(const bool is_there, slot(value).letter == 'O' ? is_item_in(value, written)
                                                                       : Result<bool>(is_in(place, written)));
        is_hit |= is_there;
      }
    }
    if (!is_hit) return {};
    calls_.error(call, text("indices of {} apart from what it writes to", callee.name),
                 "both in the same memory");
    return {};
  }

  Result<std::optional<PlannedPlace>> tensor_place(std::int32_t value) {
    if (slot(value).letter != 'T' || slot(value).is_replaced) return std::optional<PlannedPlace>();
    return calls_.place_of(value);
  }

  /// Whether one of a list of optional tensors is one of integers in the `written`.
  Result<bool> is_item_in(std::int32_t value, std::span<const PlannedPlace> written) {
    if (slot(value).is_replaced) return false;
    ETSTREAM_ASSIGN(const auto list, calls_.held_by(value));
    ETSTREAM_ASSIGN(const auto items, calls_.items_of<std::int32_t>(list, list.items()));
    bool out = false;
    for (std::uint64_t i = 0; i < items.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t item, items.at(i));
      if (item == -1) continue;
      ETSTREAM_ASSIGN(const auto place, tensor_place(item));
      out |= is_in(place, written);
    }
    return out;
  }

  static bool is_in(const std::optional<PlannedPlace>& indices, std::span<const PlannedPlace> written) {
    if (!indices || (indices->dtype != ScalarType::kInt32 && indices->dtype != ScalarType::kInt64))
      return false;
    return std::any_of(written.begin(), written.end(), [&](const PlannedPlace& each) {
      return each.overlaps(*indices) && each.dtype != indices->dtype;
    });
  }

  Result<void> check_rules(const pte::Call& call, const Callee& callee,
                           const NumberList<std::int32_t>& args) {
    std::vector<KernelArgument> arguments(args.size());
    for (std::uint32_t i = 0; i < args.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
      const Slot& held = slot(value);
      if (held.is_replaced || held.is_result) continue;
      if (held.letter == 'I') {
        ETSTREAM_ASSIGN(const pte::Held integer, calls_.held_by(value));
        ETSTREAM_ASSIGN(arguments[i].integer, integer.scalar<std::int64_t>(known_.integer.content));
      } else if (held.letter == 'T') {
        ETSTREAM_ASSIGN(const pte::Held tensor, calls_.held_by(value));
        ETSTREAM_ASSIGN(arguments[i].tensor, tensor_argument(tensor.tensor(), held));
      }
    }
    const auto broken = find_broken_rule(callee.name, *callee.signature, arguments);
    if (broken) calls_.error(call, text("{} of {}", broken->expected, callee.name), broken->found);
    return {};
  }

  /// That integers in memory are still there when a call reads them.
  Result<void> check_in_place(const pte::Call& call, const Callee& callee,
                              const NumberList<std::int32_t>& args) {
    const auto number = argument_of_indices(callee.name);
    if (!number) return {};
    ETSTREAM_ASSIGN(const std::int32_t value, args.at(*number));
    if (!flow_->is_stale(value)) return {};
    calls_.error(call, text("integers that are in place as argument {} of {}", *number, callee.name),
                 text("value {}, in whose memory is something else on a way here", value));
    return {};
  }

  Result<KernelArgument::Tensor> tensor_argument(const pte::Tensor& tensor, const Slot& held) {
    ETSTREAM_ASSIGN(TensorInfo info, tensor.info());
    KernelArgument::Tensor out;
    out.dtype = info.scalar_type;
    if (held.is_constant && out.dtype == ScalarType::kInt64) {
      ETSTREAM_ASSIGN(const std::uint64_t bytes, byte_size(out.dtype, info.sizes));
      ETSTREAM_ASSIGN(out.constants, integers_in(tensor, bytes));
    }
    out.is_static = info.dynamism == ShapeDynamism::kStatic || held.is_constant;
    out.sizes = std::move(info.sizes);
    return out;
  }

  /// The `bytes` of a constant, unless they are many.
  Result<std::vector<std::int64_t>> integers_in(const pte::Tensor& tensor, std::uint64_t bytes) {
    constexpr std::uint64_t kMostRead = 64 * 1024;
    if (bytes > kMostRead) return std::vector<std::int64_t>();
    ETSTREAM_TRY(calls_.budget().spend(bytes));
    ETSTREAM_ASSIGN(const pte::Storage storage, tensor.storage());
    ETSTREAM_ASSIGN(const ByteSource data, calls_.program().tensor_data(tensor, storage, bytes));
    std::vector<std::int64_t> out(static_cast<std::size_t>(bytes / sizeof(std::int64_t)));
    ETSTREAM_TRY(data.read_at(0, std::as_writable_bytes(std::span(out))));
    return out;
  }

  /// That on every way there a value holds what a letter stands for, or one of `others`. False where one of
  /// the kinds that it may hold is another, which is found.
  bool check_kinds(const pte::View& call, std::string_view name, std::uint32_t number, char letter,
                   std::int32_t value, std::string_view others = "") {
    const Kinds held = values().kinds_of(static_cast<std::uint32_t>(value));
    if ((held & kAnything) != 0) return true;
    for (const char kind : kKinds) {
      if ((held & kinds_of_letter(kind)) == 0 || takes(letter, kind) ||
          others.find(kind) != std::string_view::npos)
        continue;
      calls_.error(call, text("{} as argument {} of {}", name_of_kind(letter), number, name),
                   name_of_kind(kind));
      return false;
    }
    return true;
  }

  /// That what a call gives can be put in `value`.
  Result<void> check_result(const pte::View& call, const Callee& callee, std::uint32_t number,
                            std::int32_t value) {
    const Slot& held = slot(value);
    if (!callee.gives_number() || held.is_replaced || held.letter == kUnknownKind || takes('s', held.letter))
      return {};
    calls_.error(call, text("{} as argument {} of {}", name_of_kind('S'), number, callee.name),
                 name_of_kind(held.letter));
    return {};
  }

  /// That a tensor has got its memory and its shape before a call reads it.
  void check_filled(const pte::View& call, std::string_view name, std::uint32_t number, std::int32_t value) {
    const Kinds held = values().kinds_of(static_cast<std::uint32_t>(value));
    if ((held & kAnything) != 0 || (held & kEmpty) == 0 || slot(value).has_no_data) return;
    calls_.error(call, text("a tensor that a call before gives, as argument {} of {}", number, name),
                 text("value {}, which none does on a way here", value));
  }

  /// That value number `value` can be argument `number` of what is called.
  Result<void> check_argument(const pte::View& call, std::string_view name, std::uint32_t number, char letter,
                              std::int32_t value, bool is_written) {
    if (!check_kinds(call, name, number, letter, value)) return {};
    const Slot& held = slot(value);
    if (held.is_replaced) return {};
    if (held.letter == 'A') return check_integers(value);
    if (held.letter == 'L' || held.letter == 'O') return check_memory_of_items(call, name, value);
    const auto place = [&](std::string_view what) {
      return text("{} as argument {} of {}", what, number, name);
    };
    if (held.has_no_data && (letter == 'T' || letter == 't')) {
      calls_.error(call, place("a tensor with memory"), text("value {}, which nothing gives any", value));
    }
    if (held.is_constant && is_written) {
      calls_.error(call, place("a tensor that can be written"), text("value {}, a constant", value));
    }
    return {};
  }

  /// Those in the list that is value `value`, which are read when an operator takes it.
  Result<void> check_integers(std::int32_t value) {
    if (slot(value).is_checked) return {};
    ETSTREAM_ASSIGN(const auto list, calls_.held_by(value));
    ETSTREAM_ASSIGN(const auto items, calls_.items_of<std::int64_t>(list, list.items()));
    bool is_final = true;
    for (std::uint64_t i = 0; i < items.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int64_t item, items.at(i));
      const auto number = static_cast<std::uint32_t>(item);
      const Kinds held = values().kinds_of(number);
      is_final &= !values().is_changed(number);
      if ((held & kAnything) != 0 || (held & ~kinds_of_letter('I')) == 0) continue;
      is_final = true;
      calls_.error(list, text("{} of integers", list.items().full_name()),
                   name_of_kind(other_than_integer(held)));
    }
    slot(value).is_checked = is_final;
    return {};
  }

  static char other_than_integer(Kinds held) {
    for (const char kind : kKinds) {
      if (kind != 'I' && (held & kinds_of_letter(kind)) != 0) return kind;
    }
    return kUnknownKind;
  }

  Result<void> check_memory_of_items(const pte::View& call, std::string_view name, std::int32_t value) {
    if (std::exchange(slot(value).is_checked, true)) return {};
    ETSTREAM_ASSIGN(const auto list, calls_.held_by(value));
    ETSTREAM_ASSIGN(const auto items, calls_.items_of<std::int32_t>(list, list.items()));
    for (std::uint64_t i = 0; i < items.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t item, items.at(i));
      if (item == -1 || !slot(item).has_no_data || slot(item).is_replaced) continue;
      calls_.error(call, text("tensors with memory in a list for {}", name),
                   text("value {}, which nothing gives any", item));
    }
    return {};
  }

  Result<void> verify_delegate_call(const pte::Call& call) {
    ETSTREAM_ASSIGN(const auto index, call.scalar<std::int32_t>(known_.delegate_call.delegate_index));
    ETSTREAM_ASSIGN(const auto args, calls_.arguments_of(call));
    const auto* wanted = delegates_.arguments_of(index);
    if (!wanted) return {};
    ETSTREAM_TRY(calls_.budget().reach(call.position(), wanted->size()));
    for (const XnnpackArgument& each : *wanted) {
      if (each.number >= args.size()) {
        calls_.error(call, text("more than {} arguments of {}", each.number, kXnnpackBackend),
                     text("{}", args.size()));
        continue;
      }
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(each.number));
      ETSTREAM_TRY(check_argument(call, kXnnpackBackend, each.number, 'T', value, false));
      const Slot& held = slot(value);
      if (held.letter != 'T' || held.is_replaced || held.width >= each.width) continue;
      calls_.error(
          call, text("elements of {} bytes in argument {} of {}", each.width, each.number, kXnnpackBackend),
          text("{}", held.width));
    }
    return {};
  }

  /// That none is a list: ExecuTorch's own bindings end the process over one.
  Result<void> verify_outputs() {
    ETSTREAM_ASSIGN(const auto outputs,
                    calls_.items_of<std::int32_t>(calls_.method(), known_.method.outputs));
    for (std::uint64_t i = 0; i < outputs.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, outputs.at(i));
      const Kinds held = values().kinds_of(static_cast<std::uint32_t>(value));
      for (const char kind : std::string_view("LOAFG")) {
        if ((held & kAnything) != 0 || (held & kinds_of_letter(kind)) == 0) continue;
        calls_.error(calls_.method(), text("an output {} that is no list", i), name_of_kind(kind));
      }
    }
    return {};
  }

  MethodCalls calls_;
  const pte::ProgramFields& known_;
  MethodDelegates delegates_;
  std::optional<MethodFlow> flow_;
};

}  // namespace

Result<void> verify_calls(const pte::Program& program, const pte::Method& method, Findings& findings) {
  return CallVerifier(program, method, findings).run();
}

}  // namespace etstream
