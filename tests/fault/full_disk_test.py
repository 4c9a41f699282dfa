# SPDX-License-Identifier: BSD-3-Clause
"""Shows that the destination stays as it was if there is no room, and that the command says so."""

import os
import resource
import shutil
import subprocess

from command_test_case import BUNDLE, CommandTestCase, main, skip_loudly
from workplace import MIB, etstream

# A script that runs in a mount namespace of its own, so that the disk goes when it ends. It shows the exit code, the
# files that are there, and the content of the old file.
SCRIPT = """
set -e
{mount}
echo old >out/result
set +e
"$@"
echo "exit code $?"
ls -A out
cat out/result
"""


class FullDisk(CommandTestCase):
    def on_disk(self, mount: str, command: list[str] | None = None) -> subprocess.CompletedProcess:
        as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        script = ["sh", "-c", SCRIPT.format(mount=mount), "sh", etstream(), *(command or [*BUNDLE, "out/result"])]
        command = ["unshare", "--mount", *as_root, *script]
        return subprocess.run(command, cwd=self.place.top, capture_output=True, text=True, timeout=60, check=False)

    def check(self, done: subprocess.CompletedProcess, message: str) -> None:
        if "exit code" not in done.stdout:
            skip_loudly(self, f"{self.id()}: no disk could be mounted here: {done.stderr.strip()}")
        self.assertEqual(done.stdout.replace("lost+found\n", ""), "exit code 1\nresult\nold\n")
        self.assertIn(message, done.stderr)

    def test_a_disk_without_room_is_noticed_before_anything_is_written(self) -> None:
        done = self.on_disk("mount -t tmpfs -o size=1m none out")
        self.check(done, "cannot reserve space for 'out/result': No space left on device (2.5 MiB; 1020.0 KiB are free)")

    def on_ext2(self, size: str, then: str = "true") -> subprocess.CompletedProcess:
        """Runs the command on a file system that can't reserve space."""
        if not shutil.which("mkfs.ext2"):
            skip_loudly(self, f"{self.id()}: there is no mkfs.ext2")
        make = f"truncate -s {size} disk; mkfs.ext2 -q -b 1024 -m 0 disk >&2; mount -o loop -t ext2 disk out"
        return self.on_disk(f"{make}\n{then}")

    def test_a_disk_that_can_not_reserve_is_asked_what_is_free(self) -> None:
        done = self.on_ext2("2M")
        self.check(done, "cannot reserve space for 'out/result': No space left on device (2.5 MiB; 1.9 MiB are free)")

    def test_a_destination_is_untouched_when_the_disk_fills(self) -> None:
        self.succeeds(*BUNDLE, "result")
        needed = -(-(self.place.top / "result").stat().st_size // 1024)
        # This leaves room for the data, but not for the blocks that say where it lies.
        fill = f"""
available() {{ df --output=avail -k out | tail -n 1; }}
head -c "$(($(available) - {needed} - 64))k" /dev/zero >out/lost+found/most
while [ "$(available)" -gt {needed + 4} ]; do head -c 1k /dev/zero >"out/lost+found/$((i += 1))"; done
"""
        self.check(self.on_ext2("4M", fill), "cannot write 'out/result': No space left on device")

    def test_of_several_outputs_none_appears_when_the_disk_fills_with_the_last(self) -> None:
        share = ["share", "in/model.pte", "in/aligned.pte", "--weights-to", "out/result", "--fat", "out/model.fat"]
        # There is room for the old file and for the weights, in pages.
        done = self.on_disk("mount -t tmpfs -o size=28k none out", share)
        self.check(done, "cannot reserve space for 'out/model.fat': No space left on device")

    def test_a_limit_to_the_size_of_files_is_an_error_and_no_sudden_death(self) -> None:
        self.place.result.write_bytes(b"old")

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

        self.fails(*BUNDLE, "out/result", saying="'out/result': File too large", preexec_fn=limit)
        self.assert_result(b"old")
        self.fails("extract", "in/large_cases.bpte", "--cases", "out/folder", saying="File too large", preexec_fn=limit)
        self.assert_result(b"old")

    def test_a_full_device_is_an_error_and_stays_one(self) -> None:
        before = os.stat("/dev/full")
        with open("/dev/full", "wb") as full:
            reason = "No space left on device"
            self.fails(*BUNDLE, "/dev/full", saying=f"cannot write '/dev/full': {reason}")
            self.fails(*BUNDLE, "-", saying=f"cannot write 'standard output': {reason}", stdout=full)
            self.fails(*BUNDLE, "/dev/stdout", saying=reason, stdout=full)
            self.fails("verify", "in/model.pte", saying=f"cannot write standard output: {reason}", stdout=full)
        self.assertEqual(os.stat("/dev/full").st_ino, before.st_ino)

    def test_a_report_that_nobody_gets_is_a_warning_as_the_result_is_complete(self) -> None:
        with open("/dev/full", "wb") as full:
            code, errors = self.run_command(*BUNDLE, "out/result", stdout=full)
        self.assertEqual((code, errors), (0, "warning: cannot write standard output: No space left on device\n"))
        self.assert_result(self.complete)


if __name__ == "__main__":
    main()
