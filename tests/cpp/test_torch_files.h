// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes of pickles and of torch's archives, good and bad.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "etstream/sink.h"
#include "formats/zip/zip.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream {

/// Functions that return the instructions for a value in a pickle.
namespace pickled {

inline std::string text(const std::string& words) { return "X" + little_endian(words.size(), 4) + words; }
inline std::string integer(std::int64_t number) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(number), 8);
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
/// Returns a tuple; `items` follow one another.
inline std::string tuple(const std::string& items) { return "(" + items + "t"; }
inline std::string numbers(const std::vector<std::int64_t>& of_tuple) {
  std::string items;
  for (const std::int64_t number : of_tuple) items += integer(number);
  return tuple(items);
}
/// Returns a dict; `items` are keys, each with its value behind it.
inline std::string dict(const std::string& items) { return "}(" + items + "u"; }
inline std::string call(const std::string& function, const std::string& arguments) {
  return function + tuple(arguments) + "R";
}

inline std::string storage(const std::string& type, const std::string& key, std::int64_t elements) {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + integer(elements)) + "Q";
}
inline std::string tensor(const std::string& storage, std::int64_t offset,
                          const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              storage + integer(offset) + numbers(sizes) + numbers(strides) + "\x89" +
                  call(global("collections", "OrderedDict"), ""));
}
/// Returns a tensor of 2 floats in "data/0".
inline std::string small_tensor() { return tensor(storage("FloatStorage", "0", 2), 0, {2}, {1}); }

/// Returns a whole pickle, of protocol 2.
inline std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace pickled

using ZipMembers = std::vector<std::pair<std::string, std::string>>;  // names and bytes

/// Returns a zip archive of these members as they are, with their checksums behind them.
inline std::string zip_of(const ZipMembers& members) {
  FilePlan plan;
  ZipWriter writer(plan, 64);
  for (const auto& [name, data] : members) REQUIRE(writer.append_streamed(name, source_of(data), name));
  REQUIRE(writer.finish());
  return text_of(source_of(plan).value());
}

/// Returns a torch file of this pickle, and members in its folder.
inline std::string torch_file(const std::string& pickle, const ZipMembers& members) {
  ZipMembers all = {{"archive/data.pkl", pickle}, {"archive/version", "3\n"}};
  for (const auto& [name, data] : members) all.emplace_back("archive/" + name, data);
  return zip_of(all);
}

}  // namespace etstream
