// SPDX-License-Identifier: BSD-3-Clause
#include "core/packed/piece_coder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
// The parameter that has literals coded at negative levels is in this part of the header.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/packed/arrangements.h"

namespace etstream::packed {
namespace {

/// A plane that would not get smaller than this part of its size is stored: it is then read faster.
constexpr double kLeastGain = 0.97;

/// A plane of which more than this part is zero is sparse: the entropy coder takes a bit for each byte, which
/// is more than a zero is worth then.
constexpr double kLeastZeros = 0.6;

/// The level of zstd with a search for matches.
constexpr int kMatchLevel = 3;
/// The level at which the search takes steps so large that it takes no time.
constexpr int kEntropyLevel = -1000;

/// The search for matches in a window of the base. At 10 MB/s it is thorough, as an update is made once.
constexpr ZSTD_compressionParameters kWindowSearch{21, 17, 16, 1, 3, 16, ZSTD_btopt};

/// The bytes of a piece that are looked at, in so many places.
constexpr std::size_t kSample = std::size_t{32} << 10;
constexpr std::size_t kSamplePlaces = 4;

/// The most bytes in a block of a zstd frame.
constexpr std::size_t kBlock = std::size_t{128} << 10;

enum class Method { kStored, kEntropy, kMatches };

/// Counts how often each byte occurs.
class Counts {
 public:
  void add(std::uint8_t byte) noexcept { ++counts_[byte]; }
  Counts& operator+=(const Counts& other) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    return *this;
  }
  [[nodiscard]] double bytes() const noexcept {
    return static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}));
  }
  [[nodiscard]] double zeros() const noexcept { return counts_[0]; }
  /// Returns the bytes that an entropy coder needs for these.
  [[nodiscard]] double coded_bytes() const noexcept {
    const double all = bytes();
    double bits = 0;
    for (const std::uint32_t count : counts_) {
      if (count != 0) bits += count * std::log2(all / count);
    }
    return bits / 8;
  }

 private:
  std::array<std::uint32_t, 256> counts_{};
};

/// The bytes of a sample by their place in an element of four bytes: as they lie, and as they are in
/// elements that are rotated by a bit.
struct SampleCounts {
  std::array<Counts, 4> plain;
  std::array<Counts, 4> rotated;
};

/// The bytes that a plane of a sample takes.
struct PlaneCost {
  double stored = 0;
  double coded = 0;  // by an entropy coder
  double zeros = 0;  // among the bytes
};

/// The costs of all planes of elements, which arrangements share.
class PlaneCosts {
 public:
  explicit PlaneCosts(const SampleCounts& counts) noexcept {
    for (const std::uint32_t size : {1U, 2U, 4U}) {
      for (std::uint32_t place = 0; place < size; ++place) {
        for (const bool is_rotated : {false, true}) {
          Counts of_plane;
          for (std::uint32_t i = place; i < 4; i += size) {
            of_plane += (is_rotated ? counts.rotated : counts.plain)[i];
          }
          costs_[is_rotated ? 1 : 0][size - 1 + place] = {of_plane.bytes(), of_plane.coded_bytes(),
                                                          of_plane.zeros()};
        }
      }
    }
  }

  /// Returns the cost of the bytes at `place` in each `size` bytes of the sample.
  [[nodiscard]] const PlaneCost& of(std::uint32_t size, std::uint32_t place, bool is_rotated) const noexcept {
    return costs_[is_rotated ? 1 : 0][size - 1 + place];
  }

 private:
  std::array<std::array<PlaneCost, 7>, 2> costs_;
};

/// A way to code a piece, and the part of its size that a sample of it would have.
struct Plan {
  Arrangement arrangement;
  std::array<Method, 4> methods{};  // of the planes, from the highest bytes down
  double size = 1;
  std::uint32_t sparse_planes = 0;  // as in RunsHeader; for updates only
};

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t i) noexcept {
  return std::to_integer<std::uint8_t>(bytes[i]);
}

