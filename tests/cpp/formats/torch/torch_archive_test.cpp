// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/torch_archive.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"
#include "test_torch_files.h"

namespace etstream::torch_archive_test {
namespace {

Result<TorchArchive> open(const ZipMembers& members) {
  return open_torch_archive(source_of(zip_of(members)));
}

TEST_CASE("members are found by their names in the archive's folder, whatever that is called") {
  for (const std::string folder : {"archive/", "größe 1/", "a.b/", "/"}) {
    CAPTURE(folder);
    const auto archive =
        open({{folder + "data.pkl", "N."}, {folder + "data/0", "xy"}, {folder + "data/1", ""}});
    REQUIRE_MESSAGE(archive, archive.error().message);
    for (const std::string name : {"data.pkl", "data/0", "data/1"}) REQUIRE(archive->find(name) != nullptr);
    CHECK(text_of(*archive->find("data.pkl")) == "N.");
    CHECK(text_of(*archive->find("data/0")) == "xy");
    CHECK(archive->find("data/1")->size() == 0);
    CHECK(archive->find("data/2") == nullptr);
    CHECK(archive->find(folder + "data.pkl") == nullptr);
  }
}

TEST_CASE("members in no folder, or in two, are refused") {
  const std::string error =
      "kUnsupported: memory: expected members in one folder, as torch writes them, found ";
  CHECK(error_of(open({{"data.pkl", "N."}})) == exactly(error + "'data.pkl'"));
  CHECK(error_of(open({{"a/data.pkl", "N."}, {"b/data.pkl", "N."}})) == exactly(error + "'b/data.pkl'"));
  CHECK(error_of(open({{"a/data.pkl", "N."}, {"ab/data.pkl", "N."}})) == exactly(error + "'ab/data.pkl'"));
  CHECK(error_of(open({{"a/data.pkl", "N."}, {"a", ""}})) == exactly(error + "'a'"));
}

TEST_CASE("bytes are little-endian, as the archive says or does not say") {
  const auto with = [](const std::string& order) {
    return open({{"a/byteorder", order}, {"a/data.pkl", "N."}});
  };
  CHECK(with("little"));
  CHECK(open({{"a/data.pkl", "N."}}));
  CHECK(error_of(open({{"a/BYTEORDER", "little"}, {"a/data.pkl", "N."}})) ==
        containing("kCorrupt: memory: expected 'byteorder', as torch finds it in whatever letters, found "
                   "'BYTEORDER'"));
  for (const std::string order : {"big", "", "littl", "little\n", "little\n\n", "LITTLE"}) {
    CAPTURE(order);
    CHECK(error_of(with(order)) ==
          containing("kUnsupported: memory: expected 'little' as its byteorder, found '" +
                     (order.starts_with("little") ? "little\\x0a" : order) + "'; load it in "));
  }
}

TEST_CASE("an archive that is compressed or damaged is refused, with what to do where that helps") {
  std::string compressed = zip_of({{"a/data.pkl", "N."}});
  const auto directory = compressed.find("PK\1\2");
  REQUIRE(directory != std::string::npos);
  compressed[directory + 10] = compressed[8] = 8;
  CHECK(error_of(open_torch_archive(source_of(compressed))) ==
        containing(
            "found 'a/data.pkl' compressed by method 8; load it in torch and save it again with torch.save, "
            "which compresses nothing"));
  CHECK(
      error_of(open_torch_archive(source_of("PK\3\4"))) ==
      exactly(
          "kCorrupt: memory: offset 4: expected the end record of a zip archive before the file's end, found "
          "none"));
}

const TorchType* type(const char* name) { return torch_type_of_dtype(name); }

TEST_CASE("a tensor has the elements that its offset, sizes and strides reach") {
  const ByteSource storage = source_of("0123456789abcdef");
  struct Row {
    TorchElements elements;
    std::string bytes;
  };
  for (const auto& [elements, bytes] :
       {Row{{type("uint8"), 2, {3}, {1}}, "234"},
        Row{{type("uint8"), 0, {2, 3}, {1, 4}},
            "04815"
            "9"},
        Row{{type("int16"), 1, {2}, {2}}, "2367"}, Row{{type("uint8"), 15, {}, {}}, "f"},
        Row{{type("uint8"), 15, {3}, {0}}, "fff"}, Row{{type("uint8"), 15, {1}, {INT64_MAX}}, "f"},
        Row{{type("uint8"), 16, {0}, {1}}, ""}, Row{{type("complex128"), 0, {1}, {1}}, "0123456789abcdef"}}) {
    const auto tensor = tensor_in(storage, "t", elements);
    REQUIRE_MESSAGE(tensor, tensor.error().message);
    CHECK(text_of(tensor->data) == bytes);
    CHECK(tensor->name == "t");
    CHECK(tensor->type == elements.type->name);
    REQUIRE(tensor->layout);
    CHECK(tensor->layout->sizes == std::vector<std::int32_t>(elements.sizes.begin(), elements.sizes.end()));
  }
}

TEST_CASE("types that ExecuTorch lacks have a shape, which counts elements") {
  const auto fours = tensor_in(source_of("abcd"), "t", {type("float4_e2m1fn_x2"), 0, {2, 2}, {2, 1}});
  REQUIRE_MESSAGE(fours, fours.error().message);
  CHECK(fours->type == "F4");
  CHECK_FALSE(fours->layout);
  CHECK(fours->shape == std::vector<std::uint64_t>{2, 4});
  const auto bits = tensor_in(source_of("abcd"), "t", {type("bits8"), 0, {4}, {1}});
  REQUIRE_MESSAGE(bits, bits.error().message);
  CHECK(bits->type == "bits8");
  CHECK(bits->shape == std::vector<std::uint64_t>{4});
  for (const auto& [name, size] : {std::pair{"bits16", 2U}, std::pair{"bits1x8", 1U},
                                   std::pair{"bits2x4", 1U}, std::pair{"bits4x2", 1U}}) {
    const auto all = tensor_in(source_of("abcd"), "t", {type(name), 0, {4 / size}, {1}});
    REQUIRE_MESSAGE(all, all.error().message);
    CHECK(all->data.size() == 4);
  }
  CHECK(
      error_of(tensor_in(source_of(""), "t", {type("float4_e2m1fn_x2"), 0, {0, 1ULL << 63}, {1, 1}})) ==
      containing("kCorrupt: memory: tensor 't' of float4_e2m1fn_x2 [0, 9223372036854775808]: a dimension is "
                 "too large"));
}

TEST_CASE("elements that are not inside their storage are corrupt, at every limit of integers") {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 62;
  constexpr std::uint64_t kMost = INT64_MAX;
  const ByteSource storage = source_of("0123456789abcdef");
  struct Bad {
    TorchElements elements;
    std::string error;
  };
  const std::string of = "kCorrupt: memory: tensor 't' of float32 ";
  const std::string outside = " on are not all inside its 16 bytes";
  const std::string one = "elements of 4 bytes in 1 dimensions ";
  for (const Bad& bad :
       {Bad{{type("float32"), 0, {5}, {1}}, "[5]: " + one + "from offset 0" + outside},
        Bad{{type("float32"), 3, {2}, {1}}, "[2]: " + one + "from offset 12" + outside},
        Bad{{type("float32"), 4, {}, {}}, "[]: elements of 4 bytes in 0 dimensions from offset 16" + outside},
        Bad{{type("float32"), 0, {2, 2}, {1, 3}},
            "[2, 2]: elements of 4 bytes in 2 dimensions from offset 0" + outside},
        Bad{{type("float32"), kMost, {1}, {1}}, "[1]: its offset is not inside the storage"},
        Bad{{type("float32"), kLarge, {1}, {1}}, "[1]: its offset is not inside the storage"},
        Bad{{type("float32"), kLarge - 1, {1}, {1}},
            "[1]: " + one + "from offset 18446744073709551612" + outside},
        Bad{{type("float32"), 0, {2}, {kLarge}}, "[2]: a stride is not inside the storage"},
        Bad{{type("float32"), 0, {2}, {kMost}}, "[2]: a stride is not inside the storage"},
        Bad{{type("float32"), 0, {2}, {kLarge / 2 - 1}}, "[2]: " + one + "from offset 0" + outside},
        Bad{{type("float32"), 0, {kLarge}, {0}}, "[4611686018427387904]: " + one + "take 2^63 bytes or more"},
        Bad{{type("float32"), 0, {kLarge, kLarge}, {0, 0}}, " take 2^63 bytes or more"},
        Bad{{type("float32"), 0, {1}, {}},
            "[1]: " + one + "are not 1 to 16 bytes each, with a stride for each"},
        Bad{{type("float32"), 0, {}, {1}},
            "[]: elements of 4 bytes in 0 dimensions are not 1 to 16 bytes each"}}) {
    CAPTURE(bad.elements.offset);
    CHECK(error_of(tensor_in(storage, "t", bad.elements)) == containing(of));
    CHECK(error_of(tensor_in(storage, "t", bad.elements)) == containing(bad.error));
  }
}

}  // namespace
}  // namespace etstream::torch_archive_test
