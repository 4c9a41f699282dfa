// SPDX-License-Identifier: BSD-3-Clause
//
// The processors that etstream writes object files for.
//
//   for (const std::string_view name : etstream::kObjectTargets) std::puts(std::string(name).c_str());
//
// A file in a program for a board: as an object file that a linker takes, or as assembly that names it. C
// code reads it as an array of bytes. To write model.o for a Cortex-M:
//
//   auto file = etstream::open_embedded_file("model.pte");
//   if (!file) return file.error();
//   file->target = etstream::ObjectTarget::kArm;
//   const auto plan = etstream::plan(*file, "model.o");
//   if (!plan) return plan.error();
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// The processor that an object file is for. All are little-endian.
enum class ObjectTarget {
  kArm,      // 32 bits, as Cortex-M, for any float ABI
  kAarch64,  // 64 bits
  kRiscv32,  // for ilp32; ld takes it for any float ABI, and lld for this one alone
  kRiscv64,  // for lp64d; the same
  kAmd64     // "x86-64"
};

/// Their names, in this order.
inline constexpr std::array<std::string_view, 5> kObjectTargets = {"arm", "aarch64", "riscv32", "riscv64",
                                                                   "x86-64"};

/// A file, and how a program has it: in a section of read-only data, with the file's bytes at SYMBOL, the
/// address behind the last one at SYMBOL_end, and their number in SYMBOL_size, a constant of type size_t.
struct EmbeddedFile {
  ByteSource data;               // at least a byte
  std::string path;              // by which assembly names the file
  std::string symbol;            // a name in C
  std::string section = {};      // letters, digits, '.', '_', '-' and '$'; if empty, ".rodata.SYMBOL"
  std::uint64_t alignment = 16;  // of the first byte in memory: a power of two up to 2^30
  std::optional<ObjectTarget> target = std::nullopt;  // of object files
};

/// Opens the file at `path`, with its absolute path, a symbol made of its name ("model_pte" for
/// "out/model.pte") and memory_alignment(). Errors: those of ByteSource::file() and of memory_alignment().
[[nodiscard]] ETSTREAM_EXPORT Result<EmbeddedFile> open_embedded_file(const std::string& path);

/// Returns the section that the file is put into.
[[nodiscard]] ETSTREAM_EXPORT std::string section_of(const EmbeddedFile& file);

/// Plans an output, which the ending of `output` tells:
/// - .o: an ELF object file; the bytes are copied, in one pass;
/// - .S: assembly for GNU as and clang, which takes the file by .incbin;
/// - .h: a header for C and C++ that declares the symbols of either. The array has its size, so that sizeof
///   works.
/// An assembler that reads the file fails if that no longer has as many bytes.
/// Errors: kInvalidArgument for another ending; an empty file; a symbol, section or alignment that can't be;
/// a target that is missing; a path with a quote, a backslash or a control character, where the output would
/// have it; a packed file, where an assembler would read it. kTooLarge for an object file for 32 bits over
/// 4 GiB. kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const EmbeddedFile& file, std::string_view output);

/// Plans all outputs of a file, in their order. Errors: those of each; kInvalidArgument for headers alone, as
/// no output would have the bytes that they declare.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<FilePlan>> plan_outputs(
    const EmbeddedFile& file, const std::vector<std::string>& outputs);

}  // namespace etstream
