// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/verify.h"

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/program.h"
#include "files/runs/line_process_posix.h"
#include "files/runs/run_task.h"
#include "files/runs/unnamed_file_posix.h"
#include "formats/pte/program_model.h"
#include "formats/segments/file_kind.h"
#include "worker_generated.h"

namespace etstream {
namespace {

using End = MethodRun::End;

/// The number of instructions in a chain of a method, and the place of that number in the file.
struct ChainLength {
  std::uint64_t position = 0;  // in the program
  std::uint32_t instructions = 0;
};

Result<std::vector<ChainLength>> chains_of(const pte::Program& program, std::uint32_t method) {
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  ETSTREAM_ASSIGN(const pte::Method found, methods.at(method));
  ETSTREAM_ASSIGN(const auto chains, found.chains());
  std::vector<ChainLength> out;
  ETSTREAM_TRY(for_each(chains, [&](const pte::Chain& chain) -> Result<void> {
    ETSTREAM_ASSIGN(const auto instructions, chain.vector(program.fields().chain.instructions));
    if (instructions) out.push_back({instructions->position, instructions->count});
    return {};
  }));
  return out;
}

/// The process that runs methods, with its open files.
class Worker {
 public:
  static Result<Worker> start(const ByteSource& file, const ProgramFile& program, const ByteSource* weights,
                              const MethodRunOptions& options) {
    ETSTREAM_ASSIGN(Descriptor copy, make_unnamed_file());
    ETSTREAM_ASSIGN(Descriptor outputs, make_unnamed_file());
    ETSTREAM_ASSIGN(Descriptor whole, as_file(file));
    Descriptor tensor_data;
    if (weights != nullptr) {
      ETSTREAM_ASSIGN(tensor_data, as_file(*weights));
    }
    const int files[] = {whole.get(), copy.get(), outputs.get(),
                         weights != nullptr ? tensor_data.get() : whole.get()};
    auto process = LineProcess::start({options.python, "-c", std::string(kWorkerScript)}, files);
    if (!process) {
      process.error().advice = {AdviceTerm::kChooseOtherPython};
      return std::move(process).error();
    }
    Worker out(*std::move(process), std::move(copy), std::move(outputs), program, options,
               weights != nullptr);
    ETSTREAM_TRY(out.expect_ready());
    if (program.file().offset_in(file) != 0 || program.file().size() != file.size()) {
      ETSTREAM_TRY(out.copy_program());
    }
    return out;
  }

  /// Runs the task, on the shortest inputs if it does not fail on them, and finds out where a signal came
  /// from.
  Result<MethodRun> run(const RunTask& task, std::uint32_t method) {
    if (!task.shortest.empty()) {
      RunTask shortest = task;
      shortest.inputs = task.shortest;
      shortest.inputs_name = "shortest " + task.inputs_name;
      ETSTREAM_ASSIGN(const RunAnswer answer, attempt(shortest));
      if (answer.run.ok()) return answer.run;
    }
    ETSTREAM_ASSIGN(RunAnswer answer, attempt(task));
    MethodRun& run = answer.run;
    if (run.end != End::kSignal && !answer.failed_at) return run;
    ETSTREAM_ASSIGN(const auto chains, chains_of(program_.model(), method));
    if (run.end == End::kSignal) {
      ETSTREAM_ASSIGN(run.instruction, find_culprit(task, chains, run.signal));
    } else {
      std::uint64_t before = answer.failed_at->second;
      for (std::size_t i = 0; i < answer.failed_at->first && i < chains.size(); ++i) {
        before += chains[i].instructions;
      }
      run.instruction = before;
    }
    if (!run.instruction) return run;
    ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program_, method));
    if (*run.instruction < graph.calls.size()) {
      run.callee = graph.name_of(graph.calls[*run.instruction]);
    } else {
      run.instruction.reset();
    }
    return run;
  }

 private:
  Worker(LineProcess process, Descriptor copy, Descriptor outputs, const ProgramFile& program,
         const MethodRunOptions& options, bool has_weights)
      : process_(std::move(process)),
        copy_(std::move(copy)),
        outputs_(std::move(outputs)),
        program_(program),
        options_(options),
        has_weights_(has_weights) {}

  Result<void> expect_ready() {
    const auto line = process_.receive(options_.go_on);
    if (!line && line.error().code == ErrorCode::kInterrupted) return line.error();
    const auto told = nlohmann::json::parse(line ? *line : "{}", nullptr, false);
    if (told.is_object() && told.contains("ready")) return {};
    const std::string why = told.is_object() && told.contains("missing") ? told["missing"].get<std::string>()
                                                                         : "it ended while it was imported";
    return with_advice(
        make_error(ErrorCode::kUnsupported, "{} has no ExecuTorch runtime to run methods on: {}",
                   quote(options_.python), printable(why)),
        {"install it there (pip install executorch), or ", AdviceTerm::kChooseOtherPython});
  }

  Result<void> copy_program() {
    ETSTREAM_TRY(copy_to(copy_.get(), program_.file()));
    is_copied_ = true;
    return {};
  }

  Result<RunAnswer> attempt(const RunTask& task) {
    nlohmann::json request = {{"method", task.method},     {"fill", task.fill},
                              {"seed", options_.seed},     {"seconds", options_.seconds},
                              {"memory", options_.memory}, {"copy", is_copied_},
                              {"weights", has_weights_},   {"outputs", !task.expected.empty()}};
    request["inputs"] = nlohmann::json::parse(task.inputs);
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
    ETSTREAM_ASSIGN(const std::string line,
                    process_.ask(request.dump(-1, ' ', false, kReplace), options_.go_on));
    return read_answer(line, task, outputs_.get(), options_.tolerance);
  }

