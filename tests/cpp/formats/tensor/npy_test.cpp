// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/npy.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::npy_test {
namespace {

using Sizes = std::vector<std::int32_t>;

Result<Tensor> open(std::string_view file) { return open_npy(source_of(file)); }

TEST_CASE("a type of one byte has no byte order, though some writers spell one") {
  for (const std::string descr : {"<u1", "<i1", "<b1"}) {  // as cnpy does
    CAPTURE(descr);
    CHECK(code_of(open(npy_file(npy_dict(descr, "(2,)"), "xy"))) == "no error");
  }
}

TEST_CASE("versions 1, 2 and 3 are read") {
  for (const int version : {1, 2, 3}) {
    CAPTURE(version);
    const auto tensor = open(npy_file(npy_dict("<i2", "(2,)"), "abcd", version));
    REQUIRE_MESSAGE(tensor, tensor.error().message);
    CHECK(tensor->sizes == Sizes{2});
    CHECK(text_of(tensor->data) == "abcd");
  }
}

TEST_CASE("the header's dict is read in every form that Python writes") {
  struct Row {
    std::string header;
    Sizes sizes;
  };
  const std::vector<Row> rows = {
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }", {}},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': ()}", {}},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }           \n", {1}},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1)}\n", {1, 1}},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1,)}\n", {1, 1}},
      {"{\"shape\":(1,1,1),\"fortran_order\":False,\"descr\":\"|u1\"}", {1, 1, 1}},
      {" { 'shape' : ( 1 , ) , 'descr' : '|u1' , 'fortran_order' : False , } ", {1}},
      {"{'descr': '|u1', 'fortran_order': True, 'shape': (1,), }", {1}},
      {"{'descr': '|u1', 'fortran_order': True, 'shape': (), }", {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.header);
    const auto tensor = open(npy_file(row.header, "x"));
    REQUIRE_MESSAGE(tensor, tensor.error().message);
    CHECK(tensor->sizes == row.sizes);
    CHECK(text_of(tensor->data) == "x");
  }
}

TEST_CASE(
    "the header that is written for a tensor is read back, and data after it starts at a multiple of 64") {
  const std::vector<Sizes> shapes = {
      {}, {0}, {3}, {2, 3}, {2147483647, 0}, Sizes(16, 1), Sizes(16, 1000000000)};
  for (const Sizes& sizes : shapes) {
    CAPTURE(sizes.size());
    const Tensor tensor{ScalarType::kUInt8, sizes, contiguous_dim_order(sizes.size()), {}};
    const auto header = npy_header(tensor);
    REQUIRE(header);
    CHECK(header->size() % 64 == 0);
    CHECK(header->ends_with('\n'));
    CHECK(header->substr(8, 2) == little_endian(header->size() - 10, 2));
    const auto bytes = byte_size(tensor.scalar_type, sizes);
    if (!bytes) continue;
    const auto read =
        open_npy(ByteSource::concatenation({source_of(*header), ByteSource::zeros(*bytes)}).value());
    REQUIRE_MESSAGE(read, read.error().message);
    CHECK(read->sizes == sizes);
    CHECK(read->scalar_type == tensor.scalar_type);
  }
}

TEST_CASE("a header is NumPy's, with room for the first dimension to grow to 21 digits") {
  const auto header = [](const Sizes& sizes) {
    return npy_header({ScalarType::kUInt8, sizes, contiguous_dim_order(sizes.size()), {}}).value();
  };
  CHECK(header({3}) ==
        npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }" + std::string(60, ' ') + "\n",
                 ""));
  Sizes sizes(15, 1);
  sizes[0] = 100;
  CHECK(header(sizes).size() == 192);
  sizes.pop_back();
  sizes[1] = 10;
  sizes[2] = 10;
  CHECK(header(sizes).size() == 128);  // to the last byte
}

TEST_CASE("no header is written for what NumPy can't say") {
  CHECK_FALSE(npy_header({ScalarType::kBFloat16, {2}, {0}, {}}).has_value());
  CHECK_FALSE(npy_header({ScalarType::kFloat8E5M2, {2}, {0}, {}}).has_value());
  CHECK_FALSE(npy_header({ScalarType::kFloat32, {2, 3}, {1, 0}, {}}).has_value());
}

