// SPDX-License-Identifier: BSD-3-Clause
//
// Random values of random schemas: the packer against FlatBuffers' own builder, parser and verifier, and JSON
// that must give the same bytes again. Each case is made from its seed alone.
#include <doctest/doctest.h>
#include <flatbuffers/idl.h>
#include <flatbuffers/reflection.h>

#include <bit>
#include <cmath>
#include <string>

#include "core/base/text.h"
#include "flatbuffer/edited_values.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/schema_packer.h"
#include "random_schema.h"
#include "reference_packer.h"
#include "test_files.h"
#include "value_tree.h"
#include "written_plan.h"

namespace etstream::testing::random_packer_test {
namespace {

std::uint64_t cases() { return 150 * rounds(); }

struct RandomCase {
  std::string text;
  std::vector<std::byte> binary;
  Alignments alignments;  // overrides
  TableTree tree;

  const reflection::Schema& reflected() const { return *reflection::GetSchema(binary.data()); }
};

/// Overrides the alignment of some scalar vectors, up to what the packer allows.
Alignments random_alignments(const reflection::Schema& schema, SeededRandom& random) {
  Alignments out;
  for (flatbuffers::uoffset_t i = 0; i < schema.objects()->size(); ++i) {
    if (schema.objects()->Get(i)->is_struct()) continue;
    for (const auto* field : *schema.objects()->Get(i)->fields()) {
      const auto element = field->type()->element();
      if (element < reflection::Bool || element > reflection::Double || !random.one_in(6)) continue;
      const std::uint64_t widest = random.one_in(10) ? 17 : 9;
      const auto alignment = std::uint32_t{1} << random.below(widest);
      out[{i, field->id()}] =
          std::max(alignment, static_cast<std::uint32_t>(flatbuffers::GetTypeSize(element)));
    }
  }
  return out;
}

RandomCase random_case(std::uint64_t seed) {
  SeededRandom random(seed);
  RandomCase made;
  made.text = random_schema(random);
  made.binary = compile_schema(made.text);
  REQUIRE_FALSE(made.binary.empty());
  made.alignments = random_alignments(made.reflected(), random);
  made.tree = random_tree(made.reflected(), random);
  return made;
}

/// Returns the schema of a case, with its overrides.
Schema schema_of(const RandomCase& random_case) {
  Schema schema = Schema::from_binary(random_case.binary).value();
  for (const auto& [place, alignment] : random_case.alignments) {
    const TableType& table = schema.tables()[place.first];
    REQUIRE(schema.set_alignment(table.name, table.fields[place.second].name, alignment));
  }
  return schema;
}

Result<FilePlan> pack_case(const RandomCase& random_case) {
  const Schema schema = schema_of(random_case);
  TreeReader reader(random_case.tree);
  return pack(schema, reader);
}

/// Returns whether a union's numbers have gaps. FlatBuffers' verifier (2.0.8) takes a union's type for an
/// index, and so refuses good files with gaps.
bool has_gaps(const reflection::Schema& schema) {
  for (const auto* declared : *schema.enums()) {
    if (declared->is_union() && declared->values()->size() <= 255 &&
        declared->values()->Get(declared->values()->size() - 1)->value() >= declared->values()->size()) {
      return true;
    }
  }
  return false;
}

bool is_accepted_by_flatbuffers(const reflection::Schema& schema, const std::vector<std::byte>& file) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  return flatbuffers::Verify(schema, *schema.root_table(), bytes, file.size());
}

/// Returns the problem that our own verifier finds in a file.
std::string verdict(const RandomCase& random_case, const std::vector<std::byte>& file) {
  const Schema schema = Schema::from_binary(random_case.binary).value();
  const auto view = FlatbufferView::open(schema, ByteSource::memory(file), "file");
  if (!view) return view.error().message;
  const auto flaws = find_flaws_of_layout(*view);
  if (!flaws) return flaws.error().message;
  return flaws->empty() ? "" : flaws->front().message;
}

TEST_CASE("random_values_of_random_schemas_are_packed_as_flatbuffers_packs_them") {
  std::uint64_t verified = 0;
  for (std::uint64_t seed = 1; seed <= cases(); ++seed) {
    CAPTURE(seed);
    const RandomCase made = random_case(seed);
    CAPTURE(made.text);
    const auto plan = pack_case(made);
    if (!plan) FAIL(plan.error().message);
    REQUIRE(flaw_in(*plan) == "");
    const auto file = bytes_of(*plan);
    REQUIRE(difference(file, pack_by_reference(made.reflected(), made.tree, made.alignments)) == "");
    REQUIRE(verdict(made, file) == "");
    if (has_gaps(made.reflected())) continue;
    REQUIRE(is_accepted_by_flatbuffers(made.reflected(), file));
    ++verified;
  }
  CHECK(3 * verified >= 2 * cases());
}

TEST_CASE("a_packed_file_is_packed_again_from_itself") {
  for (std::uint64_t seed = 1; seed <= cases() / 3; ++seed) {
    CAPTURE(seed);
    const RandomCase made = random_case(seed);
    CAPTURE(made.text);
    const auto file = bytes_of(pack_case(made).value());
    const Schema schema = schema_of(made);
    const auto view = FlatbufferView::open(schema, ByteSource::memory(file), "file");
    REQUIRE(view);
    EditedValues reader(*view, view->root().value());
    const auto again = pack(schema, reader);
    if (!again) FAIL(again.error().message);
    REQUIRE(difference(bytes_of(*again), file) == "");
  }
}

TEST_CASE("the_verifier_of_the_random_cases_refuses_a_broken_file") {
  RandomCase made = random_case(1);
  for (std::uint64_t seed = 2; has_gaps(made.reflected()); ++seed) made = random_case(seed);
  auto file = bytes_of(pack_case(made).value());
  REQUIRE(is_accepted_by_flatbuffers(made.reflected(), file));
  file[0] ^= std::byte{2};  // the root's offset
  CHECK_FALSE(is_accepted_by_flatbuffers(made.reflected(), file));
}

TEST_CASE("a_damaged_file_that_we_accept_is_one_that_flatbuffers_accepts") {
  std::uint64_t refused = 0;
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= cases(); ++seed) {
    CAPTURE(seed);
    const RandomCase made = random_case(seed);
    if (has_gaps(made.reflected())) continue;
    CAPTURE(made.text);
    auto file = bytes_of(pack_case(made).value());
    SeededRandom random(seed);
    for (int i = 0; i < 8; ++i) {
      const std::size_t place = random.below(std::min<std::size_t>(file.size(), 4096));
      CAPTURE(place);
      const auto damage = static_cast<std::byte>(1U << random.below(8));
      file[place] ^= damage;
      const bool is_good = verdict(made, file).empty();
      if (is_good) REQUIRE(is_accepted_by_flatbuffers(made.reflected(), file));
      (is_good ? accepted : refused) += 1;
      file[place] ^= damage;
    }
  }
  CHECK(refused > cases());
  CHECK(accepted > cases());
}

