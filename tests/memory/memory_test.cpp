// SPDX-License-Identifier: BSD-3-Clause
//
// The memory contract: the memory that a command takes does not depend on how large the payload is.
//
//   memory_test --etstream=PATH --control=PATH --example=FOLDER --graph=PATH   (and doctest's own options)
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "peak_memory.h"

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmall = 64 * kMiB;
constexpr std::uint64_t kLarge = 1900 * kMiB;  // just under what a BP08 bundle can hold
constexpr std::uint64_t kHuge = 8192 * kMiB;   // for what has no such limit
constexpr std::uint64_t kAddressSpace = 64 * kMiB;
constexpr std::uint64_t kMostMemory = 16 * kMiB;
constexpr std::uint64_t kMostDifference = 1 * kMiB;
// Packing and unpacking with 4 threads.
constexpr std::uint64_t kPackingAddressSpace = 128 * kMiB;
constexpr std::uint64_t kMostPackingMemory = 32 * kMiB;
constexpr std::uint64_t kMostUpdateMemory = 20 * kMiB;  // with one thread
// A MiB for each thread: a page of zstd's tables counts once a piece has touched it, and which threads get
// pieces depends on the system. After 3.5 GiB zstd touches all of them.
constexpr std::uint64_t kMostPackingDifference = 4 * kMiB;

std::string etstream_path;
std::string control_path;
std::string example_folder;
std::string graph_path;

/// Runs `command`, prints its peak memory and returns it.
PeakMemory run(const std::vector<std::string>& command, std::uint64_t size, bool limited,
               std::uint64_t address_space = kAddressSpace) {
  const auto peak = measure(command, limited ? std::optional(address_space) : std::nullopt);
  std::printf("%s %s, %llu MiB: exit code %d, peak %.2f MiB anonymous, %.2f MiB resident\n",
              fs::path(command[0]).filename().c_str(), command[1].c_str(),
              static_cast<unsigned long long>(size / kMiB), peak.exit_code,
              static_cast<double>(peak.anonymous) / kMiB, static_cast<double>(peak.resident) / kMiB);
  return peak;
}

/// Checks that `command`, which took `peak` for files of `size` bytes in all, is refused before it writes if
/// it may take less than that, and is not refused if it may take 2 MiB more.
void check_limits(std::vector<std::string> command, const PeakMemory& peak, std::uint64_t size) {
  REQUIRE(peak.exit_code == 0);
  command.emplace_back("--dry-run");
  const auto fits = [&](const std::string& option, std::uint64_t most) {
    auto limited = command;
    limited.insert(limited.end(), {option, std::to_string(most)});
    return measure(limited, std::nullopt).exit_code == 0;
  };
  CHECK_FALSE(fits("--max-memory", peak.anonymous - 1));
  CHECK(fits("--max-memory", peak.anonymous + 2 * kMiB));
  CHECK_FALSE(fits("--max-disk", size - 1));
  CHECK(fits("--max-disk", size));
}

/// The place of elements in the second row of 1 KiB, which other orders of dimensions and rows move.
constexpr std::uint64_t kMoved = 1024 + 4;

