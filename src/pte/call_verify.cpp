// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1: kernels take their arguments from values without asking what these hold (EValue::to ends
// the process), a list of tensors is made of the values before it (tensor_parser_exec_aten.cpp), and the name
// of an operator has room for 99 bytes (Method::resolve_operator).
#include "pte/call_verify.h"

#include <cctype>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "container/findings.h"
#include "etstream/scalar_type.h"
#include "flatbuffer/walk_budget.h"
#include "pte/backend_payload.h"
#include "pte/kernel_rules.h"
#include "pte/operator_signatures.h"
#include "pte/xnnpack_payload.h"
#include "pte/xnnpack_verify.h"

namespace etstream {
namespace {

constexpr std::uint32_t kMostOfName = 99;
constexpr char kUnknown = '?';
constexpr char kNull = '0';

/// What a value holds, as operator_signatures.h has it.
struct Slot {
  char letter = kUnknown;
  bool is_constant = false;    // in the program's memory
  bool has_no_data = false;    // before something gives it some
  bool is_rewritten = false;   // by a call, with whatever it makes
  bool is_number_too = false;  // by a call of the runtime's own
  bool is_planned = false;     // a tensor in planned memory, or of the program
  bool is_checked = false;     // of a list
  std::uint8_t width = 0;      // the bytes of a tensor's element
};

/// An operator that is called.
struct Callee {
  bool is_read = false;
  std::string name;
  std::optional<std::string_view> signature;
};

std::string_view name_of(char letter) {
  constexpr std::pair<char, std::string_view> kNames[] = {
      {'T', "a tensor"},          {'L', "a list of tensors"},  {'O', "a list of optional tensors"},
      {'I', "an integer"},        {'D', "a double"},           {'B', "a boolean"},
      {'S', "a number"},          {'N', "a string"},           {'A', "a list of integers"},
      {'F', "a list of doubles"}, {'G', "a list of booleans"}, {kNull, "null"}};
  for (const auto& [each, name] : kNames) {
    if (each == letter) return name;
  }
  return "another kind of value";
}

/// That an argument of a signature is taken for.
char kind_of(char letter) {
  const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return upper == 'M' || upper == 'V' ? 'T' : upper;
}

bool takes(char letter, char held) {
  const char kind = kind_of(letter);
  if (held == kNull) return std::islower(static_cast<unsigned char>(letter)) != 0;
  return kind == held || (kind == 'S' && (held == 'I' || held == 'D' || held == 'B'));
}

class CallVerifier {
 public:
  CallVerifier(const pte::Program& program, const pte::Method& method, Findings& findings)
      : program_(program),
        known_(program.fields()),
        method_(method),
        findings_(findings),
        budget_(program.view()) {}

  Result<void> run() {
    ETSTREAM_ASSIGN(values_, method_.values());
    ETSTREAM_ASSIGN(operators_, method_.operators());
    ETSTREAM_ASSIGN(delegates_, method_.delegates());
    callees_.resize(operators_->size());
    ETSTREAM_TRY(verify_delegates());
    ETSTREAM_TRY(read_values());
    for (const BoundField* given : {&known_.method.inputs, &known_.method.outputs}) {
      ETSTREAM_ASSIGN(const auto indices, method_.numbers<std::int32_t>(*given));
      ETSTREAM_TRY(budget_.spend(method_.position(), std::uint64_t{indices.size()} * 4));
      for (std::uint64_t i = 0; i < indices.size(); ++i) {
        ETSTREAM_ASSIGN(const std::int32_t value, indices.at(i));
        slot(value).has_no_data = false;
      }
    }
    ETSTREAM_TRY(for_each_call([&](const pte::Call& call) { return note_rewritten(call); }));
    return for_each_call([&](const pte::Call& call) { return verify_call(call); });
  }

 private:
  void error(const pte::View& table, std::string_view expected, std::string_view found) {
    add_error(findings_, table.corrupt(expected, found).message);
  }
  Slot& slot(std::int64_t value) { return slots_[static_cast<std::size_t>(value)]; }

