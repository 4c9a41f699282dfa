// SPDX-License-Identifier: BSD-3-Clause
#include "weights/torch/unpickler.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "weights/torch/pickle_globals.h"
#include "weights/torch/pickle_opcodes.h"

namespace etstream {
namespace {

using ValueKind = PickleValue::Kind;
using Items = std::vector<PickleValue>;

/// The machine that pickles are programs for: a stack, marks on it, and a memo of values by number.
class Unpickler {
 public:
  Unpickler(std::string file, std::uint64_t offset, std::vector<std::byte> bytes)
      : file_(std::move(file)), offset_(offset) {
    out_.bytes = std::move(bytes);
  }

  Result<Unpickled> run() {
    while (!is_done_) {
      at_ = next_;
      ETSTREAM_ASSIGN(const auto opcode, take<std::uint8_t>());
      ETSTREAM_TRY(step(static_cast<PickleOpcode>(opcode)));
    }
    return std::move(out_);
  }

 private:
  template <class... Arguments>
  Error corrupt(Template<Arguments...> words, const Arguments&... arguments) const {
    return unexpected(ErrorCode::kCorrupt, {file_, offset_ + at_, "pickle"}, words, arguments...);
  }
  template <class... Arguments>
  Error unsupported(Template<Arguments...> words, const Arguments&... arguments) const {
    return error_at(ErrorCode::kUnsupported, {file_, offset_ + at_, "pickle"}, words, arguments...);
  }

  // The arguments of an instruction.

  Result<std::string_view> take_bytes(std::uint64_t size) {
    if (size > out_.bytes.size() - next_) {
      return corrupt("{} before its end at {}, found {}", counted(size, "byte"), offset_ + out_.bytes.size(),
                     out_.bytes.size() - next_);
    }
    const char* const begin = reinterpret_cast<const char*>(out_.bytes.data()) + next_;
    next_ += static_cast<std::size_t>(size);
    return std::string_view(begin, static_cast<std::size_t>(size));
  }

  template <class Integer>
  Result<Integer> take() {
    ETSTREAM_ASSIGN(const std::string_view bytes, take_bytes(sizeof(Integer)));
    Integer out{};
    std::memcpy(&out, bytes.data(), sizeof(out));
    return out;
  }

  template <class Size>
  Result<std::string_view> take_sized() {
    ETSTREAM_ASSIGN(const Size size, take<Size>());
    return take_bytes(size);
  }

  /// Without the end of the line.
  Result<std::string_view> take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(out_.bytes.data()) + next_,
                                out_.bytes.size() - next_);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return corrupt("the end of a line, found that of the pickle");
    next_ += end + 1;
    return rest.substr(0, end);
  }