/// Copies the sample of a piece, which is all of a small one. Its parts begin at multiples of four. Returns
/// its size.
std::size_t take_sample(std::span<const std::byte> piece, std::span<std::byte, kSample> out) noexcept {
  if (piece.size() <= kSample) {
    std::copy(piece.begin(), piece.end(), out.begin());
    return piece.size();
  }
  constexpr std::size_t kSize = kSample / kSamplePlaces;
  for (std::size_t i = 0; i < kSamplePlaces; ++i) {
    const std::size_t at = (piece.size() - kSize) / (kSamplePlaces - 1) * i;
    std::copy_n(piece.data() + at - at % 4, kSize, out.data() + i * kSize);
  }
  return kSample;
}

SampleCounts count(std::span<const std::byte> sample) noexcept {
  SampleCounts out;
  std::uint8_t before = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const std::uint8_t byte = byte_at(sample, i);
    out.plain[i % 4].add(byte);
    out.rotated[i % 4].add(static_cast<std::uint8_t>(byte << 1 | before >> 7));
    before = byte;
  }
  return out;
}

/// Plans the entropy coder for elements that are arranged in this way. The lowest byte of a rotated element
/// ends with another element's bit, which is left out of account.
Plan plan_planes(const PlaneCosts& costs, const Arrangement& arrangement) {
  Plan out{.arrangement = arrangement, .size = 0};
  double bytes = 0;
  for (std::uint32_t plane = 0; plane < arrangement.element_size; ++plane) {
    const std::uint32_t byte = arrangement.element_size - 1 - plane;  // 0 is the lowest
    const std::uint32_t place = (arrangement.first_element + byte) % arrangement.element_size;
    const auto [stored, coded, zeros] =
        costs.of(arrangement.element_size, place, arrangement.rotation != 0 && byte != 0);
    const bool is_coded = coded < kLeastGain * stored;
    out.methods[plane] = is_coded ? Method::kEntropy : Method::kStored;
    if (is_coded && zeros > kLeastZeros * stored) out.sparse_planes |= 1U << plane;
    out.size += is_coded ? coded : stored;
    bytes += stored;
  }
  out.size /= bytes;
  return out;
}

/// Returns the best plan that needs no search for matches.
Plan best_of_planes(const PlaneCosts& costs) {
  // Planes cost time, so they have to be smaller by more than an estimate's error.
  constexpr double kPlanesGain = 0.005;
  constexpr double kSmallest = 0.0002;  // by which others beat those before them
  Plan best = plan_planes(costs, {});
  for (const std::uint32_t size : {2U, 4U}) {
    Plan best_of_size;
    for (const std::uint32_t rotation : {0U, 1U}) {
      for (std::uint32_t first = 0; first < size; ++first) {
        const Plan plan = plan_planes(costs, {size, rotation, first});
        if (plan.size < best_of_size.size - kSmallest) best_of_size = plan;
      }
    }
    if (best_of_size.size < best.size - kPlanesGain) best = best_of_size;
  }
  return best;
}

/// Appends to a buffer that has room.
class Output {
 public:
  explicit Output(std::span<std::byte> room) : room_(room) {}

  void add(std::span<const std::byte> bytes) noexcept {
    std::ranges::copy(bytes, left().first(bytes.size()).begin());
    size_ += bytes.size();
  }
  void add_number(std::uint32_t number, std::size_t bytes) noexcept { add(bytes_of(number).first(bytes)); }
  [[nodiscard]] std::span<std::byte> left() const noexcept { return room_.subspan(size_); }
  void advance(std::size_t bytes) noexcept { size_ += bytes; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::span<std::byte> room_;
  std::size_t size_ = 0;
};

/// Appends a zstd frame whose blocks are stored, which the library makes only after it has tried to code
/// them. Format: RFC 8878, sections 3.1.1.1 and 3.1.1.2.
void add_stored_frame(std::span<const std::byte> bytes, Output& out) noexcept {
  constexpr std::uint32_t kMagic = 0xFD2FB528;
  constexpr std::uint32_t kSizeOf4Bytes = 2U << 6;
  constexpr std::uint32_t kSingleSegment = 1U << 5;
  out.add_number(kMagic, 4);
  out.add_number(kSizeOf4Bytes | kSingleSegment, 1);
  out.add_number(static_cast<std::uint32_t>(bytes.size()), 4);
  for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
    const auto block = bytes.subspan(at, std::min(kBlock, bytes.size() - at));
    const std::uint32_t is_last = at + block.size() == bytes.size() ? 1 : 0;
    out.add_number(is_last | static_cast<std::uint32_t>(block.size()) << 3, 3);
    out.add(block);
  }
}