  Result<void> read_values() {
    slots_.resize(values_->size());
    for (std::uint32_t i = 0; i < values_->size(); ++i) {
      ETSTREAM_ASSIGN(const pte::Value value, values_->at(i));
      ETSTREAM_ASSIGN(const auto held, value.held());
      if (!held) continue;
      slots_[i].letter = letter_of(*held);
      if (slots_[i].letter == 'T') ETSTREAM_TRY(read_tensor(held->tensor(), slots_[i]));
      if (slots_[i].letter == 'L' || slots_[i].letter == 'O') ETSTREAM_TRY(check_tensors(*held, i));
    }
    return {};
  }

  [[nodiscard]] char letter_of(const pte::Held& held) const {
    const std::pair<std::size_t, char> letters[] = {{known_.null.index(), kNull},
                                                    {known_.tensor.index(), 'T'},
                                                    {known_.integer.index(), 'I'},
                                                    {known_.boolean.index(), 'B'},
                                                    {known_.number.index(), 'D'},
                                                    {known_.string.index(), 'N'},
                                                    {known_.int_list.index(), 'A'},
                                                    {known_.double_list.index(), 'F'},
                                                    {known_.bool_list.index(), 'G'},
                                                    {known_.tensor_list.index(), 'L'},
                                                    {known_.optional_tensor_list.index(), 'O'}};
    for (const auto& [table, letter] : letters) {
      if (table == held.type()) return letter;
    }
    return kUnknown;
  }

  static Result<void> read_tensor(const pte::Tensor& tensor, Slot& slot) {
    ETSTREAM_ASSIGN(const pte::Storage storage, tensor.storage());
    slot.is_constant = storage.kind == TensorStorage::kConstant;
    slot.is_planned = storage.kind != TensorStorage::kProvided;
    ETSTREAM_ASSIGN(const TensorLayout layout, tensor.layout());
    ETSTREAM_ASSIGN(const std::uint64_t width, byte_size(layout.scalar_type, {}));
    slot.width = static_cast<std::uint8_t>(width);
    if (storage.kind != TensorStorage::kProvided) return {};
    slot.has_no_data = true;
    for (const std::int32_t size : layout.sizes) slot.has_no_data &= size != 0;
    return {};
  }

  /// Those of the list that is value `own`.
  Result<void> check_tensors(const pte::Held& list, std::uint32_t own) {
    ETSTREAM_ASSIGN(const auto items, list.numbers<std::int32_t>(list.items()));
    ETSTREAM_TRY(budget_.spend(list.position(), std::uint64_t{items.size()} * 4));
    const bool are_optional = slots_[own].letter == 'O';
    for (std::uint64_t i = 0; i < items.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t item, items.at(i));
      if (item == -1) continue;  // which only a list of optional tensors has
      if (std::cmp_greater_equal(item, own)) {
        error(list, text("{} of values before {}, the list's own", list.items().full_name(), own),
              text("{}", item));
      } else if (const char held = slot(item).letter; !takes(are_optional ? 't' : 'T', held)) {
        error(list, text("{} of tensors", list.items().full_name()), name_of(held));
      }
    }
    return {};
  }

  Result<void> for_each_call(const auto& visit) {
    ETSTREAM_ASSIGN(const auto chains, method_.chains());
    for (std::uint32_t i = 0; i < chains.size(); ++i) {
      ETSTREAM_ASSIGN(const pte::Chain chain, chains.at(i));
      ETSTREAM_ASSIGN(const auto instructions, chain.instructions());
      ETSTREAM_TRY(budget_.spend(chain.position(), std::uint64_t{instructions.size()} * 4));
      for (std::uint32_t j = 0; j < instructions.size(); ++j) {
        ETSTREAM_ASSIGN(const pte::Instruction instruction, instructions.at(j));
        ETSTREAM_ASSIGN(const auto call, instruction.call());
        if (call) ETSTREAM_TRY(visit(*call));
      }
    }
    return {};
  }