/// A folder for large files that is removed with the object.
class LargeFiles {
 public:
  LargeFiles() {
    std::string pattern = fs::temp_directory_path() / "etstream-memory-XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  LargeFiles(const LargeFiles&) = delete;
  LargeFiles& operator=(const LargeFiles&) = delete;
  ~LargeFiles() { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  /// Makes the example's model `size` bytes long by a hole, and copies its test cases beside it.
  [[nodiscard]] std::string sparse_model(std::uint64_t size) const {
    for (const auto& file : fs::directory_iterator(example_folder)) {
      if (file.is_regular_file()) fs::copy(file, folder_, fs::copy_options::skip_existing);
    }
    std::string model = path(std::to_string(size) + ".pte");
    fs::copy_file(path("model.pte"), model);
    fs::resize_file(model, size);
    return model;
  }

  /// Makes the same with the hole as part of its one segment.
  [[nodiscard]] std::string model_with_sparse_segment(std::uint64_t size) const {
    std::string model = sparse_model(size);
    stretch_segment(model, size);
    return model;
  }

  /// Makes a program of this size. Its one segment is a hole that a delegate would ask for by name.
  [[nodiscard]] std::string sparse_named_data(const std::string& name, std::uint64_t size) const {
    std::ofstream(path("named.json")) << R"({"version":0,"execution_plan":[{"name":"forward",)"
                                         R"("container_meta_type":{},"values":[{"val_type":"Int","val":{}}],)"
                                         R"("inputs":[0],"outputs":[0],"chains":[{"instructions":[]}],)"
                                         R"("operators":[],"delegates":[],"non_const_buffer_sizes":[0]}],)"
                                         R"("segments":[{"data":[0,0,0,0,0,0,0]}],)"
                                         R"("named_data":[{"key":"weight","segment_index":0}]})";
    std::string program = path(name);
    REQUIRE(run({etstream_path, "pte", path("named.json"), "-o", program}, 0, false).exit_code == 0);
    fs::resize_file(program, size);
    stretch_segment(program, size);
    return program;
  }

  /// Makes a program whose one constant has so many rows of 1 KiB: a hole, but for two elements, of whose
  /// bytes these are the first.
  [[nodiscard]] std::string sparse_constant(std::uint64_t rows, const std::string& bytes) const {
    constexpr std::uint64_t kRow = 1024;
    std::ofstream(path("rows.bin")) << std::string(3 * kRow, '\0');
    std::ofstream(path("constant.json"))
        << R"({"version":0,"execution_plan":[{"name":"forward","container_meta_type":{},"values":[{)"
           R"("val_type":"Tensor","val":{"scalar_type":"FLOAT","sizes":[3,256],"dim_order":[0,1],)"
           R"("data_buffer_idx":1}}],"inputs":[],"outputs":[0],"chains":[{"instructions":[]}],)"
           R"("operators":[],"delegates":[],"non_const_buffer_sizes":[0]}],)"
           R"("constant_buffer":[{"storage":[]},{"storage":{"file":"rows.bin"}}]})";
    std::string program = path("constant.pte");
    REQUIRE(run({etstream_path, "pte", path("constant.json"), "--as-of", "1.2", "-o", program}, 0, false)
                .exit_code == 0);
    const std::uint64_t base = fs::file_size(program) - 3 * kRow;
    std::string head(base, '\0');
    std::ifstream(program, std::ios::binary).read(head.data(), static_cast<std::streamsize>(base));
    const auto sizes = head.find(std::string("\3\0\0\0\0\1\0\0", 8));
    REQUIRE(sizes != std::string::npos);
    fs::resize_file(program, base + rows * kRow);
    stretch_segment(program, base + rows * kRow);
    const auto count = static_cast<std::uint32_t>(rows);
    put(program, sizes, std::string(reinterpret_cast<const char*>(&count), sizeof(count)));
    put(program, base + kMoved, bytes + "both");
    return program;
  }

  /// Makes a checkpoint of a tensor with so many rows of 1 KiB: a hole, but for two elements.
  [[nodiscard]] std::string sparse_rows(const std::string& name, std::uint64_t rows,
                                        const std::string& bytes) const {
    const std::uint64_t size = rows * 1024;
    std::string checkpoint = path(name);
    fs::rename(write_checkpoint({{"weight", size}}), checkpoint);
    put(checkpoint, fs::file_size(checkpoint) - size + kMoved, bytes + "both");
    return checkpoint;
  }

  /// Makes a safetensors file of this size: two tensors, which are holes.
  [[nodiscard]] std::string sparse_checkpoint(std::uint64_t size) const {
    const std::uint64_t middle = size / 4;
    return write_checkpoint({{"a", middle}, {"b", size - middle}});
  }

  /// Makes the same with so many tensors of 1 KiB each.
  [[nodiscard]] std::string checkpoint_of(std::uint64_t tensors) const {
    std::vector<std::pair<std::string, std::uint64_t>> sizes;
    for (std::uint64_t i = 0; i < tensors; ++i) sizes.emplace_back("tensor." + std::to_string(i), 1024);
    return write_checkpoint(sizes);
  }

 private:
  /// Writes a checkpoint of tensors by names, and sizes in bytes.
  [[nodiscard]] std::string write_checkpoint(
      const std::vector<std::pair<std::string, std::uint64_t>>& tensors) const {
    std::string header;
    std::uint64_t size = 0;
    for (const auto& [name, bytes] : tensors) {
      header += (header.empty() ? "{" : ",") + ("\"" + name) + R"(":{"dtype":"F32","shape":[)" +
                std::to_string(bytes / 1024) + R"(,256],"data_offsets":[)" + std::to_string(size) + "," +
                std::to_string(size + bytes) + "]}";
      size += bytes;
    }
    header += "}";
    header.append((8 - header.size() % 8) % 8, ' ');
    const auto length = static_cast<std::uint64_t>(header.size());
    std::string checkpoint = path("checkpoint.safetensors");
    std::ofstream(checkpoint, std::ios::binary)
        .write(reinterpret_cast<const char*>(&length), sizeof(length))
        .write(header.data(), static_cast<std::streamsize>(header.size()));
    fs::resize_file(checkpoint, sizeof(length) + length + size);
    return checkpoint;
  }

  static void put(const std::string& file, std::uint64_t offset, const std::string& bytes) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(offset))
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  /// Moves the end of a program's one segment to the end of the file, which has `size` bytes.
  static void stretch_segment(const std::string& model, std::uint64_t size) {
    constexpr std::size_t kSegmentBase = 24;  // where the extended header has it
    constexpr std::size_t kDataSize = 32;
    std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t base = 0;
    file.seekg(kSegmentBase);
    file.read(reinterpret_cast<char*>(&base), sizeof(base));
    std::string head(base, '\0');
    file.seekg(0);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    const std::string old = head.substr(kDataSize, sizeof(size));
    const std::uint64_t now = size - base;
    std::size_t places = 0;
    for (auto at = head.find(old, kDataSize); at != std::string::npos; at = head.find(old, at + 1)) {
      ++places;
      file.seekp(static_cast<std::streamoff>(at));
      file.write(reinterpret_cast<const char*>(&now), sizeof(now));
    }
    REQUIRE(places == 2);  // in the header, and in the segment's table
  }

  fs::path folder_;
};

/// Returns `wanted`, or less if the disk has no room for the output. Prints a message if so.
std::uint64_t size_that_fits(std::uint64_t wanted) {
  const std::uint64_t room = fs::space(fs::temp_directory_path()).available;
  if (room > wanted + 1024 * kMiB) return wanted;
  const std::uint64_t size = room / 2;
  std::fprintf(stderr, "SCALED DOWN: %llu MiB are free, so %llu MiB are bundled instead of %llu\n",
               static_cast<unsigned long long>(room / kMiB), static_cast<unsigned long long>(size / kMiB),
               static_cast<unsigned long long>(wanted / kMiB));
  return size;
}

std::vector<std::string> bundle_command(const std::string& command, const LargeFiles& files,
                                        std::uint64_t size, const std::string& format = "bp08") {
  if (format != "bp08") {
    auto plain = bundle_command(command, files, size);
    plain.insert(plain.end(), {"--to", format});
    return plain;
  }
  return {command,
          "bundle",
          files.sparse_model(size),
          "--cases",
          files.path("cases.json"),
          "-o",
          files.path("out.bpte")};
}

/// Returns whether the peaks for a small and for a large payload keep the contract.
bool keeps_contract(const PeakMemory& small, const PeakMemory& large, std::uint64_t most = kMostMemory,
                    std::uint64_t most_difference = kMostDifference) {
  const auto difference = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; };
  return small.exit_code == 0 && large.exit_code == 0 && small.anonymous > 0 && large.anonymous > 0 &&
         small.resident <= most && large.resident <= most &&
         difference(small.anonymous, large.anonymous) <= most_difference &&
         difference(small.resident, large.resident) <= most_difference;
}

PeakMemory bundle(const std::string& command, std::uint64_t size, bool limited) {
  const LargeFiles files;
  const PeakMemory peak = run(bundle_command(command, files, size), size, limited);
  if (peak.exit_code == 0) CHECK(fs::file_size(files.path("out.bpte")) > size);
  return peak;
}

/// Returns the peaks of the commands that read, for a bundle of `size`.
std::vector<PeakMemory> read(std::uint64_t size, const std::string& format) {
  const LargeFiles files;
  const std::string file = files.path("out.bpte");
  const auto bundling = bundle_command(etstream_path, files, size, format);
  std::vector<PeakMemory> peaks = {run(bundling, size, true)};
  check_limits(bundling, peaks[0], fs::file_size(file));
  const std::string converted = files.path("converted.bpte");
  const std::vector<std::string> converting = {etstream_path, "convert", file,     "--to",
                                               "segmented",   "-o",      converted};
  peaks.push_back(run(converting, size, true));
  check_limits(converting, peaks[1], fs::file_size(converted));
  fs::remove(converted);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"verify", file},
        {"inspect", file},
        {"extract", file, "program", "-o", files.path("program.pte"), "--cases", files.path("cases")}}) {
    std::vector<std::string> command = {etstream_path};
    command.insert(command.end(), arguments.begin(), arguments.end());
    peaks.push_back(run(command, size, true));
  }
  CHECK(fs::file_size(files.path("program.pte")) == size);
  return peaks;
}

