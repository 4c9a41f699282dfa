// SPDX-License-Identifier: BSD-3-Clause
//
// TableTree: the values of a table as a plain tree, and a ValueReader over it. The reader is as unhelpful as
// its contract allows: its next call overwrites the values that it hands out, and it refuses requests that a
// packer must not make. Random trees for a schema.
#pragma once

#include <flatbuffers/reflection_generated.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "flatbuffer/schema_packer.h"
#include "seeded_random.h"

namespace etstream::testing {

struct TableTree;

/// The value of a deprecated field or of a union's type, which a reader is not asked for.
struct UnaskedTree {};
struct ScalarTree {
  std::uint64_t bits = 0;  // those above the field's width are noise
};
struct ScalarVectorTree {
  std::vector<std::byte> bytes;
  bool as_source = false;  // whether the reader gives a ByteSource, or the bytes
};
struct StructTree {
  std::vector<std::byte> bytes;
};
struct UnionTree {
  std::uint8_t type = 0;
  std::variant<std::unique_ptr<TableTree>, std::string, StructTree> held;
};
using UnionVectorTree = std::vector<UnionTree>;
using TableVectorTree = std::vector<TableTree>;
using StringVectorTree = std::vector<std::string>;

using FieldTree = std::variant<AbsentValue, UnaskedTree, ScalarTree, std::string, ScalarVectorTree,
                               std::unique_ptr<TableTree>, StructTree, UnionTree, TableVectorTree,
                               StringVectorTree, UnionVectorTree>;

struct TableTree {
  std::size_t type = 0;  // its index among the schema's objects
  std::vector<FieldTree> fields;
};

class TreeReader final : public ValueReader {
 public:
  /// `root` outlives the reader, and the packed result.
  explicit TreeReader(const TableTree& root) : root_(root) {}

  ValueNode root() override { return {&root_, 0}; }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override;
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override;

 private:
  std::string_view lend(std::string_view bytes);
  std::span<const std::byte> lend(const std::vector<std::byte>& bytes);
  static UnionValue value_of(const UnionTree& member);

  const TableTree& root_;
  std::unique_ptr<std::string> lent_;  // until the next call
};

/// Makes a table of the schema's root type. Scalars are absent, default, extreme, NaN, -0.0 or anything;
/// strings and vectors are absent, empty, short and now and then longer than a block of the builder. `schema`
/// is one of random_schema's: a required table leads to one of a higher number.
TableTree random_tree(const reflection::Schema& schema, SeededRandom& random);

}  // namespace etstream::testing
