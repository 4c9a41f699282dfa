# SPDX-License-Identifier: BSD-3-Clause
"""Shows that with several writers at one destination the result is the complete file of one of them."""

import errno
import fcntl
import os
import time

from command_test_case import BUNDLE, CommandTestCase, main
from scenarios import LEFTOVER, Scenario
from sweep import trace
from workplace import content

ROUNDS = 5
PROGRAM = ["extract", "in/bundle.bpte", "program", "-o"]


class Writers(CommandTestCase):
    def test_two_at_once_both_succeed_and_one_of_them_is_the_result(self) -> None:
        program = (self.place.inputs / "model.pte").read_bytes()
        for _ in range(ROUNDS):
            self.place.result.write_bytes(b"old")
            writers = [self.start(*command, "out/result") for command in (BUNDLE, PROGRAM)]
            for writer in writers:
                _, errors = writer.communicate(timeout=120)
                self.assertEqual(writer.returncode, 0, errors)
            result = self.place.result.read_bytes()
            self.assertTrue(result in (self.complete, program), "the result is neither of the two")
            self.assertEqual(self.place.others(), [])

    def test_one_that_is_killed_does_not_disturb_the_other_and_leaves_nothing_for_good(self) -> None:
        for _ in range(ROUNDS):
            killed, other = (self.start(*BUNDLE, "out/result") for _ in range(2))
            killed.kill()
            _, errors = other.communicate(timeout=120)
            killed.wait(timeout=120)
            self.assertEqual(other.returncode, 0, errors)
            self.assertTrue(self.place.result.read_bytes() == self.complete)
            self.succeeds(*BUNDLE, "out/result")
            self.assert_result(self.complete)

    def test_two_folders_at_once_one_succeeds_and_is_complete(self) -> None:
        command = ["extract", "in/bundle.bpte", "--cases"]
        self.succeeds(*command, "out/alone")
        alone = content(self.place.out / "alone")
        writers = [self.start(*command, "out/result") for _ in range(2)]
        errors = [writer.communicate(timeout=120)[1].decode() for writer in writers]
        self.assertIn(sorted(writer.returncode for writer in writers), ([0, 1], [0, 0]), errors)
        self.assertEqual(content(self.place.result), alone)
        self.assertEqual(self.place.others(), ["alone"])

    def test_what_another_is_writing_stays_until_it_has_ended(self) -> None:
        with open(self.place.out / LEFTOVER, "wb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.succeeds(*BUNDLE, "out/result")
            self.assertEqual(self.place.others(), [LEFTOVER])
        self.succeeds(*BUNDLE, "out/result")
        self.assert_result(self.complete)

    def test_without_locks_what_nobody_has_written_to_for_a_day_goes(self) -> None:
        scenario = Scenario("bundle", [*BUNDLE, "out/result"], leftover=True)
        scenario.prepare(self.place)
        lock = next(call.index for call in trace(scenario, self.place, "count").calls if call.name == "flock")
        for hours, left in ((1, [LEFTOVER]), (25, [])):
            scenario.prepare(self.place)
            then = time.time() - hours * 3600
            os.utime(self.place.out / LEFTOVER, (then, then))
            self.assertEqual(trace(scenario, self.place, "fail", lock, errno.ENOLCK).code, 0)
            self.assertEqual(self.place.others(), left)


if __name__ == "__main__":
    main()
