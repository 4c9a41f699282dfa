// SPDX-License-Identifier: BSD-3-Clause
//
// The tables of a program as typed views, read where they lie when they are asked for, and the kinds of its
// values. See program_model.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/program.h"
#include "flatbuffer/table_reader.h"
#include "formats/segments/data_segments.h"
#include "program_fields_generated.h"

namespace etstream {

namespace pte {

/// The members of the union KernelTypes (program.fbs), a bit each.
enum class ValueKind : std::uint16_t {
  kNull = 1 << 0,
  kTensor = 1 << 1,
  kInt = 1 << 2,
  kBool = 1 << 3,
  kDouble = 1 << 4,
  kString = 1 << 5,
  kIntList = 1 << 6,
  kDoubleList = 1 << 7,
  kBoolList = 1 << 8,
  kTensorList = 1 << 9,
  kOptionalTensorList = 1 << 10,
  kUnknown = 1 << 15,  // to the library
};

}  // namespace pte

/// A set of ValueKinds: all that a value may hold, or that an operator takes. With kUnknown it may be
/// anything.
using Kinds = std::uint16_t;

[[nodiscard]] constexpr Kinds kinds(auto... each) {
  return static_cast<Kinds>((static_cast<unsigned>(each) | ...));
}

constexpr Kinds kAnything = kinds(pte::ValueKind::kUnknown);
/// The kinds that ExecuTorch reads as a number (Scalar).
constexpr Kinds kAnyNumber = kinds(pte::ValueKind::kInt, pte::ValueKind::kDouble, pte::ValueKind::kBool);

/// Names a set for messages: "a tensor or a boolean". Null is not named beside others.
[[nodiscard]] std::string name_of_kinds(Kinds set);

}  // namespace etstream

namespace etstream::pte {

template <class T>
class List;

/// A table of a program, which outlives it. Errors: those of FlatbufferView.
class View : public TableReader {
 public:
  View(const program::Fields& fields, const TableReader& table) : TableReader(table), fields_(&fields) {}

  /// Checks that 0 <= index < limit. Error: kCorrupt, "TABLE.FIELD from 0 to below LIMIT".
  [[nodiscard]] Result<void> check_index(const BoundField& field, std::int64_t index,
                                         std::uint64_t limit) const;
  /// Reads a 32-bit index. Error also: as of check_index().
  [[nodiscard]] Result<std::uint32_t> index(const BoundField& field, std::uint64_t limit) const;

  template <class T>
  [[nodiscard]] Result<List<T>> list(const BoundField& field) const {
    ETSTREAM_ASSIGN(const TableList tables, this->tables(field));
    return List<T>(*fields_, tables);
  }
  template <class T>
  [[nodiscard]] Result<std::optional<T>> optional_view(
      const Result<std::optional<TableReader>>& table) const {
    if (!table) return table.error();
    return *table ? std::optional<T>(T(*fields_, **table)) : std::nullopt;
  }

 protected:
  /// Returns an empty value if the field is absent.
  [[nodiscard]] Result<std::string> string_or_empty(const BoundField& field) const;
  [[nodiscard]] Result<ByteSource> bytes_or_empty(const BoundField& field) const;
  [[nodiscard]] Result<std::uint32_t> uint32(const BoundField& field) const {
    return scalar<std::uint32_t>(field);
  }
  [[nodiscard]] const program::Fields& fields() const noexcept { return *fields_; }

 private:
  const program::Fields* fields_;
};

/// A vector of tables.
template <class T>
class List {
 public:
  List(const program::Fields& fields, const TableList& tables) : fields_(&fields), tables_(tables) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return tables_.size(); }
  /// Returns the table at `i`, which is below size().
  [[nodiscard]] Result<T> at(std::uint64_t i) const {
    ETSTREAM_ASSIGN(const TableReader table, tables_.at(i));
    return T(*fields_, table);
  }

 private:
  const program::Fields* fields_;
  TableList tables_;
};

/// Returns the number that a table has for the place of a tensor's or a delegate's data.
[[nodiscard]] std::int8_t tensor_location(bool is_external);
[[nodiscard]] std::int8_t delegate_location(bool in_segment);

/// The place of a tensor in planned memory.
class Allocation : public View {
 public:
  using View::View;
  [[nodiscard]] Result<std::uint32_t> memory_id() const {
    return uint32(fields().allocation_details.memory_id);
  }
  [[nodiscard]] Result<std::uint64_t> memory_offset() const;
  /// Checks that `bytes` at this place are inside one of the memories of these `sizes`. Error also: kCorrupt
  /// if not.
  [[nodiscard]] Result<void> check(std::uint64_t bytes, const NumberList<std::int64_t>& sizes) const;
};

/// The kind and the place of a tensor's data. None of it is checked.
struct Storage {
  TensorStorage kind = TensorStorage::kNone;
  std::uint32_t index = 0;         // among the constants or the mutable data
  std::uint64_t mutable_data = 0;  // in the program's list of mutable data
  bool is_planned = false;
  std::string name;                             // fully qualified, or empty
  std::optional<std::uint64_t> extra_position;  // of the table that says the name
  bool has_other_info = false;                  // there, besides where the data is and under what name
};

class Tensor : public View {
 public:
  using View::View;
  [[nodiscard]] Result<TensorLayout> layout() const { return read_tensor_layout(*this, fields().tensor); }
  [[nodiscard]] Result<TensorInfo> info() const;
  [[nodiscard]] Result<std::optional<Allocation>> allocation() const;
  [[nodiscard]] Result<Storage> storage() const;
};

