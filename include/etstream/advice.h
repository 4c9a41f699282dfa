// SPDX-License-Identifier: BSD-3-Clause
//
// Advice: what to do about an error or a finding. It is kept apart from the message, as each interface has
// its own words for an option: head_dim in C++ and Python is --head-dim in the command.
//
//   const etstream::Advice advice = {"give it with ", etstream::AdviceTerm::kHeadDim};
//   std::puts(etstream::full_message("no head_dim is known", advice).c_str());
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "etstream/export.h"

namespace etstream {

/// An option, or a thing to do, that the interfaces have different words for.
enum class AdviceTerm {
  kAllowOpaque,
  kBase,
  kBundleTestCases,
  kCheckBundle,
  kChooseOtherPython,
  kConstantTensorAlignment,
  kDelegateAlignment,
  kDelegatesInSegments,
  kExtractConstants,
  kGiveFileInFolder,
  kHeadDim,
  kJoinTensorData,
  kMaxDisk,
  kMoveConstantsOut,
  kNoIdentifier,
  kNoSync,
  kPartial,
  kRaiseLimit,
  kReadAsCheckpoint,
  kSegmentsFrom,
  kStrictAlignment,
  kTakeApart,
  kTakePayloadOut,
  kTakeProgramOut,
  kVerify,
  kWriteProgram,
  kWriteToDescriptor,
};

/// Text, and terms, which join to a sentence. Empty if there is no advice.
using Advice = std::vector<std::variant<std::string, AdviceTerm>>;

/// Returns the words of an interface for a term.
using TermWords = std::string_view (*)(AdviceTerm term);

/// Returns the words of the C++ library, which are the names in its structs.
[[nodiscard]] ETSTREAM_EXPORT std::string_view library_words(AdviceTerm term);

/// Returns "MESSAGE; ADVICE", or the message alone if there is no advice.
[[nodiscard]] ETSTREAM_EXPORT std::string full_message(std::string message, const Advice& advice,
                                                       TermWords words = library_words);

}  // namespace etstream
