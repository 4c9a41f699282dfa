// SPDX-License-Identifier: BSD-3-Clause
//
// The contents of real files, alone and as payloads of a fat container.
#include "etstream/inspect.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/base/text.h"
#include "etstream/bundled_program.h"
#include "etstream/fat_container.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_tensor_files.h"
#include "test_torch_files.h"

namespace etstream::file_contents_test {
namespace {

std::string real_tensor_data() { return content_of(kGoldenDir + "/tensor_data/expected.ptd"); }

std::string fat(const std::vector<FatContainer::Payload>& payloads) {
  FatContainer container;
  container.payloads = payloads;
  const auto planned = plan(container);
  REQUIRE_MESSAGE(planned, planned.error().message);
  return written(*planned);
}

std::vector<FileContent> contents_of(const std::string& file) {
  auto found = read_contents(file_of(file));
  REQUIRE_MESSAGE(found, found.error().message);
  return *std::move(found);
}

/// Returns whether the children of each content follow one another, from its beginning to its end.
bool fill_their_parents(const std::vector<FileContent>& contents) {
  for (std::size_t parent = 0; parent < contents.size(); ++parent) {
    std::uint64_t end = contents[parent].offset;
    bool has_children = false;
    for (std::size_t i = std::max<std::size_t>(parent + 1, 1); i < contents.size(); ++i) {
      if (contents[i].parent != parent) continue;
      if (contents[i].offset != end) return false;
      end += contents[i].size;
      has_children = true;
    }
    if (has_children && end != contents[parent].offset + contents[parent].size) return false;
  }
  return true;
}

TEST_CASE("every byte of a file belongs to one content that has no others in it") {
  for (const std::string& file : {real_program(), real_bundle(), real_tensor_data(),
                                  content_of(kGoldenDir + "/native_package/expected.ptn"),
                                  fat({{"a", file_of(real_program())}, {"b", file_of("xyz")}})}) {
    const auto contents = contents_of(file);
    CHECK(contents.size() > 3);
    CHECK(contents[0].offset == 0);
    CHECK(contents[0].size == file.size());
    CHECK(fill_their_parents(contents));
  }
  CHECK(error_of(read_contents(file_of("xyz"))) == containing("kUnsupported: bad"));
}

/// Returns a line for each: "PARENT KIND 'NAME' (DETAIL) OFFSET+SIZE", with the other names and the bytes of
/// an element where there are any.
std::string listing_of(const std::string& file) {
  std::string out;
  for (const FileContent& each : contents_of(file)) {
    out += text("{} {} {} ({}) {}+{}", each.parent, name_of(each.kind), quote(each.path), each.detail,
                each.offset, each.size);
    if (each.others != 0) out += text(" +{}", each.others);
    if (each.element_size != 0) out += text(" of {}", each.element_size);
    out += "\n";
  }
  return out;
}

TEST_CASE("the contents of a program are its tables, its segments and what is in them") {
  const std::string program = made::file({
      .constants = {{std::string(16, 'a'), {4}, "w"},
                    {std::string(6, 'b'), {3}, "", ScalarType::kInt16},
                    {std::string(16, 's'), {4}, "state", ScalarType::kFloat32, made::Place::kInitialState}},
      .named_data = {{"key", "12345"}, {"byte", "6"}},
      .delegates = {{"B", "inner"}, {"C", "x"}},
  });
  CHECK(listing_of(program) ==
        "0 container '' () 0+1665\n"
        "0 tables 'flatbuffer' () 0+1000\n"
        "0 padding '' () 1000+24\n"
        "0 container 'segments/0' (constants) 1024+22\n"
        "3 tensor 'constants/1' (w, float32 [4]) 1024+16 of 4\n"
        "3 tensor 'constants/2' (int16 [3]) 1040+6 of 2\n"
        "0 padding '' () 1046+106\n"
        "0 initial state 'initial/1' (state, float32 [4], segments/1) 1152+16 of 4\n"
        "0 padding '' () 1168+112\n"
        "0 delegate 'forward/delegate 0' (B, segments/2) 1280+5\n"
        "0 padding '' () 1285+123\n"
        "0 delegate 'forward/delegate 1' (C, segments/3) 1408+1\n"
        "0 padding '' () 1409+127\n"
        "0 named data 'named/key' (segments/4) 1536+5\n"
        "0 padding '' () 1541+123\n"
        "0 named data 'named/byte' (segments/5) 1664+1\n");
  const std::string data = made::tensor_data({{std::string(8, 'a'), {2}, "t"}, {"12345", {}, "no tensor"}});
  CHECK(listing_of(data) ==
        "0 container '' () 0+517\n"
        "0 tables 'flatbuffer' () 0+264\n"
        "0 padding '' () 264+120\n"
        "0 tensor 'named/t' (float32 [2], segments/0) 384+8 of 4\n"
        "0 padding '' () 392+120\n"
        "0 named data 'named/no tensor' (segments/1) 512+5\n");
}

TEST_CASE("a file without parts is a container, and one that is a part as a whole has that in it") {
  CHECK(listing_of(safetensors_file("{}", "")) == "0 container '' () 0+10\n");
  const std::string tables = made::file({.constants = {}});
  CHECK(listing_of(tables) ==
        text("0 container '' () 0+{0}\n0 tables 'flatbuffer' () 0+{0}\n", tables.size()));
}

TEST_CASE("tensors of checkpoints are contents, unless they are empty or scattered") {
  CHECK(listing_of(safetensors_file(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                                    R"("b":{"dtype":"F16","shape":[0],"data_offsets":[4,4]}})",
                                    "abcd")) ==
        "0 container '' () 0+119\n"
        "0 tables '' () 0+115\n"
        "0 tensor 'named/a' (float16 [2]) 115+4 of 2\n");
  using namespace pickled;  // NOLINT: the parts of a pickle
  const std::string storage_of_4 = storage("FloatStorage", "0", 4);
  const std::string torch =
      torch_file(whole(dict(pickled::text("all") + tensor(storage_of_4, 0, {4}, {1}) +
                            pickled::text("each second") + tensor(storage_of_4, 0, {2}, {2}))),
                 {{"data/0", std::string(16, 'x')}});
  const std::string listing = listing_of(torch);
  CHECK(exactly(listing) == containing("tensor 'named/all' (float32 [4])"));
  CHECK(listing.find("each second") == std::string::npos);
}

TEST_CASE("a file that changes while its contents are read is an error") {
  const TemporaryFolder folder;
  put_file(folder / "a.pte", real_program());
  const ByteSource file = ByteSource::file(folder / "a.pte").value();
  CHECK(read_contents(file));
  put_file(folder / "a.pte", real_program() + "x");
  CHECK(code_of(read_contents(file)) == exactly("kCorrupt"));
}

TEST_CASE("the contents of a bundle are its program and the tensors of its cases") {
  const auto bytes = [](const std::string& data) {
    return Tensor{ScalarType::kUInt8, {static_cast<std::int32_t>(data.size())}, {0}, source_of(data)};
  };
  BundledProgram bundle;
  bundle.program = ByteSource::zeros(1000);
  bundle.method_test_suites = {
      {"forward",
       {{{bytes("0123"), std::int64_t{1}, bytes("45")}, {bytes("6")}}, {{bytes("")}, {bytes("89")}}}}};
  const auto planned = plan(bundle, {.unchecked = true});
  REQUIRE_MESSAGE(planned, planned.error().message);
  CHECK(listing_of(written(*planned)) ==
        "0 container '' () 0+1536\n"
        "0 tables '' () 0+64\n"
        "0 data 'program' (not one that can be read) 64+1000\n"
        "0 tables '' () 1064+104\n"
        "0 test data 'cases/forward/1/expected output 0' (uint8 [2]) 1168+2 of 1\n"
        "0 tables '' () 1170+142\n"
        "0 test data 'cases/forward/0/expected output 0' (uint8 [1]) 1312+1 of 1\n"
        "0 tables '' () 1313+79\n"
        "0 test data 'cases/forward/0/input 2' (uint8 [2]) 1392+2 of 1\n"
        "0 tables '' () 1394+110\n"
        "0 test data 'cases/forward/0/input 0' (uint8 [4]) 1504+4 of 1\n"
        "0 tables '' () 1508+28\n");
}

TEST_CASE("a payload of a fat container has the contents of its file, and one in two names has them once") {
  const std::string program = real_program();
  const auto alone = contents_of(program);
  const std::string file =
      fat({{"first", file_of(program)}, {"again", file_of(program)}, {"b", file_of("x")}});
  const auto contents = contents_of(file);
  const auto payload = std::ranges::find(contents, program.size(), &FileContent::size);
  REQUIRE(payload != contents.end());
  CHECK(payload->others == 1);
  const auto count = [](const std::vector<FileContent>& all) {
    return std::ranges::count(all, ContentKind::kTensor, &FileContent::kind);
  };
  CHECK(count(alone) > 2);
  CHECK(count(contents) == count(alone));
  CHECK(count(contents_of(fat({{"one", file_of(program)}}))) == count(alone));
  const auto merged = [](const std::vector<FileContent>& all) {
    std::uint32_t out = 0;
    for (const FileContent& each : all) out += each.kind == ContentKind::kTensor ? each.others : 0;
    return out;
  };
  CHECK(merged(contents) == merged(alone));
  for (const FileContent& each : alone) {
    if (each.kind != ContentKind::kTensor) continue;
    CAPTURE(each.path);
    CHECK(std::ranges::find(contents, payload->offset + each.offset, &FileContent::offset) != contents.end());
  }
}

TEST_CASE("parts of a delegate's payload are contents") {
  const std::string payload = made_xnnpack::payload_of(made_xnnpack::empty_graph(), std::string(300, 'q'));
  const std::string file = made::file({.delegates = {{"XnnpackBackend", payload}}});
  const auto contents = contents_of(file);
  const auto part = std::ranges::find(contents, "forward/delegate 0/constants", &FileContent::path);
  REQUIRE(part != contents.end());
  CHECK(part->size == 300);
  CHECK(file.substr(part->offset, part->size) == std::string(300, 'q'));
}

TEST_CASE("a fat container in another, and a payload that is damaged, have no contents of their own") {
  const std::string inner = fat({{"program", file_of(real_program())}});
  const std::string damaged = real_program().substr(0, 3000);
  for (const std::string& payload : {inner, damaged}) {
    for (const FileContent& each : contents_of(fat({{"payload", file_of(payload)}}))) {
      CHECK(each.kind != ContentKind::kTensor);
    }
  }
}

}  // namespace
}  // namespace etstream::file_contents_test
