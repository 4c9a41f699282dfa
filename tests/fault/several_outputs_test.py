# SPDX-License-Identifier: BSD-3-Clause
"""Shows that of a command with several outputs all appear, or none does, whatever goes wrong on the way."""

import errno
import fcntl
import re
import signal
from collections.abc import Iterator
from pathlib import Path

from command_test_case import CommandTestCase, main
from expectations import Call
from scenarios import Scenario
from sweep import trace
from verdict import Run
from workplace import NEIGHBOURS, content

SHARE = ["share", "in/model.pte", "in/aligned.pte", "--no-sync"]
SHARE += ["--weights-to", "out/weights.ptd", "--out-dir", "out/thin", "--fat", "out/model.fat"]
SHARDS = ["pte", "in/model.pte", "--no-sync", "-o", "out/model.pte"]
SHARDS += ["--constants-to", "out/weights", "--split-max-size", "20480"]
TEMPORARY = re.compile(r"\.[a-z0-9.-]+\.etstream-[0-9a-f]{16}\.tmp")


class SharedWeights(CommandTestCase):
    command = SHARE
    # The outputs in the order in which they appear.
    verified = ("out/thin/model.pte", "out/weights.ptd")
    outputs = ("weights.ptd", "thin/model.pte", "thin/aligned.pte", "model.fat")
    folder = "thin"

    def prepare(self, old: bool) -> None:
        self.place.renew()
        # This looks as if a living process wrote it, so that verify has no leftover to warn of.
        self.doCleanups()
        neighbour = self.enterContext((self.place.out / NEIGHBOURS[2]).open("rb"))
        fcntl.flock(neighbour, fcntl.LOCK_EX)
        if not old:
            return
        if self.folder:
            (self.place.out / self.folder).mkdir()
        for name in self.outputs:
            (self.place.out / name).write_text("old")

    def found(self) -> list[bytes | dict | None]:
        return [content(self.place.out / name) for name in self.outputs]

    def temporaries(self) -> list[Path]:
        return [path for path in self.place.out.rglob("*") if TEMPORARY.fullmatch(path.name) and "0123" not in path.name]

    def calls(self, command: list[str]) -> Iterator[tuple[Scenario, Call, bool]]:
        """Yields each call by which the command writes, with old files there and without; sets `complete` to the
        result."""
        scenario = Scenario(command[0], command)
        for old in (True, False):
            self.prepare(old)
            first = trace(scenario, self.place, "count")
            self.assertEqual(first.code, 0, first.stderr)
            self.complete = self.found()
            for call in first.calls:
                self.prepare(old)
                yield scenario, call, old

    def assert_none(self, run: Run, call: Call, old: bool) -> None:
        what = f"call {call.index}, {call.name} ({call.about}): {run.stderr}"
        self.assertEqual(self.found(), [b"old" if old else None] * len(self.outputs), what)
        if self.folder:
            self.assertEqual((self.place.out / self.folder).exists(), old, what)
        self.assertEqual(self.temporaries(), [], what)

    def test_where_a_call_fails_all_outputs_are_there_or_none(self) -> None:
        failed = 0
        for scenario, call, old in self.calls([word for word in self.command if word != "--no-sync"]):
            run = trace(scenario, self.place, "fail", call.index, errno.ENOSPC)
            if run.code == 0 or call.about == "fd 1":
                self.assertEqual(self.found(), self.complete, f"{call.name} ({call.about}): {run.stderr}")
                continue
            failed += 1
            self.assertEqual(run.code, 1)
            self.assert_none(run, call, old)
        # Each output is made, written, synced and renamed, at least.
        self.assertGreaterEqual(failed, 2 * 4 * len(self.outputs))

    def test_an_interrupt_leaves_all_outputs_or_none(self) -> None:
        for scenario, call, old in self.calls(self.command):
            run = trace(scenario, self.place, "signal", call.index, signal.SIGINT.value)
            if self.found() != self.complete:
                self.assert_none(run, call, old)

    def test_killed_each_output_is_old_or_complete_and_no_program_comes_before_its_weights(self) -> None:
        mixed = 0
        for scenario, call, old in self.calls(self.command):
            for mode in ("kill-before", "kill-after"):
                self.prepare(old)
                trace(scenario, self.place, mode, call.index)
                found = self.found()
                come = [file == complete for file, complete in zip(found, self.complete, strict=True)]
                self.assertEqual(come, sorted(come, reverse=True), f"{mode} {call.name} ({call.about})")
                for file, complete in zip(found, self.complete, strict=True):
                    self.assertIn(file, (complete, b"old" if old else None))
                if any(come) and not all(come):
                    code, said = self.run_command("verify", *self.verified)
                    self.assertTrue(code != 0 or "etstream-" in said, f"{mode} {call.name}: {said}")
                    mixed += 1
            self.succeeds(*self.command)
            self.assertEqual(self.found(), self.complete)
            self.assertEqual(self.temporaries(), [])
        code, said = self.run_command("verify", *self.verified)
        self.assertEqual((code, said), (0, ""))
        # With old files, the command is killed between two renames, after the first and before the second. Without, it
        # is also killed before and after the attempt to exchange names.
        self.assertEqual(mixed, (2 + 4) * (len(self.outputs) - 1))


class Shards(SharedWeights):
    command = SHARDS
    verified = ("out/model.pte", "out/weights-00001-of-00003.ptd")
    outputs = (*(f"weights-0000{i}-of-00003.ptd" for i in (1, 2, 3)), "model.pte")
    folder = ""


if __name__ == "__main__":
    main()
