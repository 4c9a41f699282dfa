# SPDX-License-Identifier: BSD-3-Clause
"""Lets each system call by which a command writes go wrong in turn, and checks what is left.

    ETSTREAM=PATH FAULT_TRACER=PATH python3 sweep.py [SCENARIO... | --list]

Every call fails with each of ERRORS, once and with all that come after it; writes are cut short; the process is killed
before and after every call, and gets a Ctrl-C during it. Prints a line for each scenario. The exit code is 1 if
something was lost.
"""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field

from expectations import CAN_NOT, NO_MODE, NO_SYNC, Call, Outcome, expected, role_of, unheard
from scenarios import Scenario, scenarios
from verdict import Run, Verdict
from workplace import Workplace

ERRORS = (errno.ENOSPC, errno.EIO, errno.EINTR, errno.EDQUOT, errno.EACCES)
# The errors that some calls give if the system can't do what they ask for.
MORE_ERRORS = {
    "reserve": CAN_NOT,
    "write back": (*CAN_NOT, errno.EINVAL),
    "forget": CAN_NOT,
    "lock": CAN_NOT,
    "keep the owner": NO_MODE,
    "sync": NO_SYNC,
    "sync the folder": NO_SYNC,
    "rename": (*CAN_NOT, errno.EPERM, errno.EBUSY),
}


MOST_SHOWN = 100  # the most complaints that are shown


@dataclass
class Count:
    calls: int = 0
    faults: int = 0
    kills: int = 0
    interrupts: int = 0
    complaints: list[str] = field(default_factory=list)


def trace(scenario: Scenario, place: Workplace, *fault: str | int) -> Run:
    """Runs the command with a fault, see fault_tracer.cpp."""
    log = place.top / "log"
    command = [os.environ["FAULT_TRACER"], str(log), *map(str, fault), "--", *scenario.whole_command]
    done = subprocess.run(command, cwd=place.top, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"fault_tracer failed: {done.stderr}")
    calls, code = [], 0
    for line in filter(None, log.read_text().split("\n")):
        fields = line.split("\t")
        if len(fields) >= 5:
            index, name, about, source, flags, *result = fields
            calls.append(Call(int(index), name, about, source, int(flags), int(result[0]) if result else None))
        else:
            kind, number = line.split()
            code = int(number) if kind == "exit" else -int(number)
    return Run(fault, code, done.stderr, calls)


class Sweep:
    def __init__(self, scenario: Scenario, place: Workplace, errors: tuple[int, ...] = ERRORS) -> None:
        self.scenario = scenario
        self.place = place
        self.errors = errors
        self.count = Count()
        first = self._run("count")
        self.calls = first.calls
        self.verdict = Verdict(scenario, place)
        if first.code != 0:
            self.count.complaints.append(f"it fails without a fault: {first.stderr}")
        self.count.complaints += unheard(self.calls)
        if scenario.gives and self.verdict.complete != (place.top / scenario.gives).read_bytes():
            self.count.complaints.append(f"the result is not {scenario.gives}")

    def _run(self, *fault: str | int) -> Run:
        self.scenario.prepare(self.place)
        return trace(self.scenario, self.place, *fault)

    def _judge(self, position: int, what: str, complaints: list[str]) -> None:
        call = self.calls[position]
        where = f"{self.scenario.name}: call {call.index}, {call.name} ({call.about}): {what}"
        self.count.complaints += [f"{where}: {complaint}" for complaint in complaints]

    def all(self) -> Count:
        for position in range(len(self.calls)):
            role = role_of(self.calls, position, self.scenario.destination)
            if self.scenario.roles and role not in self.scenario.roles:
                continue
            self.count.calls += 1
            self._errors(position)
            self._short(position)
            self._kills(position)
            self._interrupt(position)
        return self.count

    def _errors(self, position: int) -> None:
        role = role_of(self.calls, position, self.scenario.destination)
        for error in (*self.errors, *MORE_ERRORS.get(role, ())):
            self._fail(position, error, and_all_after=False)
            # An interrupted write is tried again, for as long as it takes.
            if error != errno.EINTR:
                self._fail(position, error, and_all_after=True)

    def _fail(self, position: int, error: int, and_all_after: bool) -> None:
        run = self._run("fail-from" if and_all_after else "fail", self.calls[position].index, error)
        outcome = expected(self.calls, position, error, self.scenario.destination, and_all_after)
        self.count.faults += 1
        what = errno.errorcode[error] + (" from then on" if and_all_after else "")
        self._judge(position, what, self.verdict.of_fault(run, outcome, error, may_leave=and_all_after))

    def _short(self, position: int) -> None:
        if not self.calls[position].name.startswith(("write", "pwrite", "copy_file_range", "sendfile")):
            return
        run = self._run("short", self.calls[position].index)
        self.count.faults += 1
        self._judge(position, "cut short", self.verdict.of_fault(run, Outcome.GOES_ON, 0, may_leave=False))

    def _kills(self, position: int) -> None:
        for mode in ("kill-before", "kill-after"):
            run = self._run(mode, self.calls[position].index)
            self.count.kills += 1
            complaints = self.verdict.of_kill(run)
            if not complaints:
                complaints = self.verdict.of_next(trace(self.scenario, self.place, "count"))
            self._judge(position, mode, complaints)

    def _interrupt(self, position: int) -> None:
        run = self._run("signal", self.calls[position].index, signal.SIGINT.value)
        self.count.interrupts += 1
        self._judge(position, "Ctrl-C", self.verdict.of_interrupt(run))


def sweep(scenario: Scenario) -> Count:
    with Workplace(scenario.model_size) as place:
        return Sweep(scenario, place).all()


HEADING = f"{'command':<24}{'calls':>7}{'faults':>8}{'kills':>7}{'Ctrl-C':>8}{'lost':>6}"


def row(name: str, count: Count) -> str:
    return (
        f"{name:<24}{count.calls:>7}{count.faults:>8}{count.kills:>7}{count.interrupts:>8}{len(count.complaints):>6}"
    )


def main() -> int:
    if sys.argv[1:] == ["--list"]:
        print(*(scenario.name for scenario in scenarios()), sep=";")
        return 0
    wanted = [s for s in scenarios() if s.name in sys.argv[1:] or len(sys.argv) == 1]
    total = Count()
    print(HEADING)
    for scenario in wanted:
        count = sweep(scenario)
        print(row(scenario.name, count), flush=True)
        for name in ("calls", "faults", "kills", "interrupts", "complaints"):
            setattr(total, name, getattr(total, name) + getattr(count, name))
    if len(wanted) > 1:
        print(row("all", total))
    if total.complaints or not wanted:
        print(*total.complaints[:MOST_SHOWN], sep="\n")
        return 1
    print(
        f"{total.faults} faults, {total.kills} kills and {total.interrupts} interrupts survived: each destination was "
        "the old one or the complete new one, and no one was told otherwise"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
