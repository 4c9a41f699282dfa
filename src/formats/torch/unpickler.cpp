// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/unpickler.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/torch/pickle.h"
#include "formats/torch/pickle_values.h"

namespace etstream {
namespace {

using ValueKind = PickleValue::Kind;
using Items = PickleItems;

/// The machine that runs pickles: a stack, marks on it, and a memo of values by number.
class Unpickler {
 public:
  explicit Unpickler(PickleReader reader) : in_(std::move(reader)) {}
  Unpickler(const Unpickler&) = delete;
  Unpickler& operator=(const Unpickler&) = delete;

  Result<Unpickled> run() {
    while (!root_) {
      const auto done = run_one();
      if (!done) return unknown_ ? *unknown_ : done.error();
    }
    if (unknown_) return *std::move(unknown_);
    Unpickled out = std::move(values_).release();
    out.bytes = std::move(in_).release();
    out.root = *root_;
    return out;
  }

 private:
  Result<void> run_one() {
    ETSTREAM_ASSIGN(const auto opcode, in_.begin_instruction<PickleOpcode>());
    ETSTREAM_TRY(step(opcode));
    constexpr std::size_t kMostOnStack = std::size_t{1} << 20;
    if (stack_.size() + marks_.size() > kMostOnStack)
      return in_.corrupt("at most {} on the stack, found more", counted(kMostOnStack, "item"));
    if (!unknown_ && !stack_.empty()) {
      unknown_ = values_.refusal_of(stack_.back());
      lowest_ = stack_.size();
    }
    lowest_ = std::min(lowest_, stack_.size());
    return {};
  }

  // The stack.

  void push(PickleValue value) { stack_.push_back(value); }
  Result<void> push(const Result<PickleValue>& value) {
    if (!value) return value.error();
    push(*value);
    return {};
  }
  Result<void> push_other(const Result<std::string_view>& passed) {
    if (!passed) return passed.error();
    push({});
    return {};
  }
  Result<void> push_text(const Result<std::string_view>& text) {
    if (!text) return text.error();
    push(values_.text(*text));
    return {};
  }
  template <class Integer>
  Result<void> push_integer(const Result<Integer>& number) {
    if (!number) return number.error();
    push({ValueKind::kInteger, static_cast<std::int64_t>(*number)});
    return {};
  }
  Result<void> push_container(ValueKind kind, Items items) {
    return push(values_.container(kind, std::move(items)));
  }

  /// Returns the number of items above the last mark, or of all.
  [[nodiscard]] std::size_t items_there() const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back());
  }
  Result<PickleValue> pop() {
    if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
    const PickleValue out = stack_.back();
    stack_.pop_back();
    return out;
  }
  Result<Items> pop_items(std::size_t count) {
    if (items_there() < count) return in_.corrupt("{} on the stack, found {}", count, items_there());
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    Items out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return out;
  }
  Result<Items> pop_to_mark() {
    if (marks_.empty()) return in_.corrupt("a mark on the stack, found none");
    ETSTREAM_ASSIGN(Items out, pop_items(items_there()));
    marks_.pop_back();
    return out;
  }

  Result<void> add_to(ValueKind kind, const Items& items) {
    if (items_there() == 0 || stack_.back().kind != kind) {
      // This may be a bytearray or a similar object, which is not kept.
      if (items_there() != 0 && stack_.back().kind == ValueKind::kOther) return {};
      return in_.corrupt("a {} on the stack", kind == ValueKind::kDict ? "dict" : "list");
    }
    if (kind == ValueKind::kDict && items.size() % 2 != 0)
      return in_.corrupt("keys and values, found an odd number");
    return values_.extend(stack_.back(), items);
  }
  Result<void> add_to(ValueKind kind, Result<Items> items) {
    return items ? add_to(kind, *items) : Result<void>(items.error());
  }

  // The memo.

  Result<void> keep(std::uint64_t number) {
    if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
    if (number < memo_.size()) {
      memo_[static_cast<std::size_t>(number)] = stack_.back();
    } else if (number == memo_.size()) {
      memo_.push_back(stack_.back());
      others_.erase(number);
    } else {
      constexpr std::size_t kEntry = 4;
      ETSTREAM_TRY(values_.count(kEntry));
      others_[number] = stack_.back();
    }
    return {};
  }
  template <class Integer>
  Result<void> keep(const Result<Integer>& number) {
    return number ? keep(static_cast<std::uint64_t>(*number)) : Result<void>(number.error());
  }
  template <class Integer>
  Result<void> recall(const Result<Integer>& number) {
    if (!number) return number.error();
    const auto at = static_cast<std::uint64_t>(*number);
    const auto other = others_.find(at);
    if (at >= memo_.size() && other == others_.end())
      return in_.corrupt("the number of a value that was kept, found {}", *number);
    push(at < memo_.size() ? memo_[static_cast<std::size_t>(at)] : other->second);
    return {};
  }