/// Returns the peak of comparing an output of `size` with the one that a bundle expects.
std::vector<PeakMemory> compare(std::uint64_t size) {
  const LargeFiles files;
  const std::string model = files.sparse_model(kMiB);
  const std::string outputs = files.path("outputs");
  fs::create_directory(outputs);
  for (const std::string& path : {files.path("expected.bin"), outputs + "/out-0.bin"}) {
    std::ofstream(path).close();
    fs::resize_file(path, size);
  }
  std::ofstream(files.path("cases.json"))
      << R"({"forward": [{"inputs": [], "expected_outputs": [{"raw": "expected.bin", "dtype": "float64", )"
      << "\"shape\": [" << size / sizeof(double) << "]}]}]}";
  const std::string bundle = files.path("out.bpte");
  const std::vector<std::string> bundling = {
      etstream_path, "bundle", model,       "--cases",   files.path("cases.json"),
      "--unchecked", "--to",   "segmented", "--no-hash", "--no-sync",
      "-o",          bundle};
  REQUIRE(run(bundling, size, true).exit_code == 0);
  return {run({etstream_path, "compare", bundle, "--outputs", outputs}, size, true)};
}

/// Returns the peaks of laying out a program again, and of reading the result.
std::vector<PeakMemory> lay_out(std::uint64_t size) {
  const LargeFiles files;
  const std::string out = files.path("out.pte");
  const std::vector<std::string> laying_out = {etstream_path,
                                               "pte",
                                               files.model_with_sparse_segment(size),
                                               "--segment-alignment",
                                               "65536",
                                               "--strip-stack-traces",
                                               "-o",
                                               out};
  std::vector<PeakMemory> peaks = {run(laying_out, size, true)};
  check_limits(laying_out, peaks[0], fs::file_size(out));
  CHECK(fs::file_size(out) > size);
  for (const std::string command : {"verify", "inspect"}) {
    peaks.push_back(run({etstream_path, command, out}, size, true));
  }
  return peaks;
}