/// The most bytes that add_stored_frame() adds to up to kPieceSize others.
constexpr std::size_t kMostFrameBytes = 4 + 1 + 4 + 3 * (kPieceSize / kBlock);
static_assert(4 * kMostFrameBytes <= kMostOverhead, "each plane may have a frame of its own");

}  // namespace

/// The memory of a context, which is allocated before its thread begins: an allocation in a thread would have
/// the C library set aside an address space of its own for it.
struct EncoderMemory {
  explicit EncoderMemory(bool for_updates)
      : size(std::max({size_for(kMatchLevel), size_for(kEntropyLevel),
                       for_updates ? ZSTD_estimateCCtxSize_usingCParams(kWindowSearch) : 0})) {}

  std::size_t size;
  std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  ZSTD_CCtx* context = ZSTD_initStaticCCtx(bytes.get(), size);

  static std::size_t size_for(int level) {
    return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, kPieceSize, 0));
  }
};

struct PieceEncoder::State {
  explicit State(bool for_updates) : memory(for_updates) {}

  EncoderMemory memory;
  std::unique_ptr<std::byte[]> planes = std::make_unique_for_overwrite<std::byte[]>(kPieceSize);
  std::array<std::byte, kSample> sample;
  std::unique_ptr<std::byte[]> masks = std::make_unique_for_overwrite<std::byte[]>(masks_size(kPieceSize));
  std::unique_ptr<Run[]> runs = std::make_unique_for_overwrite<Run[]>(kMostRuns);  // of an update

