// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"

namespace etstream {
namespace {

constexpr std::string_view kCoremlReference = "CMJR";
constexpr std::uint64_t kMostCoremlJson = std::uint64_t{1} << 20;

/// JSON in memory, which messages call so.
class CoremlJson final : public ByteStorage {
 public:
  explicit CoremlJson(std::string json) : json_(std::move(json)) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return json_.size(); }
  [[nodiscard]] std::string name() const override { return "JSON"; }
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), json_.data() + offset, out.size());
    return {};
  }

 private:
  const std::string json_;
};

/// Reads JSON of the payload that messages call `name`.
Result<void> read_coreml_json(std::string json, const std::string& name, const auto& read) {
  const auto done =
      read_json(ByteSource(std::make_shared<CoremlJson>(std::move(json))), ErrorCode::kCorrupt, read);
  return done ? done : about(done.error(), name);
}

struct FolderNode {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool is_folder = false;
  bool is_in_a_folder = false;
  std::map<std::string, std::uint64_t> children;  // indices of nodes, by name
};

/// Reads the list of files and folders at the end of a payload.
class FolderReader {
 public:
  FolderReader(const ByteSource& payload, const std::string& name)
      : payload_(payload), name_(name), budget_(name, payload.size()) {}

  /// Returns nothing if the payload does not end as such a folder does.
  Result<std::optional<BackendPayload>> run() {
    ETSTREAM_ASSIGN(std::string json, read_reversed());
    if (json.empty()) return std::optional<BackendPayload>();
    ETSTREAM_TRY(
        read_coreml_json(std::move(json), name_, [&](JsonReader& reader) { return read_list(reader); }));
    if (nodes_.empty()) return corrupt("a file or a folder in its JSON", "none");
    BackendPayload out{"a folder of files"};
    ETSTREAM_TRY(add_parts(nodes_.size() - 1, "", 0, out));
    out.facts.push_back({"files", static_cast<std::int64_t>(out.parts.size())});
    return std::optional(std::move(out));
  }

 private:
  [[nodiscard]] Error corrupt(std::string_view expected, std::string_view found) const {
    return error_in(ErrorCode::kCorrupt, name_, "expected {}, found {}", expected, found);
  }

  /// Returns the JSON object that ends the payload, with its characters in order; "" if there is none. Zeros
  /// may follow it.
  Result<std::string> read_reversed() const {
    constexpr std::uint64_t kPiece = 4096;
    std::string out;
    bool is_in_string = false;
    bool is_escaped = false;
    std::uint64_t depth = 0;
    for (std::uint64_t end = payload_.size(); end > 0;) {
      std::string piece(static_cast<std::size_t>(std::min(kPiece, end)), '\0');
      end -= piece.size();
      ETSTREAM_TRY(payload_.read_at(end, std::as_writable_bytes(std::span(piece))));
      for (auto each = piece.rbegin(); each != piece.rend(); ++each) {
        if (out.empty() && (*each == '\0' || *each == '\n' || *each == ' ')) continue;
        if (out.empty() && *each != '{') return std::string();
        if (out.size() == kMostCoremlJson)
          return corrupt(text("JSON of at most {} bytes", kMostCoremlJson), "more");
        out += *each;
        if (is_in_string) {
          is_in_string = is_escaped || *each != '"';
          is_escaped = !is_escaped && *each == '\\';
          continue;
        }
        is_in_string = *each == '"';
        if (*each == '{') ++depth;
        if (*each == '}' && --depth == 0) return out;
      }
    }
    return std::string();
  }

  Result<void> read_list(JsonReader& reader) {
    return reader.members([&](std::string_view key) -> Result<void> {
      if (key != "nodes") {
        reader.take();
        return {};
      }
      return reader.elements([&]() -> Result<void> {
        constexpr std::size_t kMostNodes = 4096;
        if (nodes_.size() == kMostNodes) return reader.error(text("expected at most {} nodes", kMostNodes));
        return read_node(reader, nodes_.emplace_back());
      });
    });
  }

  Result<void> read_node(JsonReader& reader, FolderNode& node) {
    return reader.members([&](std::string_view key) -> Result<void> {
      if (key == "name") {
        ETSTREAM_ASSIGN(const auto value, reader.take(JsonEvent::Kind::kString));
        node.name = value.string;
      } else if (key == "kind") {
        ETSTREAM_ASSIGN(const std::uint64_t kind, read_number(reader));
        if (kind > 1) return reader.error(text("expected the kind 0 or 1, found {}", kind));
        node.is_folder = kind == 1;
      } else if (key == "dataRegion") {
        return reader.members([&](std::string_view place) -> Result<void> {
          if (place != "offset" && place != "size") {
            reader.take();
            return {};
          }
          ETSTREAM_ASSIGN((place == "size" ? node.size : node.offset), read_number(reader));
          return {};
        });
      } else if (key == "children" && reader.next().kind == JsonEvent::Kind::kObject) {
        return reader.members([&](std::string_view child) -> Result<void> {
          ETSTREAM_ASSIGN(node.children[std::string(child)], read_number(reader));
          return {};
        });
      } else {
        reader.take();  // children are null where there are none
      }
      return {};
    });
  }