/// Returns the peaks of writing tensor data from a checkpoint, of reading it, and of the way back.
std::vector<PeakMemory> convert_weights(std::uint64_t size) {
  const LargeFiles files;
  const std::string weights = files.path("out.ptd");
  const std::vector<std::string> converting = {etstream_path, "ptd", files.sparse_checkpoint(size), "-o",
                                               weights};
  std::vector<PeakMemory> peaks = {run(converting, size, true)};
  check_limits(converting, peaks[0], fs::file_size(weights));
  CHECK(fs::file_size(weights) > size);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{etstream_path, "verify", weights},
        {etstream_path, "ptd", weights, "--to", "safetensors", "-o", "/dev/null"}}) {
    peaks.push_back(run(command, size, true));
  }
  return peaks;
}

/// Returns the peaks of writing a torch file from a checkpoint, verifying it, and writing tensor data from
/// it.
std::vector<PeakMemory> convert_torch_file(std::uint64_t size) {
  const LargeFiles files;
  const std::string weights = files.path("out.pth");
  const std::vector<std::string> converting = {
      etstream_path, "ptd", files.sparse_checkpoint(size), "--to", "pth", "-o", weights};
  std::vector<PeakMemory> peaks = {run(converting, size, true)};
  check_limits(converting, peaks[0], fs::file_size(weights));
  CHECK(fs::file_size(weights) > size);
  for (const std::vector<std::string>& command : {std::vector<std::string>{etstream_path, "verify", weights},
                                                  {etstream_path, "ptd", weights, "-o", "/dev/null"}}) {
    peaks.push_back(run(command, size, true));
  }
  return peaks;
}