  /// Appends `bytes` as a frame, as compress() does.
  Result<bool> add_frame(std::span<const std::byte> bytes, Method method, std::size_t most, Output& out) {
    const bool searches = method == Method::kMatches;
    ZSTD_CCtx* const context = memory.context;
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, searches ? kMatchLevel : kEntropyLevel);
    if (!searches) ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
    return compress(bytes, most, out);
  }

  /// Appends `bytes` as a frame that takes matches from the window too.
  Result<bool> add_frame(std::span<const std::byte> bytes, std::span<const std::byte> window,
                         std::size_t most, Output& out) {
    ZSTD_CCtx* const context = memory.context;
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    const auto set = [&](ZSTD_cParameter parameter, unsigned value) {
      ZSTD_CCtx_setParameter(context, parameter, static_cast<int>(value));
    };
    set(ZSTD_c_windowLog, kWindowSearch.windowLog);
    set(ZSTD_c_chainLog, kWindowSearch.chainLog);
    set(ZSTD_c_hashLog, kWindowSearch.hashLog);
    set(ZSTD_c_searchLog, kWindowSearch.searchLog);
    set(ZSTD_c_minMatch, kWindowSearch.minMatch);
    set(ZSTD_c_targetLength, kWindowSearch.targetLength);
    set(ZSTD_c_strategy, kWindowSearch.strategy);
    ZSTD_CCtx_refPrefix(context, window.data(), window.size());
    return compress(bytes, most, out);
  }

  /// Appends a frame by the parameters that are set. Returns whether it was done: a frame that would not be
  /// smaller than `most` is left out.
  Result<bool> compress(std::span<const std::byte> bytes, std::size_t most, Output& out) {
    ZSTD_CCtx* const context = memory.context;
    const auto room = out.left().first(std::min(out.left().size(), most));
    const std::size_t size = ZSTD_compress2(context, room.data(), room.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(size) != 0) {
      if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) {
        return Error{ErrorCode::kOutOfMemory, "out of memory"};
      }
      return false;
    }
    out.advance(size);
    return true;
  }

  /// Chooses by the sample that was taken.
  Result<Plan> choose(std::span<const std::byte> taken) {
    Plan best = best_of_planes(PlaneCosts(count(taken)));
    // Matches are worth their time if they make the piece smaller by more than 1 %.
    Output coded({planes.get(), kPieceSize});
    const double to_beat = std::min(best.size - 0.01, kLeastGain) * static_cast<double>(taken.size());
    ETSTREAM_ASSIGN(
        const bool is_smaller,
        add_frame(taken, Method::kMatches, static_cast<std::size_t>(std::max(to_beat, 0.0)), coded));
    if (is_smaller) {
      best = {.arrangement = {},
              .methods = {Method::kMatches},
              .size = static_cast<double>(coded.size()) / static_cast<double>(taken.size())};
    }
    return best;
  }

  /// Appends a frame of `bytes`, which are stored if it would not be smaller otherwise.
  Result<void> add_bytes(std::span<const std::byte> bytes, Method method, Output& out) {
    if (bytes.empty()) return {};
    if (method != Method::kStored) {
      const auto most = static_cast<std::size_t>(kLeastGain * static_cast<double>(bytes.size()));
      ETSTREAM_ASSIGN(const bool is_smaller, add_frame(bytes, method, most, out));
      if (is_smaller) return {};
    }
    add_stored_frame(bytes, out);
    return {};
  }

  /// Appends a plane as a sparse one. Returns whether it was done: with few zeros it would become longer.
  Result<bool> add_sparse(std::span<const std::byte> plane, std::byte* values, Output& out) {
    const std::span of_plane(masks.get(), masks_size(plane.size()));
    const auto zeros = static_cast<std::size_t>(std::count(plane.begin(), plane.end(), std::byte{0}));
    // Three frames take the place of one.
    if (zeros < plane.size() / 2 || zeros < of_plane.size() + 2 * kMostFrameBytes) return false;
    const SparseSizes sizes = split_sparse(plane, of_plane, values);
    ETSTREAM_TRY(add_bytes(of_plane.first(sizes.upper), Method::kEntropy, out));
    ETSTREAM_TRY(add_bytes(of_plane.subspan(sizes.upper, sizes.mask), Method::kEntropy, out));
    ETSTREAM_TRY(add_bytes({values, sizes.values}, Method::kEntropy, out));
    return true;
  }

  /// Appends the frames of `bytes`. Returns the planes that are sparse, of those that the plan says.
  Result<std::uint32_t> add_frames(const Plan& plan, std::span<const std::byte> bytes, Output& out) {
    std::span<const std::byte> arranged = bytes;
    if (plan.arrangement.element_size > 1) {
      const std::span split_bytes(planes.get(), bytes.size());
      split(plan.arrangement, bytes, split_bytes);
      arranged = split_bytes;
    }
    const std::uint32_t count = plan.arrangement.element_size;
    const std::size_t elements =
        (bytes.size() - std::min<std::size_t>(bytes.size(), plan.arrangement.first_element)) / count;
    std::size_t begin = 0;
    std::uint32_t sparse_planes = 0;
    for (std::uint32_t plane = 0; plane < count; ++plane) {
      const std::size_t end = plane + 1 == count ? bytes.size() : (plane + 1) * elements;
      const Method method = plan.methods[plane];
      // Neighbours that are stored share a frame.
      if (method == Method::kStored && plane + 1 < count && plan.methods[plane + 1] == method) continue;
      const auto of_plane = arranged.subspan(begin, end - begin);
      bool is_sparse = false;
      if ((plan.sparse_planes >> plane & 1) != 0) {
        ETSTREAM_ASSIGN(is_sparse, add_sparse(of_plane, planes.get() + begin, out));
      }
      if (is_sparse) {
        sparse_planes |= 1U << plane;
      } else {
        ETSTREAM_TRY(add_bytes(of_plane, method, out));
      }
      begin = end;
    }
    return sparse_planes;
  }
};