/// Returns what the parser builds from the text that it generates for `file`; nothing if it refuses the
/// schema or the text, because of an alignment over 32, or a string that is not UTF-8.
std::vector<std::byte> parsed_again(const std::string& schema_text, const std::vector<std::byte>& file) {
  flatbuffers::Parser parser;
  if (!parser.Parse(schema_text.c_str())) return {};
  std::string json;
  if (!generate_text(parser, file.data(), json) || !parser.Parse(json.c_str())) return {};
  const auto built = std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
  return {built.begin(), built.end()};
}

TEST_CASE("random_flatbuffers_in_flatcs_order_are_its_parsers") {
  std::uint64_t compared = 0;
  std::uint64_t others = 0;
  for (std::uint64_t seed = 1; seed <= 400 * rounds(); ++seed) {
    CAPTURE(seed);
    const RandomCase made = random_case(seed);
    CAPTURE(made.text);
    // Children come in the order of the JSON, whose text is written in the order of declaration. The packer
    // leaves out deprecated fields.
    if (made.text.find("id:") != std::string::npos) continue;
    if (made.text.find("deprecated") != std::string::npos) continue;
    const Schema schema = Schema::from_binary(made.binary).value();
    TreeReader values(made.tree);
    const auto expected = parsed_again(made.text, bytes_of(pack(schema, values).value()));
    if (expected.empty()) continue;
    ++compared;

    const auto view = FlatbufferView::open(schema, ByteSource::memory(expected), "file");
    REQUIRE(view);
    EditedValues reader(*view, view->root().value());
    const auto ours = bytes_of(pack(schema, reader, {.order = ObjectOrder::kFlatc}).value());
    REQUIRE(difference(ours, expected) == "");
    if (bytes_of(pack(schema, reader).value()) != expected) ++others;
  }
  CHECK(54 * compared > 400 * rounds());
  CHECK(115 * others > 400 * rounds());
}

