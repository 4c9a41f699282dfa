// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/verify.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/tensor.h"
#include "files/output_names.h"
#include "files/runs/output_run.h"
#include "formats/bpte/case_files.h"
#include "formats/tensor/dimensions.h"
#include "formats/tensor/npy.h"

namespace etstream {
namespace {

namespace fs = std::filesystem;

/// A file in the folder, or in the folder of a test case.
struct FoundFile {
  std::string path;
  OutputName name;
};

/// A test case of the bundle, with the files that belong to it.
struct Case {
  const BundledProgramFile::Suite* suite = nullptr;
  std::uint32_t index = 0;   // in the suite
  std::uint64_t number = 0;  // over all suites of the method
  bool is_chosen = false;
  std::vector<FoundFile> files = {};
};

std::string inputs_of(const Case& one) { return text("test case {}", one.number); }
std::string name_of(const Case& one) {
  return text("{}, {}", printable(one.suite->method_name), inputs_of(one));
}

std::string path_in(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

/// Opens a file as an output like `expected`. An error of its content is worded as OutputRun::problem is.
Result<Value> open_output_file(const FoundFile& file, const Tensor& expected) {
  ETSTREAM_ASSIGN(const ByteSource bytes, ByteSource::raw_file(file.path));
  if (file.name.is_array) {
    auto array = open_npy(bytes);
    if (array) return Value(*std::move(array));
    if (array.error().code == ErrorCode::kIo) return std::move(array).error();
    return make_error(array.error().code, "is not readable: {}", array.error().message);
  }
  ETSTREAM_ASSIGN(const std::uint64_t size, byte_size(expected.scalar_type, expected.sizes));
  if (bytes.size() != size) {
    return make_error(ErrorCode::kInvalidArgument, "has {}, expected {}: {} {}",
                      counted(bytes.size(), "byte"), size, etstream::name_of(expected.scalar_type),
                      list_text(expected.sizes));
  }
  return Value(Tensor{expected.scalar_type, expected.sizes, expected.dim_order, bytes});
}

/// Compares the files of a folder with a bundle.
class OutputFolder {
 public:
  OutputFolder(const BundledProgramFile& bundle, const std::string& folder,
               const OutputComparisonOptions& options)
      : bundle_(bundle), folder_(folder), options_(options), labels_(suite_labels(bundle.suites())) {}

  Result<OutputFindings> run() {
    ETSTREAM_TRY(choose_cases());
    ETSTREAM_TRY(list_folder());
    for (const Case& one : cases_) {
      if (one.is_chosen) ETSTREAM_TRY(compare_case(one));
    }
    if (expected_ == 0) {
      return error_in(ErrorCode::kInvalidArgument, bundle_.file().name(),
                      "the test cases expect no tensors that outputs could be compared with");
    }
    if (!others_.empty()) {
      add_warning(found_, error_in(ErrorCode::kInvalidArgument, folder_,
                                   "not compared, as outputs have other names: {}", names_text(others_)));
    }
    if (!has_file_ && found_.ok()) return nothing_found();
    ETSTREAM_TRY(bundle_.file().check_unchanged());
    return std::move(found_);
  }

 private:
  using Places = std::vector<std::size_t>;  // of cases, in the list of all

  Result<void> choose_cases() {
    const auto& suites = bundle_.suites();
    std::map<std::string_view, std::uint64_t> counts;
    for (std::size_t i = 0; i < suites.size(); ++i) {
      std::uint64_t& count = counts[suites[i].method_name];
      const bool is_method = !options_.method || suites[i].method_name == *options_.method;
      for (std::uint32_t k = 0; k < suites[i].test_cases; ++k, ++count) {
        const bool is_chosen = is_method && (!options_.test_case || *options_.test_case == count);
        if (is_chosen) chosen_.push_back(cases_.size());
        if (is_method) by_number_[count].push_back(cases_.size());
        by_label_[labels_[i]][k].push_back(cases_.size());
        cases_.push_back({&suites[i], k, count, is_chosen});
      }
    }
    std::erase_if(counts, [](const auto& one) { return one.second == 0; });
    if (!chosen_.empty()) return {};
    std::string all;
    for (const auto& [method, count] : counts) {
      all += text("{}{} of {}", all.empty() ? "" : ", ", count, quote(method));
    }
    return error_in(ErrorCode::kNotFound, bundle_.file().name(), "no test case{}{}, found {}",
                    options_.test_case ? text(" {}", *options_.test_case) : "",
                    options_.method ? text(" of method {}", quote(*options_.method)) : "",
                    all.empty() ? "none" : all);
  }

  /// Finds the case of each file.
  Result<void> list_folder() {
    ETSTREAM_ASSIGN(const auto entries, entries_of(folder_));
    for (const auto& [name, is_file] : entries) {
      const std::string path = path_in(folder_, name);
      if (is_file) {
        auto output = read_output_name(name);
        if (output) {
          ETSTREAM_TRY(place({path, *std::move(output)}));
        } else if (!is_beside_outputs(name)) {
          others_.push_back(name);
        }
        continue;
      }
      const auto number = read_number(name);
      std::error_code ignored;
      if (!number || !fs::is_directory(path, ignored)) {
        others_.push_back(name);
        continue;
      }
      ETSTREAM_ASSIGN(const auto inside, entries_of(path));
      for (const auto& [file, is_one] : inside) {
        auto output = read_output_name(file);
        if (!is_one || !output || output->test_case) {
          others_.push_back(text("{}/{}", name, file));
          continue;
        }
        output->test_case = number;
        output->series = text("{}/{}", name, output->series);
        ETSTREAM_TRY(place({path_in(path, file), *std::move(output)}));
      }
    }
    return {};
  }

  /// Returns the names in a folder, sorted, with whether each is a file.
  static Result<std::vector<std::pair<std::string, bool>>> entries_of(const std::string& folder) {
    std::vector<std::pair<std::string, bool>> out;
    std::error_code failed;
    fs::directory_iterator entries(folder, failed);
    for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
      std::error_code ignored;
      out.emplace_back(entries->path().filename().string(), entries->is_regular_file(ignored));
    }
    if (failed) {
      const bool is_missing = failed == std::errc::no_such_file_or_directory;
      return error_in(is_missing ? ErrorCode::kNotFound : ErrorCode::kIo, folder,
                      "cannot list the folder: {}", failed.message());
    }
    std::ranges::sort(out);
    return out;
  }

  /// Gives a file to its case. A file of a case that was not chosen is none of the findings.
  Result<void> place(FoundFile file) {
    const OutputName& name = file.name;
    const Places& fitting = !name.test_case      ? chosen_
                            : name.label.empty() ? by_number_[*name.test_case]
                                                 : by_label_[name.label][*name.test_case];
    if (fitting.size() > 1) {
      return with_advice(error_in(ErrorCode::kInvalidArgument, file.path, "may be an output of {} or of {}{}",
                                  name_of(cases_[fitting[0]]), name_of(cases_[fitting[1]]),
                                  fitting.size() == 2 ? "" : text(", or of {} more", fitting.size() - 2)),
                         {name.test_case ? "choose the method"
                                         : "choose one of them, or use names with the number of the case"});
    }
    if (fitting.empty()) {
      add_error(found_, error_in(ErrorCode::kInvalidArgument, file.path, "is an output of no test case of {}",
                                 quote(bundle_.file().name())));
      return {};
    }
    Case& one = cases_[fitting[0]];
    if (!one.is_chosen) return {};
    has_file_ = true;
    one.files.push_back(std::move(file));
    return {};
  }

  Result<void> compare_case(const Case& one) {
    ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle_.test_case(*one.suite, one.index));
    const std::vector<Value>& expected = test_case.expected_outputs;
    if (expected.empty()) {
      add_warning(found_, error_in(ErrorCode::kInvalidArgument, bundle_.file().name(),
                                   "{} expects no outputs, so that none are compared", name_of(one)));
    } else {
      check_files(one, expected.size());
    }
    MethodRun& run = found_.runs.emplace_back();
    run.method = beginning_of(one.suite->method_name);  // as many cases may have it
    run.inputs = inputs_of(one);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ETSTREAM_TRY(compare_output(one, i, expected[i], run));
    }
    return {};
  }

