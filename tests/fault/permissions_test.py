# SPDX-License-Identifier: BSD-3-Clause
"""Permissions and owners are as cp would leave them."""

import os

from command_test_case import BUNDLE, AsNobody, CommandTestCase, main, need_root
from scenarios import NOBODY

CASES = ["extract", "in/bundle.bpte", "--cases", "out/result"]


class Permissions(CommandTestCase):
    def mode(self) -> int:
        return self.place.result.stat().st_mode & 0o7777

    def owner(self) -> tuple[int, int]:
        status = self.place.result.stat()
        return status.st_uid, status.st_gid

    def test_new_files_and_folders_have_those_that_the_umask_leaves(self) -> None:
        for mask in (0o022, 0o077, 0o000):
            with self.subTest(f"{mask:o}"):
                self.place.renew()
                self.succeeds(*BUNDLE, "out/result", umask=mask)
                self.assertEqual(self.mode(), 0o666 & ~mask)
                self.place.renew()
                self.succeeds(*CASES, umask=mask)
                self.assertEqual(self.mode(), 0o777 & ~mask)
                self.assertEqual({p.stat().st_mode & 0o777 for p in self.place.result.iterdir()}, {0o666 & ~mask})

    def test_an_existing_file_keeps_its_own(self) -> None:
        for mode in (0o600, 0o640, 0o755, 0o444):
            with self.subTest(f"{mode:o}"):
                self.place.renew()
                self.place.result.write_bytes(b"old")
                self.place.result.chmod(mode)
                self.succeeds(*BUNDLE, "out/result")
                self.assertEqual(self.mode(), mode)

    def test_an_existing_folder_keeps_its_own(self) -> None:
        for mode in (0o700, 0o1777, 0o2755):
            with self.subTest(f"{mode:o}"):
                self.place.renew()
                self.place.result.mkdir()
                self.place.result.chmod(mode)
                self.succeeds(*CASES)
                self.assertEqual(self.mode(), mode)

    def test_root_leaves_a_file_to_its_owner(self) -> None:
        need_root(self)
        self.place.result.write_bytes(b"old")
        self.place.result.chmod(0o600)
        os.chown(self.place.result, NOBODY, NOBODY)
        self.succeeds(*BUNDLE, "out/result")
        self.assertEqual((self.mode(), self.owner()), (0o600, (NOBODY, NOBODY)))

    def test_who_may_not_give_files_away_keeps_them(self) -> None:
        need_root(self)
        self.place.result.write_bytes(b"old")
        self.place.result.chmod(0o640)
        self.succeeds(*BUNDLE, "out/result", **AsNobody(self).options)
        self.assertEqual((self.mode(), self.owner()), (0o640, (NOBODY, NOBODY)))
        self.assert_result(self.complete)

    def test_the_group_stays_where_the_user_is_in_it(self) -> None:
        need_root(self)
        self.place.result.write_bytes(b"old")
        os.chown(self.place.result, 0, 12345)
        self.succeeds(*BUNDLE, "out/result", **{**AsNobody(self).options, "extra_groups": [12345]})
        self.assertEqual(self.owner(), (NOBODY, 12345))

    def test_a_folder_that_may_not_be_written_is_an_error(self) -> None:
        user = AsNobody(self)
        self.place.result.write_bytes(b"old")
        self.place.out.chmod(0o555)
        try:
            self.fails(*BUNDLE, "out/result", saying="cannot write beside 'out/result': Permission denied", **user.options)
            self.fails(*BUNDLE, "out/new", saying="cannot write beside 'out/new': Permission denied", **user.options)
            self.assert_result(b"old")
        finally:
            self.place.out.chmod(0o755)

    def test_a_umask_that_leaves_nothing_leaves_no_folder_behind(self) -> None:
        self.fails(*CASES, saying="'out/result': Permission denied", umask=0o777, **AsNobody(self).options)
        self.assert_result(None)


if __name__ == "__main__":
    main()
