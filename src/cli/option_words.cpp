// SPDX-License-Identifier: BSD-3-Clause
#include "cli/option_words.h"

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
      return "extract --program takes the program out of a bundle";
    case AdviceTerm::kVerify:
      return "etstream verify";
    case AdviceTerm::kWriteProgram:
      return "etstream pte writes a program from it";
    case AdviceTerm::kWriteToDescriptor:
      return "write to standard output (-o - >FILE)";
  }
  return "";
}

}  // namespace etstream::cli
