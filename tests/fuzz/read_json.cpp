// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any text as the JSON of a program. The packed flatbuffer is sound, and its own JSON is packed
// to the same bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "etstream/sink.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/schema_packer.h"
#include "program_bfbs_generated.h"

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMostWritten = std::uint64_t{1} << 20;

template <class T>
T require(etstream::Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "FAILED: %s\n", result.error().message.c_str());
  std::abort();
}

const etstream::Schema& program_schema() {
  using Binary = etstream::program::ProgramBinarySchema;
  static const etstream::Schema schema =
      require(etstream::Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size()))));
  return schema;
}

etstream::Result<etstream::FilePlan> pack_json(std::span<const std::byte> json) {
  auto reader = etstream::read_json_values(program_schema(), etstream::ByteSource::memory(json), "");
  if (!reader) return std::move(reader).error();
  return etstream::pack(program_schema(), **reader);
}

Bytes written(const etstream::FilePlan& plan) {
  Bytes out;
  require(etstream::write(plan, *etstream::open_memory_sink(out)));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = pack_json(std::as_bytes(std::span(data, size)));
  // A range of a file may be of any size.
  if (!plan || plan->size > kMostWritten) return 0;
  const Bytes file = written(*plan);
  const auto view =
      require(etstream::FlatbufferView::open(program_schema(), etstream::ByteSource::memory(file), "packed"));
  if (!require(etstream::find_flaws_of_layout(view)).empty()) {
    std::fprintf(stderr, "FAILED: what was packed has flaws\n");
    std::abort();
  }
  Bytes json;
  require(etstream::write_json(view, {}, *etstream::open_memory_sink(json)));
  if (written(require(pack_json(json))) != file) {
    std::fprintf(stderr, "FAILED: JSON becomes other bytes\n");
    std::abort();
  }
  return 0;
}
