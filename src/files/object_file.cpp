// SPDX-License-Identifier: BSD-3-Clause
#include "files/object_file.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/file_plan.h"

namespace etstream::elf {
namespace {

constexpr std::uint64_t kWord = 8;  // the alignment of tables, at least what 32 and 64 bits ask for
constexpr std::uint64_t kPage = 4096;

/// A processor, as the supplement of its ABI describes it: e_machine and e_flags of the header.
struct Machine {
  bool has_64_bits = false;
  std::uint16_t number = 0;
  std::uint32_t flags = 0;
  /// True for objects that have a section .note.GNU-stack. Without it, a linker for x86-64 takes code on the
  /// stack for wanted; with it, one for Cortex-M warns of all other objects, as they have none.
  bool has_stack_note = true;
};

Machine machine_of(ObjectTarget target) {
  switch (target) {
    case ObjectTarget::kArm:
      return {false, 40, 0x05000000, false};  // EM_ARM, EF_ARM_EABI_VER5
    case ObjectTarget::kAarch64:
      return {true, 183, 0};  // EM_AARCH64
    case ObjectTarget::kRiscv32:
      return {false, 243, 0};  // EM_RISCV, EF_RISCV_FLOAT_ABI_SOFT
    case ObjectTarget::kRiscv64:
      return {true, 243, 4};  // EM_RISCV, EF_RISCV_FLOAT_ABI_DOUBLE
    case ObjectTarget::kAmd64:
      return {true, 62, 0};  // EM_X86_64
  }
  return {};
}

/// Little-endian numbers one after another. Some are as wide as an address.
class Numbers {
 public:
  explicit Numbers(bool has_64_bits) : address_size_(has_64_bits ? 8 : 4) {}

  Numbers& byte(std::uint64_t value) { return add(value, 1); }
  Numbers& half(std::uint64_t value) { return add(value, 2); }
  Numbers& word(std::uint64_t value) { return add(value, 4); }
  Numbers& address(std::uint64_t value) { return add(value, address_size_); }
  Numbers& text(std::string_view characters) {
    for (const char c : characters) byte(static_cast<unsigned char>(c));
    return *this;
  }
  /// Adds zeros up to a multiple of kWord, where the first number lies at one.
  Numbers& pad() {
    bytes_.resize(bytes_.size() + padding_to(bytes_.size(), kWord));
    return *this;
  }

  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  Numbers& add(std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }

