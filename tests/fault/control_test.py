# SPDX-License-Identifier: BSD-3-Clause
"""Shows that sweep.py finds each of careless_writer's flaws, and none where there is none."""

import errno
import unittest

from scenarios import careless
from sweep import Sweep
from workplace import MIB, Workplace


class TheSweep(unittest.TestCase):
    place: Workplace

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = cls.enterClassContext(Workplace(model_size=5 * MIB // 4))

    def complaints(self, flaw: str) -> str:
        return "\n".join(Sweep(careless(flaw), self.place, errors=(errno.ENOSPC, errno.EINTR)).all().complaints)

    def expect(self, flaw: str, *complaints: str) -> None:
        found = self.complaints(flaw)
        for complaint in complaints:
            self.assertIn(complaint, found)

    def test_finds_nothing_where_there_is_nothing(self) -> None:
        self.assertEqual(self.complaints("none"), "")

    def test_finds_a_destination_that_is_written_in_place(self) -> None:
        self.expect("in-place", "neither the old one nor the complete new one")

    def test_finds_writes_that_are_not_looked_at(self) -> None:
        self.expect("ignores-writes", "neither the old one nor the complete new one", "exit code 0, the result not")

    def test_finds_a_sync_that_is_not_looked_at(self) -> None:
        self.expect("ignores-sync", "ENOSPC: exit code 0, the result complete; expected exit code 1")

    def test_finds_a_rename_before_anybody_has_asked(self) -> None:
        self.expect("never-asks", "out/result is put in place before fsync or close")

    def test_finds_a_temporary_file_after_an_error(self) -> None:
        self.expect("leaves-temporary", "ENOSPC: left behind: .result.etstream-00112233445566aa.tmp")

    def test_finds_a_temporary_file_that_nobody_can_recognise(self) -> None:
        self.expect("strange-name", "kill-after: left behind: .result~")

    def test_finds_an_error_without_a_message(self) -> None:
        self.expect("says-nothing", "the message does not name the file", "say 'No space left on device'")

    def test_finds_an_error_without_its_exit_code(self) -> None:
        self.expect("exits-with-zero", "exit code 0, the result not complete; expected exit code 1")

    def test_finds_a_neighbour_that_is_gone(self) -> None:
        self.expect("cleans-too-much", "neighbour, which is none of its business, was touched")


if __name__ == "__main__":
    unittest.main()
