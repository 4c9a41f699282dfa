// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of reading the data of delegates, which say nothing about what is in it.
#include "formats/pte/backends/backend_payload.h"

#include <doctest/doctest.h>

#include <string>

#include "etstream/delegate_payloads.h"
#include "etstream/program.h"
#include "file_bytes.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream::data_requests_test {
namespace {

TEST_CASE("an error of reading the data of a delegate is passed on, as it is none of the data") {
  const std::string bytes = content_of(kGoldenDir + "/delegated_program/program.pte");
  // XNNPACK's header is where the data begins.
  const std::size_t data = bytes.find("XH00");
  REQUIRE(data != std::string::npos);
  const auto file =
      ByteSource::concatenation({source_of(bytes.substr(0, data)), failing(bytes.size() - data, 0)});
  REQUIRE(file);
  const auto program = ProgramFile::open(*file);
  REQUIRE_MESSAGE(program, program.error().message);
  CHECK(error_of(read_data_requests(program->model())) == "kIo: the disk is on fire");
  CHECK(error_of(read_delegate_payloads(*program)) == "kIo: the disk is on fire");
  CHECK(error_of(read_named_data_uses(*program)) == "kIo: the disk is on fire");
}

}  // namespace
}  // namespace etstream::data_requests_test
