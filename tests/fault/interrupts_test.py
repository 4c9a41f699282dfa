# SPDX-License-Identifier: BSD-3-Clause
"""Shows that an interrupt in the middle of a write leaves nothing behind, and ends the command as interrupts do."""

import os
import signal
import subprocess
import time
from pathlib import Path

from command_test_case import BUNDLE, CommandTestCase, main
from scenarios import CASES, Scenario
from sweep import trace


class Interrupts(CommandTestCase):
    def interrupt(self, scenario: Scenario, number: int) -> tuple[int, str]:
        """Sends the signal during the first call that writes to the file or to a file of the folder."""
        scenario.prepare(self.place)
        calls = trace(scenario, self.place, "count").calls
        middle = next(call.index for call in calls if call.name == "write")
        scenario.prepare(self.place)
        run = trace(scenario, self.place, "signal", middle, number)
        return run.code, run.stderr

    def test_each_kind_leaves_the_destination_as_it_was_and_ends_the_command_by_itself(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                code, errors = self.interrupt(Scenario("file", [*BUNDLE, "out/result"], old_file=True), number)
                self.assertEqual(code, -number)
                self.assertIn("interrupted", errors)
                self.assert_result(b"the old file")
                code, errors = self.interrupt(Scenario("folder", CASES), number)
                self.assertEqual(code, -number)
                self.assert_result(None)

    def test_one_that_the_parent_ignores_stays_ignored(self) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            code, errors = self.interrupt(Scenario("file", [*BUNDLE, "out/result"]), signal.SIGHUP)
        finally:
            signal.signal(signal.SIGHUP, before)
        self.assertEqual(code, 0, errors)
        self.assert_result(self.complete)

    def ends_when_blocked(self, process: subprocess.Popen, call: str) -> None:
        """Waits until the process sleeps in `call`, interrupts it, and expects that to end it."""
        folder = Path(f"/proc/{process.pid}")
        deadline = time.monotonic() + 60
        asleep_since = time.monotonic()
        while True:
            now = time.monotonic()
            self.assertLess(now, deadline, f"it never waited in {call}")
            if (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
                asleep_since = now
            # Not every kernel tells in which call a process waits.
            elif (folder / "wchan").read_text().endswith(call) or now - asleep_since > 2:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)

    def test_a_full_pipe_that_nobody_reads_does_not_hold_it_up(self) -> None:
        self.ends_when_blocked(self.start(*BUNDLE, "-"), "pipe_write")

    def test_a_full_pipe_beside_a_file_does_not_hold_it_up(self) -> None:
        process = self.start("extract", "in/bundle.bpte", "program", "-o", "-", "--cases", "out/result")
        self.ends_when_blocked(process, "pipe_write")
        self.assert_result(None)  # the outputs appear together

    def test_a_fifo_without_a_reader_does_not_hold_it_up(self) -> None:
        os.mkfifo(self.place.result)
        self.ends_when_blocked(self.start(*BUNDLE, "out/result"), "wait_for_partner")


if __name__ == "__main__":
    main()
