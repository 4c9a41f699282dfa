// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/embedded_file.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/append.h"
#include "etstream/memory_alignment.h"
#include "etstream/packed_file.h"
#include "formats/elf/object_file.h"

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

/// Refuses a file that a compiler can't take: one with a character in its path that can't stand between
/// quotes there, where `special` are others, or one that is packed.
Result<void> check_path(const std::string& path, std::string_view special = "") {
  const auto is_wrong = [&](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7F || c == '"' || c == '\\' ||
           special.find(c) != std::string_view::npos;
  };
  if (path.empty() || std::ranges::any_of(path, is_wrong)) {
    return with_advice(
        make_error(ErrorCode::kInvalidArgument,
                   "expected a path without control characters and \"\\{}, found {}", special, quote(path)),
        {"write an object file, which does not name the file"});
  }
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::raw_file(path));
  ETSTREAM_ASSIGN(const bool packed, is_packed(file));
  if (!packed) return {};
  return with_advice(
      error_in(ErrorCode::kInvalidArgument, path, "is a packed file, and would be embedded so"),
      {"write an object file, or unpack it first"});
}

Result<ObjectTarget> target_of(const EmbeddedFile& file, std::string_view output) {
  if (file.target) return *file.target;
  return make_error(ErrorCode::kInvalidArgument, "{}: expected a target, found none", output);
}

FilePlan text_plan(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return plan_copy(ByteSource::owned({bytes.begin(), bytes.end()}), "text");
}

/// Returns what a build is told that finds a file of another size.
std::string expected(const EmbeddedFile& file) {
  return text("expected {} bytes: embed {} again", file.data.size(), file.symbol);
}

/// Returns the lines of assembly that a .S file and a .c file have in common.
std::vector<std::string> assembly(const EmbeddedFile& file) {
  const std::string& symbol = file.symbol;
  const std::uint64_t size = file.data.size();
  return {
      text(".pushsection {}, \"a\", %progbits", section_of(file)),
      text(".balign {}", file.alignment),
      text(".global {0}, {0}_end, {0}_size", symbol),
      text(".type {}, %object", symbol),
      text(".size {}, {}", symbol, size),
      text("{}:", symbol),
      text(".incbin \"{}\"", file.path),
      text("{}_end:", symbol),
      // Each moves backwards, which is an error, if the file has more or fewer bytes; clang evaluates no .if
      // of labels in an asm declaration.
      text(".org {0} + {1} /* {2} */", symbol, size, expected(file)),
      text(".org {0}_end /* {1} */", symbol, expected(file)),
      ".balign 8",
      text(".type {}_size, %object", symbol),
      text("{}_size:", symbol),
      text(".dc.a {}", size),
      ".popsection",
  };
}

/// Returns the comment that each text begins with.
std::string comment(const EmbeddedFile& file) {
  return text("/* Written by etstream embed: {} bytes as {}, at a multiple of {}. */\n", file.data.size(),
              file.symbol, file.alignment);
}

/// Returns what a linker calls object files.
std::string_view linker_format(ObjectTarget target) {
  switch (target) {
    case ObjectTarget::kArm:
      return "elf32-littlearm";
    case ObjectTarget::kAarch64:
      return "elf64-littleaarch64";
    case ObjectTarget::kRiscv32:
      return "elf32-littleriscv";
    case ObjectTarget::kRiscv64:
      return "elf64-littleriscv";
    case ObjectTarget::kAmd64:
      return "elf64-x86-64";
  }
  return "";
}

Result<FilePlan> plan_object(const EmbeddedFile& file, std::string_view output) {
  ETSTREAM_ASSIGN(const ObjectTarget target, target_of(file, output));
  return elf::plan({file.data, file.symbol, section_of(file), file.alignment, target});
}

Result<FilePlan> plan_assembly(const EmbeddedFile& file, std::string_view /*output*/) {
  ETSTREAM_TRY(check_path(file.path));
  std::string out = comment(file);
  for (const std::string& line : assembly(file)) out += (line.ends_with(':') ? "" : "    ") + line + "\n";
  out += "#ifdef __linux__\n    .section .note.GNU-stack, \"\", %progbits\n#endif\n";
  return text_plan(out);
}

Result<FilePlan> plan_c(const EmbeddedFile& file, std::string_view /*output*/) {
  ETSTREAM_TRY(check_path(file.path));
  const std::uint64_t size = file.data.size();
  std::string out = comment(file);
  out += text(
      "#include <stddef.h>\n\n"
      "#if defined(__has_embed) && __STDC_VERSION__ >= 202311L\n"
      "extern const unsigned char {2}[{3}];\n"
      "extern const size_t {2}_size;\n"
      "__attribute__((section(\"{0}\"), aligned({1}))) const unsigned char {2}[] = {{\n"
      "#embed \"{4}\"\n"
      "}};\n"
      "__attribute__((section(\"{0}\"))) const size_t {2}_size = {3};\n"
      "_Static_assert(sizeof({2}) == {3}, \"{5}\");\n"
      "#else\n"
      "__asm__(\n",
      section_of(file), file.alignment, file.symbol, size, file.path, expected(file));
  for (const std::string& line : assembly(file)) {
    std::string escaped;
    for (const char c : line) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
    out += "    \"" + escaped + "\\n\"\n";
  }
  out += ");\n#endif\n";
  return text_plan(out);
}

Result<FilePlan> plan_linker_script(const EmbeddedFile& file, std::string_view output) {
  ETSTREAM_ASSIGN(const ObjectTarget target, target_of(file, output));
  ETSTREAM_TRY(check_path(file.path, ":*?["));
  return text_plan(comment(file) + text("TARGET(binary)\n"
                                        "INPUT(\"{0}\")\n"
                                        "TARGET({1})\n"
                                        "SECTIONS\n"
                                        "{{\n"
                                        "  {2} (READONLY) : ALIGN({3})\n"
                                        "  {{\n"
                                        "    {4} = .;\n"
                                        "    KEEP(\"{0}\"(.data))\n"
                                        "    {4}_end = .;\n"
                                        "    . = ALIGN(8);\n"
                                        "    {4}_size = .;\n"
                                        "    QUAD({5})\n"
                                        "  }}\n"
                                        "}}\n"
                                        "INSERT AFTER .text;\n"
                                        "ASSERT({4}_end - {4} == {5}, \"{6}\")\n",
                                        file.path, linker_format(target), section_of(file), file.alignment,
                                        file.symbol, file.data.size(), expected(file)));
}

Result<FilePlan> plan_header(const EmbeddedFile& file, std::string_view /*output*/) {
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

/// A kind of output.
struct Form {
  std::string_view ending;
  Result<FilePlan> (*plan)(const EmbeddedFile&, std::string_view);
};

constexpr Form kForms[] = {{".h", plan_header},
                           {".c", plan_c},
                           {".S", plan_assembly},
                           {".o", plan_object},
                           {".ld", plan_linker_script}};

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
    for (const Form& form : kForms) {
      if (output.ends_with(form.ending)) return form.plan(file, output);
    }
    return make_error(ErrorCode::kInvalidArgument,
                      "expected an output that ends in .h, .c, .S, .o or .ld, found {}", quote(output));
  });
}

}  // namespace etstream