  Result<NumberList<std::int32_t>> arguments_of(const pte::Call& call) {
    ETSTREAM_ASSIGN(const auto args, call.numbers<std::int32_t>(call.args()));
    ETSTREAM_TRY(budget_.spend(call.position(), std::uint64_t{args.size()} * 4));
    return args;
  }

  Result<void> note_rewritten(const pte::Call& call) {
    if (call.kind() == GraphCall::Kind::kMove) {
      ETSTREAM_ASSIGN(const auto to, call.scalar<std::int32_t>(known_.move_call.move_to));
      slot(to).is_rewritten = true;
      return {};
    }
    if (call.kind() != GraphCall::Kind::kKernel) return {};
    ETSTREAM_ASSIGN(const Callee* callee, callee_of(call));
    if (!callee->signature) return note_all_rewritten(call);
    ETSTREAM_ASSIGN(const auto args, arguments_of(call));
    if (args.size() == 0) return {};
    ETSTREAM_ASSIGN(const std::int32_t last, args.at(args.size() - 1));
    const char letter = callee->signature->back();
    if (letter == 'V') slot(last).has_no_data = false;
    // An operator with written arguments gives the last of them again.
    if (letter == '*' && callee->signature->find('>') == std::string_view::npos)
      slot(last).is_number_too = true;
    return {};
  }

  /// By an operator of which nothing is known.
  Result<void> note_all_rewritten(const pte::Call& call) {
    ETSTREAM_ASSIGN(const auto args, arguments_of(call));
    for (std::uint64_t i = 0; i < args.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
      slot(value).is_rewritten = true;
    }
    return {};
  }

  Result<const Callee*> callee_of(const pte::Call& call) {
    ETSTREAM_ASSIGN(const auto index, call.scalar<std::int32_t>(known_.kernel_call.op_index));
    Callee& callee = callees_[static_cast<std::size_t>(index)];
    if (!callee.is_read) ETSTREAM_TRY(read_callee(static_cast<std::uint32_t>(index), callee));
    return &callee;
  }

  Result<void> read_callee(std::uint32_t index, Callee& callee) {
    callee.is_read = true;
    ETSTREAM_ASSIGN(const pte::Operator called, operators_->at(index));
    ETSTREAM_ASSIGN(const auto name, called.vector(known_.operators.name));
    ETSTREAM_ASSIGN(const auto overload, called.vector(known_.operators.overload));
    if (!name || name->count == 0) {
      error(called, "the name of an operator that is called", "none");
      return {};
    }
    const std::uint64_t length =
        std::uint64_t{name->count} + (overload ? std::uint64_t{overload->count} + 1 : 0);
    if (length > kMostOfName) {
      error(called, text("the name of an operator of at most {} bytes", kMostOfName), text("{}", length));
      return {};
    }
    ETSTREAM_ASSIGN(callee.name, called.name());
    ETSTREAM_ASSIGN(const std::string behind, called.overload());
    if (!behind.empty()) callee.name += "." + behind;
    if (!is_utf8(callee.name)) error(called, "the name of an operator in UTF-8", quote(callee.name));
    callee.signature = find_signature(callee.name);
    if (!callee.signature) ++findings_.unknown_operators;
    return {};
  }