/// Returns the peaks of packing two programs, one of them twice, and of reading the result.
std::vector<PeakMemory> pack_fat(std::uint64_t size) {
  const LargeFiles files;
  const std::string one = files.sparse_model(size / 2);
  const std::string other = files.sparse_model(size / 2 + kMiB);
  const std::string fat = files.path("out.fat");
  const std::vector<std::string> packing = {etstream_path,  "fat",     "pack", "one=" + one, "other=" + other,
                                            "again=" + one, "--align", "4096", "-o",         fat};
  std::vector<PeakMemory> peaks = {run(packing, size, true)};
  check_limits(packing, peaks[0], fs::file_size(fat));
  CHECK(fs::file_size(fat) > size);
  CHECK(fs::file_size(fat) < size + 2 * kMiB);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{etstream_path, "verify", fat},
        {etstream_path, "fat", "extract", fat, "other", "-o", "/dev/null"}}) {
    peaks.push_back(run(command, size, true));
  }
  return peaks;
}

/// Returns the peaks of sharing the weights of two programs, which are most of them.
std::vector<PeakMemory> share(std::uint64_t size) {
  const LargeFiles files;
  const std::string one = files.sparse_named_data("one.pte", size / 2);
  const std::string other = files.sparse_named_data("other.pte", size / 2);
  const std::string weights = files.path("shared.ptd");
  const std::vector<std::string> sharing = {etstream_path,
                                            "share",
                                            one,
                                            other,
                                            "--weights-to",
                                            weights,
                                            "--out-dir",
                                            files.path("thin"),
                                            "--fat",
                                            files.path("thin.fat")};
  std::vector<PeakMemory> peaks = {run({etstream_path, "share", one, other, "--dry-run"}, size, true),
                                   run(sharing, size, true)};
  check_limits(sharing, peaks[1],
               fs::file_size(weights) + fs::file_size(files.path("thin.fat")) +
                   fs::file_size(files.path("thin/one.pte")) + fs::file_size(files.path("thin/other.pte")));
  CHECK(fs::file_size(weights) > size / 2 - kMiB);
  CHECK(fs::file_size(files.path("thin/other.pte")) < kMiB);
  return peaks;
}

/// Returns the peaks of explaining a program's constant, which is most of it, and of giving it other weights.
std::vector<PeakMemory> reweight(std::uint64_t size) {
  const LargeFiles files;
  const std::uint64_t rows = size / 1024;
  const std::string program = files.sparse_constant(rows, "were");
  const std::string was = files.sparse_rows("was.safetensors", rows, "were");
  const std::string now = files.sparse_rows("now.safetensors", rows, "are!");
  const std::string out = files.path("new.pte");
  const std::vector<std::string> reweighting = {etstream_path, "reweight", program, "--was", was,
                                                "--now",       now,        "-o",    out};
  std::vector<PeakMemory> peaks = {run({etstream_path, "explain", program, "--by", was}, size, true),
                                   run(reweighting, size, true),
                                   run({etstream_path, "explain", out, "--by", now}, size, true)};
  check_limits(reweighting, peaks[1], fs::file_size(program));
  return peaks;
}

