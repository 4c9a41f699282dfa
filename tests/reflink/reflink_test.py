# SPDX-License-Identifier: BSD-3-Clause
"""Shows that programs are shared with their bundles, not copied, if the file system can do that.

    ETSTREAM=COMMAND reflink_test.py xfs|btrfs|ext4

mounts such a file system from a file, which needs root, and says loudly if that can't be done. On ext4, which can't
share, everything must be copied, and the same checks of content pass.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MIB = 1 << 20
DISK = 640 * MIB
LARGE = 10 << 30
TAIL = 1234  # the bytes of the program beyond whole blocks

SYSTEM = sys.argv.pop() if len(sys.argv) > 1 else ""
MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"],
    "btrfs": ["mkfs.btrfs", "-q"],
    "ext4": ["mkfs.ext4", "-q"],
}
SHARES = SYSTEM != "ext4"


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def etstream(*arguments: str | Path) -> str:
    return run(os.environ["ETSTREAM"], *arguments)


def mounted(folder: Path) -> bool:
    """Returns whether the file system could be mounted at `folder`/disk."""
    image, disk = folder / "image", folder / "disk"
    disk.mkdir()
    image.touch()
    os.truncate(image, DISK)
    try:
        run(*MAKE[SYSTEM], image)
        run("mount", "-o", "loop", image, disk)
    except (OSError, RuntimeError) as error:
        print(f"***** SKIPPED: there is no {SYSTEM} to be had here: {error} *****", flush=True)
        return False
    return True


class Reflink(unittest.TestCase):
    disk: Path

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=self.disk))
        self.addCleanup(shutil.rmtree, self.folder)
        for file in ("cases.json", "image_0.npy", "image_1.npy", "scores_0.npy", "scores_1.npy"):
            shutil.copy(EXAMPLES / file, self.folder)
        self.model = self.folder / "model.pte"
        shutil.copy(EXAMPLES / "model.pte", self.model)

    def grow_model(self, size: int, *, sparse: bool = False) -> None:
        """Appends random bytes to the program, which the checks of a program only warn of."""
        with self.model.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            while not sparse and file.tell() < size:
                file.write(os.urandom(min(MIB, size - file.tell())))
            file.truncate(size)
            file.flush()
            os.fsync(file.fileno())

    def bundle(self, name: str, *options: str) -> Path:
        out = self.folder / name
        etstream("bundle", self.model, "--cases", self.folder / "cases.json", "-o", out, *options)
        return out

    def shared(self, path: Path) -> int:
        """Returns how many bytes of the file another file has as well."""
        block, blocks = 4096, 0
        for line in run("filefrag", "-v", "-b4096", path).splitlines():
            parts = line.replace(":", " ").split()
            if parts and parts[0].isdigit() and "shared" in line:
                blocks += int(parts[5])
        return block * blocks

    def assert_shared(self, path: Path, size: int) -> None:
        """Checks that all whole blocks of a program of this size are shared, or nothing if nothing can be."""
        self.assertEqual(self.shared(path), size // 4096 * 4096 if SHARES else 0)

    def test_a_segmented_bundle_shares_its_program_and_is_the_same_as_a_copy(self) -> None:
        size = 8 * MIB + TAIL
        self.grow_model(size)
        for options in ([], ["--no-hash"], ["--no-hash", "--no-sync"]):
            with self.subTest(options=options):
                bundle = self.bundle("model.bpte", "--to", "segmented", *options)
                etstream("verify", bundle)
                self.assert_shared(bundle, size)
                with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
                    copy = Path(elsewhere) / "copy.bpte"
                    etstream(
                        "bundle", self.model, "--cases", self.folder / "cases.json", "-o", copy,
                        "--to", "segmented", *options,
                    )  # fmt: skip
                    self.assertEqual(bundle.read_bytes(), copy.read_bytes())

    def test_what_is_written_to_the_source_later_does_not_reach_the_bundle(self) -> None:
        size = 4 * MIB + TAIL
        self.grow_model(size)
        bundle = self.bundle("model.bpte", "--to", "segmented")
        before = bundle.read_bytes()
        with self.model.open("r+b") as file:
            for place in (0, size // 2, size - 1):
                file.seek(place)
                file.write(b"\xff")
            os.fsync(file.fileno())
        self.assertEqual(bundle.read_bytes(), before)
        etstream("verify", bundle)

    def test_an_extracted_program_shares_its_bundle(self) -> None:
        size = 4 * MIB + TAIL
        self.grow_model(size)
        bundle = self.bundle("model.bpte", "--to", "segmented")
        original = self.model.read_bytes()
        self.model.unlink()
        out = self.folder / "out.pte"
        etstream("extract", bundle, "program", "-o", out)
        self.assertEqual(out.read_bytes(), original)
        self.assert_shared(out, size)

    def test_a_bp08_bundle_shares_a_program_that_is_aligned_to_blocks(self) -> None:
        size = 4 * MIB + TAIL
        self.grow_model(size)
        self.assert_shared(self.bundle("aligned.bpte", "--program-alignment", "4096"), size)
        # In ExecuTorch's own layout the program lies between blocks, and is copied.
        self.assertEqual(self.shared(self.bundle("plain.bpte")), 0)

    def test_ten_gibibytes_take_no_room(self) -> None:
        if not SHARES:
            return
        self.grow_model(LARGE + TAIL, sparse=True)
        marks = {place: os.urandom(8) for place in (*range(MIB, LARGE, LARGE // 64), LARGE + TAIL - 8)}
        with self.model.open("r+b") as file:
            for place, mark in marks.items():
                file.seek(place)
                file.write(mark)
        bundle = self.bundle("model.bpte", "--to", "segmented", "--no-hash", "--no-sync")
        self.assertGreater(bundle.stat().st_size, LARGE)
        etstream("extract", bundle, "program", "-o", self.folder / "out.pte")
        with (self.folder / "out.pte").open("rb") as file:
            for place, mark in marks.items():
                file.seek(place)
                self.assertEqual(file.read(8), mark)
            self.assertEqual(file.read(), b"")

    def test_what_is_shared_needs_no_room_on_a_disk_that_is_nearly_full(self) -> None:
        size = DISK // 2 + TAIL
        self.grow_model(size)
        command = ("bundle", self.model, "--cases", self.folder / "cases.json", "-o", self.folder / "out.bpte")
        if SHARES:
            etstream(*command, "--to", "segmented")
            self.assert_shared(self.folder / "out.bpte", size)
        with self.assertRaisesRegex(RuntimeError, "cannot reserve space for .*: No space left on device"):
            etstream(*command)
        self.assertEqual((self.folder / "out.bpte").exists(), SHARES)


def main() -> int:
    scratch = Path(tempfile.mkdtemp())
    try:
        if not mounted(scratch):
            return 0
        try:
            Reflink.disk = scratch / "disk"
            return 0 if unittest.main(exit=False).result.wasSuccessful() else 1
        finally:
            run("umount", scratch / "disk")
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
