// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/sink.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/range_hasher.h"

namespace etstream {
namespace {

/// The bytes that are written between two calls of the progress function.
constexpr std::uint64_t kStep = std::uint64_t{16} << 20;

/// A source whose bytes are hashed while a sink reads them, which it does once and in order.
class Hashed final : public ByteStorage {
 public:
  /// `begin` is its offset in the file.
  Hashed(ByteSource source, std::uint64_t begin, RangeHasher& hasher)
      : source_(std::move(source)), begin_(begin), hasher_(hasher) {}

  std::uint64_t size() const noexcept override { return source_.size(); }
  std::string name() const override { return source_.name(); }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    source_.drop_pages(offset, size);
  }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (begin_ + offset != hasher_.position()) {
      return make_error(
          ErrorCode::kInvalidArgument,
          "{}: a sink read at {} of the file, expected it at {}: what is hashed is read once and in order",
          name(), begin_ + offset, hasher_.position());
    }
    ETSTREAM_TRY(source_.read_at(offset, out));
    hasher_.pass(out);
    return {};
  }

 private:
  const ByteSource source_;
  const std::uint64_t begin_;
  RangeHasher& hasher_;
};

class LayoutWriter {
 public:
  LayoutWriter(const FilePlan& plan, Sink& sink, const Progress& progress)
      : plan_(plan), sink_(sink), progress_(progress) {
    if (plan.trailer) hasher_.emplace(plan.trailer->hashed);
  }

  Result<void> run() {
    if (const auto file = sink_.changed_in_place()) ETSTREAM_TRY(check_apart(plan_, *file));
    for (const Extent& extent : plan_.extents) {
      const std::uint64_t size = sink_.clone_range(extent.source, extent.offset);
      if (size != 0) shared_.emplace_back(&extent, size);
    }
    ETSTREAM_TRY(sink_.reserve(plan_.size));
    auto shared = shared_.begin();
    for (const Extent& extent : plan_.extents) {
      const bool is_trailer = plan_.trailer && &extent == &plan_.extents.back();
      const bool is_shared = shared != shared_.end() && shared->first == &extent;
      const std::uint64_t done = is_shared ? (shared++)->second : 0;
      if (is_shared) ETSTREAM_TRY(skip(extent, done));
      ETSTREAM_TRY(is_trailer ? write_trailer(extent) : write_extent(extent, done));
    }
    return report(plan_.size);
  }

 private:
  /// Skips bytes that the sink has cloned, and reads them for their hash alone.
  Result<void> skip(const Extent& extent, std::uint64_t size) {
    const auto hash = [&](const ByteSource& step, std::uint64_t /*offset*/) {
      return read_pieces(step, [&](std::span<const std::byte> bytes) { hasher_->pass(bytes); });
    };
    if (hasher_) ETSTREAM_TRY(in_steps(extent, 0, size, hash));
    return sink_.skip(size);
  }

  Result<void> write_extent(const Extent& extent, std::uint64_t done) {
    ETSTREAM_TRY(in_steps(extent, done, extent.size(), [&](ByteSource step, std::uint64_t offset) {
      if (hasher_) step = ByteSource(std::make_shared<Hashed>(std::move(step), offset, *hasher_));
      return sink_.append(step);
    }));
    return extent.source.check_unchanged();
  }

  /// Gives `take` the part of the extent from `done` to `end`, with its offset in the file.
  template <class Take>
  Result<void> in_steps(const Extent& extent, std::uint64_t done, std::uint64_t end, const Take& take) {
    for (; done < end; done += std::min(kStep, end - done)) {
      ETSTREAM_TRY(report(extent.offset + done));
      ETSTREAM_ASSIGN(ByteSource step, extent.source.slice(done, std::min(kStep, end - done)));
      ETSTREAM_TRY(take(std::move(step), extent.offset + done));
    }
    return {};
  }

  Result<void> write_trailer(const Extent& extent) {
    ByteSource trailer = ByteSource::owned(plan_.trailer->bytes(hasher_->hashes()));
    if (trailer.size() != extent.size()) {
      return make_error(ErrorCode::kInvalidArgument, "the trailer has {} bytes, planned were {}",
                        trailer.size(), extent.size());
    }
    return sink_.append(trailer);
  }

  Result<void> report(std::uint64_t done) {
    if (!progress_ || progress_(done, plan_.size)) return {};
    return Error{ErrorCode::kInterrupted, "interrupted before all was written"};
  }

  const FilePlan& plan_;
  Sink& sink_;
  const Progress& progress_;
  std::optional<RangeHasher> hasher_;
  std::vector<std::pair<const Extent*, std::uint64_t>> shared_;  // how much from its start on, in file order
};

}  // namespace

Result<void> check_apart(const FilePlan& plan, const FileIdentity& file) {
  return without_exceptions([&]() -> Result<void> {
    for (const Extent& extent : plan.extents) {
      if (!extent.source.lies_in(file)) continue;
      return with_advice(make_error(ErrorCode::kInvalidArgument,
                                    "the output is the input {}, which would be read while it is written",
                                    quote(extent.source.name())),
                         {"give the output another name"});
    }
    return {};
  });
}

Result<void> write_uncommitted(const FilePlan& plan, Sink& sink, const Progress& progress) {
  return without_exceptions([&] { return LayoutWriter(plan, sink, progress).run(); });
}

Result<void> write(const FilePlan& plan, Sink& sink, const Progress& progress) {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_TRY(LayoutWriter(plan, sink, progress).run());
    return sink.commit();
  });
}

}  // namespace etstream
