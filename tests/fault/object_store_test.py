# SPDX-License-Identifier: BSD-3-Clause
"""Tests a real mount of FUSE, as an object store's is: it does not tell its room, and lacks what object stores lack."""

import os
import subprocess
import time
from pathlib import Path

from command_test_case import BUNDLE, CommandTestCase, main, need_root, skip_loudly

STORE = Path(__file__).with_name("object_store.py")
PYTHON = "/usr/bin/python3"  # this one has Debian's packages
ELSEWHERE = "complete files can't be put there at once; write"


class ObjectStore(CommandTestCase):
    def mount(self, *lacks: str) -> Path:
        """Mounts a store without these calls at out/mount until the test ends."""
        need_root(self)
        folder, mount = self.place.out / "folder", self.place.out / "mount"
        folder.mkdir()
        mount.mkdir()
        command = [PYTHON, "-B", STORE, folder, mount, *lacks]
        store = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.unmount, store, mount)
        while not os.path.ismount(mount):
            if store.poll() is not None:
                skip_loudly(self, f"{self.id()}: FUSE can't be mounted here: {store.stderr.read()}")
            time.sleep(0.05)
        return mount

    @staticmethod
    def unmount(store: subprocess.Popen, mount: Path) -> None:
        if store.poll() is None:
            subprocess.run(["umount", mount], check=True)
            store.wait(timeout=60)
        store.stderr.close()

    def writes_and_replaces(self, mount: Path) -> None:
        for _ in ("new", "replaced"):
            self.succeeds(*BUNDLE, mount / "result")
            self.assertTrue((mount / "result").read_bytes() == self.complete)
        self.succeeds("extract", "in/bundle.bpte", "--cases", mount / "cases")
        self.assertIn("cases.json", os.listdir(mount / "cases"))
        self.assertEqual(sorted(os.listdir(mount)), ["cases", "result"])

    def test_a_store_that_does_not_tell_its_room_is_written_to(self) -> None:
        self.writes_and_replaces(self.mount())

    def test_a_store_without_fsync_and_chmod_is_written_to(self) -> None:
        self.writes_and_replaces(self.mount("fsync", "chmod"))

    def test_without_rename_nothing_is_left_and_the_other_way_works(self) -> None:
        mount = self.mount("rename")
        self.fails(*BUNDLE, mount / "result", saying=ELSEWHERE)
        self.fails("extract", "in/bundle.bpte", "--cases", mount / "cases", saying=ELSEWHERE)
        self.assertEqual(os.listdir(mount), [])
        with (mount / "result").open("wb") as result:
            self.succeeds(*BUNDLE, "-", stdout=result)
        self.assertTrue((mount / "result").read_bytes() == self.complete)


if __name__ == "__main__":
    main()
