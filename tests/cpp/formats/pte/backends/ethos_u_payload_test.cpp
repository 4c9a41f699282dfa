// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <doctest/doctest.h>

#include <array>
#include <initializer_list>
#include <string>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::ethos_u_payload_test {
namespace {

std::string number(std::int32_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

std::string numbers(std::initializer_list<std::int32_t> values) {
  std::string out;
  for (const std::int32_t each : values) out += number(each);
  return out;
}

std::string block(std::string name, const std::string& data, char is_external = 0) {
  name.resize(16);
  std::string out =
      name + number(static_cast<std::int32_t>(data.size())) + is_external + std::string(11, '\0') + data;
  return out + std::string((16 - data.size() % 16) % 16, '\0');
}

const std::string kBegin = block("vela_bin_stream", "");
const std::string kEnd = block("vela_end_stream", "");

Result<EthosUPayload> read(const std::string& blocks) {
  return read_ethos_u(source_of(kBegin + blocks + kEnd), "payload");
}

TEST_CASE("a stream tells its sizes, its inputs and outputs, and its blocks") {
  const std::string inputs =
      numbers({2, 1, 1, 1, 3, 8, 8, 1, 16, 1, 1, 1, 1, 1, 1, 10, 4, 208, 1});  // as the compiler writes them
  const auto stream =
      read(block("cmd_data", "COP1....") + block("weight_data", std::string(33, 'w')) +
           block("scratch_size", number(896)) + block("inputs", inputs) + block("outputs", number(0)));
  REQUIRE_MESSAGE(stream, stream.error().message);
  CHECK(stream->command_size == 8U);
  CHECK(stream->weight_size == 33U);
  CHECK(stream->scratch_size == 896U);
  REQUIRE(stream->inputs.size() == 2);
  CHECK(stream->inputs[0].shape == std::array{1, 1, 1, 3, 8, 8});
  CHECK(stream->inputs[1].element_size == 4);
  CHECK(stream->inputs[1].offset == 208);
  CHECK(stream->inputs[1].region == 1);
  CHECK(stream->outputs.empty());
  REQUIRE(stream->blocks.size() == 7);
  CHECK(stream->blocks[2].name == "weight_data");
  CHECK(stream->blocks[2].offset == 32 + 32 + 16 + 32);
  CHECK(stream->blocks[2].size == 33);
  CHECK(stream->blocks[2].key.empty());
}

TEST_CASE("a block may be named data, and the last of a name counts") {
  const std::string key(64, 'a');
  const auto stream =
      read(block("weight_data", "w") + block("weight_data", key, 1) + block("scratch_size", number(1)) +
           block("scratch_size", number(2)) + block("cmd_data", key, 1) + block("outputs", key, 1));
  REQUIRE_MESSAGE(stream, stream.error().message);
  CHECK_FALSE(stream->weight_size);
  CHECK_FALSE(stream->command_size);
  CHECK(stream->scratch_size == 2U);
  CHECK(stream->blocks[2].key == key);
  CHECK_FALSE(read(block("scratch_size", number(1)) + block("scratch_size", key, 1))->scratch_size);
}

TEST_CASE("damaged streams are errors that say where") {
  const auto error = [](const std::string& blocks) { return error_of(read(blocks)); };
  const auto error_in = [](const std::string& stream) {
    return error_of(read_ethos_u(source_of(stream), "payload"));
  };
  CHECK(error_in(kBegin) ==
        exactly("kCorrupt: payload: offset 32: expected the block vela_end_stream, found the end"));
  CHECK(error_in(kBegin + kEnd.substr(0, 31)) ==
        exactly("kCorrupt: payload: offset 32: expected a block's header of 32 bytes, found 31"));
  CHECK(error_in(kBegin + kEnd + kEnd) == containing("offset 64: expected the end, found 32 bytes"));
  CHECK(error(kBegin) == containing("offset 32: expected vela_bin_stream as the first block"));
  CHECK(error(block("scratch", "")) == containing("offset 32: expected a block that ExecuTorch reads"));
  CHECK(error(block("weight_data", "short", 1)) ==
        containing("offset 48: expected a key of 64 bytes, found"));
  CHECK(error(block("cmd_data", "COP3")) == containing("offset 64: expected commands that begin with COP1"));
  CHECK(error(block("cmd_data", "COP")) ==
        containing("offset 48: expected 4 bytes or more in block cmd_data"));
  CHECK(error(block("scratch_size", "abc")) == containing("offset 48: expected 4 bytes or more"));
  CHECK(error(block("inputs", "abc")) == containing("offset 48: expected 4 bytes or more"));
  CHECK(error(block("inputs", number(-1))) == containing("offset 64: expected 0 to 32768 inputs, found -1"));
  CHECK(error(block("outputs", number(32768))) ==
        containing("expected 1179652 bytes or more in block outputs"));
  CHECK(error(block("outputs", number(32769))) == containing("found 32769"));
  CHECK(error(block("outputs", numbers({1, 1, 1, 1, 1, 1, 1, 1, 1}))) ==
        containing("offset 48: expected 40 bytes or more in block outputs, found 36"));
  // The data is there, its padding is not.
  std::string cut = kBegin + block("weight_data", "w");
  cut.pop_back();
  CHECK(error_in(cut) == containing("offset 48: expected a block inside 79 bytes, found one of 1"));
  std::string many;
  for (int i = 0; i < 1 << 14; ++i) many += block("weight_data", "");
  CHECK(error(many) == containing("expected at most 16384 blocks"));
}

}  // namespace
}  // namespace etstream::ethos_u_payload_test
