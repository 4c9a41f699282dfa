// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/embedded_file.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/file_plan.h"
#include "etstream/inspect.h"
#include "etstream/packed_file.h"
#include "files/object_file.h"

namespace etstream {
namespace {

constexpr std::uint32_t kMostAlignment = std::uint32_t{1} << 30;
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
constexpr std::string_view kDigits = "0123456789";

bool has_only(std::string_view word, std::string_view characters) {
  return word.find_first_not_of(characters) == std::string_view::npos;
}

/// The keywords of C23 and C++23, which no compiler takes for a name.
constexpr std::string_view kKeywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public register reinterpret_cast requires restrict "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using "
    "virtual void volatile wchar_t while xor xor_eq _Alignas _Alignof _Atomic _BitInt _Bool _Complex "
    "_Generic _Imaginary _Noreturn _Static_assert _Thread_local ";

bool is_keyword(const std::string& word) {
  return kKeywords.find(" " + word + " ") != std::string_view::npos;
}

/// Returns a name in C for the file at `path`.
std::string symbol_of(std::string_view path) {
  std::string out(path.substr(path.rfind('/') + 1));
  for (char& c : out) {
    if (!has_only({&c, 1}, kLetters) && !has_only({&c, 1}, kDigits)) c = '_';
  }
  const bool is_no_name = out.empty() || kDigits.find(out[0]) != std::string_view::npos || is_keyword(out);
  if (is_no_name) out.insert(0, "_");
  return out;
}

/// Sections without bytes in the file, whose memory a start clears or leaves as it is.
constexpr std::string_view kEmptySections[] = {".bss", ".sbss", ".lbss", ".tbss", ".noinit", "COMMON"};

bool is_empty_section(std::string_view name) {
  return std::ranges::any_of(kEmptySections, [&](std::string_view empty) {
    return name.starts_with(empty) && (name.size() == empty.size() || name[empty.size()] == '.');
  });
}

Result<void> check(const EmbeddedFile& file) {
  constexpr std::size_t kMostName = 255;
  const std::string names = std::string(kLetters) + std::string(kDigits);
  const std::string sections = names + ".$-";
  if (file.data.size() == 0) {
    return error_in(ErrorCode::kInvalidArgument, file.data.name(), "is empty, and C has no empty arrays");
  }
  if (file.symbol.empty() || file.symbol.size() > kMostName || !has_only(file.symbol, names) ||
      kDigits.find(file.symbol[0]) != std::string_view::npos || is_keyword(file.symbol)) {
    return make_error(ErrorCode::kInvalidArgument, "expected a symbol that is a name in C and C++, found {}",
                      quote(file.symbol));
  }
  const std::string section = section_of(file);
  if (section.size() > kMostName || !has_only(section, sections)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "expected a section's name of letters, digits and any of \"._$-\", found {}",
                      quote(section));
  }
  if (is_empty_section(section)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "expected a section that has bytes in the file, such as .rodata, found {}",
                      quote(section));
  }
  // The check takes 32 bits: larger numbers are refused as the largest is.
  const auto alignment = static_cast<std::uint32_t>(std::min<std::uint64_t>(file.alignment, UINT32_MAX));
  return check_alignment("alignment", alignment, kMostAlignment);
}

/// Refuses a file that an assembler can't take: one with a character in its path that can't stand between
/// quotes there, or one that is packed.
Result<void> check_path(const std::string& path) {
  const auto is_wrong = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7F || c == '"' || c == '\\';
  };
  if (path.empty() || std::ranges::any_of(path, is_wrong)) {
    return with_advice(
        make_error(ErrorCode::kInvalidArgument,
                   "expected a path without control characters and \"\\, found {}", quote(path)),
        {"write an object file, which does not name the file"});
  }
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::raw_file(path));
  ETSTREAM_ASSIGN(const bool packed, is_packed(file));
  if (!packed) return {};
  return with_advice(
      error_in(ErrorCode::kInvalidArgument, path, "is a packed file, and would be embedded so"),
      {"write an object file, or unpack it first"});
}

FilePlan text_plan(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return plan_copy(ByteSource::owned({bytes.begin(), bytes.end()}), "text");
}

