// SPDX-License-Identifier: BSD-3-Clause
//
// Packed programs run as the plain ones do.
#include <doctest/doctest.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "etstream/executorch/program_loader.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/sink.h"
#include "example_bundle.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream {
namespace {

namespace runtime = ::executorch::runtime;
using ::executorch::extension::Module;

runtime::DataLoader::SegmentInfo segment() {
  return runtime::DataLoader::SegmentInfo(runtime::DataLoader::SegmentInfo::Type::Program);
}

/// Writes a file, which is packed if its name ends so, and opens it.
ByteSource written(const FilePlan& plan, const std::string& path) {
  const auto sink = open_file_sink(path);
  REQUIRE(sink);
  REQUIRE(write(plan, **sink));
  const auto file = ByteSource::file(path);
  REQUIRE(file);
  CHECK(packed_summary(*file).has_value() == path.ends_with(kPackedSuffix));
  return *file;
}

std::unique_ptr<Module> open_module(const std::string& program, const std::string& weights) {
  auto program_loader = open_program_loader(ByteSource::file(program).value());
  auto weights_loader = open_program_loader(ByteSource::file(weights).value());
  return std::make_unique<Module>(std::move(program_loader).value(), nullptr, nullptr, nullptr,
                                  std::move(weights_loader).value());
}

/// Returns the bytes of the output of examples/model.pte, which is loaded, for its first test case.
std::string output_of(Module& module) {
  const TemporaryFolder folder;
  const BundledProgramFile bundle = segmented_example(folder);
  const auto first = bundle.test_case(bundle.suites()[0], 0).value();
  const Tensor& image = std::get<Tensor>(first.inputs[0]);
  std::vector<float> pixels(image.data.size() / sizeof(float));
  REQUIRE(image.data.read_at(0, std::as_writable_bytes(std::span(pixels))));
  const auto outputs = module.forward(::executorch::extension::from_blob(pixels.data(), {1, 1, 16, 16}));
  REQUIRE(outputs.ok());
  const auto& scores = outputs->at(0).toTensor();
  return {static_cast<const char*>(scores.const_data_ptr()), scores.nbytes()};
}

std::string output_of(const ByteSource& program) {
  Module module(open_program_loader(program).value());
  return output_of(module);
}

TEST_CASE("a packed program gives the outputs of the plain one") {
  const TemporaryFolder folder;
  const auto plain = ByteSource::file(example("model.pte")).value();
  const std::string expected = output_of(plain);
  CHECK(expected.size() == 10 * sizeof(float));
  CHECK(output_of(written(plan_copy(plain, "program"), folder / "model.pte.etz")) == expected);
}

TEST_CASE("a packed program with packed weights gives the outputs of the plain ones") {
  const TemporaryFolder folder;
  const auto whole = ByteSource::file(example("model.pte")).value();
  ProgramChanges changes;
  changes.constants_out = ConstantsOut();
  const auto planned = plan(ProgramFile::open(whole).value(), changes, {}).value();
  REQUIRE(planned.tensor_data);
  const std::string expected = output_of(whole);
  for (const std::string end : {"", ".etz"}) {
    written(planned.program, folder / ("model.pte" + end));
    written(plan(*planned.tensor_data).value(), folder / ("model.ptd" + end));
    CHECK(output_of(*open_module(folder / ("model.pte" + end), folder / ("model.ptd" + end))) == expected);
  }
}

TEST_CASE("the program of a packed bundle, of either format, gives the outputs of the plain one") {
  const TemporaryFolder folder;
  const std::string expected = output_of(ByteSource::file(example("model.pte")).value());
  for (const BundleFormat format : {BundleFormat::kBp08, BundleFormat::kSegmented}) {
    BundledProgramFileOptions options;
    options.format = format;
    const auto bundle = example_bundle(folder, "packed.bpte.etz", options);
    CHECK(is_packed(ByteSource::raw_file(folder / "packed.bpte.etz").value()).value());
    CHECK(output_of(bundle.program()) == expected);
  }
}

TEST_CASE("a packed program is not mapped, and the error names the loader that reads it") {
  const TemporaryFolder folder;
  const auto plain = ByteSource::file(example("model.pte")).value();
  const auto packed = written(plan_copy(plain, "program"), folder / "model.pte.etz");
  CHECK(error_of(open_mapped_program_loader(packed)) ==
        containing("kUnsupported: " + folder / "model.pte.etz" + ": is packed"));
  CHECK(error_of(open_mapped_program_loader(packed)) == containing("open_program_loader()"));
}

/// Returns bytes of which each MiB is coded in another way.
std::string large() {
  constexpr std::size_t kSize = (std::size_t{11} << 20) + 12345;
  std::mt19937 random(1);
  std::string out(kSize, '\0');
  for (std::size_t i = 0; i + sizeof(float) < out.size(); i += sizeof(float)) {
    const auto value = static_cast<float>(random()) / 4e9F - 0.5F;
    if (i >> 20 & 1U) std::memcpy(out.data() + i, &value, sizeof(value));
  }
  return out;
}

TEST_CASE("several threads load parts of every size of a packed file at once") {
  set_default_threads(4);
  const TemporaryFolder folder;
  const std::string bytes = large();
  const auto packed = written(plan_copy(source_of(bytes), "weights"), folder / "large.etz");
  const auto loader = open_program_loader(packed).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 12; ++i) {
        const std::size_t offset = i % 4 == 0 ? 0 : random() % bytes.size();
        const std::size_t size = 1 + random() % (bytes.size() - offset);
        const auto loaded = loader->load(offset, size, segment());
        std::string into(size, '\0');
        const auto error = loader->load_into(offset, size, segment(), into.data());
        if (!loaded.ok() || std::memcmp(loaded->data(), bytes.data() + offset, size) != 0) ++wrong;
        if (error != runtime::Error::Ok || into.compare(0, size, bytes, offset, size) != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a damaged piece is an error of each load that needs it") {
  const TemporaryFolder folder;
  const std::string bytes = large();
  written(plan_copy(source_of(bytes), "weights"), folder / "large.etz");
  std::string packed = content_of(folder / "large.etz");
  packed[packed.size() / 2] = static_cast<char>(~packed[packed.size() / 2]);
  put_file(folder / "large.etz", packed);
  const auto loader = open_program_loader(ByteSource::file(folder / "large.etz").value()).value();
  CHECK(loader->load(0, bytes.size(), segment()).error() == runtime::Error::AccessFailed);
  std::string into(bytes.size(), '\0');
  CHECK(loader->load_into(0, into.size(), segment(), into.data()) == runtime::Error::AccessFailed);
  CHECK(loader->load_into(0, 100, segment(), into.data()) == runtime::Error::Ok);
}

}  // namespace
}  // namespace etstream
