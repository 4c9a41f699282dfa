// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/weight_sets.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "etstream/sink.h"
#include "etstream/tensor_data.h"
#include "etstream/verify.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::weight_sets_test {
namespace {

using Paths = std::vector<std::string>;

doctest::String names_of(const Result<std::vector<Checkpoint>>& found) {
  if (!found) return error_of(found);
  std::string out;
  for (const Checkpoint& each : *found) {
    for (const CheckpointTensor& tensor : each.tensors) out += tensor.name;
  }
  return exactly(out);
}

std::string one_tensor(const std::string& name, char data = '1') {
  return safetensors_file("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                          std::string(1, data));
}

/// Returns a .ptd file of one byte under each key, a letter.
std::string tensor_data(const std::string& keys) {
  TensorData data;
  for (const char key : keys) {
    data.entries.push_back({std::string(1, key), static_cast<std::uint32_t>(data.buffers.size()),
                            TensorLayout{ScalarType::kUInt8, {1}, {0}}});
    data.buffers.push_back({source_of("1")});
  }
  const auto planned = plan(data);
  REQUIRE_MESSAGE(planned, planned.error().message);
  const auto bytes = source_of(*planned);
  REQUIRE_MESSAGE(bytes, bytes.error().message);
  return text_of(*bytes);
}

/// A folder of files that are put into it.
class Folder {
 public:
  std::string put(const std::string& name, const std::string& content) const {
    put_file(folder_ / name, content);
    return folder_ / name;
  }
  std::string operator/(std::string_view name) const { return folder_ / name; }
  void remove(const std::string& name) const { std::filesystem::remove(folder_ / name); }

  /// Returns the names of all tensors of `files`, or the error.
  [[nodiscard]] doctest::String open(const Paths& files, bool partial = false) const {
    Paths paths;
    for (const std::string& file : files) paths.push_back(file.empty() ? folder_.path() : folder_ / file);
    return names_of(open_checkpoints(paths, {.partial = partial}));
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("the name of a file says which of how many it is") {
  struct Row {
    std::string path;
    std::uint32_t number;  // 0 for a name that says nothing
    std::uint32_t count;
    std::string third;
  };
  for (const Row& row : std::vector<Row>{
           {"w-00002-of-00003.ptd", 2, 3, "w-00003-of-00003.ptd"},
           {"./a/model-00001-of-000163.safetensors", 1, 163, "a/model-00003-of-000163.safetensors"},
           {"model-00001-of-00004.fp16.safetensors", 1, 4, "model-00003-of-00004.fp16.safetensors"},
           {"m_1-of-3.gguf", 1, 3, "m_3-of-3.gguf"},
           {"-9-of-19.gguf", 9, 19, "-3-of-19.gguf"},
           {"w--of-3.ptd", 0, 0, ""},
           {"w-00001-of-00001.ptd", 0, 0, ""},
           {"w-00004-of-00003.ptd", 0, 0, ""},
           {"w-1-of-3", 0, 0, ""},
           {"w-1234567890-of-1234567890.ptd", 0, 0, ""},
           {"00001-of-00002.ptd", 0, 0, ""},
           {"a-00001-of-00002.d/w.ptd", 0, 0, ""},
           {"", 0, 0, ""},
       }) {
    CAPTURE(row.path);
    const auto name = shard_name(row.path);
    REQUIRE(name.has_value() == (row.number != 0));
    if (!name) continue;
    CHECK(name->number == row.number);
    CHECK(name->count == row.count);
    CHECK(name->path_of(3) == row.third);
  }
}

TEST_CASE("GGUF files of one set say the same number of tensors") {
  // A file that does not say how many tensors there are is of no set that says so.
  const auto uncounted = [](std::uint64_t number) {
    std::string out = split_gguf(number, 2, 2);
    out.replace(out.find("split.tensors.count"), 19, "split.tensors.other");
    return out;
  };
  const Folder folder;
  folder.put("part1.gguf", uncounted(0));
  for (const std::uint64_t tensors : {1U, 2U}) {
    folder.put("part2.gguf", split_gguf(1, 2, tensors));
    CHECK(folder.open({"part1.gguf", "part2.gguf"}) ==
          containing("part1.gguf: is file 1 of 2 of a set, and file 2 is not given"));
  }
  folder.put("part2.gguf", uncounted(1));
  CHECK(folder.open({"part1.gguf", "part2.gguf"}) == "t0t1");
  // Counts differ in files whose names tell that they are of one set.
  const std::string first = folder.put("m-00001-of-00002.gguf", split_gguf(0, 2, 2));
  folder.put("m-00002-of-00002.gguf", uncounted(1));
  CHECK(folder.open({"m-00001-of-00002.gguf"}) ==
        containing("expected the split.tensors.count of " + first + ", 2, found 0"));
  folder.put("m-00001-of-00002.gguf", uncounted(0));
  folder.put("m-00002-of-00002.gguf", split_gguf(1, 2, 2));
  CHECK(folder.open({"m-00001-of-00002.gguf"}) ==
        containing("expected the split.tensors.count of " + first + ", 0, found 2"));
}

TEST_CASE("an error that is about no file is returned, and is no problem of a set") {
  const Folder folder;
  const auto interrupted = [&](const std::string& given, const std::string& name) {
    const OpenFile open_file = [&](const std::string& path) -> Result<ByteSource> {
      if (path.ends_with(name)) return Error{ErrorCode::kInterrupted, "not now"};
      return ByteSource::file(path);
    };
    return error_of(find_weights({folder / given}, {.open_file = open_file}));
  };
  std::filesystem::create_directory(folder / "several");
  folder.put("several/part1.gguf", split_gguf(0, 2, 2));
  folder.put("several/part2.gguf", split_gguf(1, 2, 2));
  folder.put("m-00001-of-00002.gguf", split_gguf(0, 2, 2));
  folder.put("m-00002-of-00002.gguf", split_gguf(1, 2, 2));
  folder.put("a.safetensors", one_tensor("a"));
  folder.put("i.index.json", R"({"weight_map": {"a": "a.safetensors"}})");
  CHECK(interrupted("several", "part2.gguf") == exactly("kInterrupted: not now"));
  CHECK(interrupted("m-00001-of-00002.gguf", "m-00002-of-00002.gguf") ==
        exactly("kInterrupted: " + folder / "m-00001-of-00002.gguf" +
                ": is file 1 of 2 of a set, and another can't be read: not now"));
  CHECK(interrupted("i.index.json", "a.safetensors") == exactly("kInterrupted: not now"));
  CHECK(interrupted("a.safetensors", "i.index.json") == exactly("kInterrupted: not now"));
}

TEST_CASE("a file whose folder can't be listed is of no index") {
  CHECK(error_of(open_checkpoints({"/gone/1"}, {.open_file = [](const std::string&) -> Result<ByteSource> {
                                    return source_of(one_tensor("a"));
                                  }})) == "no error");
}

// More of sets is in tests/cli/cases/knows_whole_sets.sh and tests/peer/test_sets.py.
TEST_CASE("the first shard of tensor data stands for all, also by a link, if all have data of their own") {
  const Folder folder;
  folder.put("w-00001-of-00002.ptd", tensor_data("ab"));
  folder.put("w-00002-of-00002.ptd", tensor_data("c"));
  std::filesystem::create_symlink(folder / "w-00001-of-00002.ptd", folder / "weights.ptd");
  CHECK(folder.open({"weights.ptd"}) == "abc");
  folder.remove("weights.ptd");
  folder.put("w-00002-of-00002.ptd", tensor_data(""));
  CHECK(folder.open({"w-00001-of-00002.ptd"}) ==
        containing("is file 2 of 2 of a set and has no data, expected some"));
  CHECK_FALSE(verify(folder / "w-00001-of-00002.ptd")->ok());
  // Errors in the first file itself are told once, and the set is not opened.
  const std::string whole = tensor_data("ab");
  folder.put("w-00001-of-00002.ptd", whole.substr(0, whole.size() - 1));
  CHECK(verify(folder / "w-00001-of-00002.ptd").value().errors.size() == 1);
}

TEST_CASE("shards may be numbered from 0") {
  const Folder folder;
  folder.put("m-00000-of-00002.safetensors", one_tensor("a"));
  folder.put("m-00001-of-00002.safetensors", one_tensor("b"));
  CHECK(folder.open({"m-00000-of-00002.safetensors", "m-00001-of-00002.safetensors"}) == "ab");
  CHECK(folder.open({"m-00001-of-00002.safetensors"}) ==
        containing("is file 2 of 2 of a set, and " + (folder / "m-00000-of-00002.safetensors")));
}

TEST_CASE("an index is complete if each file is there with the tensors that it lists") {
  const Folder folder;
  folder.put("a.safetensors", one_tensor("a"));
  folder.put("b.safetensors", one_tensor("b"));
  const auto index = [&](const std::string& size) {
    return folder.put("i.json", R"({"metadata": {"total_size": )" + size +
                                    R"(}, "weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})");
  };
  const auto verified = [](const std::string& path) {
    const auto found = verify(path);
    REQUIRE_MESSAGE(found, found.error().message);
    return doctest::String(found->ok() ? "ok" : found->errors.front().message.c_str());
  };
  CHECK(verified(index("2")) == "ok");
  CHECK(verified(index("2.0")) == "ok");
  CHECK(verified(index("-1")) == "ok");
  for (const std::string none : {"0", "0.0"}) {
    CHECK(verified(index(none)) ==
          containing("expected 0 bytes of tensors, as its total_size says, found 2"));
  }
  CHECK(verified(index("\"?\"")) == "ok");
  CHECK(verify(folder / "i.json")->files.size() == 3);
  // A number with a point counts as far as it has all integers.
  CHECK(verified(index("9007199254740992.0")) == containing("expected 9007199254740992 bytes of tensors"));
  CHECK(verified(index("9007199254740994.0")) == "ok");
  CHECK(folder.open({"i.json"}) == "ab");
  index("2");
  folder.put("b.safetensors", safetensors_file(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                               R"("c":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                               "12"));
  CHECK(verified(folder / "i.json") == "ok");
  CHECK(verify(folder / "i.json")->warnings.size() == 1);
  CHECK(folder.open({"i.json"}) == "abc");
}

TEST_CASE("each of several indexes has a hundred problems at most") {
  const Folder folder;
  folder.put("a.safetensors", one_tensor("a"));
  const auto index = [&](const std::string& name, int count, const std::string& file) {
    std::string map;
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      map +=
          text(R"({}"{}": "{}")", i == 0 ? "" : ", ", number, file.empty() ? number + ".safetensors" : file);
    }
    return folder.put(name, R"({"weight_map": {)" + map + "}}");
  };
  const auto found =
      find_weights({index("1.json", 1, ""), index("2.json", 120, ""), index("3.json", 120, "a.safetensors")});
  REQUIRE_MESSAGE(found, found.error().message);
  CHECK(found->problems.size() == 201);
}

}  // namespace
}  // namespace etstream::weight_sets_test
