// SPDX-License-Identifier: BSD-3-Clause
//
// A bundle and a program, cut at every byte, and with bits of their metadata flipped. FlatBuffers' own
// Verifier is the judge. verify() is stricter on purpose in these cases:
// - a union's type must be one that the schema has, and have a value;
// - what the bytes mean must make sense: indices, shapes, methods, versions.
// It warns of bytes between objects, and of objects that lie on each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "bundled_program_generated.h"
#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "file_bytes.h"
#include "formats/pte/program_model.h"
#include "program_generated.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "used_bytes.h"

namespace etstream::truncation_and_flips_test {
namespace {

/// Returns the error with which verify() refuses the bytes, or what it finds.
Findings found_in(const std::string& bytes) {
  auto findings = verify(file_of(bytes));
  if (findings) return std::move(findings).value();
  return {.errors = {Finding("unsupported: " + findings.error().message)}, .warnings = {}};
}

/// Returns the first error; "" if verify() accepts the bytes.
std::string first_error(const std::string& bytes) {
  const Findings findings = found_in(bytes);
  return findings.ok() ? "" : findings.errors[0].message;
}

flatbuffers::Verifier verifier_of(const std::string& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

bool flatbuffers_takes_program(const std::string& flatbuffer) {
  auto verifier = verifier_of(flatbuffer);
  return program::VerifyProgramBuffer(verifier);
}

bool flatbuffers_takes_bundle(const std::string& file) {
  auto verifier = verifier_of(file);
  return bundled_program::VerifyBundledProgramBuffer(verifier);
}

/// Returns the rule by which verify() is stricter than FlatBuffers, from its message.
std::string reason_of(const std::string& error) {
  for (const char* known : {"a known type of the union", "a value of the union", "extended header"}) {
    if (error.find(known) != std::string::npos) return known;
  }
  return "meaning";
}

struct Tally {
  int accepted = 0;
  int padding = 0;                      // flips of it, all found
  int warned = 0;                       // of others that were accepted
  std::map<std::string, int> stricter;  // refused by verify() alone, by reason
};

/// Flips bits of the bytes for which `is_metadata`. `flatbuffers_takes` tells what FlatBuffers says of a
/// file, and `readable` what must hold if verify() accepts it.
Tally flip_all(const std::string& file, const std::vector<bool>& is_metadata, const std::vector<bool>& used,
               const std::function<bool(const std::string&)>& flatbuffers_takes,
               const std::function<bool(const std::string&)>& readable) {
  Tally tally;
  std::string flipped = file;
  const std::size_t usual = found_in(file).warnings.size();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (unsigned bit = 0; is_metadata[i] && bit < 8; ++bit) {
      if (!testing::is_tried(8 * i + bit)) continue;
      flipped[i] = static_cast<char>(file[i] ^ (1 << bit));
      const Findings findings = found_in(flipped);
      const std::string error = findings.ok() ? "" : findings.errors[0].message;
      const bool warned = findings.warnings.size() > usual;
      const bool taken = flatbuffers_takes(flipped);
      tally.accepted += error.empty() ? 1 : 0;
      tally.padding += used[i] ? 0 : 1;
      if (taken && !error.empty()) ++tally.stricter[reason_of(error)];
      const bool says_where = error.find("bad: ") != error.npos || error.starts_with("method '");
      const bool fine = error.empty() ? taken && (used[i] || warned) && readable(flipped) : says_where;
      tally.warned += error.empty() && used[i] && warned ? 1 : 0;
      if (!fine) FAIL_CHECK("byte " << i << " bit " << bit << ": " << error << ", FlatBuffers " << taken);
    }
    flipped[i] = file[i];
  }
  return tally;
}

void report(const Tally& tally) {
  MESSAGE("accepted " << tally.accepted << ", of which with a warning " << tally.warned << ", padding "
                      << tally.padding);
  for (const auto& [reason, count] : tally.stricter) MESSAGE(reason << ": " << count);
}

TEST_CASE("the unspoilt files are accepted, by FlatBuffers too") {
  CHECK(first_error(real_bundle()).empty());
  CHECK(first_error(real_program()).empty());
  CHECK(flatbuffers_takes_bundle(real_bundle()));
  CHECK(flatbuffers_takes_program(real_program()));
}

/// Checks that `file` is refused when it is cut to any size below `whole`, with a message that begins with
/// its name.
void check_cuts(const std::string& file, std::size_t whole) {
  for (std::size_t size = 0; size < whole; ++size) {
    const std::string error = first_error(file.substr(0, size));
    const std::string expected = size < 8 ? "unsupported: bad: is " : "bad: ";
    if (!error.starts_with(expected)) FAIL_CHECK("cut to " << size << ": '" << error << "'");
  }
}

TEST_CASE("a bundle that is cut anywhere is refused, unless all that is cut is padding at its end") {
  const std::string file = real_bundle();
  const std::vector<bool> used = used_bytes(file, "bundled_program.fbs");
  const auto end = std::find(used.rbegin(), used.rend(), true).base();
  const auto whole = static_cast<std::size_t>(end - used.begin());
  CHECK(file.size() - whole == 2);  // after the two bytes that pad the name 'count'
  check_cuts(file, whole);
}

TEST_CASE("a program that is cut anywhere is refused") { check_cuts(real_program(), real_program().size()); }

TEST_CASE("a bit that flips in a bundle's metadata is found, or leaves a bundle that FlatBuffers takes too") {
  const std::string file = real_bundle();
  const auto inspection = inspect(file_of(file));
  REQUIRE(inspection);
  std::vector<bool> is_metadata(file.size(), true);
  for (const FilePart& part : inspection->parts) {
    for (std::uint64_t i = 0; i < part.size; ++i) is_metadata[part.offset + i] = false;
  }
  const auto readable = [](const std::string& bytes) {
    const auto opened = BundledProgramFile::open(file_of(bytes));
    return opened && opened->read();
  };
  Tally tally = flip_all(file, is_metadata, used_bytes(file, "bundled_program.fbs"), flatbuffers_takes_bundle,
                         readable);
  report(tally);
  CHECK(tally.accepted > 0);
  CHECK(tally.padding > 0);
  CHECK(tally.warned > 0);
  CHECK(tally.stricter["a known type of the union"] > 0);
  CHECK(tally.stricter["meaning"] > 0);
}

TEST_CASE(
    "a bit that flips in a program's metadata is found, or leaves a program that FlatBuffers takes too") {
  const std::string file = real_program();
  const auto opened = ProgramFile::open(file_of(file));
  REQUIRE(opened);
  const std::uint64_t end = opened->flatbuffer_size();
  std::vector<bool> is_metadata(file.size(), false);
  std::fill_n(is_metadata.begin(), opened->model().header().segment_base_offset, true);
  std::vector<bool> used = used_bytes(file.substr(0, end), "program.fbs");
  std::fill_n(used.begin() + 8, opened->model().header().length, true);
  used.resize(file.size(), false);
  const auto flatbuffers_takes = [&](const std::string& bytes) {
    const auto reopened = ProgramFile::open(file_of(bytes));
    return flatbuffers_takes_program(bytes.substr(0, reopened ? reopened->flatbuffer_size() : end));
  };
  const auto readable = [](const std::string& bytes) {
    const auto reopened = ProgramFile::open(file_of(bytes));
    return reopened && reopened->methods() && reopened->segments() && inspect(file_of(bytes));
  };
  Tally tally = flip_all(file, is_metadata, used, flatbuffers_takes, readable);
  report(tally);
  CHECK(tally.accepted > 0);
  CHECK(tally.padding > 0);
  CHECK(tally.warned > 0);
  CHECK(tally.stricter["a known type of the union"] > 0);
  CHECK(tally.stricter["extended header"] > 0);
  CHECK(tally.stricter["meaning"] > 0);
}

}  // namespace
}  // namespace etstream::truncation_and_flips_test
