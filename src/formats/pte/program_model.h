// SPDX-License-Identifier: BSD-3-Clause
//
// Program: the parts of a program in terms of its schema: its tables as typed views, read where they lie when
// they are asked for. Only it and its views know the schema's fields.
//
//   ETSTREAM_TRY(for_each(program.methods(), [&](const pte::Method& method) -> Result<void> {
//     ETSTREAM_ASSIGN(const std::string name, method.name());
//     ...
//   }));
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/program.h"
#include "flatbuffer/flatbuffer_view.h"
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
  /// Reads a vector of indices, of 32 or of 64 bits, however many they are.
  [[nodiscard]] Result<std::vector<std::int64_t>> indices(const BoundField& field) const;

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
  std::uint32_t index = 0;                      // among the constants or the mutable data
  std::uint64_t mutable_data = 0;               // in the program's list of mutable data
  std::string name;                             // fully qualified, or empty
  std::optional<std::uint64_t> extra_position;  // of the table that says the name
  bool is_planned = false;
  bool has_other_info = false;  // there, besides where the data is and under what name
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

/// The numbers that the indices in a call are below.
struct CallLimits {
  std::uint64_t values = 0;
  std::uint64_t operators = 0;
  std::uint64_t delegates = 0;
  std::uint64_t instructions = 0;  // of its chain, which a jump may leave for the place behind the last
};

/// The action of an instruction.
class Call : public View {
 public:
  using View::View;
  /// Returns the kind; nothing for a kind that the library does not know.
  [[nodiscard]] std::optional<CallKind> kind() const;
  /// Returns the field of the arguments; null unless this calls a kernel or a delegate.
  [[nodiscard]] const BoundField* args() const;
  /// Reads a call of a known kind, without which of its args it reads and writes. The destination of a jump
  /// is counted in its chain. Calls `check` with the field of each index, the index, and the number that it
  /// is below. Errors also: those of `check`.
  template <class Check>
  [[nodiscard]] Result<GraphCall> read(const CallLimits& limits, const Check& check) const {
    const program::Fields& known = fields();
    GraphCall out;
    out.kind = *kind();
    const auto index = [&](const BoundField& field, std::uint64_t limit) -> Result<std::uint32_t> {
      ETSTREAM_ASSIGN(const auto found, scalar<std::int32_t>(field));
      ETSTREAM_TRY(check(field, found, limit));
      return static_cast<std::uint32_t>(found);
    };
    if (const BoundField* const listed = args()) {
      ETSTREAM_ASSIGN(out.callee, out.kind == CallKind::kKernel
                                      ? index(known.kernel_call.op_index, limits.operators)
                                      : index(known.delegate_call.delegate_index, limits.delegates));
      const auto add = [&](std::int32_t arg) -> Result<void> {
        out.args.push_back(static_cast<std::uint32_t>(arg));
        return check(*listed, arg, limits.values);
      };
      ETSTREAM_TRY(for_each(numbers<std::int32_t>(*listed), add));
    }
    for (const BoundField* value : {&known.move_call.move_from, &known.move_call.move_to,
                                    &known.jump_false_call.cond_value_index, &known.free_call.value_index}) {
      if (value->table != type()) continue;
      ETSTREAM_ASSIGN(out.args.emplace_back(), index(*value, limits.values));
    }
    if (out.kind != CallKind::kJumpIfFalse) return out;
    ETSTREAM_ASSIGN(out.destination,
                    index(known.jump_false_call.destination_instruction, limits.instructions + 1));
    return out;
  }
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

/// Reads lazily, but keeps segments and the names of methods once they were asked for. May be used by several
/// threads at once. Views must not outlive it. Errors: kCorrupt for what leads nowhere; kTooLarge for strings
/// over 1 MiB; kIo.
class Program {
 public:
  /// Checks the structure of the flatbuffer, which `file` begins with, as far as `header` says.
  [[nodiscard]] static Result<std::unique_ptr<const Program>> open(std::shared_ptr<const Schema> schema,
                                                                   ByteSource file,
                                                                   const ExtendedHeader& header,
                                                                   std::string name);

  [[nodiscard]] const ByteSource& file() const noexcept { return file_; }
  [[nodiscard]] const ExtendedHeader& header() const noexcept { return header_; }
  /// Returns the power of two, from ExtendedHeader::kSize to 64 KiB, that the extended header is padded to.
  /// Behind it the flatbuffer goes on at once, but for padding to less than that.
  [[nodiscard]] Result<std::uint64_t> header_alignment() const;
  [[nodiscard]] const FlatbufferView& view() const noexcept { return view_; }
  [[nodiscard]] const program::Fields& fields() const noexcept { return fields_; }
  [[nodiscard]] const View& root() const noexcept { return root_; }
  /// Returns what messages call the file.
  [[nodiscard]] const std::string& name() const noexcept { return view_.name(); }