  /// Looks for files of outputs that the case does not have, and for files of different runs.
  void check_files(const Case& one, std::size_t outputs) {
    std::set<std::string> series;
    for (const FoundFile& file : one.files) {
      series.insert(file.name.series);
      if (file.name.output < outputs) continue;
      add_error(found_, error_in(ErrorCode::kInvalidArgument, file.path, "is output {} of {}, which has {}",
                                 file.name.output, name_of(one), counted(outputs, "output")));
    }
    if (series.size() < 2) return;
    add_error(found_, error_in(ErrorCode::kInvalidArgument, folder_, "{} has files of several runs: {}",
                               name_of(one), names_text(series)));
  }

  Result<void> compare_output(const Case& one, std::size_t index, const Value& expected, MethodRun& run) {
    const auto* const tensor = std::get_if<Tensor>(&expected);
    if (tensor == nullptr) {
      add_warning(found_,
                  error_in(ErrorCode::kUnsupported, bundle_.file().name(),
                           "output {} of {} is not compared, as it is no tensor", index, name_of(one)));
      run.outputs.emplace_back();
      return {};
    }
    ++expected_;
    std::vector<std::string> paths;
    const FoundFile* file = nullptr;
    for (const FoundFile& each : one.files) {
      if (each.name.output != index) continue;
      file = &each;
      paths.push_back(each.path);
    }
    if (paths.size() == 1) {
      const auto actual = open_output_file(*file, *tensor);
      ETSTREAM_TRY(add_output(run, expected, actual, options_.tolerance, file->path));
      return actual ? std::get<Tensor>(*actual).data.check_unchanged() : Result<void>();
    }
    run.end = MethodRun::End::kOtherOutputs;
    run.outputs.emplace_back().problem = paths.empty() ? text("has no file in {}", quote(folder_))
                                                       : text("has several files: {}", names_text(paths));
    return {};
  }