  Result<void> step(PickleOpcode opcode);
  Result<void> step_number(PickleOpcode opcode);
  Result<void> step_text(PickleOpcode opcode);
  Result<void> push_quoted();
  Result<void> push_unicode();
  Result<void> push_long(const Result<std::string_view>& bytes);
  Result<void> push_stack_global();
  Result<void> make_container(ValueKind kind);
  Result<void> call();

  PickleReader in_;
  PickleValues values_{in_};
  std::optional<PickleValue> root_;  // once there is one, the pickle ends
  Items stack_;
  std::vector<std::size_t> marks_;  // how much of the stack is below each
  std::optional<Error> unknown_;    // about the first unknown class or function that is in no opaque tensor
  std::size_t lowest_ = 0;          // the least height of the stack since that was on top of it
  std::deque<PickleValue> memo_;    // by numbers from 0 on, as picklers give them
  std::map<std::uint64_t, PickleValue> others_;  // by other numbers
};

Result<void> Unpickler::step(PickleOpcode opcode) {
  using enum PickleOpcode;
  switch (opcode) {
    case kProtocol: {
      constexpr std::uint8_t kNewest = 5;
      ETSTREAM_ASSIGN(const auto protocol, in_.take<std::uint8_t>());
      if (protocol > kNewest) return in_.unsupported("is of protocol {}, expected at most 5", protocol);
      return {};
    }
    case kFrame:
      return in_.take<std::uint64_t>().and_then([](std::uint64_t) { return Result<void>(); });
    case kStop: {
      ETSTREAM_ASSIGN(root_, pop());
      return {};
    }
    case kMark:
      marks_.push_back(stack_.size());
      return {};
    case kPop:
      if (items_there() == 0 && !marks_.empty()) {
        marks_.pop_back();
        return {};
      }
      return pop().and_then([](PickleValue) { return Result<void>(); });
    case kPopMark:
      return pop_to_mark().and_then([](const Items&) { return Result<void>(); });
    case kDup:
      if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
      push(stack_.back());
      return {};
    case kEmptyTuple:
      return push_container(ValueKind::kTuple, {});
    case kEmptyList:
    case kEmptySet:
      return push_container(ValueKind::kList, {});
    case kEmptyDict:
      return push_container(ValueKind::kDict, {});
    case kTuple:
      return make_container(ValueKind::kTuple);
    case kList:
    case kFrozenSet:
      return make_container(ValueKind::kList);
    case kDict:
      return make_container(ValueKind::kDict);
    case kTuple1:
    case kTuple2:
    case kTuple3: {
      const auto count = static_cast<std::size_t>(opcode) - static_cast<std::size_t>(kTuple1) + 1;
      ETSTREAM_ASSIGN(Items items, pop_items(count));
      return push_container(ValueKind::kTuple, std::move(items));
    }
    case kAppend:
      return add_to(ValueKind::kList, pop_items(1));
    case kAppends:
    case kAddItems:
      return add_to(ValueKind::kList, pop_to_mark());
    case kSetItem:
      return add_to(ValueKind::kDict, pop_items(2));
    case kSetItems:
      return add_to(ValueKind::kDict, pop_to_mark());
    case kPut:
      return keep(in_.take_decimal());
    case kBinPut:
      return keep(in_.take<std::uint8_t>());
    case kLongBinPut:
      return keep(in_.take<std::uint32_t>());
    case kMemoize:
      return keep(std::uint64_t{memo_.size() + others_.size()});
    case kGet:
      return recall(in_.take_decimal());
    case kBinGet:
      return recall(in_.take<std::uint8_t>());
    case kLongBinGet:
      return recall(in_.take<std::uint32_t>());
    case kGlobal: {
      ETSTREAM_ASSIGN(const std::string_view module, in_.take_line());
      ETSTREAM_ASSIGN(const std::string_view name, in_.take_line());
      push(values_.global(module, name));
      return {};
    }
    case kStackGlobal:
      return push_stack_global();
    case kBinPersistentId:
      return pop().and_then([&](const PickleValue& id) { return push(values_.storage(id)); });
    case kReduce:
    case kNewObject:
      return call();
    case kBuild:
      ETSTREAM_TRY(pop());
      if (items_there() == 0) return in_.corrupt("an item on the stack, found none");
      return values_.check_build(stack_.back());
    case kNone:
      push({});
      return {};
    case kNewTrue:
    case kNewFalse:
      push({ValueKind::kBool, opcode == kNewTrue ? 1 : 0});
      return {};
    default:
      return step_number(opcode);
  }
}

Result<void> Unpickler::step_number(PickleOpcode opcode) {
  using enum PickleOpcode;
  constexpr std::uint64_t kDouble = 8;
  switch (opcode) {
    case kBinInt1:
      return push_integer(in_.take<std::uint8_t>());
    case kBinInt2:
      return push_integer(in_.take<std::uint16_t>());
    case kBinInt:
      return push_integer(in_.take<std::int32_t>());
    case kInt:
    case kLong:
      return push_integer(in_.take_decimal());
    case kLong1:
      return push_long(in_.take_sized<std::uint8_t>());
    case kLong4:
      return push_long(in_.take_sized<std::uint32_t>());
    case kBinFloat:
      return push_other(in_.take_bytes(kDouble));
    case kFloat:
      return push_other(in_.take_line());
    default:
      return step_text(opcode);
  }
}

