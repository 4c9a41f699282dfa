# SPDX-License-Identifier: BSD-3-Clause
"""Provides what tests of the command have in common."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from scenarios import NOBODY
from workplace import MIB, Workplace, content, etstream

BUNDLE = ["bundle", "in/model.pte", "--cases", "in/cases.json", "-o"]


class CommandTestCase(unittest.TestCase):
    """A test case with a Workplace for all its tests, and an empty out/ for each."""

    place: Workplace
    complete: bytes  # the file that BUNDLE writes

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = cls.enterClassContext(Workplace(model_size=5 * MIB // 2))
        cls.complete = (cls.place.inputs / "bundle.bpte").read_bytes()

    def setUp(self) -> None:
        self.place.renew()

    def tearDown(self) -> None:
        self.assertEqual(self.place.touched(), [])

    def start(self, *arguments: str | Path, **options: object) -> subprocess.Popen:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([etstream(), *map(str, arguments)], cwd=self.place.top, **{**pipes, **options})
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process: subprocess.Popen) -> None:
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_command(self, *arguments: str | Path, **options: object) -> tuple[int, str]:
        """Returns the exit code, or minus the signal that ended the command, and the text on standard error."""
        process = self.start(*arguments, **options)
        _, errors = process.communicate(timeout=120)
        return process.returncode, errors.decode()

    def succeeds(self, *arguments: str | Path, **options: object) -> None:
        code, errors = self.run_command(*arguments, **options)
        self.assertEqual(code, 0, errors)

    def fails(self, *arguments: str | Path, saying: str, **options: object) -> None:
        code, errors = self.run_command(*arguments, **options)
        self.assertEqual(code, 1, errors)
        self.assertIn(saying, errors)

    def assert_result(self, expected: bytes | None) -> None:
        """Checks that the result is this, and that nothing is beside it."""
        self.assertTrue(content(self.place.result) == expected, "the result is not what it should be")
        self.assertEqual(self.place.others(), [])


def skip_loudly(test: unittest.TestCase, what: str) -> None:
    print(f"\n***** SKIPPED: {what} *****", flush=True)
    test.skipTest(what)


def need_root(test: unittest.TestCase) -> None:
    if os.geteuid() != 0:
        skip_loudly(test, f"{test.id()}: only root can make what it needs")


class AsNobody:
    """A user who is not root, and who runs the command in a folder of their own."""

    def __init__(self, test: CommandTestCase) -> None:
        self.options: dict[str, object] = {}
        if os.geteuid() != 0:
            return
        place = test.place
        place.top.chmod(0o755)
        shutil.copy(etstream(), place.top / "etstream")  # the user may not reach the folder where it was built
        os.chown(place.out, NOBODY, NOBODY)
        self.options = {
            "user": NOBODY,
            "group": NOBODY,
            "extra_groups": [],
            "executable": str(place.top / "etstream"),
        }


def main() -> None:
    sys.stdout.reconfigure(line_buffering=True)
    unittest.main()