  Result<std::int64_t> take_decimal() {
    ETSTREAM_ASSIGN(std::string_view line, take_line());
    if (line.ends_with('L')) line.remove_suffix(1);
    std::int64_t out = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), out);
    if (failed != std::errc() || end != line.data() + line.size()) {
      return corrupt("an integer of 64 bits, found {}", quote(line));
    }
    return out;
  }

  // The stack.

  void push(PickleValue value) { stack_.push_back(value); }
  Result<void> push_other(const Result<std::string_view>& passed) {
    if (!passed) return passed.error();
    push({});
    return {};
  }
  Result<void> push_text(const Result<std::string_view>& text) {
    if (!text) return text.error();
    push({ValueKind::kText, static_cast<std::int64_t>(out_.texts.size())});
    out_.texts.push_back(*text);
    return {};
  }
  template <class Integer>
  Result<void> push_integer(const Result<Integer>& number) {
    if (!number) return number.error();
    push({ValueKind::kInteger, static_cast<std::int64_t>(*number)});
    return {};
  }
  Result<void> push_container(ValueKind kind, Items items) {
    push({kind, static_cast<std::int64_t>(out_.containers.size())});
    out_.containers.push_back(std::move(items));
    return {};
  }

  /// The items above the last mark, or all.
  [[nodiscard]] std::size_t items_there() const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back());
  }
  Result<PickleValue> pop() {
    if (items_there() == 0) return corrupt("an item on the stack, found none");
    const PickleValue out = stack_.back();
    stack_.pop_back();
    return out;
  }
  Result<Items> pop_items(std::size_t count) {
    if (items_there() < count) return corrupt("{} on the stack, found {}", count, items_there());
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    Items out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return out;
  }
  Result<Items> pop_to_mark() {
    if (marks_.empty()) return corrupt("a mark on the stack, found none");
    ETSTREAM_ASSIGN(Items out, pop_items(items_there()));
    marks_.pop_back();
    return out;
  }

  /// Refuses a pickle that has more items copied than it has bytes: the same ones over and over.
  Result<void> count_copies(std::size_t items) {
    copies_ += items;
    if (copies_ <= out_.bytes.size()) return {};
    return corrupt("at most as many items as bytes, {}, found the same ones over and over",
                   out_.bytes.size());
  }

  Items& items_of(const PickleValue& value) {
    return out_.containers[static_cast<std::size_t>(value.number)];
  }
  /// A copy, as containers may move; of no more than any function takes, as a tuple may come again and again.
  Items arguments_in(const PickleValue& tuple) {
    constexpr std::size_t kMost = 8;
    const Items& items = items_of(tuple);
    return {items.begin(), items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kMost))};
  }
  [[nodiscard]] std::string_view text_of(const PickleValue& value) const {
    return out_.texts[static_cast<std::size_t>(value.number)];
  }

  Result<void> add_to(ValueKind kind, const Items& items) {
    if (items_there() == 0 || stack_.back().kind != kind) {
      // A bytearray or the like, of which nothing is kept.
      if (items_there() != 0 && stack_.back().kind == ValueKind::kOther) return {};
      return corrupt("a {} on the stack", kind == ValueKind::kDict ? "dict" : "list");
    }
    if (kind == ValueKind::kDict && items.size() % 2 != 0)
      return corrupt("keys and values, found an odd number");
    Items& out = items_of(stack_.back());
    out.insert(out.end(), items.begin(), items.end());
    return {};
  }
  Result<void> add_to(ValueKind kind, Result<Items> items) {
    return items ? add_to(kind, *items) : Result<void>(items.error());
  }

  // The memo.

  Result<void> keep(std::uint64_t number) {
    if (items_there() == 0) return corrupt("an item on the stack, found none");
    memo_[number] = stack_.back();
    return {};
  }
  template <class Integer>
  Result<void> keep(const Result<Integer>& number) {
    return number ? keep(static_cast<std::uint64_t>(*number)) : Result<void>(number.error());
  }
  template <class Integer>
  Result<void> recall(const Result<Integer>& number) {
    if (!number) return number.error();
    const auto found = memo_.find(static_cast<std::uint64_t>(*number));
    if (found == memo_.end()) return corrupt("the number of a value that was kept, found {}", *number);
    push(found->second);
    return {};
  }

  Result<void> step(PickleOpcode opcode);
  Result<void> step_number(PickleOpcode opcode);
  Result<void> step_text(PickleOpcode opcode);
  Result<void> push_quoted();
  Result<void> push_unicode();
  Result<void> push_long(const Result<std::string_view>& bytes);
  Result<void> push_global(std::string_view module, std::string_view name);
  Result<void> push_stack_global();
  Result<void> push_storage();
  Result<void> make_container(ValueKind kind);
  Result<void> call();
  Result<PickleValue> result_of(const PickleGlobal& global, const Items& arguments);
  Result<PickleValue> dict_of(const Items& arguments);
  Result<PickleValue> sequence_of(const Items& arguments);
  Result<PickleValue> tensor_of(const PickleGlobal& global, const Items& arguments);
  Result<PickleValue> tensor_of_type(const Items& arguments);
  Result<std::vector<std::uint64_t>> numbers_of(const PickleValue& value);
  [[nodiscard]] const PickleGlobal* global_of(const PickleValue& value) const {
    return value.kind == ValueKind::kGlobal ? &globals_[static_cast<std::size_t>(value.number)] : nullptr;
  }

  const std::string file_;
  const std::uint64_t offset_;  // of the pickle in the file
  Unpickled out_;
  std::size_t next_ = 0;  // what is read next
  std::size_t at_ = 0;    // where the instruction is
  bool is_done_ = false;
  Items stack_;
  std::vector<std::size_t> marks_;  // how much of the stack is below each
  std::unordered_map<std::uint64_t, PickleValue> memo_;
  std::vector<PickleGlobal> globals_;
  std::size_t copies_ = 0;
};

