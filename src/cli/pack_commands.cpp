// SPDX-License-Identifier: BSD-3-Clause
//
// etstream pack FILE [--base OLD...] [-o OUT.etz], unpack FILE.etz [--base OLD...] [-o OUT]
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/packed_file.h"
#include "etstream/reweight.h"
#include "present/json.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

struct PackArguments : CommonOptions {
  std::string file;
  std::string output;
  std::vector<std::string> base;
  unsigned threads = 0;
};

/// An input that is read once, from its first byte to its last: a file, or standard input.
struct Stream {
  ReadBytes read;
  std::string name;
  std::uint64_t size = 0;          // 0 where it is not known
  std::optional<ByteSource> file;  // where it is one
};

Result<Stream> open_stream(const std::string& path) {
  if (path == "-") {
    const auto on_signal = []() -> Result<void> {
      if (!interrupted()) return {};
      return Error{ErrorCode::kInterrupted, "interrupted before all was written"};
    };
    return Stream{descriptor_reader(kStandardInput, "standard input", on_signal), "standard input", 0, {}};
  }
  ETSTREAM_ASSIGN(ByteSource file, ByteSource::raw_file(path));
  return Stream{source_reader(file), path, file.size(), file};
}

/// Passes bytes on to another sink, and counts them.
class CountingSink final : public Sink {
 public:
  CountingSink(std::unique_ptr<Sink> to, std::uint64_t& count) : to_(std::move(to)), count_(&count) {}

  Result<void> reserve(std::uint64_t size) override { return to_->reserve(size); }
  Result<void> append(const ByteSource& source) override {
    *count_ += source.size();
    return to_->append(source);
  }
  std::optional<FileIdentity> changed_in_place() const override { return to_->changed_in_place(); }
  Result<void> prepare() override { return to_->prepare(); }
  Result<void> commit() override { return to_->commit(); }
  Result<void> make_durable() override { return to_->make_durable(); }
  Result<void> take_back() override { return to_->take_back(); }

 private:
  const std::unique_ptr<Sink> to_;
  std::uint64_t* count_;
};

/// The sizes in bytes of the input and the output.
struct Sizes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};

/// Makes the sink that `fill` fills from that of the output.
using Wrap = std::function<std::unique_ptr<Sink>(std::unique_ptr<Sink>)>;

/// Writes an output that `fill` fills from the stream.
Result<Sizes> recode(const Stream& stream, const std::string& path, const PackArguments& arguments,
                     const Wrap& wrap, const std::function<Result<void>(const ReadBytes&, Sink&)>& fill) {
  FileSinkOptions options = file_options(!arguments.no_sync);
  options.packing = FileSinkOptions::Packing::kNever;
  Sizes sizes;
  const auto write = [&](const Progress& progress) -> Result<std::unique_ptr<PendingOutput>> {
    ETSTREAM_ASSIGN(auto output, open_output(path, options, false));
    std::unique_ptr<Sink> sink = wrap(std::make_unique<CountingSink>(std::move(output), sizes.written));
    // The whole of a pipe is what has come so far.
    const auto show = [&](std::uint64_t done, std::uint64_t size) {
      return progress(done, std::max(done, size));
    };
    ETSTREAM_TRY(fill(reporting(stream.read, show, stream.size, sizes.read), *sink));
    return std::unique_ptr<PendingOutput>(std::move(sink));
  };
  ETSTREAM_TRY(write_outputs({{.path = path, .write = write}}, arguments));
  return sizes;
}

/// Reports the sizes of the packed file and of the original.
void report(const std::string& output, std::uint64_t packed, std::uint64_t original,
            const PackArguments& arguments) {
  if (arguments.json) {
    print_json({{"output", output}, {"packed_size", packed}, {"original_size", original}});
    return;
  }
  const std::string share =
      original == 0 ? ""
                    : text(", {:.1f} %", 100 * static_cast<double>(packed) / static_cast<double>(original));
  say("{}: {} packed, {} unpacked{}\n", output, readable_size(packed), readable_size(original), share);
}

/// Returns `path`, the default of --output, if there is no such file yet.
Result<std::string> default_output(std::string path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return path;
  return with_advice(error_in(ErrorCode::kInvalidArgument, path, "is there already"),
                     {text("-o {} replaces it", quote(path))});
}

