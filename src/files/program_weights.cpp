// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1 looks tensors up by Method::parse_external_constants and getTensorDataPtr. For data that
// delegates ask for, it looks in a MergedDataMap of the files and then of the program (runtime/executor).
// Another MergedDataMap of the files alone refuses keys that come twice (extension/named_data_map).
#include "etstream/program_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "etstream/bundled_program.h"
#include "etstream/checkpoint.h"
#include "etstream/fat_container.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "etstream/tensor.h"
#include "files/pieces.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/pte/program_model.h"
#include "formats/segments/file_kind.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::uint64_t kMostKeysNamed = 10;  // of a file, with the same warning

/// Describes a layout so that it differs from the text for `other`.
std::string describe_beside(const TensorLayout& layout, const TensorLayout& other) {
  if (layout.dim_order == other.dim_order) return describe(layout);
  return text("{} with dim_order {}", describe(layout), list_text(layout.dim_order));
}

class PairVerifier {
 public:
  PairVerifier(const ProgramFile& program, const DataRequests& requests,
               const std::vector<const TensorDataFile*>& weights)
      : program_(program), requests_(requests), weights_(weights) {}

  Result<Findings> run() {
    for (const Error& error : requests_.errors) add_error(findings_, error);
    ETSTREAM_TRY(read_entries());
    const std::size_t before = findings_.errors.size();
    for (const TensorRequest& request : requests_.tensors) check_tensor(request);
    for (const DelegateRequest& request : requests_.delegates) check_delegate(request);
    if (missing_ > 1 && !entries_.empty()) {
      findings_.errors.insert(findings_.errors.begin() + static_cast<std::ptrdiff_t>(before), lack());
    }
    ETSTREAM_TRY(find_other_keys());
    ETSTREAM_TRY(check_keys_in_both());
    find_unused_keys();
    count_other_keys();
    for (const TensorDataFile* file : weights_) ETSTREAM_TRY(file->file().check_unchanged());
    ETSTREAM_TRY(program_.file().check_unchanged());
    return std::move(findings_);
  }

 private:
  struct Entry {
    std::size_t file = 0;  // its number
    NamedTensorData data;
  };

  template <class... Arguments>
  void error(std::string_view file, Template<Arguments...> words, const Arguments&... arguments) {
    add_error(findings_, error_in(ErrorCode::kCorrupt, file, words, arguments...));
  }
  template <class... Arguments>
  void warning(std::string_view file, Template<Arguments...> words, const Arguments&... arguments) {
    add_warning(findings_, error_in(ErrorCode::kCorrupt, file, words, arguments...));
  }
  [[nodiscard]] std::string name_of(std::size_t file) const { return weights_[file]->file().name(); }
  [[nodiscard]] std::string program_name() const { return program_.model().name(); }