  [[nodiscard]] Result<std::uint32_t> version() const;
  [[nodiscard]] Result<List<Method>> methods() const {
    return root_.list<Method>(fields_.program.execution_plan);
  }
  [[nodiscard]] Result<std::span<const std::string>> method_names() const;
  [[nodiscard]] Result<List<InlineConstant>> inline_constants() const {
    return root_.list<InlineConstant>(fields_.program.constant_buffer);
  }
  [[nodiscard]] Result<List<InlineDelegate>> inline_delegates() const {
    return root_.list<InlineDelegate>(fields_.program.backend_delegate_data);
  }
  [[nodiscard]] Result<std::optional<Subsegments>> constants() const {
    return root_.optional_view<Subsegments>(root_.child(fields_.program.constant_segment));
  }
  [[nodiscard]] Result<List<Subsegments>> mutable_data() const {
    return root_.list<Subsegments>(fields_.program.mutable_data_segments);
  }
  [[nodiscard]] Result<List<NamedData>> named_data() const {
    return root_.list<NamedData>(fields_.program.named_data);
  }
  /// Returns the segments' tables, which may hold anything; segments() checks them.
  [[nodiscard]] Result<List<View>> segment_tables() const {
    return root_.list<View>(fields_.program.segments);
  }
  /// Returns the segments, which are inside the file, with their first uses.
  [[nodiscard]] Result<std::span<const SegmentInfo>> segments() const;
  /// Returns the tensor whose table is at `position`.
  [[nodiscard]] Result<Tensor> tensor_at(std::uint64_t position) const;

  /// Returns the bytes of segment `index`, which the table at `position` asks for.
  [[nodiscard]] Result<ByteSource> segment_data(std::uint64_t position, std::uint64_t index) const;
  /// Returns `size` bytes of a tensor's constant or mutable data.
  [[nodiscard]] Result<ByteSource> tensor_data(const Tensor& tensor, const Storage& storage,
                                               std::uint64_t size) const;
  /// Returns all data of a delegate.
  [[nodiscard]] Result<ByteSource> delegate_data(const DelegatePlace& place) const;

 private:
  Program(std::shared_ptr<const Schema> schema, ByteSource file, const ExtendedHeader& header,
          FlatbufferView view, const TableView& root);

  /// Returns entry `index` of a list, which the table at `position` asks for.
  template <class T>
  Result<T> entry(const BoundField& field, std::uint64_t position, std::uint64_t index) const;
  Result<ByteSource> inline_constant(const Tensor& tensor, std::uint32_t index, std::uint64_t size) const;
  Result<ByteSource> piece(const Tensor& tensor, const Subsegments& pieces, std::uint32_t index,
                           std::uint64_t size) const;

  std::shared_ptr<const Schema> schema_;
  ByteSource file_;
  ExtendedHeader header_;
  FlatbufferView view_;
  program::Fields fields_;
  View root_;
  mutable std::mutex mutex_;  // guards what is kept
  mutable std::optional<std::vector<SegmentInfo>> segments_;
  mutable std::optional<std::vector<std::string>> method_names_;
};

/// A payload that has a name.
struct NamedPayload {
  std::string key;
  ByteSource data;
  ByteSource key_place;  // the key's characters, in the file
};

/// Reads the named data of `program`, in its order. Errors: as of Program.
[[nodiscard]] Result<std::vector<NamedPayload>> read_named_data(const Program& program);

}  // namespace etstream::pte

namespace etstream {

/// A tensor of a program, and where its data is.
struct ProgramTensor : pte::Storage {
  std::uint32_t method = 0;    // its number
  std::uint64_t position = 0;  // of its table in the file
};

/// Reads the tensors of all methods in file order. Memory: 80 bytes a tensor. Errors: those of
/// FlatbufferView.
[[nodiscard]] Result<std::vector<ProgramTensor>> read_tensors(const pte::Program& program);

struct DelegateReference : pte::DelegatePlace {
  std::uint32_t method = 0;    // its number
  std::uint32_t delegate = 0;  // an index in the method's delegates
  std::string backend;
};

/// Reads the places of all methods' delegate data, in file order. Errors: those of FlatbufferView.
[[nodiscard]] Result<std::vector<DelegateReference>> read_delegate_references(const pte::Program& program);

/// Sets `use` of each of `segments`, which are those of `program`. A segment of several uses gets the first.
/// Errors: those of FlatbufferView.
[[nodiscard]] Result<void> note_uses(const pte::Program& program, std::vector<SegmentInfo>& segments);

/// The place that a runtime loads a program from: a file of its own, or memory, as with a bundle.
enum class LoadedFrom { kFile, kMemory };

/// Adds to `findings` what ProgramFile::verify() finds. If it finds no error, adds the reasons why ExecuTorch
/// 1.5.1 refuses to load the program or its methods: a later schema version; constants that are all empty,
/// which it finds in memory alone. Such a program can still be read and rewritten. Returns whether verify()
/// found no error. Time: in proportion to the values of its methods. Errors: those of ProgramFile::verify().
[[nodiscard]] Result<bool> verify_loadable(const ProgramFile& program, LoadedFrom from, Findings& findings);

}  // namespace etstream