Result<void> Unpickler::step(PickleOpcode opcode) {
  using enum PickleOpcode;
  switch (opcode) {
    case kProtocol: {
      constexpr std::uint8_t kNewest = 5;
      ETSTREAM_ASSIGN(const auto protocol, take<std::uint8_t>());
      if (protocol > kNewest) return unsupported("is of protocol {}, expected at most 5", protocol);
      return {};
    }
    case kFrame:
      return take<std::uint64_t>().and_then([](std::uint64_t) { return Result<void>(); });
    case kStop: {
      ETSTREAM_ASSIGN(out_.root, pop());
      is_done_ = true;
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
      if (items_there() == 0) return corrupt("an item on the stack, found none");
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
      return keep(take_decimal());
    case kBinPut:
      return keep(take<std::uint8_t>());
    case kLongBinPut:
      return keep(take<std::uint32_t>());
    case kMemoize:
      return keep(std::uint64_t{memo_.size()});
    case kGet:
      return recall(take_decimal());
    case kBinGet:
      return recall(take<std::uint8_t>());
    case kLongBinGet:
      return recall(take<std::uint32_t>());
    case kGlobal: {
      ETSTREAM_ASSIGN(const std::string_view module, take_line());
      ETSTREAM_ASSIGN(const std::string_view name, take_line());
      return push_global(module, name);
    }
    case kStackGlobal:
      return push_stack_global();
    case kBinPersistentId:
      return push_storage();
    case kReduce:
    case kNewObject:
      return call();
    case kBuild:
      // The attributes of a dict or a tensor say nothing of its content.
      return pop().and_then([](PickleValue) { return Result<void>(); });
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
      return push_integer(take<std::uint8_t>());
    case kBinInt2:
      return push_integer(take<std::uint16_t>());
    case kBinInt:
      return push_integer(take<std::int32_t>());
    case kInt:
    case kLong:
      return push_integer(take_decimal());
    case kLong1:
      return push_long(take_sized<std::uint8_t>());
    case kLong4:
      return push_long(take_sized<std::uint32_t>());
    case kBinFloat:
      return push_other(take_bytes(kDouble));
    case kFloat:
      return push_other(take_line());
    default:
      return step_text(opcode);
  }
}

Result<void> Unpickler::step_text(PickleOpcode opcode) {
  using enum PickleOpcode;
  switch (opcode) {
    case kShortBinUnicode:
    case kShortBinString:
      return push_text(take_sized<std::uint8_t>());
    case kBinUnicode:
    case kBinString:
      return push_text(take_sized<std::uint32_t>());
    case kBinUnicode8:
      return push_text(take_sized<std::uint64_t>());
    case kShortBinBytes:
      return push_other(take_sized<std::uint8_t>());
    case kBinBytes:
      return push_other(take_sized<std::uint32_t>());
    case kBinBytes8:
    case kByteArray8:
      return push_other(take_sized<std::uint64_t>());
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
      return unsupported(
          "has instruction {:#x}, which makes other objects than tensors and containers; etstream never "
          "executes a pickle: save a dict of tensors, such as a state_dict(), with torch.save",
          static_cast<unsigned>(opcode));
    default:
      return corrupt("an instruction of a pickle, found byte {:#x}", static_cast<unsigned>(opcode));
  }
}

/// Pushes a line's text; one with escapes is no name of a tensor that is read.
Result<void> Unpickler::push_unicode() {
  ETSTREAM_ASSIGN(const std::string_view line, take_line());
  if (line.find('\\') != std::string_view::npos)
    return unsupported("has a text with escapes, {}", quote(line));
  return push_text(line);
}

Result<void> Unpickler::push_quoted() {
  ETSTREAM_ASSIGN(const std::string_view line, take_line());
  const bool is_quoted = line.size() >= 2 && (line.front() == '\'' || line.front() == '"') &&
                         line.back() == line.front() && line.find('\\') == std::string_view::npos;
  if (!is_quoted) return unsupported("has a text with escapes, {}", quote(line));
  return push_text(line.substr(1, line.size() - 2));
}

/// Pushes a number in as few bytes as it takes, with its sign; a larger one is none of a tensor's.
Result<void> Unpickler::push_long(const Result<std::string_view>& bytes) {
  if (!bytes) return bytes.error();
  if (bytes->size() > sizeof(std::int64_t)) return push_other(bytes);
  const bool is_negative = !bytes->empty() && static_cast<signed char>(bytes->back()) < 0;
  std::int64_t number = is_negative ? -1 : 0;
  std::memcpy(&number, bytes->data(), bytes->size());
  push({ValueKind::kInteger, number});
  return {};
}

Result<void> Unpickler::push_global(std::string_view module, std::string_view name) {
  const auto found = find_pickle_global(module, name);
  if (!found) {
    const bool is_module = module.starts_with("torch.nn.modules") || module.starts_with("__torch__");
    return unsupported(
        "asks for {}, and etstream knows tensors and containers only; it never executes a pickle: {}, and "
        "save "
        "that with torch.save",
        quote(std::string(module) + "." + std::string(name)),
        is_module ? "take the module's state_dict()" : "keep the tensors in a dict by name");
  }
  push({ValueKind::kGlobal, static_cast<std::int64_t>(globals_.size())});
  globals_.push_back(*found);
  return {};
}

Result<void> Unpickler::push_stack_global() {
  ETSTREAM_ASSIGN(const Items names, pop_items(2));
  if (names[0].kind != ValueKind::kText || names[1].kind != ValueKind::kText) {
    return corrupt("the names of a module and a class on the stack");
  }
  return push_global(text_of(names[0]), text_of(names[1]));
}

Result<void> Unpickler::push_storage() {
  ETSTREAM_ASSIGN(const PickleValue id, pop());
  const auto wrong = [&] {
    return corrupt("the id of a storage: 'storage', class, key, location, elements");
  };
  constexpr std::size_t kLeast = 5;
  if (id.kind != ValueKind::kTuple || items_of(id).size() < kLeast) return wrong();
  const Items& parts = items_of(id);
  const PickleGlobal* const type = global_of(parts[1]);
  if (parts[0].kind != ValueKind::kText || text_of(parts[0]) != "storage" || type == nullptr ||
      type->kind != PickleGlobal::Kind::kStorage || parts[2].kind != ValueKind::kText ||
      parts[4].kind != ValueKind::kInteger || parts[4].number < 0) {
    return wrong();
  }
  push({ValueKind::kStorage, static_cast<std::int64_t>(out_.storages.size())});
  out_.storages.push_back({text_of(parts[2]), type->type, static_cast<std::uint64_t>(parts[4].number)});
  return {};
}

Result<void> Unpickler::make_container(ValueKind kind) {
  ETSTREAM_ASSIGN(Items items, pop_to_mark());
  if (kind == ValueKind::kDict && items.size() % 2 != 0)
    return corrupt("keys and values, found an odd number");
  return push_container(kind, std::move(items));
}

/// Does what calling a function, or making an object of a class, would give.
Result<void> Unpickler::call() {
  ETSTREAM_ASSIGN(const Items parts, pop_items(2));
  const PickleGlobal* const found = global_of(parts[0]);
  if (found == nullptr || parts[1].kind != ValueKind::kTuple) {
    return corrupt("a class or function and its arguments on the stack");
  }
  const PickleGlobal global = *found;
  const Items arguments = arguments_in(parts[1]);
  ETSTREAM_ASSIGN(const PickleValue result, result_of(global, arguments));
  push(result);
  return {};
}

Result<PickleValue> Unpickler::result_of(const PickleGlobal& global, const Items& arguments) {
  switch (global.kind) {
    case PickleGlobal::Kind::kDict:
      return dict_of(arguments);
    case PickleGlobal::Kind::kDefaultDict:
      return dict_of({arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()});
    case PickleGlobal::Kind::kSequence:
      return sequence_of(arguments);
    case PickleGlobal::Kind::kOther:
      return PickleValue();
    case PickleGlobal::Kind::kRebuildTensor:
    case PickleGlobal::Kind::kRebuildTensorV3:
      return tensor_of(global, arguments);
    case PickleGlobal::Kind::kRebuildParameter:
    case PickleGlobal::Kind::kTensorClass:
      if (arguments.empty() || arguments.front().kind != ValueKind::kTensor)
        return corrupt("a tensor as argument");
      return arguments.front();
    case PickleGlobal::Kind::kRebuildFromType:
      return tensor_of_type(arguments);
    case PickleGlobal::Kind::kDtype:
    case PickleGlobal::Kind::kStorage:
      break;
  }
  return corrupt("a function or class that may be called");
}

/// OrderedDict(), or OrderedDict([[key, value], ...]), or OrderedDict({key: value, ...}).
Result<PickleValue> Unpickler::dict_of(const Items& arguments) {
  Items items;
  if (!arguments.empty()) {
    const PickleValue given = arguments.front();
    const bool is_dict = given.kind == ValueKind::kDict;
    if (!is_dict && given.kind != ValueKind::kList && given.kind != ValueKind::kTuple) {
      return corrupt("items of a dict as argument");
    }
    ETSTREAM_TRY(count_copies(2 * items_of(given).size()));
    for (const PickleValue& item : items_of(given)) {
      if (is_dict) {
        items.push_back(item);
        continue;
      }
      if ((item.kind != ValueKind::kList && item.kind != ValueKind::kTuple) || items_of(item).size() != 2) {
        return corrupt("a key and a value as an item of a dict");
      }
      items.insert(items.end(), items_of(item).begin(), items_of(item).end());
    }
  }
  ETSTREAM_TRY(push_container(ValueKind::kDict, std::move(items)));
  return pop();
}

Result<PickleValue> Unpickler::sequence_of(const Items& arguments) {
  if (arguments.empty()) {
    ETSTREAM_TRY(push_container(ValueKind::kList, {}));
    return pop();
  }
  const PickleValue given = arguments.front();
  const bool is_sequence = given.kind == ValueKind::kList || given.kind == ValueKind::kTuple;
  return is_sequence ? given : PickleValue();
}

Result<std::vector<std::uint64_t>> Unpickler::numbers_of(const PickleValue& value) {
  constexpr std::size_t kMost = 64;  // dimensions, as torch has it
  if ((value.kind != ValueKind::kTuple && value.kind != ValueKind::kList) || items_of(value).size() > kMost) {
    return corrupt("a tuple of at most {} sizes or strides of a tensor", kMost);
  }
  ETSTREAM_TRY(count_copies(items_of(value).size()));
  std::vector<std::uint64_t> out;
  for (const PickleValue& item : items_of(value)) {
    if (item.kind != ValueKind::kInteger || item.number < 0)
      return corrupt("sizes and strides that are not negative");
    out.push_back(static_cast<std::uint64_t>(item.number));
  }
  return out;
}

/// (storage, offset, sizes, strides, requires_grad, hooks, [dtype,] metadata)
Result<PickleValue> Unpickler::tensor_of(const PickleGlobal& global, const Items& arguments) {
  constexpr std::size_t kLeast = 4;
  constexpr std::size_t kDtype = 6;
  const bool has_dtype = global.kind == PickleGlobal::Kind::kRebuildTensorV3;
  if (arguments.size() < (has_dtype ? kDtype + 1 : kLeast) || arguments[0].kind != ValueKind::kStorage ||
      arguments[1].kind != ValueKind::kInteger || arguments[1].number < 0) {
    return corrupt("the storage, offset, sizes and strides of a tensor");
  }
  UnpickledTensor tensor;
  tensor.storage = static_cast<std::size_t>(arguments[0].number);
  tensor.type = out_.storages[tensor.storage].type;
  tensor.offset = static_cast<std::uint64_t>(arguments[1].number);
  ETSTREAM_ASSIGN(tensor.sizes, numbers_of(arguments[2]));
  ETSTREAM_ASSIGN(tensor.strides, numbers_of(arguments[3]));
  if (has_dtype) {
    const PickleGlobal* const dtype = global_of(arguments[kDtype]);
    tensor.type = dtype && dtype->kind == PickleGlobal::Kind::kDtype ? dtype->type : nullptr;
  }
  if (tensor.type == nullptr) return corrupt("the type of a tensor's elements");
  const std::size_t metadata = kDtype + (has_dtype ? 1 : 0);
  if (arguments.size() > metadata && arguments[metadata].kind == ValueKind::kDict &&
      !items_of(arguments[metadata]).empty()) {
    return unsupported(
        "has a tensor that is the conjugate or the negative of what is stored; save its resolve_conj() or "
        "resolve_neg()");
  }
  const PickleValue out{ValueKind::kTensor, static_cast<std::int64_t>(out_.tensors.size())};
  out_.tensors.push_back(std::move(tensor));
  return out;
}

/// (function, class, its arguments, state): a tensor with attributes.
Result<PickleValue> Unpickler::tensor_of_type(const Items& arguments) {
  const PickleGlobal* const function = arguments.size() < 3 ? nullptr : global_of(arguments[0]);
  const PickleGlobal* const type = arguments.size() < 3 ? nullptr : global_of(arguments[1]);
  if (function == nullptr || type == nullptr || type->kind != PickleGlobal::Kind::kTensorClass ||
      function->kind == PickleGlobal::Kind::kRebuildFromType || arguments[2].kind != ValueKind::kTuple) {
    return corrupt("a function, a class and the arguments of a tensor");
  }
  const PickleGlobal global = *function;
  return result_of(global, arguments_in(arguments[2]));
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
    return Unpickler(pickle.name(), offset, std::move(bytes)).run();
  });
}

}  // namespace etstream