  Result<void> read_entries() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      ETSTREAM_ASSIGN(auto entries, weights_[i]->entries());
      for (NamedTensorData& entry : entries) {
        std::string key = entry.key;
        const auto [there, added] = entries_.try_emplace(std::move(key), Entry{i, std::move(entry)});
        // A file's own check reports keys that come twice within it.
        if (added || there->second.file == i) continue;
        error(name_of(i),
              "key {}: expected in one file alone, found in {} too: ExecuTorch 1.5.1's "
              "Module does not load them (0x12)",
              quote(there->first), name_of(there->second.file));
      }
    }
    if (!weights_.empty() && entries_.empty()) {
      error(name_of(0),
            "expected a key in one of the files, found none: ExecuTorch 1.5.1's Module does "
            "not load them (0x12)");
    }
    return {};
  }

  void check_tensor(const TensorRequest& request) {
    used_.insert(request.key);
    needed_.insert(request.key);
    const auto found = entries_.find(request.key);
    if (found == entries_.end()) return report_missing(request);
    const NamedTensorData& entry = found->second.data;
    if (entry.layout == request.layout) return;
    const std::string name = name_of(found->second.file);
    const std::string place = text("key {}: expected ", quote(request.key));
    if (!entry.layout) {
      if (!told_.insert(request.key).second) return;
      return error(name, "{}{} as {} has it, found data without a layout: ExecuTorch 1.5.1 ends in a fault",
                   place, describe(request.layout), request.asker);
    }
    const std::string wanted = describe_beside(request.layout, *entry.layout);
    const std::string there = describe_beside(*entry.layout, request.layout);
    if (!told_.insert(text("{}{}{}", request.key, request.is_compared ? " " : "  ", wanted)).second) return;
    const std::string difference = text("{}{} as {} has it, found {}", place, wanted, request.asker, there);
    if (request.is_compared) {
      return error(name, "{}: ExecuTorch 1.5.1 does not load the method (0x24)", difference);
    }
    const auto size = byte_size(request.layout.scalar_type, request.layout.sizes);
    if (!size || *size > entry.data.size()) {
      return error(name, "{}: ExecuTorch 1.5.1 does not compare it, and reads past the end", difference);
    }
    warning(name, "{}: ExecuTorch 1.5.1 does not compare it, and takes the bytes as they are", difference);
  }

  /// Says in a sentence that several keys are missing, which follow.
  [[nodiscard]] Error lack() const {
    const bool is_one = weights_.size() == 1;
    return error_in(ErrorCode::kCorrupt, is_one ? name_of(0) : program_name(),
                    "{} {} of the {} that {} asks for: {}", is_one ? "has" : "the files have",
                    needed_.size() - missing_, counted(needed_.size(), "key"), is_one ? program_name() : "it",
                    is_one ? "it belongs to another version, or is a part of the weights"
                           : "one is missing, or belongs to another version");
  }

  void report_missing(const TensorRequest& request) {
    if (!told_.insert(request.key).second) return;
    ++missing_;
    const std::string_view code = !weights_.empty() ? "0x20" : request.is_planned ? "0x24" : "0x2";
    const std::string_view found = requests_.named_data.contains(request.key)
                                       ? "it among the program's own named data, where none is looked for"
                                       : "it in none";
    error(program_name(),
          "{}: expected tensor {}, {}, in a tensor data file, found {}: ExecuTorch "
          "1.5.1 does not load the method ({})",
          request.asker, quote(request.key), describe(request.layout), found, code);
  }

  void check_delegate(const DelegateRequest& request) {
    used_.insert(request.key);
    asked_by_delegates_.insert(request.key);
    const auto entry = entries_.find(request.key);
    const auto own = requests_.named_data.find(request.key);
    const bool is_in_file = entry != entries_.end();
    if (is_in_file || own == requests_.named_data.end()) needed_.insert(request.key);
    if (!is_in_file && own == requests_.named_data.end()) {
      if (!told_.insert(request.key).second) return;
      ++missing_;
      return error(program_name(),
                   "{}: expected named data {} of {} in a file or in the program, found "
                   "it in neither: ExecuTorch 1.5.1 does not load the method{}",
                   request.asker, quote(request.key),
                   request.size ? counted(*request.size, "byte") : "any size",
                   weights_.empty() ? "" : " (0x20)");
    }
    const std::uint64_t size = is_in_file ? entry->second.data.data.size() : own->second.size();
    if (!request.size || size == *request.size ||
        !told_.insert(text("{} {}", request.key, *request.size)).second)
      return;
    const std::string name = is_in_file ? name_of(entry->second.file) : program_name();
    const std::string difference = text("key {}: expected the {} bytes that {} reads, found {}",
                                        quote(request.key), *request.size, request.asker, size);
    if (size > request.size) return warning(name, "{}", difference);
    error(name, "{}{}", difference,
          request.is_xnnpack ? ": XNNPACK does not compare them, and reads past the end" : "");
  }

  /// Finds which of the keys other backends ask for. Nothing else is known of their requests.
  Result<void> find_other_keys() {
    std::set<std::string> keys;
    for (const auto& [key, entry] : entries_) {
      if (!asked_by_delegates_.contains(key)) keys.insert(key);
    }
    if (keys.empty()) return {};
    for (const ByteSource& data : requests_.others) {
      if (data.size() > kMostSearched / keys.size()) {
        used_.insert(keys.begin(), keys.end());  // as far as one can tell
        continue;
      }
      ETSTREAM_TRY(find_keys(data, keys, asked_by_delegates_));
    }
    used_.insert(asked_by_delegates_.begin(), asked_by_delegates_.end());
    return {};
  }

  Result<void> check_keys_in_both() {
    std::map<std::pair<SourcePlace, SourcePlace>, bool> compared;  // keys may share their data
    for (const auto& [key, own] : requests_.named_data) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) continue;
      const auto& [file, entry] = found->second;
      const auto [same, is_new] = compared.try_emplace({own.place(), entry.data.place()}, false);
      if (is_new) {
        ETSTREAM_ASSIGN(same->second, same_bytes(own, entry.data));
      }
      if (same->second) {
        warn_of_key(found->second, key, "has the same data under it");
      } else if (asked_by_delegates_.contains(key)) {
        error(name_of(file),
              "key {}: {} has other data under it: ExecuTorch 1.5.1 gives delegates that of {}", quote(key),
              program_name(), name_of(file));
      } else {
        warn_of_key(found->second, key, "has other data under it, which nothing asks for");
      }
    }
    return {};
  }

  void find_unused_keys() {
    for (const auto& [key, entry] : entries_) {
      if (!used_.contains(key)) warn_of_key(entry, key, "does not ask for it");
    }
  }

  /// Warns about keys. `what` is the program's relation to them. Many keys of a file are counted.
  void warn_of_key(const Entry& entry, const std::string& key, std::string_view what) {
    if (++warned_[{entry.file, what}] > kMostKeysNamed) return;
    warning(name_of(entry.file), "key {}: {} {}", quote(key), program_name(), what);
  }

  void count_other_keys() {
    for (const auto& [place, count] : warned_) {
      if (count <= kMostKeysNamed) continue;
      const auto& [file, what] = place;
      warning(name_of(file), "{}: {} {}", counted(count - kMostKeysNamed, "more key"), program_name(), what);
    }
  }

  const ProgramFile& program_;
  const DataRequests& requests_;
  const std::vector<const TensorDataFile*>& weights_;
  Findings findings_;
  std::map<std::string, Entry> entries_;                                      // of all files, by key
  std::set<std::string> used_;                                                // keys
  std::set<std::string> needed_;                                              // keys, of a file
  std::size_t missing_ = 0;                                                   // of these
  std::set<std::string> asked_by_delegates_;                                  // keys
  std::map<std::pair<std::size_t, std::string_view>, std::uint64_t> warned_;  // of keys, by what
  std::set<std::string> told_;  // what has been said of a key, which many methods may ask for
};

}  // namespace

