// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles from one format to the other, without loss.
#include <optional>
#include <utility>
#include <vector>

#include "base/try.h"
#include "bpte/bundled_program_file_impl.h"
#include "bpte/segmented_bundle.h"
#include "layout/same_bytes.h"

namespace etstream {
namespace {

constexpr std::uint32_t kLargestProgramAlignment = 65536;
constexpr std::uint32_t kUsualAlignment = 32;

/// The program's alignment with which packing gives the file again, if there is one.
Result<std::optional<std::uint32_t>> alignment_that_gives(const BundledProgram& bundle,
                                                          const BundledProgramFile& file) {
  std::vector<std::uint32_t> candidates = {kUsualAlignment};
  for (std::uint32_t alignment = kLargestProgramAlignment; alignment > 0; alignment /= 2) {
    if (alignment != kUsualAlignment && file.program_offset() % alignment == 0)
      candidates.push_back(alignment);
  }
  for (const std::uint32_t alignment : candidates) {
    ETSTREAM_ASSIGN(const FilePlan plan, plan(bundle, {.program_alignment = alignment, .unchecked = true}));
    ETSTREAM_ASSIGN(const bool same, gives_same_bytes(plan, file.file()));
    if (same) return std::optional(alignment);
  }
  return std::optional<std::uint32_t>();
}

Result<FilePlan> to_segmented(const BundledProgramFile& file, bool hash) {
  ETSTREAM_ASSIGN(const BundledProgram bundle, file.read());
  ETSTREAM_ASSIGN(const auto alignment, alignment_that_gives(bundle, file));
  if (alignment) return plan_segmented_bundle(bundle, {.hash = hash, .program_alignment = *alignment});
  return plan_segmented_bundle(bundle, {.hash = hash, .original = &file.file()});
}

/// The original file of which the layout was kept: its metadata, with the payloads put back in.
Result<FilePlan> as_it_was(const OriginalFile& original) {
  FilePlan plan;
  plan.labels = {"metadata", "payload"};
  const auto append = [&](std::uint32_t label, ByteSource source) {
    if (source.size() == 0) return;
    const std::uint64_t size = source.size();
    plan.extents.push_back({plan.size, 1, label, std::move(source)});
    plan.size += size;
  };
  std::uint64_t used = 0;
  for (const OriginalFile::Payload& payload : original.payloads) {
    ETSTREAM_ASSIGN(ByteSource before, original.metadata.slice(used, payload.offset - plan.size));
    used += before.size();
    append(0, std::move(before));
    append(1, payload.source);
  }
  ETSTREAM_ASSIGN(ByteSource last, original.metadata.slice(used, original.metadata.size() - used));
  append(0, std::move(last));
  plan.payload_size = plan.size;
  return plan;
}

}  // namespace

Result<FilePlan> BundledProgramFile::plan_as(BundleFormat to, bool hash) const {
  return without_exceptions([&]() -> Result<FilePlan> {
    if (format() == to) return plan_copy(file(), "bundle");
    if (to == BundleFormat::kSegmented) return to_segmented(*this, hash);
    const auto& segmented = *impl_->segmented;
    if (segmented.original_file()) return as_it_was(*segmented.original_file());
    ETSTREAM_ASSIGN(const BundledProgram bundle, read());
    return plan(bundle, {.program_alignment = segmented.program_alignment(), .unchecked = true});
  });
}

}  // namespace etstream
