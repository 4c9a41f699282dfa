// SPDX-License-Identifier: BSD-3-Clause
//
// WriterVersion: the releases whose output a file reproduces. The same content has different bytes in each:
// ExecuTorch moved from flatc to FlatBuffers' Python builder, which then changed how it shares vtables.
// Readers see no difference.
//
//   etstream::BundledProgramOptions options;
//   options.writer.release = etstream::executorch_release("1.3.1").value();
//   options.writer.vtables = etstream::vtable_sharing("25.2.10").value();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The releases of ExecuTorch whose output can be reproduced. Patch releases write the same bytes.
enum class ExecutorchRelease : std::uint8_t { k1_0, k1_1, k1_2, k1_3, k1_4, k1_5 };
/// The last of these.
inline constexpr ExecutorchRelease kLatestRelease = ExecutorchRelease::k1_5;

/// The tables with the same field offsets that share a vtable in the output of FlatBuffers' Python builder.
/// flatc always requires equal table sizes as well.
enum class VtableSharing : std::uint8_t {
  kOfEqualSize,  // only tables of equal size: from flatbuffers 25.12.19 on
  kOfAnySize,    // all, so that a vtable may give another size than the table has: all earlier versions
};

/// All of a writer's version that its bytes depend on.
struct WriterVersion {
  ExecutorchRelease release = kLatestRelease;
  VtableSharing vtables = VtableSharing::kOfEqualSize;

  bool operator==(const WriterVersion&) const = default;
};

/// Returns the release that a version such as "1.3", "1.3.1" or "1.5.0rc1" belongs to. Error:
/// kInvalidArgument for anything but a version from 1.0 to 1.5.
[[nodiscard]] ETSTREAM_EXPORT Result<ExecutorchRelease> executorch_release(std::string_view version);
/// Returns the release's number: "1.3"
[[nodiscard]] ETSTREAM_EXPORT std::string name_of(ExecutorchRelease release);

/// Returns how this version of the Python package flatbuffers, such as "25.2.10", shares vtables. Error:
/// kInvalidArgument for anything but a version.
[[nodiscard]] ETSTREAM_EXPORT Result<VtableSharing> vtable_sharing(std::string_view flatbuffers_version);

}  // namespace etstream
