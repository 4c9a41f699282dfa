// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/executorch/program_loader.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>

#include "example_bundle.h"
#include "test_errors.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;
using runtime::DataLoader;
using Loader = std::unique_ptr<DataLoader>;

constexpr auto kNoLimit = std::numeric_limits<std::size_t>::max();

DataLoader::SegmentInfo segment() { return DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::Program); }

/// Both loaders of the program in a segmented bundle.
struct Loaders {
  TemporaryFolder folder;
  BundledProgramFile bundle = segmented_example(folder);
  std::string program = content_of(example("model.pte"));
  Loader copying = open_program_loader(bundle.program()).value();
  Loader mapped = open_mapped_program_loader(bundle.program()).value();
};

std::string loaded(const DataLoader& loader, std::size_t offset, std::size_t size) {
  const auto buffer = loader.load(offset, size, segment());
  REQUIRE(buffer.ok());
  CHECK(buffer->size() == size);
  return {static_cast<const char*>(buffer->data()), size};
}

TEST_CASE("the size is the program's, to the byte, and all of it can be loaded") {
  const Loaders loaders;
  for (const Loader* loader : {&loaders.copying, &loaders.mapped}) {
    CHECK((*loader)->size().get() == loaders.program.size());
    CHECK(loaded(**loader, 0, loaders.program.size()) == loaders.program);
    CHECK(loaded(**loader, 7, 1000) == loaders.program.substr(7, 1000));
    std::string into(1000, '\0');
    CHECK((*loader)->load_into(7, into.size(), segment(), into.data()) == runtime::Error::Ok);
    CHECK(into == loaders.program.substr(7, 1000));
  }
}

TEST_CASE("what is not inside the program is refused, also where the file goes on") {
  const Loaders loaders;
  const std::size_t end = loaders.program.size();
  const std::pair<std::size_t, std::size_t> outside[] = {
      {end, 1}, {end - 1, 2}, {0, end + 1}, {end + 1, 0}, {kNoLimit, 1}, {1, kNoLimit}, {kNoLimit, kNoLimit}};
  char into[16];
  for (const Loader* loader : {&loaders.copying, &loaders.mapped}) {
    for (const auto& [offset, size] : outside) {
      CAPTURE(offset);
      CAPTURE(size);
      CHECK((*loader)->load(offset, size, segment()).error() == runtime::Error::InvalidArgument);
      CHECK((*loader)->load_into(offset, size, segment(), into) == runtime::Error::InvalidArgument);
    }
    CHECK((*loader)->load_into(0, 1, segment(), nullptr) == runtime::Error::InvalidArgument);
    CHECK((*loader)->load(end, 0, segment())->size() == 0);
    CHECK((*loader)->load_into(end, 0, segment(), nullptr) == runtime::Error::Ok);
  }
}

TEST_CASE("what is loaded is aligned as it is in the program") {
  const Loaders loaders;
  for (const Loader* loader : {&loaders.copying, &loaders.mapped}) {
    for (const std::size_t alignment : {64U, 128U, 1024U, 4096U}) {
      const auto buffer = (*loader)->load(alignment, 100, segment());
      CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % alignment == 0);
    }
    CHECK(reinterpret_cast<std::uintptr_t>((*loader)->load(0, 1, segment())->data()) % 4096 == 0);
  }
}

TEST_CASE("each mapped load is a view of the same pages, which outlives the loader") {
  Loaders loaders;
  const auto whole = loaders.mapped->load(0, loaders.program.size(), segment());
  auto part = loaders.mapped->load(4096, 5000, segment());
  const auto* const begin = static_cast<const char*>(whole->data());
  CHECK(part->data() == begin + 4096);
  loaders.mapped.reset();
  // Pages that one buffer gives back can still be seen through the other.
  part->Free();
  CHECK(std::string(begin, loaders.program.size()) == loaders.program);
}