/// A piece of an update, the bytes of the base, and the runs that say where they lie.
struct UpdatePiece {
  std::span<const std::byte> piece;
  std::span<const std::byte> base;
  std::span<const Run> runs;

  /// Puts bytes `begin` to `end` of the runs that are not the same in `out`, with differences of this method,
  /// from the first whole element of each on. `out` may be the start of the base. Returns how many they are.
  std::size_t write(std::uint32_t method, std::size_t begin, std::size_t end, std::byte* out) const noexcept {
    std::size_t at = 0;       // in the piece
    std::size_t content = 0;  // before the run
    std::size_t written = 0;
    for (const Run& run : runs) {
      if (run.method != kSame) {
        const std::size_t first = begin > content ? (begin - content + 3) / 4 * 4 : 0;
        const std::size_t last = std::min<std::size_t>(run.size, end > content ? end - content : 0);
        if (first < last) {
          const auto now = piece.subspan(at + first, last - first);
          if (method == kNew || run.method == kNew) {
            std::copy(now.begin(), now.end(), out + written);
          } else {
            subtract(method, now, base.subspan(at + first, now.size()), out + written);
          }
          written += now.size();
        }
        content += run.size;
      }
      at += run.size;
    }
    return written;
  }

  /// Puts a sample of these in `out`, and returns its size.
  std::size_t sample(std::uint32_t method, std::span<std::byte, kSample> out) const noexcept {
    const std::size_t size = content_size(runs);
    if (size <= kSample) return write(method, 0, size, out.data());
    constexpr std::size_t kSize = kSample / kSamplePlaces;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < kSamplePlaces; ++i) {
      const std::size_t at = (size - kSize) / (kSamplePlaces - 1) * i;
      taken += write(method, at - at % 4, at - at % 4 + kSize, out.data() + taken);
    }
    return taken;
  }
};

PieceEncoder::PieceEncoder(bool for_updates) : state_(std::make_unique<State>(for_updates)) {}
PieceEncoder::~PieceEncoder() = default;

Result<std::size_t> PieceEncoder::encode(std::span<const std::byte> piece, std::span<std::byte> out) {
  State& state = *state_;
  ETSTREAM_ASSIGN(Plan plan, state.choose(std::span(state.sample).first(take_sample(piece, state.sample))));
  plan.sparse_planes = 0;
  Output coded(out.subspan(sizeof(PieceHeader)));
  ETSTREAM_TRY(state.add_frames(plan, piece, coded));
  const PieceHeader header{.original_size = static_cast<std::uint32_t>(piece.size()),
                           .coded_size = static_cast<std::uint32_t>(coded.size()),
                           .arrangement = plan.arrangement,
                           .hash = XXH3_64bits(piece.data(), piece.size())};
  std::memcpy(out.data(), &header, sizeof(header));
  return sizeof(header) + coded.size();
}

