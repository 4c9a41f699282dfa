// SPDX-License-Identifier: BSD-3-Clause
//
// WriterVersion: which releases a file is written as. The same content has other bytes in each: ExecuTorch
// moved from flatc to FlatBuffers' Python builder, and that changed how it shares vtables. All of them read
// alike.
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

/// The releases of ExecuTorch that files are written as. Patch releases write alike.
enum class ExecutorchRelease : std::uint8_t { k1_0, k1_1, k1_2, k1_3, k1_4, k1_5 };
inline constexpr ExecutorchRelease kLatestRelease = ExecutorchRelease::k1_5;

/// Which tables whose fields lie alike share a vtable in what FlatBuffers' Python builder makes. flatc's
/// always need equal sizes.
enum class VtableSharing : std::uint8_t {
  kOfEqualSize,  // those that are also of equal size: from flatbuffers 25.12.19 on
  kOfAnySize,    // all, so that a vtable may declare another size than a table has: all releases before
};

struct WriterVersion {
  ExecutorchRelease release = kLatestRelease;
  VtableSharing vtables = VtableSharing::kOfEqualSize;

  bool operator==(const WriterVersion&) const = default;
};

/// The release that a version, such as "1.3", "1.3.1" or "1.5.0rc1", belongs to. Error: kInvalidArgument for
/// what is no version from 1.0 to 1.5.
[[nodiscard]] ETSTREAM_EXPORT Result<ExecutorchRelease> executorch_release(std::string_view version);
/// "1.3"
[[nodiscard]] ETSTREAM_EXPORT std::string name_of(ExecutorchRelease release);

/// How the Python package flatbuffers of this version, such as "25.2.10", shares vtables. Error:
/// kInvalidArgument for what is no version.
[[nodiscard]] ETSTREAM_EXPORT Result<VtableSharing> vtable_sharing(std::string_view flatbuffers_version);

}  // namespace etstream