  Result<void> verify_call(const pte::Call& call) {
    switch (call.kind().value_or(GraphCall::Kind::kMove)) {
      case GraphCall::Kind::kKernel:
        return verify_kernel(call);
      case GraphCall::Kind::kDelegate:
        return verify_delegate_call(call);
      case GraphCall::Kind::kJumpIfFalse: {
        ETSTREAM_ASSIGN(const auto condition,
                        call.scalar<std::int32_t>(known_.jump_false_call.cond_value_index));
        const Slot& held = slot(condition);
        if (held.is_rewritten || held.is_number_too || held.letter == kUnknown || held.letter == 'B')
          return {};
        return check_argument(call, "a jump", 0, 'T', condition, false);
      }
      case GraphCall::Kind::kFree: {
        ETSTREAM_ASSIGN(const auto freed, call.scalar<std::int32_t>(known_.free_call.value_index));
        if (slot(freed).is_planned && !slot(freed).is_rewritten) {
          error(call, "memory that was given by a call before",
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
    ETSTREAM_ASSIGN(const Callee* callee, callee_of(call));
    if (!callee->signature) return {};
    ETSTREAM_ASSIGN(const auto args, arguments_of(call));
    std::uint32_t next = 0;
    bool is_written = false;
    for (const char letter : *callee->signature) {
      if (letter == '>') {
        is_written = true;
        continue;
      }
      if (next < args.size()) {
        ETSTREAM_ASSIGN(const std::int32_t value, args.at(next));
        const bool is_result = letter == '*' && slot(value).is_number_too;
        ETSTREAM_TRY(check_argument(call, callee->name, next, is_result ? 's' : letter, value, is_written));
      }
      ++next;
      is_written = false;
    }
    if (next != args.size()) {
      error(call, text("{} of {}, with what it gives", counted(next, "argument"), callee->name),
            text("{}", args.size()));
      return {};
    }
    if (!has_kernel_rules(callee->name, *callee->signature)) return {};
    return check_rules(call, *callee, args);
  }

  Result<void> check_rules(const pte::Call& call, const Callee& callee,
                           const NumberList<std::int32_t>& args) {
    std::vector<KernelArgument> arguments(args.size());
    for (std::uint32_t i = 0; i < args.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(i));
      const Slot& held = slot(value);
      if (held.is_rewritten || held.is_number_too) continue;
      if (held.letter == 'I') {
        ETSTREAM_ASSIGN(const pte::Held integer, held_by(value));
        ETSTREAM_ASSIGN(arguments[i].integer, integer.scalar<std::int64_t>(known_.integer.content));
      } else if (held.letter == 'T') {
        ETSTREAM_ASSIGN(const pte::Held tensor, held_by(value));
        ETSTREAM_ASSIGN(arguments[i].tensor, tensor_argument(tensor.tensor(), held));
      }
    }
    const auto broken = find_broken_rule(callee.name, *callee.signature, arguments);
    if (broken) error(call, text("{} of {}", broken->expected, callee.name), broken->found);
    return {};
  }

  Result<KernelArgument::Tensor> tensor_argument(const pte::Tensor& tensor, const Slot& held) {
    ETSTREAM_ASSIGN(TensorInfo info, tensor.info());
    KernelArgument::Tensor out;
    out.dtype = info.scalar_type;
    out.rank = info.sizes.size();
    if (held.is_constant && out.dtype == ScalarType::kInt64) {
      ETSTREAM_ASSIGN(const std::uint64_t bytes, byte_size(out.dtype, info.sizes));
      ETSTREAM_ASSIGN(out.constants, integers_in(tensor, bytes));
    }
    if (info.dynamism == ShapeDynamism::kStatic) out.sizes = std::move(info.sizes);
    return out;
  }

  /// The `bytes` of a constant, unless they are many.
  Result<std::vector<std::int64_t>> integers_in(const pte::Tensor& tensor, std::uint64_t bytes) {
    constexpr std::uint64_t kMostRead = 64 * 1024;
    if (bytes > kMostRead) return std::vector<std::int64_t>();
    ETSTREAM_TRY(budget_.spend(tensor.position(), bytes));
    ETSTREAM_ASSIGN(const pte::Storage storage, tensor.storage());
    ETSTREAM_ASSIGN(const ByteSource data, program_.tensor_data(tensor, storage, bytes));
    std::vector<std::int64_t> out(static_cast<std::size_t>(bytes / sizeof(std::int64_t)));
    ETSTREAM_TRY(data.read_at(0, std::as_writable_bytes(std::span(out))));
    return out;
  }

  /// That value number `value` can be argument `number` of what is called.
  Result<void> check_argument(const pte::View& call, std::string_view name, std::uint32_t number, char letter,
                              std::int32_t value, bool is_written) {
    Slot& held = slot(value);
    if (letter == '*' || held.is_rewritten || held.letter == kUnknown) return {};
    if (held.is_number_too && letter != 's' &&
        (takes(letter, 'I') || takes(letter, 'D') || takes(letter, 'B')))
      return {};
    const auto place = [&](std::string_view what) {
      return text("{} as argument {} of {}", what, number, name);
    };
    if (!takes(letter, held.letter)) {
      error(call, place(name_of(kind_of(letter))), name_of(held.letter));
      return {};
    }
    if (held.letter == 'A') return check_integers(value);
    if (held.letter == 'L' || held.letter == 'O') return check_memory_of_items(call, name, value);
    if (held.has_no_data && (letter == 'T' || letter == 't')) {
      error(call, place("a tensor with memory"), text("value {}, which nothing gives any", value));
    }
    if (held.is_constant && is_written) {
      error(call, place("a tensor that can be written"), text("value {}, a constant", value));
    }
    return {};
  }

  /// Those in the list that is value `value`.
  Result<void> check_integers(std::int32_t value) {
    if (std::exchange(slot(value).is_checked, true)) return {};
    ETSTREAM_ASSIGN(const auto list, held_by(value));
    ETSTREAM_ASSIGN(const auto items, list.numbers<std::int64_t>(list.items()));
    ETSTREAM_TRY(budget_.spend(list.position(), std::uint64_t{items.size()} * 8));
    for (std::uint64_t i = 0; i < items.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int64_t item, items.at(i));
      const Slot& held = slot(item);
      if (held.is_rewritten || held.is_number_too || held.letter == kUnknown || held.letter == 'I') continue;
      error(list, text("{} of integers", list.items().full_name()), name_of(held.letter));
    }
    return {};
  }

  Result<void> check_memory_of_items(const pte::View& call, std::string_view name, std::int32_t value) {
    if (std::exchange(slot(value).is_checked, true)) return {};
    ETSTREAM_ASSIGN(const auto list, held_by(value));
    ETSTREAM_ASSIGN(const auto items, list.numbers<std::int32_t>(list.items()));
    ETSTREAM_TRY(budget_.spend(list.position(), std::uint64_t{items.size()} * 4));
    for (std::uint64_t i = 0; i < items.size(); ++i) {
      ETSTREAM_ASSIGN(const std::int32_t item, items.at(i));
      if (item == -1 || !slot(item).has_no_data || slot(item).is_rewritten) continue;
      error(call, text("tensors with memory in a list for {}", name),
            text("value {}, which nothing gives any", item));
    }
    return {};
  }

  /// Of a value that holds something.
  Result<pte::Held> held_by(std::int32_t value) const {
    ETSTREAM_ASSIGN(const pte::Value at, values_->at(static_cast<std::uint64_t>(value)));
    ETSTREAM_ASSIGN(const auto held, at.held());
    return *held;
  }

  Result<void> verify_delegates() {
    ETSTREAM_ASSIGN(const std::string method, method_.name());
    arguments_.resize(delegates_->size());
    for (std::uint32_t i = 0; i < delegates_->size(); ++i) {
      ETSTREAM_ASSIGN(const pte::Delegate delegate, delegates_->at(i));
      ETSTREAM_TRY(verify_compile_specs(delegate));
      ETSTREAM_ASSIGN(const auto id, delegate.id());
      if (id && !is_utf8(*id)) error(delegate, "a delegate's id in UTF-8", quote(*id));
      if (!id) continue;
      const std::string name =
          text("{}: method {}, delegate {} ({})", program_.name(), quote(method), i, printable(*id));
      if (*id != kXnnpackBackend) {
        ETSTREAM_TRY(verify_other_delegate(delegate, *id, name));
        continue;
      }
      ETSTREAM_ASSIGN(arguments_[i], verify_xnnpack_delegate(delegate, name));
    }
    return {};
  }

  Result<void> verify_compile_specs(const pte::Delegate& delegate) {
    ETSTREAM_ASSIGN(const auto specs, delegate.compile_specs());
    for (std::uint32_t i = 0; i < specs.size(); ++i) {
      ETSTREAM_ASSIGN(const pte::View spec, specs.at(i));
      for (const BoundField* field : {&known_.compile_spec.key, &known_.compile_spec.value}) {
        ETSTREAM_ASSIGN(const bool is_there, spec.has(*field));
        if (!is_there) error(spec, field->full_name(), "none");
      }
    }
    return {};
  }

  /// What calls of it bring. `name` is what messages call its data, which several delegates may share.
  Result<const std::vector<XnnpackArgument>*> verify_xnnpack_delegate(const pte::Delegate& delegate,
                                                                      const std::string& name) {
    ETSTREAM_ASSIGN(const auto data, delegate.data());
    ETSTREAM_ASSIGN(const bool in_segment, data->is_in_segment());
    ETSTREAM_ASSIGN(const std::uint32_t index, data->index());
    const auto [found, is_new] = payloads_.try_emplace({in_segment, index});
    if (!is_new) return &found->second;
    ETSTREAM_ASSIGN(const ByteSource payload, program_.delegate_data(data->position(), in_segment, index));
    ETSTREAM_TRY(budget_.spend(data->position(), payload.size()));
    ETSTREAM_ASSIGN(found->second, verify_xnnpack(payload, name, findings_));
    return &found->second;
  }

  /// Of backends whose data says which named data they take.
  Result<void> verify_other_delegate(const pte::Delegate& delegate, const std::string& id,
                                     const std::string& name) {
    ETSTREAM_ASSIGN(const auto data, delegate.data());
    ETSTREAM_ASSIGN(const bool in_segment, data->is_in_segment());
    ETSTREAM_ASSIGN(const std::uint32_t index, data->index());
    if (!payloads_.try_emplace({in_segment, index}).second) return {};
    ETSTREAM_ASSIGN(const ByteSource payload, program_.delegate_data(data->position(), in_segment, index));
    ETSTREAM_TRY(budget_.spend(data->position(), payload.size()));
    const auto read = read_backend_payload(id, payload, name);
    if (read) return {};
    if (read.error().code != ErrorCode::kCorrupt) return read.error();
    add_error(findings_, read.error().message);
    return {};
  }

  Result<void> verify_delegate_call(const pte::Call& call) {
    ETSTREAM_ASSIGN(const auto index, call.scalar<std::int32_t>(known_.delegate_call.delegate_index));
    ETSTREAM_ASSIGN(const auto args, arguments_of(call));
    const auto* wanted = arguments_[static_cast<std::size_t>(index)];
    if (!wanted) return {};
    ETSTREAM_TRY(budget_.spend(call.position(), wanted->size()));
    for (const XnnpackArgument& each : *wanted) {
      if (each.number >= args.size()) {
        error(call, text("more than {} arguments of {}", each.number, kXnnpackBackend),
              text("{}", args.size()));
        continue;
      }
      ETSTREAM_ASSIGN(const std::int32_t value, args.at(each.number));
      ETSTREAM_TRY(check_argument(call, kXnnpackBackend, each.number, 'T', value, false));
      const Slot& held = slot(value);
      if (held.letter != 'T' || held.is_rewritten || held.width >= each.width) continue;
      error(call, text("elements of {} bytes in argument {} of {}", each.width, each.number, kXnnpackBackend),
            text("{}", held.width));
    }
    return {};
  }

  const pte::Program& program_;
  const pte::ProgramFields& known_;
  const pte::Method& method_;
  Findings& findings_;
  WalkBudget budget_;
  std::optional<pte::List<pte::Value>> values_;
  std::optional<pte::List<pte::Operator>> operators_;
  std::optional<pte::List<pte::Delegate>> delegates_;
  std::vector<Slot> slots_;      // of the values
  std::vector<Callee> callees_;  // of the operators
  /// By where the delegates have their data: whether in a segment, and which.
  std::map<std::pair<bool, std::uint32_t>, std::vector<XnnpackArgument>> payloads_;
  std::vector<const std::vector<XnnpackArgument>*>
      arguments_;  // of the delegates; none where it is not known
};

}  // namespace

Result<void> verify_calls(const pte::Program& program, const pte::Method& method, Findings& findings) {
  return CallVerifier(program, method, findings).run();
}

}  // namespace etstream
