// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/result.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/base/text.h"

namespace etstream {

void ResultBase::move_error(Error* to, Error&& from) noexcept { std::construct_at(to, std::move(from)); }
void ResultBase::copy_error(Error* to, const Error& from) { std::construct_at(to, from); }
void ResultBase::destroy_error(Error* error) noexcept { std::destroy_at(error); }

void ResultBase::end_without_value(const Error& error) noexcept {
  std::fprintf(stderr, "etstream: value() of a failed Result: %s\n", error.message.c_str());
  std::abort();
}

void ResultBase::end_without_error() noexcept {
  std::fputs("etstream: error() of a Result that holds a value\n", stderr);
  std::abort();
}

namespace {

constexpr AdviceWords kWords = {{
    {AdviceTerm::kAllowOpaque, "allow_opaque"},
    {AdviceTerm::kBase, "base to unpack()"},
    {AdviceTerm::kBundleTestCases, "bundle a program with them"},
    {AdviceTerm::kCheckBundle, "check()"},
    {AdviceTerm::kChooseOtherPython, "choose another Python"},
    {AdviceTerm::kConstantTensorAlignment, "constant_tensor_alignment"},
    {AdviceTerm::kDelegateAlignment, "delegate_alignment"},
    {AdviceTerm::kDelegatesInSegments, "have the data of delegates in segments, which may be of any size"},
    {AdviceTerm::kExtractConstants, "writing it again with extract_constants"},
    {AdviceTerm::kGiveFileInFolder, "give a file in it"},
    {AdviceTerm::kHeadDim, "head_dim"},
    {AdviceTerm::kJoinTensorData, "join them first"},
    {AdviceTerm::kKeepPayload, "keep"},
    {AdviceTerm::kMaxDisk, "max_disk"},
    {AdviceTerm::kMoveConstantsOut, "constants_out"},
    {AdviceTerm::kNoIdentifier, "identifier = false"},
    {AdviceTerm::kNoSync, "sync = false"},
    {AdviceTerm::kPartial, "partial"},
    {AdviceTerm::kRaiseLimit, "raise the limit"},
    {AdviceTerm::kReadAsCheckpoint, "read it as a checkpoint"},
    {AdviceTerm::kSegmentsFrom, "segments_from"},
    {AdviceTerm::kStrictAlignment, "strict_alignment with"},
    {AdviceTerm::kTakeApart, "take it apart first"},
    {AdviceTerm::kTakePayloadOut, "take a payload out of it first"},
    {AdviceTerm::kTakeProgramOut, "take the program out of a bundle first"},
    {AdviceTerm::kVerify, "verify()"},
    {AdviceTerm::kWriteProgram, "write a program from it first"},
    {AdviceTerm::kWriteToDescriptor, "write to an open descriptor"},
}};
static_assert(has_each_term(kWords));

}  // namespace

std::string_view library_words(AdviceTerm term) { return kWords[static_cast<std::size_t>(term)].second; }

std::string full_message(std::string message, const Advice& advice, TermWords words) {
  for (std::size_t i = 0; i < advice.size(); ++i) {
    if (i == 0) message += "; ";
    const auto* const text = std::get_if<std::string>(&advice[i]);
    message += text != nullptr ? std::string_view(*text) : words(std::get<AdviceTerm>(advice[i]));
  }
  return message;
}

}  // namespace etstream