/// Returns the comment that each text begins with.
std::string comment(const EmbeddedFile& file) {
  return text("/* Written by etstream embed: {} bytes as {}, at a multiple of {}. */\n", file.data.size(),
              file.symbol, file.alignment);
}

Result<FilePlan> plan_object(const EmbeddedFile& file, std::string_view output) {
  if (!file.target) {
    return make_error(ErrorCode::kInvalidArgument, "{}: expected a target, found none", output);
  }
  return elf::plan({file.data, file.symbol, section_of(file), file.alignment, *file.target});
}

Result<FilePlan> plan_assembly(const EmbeddedFile& file) {
  ETSTREAM_TRY(check_path(file.path));
  // Each .org moves backwards, which is an error, if the file has more or fewer bytes.
  return text_plan(comment(file) + text("    .pushsection {0}, \"a\", %progbits\n"
                                        "    .balign {1}\n"
                                        "    .global {2}, {2}_end, {2}_size\n"
                                        "    .type {2}, %object\n"
                                        "    .size {2}, {3}\n"
                                        "{2}:\n"
                                        "    .incbin \"{4}\"\n"
                                        "{2}_end:\n"
                                        "    .org {2} + {3} /* expected {3} bytes: embed {2} again */\n"
                                        "    .org {2}_end /* expected {3} bytes: embed {2} again */\n"
                                        "    .balign 8\n"
                                        "    .type {2}_size, %object\n"
                                        "{2}_size:\n"
                                        "    .dc.a {3}\n"
                                        "    .popsection\n"
                                        "#ifdef __linux__\n"
                                        "    .section .note.GNU-stack, \"\", %progbits\n"
                                        "#endif\n",
                                        section_of(file), file.alignment, file.symbol, file.data.size(),
                                        file.path));
}

FilePlan plan_header(const EmbeddedFile& file) {
  return text_plan(comment(file) + text("#pragma once\n\n"
                                        "#include <stddef.h>\n\n"
                                        "#ifdef __cplusplus\n"
                                        "extern \"C\" {{\n"
                                        "#endif\n"
                                        "extern const unsigned char {0}[{1}];\n"
                                        "extern const size_t {0}_size;\n"
                                        "#define {0}_end ({0} + {1})\n"
                                        "#ifdef __cplusplus\n"
                                        "}}\n"
                                        "#endif\n",
                                        file.symbol, file.data.size()));
}

}  // namespace

Result<EmbeddedFile> open_embedded_file(const std::string& path) {
  return without_exceptions([&]() -> Result<EmbeddedFile> {
    EmbeddedFile out;
    ETSTREAM_ASSIGN(out.data, ByteSource::file(path));
    ETSTREAM_ASSIGN(out.alignment, memory_alignment(out.data));
    out.path = std::filesystem::absolute(path).lexically_normal().string();
    out.symbol = symbol_of(unpacked_name(path));
    return out;
  });
}

std::string section_of(const EmbeddedFile& file) {
  return file.section.empty() ? ".rodata." + file.symbol : file.section;
}

Result<FilePlan> plan(const EmbeddedFile& file, std::string_view output) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_TRY(check(file));
    if (output.ends_with(".h")) return plan_header(file);
    if (output.ends_with(".S")) return plan_assembly(file);
    if (output.ends_with(".o")) return plan_object(file, output);
    return make_error(ErrorCode::kInvalidArgument, "expected an output that ends in .h, .S or .o, found {}",
                      quote(output));
  });
}

Result<std::vector<FilePlan>> plan_outputs(const EmbeddedFile& file,
                                           const std::vector<std::string>& outputs) {
  return without_exceptions([&]() -> Result<std::vector<FilePlan>> {
    std::vector<FilePlan> plans;
    for (const std::string& output : outputs) {
      ETSTREAM_ASSIGN(plans.emplace_back(), plan(file, output));
    }
    const auto is_header = [](const std::string& output) { return output.ends_with(".h"); };
    if (!std::ranges::all_of(outputs, is_header)) return plans;
    return make_error(ErrorCode::kInvalidArgument,
                      "expected also an output with the bytes, .S or .o: a header, {}, only declares them",
                      names_text(outputs));
  });
}

}  // namespace etstream