TEST_CASE("a copied buffer outlives the loader") {
  Loaders loaders;
  const auto whole = loaders.copying->load(0, loaders.program.size(), segment());
  loaders.copying.reset();
  CHECK(std::memcmp(whole->data(), loaders.program.data(), loaders.program.size()) == 0);
}

TEST_CASE("several threads load at once") {
  const Loaders loaders;
  for (const Loader* loader : {&loaders.copying, &loaders.mapped}) {
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (std::size_t seed = 0; seed < 8; ++seed) {
      threads.emplace_back([&, seed] {
        for (std::size_t i = 0; i < 200; ++i) {
          const std::size_t offset = (seed * 7919 + i * 104729) % (loaders.program.size() - 512);
          const auto buffer = (*loader)->load(offset, 512, segment());
          char into[512];
          const auto error = (*loader)->load_into(offset, 512, segment(), into);
          const char* const right = loaders.program.data() + offset;
          if (!buffer.ok() || error != runtime::Error::Ok || std::memcmp(buffer->data(), right, 512) != 0 ||
              std::memcmp(into, right, 512) != 0) {
            ++wrong;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("no page of a mapped program is locked") {
  const Loaders loaders;
  const auto whole = loaders.mapped->load(0, loaders.program.size(), segment());
  CHECK(content_of("/proc/self/status").find("VmLck:\t       0 kB") != std::string::npos);
}

TEST_CASE("a program that does not lie aligned is not mapped, and the error says what helps") {
  const TemporaryFolder folder;
  const auto bundle = example_bundle(folder, "bp08.bpte", {});
  const auto offset = bundle.program_offset();
  REQUIRE(offset % 128 != 0);
  CHECK(error_of(open_mapped_program_loader(bundle.program())) ==
        containing("kUnsupported: " + folder / "bp08.bpte" + ": the program is at offset " +
                   std::to_string(offset)));
  CHECK(error_of(open_mapped_program_loader(bundle.program())) == containing("program_alignment 4096"));
  CHECK(open_program_loader(bundle.program()));
}

TEST_CASE("a BP08 file with its program aligned, and a program of its own, are mapped") {
  const TemporaryFolder folder;
  BundledProgramFileOptions options;
  options.program_alignment = 4096;
  const auto bundle = example_bundle(folder, "aligned.bpte", options);
  const std::string program = content_of(example("model.pte"));
  const auto file = ByteSource::file(example("model.pte")).value();
  for (const ByteSource& source : {bundle.program(), file}) {
    const auto loader = open_mapped_program_loader(source);
    REQUIRE(loader);
    CHECK(loaded(**loader, 0, program.size()) == program);
  }
}

TEST_CASE("what is not in a file, or is no program, is not mapped") {
  const std::string program = content_of(example("model.pte"));
  const auto memory = ByteSource::memory(std::as_bytes(std::span(program)));
  CHECK(code_of(open_mapped_program_loader(memory)) == "kUnsupported");
  CHECK(code_of(open_mapped_program_loader(ByteSource())) == "kUnsupported");
  const auto cases = ByteSource::file(example("cases.json")).value();
  CHECK(code_of(open_mapped_program_loader(cases)) != "no error");
}

TEST_CASE("a file that was changed before it is mapped is refused") {
  const Loaders loaders;
  std::filesystem::resize_file(loaders.folder / "segmented.bpte", 100'000);
  CHECK(error_of(open_mapped_program_loader(loaders.bundle.program())) == containing("changed or replaced"));
}

TEST_CASE("a file that is shortened under a copying loader is an error of the load") {
  const Loaders loaders;
  std::filesystem::resize_file(loaders.folder / "segmented.bpte", loaders.bundle.program_offset() + 1000);
  CHECK(loaders.copying->load(0, 1000, segment()).ok());
  CHECK(loaders.copying->load(0, 1001, segment()).error() == runtime::Error::AccessFailed);
  char into[2];
  CHECK(loaders.copying->load_into(999, 2, segment(), into) == runtime::Error::AccessFailed);
}

}  // namespace
}  // namespace etstream