Result<std::size_t> PieceEncoder::encode_update(std::span<const std::byte> piece, std::span<const Run> mapped,
                                                std::span<std::byte> base, const BaseWindow& window,
                                                std::span<std::byte> out) {
  State& state = *state_;
  auto runs = std::span(state.runs.get(), kMostRuns);
  runs = runs.first(find_same(piece, base, mapped, runs));
  const UpdatePiece update{piece, base, runs};
  const bool has_differences = std::ranges::any_of(runs, [](const Run& run) { return run.method == 1; });
  Plan plan;
  std::uint32_t method = kNew;
  if (content_size(runs) > 0) {
    for (const std::uint32_t tried : {kNew, 1U, 2U, 4U}) {
      if (tried != kNew && !has_differences) break;
      ETSTREAM_ASSIGN(const Plan with_it,
                      state.choose(std::span(state.sample).first(update.sample(tried, state.sample))));
      if (tried != kNew && with_it.size >= plan.size) continue;
      plan = with_it;
      method = tried;
    }
  }
  const std::size_t headers = sizeof(PieceHeader) + sizeof(RunsHeader) + runs.size_bytes();
  Output coded(out.subspan(headers));
  RunsHeader runs_header;
  const std::size_t size = content_size(runs);
  bool has_matches = false;
  // The window pays where the sample shows no floats that have moved.
  if (!window.bytes.empty() && method < 2 && size > 0) {
    const std::span bytes(state.planes.get(), update.write(kNew, 0, piece.size(), state.planes.get()));
    const auto most = static_cast<std::size_t>(plan.size * static_cast<double>(size));
    ETSTREAM_ASSIGN(has_matches, state.add_frame(bytes, window.bytes, most, coded));
  }
  if (has_matches) {
    runs_header.window_size = static_cast<std::uint32_t>(window.bytes.size());
    runs_header.window_offset = window.offset;
    plan = {};
    method = kNew;
  }
  const std::span<const std::byte> content(base.data(), update.write(method, 0, piece.size(), base.data()));
  for (Run& run : runs) {
    if (run.method == kSame || run.method == kNew) continue;
    run.method = method;
    if (method == kNew) run.base_offset = 0;
  }
  if (!content.empty() && !has_matches) {
    ETSTREAM_ASSIGN(runs_header.sparse_planes, state.add_frames(plan, content, coded));
  }
  const PieceHeader header{.frame = {.size = static_cast<std::uint32_t>(headers - sizeof(FrameStart))},
                           .original_size = static_cast<std::uint32_t>(piece.size()),
                           .coded_size = static_cast<std::uint32_t>(coded.size()),
                           .arrangement = plan.arrangement,
                           .hash = XXH3_64bits(piece.data(), piece.size())};
  Output begin(out);
  begin.add(bytes_of(header));
  begin.add(bytes_of(runs_header));
  begin.add(std::as_bytes(runs));
  const auto all = out.first(headers + coded.size());
  runs_header.coded_hash = hash_coded(all);
  std::memcpy(out.data() + sizeof(header), &runs_header, sizeof(runs_header));
  return all.size();
}

std::uint64_t hash_coded(std::span<std::byte> piece) noexcept {
  std::memset(piece.data() + sizeof(PieceHeader) + offsetof(RunsHeader, coded_hash), 0,
              sizeof(std::uint64_t));
  return XXH3_64bits(piece.data(), piece.size());
}

struct PieceDecoder::State {
  std::vector<std::byte> memory = std::vector<std::byte>(ZSTD_estimateDCtxSize());
  ZSTD_DCtx* context = ZSTD_initStaticDCtx(memory.data(), memory.size());
  std::unique_ptr<std::byte[]> planes = std::make_unique_for_overwrite<std::byte[]>(kPieceSize);
  std::unique_ptr<std::byte[]> mask = std::make_unique_for_overwrite<std::byte[]>(mask_size(kPieceSize));

  std::vector<std::byte> dictionary = std::vector<std::byte>(ZSTD_estimateDDictSize(0, ZSTD_dlm_byRef));

  /// Returns how many bytes the frames in `coded` have, which are put in `out`. They may have matches in
  /// `window`.
  Result<std::size_t> decompress(std::span<const std::byte> coded, std::span<std::byte> out,
                                 std::span<const std::byte> window = {}) {
    const ZSTD_DDict* const matches =
        window.empty() ? nullptr
                       : ZSTD_initStaticDDict(dictionary.data(), dictionary.size(), window.data(),
                                              window.size(), ZSTD_dlm_byRef, ZSTD_dct_rawContent);
    const std::size_t size =
        ZSTD_decompress_usingDDict(context, out.data(), out.size(), coded.data(), coded.size(), matches);
    if (ZSTD_isError(size) == 0) return size;
    return make_error(ErrorCode::kCorrupt, "zstd frames of {} bytes, found: {}", out.size(),
                      ZSTD_getErrorName(size));
  }
};