Result<Findings> verify(const ProgramFile& program, const DataRequests& requests,
                        const std::vector<const TensorDataFile*>& weights) {
  return PairVerifier(program, requests, weights).run();
}

Result<Findings> verify(const ProgramFile& program, const std::vector<const TensorDataFile*>& weights) {
  return without_exceptions([&]() -> Result<Findings> {
    ETSTREAM_ASSIGN(const DataRequests requests, read_data_requests(program.model()));
    return verify(program, requests, weights);
  });
}

Result<std::vector<std::string>> external_keys(const ProgramFile& program) {
  return without_exceptions([&]() -> Result<std::vector<std::string>> {
    ETSTREAM_ASSIGN(const DataRequests requests, read_data_requests(program.model()));
    return external_keys(requests);
  });
}

Result<ProgramWithWeights> ProgramWithWeights::open(const std::string& program,
                                                    const std::vector<std::string>& weights, bool partial) {
  return without_exceptions([&]() -> Result<ProgramWithWeights> {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(program));
    ETSTREAM_ASSIGN(ProgramFile opened, open_program(file));
    return open(std::move(opened), weights, partial);
  });
}

Result<ProgramWithWeights> ProgramWithWeights::open(ProgramFile program,
                                                    const std::vector<std::string>& weights, bool partial) {
  return without_exceptions([&]() -> Result<ProgramWithWeights> {
    ProgramWithWeights out{std::move(program), {}};
    ETSTREAM_ASSIGN(const auto paths, whole_sets(weights, {.partial = partial}));
    for (const std::string& path : paths) {
      ETSTREAM_ASSIGN(ByteSource data, ByteSource::file(path));
      ETSTREAM_ASSIGN(TensorDataFile tensors, TensorDataFile::open(std::move(data)));
      out.weights.push_back(std::move(tensors));
    }
    return out;
  });
}