std::string json_of(const FlatbufferView& view, const JsonOptions& options) {
  std::vector<std::byte> out;
  const auto sink = open_memory_sink(out);
  const auto written = write_json(view, options, *sink);
  if (!written) FAIL(written.error().message);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

TEST_CASE("random_flatbuffers_become_json_and_the_same_bytes_again") {
  const TemporaryFolder folder;
  std::string all;
  for (std::uint64_t seed = 1; seed <= cases() / 3; ++seed) {
    CAPTURE(seed);
    const RandomCase made = random_case(seed);
    CAPTURE(made.text);
    const Schema schema = schema_of(made);
    const auto file = bytes_of(pack_case(made).value());

    const auto view = FlatbufferView::open(schema, ByteSource::memory(file), "file");
    REQUIRE(view);
    SeededRandom random(seed);
    JsonOptions options{.compact = random.one_in(2), .defaults = random.one_in(2), .references = {}};
    if (random.one_in(4)) {
      put_file(folder / "original", {reinterpret_cast<const char*>(file.data()), file.size()});
      options.references = JsonReferences{.file = "original", .offset = 0, .over = random.below(100)};
    }
    const std::string json = json_of(*view, options);
    if (json.size() < 10000) CAPTURE(json);
    all += json;

    const auto source = ByteSource::memory(std::as_bytes(std::span(json)));
    const auto reader = read_json_values(schema, source, folder.path());
    if (!reader) FAIL(reader.error().message);
    const auto again = pack(schema, **reader);
    if (!again) FAIL(again.error().message);
    REQUIRE(difference(bytes_of(*again), file) == "");
  }
  for (const std::string what :
       {"\"nan\"", "\"nan:", "\"-inf\"", "-0.0", "\"M0\"", "\"N1\"", "\"base64\"", "\"file\"", "\"m0\"", "[]",
        "\"\"", "true", "18446744073709551615", "-9223372036854775808", "e-300"}) {
    CAPTURE(what);
    CHECK((rounds() < 4 || all.find(what) != std::string::npos));  // some are in few cases
  }
}

/// The numbers of cases that have something that a packer may get wrong.
struct Coverage {
  std::uint64_t absent = 0;
  std::uint64_t unasked = 0;
  std::uint64_t defaults = 0;
  std::uint64_t negative_zeros = 0;
  std::uint64_t nans = 0;
  std::uint64_t noisy_scalars = 0;
  std::uint64_t optional_zeros = 0;
  std::uint64_t empty_wide_vectors = 0;
  std::uint64_t empty_aligned_vectors = 0;
  std::uint64_t empty_strings = 0;
  std::uint64_t long_vectors = 0;
  std::uint64_t sources = 0;
  std::uint64_t unions = 0;
  std::uint64_t nested_tables = 0;
  std::uint64_t table_vectors = 0;
  std::uint64_t string_vectors = 0;
  std::uint64_t structs = 0;
  std::uint64_t struct_vectors = 0;
  std::uint64_t strings_in_unions = 0;
  std::uint64_t structs_in_unions = 0;
  std::uint64_t union_vectors = 0;

  void count(const reflection::Schema& schema, const Alignments& alignments, const TableTree& tree) {
    const auto* object = schema.objects()->Get(static_cast<flatbuffers::uoffset_t>(tree.type));
    for (const auto* field : *object->fields()) {
      const FieldTree& value = tree.fields[field->id()];
      absent += std::holds_alternative<AbsentValue>(value);
      unasked += std::holds_alternative<UnaskedTree>(value);
      table_vectors += std::holds_alternative<TableVectorTree>(value);
      string_vectors += std::holds_alternative<StringVectorTree>(value);
      if (const auto* scalar = std::get_if<ScalarTree>(&value)) count(*field, scalar->bits);
      if (const auto* string = std::get_if<std::string>(&value)) empty_strings += string->empty();
      if (const auto* vector = std::get_if<ScalarVectorTree>(&value)) {
        const bool is_empty = vector->bytes.empty();
        sources += vector->as_source;
        struct_vectors += !is_empty && field->type()->element() == reflection::Obj;
        long_vectors += vector->bytes.size() > (1 << 16);
        empty_wide_vectors += is_empty && flatbuffers::GetTypeSize(field->type()->element()) == 8;
        empty_aligned_vectors += is_empty && alignments.contains({tree.type, field->id()});
      }
      if (const auto* child = std::get_if<std::unique_ptr<TableTree>>(&value)) {
        ++nested_tables;
        count(schema, alignments, **child);
      }
      structs += std::holds_alternative<StructTree>(value);
      if (const auto* member = std::get_if<UnionTree>(&value)) {
        ++unions;
        count(schema, alignments, *member);
      }
      if (const auto* vector = std::get_if<UnionVectorTree>(&value)) {
        ++union_vectors;
        for (const UnionTree& each : *vector) count(schema, alignments, each);
      }
      if (const auto* tables = std::get_if<TableVectorTree>(&value)) {
        for (const TableTree& each : *tables) count(schema, alignments, each);
      }
    }
  }

  void count(const reflection::Schema& schema, const Alignments& alignments, const UnionTree& member) {
    strings_in_unions += std::holds_alternative<std::string>(member.held);
    structs_in_unions += std::holds_alternative<StructTree>(member.held);
    if (const auto* table = std::get_if<std::unique_ptr<TableTree>>(&member.held)) {
      count(schema, alignments, **table);
    }
  }

  void count(const reflection::Field& field, std::uint64_t bits) {
    const auto base = field.type()->base_type();
    const std::size_t width = flatbuffers::GetTypeSize(base);
    const std::uint64_t own = bits & (~std::uint64_t{0} >> (64 - 8 * width));
    noisy_scalars += own != bits;
    optional_zeros += field.optional() && own == 0;
    if (base == reflection::Float || base == reflection::Double) {
      const double value =
          width == 4 ? std::bit_cast<float>(static_cast<std::uint32_t>(own)) : std::bit_cast<double>(own);
      nans += std::isnan(value);
      negative_zeros += value == 0 && std::signbit(value);
      defaults += value == field.default_real();
    } else {
      defaults += !field.optional() && own == static_cast<std::uint64_t>(field.default_integer());
    }
  }
};

TEST_CASE("the_random_cases_have_enough_of_everything") {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= cases(); ++seed) {
    const RandomCase made = random_case(seed);
    coverage.count(made.reflected(), made.alignments, made.tree);
  }
  CHECK(3 * coverage.absent > cases());
  CHECK(3 * coverage.unasked > cases());
  CHECK(3 * coverage.defaults > cases());
  CHECK(30 * coverage.negative_zeros > cases());
  CHECK(30 * coverage.nans > cases());
  CHECK(3 * coverage.noisy_scalars > cases());
  CHECK(30 * coverage.optional_zeros > cases());
  CHECK(30 * coverage.empty_wide_vectors > cases());
  CHECK(30 * coverage.empty_aligned_vectors > cases());
  CHECK(3 * coverage.empty_strings > cases());
  CHECK(100 * coverage.long_vectors > cases());
  CHECK(3 * coverage.sources > cases());
  CHECK(3 * coverage.unions > cases());
  CHECK(3 * coverage.nested_tables > cases());
  CHECK(3 * coverage.table_vectors > cases());
  CHECK(3 * coverage.string_vectors > cases());
  CHECK(3 * coverage.structs > cases());
  CHECK(6 * coverage.struct_vectors > cases());
  CHECK(6 * coverage.strings_in_unions > cases());
  CHECK(6 * coverage.structs_in_unions > cases());
  CHECK(6 * coverage.union_vectors > cases());
}

}  // namespace
}  // namespace etstream::testing::random_packer_test
