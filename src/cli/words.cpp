// SPDX-License-Identifier: BSD-3-Clause
#include "cli/words.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/text.h"

namespace etstream::cli {

namespace {

constexpr AdviceWords kOptionWords = {{
    {AdviceTerm::kAllowOpaque, "--opaque"},
    {AdviceTerm::kBase, "--base to etstream unpack"},
    {AdviceTerm::kBundleTestCases, "etstream bundle MODEL --cases CASES.json -o OUT.bpte takes them"},
    {AdviceTerm::kCheckBundle, "etstream bundle"},
    {AdviceTerm::kChooseOtherPython, "choose another one with --python"},
    {AdviceTerm::kConstantTensorAlignment, "--constant-tensor-alignment"},
    {AdviceTerm::kDelegateAlignment, "--delegate-alignment"},
    {AdviceTerm::kDelegatesInSegments,
     "have the data of delegates in segments, which may be of any size (--delegates segments)"},
    {AdviceTerm::kExtractConstants, "etstream pte"},
    {AdviceTerm::kGiveFileInFolder, "give a file in it: a folder is taken only for a checkpoint"},
    {AdviceTerm::kHeadDim, "--head-dim"},
    {AdviceTerm::kJoinTensorData, "join them first: etstream ptd WEIGHTS.ptd... -o ALL.ptd"},
    {AdviceTerm::kKeepPayload, "--keep"},
    {AdviceTerm::kMaxDisk, "--max-disk"},
    {AdviceTerm::kMoveConstantsOut, "etstream pte --constants-to WEIGHTS.ptd"},
    {AdviceTerm::kNoIdentifier, "--raw-binary"},
    {AdviceTerm::kNoSync, "--no-sync"},
    {AdviceTerm::kPartial, "--partial"},
    {AdviceTerm::kRaiseLimit, "raise the limit, or give --optional to run without"},
    {AdviceTerm::kReadAsCheckpoint, "etstream ptd reads it as a checkpoint"},
    {AdviceTerm::kSegmentsFrom, "--segments-from"},
    {AdviceTerm::kStrictAlignment, "etstream pte --strict-alignment"},
    {AdviceTerm::kTakeApart, "etstream extract takes it apart"},
    {AdviceTerm::kTakePayloadOut, "etstream extract takes payloads out of it"},
    {AdviceTerm::kTakeProgramOut, "etstream extract BUNDLE program takes the program out of a bundle"},
    {AdviceTerm::kVerify, "etstream verify"},
    {AdviceTerm::kWriteProgram, "etstream pte writes a program from it"},
    {AdviceTerm::kWriteToDescriptor, "write to standard output (-o - >FILE)"},
}};
static_assert(has_each_term(kOptionWords));

}  // namespace

std::string_view option_words(AdviceTerm term) { return kOptionWords[static_cast<std::size_t>(term)].second; }

namespace {

/// Returns how many letters must be left out, added, changed, or swapped with the next one.
std::size_t distance(std::string_view a, std::string_view b) {
  // These hold the distances from the last three beginnings of `a` to all beginnings of `b`.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) now[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, now);
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({changed, last[j] + 1, now[j - 1] + 1});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
  }
  return now[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 64;
  constexpr std::size_t kLettersForOne = 3;
  if (word.empty() || word.size() > kLongest) return {};
  std::string out;
  std::size_t least = std::max<std::size_t>(word.size() / kLettersForOne, 1) + 1;
  for (const std::string& name : names) {
    const std::size_t away = distance(word, name);
    // A name in which every letter differs was not meant.
    if (away >= least || away >= name.size()) continue;
    least = away;
    out = name;
  }
  return out;
}

}  // namespace etstream::cli
