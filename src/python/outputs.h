// SPDX-License-Identifier: BSD-3-Clause
//
// Outputs in Python's terms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/sink.h"
#include "python/bindings.h"

namespace etstream::python {

/// Collects warnings, for Python to show. Outlives the sinks and the plans that give them.
class CollectedWarnings {
 public:
  CollectedWarnings() = default;
  CollectedWarnings(const CollectedWarnings&) = delete;
  CollectedWarnings& operator=(const CollectedWarnings&) = delete;

  /// Returns the function that takes them.
  [[nodiscard]] Warn take();
  [[nodiscard]] FileSinkOptions options(bool sync) { return {.sync = sync, .warn = take()}; }
  /// Warns at the line that called etstream, once all is done. Raises if warnings are errors.
  void show() const;

 private:
  std::vector<std::string> messages_;
};

/// Opens an output: a path, with `options`; a descriptor, as an int; or an object with write(), which
/// outlives the sink. Raises TypeError for something else, InvalidArgumentError for a file that
/// InputRecord::current() knows as an input, and the errors of opening it.
[[nodiscard]] std::unique_ptr<Sink> open_output(nb::handle output, const FileSinkOptions& options);

/// Returns what an output that is no path changes in place: its file, or the object itself. Returns nothing
/// for a path, and for a descriptor of no file.
[[nodiscard]] std::optional<FileIdentity> changed_in_place(nb::handle output);

/// Raises InvalidArgumentError if writing the output would change `input` in place.
void require_apart(const ByteSource& input, nb::handle output);

/// Returns a limit in bytes that is given for the argument called `argument`, as an int or a str; nothing for
/// None. Raises TypeError, InvalidArgumentError.
[[nodiscard]] std::optional<std::uint64_t> limit(const char* argument, nb::handle given);

/// Returns the function to call for the argument `progress` of Python's functions; None if nothing is shown.
[[nodiscard]] nb::object progress_callback(nb::handle progress);

/// Checks for Ctrl-C at each step, and reports the progress. `callback` outlives it, or is None.
[[nodiscard]] Progress progress_to(nb::handle callback);

}  // namespace etstream::python