  static Result<std::uint64_t> read_number(JsonReader& reader) {
    ETSTREAM_ASSIGN(const auto value, reader.take(JsonEvent::Kind::kInteger));
    if (value.integer < 0) return reader.error(text("expected a number from 0 on, found {}", value.integer));
    return static_cast<std::uint64_t>(value.integer);
  }

  /// Adds the files in a node, which is `depth` deep, with their paths from the root on. ExecuTorch writes
  /// them to a disk, so that names that are paths lead out of the folder.
  Result<void> add_parts(std::uint64_t index, const std::string& path, int depth, BackendPayload& out) {
    constexpr int kDeepest = 16;
    const FolderNode& node = nodes_[static_cast<std::size_t>(index)];
    if (!node.is_folder) {
      if (!range_fits(node.offset, node.size, payload_.size())) {
        return corrupt(text("file {} inside {}", quote(path), counted(payload_.size(), "byte")),
                       text("{} bytes from {} on", node.size, node.offset));
      }
      ETSTREAM_TRY(budget_.reach(0, path.size()));
      out.parts.push_back({path, node.offset, node.size});
      return {};
    }
    if (depth == kDeepest) return corrupt(text("folders at most {} deep", kDeepest), "one more");
    for (const auto& [name, child] : node.children) {
      ETSTREAM_TRY(check_name(name));
      // A node is made of those before it, each of which is taken once.
      if (child >= index || std::exchange(nodes_[static_cast<std::size_t>(child)].is_in_a_folder, true)) {
        return corrupt(text("an own node before {} for {}", index, quote(name)), text("node {}", child));
      }
      if (nodes_[static_cast<std::size_t>(child)].name != name) {
        return corrupt(text("a node named {}", quote(name)),
                       quote(nodes_[static_cast<std::size_t>(child)].name));
      }
      ETSTREAM_TRY(add_parts(child, path.empty() ? name : text("{}/{}", path, name), depth + 1, out));
    }
    return {};
  }

  [[nodiscard]] Result<void> check_name(const std::string& name) const {
    constexpr std::size_t kLongest = 255;
    const bool is_path = name.empty() || name == "." || name == ".." || name.size() > kLongest ||
                         name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
    if (!is_path) return {};
    return corrupt(text("a file's name of 1 to {} bytes, which is no path", kLongest), quote(name));
  }

  const ByteSource& payload_;
  const std::string& name_;
  FileBudget budget_;              // for the paths, which have the names of their folders
  std::vector<FolderNode> nodes_;  // children before their folder, the root last
};

/// Reads the key in a reference to named data.
Result<std::optional<BackendPayload>> read_coreml_reference(const ByteSource& payload,
                                                            const std::string& name) {
  const std::uint64_t size = payload.size() - kCoremlReference.size();
  if (size > kMostCoremlJson) {
    return unexpected(ErrorCode::kCorrupt, {name, kCoremlReference.size()},
                      "JSON of at most {} bytes, found {}", kMostCoremlJson, size);
  }
  std::string json(static_cast<std::size_t>(size), '\0');
  ETSTREAM_TRY(payload.read_at(kCoremlReference.size(), std::as_writable_bytes(std::span(json))));
  BackendPayload out{"a reference (CMJR)"};
  ETSTREAM_TRY(read_coreml_json(std::move(json), name, [&](JsonReader& reader) {
    return reader.members([&](std::string_view key) -> Result<void> {
      if (key == "key") {
        ETSTREAM_ASSIGN(const auto value, reader.take(JsonEvent::Kind::kString));
        out.requests = {{std::string(value.string), std::nullopt}};
        return {};
      }
      const auto value = reader.take();
      if (key == "functionName" && value.kind == JsonEvent::Kind::kString) {
        out.facts.push_back({"function", std::string(value.string)});
      }
      return {};
    });
  }));
  if (!out.requests.empty()) return std::optional(std::move(out));
  return unexpected(ErrorCode::kCorrupt, {name, kCoremlReference.size()}, "a key in its JSON, found none");
}

}  // namespace

Result<std::optional<BackendPayload>> read_coreml_payload(const ByteSource& payload,
                                                          const std::string& name) {
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kCoremlReference.size(), name));
  return header.has(0, kCoremlReference) ? read_coreml_reference(payload, name)
                                         : FolderReader(payload, name).run();
}

}  // namespace etstream
