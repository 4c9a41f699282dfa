// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/packed_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/base_match.h"
#include "etstream/input_record.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/outputs.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// An input that is read once, from its first byte to its last.
struct Stream {
  ReadBytes read;
  std::string name;
  std::uint64_t size = 0;          // 0 where it is not known
  std::optional<ByteSource> file;  // where it is one
};

/// Raises TypeError for what is no input, and the errors of opening it.
Stream open_stream(nb::handle source) {
  if (PyLong_Check(source.ptr()) && !PyBool_Check(source.ptr())) {
    const int descriptor = nb::cast<int>(source);
    std::string name = text("descriptor {}", descriptor);
    if (InputRecord* const inputs = InputRecord::current()) {
      if (const auto file = identity_of_file(descriptor)) inputs->add(*file, name);
    }
    return {descriptor_reader(descriptor, name, &check_signals), name, 0, {}};
  }
  if (nb::hasattr(source, "read") && !nb::isinstance<ByteSource>(source) &&
      PyObject_CheckBuffer(source.ptr()) == 0) {
    std::string name = name_of_file(source);
    if (InputRecord* const inputs = InputRecord::current()) inputs->add(identity_of_object(source), name);
    const auto read = [source](std::span<std::byte> out) {
      return with_gil([&] { return read_on(source, out); });
    };
    return {read, std::move(name), 0, {}};
  }
  ByteSource file = raw_source_of(source);
  return {source_reader(file), file.name(), file.size(), file};
}

/// Returns `read` with a report of the bytes that it has given after each call.
ReadBytes reporting(ReadBytes read, Progress progress, std::uint64_t size) {
  return [read = std::move(read), progress = std::move(progress), size,
          done = std::uint64_t{0}](std::span<std::byte> out) mutable -> Result<std::size_t> {
    ETSTREAM_ASSIGN(const std::size_t n, read(out));
    done += n;
    if (!progress(done, size)) return Error{ErrorCode::kInterrupted, "interrupted before all was written"};
    return n;
  };
}

/// The inputs of pack() and unpack().
struct Streams {
  Stream input;
  std::optional<ByteSource> base;
};

/// Reads `source` to its end, and writes what `recode` makes of it. `wrap` makes the sink of that of the
/// output.
template <class Wrap, class Recode>
void write(nb::handle source, nb::handle output, nb::handle base, bool sync, nb::handle progress, Wrap wrap,
           Recode recode) {
  const nb::object input = asked(source);
  const nb::object destination = asked(output);
  const nb::object base_input = asked(base);
  const nb::object callback = progress_callback(progress);
  Streams streams{open_stream(input), {}};
  const Stream& stream = streams.input;
  if (stream.file) require_apart(*stream.file, destination);
  if (!base_input.is_none()) {
    streams.base = source_of(base_input);
    require_apart(*streams.base, destination);
  }
  CollectedWarnings warnings;
  FileSinkOptions options = warnings.options(sync);
  options.packing = FileSinkOptions::Packing::kNever;
  const std::unique_ptr<Sink> sink = wrap(open_output(destination, options), streams);
  without_gil([&]() -> Result<void> {
    const ReadBytes read = reporting(stream.read, progress_to(callback), stream.size);
    ETSTREAM_TRY(recode(read, streams, *sink));
    return sink->commit();
  });
  warnings.show();
}

void pack_file(nb::handle source, nb::handle output, nb::handle base, unsigned threads, bool sync,
               nb::handle progress) {
  write(
      source, output, base, sync, progress,
      [&](std::unique_ptr<Sink> packed, const Streams& streams) {
        std::optional<Base> matched;
        if (streams.base) {
          matched = without_gil([&]() -> Result<Base> {
            if (streams.input.file) return match_base(*streams.input.file, *streams.base);
            return error_in(ErrorCode::kInvalidArgument, streams.input.name,
                            "is read once; to make an update of it, give a file");
          });
        }
        return open_packing_sink(std::move(packed), {.threads = threads}, std::move(matched));
      },
      [](const ReadBytes& read, const Streams& streams, Sink& sink) {
        return pack(read, streams.input.name, sink);
      });
}

void unpack_file(nb::handle source, nb::handle output, nb::handle base, unsigned threads, bool sync,
                 nb::handle progress) {
  write(
      source, output, base, sync, progress,
      [](std::unique_ptr<Sink> sink, const Streams& /*streams*/) { return sink; },
      [&](const ReadBytes& read, const Streams& streams, Sink& sink) {
        return unpack(read, streams.input.name, sink, {.threads = threads}, streams.base);
      });
}

}  // namespace

void bind_packed_files(nb::module_& module) {
  module.def("pack", &pack_file, nb::arg("source"), nb::arg("output"), nb::arg("base").none(),
             nb::arg("threads"), nb::arg("sync"), nb::arg("progress").none());
  module.def("unpack", &unpack_file, nb::arg("source"), nb::arg("output"), nb::arg("base").none(),
             nb::arg("threads"), nb::arg("sync"), nb::arg("progress").none());
}

}  // namespace etstream::python