/// The content of a value.
class Held : public View {
 public:
  using View::View;
  [[nodiscard]] ValueKind kind() const;
  /// Describes the content of a value that may be empty.
  [[nodiscard]] static Result<ValueInfo> info_of(const std::optional<Held>& held);
  /// Returns the tensor of a kTensor.
  [[nodiscard]] Tensor tensor() const { return {fields(), *this}; }
  /// Returns the text of a kString.
  [[nodiscard]] Result<std::string> string() const { return string_or_empty(fields().string.string_val); }
  /// Returns the field of a list's items; null for other kinds.
  [[nodiscard]] const BoundField* items() const;

 private:
  Result<ValueInfo> info() const;
};

class Value : public View {
 public:
  using View::View;
  /// Returns the content; nothing for a value of no type.
  [[nodiscard]] Result<std::optional<Held>> held() const {
    return optional_view<Held>(member(fields().e_value.val));
  }
};

class Operator : public View {
 public:
  using View::View;
  [[nodiscard]] Result<std::string> name() const { return string_or_empty(fields().operator_.name); }
  [[nodiscard]] Result<std::string> overload() const { return string_or_empty(fields().operator_.overload); }
};

/// The place of a delegate's data. None of it is checked.
struct DelegatePlace {
  std::uint64_t position = 0;  // of the table that says it
  std::int8_t location = 0;
  bool in_segment = false;  // or in the flatbuffer
  std::uint32_t index = 0;  // of the segment, or of the flatbuffer's entry
};

class Delegate : public View {
 public:
  using View::View;
  [[nodiscard]] Result<bool> has_id() const { return has(fields().backend_delegate.id); }
  [[nodiscard]] Result<std::string> backend() const { return string_or_empty(fields().backend_delegate.id); }
  /// Returns the place of its data; nothing if it names none.
  [[nodiscard]] Result<std::optional<DelegatePlace>> place() const;
  [[nodiscard]] Result<List<View>> compile_specs() const {
    return list<View>(fields().backend_delegate.compile_specs);
  }
};

/// The action of an instruction.
class Call : public View {
 public:
  using View::View;
  /// Returns the kind; nothing for a kind that the library does not know.
  [[nodiscard]] std::optional<CallKind> kind() const;
  /// Returns the field of the arguments; null unless this calls a kernel or a delegate.
  [[nodiscard]] const BoundField* args() const;
  /// Returns the field of what a kernel's or a delegate's call calls.
  [[nodiscard]] const BoundField& callee() const;
};

class Instruction : public View {
 public:
  using View::View;
  [[nodiscard]] Result<std::optional<Call>> call() const {
    return optional_view<Call>(member(fields().instruction.instr_args));
  }
};

class Chain : public View {
 public:
  using View::View;
  [[nodiscard]] Result<List<Instruction>> instructions() const {
    return list<Instruction>(fields().chain.instructions);
  }
};

class Method : public View {
 public:
  using View::View;
  [[nodiscard]] Result<std::string> name() const { return string_or_empty(fields().execution_plan.name); }
  [[nodiscard]] Result<List<Value>> values() const { return list<Value>(fields().execution_plan.values); }
  [[nodiscard]] Result<List<Operator>> operators() const {
    return list<Operator>(fields().execution_plan.operators);
  }
  [[nodiscard]] Result<List<Delegate>> delegates() const {
    return list<Delegate>(fields().execution_plan.delegates);
  }
  [[nodiscard]] Result<List<Chain>> chains() const { return list<Chain>(fields().execution_plan.chains); }
  /// Returns the sizes of the planned memories, by their ids.
  [[nodiscard]] Result<NumberList<std::int64_t>> memory_sizes() const {
    return numbers<std::int64_t>(fields().execution_plan.non_const_buffer_sizes);
  }
};

/// The places of the pieces of a segment: constants, or mutable data. None of it is checked.
class Subsegments : public View {
 public:
  using View::View;
  [[nodiscard]] Result<std::uint32_t> segment() const {
    return uint32(fields().subsegment_offsets.segment_index);
  }
  [[nodiscard]] Result<NumberList<std::uint64_t>> offsets() const {
    return numbers<std::uint64_t>(fields().subsegment_offsets.offsets);
  }
  /// Returns all offsets, however many there are.
  [[nodiscard]] Result<std::vector<std::uint64_t>> all_offsets() const;
};

class NamedData : public View {
 public:
  using View::View;
  [[nodiscard]] Result<std::optional<std::string>> key() const { return string(fields().named_data.key); }
  /// Returns the key's characters, which stay in the file.
  [[nodiscard]] Result<ByteSource> key_place() const { return characters(fields().named_data.key); }
  [[nodiscard]] Result<std::uint32_t> segment() const { return uint32(fields().named_data.segment_index); }
};

/// A piece of data in the flatbuffer.
class InlineConstant : public View {
 public:
  using View::View;
  [[nodiscard]] Result<ByteSource> data() const { return bytes_or_empty(fields().buffer.storage); }
};
class InlineDelegate : public View {
 public:
  using View::View;
  [[nodiscard]] Result<ByteSource> data() const {
    return bytes_or_empty(fields().backend_delegate_inline_data.data);
  }
};

}  // namespace etstream::pte
