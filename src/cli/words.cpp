// SPDX-License-Identifier: BSD-3-Clause
#include "cli/words.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace etstream::cli {

std::string_view option_words(AdviceTerm term) {
  switch (term) {
    case AdviceTerm::kAllowOpaque:
      return "--opaque";
    case AdviceTerm::kBase:
      return "--base to etstream unpack";
    case AdviceTerm::kBundleTestCases:
      return "etstream bundle MODEL --cases CASES.json -o OUT.bpte takes them";
    case AdviceTerm::kCheckBundle:
      return "etstream bundle";
    case AdviceTerm::kChooseOtherPython:
      return "choose another one with --python";
    case AdviceTerm::kConstantTensorAlignment:
      return "--constant-tensor-alignment";
    case AdviceTerm::kDelegateAlignment:
      return "--delegate-alignment";
    case AdviceTerm::kDelegatesInSegments:
      return "have the data of delegates in segments, which may be of any size (--delegates segments)";
    case AdviceTerm::kExtractConstants:
      return "etstream pte";
    case AdviceTerm::kGiveFileInFolder:
      return "give a file in it: a folder is taken only for a checkpoint";
    case AdviceTerm::kHeadDim:
      return "--head-dim";
    case AdviceTerm::kJoinTensorData:
      return "join them first: etstream ptd WEIGHTS.ptd... -o ALL.ptd";
    case AdviceTerm::kKeepPayload:
      return "--keep";
    case AdviceTerm::kMaxDisk:
      return "--max-disk";
    case AdviceTerm::kMoveConstantsOut:
      return "etstream pte --constants-to WEIGHTS.ptd";
    case AdviceTerm::kNoIdentifier:
      return "--raw-binary";
    case AdviceTerm::kNoSync:
      return "--no-sync";
    case AdviceTerm::kPartial:
      return "--partial";
    case AdviceTerm::kRaiseLimit:
      return "raise the limit, or give --optional to run without";
    case AdviceTerm::kReadAsCheckpoint:
      return "etstream ptd reads it as a checkpoint";
    case AdviceTerm::kSegmentsFrom:
      return "--segments-from";
    case AdviceTerm::kStrictAlignment:
      return "etstream pte --strict-alignment";
    case AdviceTerm::kTakeApart:
      return "etstream extract takes it apart";
    case AdviceTerm::kTakePayloadOut:
      return "etstream fat extract takes payloads out of it";
    case AdviceTerm::kTakeProgramOut:
      return "etstream extract BUNDLE program takes the program out of a bundle";
    case AdviceTerm::kVerify:
      return "etstream verify";
    case AdviceTerm::kWriteProgram:
      return "etstream pte writes a program from it";
    case AdviceTerm::kWriteToDescriptor:
      return "write to standard output (-o - >FILE)";
  }
  return "";
}

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
