// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data (.ptd): a file that ExecuTorch wrote, and the same file patched by hand.
#include "etstream/tensor_data.h"

#include <doctest/doctest.h>

#include "core/base/text.h"
#include "etstream/inspect.h"
#include "file_bytes.h"
#include "flat_tensor_generated.h"
#include "test_errors.h"
#include "test_paths.h"

namespace etstream::tensor_data_file_test {
namespace {

namespace ft = etstream::flat_tensor;

constexpr std::size_t kHeader = 8;

std::string real_tensor_data() { return content_of(kGoldenDir + "/tensor_data/expected.ptd"); }

ft::FlatTensor* root_of(std::string& file) { return ft::GetMutableFlatTensor(file.data()); }

doctest::String errors_of(std::string file) { return exactly(lines_of(findings_of(std::move(file)).errors)); }

TEST_CASE("each field of the header that leads out of the file is refused") {
  struct Patch {
    std::size_t offset;
    std::uint64_t value;
    std::string expected;
  };
  const std::uint64_t size = real_tensor_data().size();
  const Patch patches[] = {
      {8, ~std::uint64_t{0}, "16: header: expected a flatbuffer inside the file's"},
      {16, size, "16: header: expected a flatbuffer inside the file's"},
      {16, ~std::uint64_t{0}, "16: header: expected a flatbuffer inside the file's"},
      {24, 16, "32: header: expected segments behind the flatbuffer"},
      {24, ~std::uint64_t{0}, "32: header: expected segments inside the file's"},
      {32, size, "32: header: expected segments inside the file's"},
  };
  const auto error_with = [](std::size_t at, auto value) {
    std::string file = real_tensor_data();
    put_at(file, at, value);
    return error_of(TensorDataFile::open(file_of(file)));
  };
  for (const Patch& patch : patches) {
    CAPTURE(patch.offset);
    CAPTURE(patch.value);
    CHECK(error_with(kHeader + patch.offset, patch.value) ==
          containing("kCorrupt: bad: offset " + patch.expected));
  }
  CHECK(error_with(kHeader + 4, std::uint32_t{39}) ==
        exactly("kCorrupt: bad: offset 12: header: expected a length of at least 40, found 39"));
  CHECK(error_with(kHeader, 'X') ==
        exactly("kCorrupt: bad: offset 8: header: expected the magic 'FH01', found 'XH01'"));
  CHECK(error_with(4, 'X') ==
        exactly("kCorrupt: bad: offset 4: expected the identifier of tensor data (FT01), found 'XT01'"));
}

TEST_CASE("a file without segments says that they begin at 0, or anywhere behind the flatbuffer") {
  TensorData data;
  const auto planned = plan(data);
  REQUIRE_MESSAGE(planned, planned.error().message);
  const auto bytes = source_of(*planned);
  REQUIRE_MESSAGE(bytes, bytes.error().message);
  std::string file = text_of(*bytes);
  for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{file.size()}}) {
    CAPTURE(base);
    put_at(file, kHeader + 24, base);
    CHECK(findings_of(file).ok());
  }
  put_at(file, kHeader + 24, std::uint64_t{1});
  CHECK(error_of(TensorDataFile::open(file_of(file))) == containing("segments behind the flatbuffer"));
}

TEST_CASE("a file cut anywhere, or with any byte changed, gives an error or findings and no fault") {
  const std::string whole = real_tensor_data();
  for (std::size_t n = 8; n < whole.size(); ++n) {
    const auto findings = verify(file_of(whole.substr(0, n)));
    CAPTURE(n);
    REQUIRE(findings);
    CHECK_FALSE(findings->ok());
    const std::string message = text("bad: offset 8: header: expected 40 bytes, found a file of {}\n", n);
    CHECK((lines_of(findings->errors) == message) == (n < 48));
  }
  const std::size_t metadata = TensorDataFile::open(file_of(whole))->flatbuffer_size();
  for (std::size_t i = 0; i < metadata; ++i) {
    std::string file = whole;
    file[i] = static_cast<char>(file[i] ^ 0x5a);
    const auto findings = verify(file_of(file));
    if (findings && findings->ok()) CHECK(inspect(file_of(file)));
  }
}