  /// Changes the copy so that the method ends after its first `instructions`.
  Result<void> cut(const std::vector<ChainLength>& chains, std::uint64_t instructions) {
    for (const ChainLength& chain : chains) {
      const std::uint64_t kept = std::min<std::uint64_t>(chain.instructions, instructions);
      ETSTREAM_TRY(put_uint32(copy_.get(), chain.position, static_cast<std::uint32_t>(kept)));
      instructions -= kept;
    }
    return {};
  }

  /// Finds the instruction without which the signal does not come; nothing if it comes without any.
  Result<std::optional<std::uint64_t>> find_culprit(RunTask task, const std::vector<ChainLength>& chains,
                                                    const std::string& signal) {
    if (!is_copied_) ETSTREAM_TRY(copy_program());
    task.expected.clear();
    std::uint64_t all = 0;
    for (const ChainLength& chain : chains) all += chain.instructions;
    std::uint64_t least = 0;
    std::uint64_t most = all;  // the signal comes with as many
    while (least < most) {
      const std::uint64_t middle = least + (most - least) / 2;
      ETSTREAM_TRY(cut(chains, middle));
      ETSTREAM_ASSIGN(const RunAnswer answer, attempt(task));
      if (answer.run.end == End::kSignal && answer.run.signal == signal) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    ETSTREAM_TRY(cut(chains, all));
    return most == 0 ? std::optional<std::uint64_t>() : most - 1;
  }

  LineProcess process_;
  Descriptor copy_;
  Descriptor outputs_;
  const ProgramFile& program_;
  const MethodRunOptions& options_;
  bool has_weights_;
  bool is_copied_ = false;
};

/// Runs the bundle's test cases for the method. Returns whether there are any.
Result<bool> run_cases(const BundledProgramFile& bundle, const std::string& method, std::uint32_t index,
                       Worker& worker, std::vector<MethodRun>& runs) {
  std::size_t number = 0;
  for (const BundledProgramFile::Suite& suite : bundle.suites()) {
    if (suite.method_name != method) continue;
    for (std::uint32_t i = 0; i < suite.test_cases; ++i, ++number) {
      ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle.test_case(suite, i));
      ETSTREAM_ASSIGN(const RunTask task, task_of(method, number, test_case, bundle.file()));
      ETSTREAM_ASSIGN(runs.emplace_back(), worker.run(task, index));
    }
  }
  return number > 0;
}

Result<std::vector<MethodRun>> run_program(const ByteSource& file, const BundledProgramFile* bundle,
                                           const ProgramFile& program, const ByteSource* weights,
                                           const MethodRunOptions& options) {
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  ETSTREAM_ASSIGN(Worker worker, Worker::start(file, program, weights, options));
  std::vector<MethodRun> out;
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    if (bundle != nullptr) {
      ETSTREAM_ASSIGN(const bool has_cases, run_cases(*bundle, methods[i].name, i, worker, out));
      if (has_cases) continue;
    }
    for (const RunTask& task : tasks_of(methods[i], options.seed)) {
      ETSTREAM_ASSIGN(out.emplace_back(), worker.run(task, i));
    }
  }
  ETSTREAM_TRY(file.check_unchanged());
  return out;
}

Result<std::vector<MethodRun>> run_file(const ByteSource& file, const std::vector<ByteSource>& weights,
                                        const MethodRunOptions& options) {
  if (!options.tolerance.is_valid()) {
    return make_error(ErrorCode::kInvalidArgument, "a tolerance is negative or NaN");
  }
  if (options.seconds == 0) {
    return make_error(ErrorCode::kInvalidArgument, "a run is given 0 seconds, expected at least 1");
  }
  if (weights.size() > 1) {
    return with_advice(
        make_error(ErrorCode::kUnsupported,
                   "ExecuTorch's Python functions take one tensor data file, found {}", weights.size()),
        {AdviceTerm::kJoinTensorData});
  }
  const ByteSource* const tensor_data = weights.empty() ? nullptr : weights.data();
  ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
  if (kind == FileKind::kBundledProgram || kind == FileKind::kSegmentedBundle) {
    ETSTREAM_ASSIGN(const BundledProgramFile bundle, BundledProgramFile::open(file));
    ETSTREAM_ASSIGN(const ProgramFile program, bundle.open_program());
    return run_program(file, &bundle, program, tensor_data, options);
  }
  ETSTREAM_ASSIGN(
      const ProgramFile program,
      unless_other(file, {"a program or a bundle", {FileKind::kProgram}}, ProgramFile::open(file)));
  return run_program(file, nullptr, program, tensor_data, options);
}

}  // namespace

Result<std::vector<MethodRun>> run_methods(const ByteSource& file, const std::vector<ByteSource>& weights,
                                           const MethodRunOptions& options) {
  return without_exceptions([&]() -> Result<std::vector<MethodRun>> {
    try {
      return run_file(file, weights, options);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& unexpected) {  // of JSON that is not as worker.py writes it
      return error_in(ErrorCode::kIo, file.name(), "no answer of the process that runs it: {}",
                      unexpected.what());
    }
  });
}

}  // namespace etstream