/// Returns the peaks of writing a package with these constants, of reading it, and of the way back.
std::vector<PeakMemory> package(std::uint64_t size) {
  const LargeFiles files;
  const std::string out = files.path("out.ptn");
  const std::vector<std::string> packing = {
      etstream_path, "ptn", graph_path, "--constants", files.sparse_checkpoint(size), "--align",
      "4096",        "-o",  out};
  std::vector<PeakMemory> peaks = {run(packing, size, true)};
  check_limits(packing, peaks[0], fs::file_size(out));
  CHECK(fs::file_size(out) > size);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{etstream_path, "verify", out},
        {etstream_path, "inspect", out},
        {etstream_path, "extract", out, "named/a", "-o", "/dev/null"}}) {
    peaks.push_back(run(command, size, true));
  }
  return peaks;
}

/// Returns the peak of making an object file of a program.
PeakMemory embed(std::uint64_t size) {
  const LargeFiles files;
  const std::string object = files.path("out.o");
  fs::create_symlink("/dev/null", object);
  return run(
      {etstream_path, "embed", files.model_with_sparse_segment(size), "--target", "aarch64", "-o", object},
      size, true);
}

/// Returns the peak of writing so many tensors of 1 KiB as shards of 1/64 each.
PeakMemory split(std::uint64_t tensors) {
  const LargeFiles files;
  const std::string weights = files.path("out.ptd");
  const std::vector<std::string> splitting = {etstream_path,
                                              "ptd",
                                              files.checkpoint_of(tensors),
                                              "--split-max-size",
                                              std::to_string(tensors * 16),
                                              "--no-dedup",
                                              "-o",
                                              weights};
  const PeakMemory peak = run(splitting, tensors * 1024, true);
  std::uint64_t written = 0;
  std::size_t shards = 0;
  for (const auto& file : fs::directory_iterator(fs::path(weights).parent_path())) {
    if (!file.path().filename().string().starts_with("out-")) continue;
    written += file.file_size();
    ++shards;
  }
  CHECK(shards == 64);
  check_limits(splitting, peak, written);
  return peak;
}

/// Returns the peaks of packing a program with 4 threads, of laying it out again as a packed file, and of
/// reading and unpacking that.
std::vector<PeakMemory> pack(std::uint64_t size) {
  const LargeFiles files;
  const std::string model = files.model_with_sparse_segment(size);
  const std::string packed = files.path("packed.pte.etz");
  const std::string again = files.path("again.pte.etz");
  std::vector<PeakMemory> peaks;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{etstream_path, "pack", model, "-o", packed, "--threads", "4"},
        {etstream_path, "pte", packed, "-o", again},
        {etstream_path, "verify", again},
        {etstream_path, "inspect", again},
        {etstream_path, "unpack", again, "-o", "/dev/null", "--threads", "4"}}) {
    peaks.push_back(run(command, size, true, kPackingAddressSpace));
  }
  CHECK(fs::file_size(packed) < size / 1000);
  return peaks;
}

/// Returns the peaks of making an update of a program from itself, and of restoring it, with one thread.
std::vector<PeakMemory> update(std::uint64_t size) {
  const LargeFiles files;
  const std::string model = files.model_with_sparse_segment(size);
  const std::string out = files.path("update.etz");
  std::vector<PeakMemory> peaks;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{etstream_path, "pack", model, "--base", model, "-o", out, "--threads", "1"},
        {etstream_path, "unpack", out, "--base", model, "-o", "/dev/null", "--threads", "1"}}) {
    peaks.push_back(run(command, size, true, kPackingAddressSpace));
  }
  CHECK(fs::file_size(out) < size / 1000);
  return peaks;
}

void check_contract(const std::vector<PeakMemory>& small, const std::vector<PeakMemory>& large,
                    std::uint64_t most = kMostMemory, std::uint64_t most_difference = kMostDifference) {
  REQUIRE(small.size() == large.size());
  for (std::size_t i = 0; i < small.size(); ++i) {
    CHECK(keeps_contract(small[i], large[i], most, most_difference));
  }
}

}  // namespace

