// SPDX-License-Identifier: BSD-3-Clause
//
// Program: the parts of a program in terms of its schema. Only it and its views know the schema's fields.
//
//   ETSTREAM_ASSIGN(const auto methods, program.methods());
//   for (std::uint32_t i = 0; i < methods.size(); ++i) {
//     ETSTREAM_ASSIGN(const pte::Method method, methods.at(i));
//     ETSTREAM_ASSIGN(const std::string name, method.name());
//   }
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
#include "formats/pte/program_views.h"
#include "formats/segments/data_segments.h"

namespace etstream::pte {

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

struct ProgramTensor {
  std::uint64_t position = 0;                   // of its table in the file
  std::uint32_t method = 0;                     // its number
  std::uint32_t buffer = 0;                     // among the constants or the mutable data; not checked
  bool is_planned = false;                      // its memory is planned: it has allocation_info
  bool is_external = false;                     // its data is in another file
  std::string name;                             // fully qualified, or empty
  std::optional<std::uint64_t> extra_position;  // of its extra_tensor_info
  bool has_other_info = false;                  // there, besides where its data is and under what name

  /// Returns whether its data is in the constant segment.
  [[nodiscard]] bool is_constant() const noexcept { return buffer != 0 && !is_planned && !is_external; }
  /// Returns whether its data is in the mutable data.
  [[nodiscard]] bool has_initial_state() const noexcept { return buffer != 0 && is_planned && !is_external; }
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

}  // namespace etstream