TEST_CASE("the data stays in the file") {
  const auto storage = std::make_shared<RecordingStorage>(std::uint64_t{1} << 40);
  const std::string start = npy_file(npy_dict("|u1", "(1024, 1073741824)"), "");
  const auto file = ByteSource::concatenation({source_of(start), ByteSource(storage)}).value();
  const auto tensor = open_npy(file);
  REQUIRE_MESSAGE(tensor, tensor.error().message);
  CHECK(tensor->data.size() == std::uint64_t{1} << 40);
  CHECK(storage->read().empty());
}

TEST_CASE("a bad file is an error that names it and says what is wrong") {
  struct Row {
    std::string what;
    std::string file;
    std::string error;
  };
  const std::string good = npy_file(npy_dict("<i2", "(2,)"), "abcd");
  const std::vector<Row> rows = {
      {"empty", "", "kCorrupt: memory: not a .npy file: expected at least 8 bytes at offset 0"},
      {"other magic", "PK\x03\x04" + good.substr(4), "expected the magic \\x93NUMPY at offset 0"},
      {"version 0", npy_file("", "", 0), "expected a version from 1 to 3 at offset 6"},
      {"only a version", good.substr(0, 8), "expected the header's length at offset 8"},
      {"header past the end", good.substr(0, 40), "bytes that is inside the file, not 58 at offset 8"},
      {"header of 64 KiB", npy_file(std::string(65536, ' '), "", 2),
       "not a .npy file of one plain array: header"},
      {"header over 64 KiB", npy_file(std::string(65537, ' '), "", 2), "a header of at most 65536 bytes"},
      {"length lies", npy_file("", "", 3).substr(0, 8) + "\xff\xff\xff\xff{}", "not 4294967295 at offset 8"},
      {"no comma", npy_file("{'descr': '|u1' 'fortran_order': False, 'shape': (), }", "x"),
       "not a .npy file of"},
      {"open dict", npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': ()", "x"),
       "not a .npy file of"},
      {"open tuple", npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (1, ", "x"),
       "not a .npy file of"},
      {"junk behind", npy_file(npy_dict("|u1", "()") + "junk", "x"), "not a .npy file of"},
      {"no descr", npy_file("{'fortran_order': False, 'shape': (), }", "x"), "not a .npy file of"},
      {"order 0", npy_file(npy_dict("|u1", "()", "0"), "x"), "not a .npy file of"},
      {"shape without comma", npy_file(npy_dict("|u1", "(1 1)"), "x"), "not a .npy file of"},
      {"negative size", npy_file(npy_dict("|u1", "(-1,)"), "x"), "not a .npy file of"},
      {"17 dimensions", npy_file(npy_dict("|u1", "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), "x"),
       "the array has 17 dimensions, ExecuTorch's tensors have at most 16"},
      {"big-endian", npy_file(npy_dict(">f4", "(1,)"), "abcd"),
       "kUnsupported: memory: elements of type '>f4' are big-endian; save the array as little-endian"},
      {"bfloat16", npy_file(npy_dict("<V2", "(1,)"), "ab"),
       "kUnsupported: memory: elements of type '<V2' are none"},
      {"data short", npy_file(npy_dict("<i2", "(2,)"), "abc"),
       "kCorrupt: memory: expected 4 bytes of data from its shape, found 3 at offset 68"},
      {"data long", npy_file(npy_dict("<i2", "()"), "abc"),
       "expected 2 bytes of data from its shape, found 3 at"},
      {"structured", npy_file("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }", "abcd"),
       "kUnsupported"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(error_of(open(row.file)) == containing(row.error));
    CHECK(error_of(open(row.file)) == containing(": memory: "));
  }
}

TEST_CASE("the elements of an array in Fortran order come in the order of their indices") {
  const auto tensor = open(npy_file(npy_dict("<i2", "(2, 3)", "True"), "aabbccddeeff"));
  REQUIRE_MESSAGE(tensor, tensor.error().message);
  CHECK(tensor->sizes == Sizes{2, 3});
  CHECK(tensor->dim_order == contiguous_dim_order(2));
  CHECK(text_of(tensor->data) == "aacceebbddff");
  CHECK(text_of(open(npy_file(npy_dict("|u1", "(3, 0)", "True"), ""))->data).empty());
}

TEST_CASE("an array with a dimension over 2^31 - 1 is too large, not malformed") {
  const std::string start = npy_file(npy_dict("|u1", "(2147483648,)"), "");
  const auto file = ByteSource::concatenation({source_of(start), ByteSource::zeros(2147483648U)}).value();
  CHECK(error_of(open_npy(file)) ==
        containing("a dimension has size 2147483648, a tensor's are at most 2147483647"));
}

}  // namespace
}  // namespace etstream::npy_test
