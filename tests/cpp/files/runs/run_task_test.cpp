// SPDX-License-Identifier: BSD-3-Clause
#include "files/runs/run_task.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/text.h"
#include "files/runs/unnamed_file_posix.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::run_task_test {
namespace {

using End = MethodRun::End;

Tensor bytes(ByteSource data) {
  const auto size = static_cast<std::int32_t>(data.size());
  return {ScalarType::kUInt8, {size}, {0}, std::move(data)};
}

TEST_CASE("a method runs on zeros, ones and random numbers, and once if it takes no tensors") {
  const TensorInfo tensor{ScalarType::kFloat32, {2, 3}, {1, 0}};
  const std::vector<ValueInfo> others = {std::int64_t{7}, true, 0.5, OtherInfo{"Null"}, OtherInfo{"String"}};
  MethodInfo method{"forward", others, {}};
  const std::string given = R"(7,true,{"double":"0x1p-1"},null,{"kind":"String"}])";
  const auto told = [&] {
    std::string out;
    for (const RunTask& each : tasks_of(method, 9)) {
      CHECK(each.expected.empty());
      out += each.method + "|" + each.inputs_name + "|" + each.inputs + "|" + each.fill + "\n";
    }
    return out;
  };
  CHECK(told() == "forward|no tensors|[" + given + "|\n");
  method.inputs.insert(method.inputs.begin(), tensor);
  const std::string all = R"([{"dim_order":[1,0],"dtype":"float32","sizes":[2,3]},)" + given;
  CHECK(told() == "forward|zeros|" + all + "|zeros\nforward|ones|" + all + "|ones\nforward|random (seed 9)|" +
                      all + "|random\n");
}

TEST_CASE("tokens whose number may change are one where that is tried first") {
  TensorInfo tokens{ScalarType::kInt64, {1, 8}, {0, 1}};
  CHECK(tasks_of({"forward", {tokens}, {}}, 9)[0].shortest.empty());
  tokens.dynamism = ShapeDynamism::kDynamicBound;
  CHECK(tasks_of({"forward", {tokens}, {}}, 9)[0].shortest ==
        R"([{"dim_order":[0,1],"dtype":"int64","sizes":[1,1]}])");
}

TEST_CASE("a test case gives its inputs by their places in the bundle, which has their bytes") {
  const ByteSource file = source_of("abcdef");
  const MethodTestCase test_case{
      {bytes(file.slice(4, 1).value()), bytes(ByteSource()), std::monostate(), std::int64_t{-3}, false, -1.5},
      {true}};
  const auto task = task_of("forward", 2, test_case, file);
  REQUIRE_MESSAGE(task, task.error().message);
  CHECK(task->inputs_name == "test case 2");
  CHECK(task->fill.empty());
  CHECK(task->expected.size() == 1);
  CHECK(task->inputs == R"([{"dim_order":[0],"dtype":"uint8","offset":4,"size":1,"sizes":[1]},)"
                        R"({"dim_order":[0],"dtype":"uint8","offset":0,"size":0,"sizes":[0]},)"
                        R"(null,-3,false,{"double":"-0x1.8p+0"}])");
  CHECK(error_of(task_of("forward", 0, {{bytes(source_of("a"))}, {}}, file)) ==
        exactly("kUnsupported: a test tensor is not in the bundle's file"));
}

TEST_CASE("outputs of each kind are compared with the expected ones") {
  const Descriptor outputs = make_unnamed_file().value();
  REQUIRE(copy_to(outputs.get(), source_of("abcd")));
  RunTask task{"forward", "test case 0", "", "", {}};
  const std::string tensor = R"({"dtype":"uint8","sizes":[2],"offset":1,"size":2})";
  const std::pair<std::string, Value> rows[] = {
      {"null", std::monostate()},       {"true", true},
      {"5", std::int64_t{5}},           {R"({"double":"0x1.8p+1"})", 3.0},
      {tensor, bytes(source_of("bc"))}, {tensor, std::int64_t{1}},
      {R"({"other":"list"})", true},    {R"({"dtype":"quaternion"})", true},
  };
  std::string list;
  for (const auto& [told, value] : rows) {
    list += (list.empty() ? "" : ",") + told;
    task.expected.push_back(value);
  }
  const auto answered = [&](const std::string& line) { return read_answer(line, task, outputs.get(), {}); };
  const auto answer = answered(R"({"end":"ok","outputs":[)" + list + "]}");
  REQUIRE_MESSAGE(answer, answer.error().message);
  CHECK(answer->run.end == End::kOtherOutputs);
  std::string problems;
  for (const OutputRun& each : answer->run.outputs) problems += (each.ok() ? "ok" : each.problem) + "\n";
  CHECK(problems ==
        "ok\nok\nok\nok\nok\nis a tensor, expected an integer\nis a 'list', which no test case can hold\n"
        "is of the unknown dtype 'quaternion'\n");
  CHECK(answered(R"({"end":"ok","outputs":[1]})")->run.reason == "1 output, expected 8");
  task.expected = {bytes(source_of("cde"))};
  CHECK(error_of(answered(R"({"end":"ok","outputs":[{"dtype":"uint8","sizes":[3],"offset":2,"size":3}]})")) ==
        exactly("kIo: the outputs of a run: expected 3 bytes, found 2"));
}

TEST_CASE("an answer tells how a run ended, where and why") {
  const auto told = [](const std::string& line) {
    const auto answer = read_answer(line, {"forward", "ones", "", "", {}}, -1, {});
    if (!answer) return std::string(error_of(answer).c_str());
    std::string out = summary(answer->run);
    if (answer->failed_at) out += text(" at {}, {}", answer->failed_at->first, answer->failed_at->second);
    return out;
  };
  CHECK(told(R"({"end":"ok"})") == "forward, ones: ok");
  CHECK(told(R"({"end":"refused","error":1,"said":"x","failed_at":[2,3]})") ==
        "forward, ones: refused: ExecuTorch says Internal (0x01) at 2, 3");
  CHECK(told(R"({"end":"refused","said":"x"})") == "forward, ones: failed: x");
  const std::string after_loading = R"({"end":"refused","error":18,"loaded":true})";
  const auto end_on = [&](const std::string& fill) {
    return read_answer(after_loading, {"forward", "", "", fill, {}}, -1, {})->run.end;
  };
  CHECK(end_on("ones") == End::kInputsRefused);
  CHECK(end_on("") == End::kRefused);  // of a test case
  CHECK(told(R"({"end":"signal","signal":"SIGBUS","reason":"y","said":"x"})") ==
        "forward, ones: ended by SIGBUS: y");
  CHECK(told(R"({"end":"not_run","outputs":[]})") == "forward, ones: not run");
  for (const std::string line : {"", "1", "{}", "[1]", R"({"end":"other_outputs"})"}) {
    CHECK(told(line) == "kIo: no answer of the process that runs the program: '" + line + "'");
  }
}

std::uint64_t inode_of(int descriptor) {
  struct stat found {};
  REQUIRE(::fstat(descriptor, &found) == 0);
  return found.st_ino;
}

TEST_CASE("a whole file is given as it is, and a part of one in a file of its own") {
  const TemporaryFolder folder;
  put_file(folder / "file", "abcdef");
  const ByteSource whole = ByteSource::file(folder / "file").value();
  const Descriptor opened(whole.open_range()->descriptor);
  const std::uint64_t inode = inode_of(opened.get());
  CHECK(inode_of(as_file(whole)->get()) == inode);
  for (const auto& [offset, size] : {std::pair(0U, 3U), std::pair(2U, 4U)}) {
    const ByteSource part = whole.slice(offset, size).value();
    const auto copy = as_file(part);
    REQUIRE_MESSAGE(copy, copy.error().message);
    CHECK(inode_of(copy->get()) != inode);
    CHECK(text_of(source_of_descriptor(copy->get(), 0, size)) == text_of(part));
  }
  CHECK(code_of(as_file(failing(10, 5))) == "kIo");
}

TEST_CASE("a number takes the place of four bytes, and a file that can't be written is an error") {
  const TemporaryFolder folder;
  const Descriptor file = make_unnamed_file().value();
  REQUIRE(copy_to(file.get(), source_of("0123456789")));
  REQUIRE(put_uint32(file.get(), 3, 0x81C2A3E7));
  const ByteSource written = source_of_descriptor(file.get(), 1, 8);
  CHECK(text_of(written) ==
        "12\xE7\xA3\xC2\x81"
        "78");
  CHECK(text_of(written.slice(6, 2).value()) == "78");
  CHECK(error_of(put_uint32(-1, 0, 1)) ==
        exactly("kIo: cannot write 'a copy of the program': Bad file descriptor"));
}

TEST_CASE("files without a name lie in TMPDIR, or in /var/tmp") {
  const TemporaryFolder folder;
  const char* const before = std::getenv("TMPDIR");
  const std::string was = before != nullptr ? before : "";
  ::setenv("TMPDIR", (folder / "none").c_str(), 1);
  const doctest::String refused = error_of(make_unnamed_file());
  ::setenv("TMPDIR", "", 1);
  CHECK(make_unnamed_file());
  ::unsetenv("TMPDIR");
  CHECK(make_unnamed_file());
  if (before != nullptr) ::setenv("TMPDIR", was.c_str(), 1);
  CHECK(refused == exactly("kNotFound: cannot make a temporary file in '" + (folder / "none") +
                           "': No such file or directory"));
  CHECK(folder.names().empty());
}

}  // namespace
}  // namespace etstream::run_task_test
