// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch 1.5.1 looks tensors up by Method::parse_external_constants and getTensorDataPtr. For data that
// delegates ask for, it looks in a MergedDataMap of the files and then of the program (runtime/executor).
// Another MergedDataMap of the files alone refuses keys that come twice (extension/named_data_map).
#include "etstream/program_weights.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "etstream/scalar_type.h"
#include "files/any_file.h"
#include "formats/pte/program_model.h"
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

}  // namespace etstream