std::vector<const TensorDataFile*> ProgramWithWeights::files() const {
  std::vector<const TensorDataFile*> out;
  for (const TensorDataFile& file : weights) out.push_back(&file);
  return out;
}

namespace {

Result<FilePlan> plan_container(const std::vector<SharingInput>& inputs,
                                const std::vector<FilePlan>& programs, std::uint32_t alignment) {
  FatContainer container{.payloads = {}, .alignment = alignment};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ETSTREAM_ASSIGN(ByteSource program, source_of(programs[i]));
    container.payloads.push_back({inputs[i].name, std::move(program)});
  }
  return plan(container);
}

}  // namespace

Result<SharingPlan> plan_sharing(const std::vector<SharingInput>& inputs, const SharingOptions& options) {
  return without_exceptions([&]() -> Result<SharingPlan> {
    std::list<ProgramFile> programs;
    SharedWeights description{.programs = {}, .least_size = options.least_size};
    for (const SharingInput& input : inputs) {
      ETSTREAM_ASSIGN(ProgramFile program, ProgramFile::open(input.program));
      ETSTREAM_TRY(require_sound(program));
      programs.push_back(std::move(program));
      description.programs.push_back(&programs.back());
    }
    SharingPlan out;
    ETSTREAM_ASSIGN(out.files, plan(description));
    if (options.into_container) {
      ETSTREAM_ASSIGN(out.container, plan_container(inputs, out.files.programs, options.container_alignment));
    }
    return out;
  });
}

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

void add_name(std::string_view name, std::string& out) {
  if (!out.empty()) out += ", ";
  out += name;
}

}  // namespace

Result<KeyNames> read_key_names(const ByteSource& json) {
  return without_exceptions([&]() -> Result<KeyNames> {
    if (json.size() > kMostBytes) {
      return error_in(ErrorCode::kTooLarge, json.name(), "expected at most {} bytes of names, found {}",
                      kMostBytes, json.size());
    }
    KeyNames out;
    auto read = read_json(json, ErrorCode::kInvalidArgument, [&](JsonReader& reader) {
      return reader.different_members([&](std::string_view key) -> Result<void> {
        std::string& names = out[std::string(key)];
        const auto take_name = [&]() -> Result<void> {
          ETSTREAM_ASSIGN(const JsonTape::Value name, reader.take(JsonReader::Kind::kString));
          add_name(name.string, names);
          return {};
        };
        if (reader.next().kind == JsonReader::Kind::kArray) return reader.elements(take_name);
        return take_name();
      });
    });
    ETSTREAM_TRY(unless_other(json, {"names as JSON", {}, JsonContent::kOther}, std::move(read)));
    return out;
  });
}

Result<KeyNames> read_key_names_beside(const std::string& given, const OpenFile& open_file) {
  const std::string path(unpacked_name(given));
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t dot = path.rfind('.');
  const bool has_suffix = dot != std::string::npos && dot > name;
  const auto json = open_file(text("{}.names.json", has_suffix ? path.substr(0, dot) : path));
  if (json) return read_key_names(*json);
  if (json.error().code == ErrorCode::kNotFound) return KeyNames();
  return json.error();
}

}  // namespace etstream