TEST_CASE("a segment outside the file is refused, and one that nothing names too far out is found") {
  std::string file = real_tensor_data();
  root_of(file)->mutable_segments()->GetMutableObject(3)->mutate_size(1 << 20);
  CHECK(errors_of(file) == containing("a segment inside the file's"));
  CHECK(error_of(TensorDataFile::open(file_of(file))->entries()) == containing("kCorrupt"));
  file = real_tensor_data();
  root_of(file)->mutable_segments()->GetMutableObject(2)->mutate_offset(8);
  CHECK(errors_of(file) == "");
  CHECK(exactly(lines_of(findings_of(file).warnings)) == containing("no segment before offset "));
  file = real_tensor_data();
  put_at(file, kHeader + 32, std::uint64_t{0});
  CHECK(errors_of(file) == "");
  const auto base = get_at<std::uint64_t>(file, kHeader + 24);
  auto* const last = root_of(file)->mutable_segments()->GetMutableObject(3);
  REQUIRE(last->mutate_size(base - last->offset()));
  CHECK(errors_of(file + std::string(base, '\0')) == "");
  REQUIRE(last->mutate_size(base - last->offset() + 1));
  CHECK(
      errors_of(file + std::string(base, '\0')) ==
      containing(text("expected a segment inside the {} bytes that the header announces, or ExecuTorch does "
                      "not load it, found its end at {}",
                      base, base + 1)));
  file = real_tensor_data();
  root_of(file)->mutable_named_data()->GetMutableObject(2)->mutate_segment_index(4);
  CHECK(error_of(TensorDataFile::open(file_of(file))->entries()) ==
        containing("expected a segment below 4, found 4"));
  CHECK(errors_of(file) == containing("expected NamedData.segment_index from 0 to below 4, found 4"));
}

TEST_CASE("what ExecuTorch would read too much of, or never find, is an error") {
  std::string file = real_tensor_data();
  auto* weight = root_of(file)->mutable_named_data()->GetMutableObject(0);
  weight->mutable_tensor_layout()->mutable_sizes()->Mutate(0, 4);
  CHECK(errors_of(file) == containing("data of the 64 bytes that its layout says, found a segment of 48"));
  weight->mutable_tensor_layout()->mutable_sizes()->Mutate(0, 2);
  CHECK(errors_of(file) == "");
  CHECK(exactly(lines_of(findings_of(file).warnings)) == containing("data of the 32 bytes"));
  weight->mutable_tensor_layout()->mutable_sizes()->Mutate(0, 3);
  weight->mutable_tensor_layout()->mutable_dim_order()->Mutate(0, 1);
  CHECK(errors_of(file) == containing("TensorLayout.dim_order that is a permutation"));
  file = real_tensor_data();
  file.replace(file.find("tied.weight"), 11, "conv.weight");
  CHECK(errors_of(file) == containing("expected each key once, found 'conv.weight'"));
  file = real_tensor_data();
  file[file.size() - 40] = 1;
  CHECK(errors_of(file) == "");
  CHECK(exactly(lines_of(findings_of(file).warnings)) == containing("zero, in the padding before a segment"));
}

/// Returns the file whose flatbuffer is `flatbuffer`, without segments' data.
std::string with_header(std::string flatbuffer) {
  constexpr std::size_t kPadded = 48;
  std::string header(kPadded, '\0');
  header.replace(0, 4, "FH01");
  put_at(header, 4, std::uint32_t{40});
  put_at(header, 8, std::uint64_t{kPadded});
  put_at(header, 16, std::uint64_t{flatbuffer.size()});
  put_at(header, 24, std::uint64_t{kPadded + flatbuffer.size()});
  flatbuffer.insert(kHeader, header);
  put_at(flatbuffer, 0, get_at<std::uint32_t>(flatbuffer, 0) + std::uint32_t{kPadded});
  return flatbuffer;
}

TEST_CASE("a file that lacks its lists, or a key, is one that ExecuTorch does not load") {
  flatbuffers::FlatBufferBuilder without;
  ft::FinishFlatTensorBuffer(without, ft::CreateFlatTensor(without, 1));
  const doctest::String errors = errors_of(with_header(finished(without)));
  CHECK(errors == containing("expected schema version 0, found 1"));
  CHECK(errors == containing("expected FlatTensor.segments, found none"));
  CHECK(errors == containing("expected FlatTensor.named_data, found none"));

  flatbuffers::FlatBufferBuilder keyless;
  const auto segment = ft::CreateDataSegment(keyless, std::uint64_t{0}, std::uint64_t{0});
  const auto segments = keyless.CreateVector(&segment, 1);
  const auto named = ft::CreateNamedData(keyless);
  ft::FinishFlatTensorBuffer(keyless,
                             ft::CreateFlatTensor(keyless, 0, segments, keyless.CreateVector(&named, 1)));
  CHECK(errors_of(with_header(finished(keyless))) == containing("expected NamedData.key, found none"));
}

}  // namespace
}  // namespace etstream::tensor_data_file_test
