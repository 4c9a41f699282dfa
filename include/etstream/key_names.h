// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the names that the keys of named data stand for. Backends name data by its hash; a file of names,
// which Python's etstream.executorch writes at export time, lists the parameters that became it:
//
//   {"3f0c...": "layers.0.weight", "scale_9a4e...": ["layers.0.weight (scales)", "layers.1.weight (scales)"]}
//
//   const auto names = etstream::read_key_names(etstream::ByteSource::file("model.names.json").value());
//   if (!names) return names.error();
//   for (const auto& [key, name] : *names) std::printf("%s is %s\n", key.c_str(), name.c_str());
#pragma once

#include <map>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The name of a parameter by key; several equal parameters have all their names: "a, b".
using KeyNames = std::map<std::string, std::string>;

/// Reads a JSON object whose values are strings, or lists of strings. Memory: that of the keys and names.
/// Errors: kTooLarge over 64 MiB; kCorrupt for invalid JSON; kInvalidArgument for another value; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<KeyNames> read_key_names(const ByteSource& json);

/// Reads MODEL.names.json beside MODEL.pte, or beside another file at that path. Returns no names if there is
/// no such file. Errors: those of read_key_names().
[[nodiscard]] ETSTREAM_EXPORT Result<KeyNames> read_key_names_beside(
    const std::string& path, const OpenFile& open_file = &ByteSource::file);

}  // namespace etstream
