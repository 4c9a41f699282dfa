// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a command and makes one of the system calls by which it changes files fail, or all from that one on.
//
//   fault_tracer LOG MODE [CALL [NUMBER]] -- COMMAND [ARGUMENT...]
//
//   count              nothing goes wrong
//   record             nothing goes wrong, and LOG.data gets the bytes of all writes to files
//   fail CALL ERRNO    call CALL (the first is 1) is not made and returns the error
//   fail-from CALL ERRNO    so do all after it
//   short CALL         it is asked to write half as much
//   kill-before CALL   the process is killed before the call
//   kill-after CALL    the process is killed after it
//   signal CALL NUMBER the process gets the signal during the call
//   lacks NAME ERRNO   no call whose name begins so is made: all return the error
//
// LOG gets a line a call, "CALL<tab>NAME<tab>PATH or DESCRIPTOR<tab>SOURCE<tab>FLAGS<tab>RESULT", and as the
// last "exit CODE" or "signal NUMBER". SOURCE and FLAGS are those of WriteCall.
// The exit code is 0, or 125 where tracing does not work.
#include <sys/uio.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracee.h"
#include "write_calls.h"

namespace {

enum class Mode { kCount, kRecord, kFail, kFailFrom, kShort, kKillBefore, kKillAfter, kSignal, kLacks };

struct Fault {
  Mode mode = Mode::kCount;
  int call = 0;
  int number = 0;    // of the error or the signal
  std::string name;  // that calls begin with, at kLacks

  [[nodiscard]] bool fails(int index, const WriteCall& recognised) const {
    return (mode == Mode::kFail && index == call) || (mode == Mode::kFailFrom && index >= call) ||
           (mode == Mode::kLacks && recognised.name.rfind(name, 0) == 0);
  }
  [[nodiscard]] bool is(Mode wanted, int index) const { return mode == wanted && index == call; }
};

std::optional<Mode> mode_of(const std::string& name) {
  constexpr const char* kNames[] = {"count",       "record",     "fail",   "fail-from", "short",
                                    "kill-before", "kill-after", "signal", "lacks"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Mode>(i);
  }
  return std::nullopt;
}

/// Copies the bytes that the process has just written to a file to `data`, which may be null.
void record(pid_t process, const WriteCall& call, const SystemCall& made, std::int64_t result,
            std::FILE* data) {
  if (data == nullptr || call.name != "write" || made.arguments[0] == 1 || result <= 0) return;
  std::vector<char> bytes(static_cast<std::size_t>(result));
  const iovec here{bytes.data(), bytes.size()};
  const iovec there{reinterpret_cast<void*>(made.arguments[1]), bytes.size()};
  if (::process_vm_readv(process, &here, 1, &there, 1, 0) != static_cast<ssize_t>(result) ||
      std::fwrite(bytes.data(), 1, bytes.size(), data) != bytes.size()) {
    std::fputs("fault_tracer: cannot record what is written\n", stderr);
    std::exit(1);
  }
}

/// Runs the process to its end. Returns how it ended.
Stop run(Tracee& tracee, const Fault& fault, std::FILE* log, std::FILE* data) {
  WriteCalls calls;
  SystemCall current;
  std::optional<WriteCall> recognised;
  int index = 0;
  int signal = 0;
  while (true) {
    Stop stop = tracee.run(std::exchange(signal, 0));
    if (stop.kind == Stop::Kind::kEnded) return stop;
    if (stop.kind == Stop::Kind::kOther) {
      signal = stop.signal == SIGTRAP ? 0 : stop.signal;
    } else if (stop.kind == Stop::Kind::kEntry) {
      current = stop.call;
      recognised = calls.recognise(tracee.id(), current);
      if (!recognised) continue;
      ++index;
      std::fprintf(log, "%d\t%s\t%s\t%s\t%llu", index, recognised->name.c_str(), recognised->about.c_str(),
                   recognised->source.c_str(), static_cast<unsigned long long>(recognised->flags));
      if (fault.is(Mode::kKillBefore, index)) ::kill(tracee.id(), SIGKILL);
      if (fault.is(Mode::kSignal, index)) ::kill(tracee.id(), fault.number);
      if (fault.fails(index, *recognised) && !recognised->happens_all_the_same) tracee.skip_call();
      if (fault.is(Mode::kShort, index) && recognised->size_argument) {
        const std::size_t size = *recognised->size_argument;
        tracee.set_argument(size, (current.arguments[size] + 1) / 2);
      }
    } else {
      if (recognised && fault.fails(index, *recognised)) {
        stop.result = -fault.number;
        tracee.set_result(stop.result);
      }
      calls.note(current, stop.result);
      if (!recognised) continue;
      std::fprintf(log, "\t%lld\n", static_cast<long long>(stop.result));
      record(tracee.id(), *recognised, current, stop.result, data);
      if (fault.is(Mode::kKillAfter, index)) ::kill(tracee.id(), SIGKILL);
      recognised.reset();
    }
  }
}

int usage() {
  std::fputs("usage: fault_tracer LOG MODE [CALL [NUMBER]] -- COMMAND [ARGUMENT...]\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::size_t dashes = 0;
  while (dashes < arguments.size() && arguments[dashes] != "--") ++dashes;
  if (dashes < 2 || dashes > 4 || dashes + 1 >= arguments.size()) return usage();
  const auto mode = mode_of(arguments[1]);
  if (!mode) return usage();
  const Fault fault{.mode = *mode,
                    .call = dashes > 2 ? std::atoi(arguments[2].c_str()) : 0,
                    .number = dashes > 3 ? std::atoi(arguments[3].c_str()) : 0,
                    .name = dashes > 2 ? arguments[2] : ""};
  std::FILE* log = std::fopen(arguments[0].c_str(), "we");
  if (log == nullptr) return usage();
  Tracee tracee({arguments.begin() + static_cast<std::ptrdiff_t>(dashes) + 1, arguments.end()});
  std::FILE* const data =
      *mode == Mode::kRecord ? std::fopen((arguments[0] + ".data").c_str(), "we") : nullptr;
  const Stop end = run(tracee, fault, log, data);
  if (end.exit_code) std::fprintf(log, "\nexit %d\n", *end.exit_code);
  if (end.death_signal) std::fprintf(log, "\nsignal %d\n", *end.death_signal);
  if (data != nullptr && std::fclose(data) != 0) return 1;
  return std::fclose(log) == 0 ? 0 : 1;
}