Result<void> pack_command(const PackArguments& arguments) {
  ETSTREAM_ASSIGN(const Stream stream, open_stream(arguments.file));
  std::string output = arguments.output;
  if (output.empty() && !stream.file) output = arguments.file;
  if (output.empty()) {
    ETSTREAM_ASSIGN(output, default_output(arguments.file + std::string(kPackedSuffix)));
  }
  std::optional<Base> base;
  if (!arguments.base.empty()) {
    if (!stream.file) {
      return error_in(ErrorCode::kInvalidArgument, stream.name,
                      "is read once; to make an update of it, give a file");
    }
    ETSTREAM_ASSIGN(const UpdateBase given, UpdateBase::open(arguments.base));
    ETSTREAM_ASSIGN(base, match_base(*stream.file, given));
  }
  const auto wrap = [&](std::unique_ptr<Sink> packed) {
    return open_packing_sink(std::move(packed), {.threads = arguments.threads}, std::move(base));
  };
  const auto fill = [&](const ReadBytes& read, Sink& sink) { return pack(read, stream.name, sink); };
  ETSTREAM_ASSIGN(const Sizes sizes, recode(stream, output, arguments, wrap, fill));
  report(output, sizes.written, sizes.read, arguments);
  return {};
}

/// Returns the name without ".etz", for a file that is not there yet.
Result<std::string> output_of(const std::string& file) {
  if (file == "-") return file;
  if (!file.ends_with(kPackedSuffix)) {
    return with_advice(
        error_in(ErrorCode::kInvalidArgument, file, "has a name that does not end in {}", kPackedSuffix),
        {"give the output's name with -o"});
  }
  return default_output(std::string(unpacked_name(file)));
}

Result<void> unpack_command(const PackArguments& arguments) {
  ETSTREAM_ASSIGN(const Stream stream, open_stream(arguments.file));
  std::string output = arguments.output;
  if (output.empty()) {
    ETSTREAM_ASSIGN(output, output_of(arguments.file));
  }
  OpenBase base;
  if (!arguments.base.empty()) {
    ETSTREAM_ASSIGN(const UpdateBase given, UpdateBase::open(arguments.base));
    base = given.opener();
  }
  const auto wrap = [](std::unique_ptr<Sink> sink) { return sink; };
  const auto fill = [&](const ReadBytes& read, Sink& sink) -> Result<void> {
    if (stream.file) {
      // A full disk, and a file that was cut, show before the work.
      ETSTREAM_ASSIGN(const PackedSummary summary, read_packed_summary(*stream.file));
      ETSTREAM_TRY(sink.reserve(summary.original_size));
    }
    return unpack(read, stream.name, sink, {.threads = arguments.threads}, base);
  };
  ETSTREAM_ASSIGN(const Sizes sizes, recode(stream, output, arguments, wrap, fill));
  report(output, sizes.read, sizes.written, arguments);
  return {};
}

void check_pack(const CLI::App&, const PackArguments& arguments) {
  check_report(arguments.json, {arguments.output.empty() ? arguments.file : arguments.output});
}

void add_options(CLI::App& command, PackArguments& arguments, const std::string& file,
                 const std::string& output, const std::string& base) {
  add_argument(command, "FILE", arguments.file, file + "; - is standard input").required();
  add_option(command, "-o,--output", "OUT", arguments.output, output + "; - is standard output");
  add_list(command, "--base", "OLD", arguments.base, base);
  add_number(command, "--threads", arguments.threads,
             "Code with this many threads, of which each takes up to 4 MiB; the default is one a processor, "
             "but at most 4");
  add_no_sync(command, arguments);
  add_json(command, arguments.json);
}

}  // namespace

void add_pack_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<PackArguments>(
      app, chosen, "pack", "Make a file smaller; all subcommands read packed files", pack_command,
      check_pack);
  add_options(command, arguments, "The file to pack", "The packed file; the default is FILE.etz",
              "Write an update: what FILE has that is not in OLD, an earlier version of it or the checkpoint "
              "that the program was exported from");
}

void add_unpack_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<PackArguments>(
      app, chosen, "unpack", "Restore a packed file, bit for bit", unpack_command, check_pack);
  add_options(command, arguments, "The packed file", "The original file; the default is FILE without .etz",
              "The file, or the checkpoint, that an update was made from");
}

}  // namespace etstream::cli
