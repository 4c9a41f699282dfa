// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/expected_kind.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "formats/segments/foreign_file.h"

namespace etstream {
namespace {

bool is_among(const Expected& expected, FileKind kind) {
  return std::ranges::find(expected.kinds, kind) != expected.kinds.end();
}

/// Returns the advice for a file of this kind; none if it depends on the caller.
Advice advice_on(FileKind kind, const Expected& expected) {
  switch (kind) {
    case FileKind::kProgram:
      if (is_among(expected, FileKind::kBundledProgram)) return {"bundle it with test cases first"};
      return is_among(expected, FileKind::kTensorData) ? Advice{AdviceTerm::kReadAsCheckpoint} : Advice{};
    case FileKind::kBundledProgram:
    case FileKind::kSegmentedBundle:
      return {is_among(expected, FileKind::kProgram) ? AdviceTerm::kTakeProgramOut : AdviceTerm::kTakeApart};
    case FileKind::kNativePackage:
      return {AdviceTerm::kTakeApart};
    case FileKind::kFatContainer:
      return {AdviceTerm::kTakePayloadOut};
    case FileKind::kUpdate:
      return {"restore it with the file that it was made from, as ", AdviceTerm::kBase};
    case FileKind::kTensorData:
    case FileKind::kSafetensors:
    case FileKind::kGguf:
    case FileKind::kTorch:
      return {AdviceTerm::kReadAsCheckpoint};
  }
  return {};
}

struct JsonWords {
  std::string_view what;
  Advice advice;
};

JsonWords words_of(JsonContent content) {
  switch (content) {
    case JsonContent::kCheckpointIndex:
      return {"the index of a checkpoint", {AdviceTerm::kReadAsCheckpoint}};
    case JsonContent::kTestCases:
      return {"JSON with test cases", {AdviceTerm::kBundleTestCases}};
    case JsonContent::kProgram:
      return {"a program's description in JSON", {AdviceTerm::kWriteProgram}};
    case JsonContent::kModelConfig:
      return {"the config.json of a model", {"give the folder that it is in"}};
    case JsonContent::kOther:
      return {"JSON", {}};
  }
  return {};
}

Error is_other(const ByteSource& file, std::string_view found, const Expected& expected, Advice advice) {
  return with_advice(
      error_in(ErrorCode::kUnsupported, file.name(), "is {}, expected {}", found, expected.what),
      std::move(advice));
}

}  // namespace

std::string with_article(FileKind kind) {
  const bool has_article =
      kind != FileKind::kTensorData && kind != FileKind::kSafetensors && kind != FileKind::kGguf;
  return text("{}{}", has_article ? "a " : "", describe(kind));
}

Error explain(const ByteSource& file, const Expected& expected, Error error) {
  if (error.code == ErrorCode::kIo || !is_whole_file(file)) return error;
  const auto kind = file_kind(file);
  // A file that parses as JSON is the wrong JSON, and not a text from a server.
  if (kind || !expected.json || error.code != ErrorCode::kInvalidArgument) {
    const auto recognised = refuse_foreign(file);
    if (!recognised && recognised.error().code == ErrorCode::kUnsupported) return recognised.error();
  }
  if (!kind) return explain_json(file, expected, std::move(error));
  if (is_among(expected, *kind)) return error;
  return is_other(file, with_article(*kind), expected, advice_on(*kind, expected));
}

Error explain_json(const ByteSource& file, const Expected& expected, Error error) {
  const auto json = json_content(file);
  if (!json || expected.json == json || expected.json == JsonContent::kOther) return error;
  if (*json == JsonContent::kOther) {
    if (!expected.json) error.message += "; it is JSON";
    return error;
  }
  auto [what, advice] = words_of(*json);
  return is_other(file, what, expected, std::move(advice));
}

}  // namespace etstream
