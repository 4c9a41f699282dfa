// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/result.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>

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

std::string_view library_words(AdviceTerm term) {
  switch (term) {
    case AdviceTerm::kAllowOpaque:
      return "allow_opaque";
    case AdviceTerm::kBase:
      return "base to unpack()";
    case AdviceTerm::kBundleTestCases:
      return "bundle a program with them";
    case AdviceTerm::kCheckBundle:
      return "check()";
    case AdviceTerm::kChooseOtherPython:
      return "choose another Python";
    case AdviceTerm::kConstantTensorAlignment:
      return "constant_tensor_alignment";
    case AdviceTerm::kDelegateAlignment:
      return "delegate_alignment";
    case AdviceTerm::kDelegatesInSegments:
      return "have the data of delegates in segments, which may be of any size";
    case AdviceTerm::kExtractConstants:
      return "writing it again with extract_constants";
    case AdviceTerm::kGiveFileInFolder:
      return "give a file in it";
    case AdviceTerm::kHeadDim:
      return "head_dim";
    case AdviceTerm::kJoinTensorData:
      return "join them first";
    case AdviceTerm::kKeepPayload:
      return "keep";
    case AdviceTerm::kMaxDisk:
      return "max_disk";
    case AdviceTerm::kMoveConstantsOut:
      return "constants_out";
    case AdviceTerm::kNoIdentifier:
      return "identifier = false";
    case AdviceTerm::kNoSync:
      return "sync = false";
    case AdviceTerm::kPartial:
      return "partial";
    case AdviceTerm::kRaiseLimit:
      return "raise the limit";
    case AdviceTerm::kReadAsCheckpoint:
      return "read it as a checkpoint";
    case AdviceTerm::kSegmentsFrom:
      return "segments_from";
    case AdviceTerm::kStrictAlignment:
      return "strict_alignment with";
    case AdviceTerm::kTakeApart:
      return "take it apart first";
    case AdviceTerm::kTakePayloadOut:
      return "take a payload out of it first";
    case AdviceTerm::kTakeProgramOut:
      return "take the program out of a bundle first";
    case AdviceTerm::kVerify:
      return "verify()";
    case AdviceTerm::kWriteProgram:
      return "write a program from it first";
    case AdviceTerm::kWriteToDescriptor:
      return "write to an open descriptor";
  }
  return "";
}

std::string full_message(std::string message, const Advice& advice, TermWords words) {
  for (std::size_t i = 0; i < advice.size(); ++i) {
    if (i == 0) message += "; ";
    const auto* const text = std::get_if<std::string>(&advice[i]);
    message += text != nullptr ? std::string_view(*text) : words(std::get<AdviceTerm>(advice[i]));
  }
  return message;
}

}  // namespace etstream
