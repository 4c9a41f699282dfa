# SPDX-License-Identifier: BSD-3-Clause
"""Shows that a disk that fills gives the program ENOMEM and a message, and never a signal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

# The script runs in a mount namespace of its own, so that the disk goes when it ends.
SCRIPT = """
set -e
truncate -s 64M disk
mkfs.ext4 -q disk >&2
mkdir spill
mount -o loop disk spill
set +e
"$@"
echo "exit code $?"
ls spill
"""
PYTHON = """
blocks = []
try:
    while len(blocks) < 100:
        blocks.append(bytearray(b"x") * (4 << 20))
except MemoryError:
    print("MemoryError")
assert all(block[-1] == ord("x") for block in blocks)
count = len(blocks)
del blocks
print(5 < count < 20, len(bytearray(20 << 20)))
"""


class FullDisk(unittest.TestCase):
    def on_small_disk(self, *command: str) -> subprocess.CompletedProcess[str]:
        if not shutil.which("mkfs.ext4"):
            self.skip("there is no mkfs.ext4")
        as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        whole = [os.environ["ETSTREAM"], "run", "--spill", "spill", "--", *command]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["unshare", "--mount", *as_root, "sh", "-c", SCRIPT, "sh", *whole],
                cwd=folder, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
        if "exit code" not in done.stdout:
            self.skip(f"no disk could be mounted here: {done.stderr.strip()}")
        return done

    def skip(self, reason: str) -> None:
        print(f"*** SKIPPED: {self.id()}: {reason}", file=sys.stderr)
        self.skipTest(reason)

    def test_a_program_that_asks_for_too_much_is_told(self) -> None:
        done = self.on_small_disk(os.environ["ALLOCATIONS"], "fill", str(1 << 30))
        self.assertRegex(done.stdout, r"^room for [2345]\d MiB\nexit code 0\nlost\+found\n$", done.stderr)
        self.assertIn("etstream: heap: no room for a block of 4194304 bytes in ", done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(done.stderr.count("no room"), 1)

    def test_blocks_that_come_and_go_never_cost_a_signal(self) -> None:
        """Writes to pages that may need room for their neighbours', which may have been freed."""
        done = self.on_small_disk(os.environ["ALLOCATIONS"], "churn", "1500")
        self.assertEqual(done.stdout, "some room and sometimes no more\nexit code 0\nlost+found\n", done.stderr)

    def test_python_raises_and_goes_on(self) -> None:
        done = self.on_small_disk(sys.executable, "-c", PYTHON)
        self.assertEqual(done.stdout, "MemoryError\nTrue 20971520\nexit code 0\nlost+found\n", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