Result<void> Unpickler::step_text(PickleOpcode opcode) {
  using enum PickleOpcode;
  switch (opcode) {
    case kShortBinUnicode:
    case kShortBinString:
      return push_text(in_.take_sized<std::uint8_t>());
    case kBinUnicode:
    case kBinString:
      return push_text(in_.take_sized<std::uint32_t>());
    case kBinUnicode8:
      return push_text(in_.take_sized<std::uint64_t>());
    case kShortBinBytes:
      return push_other(in_.take_sized<std::uint8_t>());
    case kBinBytes:
      return push_other(in_.take_sized<std::uint32_t>());
    case kBinBytes8:
    case kByteArray8:
      return push_other(in_.take_sized<std::uint64_t>());
    case kUnicode:
      return push_unicode();
    case kString:
      return push_quoted();
    case kInstance:
    case kObject:
    case kNewObjectWithKeywords:
    case kPersistentId:
    case kExtension1:
    case kExtension2:
    case kExtension4:
    case kNextBuffer:
    case kReadOnlyBuffer:
      return with_advice(
          in_.unsupported("has instruction {:#x}, which makes other objects than tensors and containers",
                          static_cast<unsigned>(opcode)),
          {"etstream never executes a pickle: save a dict of tensors, such as a state_dict(), with "
           "torch.save"});
    default:
      return in_.corrupt("an instruction of a pickle, found byte {:#x}", static_cast<unsigned>(opcode));
  }
}

/// Pushes a line's text. Refuses a text with escapes.
Result<void> Unpickler::push_unicode() {
  ETSTREAM_ASSIGN(const std::string_view line, in_.take_line());
  if (line.find('\\') != std::string_view::npos)
    return in_.unsupported("has a text with escapes, {}", quote(line));
  return push_text(line);
}

Result<void> Unpickler::push_quoted() {
  ETSTREAM_ASSIGN(const std::string_view line, in_.take_line());
  const bool is_quoted = line.size() >= 2 && (line.front() == '\'' || line.front() == '"') &&
                         line.back() == line.front() && line.find('\\') == std::string_view::npos;
  if (!is_quoted) return in_.unsupported("has a text with escapes, {}", quote(line));
  return push_text(line.substr(1, line.size() - 2));
}

/// Pushes a signed number that is stored in as few bytes as possible. A larger number belongs to no tensor.
Result<void> Unpickler::push_long(const Result<std::string_view>& bytes) {
  if (!bytes) return bytes.error();
  if (bytes->size() > sizeof(std::int64_t)) return push_other(bytes);
  const bool is_negative = !bytes->empty() && static_cast<signed char>(bytes->back()) < 0;
  std::int64_t number = is_negative ? -1 : 0;
  std::memcpy(&number, bytes->data(), bytes->size());
  push({ValueKind::kInteger, number});
  return {};
}

Result<void> Unpickler::push_stack_global() {
  ETSTREAM_ASSIGN(const Items names, pop_items(2));
  if (names[0].kind != ValueKind::kText || names[1].kind != ValueKind::kText) {
    return in_.corrupt("the names of a module and a class on the stack");
  }
  push(values_.global(values_.text_of(names[0]), values_.text_of(names[1])));
  return {};
}

Result<void> Unpickler::make_container(ValueKind kind) {
  ETSTREAM_ASSIGN(Items items, pop_to_mark());
  if (kind == ValueKind::kDict && items.size() % 2 != 0)
    return in_.corrupt("keys and values, found an odd number");
  return push_container(kind, std::move(items));
}

/// Pushes the result of calling a function, or of making an object of a class. An opaque tensor may ask for
/// unknown ones.
Result<void> Unpickler::call() {
  ETSTREAM_ASSIGN(const Items parts, pop_items(2));
  ETSTREAM_ASSIGN(const PickleValue result, values_.call(parts[0], parts[1]));
  if (result.kind == ValueKind::kOpaque && lowest_ > stack_.size()) unknown_.reset();
  push(result);
  return {};
}

}  // namespace

Result<Unpickled> unpickle(const ByteSource& pickle, std::uint64_t offset) {
  return without_exceptions([&]() -> Result<Unpickled> {
    if (pickle.size() > kLargestPickle) {
      return error_at(ErrorCode::kTooLarge, {pickle.name(), offset},
                      "expected a pickle of at most {}, found {}", counted(kLargestPickle, "byte"),
                      pickle.size());
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(pickle.size()));
    ETSTREAM_TRY(pickle.read_at(0, bytes));
    return Unpickler({pickle.name(), offset, std::move(bytes)}).run();
  });
}

}  // namespace etstream
