// SPDX-License-Identifier: BSD-3-Clause
//
// The contents of real files, alone and as payloads of a fat container.
#include "etstream/file_contents.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "etstream/fat_container.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "test_errors.h"

namespace etstream::file_contents_test {
namespace {

std::string real_tensor_data() { return content_of(ETSTREAM_GOLDEN_DIR "/tensor_data/expected.ptd"); }

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
                                  fat({{"a", file_of(real_program())}, {"b", file_of("xyz")}})}) {
    const auto contents = contents_of(file);
    CHECK(contents.size() > 3);
    CHECK(contents[0].offset == 0);
    CHECK(contents[0].size == file.size());
    CHECK(fill_their_parents(contents));
  }
  CHECK(error_of(read_contents(file_of("xyz"))) == containing("kUnsupported: bad"));
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
  for (const FileContent& each : alone) {
    if (each.kind != ContentKind::kTensor) continue;
    CAPTURE(each.name);
    CHECK(std::ranges::find(contents, payload->offset + each.offset, &FileContent::offset) != contents.end());
  }
}

TEST_CASE("parts of a delegate's payload are contents") {
  // QNN's header has a magic number, a signature and the size of what is behind it.
  std::string payload(256, '\0');
  put_at(payload, 0, std::uint32_t{0x5678ABCD});
  put_at(payload, 12, std::uint64_t{300});
  payload += std::string(300, 'q');
  const std::string file = made::file({.delegates = {{"QnnBackend", payload}}});
  const auto contents = contents_of(file);
  const auto part = std::ranges::find(contents, "forward / delegate 0 / context_binary", &FileContent::name);
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