TEST_CASE("bundling takes the same memory for 64 MiB and for 1.9 GiB, in 64 MiB of address space") {
  CHECK(keeps_contract(bundle(etstream_path, kSmall, true),
                       bundle(etstream_path, size_that_fits(kLarge), true)));
}

TEST_CASE("verify, inspect and extract take the same memory for 64 MiB and for 1.9 GiB") {
  check_contract(read(kSmall, "bp08"), read(size_that_fits(2 * kLarge) / 2, "bp08"));
}

TEST_CASE(
    "bundling, verify, inspect and extract take the same for segmented bundles of 64 MiB and of 8 GiB") {
  check_contract(read(kSmall, "segmented"), read(size_that_fits(2 * kHuge) / 2, "segmented"));
}

TEST_CASE("comparing outputs takes the same for outputs of 64 MiB and of 512 MiB") {
  check_contract(compare(kSmall), compare(8 * kSmall));
}

TEST_CASE("laying a program out again and verifying it takes the same for 64 MiB and for 8 GiB") {
  check_contract(lay_out(kSmall), lay_out(size_that_fits(kHuge)));
}

TEST_CASE("weights take the same, there and back, for checkpoints of 64 MiB and of 8 GiB") {
  check_contract(convert_weights(kSmall), convert_weights(size_that_fits(kHuge)));
}

TEST_CASE("torch files take the same, written, verified and read, for checkpoints of 64 MiB and of 8 GiB") {
  check_contract(convert_torch_file(kSmall), convert_torch_file(size_that_fits(kHuge)));
}

TEST_CASE("embedding takes the same for 64 MiB and for 8 GiB") {
  CHECK(keeps_contract(embed(kSmall), embed(kHuge)));
}

TEST_CASE("64 shards take what the plan says, which follows the number of tensors") {
  CHECK(split(1024).anonymous < 4 * kMiB);
  CHECK(split(32768).anonymous < 48 * kMiB);
}

TEST_CASE("packing and taking apart a fat container takes the same for 64 MiB and for 8 GiB") {
  check_contract(pack_fat(kSmall), pack_fat(size_that_fits(kHuge)));
}

TEST_CASE(
    "packed files take the same, written and read, for 64 MiB and for 8 GiB, in 128 MiB of address space") {
  check_contract(pack(kSmall), pack(kHuge), kMostPackingMemory, kMostPackingDifference);
}

TEST_CASE(
    "updates take the same, written and restored, for 64 MiB and for 1 GiB, in 128 MiB of address space") {
  check_contract(update(kSmall), update(16 * kSmall), kMostUpdateMemory);
}

TEST_CASE("sharing the weights of programs takes the same for 64 MiB and for 8 GiB") {
  check_contract(share(kSmall), share(size_that_fits(kHuge)));
}

TEST_CASE("putting other weights into a program takes the same for 64 MiB and for 8 GiB") {
  check_contract(reweight(kSmall), reweight(size_that_fits(kHuge)));
}

TEST_CASE("a package, verifying it and taking it apart takes the same for 64 MiB and for 8 GiB") {
  check_contract(package(kSmall), package(size_that_fits(kHuge)));
}

TEST_CASE("a writer that holds the payload does not pass the test") {
  CHECK_FALSE(keeps_contract(bundle(control_path, kSmall, true), bundle(control_path, kSmall, true)));
}

TEST_CASE("a writer that holds the payload does not pass the test where address space is not limited") {
  const PeakMemory large = bundle(control_path, 4 * kMiB, false);
  CHECK(large.exit_code == 0);
  CHECK_FALSE(keeps_contract(bundle(control_path, 1 * kMiB, false), large));
}

int main(int argc, char** argv) {
  const auto option = [&](const std::string& name) {
    const std::string start = "--" + name + "=";
    for (int i = 1; i < argc; ++i) {
      if (std::string(argv[i]).starts_with(start)) return std::string(argv[i]).substr(start.size());
    }
    std::fprintf(stderr, "missing %s\n", start.c_str());
    std::exit(2);
  };
  etstream_path = option("etstream");
  control_path = option("control");
  example_folder = option("example");
  graph_path = option("graph");
  return doctest::Context(argc, argv).run();
}