  [[nodiscard]] Error nothing_found() const {
    return with_advice(error_in(ErrorCode::kNotFound, folder_, "no file is an output of {}{}, expected {}",
                                name_of(cases_[chosen_.front()]),
                                chosen_.size() == 1 ? "" : text(" or of {} more", chosen_.size() - 1),
                                "names such as out-0.bin, output_0.bin, 0000.bin, output_0_0.raw or "
                                "forward_0_output_0.npy, or folders such as 0/"),
                       others_.empty() ? Advice{} : Advice{text("found {}", names_text(others_))});
  }

  const BundledProgramFile& bundle_;
  const std::string& folder_;
  const OutputComparisonOptions& options_;
  const std::vector<std::string> labels_;
  std::vector<Case> cases_;
  Places chosen_;
  std::map<std::uint64_t, Places> by_number_;  // of the chosen method, or of all
  std::map<std::string, std::map<std::uint64_t, Places>> by_label_;
  std::vector<std::string> others_;  // entries whose names are none of outputs
  std::uint64_t expected_ = 0;       // tensors
  bool has_file_ = false;
  OutputFindings found_;
};

}  // namespace

std::uint64_t OutputFindings::problems() const noexcept {
  std::uint64_t out = 0;
  for (const MethodRun& run : runs) {
    out += static_cast<std::uint64_t>(
        std::ranges::count_if(run.outputs, [](const OutputRun& output) { return !output.problem.empty(); }));
  }
  return out;
}

bool OutputFindings::as_expected() const noexcept {
  return ok() && std::ranges::all_of(runs, &MethodRun::ok);
}

Result<OutputFindings> compare_outputs(const ByteSource& file, const std::string& folder,
                                       const OutputComparisonOptions& options) {
  return without_exceptions([&]() -> Result<OutputFindings> {
    if (!options.tolerance.is_valid()) {
      return make_error(ErrorCode::kInvalidArgument, "a tolerance is negative or NaN");
    }
    ETSTREAM_ASSIGN(const BundledProgramFile bundle, BundledProgramFile::open(file));
    return OutputFolder(bundle, folder, options).run();
  });
}

}  // namespace etstream