namespace {

Result<void> check_hash(const PieceHeader& header, std::span<const std::byte> piece) {
  if (XXH3_64bits(piece.data(), piece.size()) == header.hash) return {};
  return make_error(ErrorCode::kCorrupt, "bytes with the hash of the piece, found others");
}

/// Restores planes of which some are sparse. `mask` has room for that of a plane. Returns whether `coded` has
/// exactly these.
bool merge_planes(const Arrangement& arrangement, std::uint32_t sparse_planes,
                  std::span<const std::byte> coded, std::span<std::byte> mask,
                  std::span<std::byte> out) noexcept {
  const std::size_t elements =
      (out.size() - std::min<std::size_t>(out.size(), arrangement.first_element)) / arrangement.element_size;
  for (std::uint32_t plane = 0; plane < arrangement.element_size; ++plane) {
    const auto bytes = plane + 1 == arrangement.element_size ? out : out.first(elements);
    out = out.subspan(bytes.size());
    std::size_t used = bytes.size();
    if ((sparse_planes >> plane & 1) != 0) {
      const auto merged = merge_sparse(coded, mask, bytes);
      if (!merged) return false;
      used = *merged;
    } else {
      if (coded.size() < used) return false;
      std::copy_n(coded.begin(), used, bytes.begin());
    }
    coded = coded.subspan(used);
  }
  return coded.empty();
}

}  // namespace

PieceDecoder::PieceDecoder() : state_(std::make_unique<State>()) {}
PieceDecoder::~PieceDecoder() = default;

Result<void> PieceDecoder::decode(const PieceHeader& header, std::span<const std::byte> coded,
                                  std::span<std::byte> out) {
  const Arrangement& arrangement = header.arrangement;
  const std::span arranged = arrangement.element_size > 1 ? std::span(state_->planes.get(), out.size()) : out;
  ETSTREAM_ASSIGN(const std::size_t size, state_->decompress(coded, arranged));
  if (size != out.size()) {
    return make_error(ErrorCode::kCorrupt, "zstd frames of {} bytes, found {}", out.size(), size);
  }
  if (arrangement.element_size > 1) merge(arrangement, arranged, out);
  return check_hash(header, out);
}

Result<void> PieceDecoder::decode_update(const PieceHeader& header, std::uint32_t sparse_planes,
                                         std::span<const Run> runs, std::span<const std::byte> window,
                                         std::span<std::byte> coded, std::span<std::byte> out) {
  const Arrangement& arrangement = header.arrangement;
  const std::size_t size = content_size(runs);
  std::span content(state_->planes.get(), size);
  std::span other(coded.data(), size);  // its bytes are not needed once they are decoded
  ETSTREAM_ASSIGN(const std::size_t found, state_->decompress(coded, content, window));
  if (sparse_planes != 0) {
    const std::span mask(state_->mask.get(), mask_size(kPieceSize));
    const auto merged = merge_planes(arrangement, sparse_planes, content.first(found), mask, other);
    std::swap(content, other);
    if (!merged) {
      return make_error(ErrorCode::kCorrupt, "sparse planes of {} bytes, found others in {} bytes", size,
                        found);
    }
  } else if (found != size) {
    return make_error(ErrorCode::kCorrupt, "zstd frames of {} bytes, found {}", size, found);
  }
  if (arrangement.element_size > 1) {
    merge(arrangement, content, other);
    std::swap(content, other);
  }
  auto left = out;
  for (const Run& run : runs) {
    const auto bytes = left.first(run.size);
    left = left.subspan(run.size);
    if (run.method == kSame) continue;
    if (run.method == kNew) {
      std::copy_n(content.begin(), run.size, bytes.begin());
    } else {
      add(run.method, content.first(run.size), bytes);
    }
    content = content.subspan(run.size);
  }
  return check_hash(header, out);
}

}  // namespace etstream::packed
