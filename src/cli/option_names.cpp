// SPDX-License-Identifier: BSD-3-Clause
#include "cli/option_names.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace etstream::cli {
namespace {

struct Wording {
  std::string_view of_the_library;
  std::string_view of_the_command;
};

constexpr Wording kWordings[] = {
    {"allow_opaque", "--opaque"},
    {"bundle a program with them", "etstream bundle takes them as --cases"},
    {"constant_tensor_alignment", "--constant-tensor-alignment"},
    {"constants_to moves them", "etstream pte --constants-to WEIGHTS.ptd moves them"},
    {"delegate_alignment", "--delegate-alignment"},
    {"delegates in segments, which may be of any size",
     "delegates in segments, which may be of any size (--delegates segments)"},
    {"give a file in it",
     "give a file in it: a checkpoint's folder is for ptd, inspect, verify, diff and extract --tensor"},
    {"head_dim", "--head-dim"},
    {"writing it again with extract_constants", "etstream pte --extract-constants"},
    {"choose another Python", "choose another one with --python"},
    {"join them first", "join them first: etstream ptd WEIGHTS.ptd... -o ALL.ptd"},
    {"identifier = false", "--raw-binary"},
    {"max_disk", "--max-disk"},
    {"alone with partial", "alone with --partial"},
    {"there with partial", "there with --partial"},
    {"program_alignment", "--program-alignment"},
    {"read it as a checkpoint", "etstream ptd reads it as a checkpoint"},
    {"raise the limit", "raise the limit, or give --optional to run without"},
    {"segments_from", "--segments-from"},
    {"strict_alignment with", "etstream pte --strict-alignment"},
    {"sync = false", "--no-sync"},
    {"take a payload out of it first", "etstream fat extract takes payloads out of it"},
    {"take it apart first", "etstream extract takes it apart"},
    {"take the program out of a bundle first", "extract --program takes the program out of a bundle"},
    {"write a program from it first", "etstream pte writes a program from it"},
    {"write to an open descriptor", "write to standard output (-o - >FILE)"},
};

}  // namespace

std::string with_option_names(std::string message) {
  const std::size_t advice = message.rfind("; ");
  if (advice == std::string::npos) return message;
  for (const Wording& wording : kWordings) {
    const std::size_t found = message.find(wording.of_the_library, advice);
    if (found != std::string::npos) {
      message.replace(found, wording.of_the_library.size(), wording.of_the_command);
    }
  }
  return message;
}

Findings with_option_names(Findings findings) {
  const auto word = [](Finding& finding) { finding.message = with_option_names(std::move(finding.message)); };
  std::for_each(findings.errors.begin(), findings.errors.end(), word);
  std::for_each(findings.warnings.begin(), findings.warnings.end(), word);
  return findings;
}

}  // namespace etstream::cli
