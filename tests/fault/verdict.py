# SPDX-License-Identifier: BSD-3-Clause
"""Decides whether a run that something happened to has kept the promises of a writer."""

import os
import re
import shutil
import signal
from dataclasses import dataclass

from expectations import Call, Outcome
from scenarios import LEFTOVER, OLD_CONTENT, Scenario
from workplace import Workplace, content

TEMPORARY = re.compile(r"\.result\.etstream-[0-9a-f]{16}\.tmp")


@dataclass(frozen=True)
class Run:
    fault: tuple
    code: int  # the exit code, or minus the signal that ended it
    stderr: str
    calls: list[Call]


class Verdict:
    """A judge of runs, made after a run without faults, whose result is the complete one."""

    def __init__(self, scenario: Scenario, place: Workplace) -> None:
        self.scenario = scenario
        self.place = place
        self.complete = content(place.result)
        self.old: bytes | dict | None = OLD_CONTENT if scenario.old_file else {} if scenario.old_folder else None

    def _result(self) -> list[str]:
        """Returns complaints about the result, which hold whatever happened."""
        found = content(self.place.result)
        complaints = self.place.touched()
        if found not in (self.old, self.complete):
            complaints.append("the destination is neither the old one nor the complete new one")
        mode = 0o777 & self.place.result.stat().st_mode if found is not None else None
        if found is not None and self.old is not None and mode != (0o700 if self.scenario.makes_a_folder else 0o600):
            complaints.append(f"the destination's mode was not kept, it is {mode:o}")
        return complaints

    def _is_complete(self) -> bool:
        return content(self.place.result) == self.complete

    def _left(self, most: int) -> list[str]:
        """Returns complaints about files beside the destination that the run should have removed."""
        others = [name for name in self.place.others() if not (self.scenario.leftover and name == LEFTOVER)]
        strange = [name for name in others if not TEMPORARY.fullmatch(name)]
        if strange or len(others) > most:
            return [f"left behind: {', '.join(others)}"]
        return []

    def of_fault(self, run: Run, outcome: Outcome, error: int, may_leave: bool) -> list[str]:
        """Returns complaints about a run with a fault. `may_leave` is true if the temporary file could not be
        removed."""
        complaints = self._result() + self._left(1 if may_leave else 0)
        actual = (run.code, self._is_complete())
        wanted = (0 if outcome in (Outcome.GOES_ON, Outcome.WARNED) else 1, outcome is not Outcome.STOPS)
        if actual != wanted:
            complete = "complete" if actual[1] else "not complete"
            complaints.append(f"exit code {run.code}, the result {complete}; expected {outcome.value}: {run.stderr}")
        elif outcome is not Outcome.GOES_ON:
            complaints += self._message(run, outcome, error)
        return complaints

    def _message(self, run: Run, outcome: Outcome, error: int) -> list[str]:
        lines = run.stderr.splitlines()
        last = lines[-1] if lines else ""
        missing = []
        if (self.scenario.destination if outcome is not Outcome.WARNED else "standard output") not in last:
            missing.append("name the file")
        if os.strerror(error) not in last:
            missing.append(f"say {os.strerror(error)!r}")
        if outcome is Outcome.LATE and "complete" not in last:
            missing.append("say that the result is complete")
        return [f"the message does not {m}: {last!r}" for m in missing]

    def of_kill(self, run: Run) -> list[str]:
        complaints = self._result() + self._left(1)
        if run.code != -signal.SIGKILL:
            complaints.append(f"it was not killed, but ended with {run.code}")
        return complaints

    def of_next(self, run: Run) -> list[str]:
        """Returns complaints about the next run to the same destination."""
        if self.scenario.makes_a_folder and run.code == 1 and self._is_complete():
            # The killed run had made the folder, which is never replaced; somebody has to remove it before another run.
            shutil.rmtree(self.place.result)
            return self._left(0)
        complaints = self._result()
        if run.code != 0 or not self._is_complete():
            complaints.append(f"the next run does not succeed: {run.stderr}")
        if self.place.others():
            complaints.append(f"the next run leaves what was there: {self.place.others()}")
        return complaints

    def of_interrupt(self, run: Run) -> list[str]:
        complaints = self._result() + self._left(0)
        late = any(call.name.startswith("rename") and call.about == self.scenario.destination for call in run.calls)
        if (run.code, self._is_complete()) not in ((0, True), (-signal.SIGINT, late)):
            complaints.append(f"ended with {run.code}, {'' if self._is_complete() else 'not '}complete: {run.stderr}")
        return complaints