  std::size_t address_size_;
  std::vector<std::byte> bytes_;
};

// The sections by index, and the fields' values that they take.
enum : std::uint16_t { kNone, kData, kSymbols, kNames };
enum SectionType : std::uint32_t { kUnused = 0, kBytes = 1, kSymbolTable = 2, kNameTable = 3 };
constexpr std::uint64_t kLoaded = 2;  // SHF_ALLOC; without SHF_WRITE and SHF_EXECINSTR

struct Section {
  std::uint64_t name = 0;  // its place among the names
  SectionType type = kUnused;
  std::uint64_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t link = 0;
  std::uint64_t info = 0;
  std::uint64_t alignment = 0;
  std::uint64_t entry_size = 0;
};

void add_section(Numbers& out, const Section& section) {
  out.word(section.name).word(section.type).address(section.flags).address(0).address(section.offset);
  out.address(section.size).word(section.link).word(section.info).address(section.alignment);
  out.address(section.entry_size);
}

/// Adds a global symbol of the data section.
void add_symbol(Numbers& out, const Machine& machine, std::uint64_t name, std::uint64_t value,
                std::uint64_t size) {
  constexpr std::uint64_t kGlobalObject = 0x11;  // STB_GLOBAL, STT_OBJECT
  out.word(name);
  if (!machine.has_64_bits) out.word(value).word(size);
  out.byte(kGlobalObject).byte(0).half(kData);
  if (machine.has_64_bits) out.address(value).address(size);
}

/// Returns the header of the file, which has `sections` headers of sections at `offset`.
std::vector<std::byte> file_header(const Machine& machine, std::size_t sections, std::uint64_t offset) {
  Numbers out(machine.has_64_bits);
  out.text(
      "\x7F"
      "ELF");
  out.byte(machine.has_64_bits ? 2 : 1).byte(1).byte(1).pad().address(0);  // little-endian, version 1
  if (!machine.has_64_bits) out.word(0);
  out.half(1).half(machine.number).word(1);  // relocatable
  out.address(0).address(0).address(offset).word(machine.flags);
  out.half(machine.has_64_bits ? 64 : 52).half(0).half(0);
  out.half(machine.has_64_bits ? 64 : 40).half(sections).half(kNames);
  return out.take();
}

}  // namespace

Result<FilePlan> plan(const ObjectFile& file) {
  const Machine machine = machine_of(file.target);
  const std::uint64_t address_size = machine.has_64_bits ? 8 : 4;
  const std::uint64_t size = file.data.size();
  FilePlan out;
  ETSTREAM_TRY(append(out, 1, "header", ByteSource::owned(file_header(machine, 0, 0))));
  // A linker aligns the data in memory. In this file it lies as an assembler lays it out, up to a page.
  ETSTREAM_TRY(pad(out, std::clamp(file.alignment, kWord, kPage)));
  const std::uint64_t data = out.size;
  ETSTREAM_TRY(append(out, 1, "data", file.data));
  ETSTREAM_TRY(pad(out, kWord));

  const std::uint64_t tail = out.size;
  Numbers numbers(machine.has_64_bits);
  numbers.address(size);
  const std::uint64_t data_end = tail + numbers.size();

  std::string names(1, '\0');
  const auto name = [&](std::string_view each) {
    const std::uint64_t place = names.size();
    names.append(each).push_back('\0');
    return place;
  };
  const std::uint64_t symbols = tail + numbers.pad().size();
  numbers.address(0).address(0).address(0);  // the symbol that stands for none
  if (!machine.has_64_bits) numbers.word(0);
  const std::uint64_t symbol_size = tail + numbers.size() - symbols;
  add_symbol(numbers, machine, name(file.symbol), 0, size);
  add_symbol(numbers, machine, name(file.symbol + "_end"), size, 0);
  add_symbol(numbers, machine, name(file.symbol + "_size"), tail - data, address_size);
  const std::uint64_t symbols_end = tail + numbers.size();

  constexpr std::uint64_t kFirstGlobal = 1;
  std::vector<Section> sections(kNames + 1);
  sections[kData] = {.name = name(file.section),
                     .type = kBytes,
                     .flags = kLoaded,
                     .offset = data,
                     .size = data_end - data,
                     .alignment = std::max(file.alignment, kWord)};
  sections[kSymbols] = {.name = name(".symtab"),
                        .type = kSymbolTable,
                        .offset = symbols,
                        .size = symbols_end - symbols,
                        .link = kNames,
                        .info = kFirstGlobal,
                        .alignment = kWord,
                        .entry_size = symbol_size};
  if (machine.has_stack_note) {
    sections.push_back({.name = name(".note.GNU-stack"), .type = kBytes, .offset = data_end});
  }
  sections[kNames] = {.name = name(".strtab"), .type = kNameTable, .offset = symbols_end};
  sections[kNames].size = names.size();
  const std::uint64_t headers = tail + numbers.text(names).pad().size();
  for (const Section& each : sections) add_section(numbers, each);

  out.extents.front().source = ByteSource::owned(file_header(machine, sections.size(), headers));
  ETSTREAM_TRY(append(out, 1, "symbols and sections", ByteSource::owned(numbers.take())));
  if (!machine.has_64_bits && out.size > std::numeric_limits<std::uint32_t>::max()) {
    return error_in(ErrorCode::kTooLarge, file.data.name(),
                    "is too large: an object file for 32 bits has up to 4 GiB, and this would have {}",
                    counted(out.size, "byte"));
  }
  out.payload_size = size;
  out.metadata_size = out.size - size;
  return out;
}

}  // namespace etstream::elf
