// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/write.h"

#include <algorithm>

#include "base/try.h"

namespace etstream {
namespace {

/// How much is written between two calls of the progress function.
constexpr std::uint64_t kStep = std::uint64_t{16} << 20;

Result<void> write_extent(const Extent& extent, std::uint64_t total, Sink& sink, const Progress& progress) {
  for (std::uint64_t done = 0; done < extent.size();) {
    if (progress && !progress(extent.offset + done, total)) {
      return Error{ErrorCode::kInterrupted, "interrupted before all was written"};
    }
    const std::uint64_t n = std::min(kStep, extent.size() - done);
    ETSTREAM_ASSIGN(const ByteSource step, extent.source.slice(done, n));
    ETSTREAM_TRY(sink.append(step));
    done += n;
  }
  return extent.source.check_unchanged();
}

}  // namespace

Result<void> write(const Layout& layout, Sink& sink, const Progress& progress) {
  ETSTREAM_TRY(sink.reserve(layout.size));
  for (const Extent& extent : layout.extents) {
    ETSTREAM_TRY(write_extent(extent, layout.size, sink, progress));
  }
  if (progress && !progress(layout.size, layout.size)) {
    return Error{ErrorCode::kInterrupted, "interrupted before all was written"};
  }
  return sink.commit();
}

}  // namespace etstream
