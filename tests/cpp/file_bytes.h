// SPDX-License-Identifier: BSD-3-Clause
//
// Real files as bytes to patch, and the results of reading them.
#pragma once

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/verify.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_sources.h"
#include "written_plan.h"

namespace etstream {

/// Bytes that messages call "bad".
class NamedBytes final : public ByteStorage {
 public:
  explicit NamedBytes(std::string bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "bad"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  std::string bytes_;
};

inline ByteSource file_of(std::string bytes) {
  return ByteSource(std::make_shared<NamedBytes>(std::move(bytes)));
}

/// Returns a bundle of two methods; see tests/golden.
inline std::string real_bundle() {
  return content_of(kGoldenDir + "/sorted_suites_of_a_real_program/expected.bpte");
}
/// Returns a program with an extended header and a segment of constants.
inline std::string real_program() { return content_of(kExamplesDir + "/model.pte"); }

inline Findings findings_of(const ByteSource& file) {
  auto findings = verify(file);
  REQUIRE_MESSAGE(findings, findings.error().message);
  return std::move(findings).value();
}

inline Findings findings_of(std::string bytes) { return findings_of(file_of(std::move(bytes))); }

/// Returns the errors, or the warnings, a line each.
inline std::string lines_of(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& finding : findings) out += full_message(finding) + "\n";
  return out;
}

inline std::string written(const FilePlan& plan) {
  CHECK(std::ranges::all_of(plan.extents, testing::is_aligned));
  std::vector<std::byte> out;
  const auto done = write(plan, *open_memory_sink(out));
  REQUIRE_MESSAGE(done, done.error().message);
  return text_of(out);
}

inline std::string finished(const flatbuffers::FlatBufferBuilder& builder) {
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

template <class T>
T get_at(const std::string& file, std::size_t position) {
  REQUIRE(position + sizeof(T) <= file.size());
  T out{};
  std::memcpy(&out, file.data() + position, sizeof(T));
  return out;
}

template <class T>
void put_at(std::string& file, std::size_t position, T value) {
  REQUIRE(position + sizeof(T) <= file.size());
  std::memcpy(file.data() + position, &value, sizeof(T));
}

/// Returns the position of `object`, a table or a vector that FlatBuffers found in `file`.
inline std::size_t position_of(const std::string& file, const void* object) {
  const auto position = static_cast<const char*>(object) - file.data();
  REQUIRE(position > 0);
  return static_cast<std::size_t>(position);
}

inline std::size_t vtable_of(const std::string& file, std::size_t table) {
  return table - static_cast<std::size_t>(std::int64_t{get_at<std::int32_t>(file, table)});
}

/// Returns the position of a field in its table; `slot` is a VT_ constant of the generated code.
inline std::size_t field_of(const std::string& file, std::size_t table, std::size_t slot) {
  const auto offset = get_at<std::uint16_t>(file, vtable_of(file, table) + slot);
  REQUIRE(offset != 0);
  return table + offset;
}

}  // namespace etstream
