# SPDX-License-Identifier: BSD-3-Clause
"""Runs the command on mounts that lack calls, as object stores, FUSE and network file systems do. If it can safely do
without a call, it does so with a warning; otherwise an error tells another way. Each call has each error that says
so."""

import errno
import os
import subprocess

from command_test_case import BUNDLE, CommandTestCase, main, need_root, skip_loudly
from scenarios import OLD_CONTENT, Scenario
from sweep import trace
from verdict import Run

FILE = [*BUNDLE, "out/result"]
FOLDER = ["extract", "in/bundle.bpte", "--cases", "out/result"]
ABSENT = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
ELSEWHERE = "write it elsewhere and copy it\n"
UNDO = "a power failure may undo what was written; --no-sync does not ask for it\n"
ANOTHER_WAY = "; write to standard output (-o - >FILE), or elsewhere and copy it\n"


class Mounts(CommandTestCase):
    def run_without(self, call: str, error: int, command: list[str], mode: int | None = None, mask: int = 0o022) -> Run:
        """Runs the command with all calls of this name failing; `mode` is that of an old file or folder."""
        self.place.renew()
        if mode is not None:
            if command is FOLDER:
                self.place.result.mkdir()
            else:
                self.place.result.write_bytes(OLD_CONTENT)
            self.place.result.chmod(mode)
        before = os.umask(mask)
        try:
            return trace(Scenario(call, command), self.place, "lacks", call, error)
        finally:
            os.umask(before)

    def assert_complete(self, run: Run, warning: str) -> None:
        self.assertEqual(run.code, 0, run.stderr)
        if self.place.result.is_dir():
            self.assertIn("cases.json", os.listdir(self.place.result))
            self.assertEqual(self.place.others(), [])
        else:
            self.assert_result(self.complete)
        self.assertEqual(run.stderr, warning)

    def mode(self) -> int:
        return self.place.result.stat().st_mode & 0o7777

    def test_where_nothing_can_be_synced_a_file_is_written_and_a_warning_says_so(self) -> None:
        for error in (*ABSENT, errno.EROFS):
            reason = os.strerror(error)
            for old in (None, 0o644):
                run = self.run_without("fsync", error, FILE, old)
                self.assert_complete(run, f"warning: cannot sync 'out/result': {reason}: {UNDO}")
            run = self.run_without("syncfs", error, FOLDER)
            self.assert_complete(run, f"warning: cannot sync 'out/result': {reason}: {UNDO}")
            self.assert_complete(self.run_without("fsync", error, [*FILE, "--no-sync"]), "")

    def test_where_a_folder_can_not_be_synced_a_warning_says_so(self) -> None:
        for error in (*ABSENT, errno.EROFS):
            self.place.renew()
            calls = trace(Scenario("file", FILE), self.place, "count").calls
            last = [call.index for call in calls if call.name == "fsync"][-1]
            self.place.renew()
            run = trace(Scenario("file", FILE), self.place, "fail", last, error)
            self.assert_complete(run, f"warning: cannot sync 'out/': {os.strerror(error)}: {UNDO}")

    def test_a_disk_that_fails_is_no_mount_without_sync(self) -> None:
        run = self.run_without("fsync", errno.EIO, FILE, 0o644)
        self.assertEqual(run.code, 1)
        self.assertIn("cannot sync 'out/result': Input/output error\n", run.stderr)
        self.assert_result(OLD_CONTENT)

    def test_where_permissions_stay_as_they_are_a_file_is_never_open_to_more_people(self) -> None:
        for error in (*ABSENT, errno.EPERM):
            # The umask takes away a permission that only chmod could give back.
            run = self.run_without("fchmod", error, FILE, 0o664, mask=0o027)
            reason = f"cannot set the permissions of what replaces 'out/result': {os.strerror(error)}"
            self.assert_complete(run, f"warning: {reason}: it has 0640 instead of 0664\n")
            self.assertEqual(self.mode(), 0o640)
            run = self.run_without("fchmod", error, FOLDER, 0o1777)
            self.assert_complete(run, f"warning: {reason}: it has 0755 instead of 1777\n")
            # These need no chmod.
            for mode in (0o600, 0o640, 0o644):
                self.assert_complete(self.run_without("fchmod", error, FILE, mode), "")
                self.assertEqual(self.mode(), mode)
            self.assert_complete(self.run_without("fchmod", error, FOLDER, 0o700), "")
            self.assertEqual(self.mode(), 0o700)

    def test_where_owners_can_not_be_changed_the_writer_is_the_owner(self) -> None:
        need_root(self)
        for error in (*ABSENT, errno.EPERM):
            self.place.renew()
            self.place.result.write_bytes(OLD_CONTENT)
            os.chown(self.place.result, 12345, 12345)
            run = trace(Scenario("file", FILE), self.place, "lacks", "fchown", error)
            self.assert_complete(run, "")
            self.assertEqual(self.place.result.stat().st_uid, 0)

    def test_without_rename_the_destination_is_as_it_was_and_the_error_tells_another_way(self) -> None:
        for error in (*ABSENT, errno.EPERM, errno.EXDEV, errno.EBUSY):
            cannot = f"cannot replace 'out/result': {os.strerror(error)}: complete files can't be put there at once"
            for old in (None, 0o644):
                run = self.run_without("rename", error, FILE, old)
                self.assertEqual(run.code, 1)
                self.assertEqual(run.stderr, f"etstream bundle: {cannot}{ANOTHER_WAY}")
                self.assert_result(None if old is None else OLD_CONTENT)
            run = self.run_without("rename", error, FOLDER)
            self.assertEqual(run.code, 1)
            self.assertIn("etstream extract: cannot replace 'out/result/", run.stderr)
            self.assertIn(
                f"': {os.strerror(error)}: complete files can't be put there at once; {ELSEWHERE}", run.stderr
            )
            self.assert_result(None)

    def test_the_other_way_works_without_any_of_these_calls(self) -> None:
        self.place.result.write_bytes(OLD_CONTENT)
        for call in ("rename", "fsync", "fchmod", "fchown", "flock", "fallocate", "sync_file_range", "unlink"):
            command = ["/bin/sh", "-c", 'exec "$@" >out/result', "sh", os.environ["ETSTREAM"], *BUNDLE, "-"]
            run = trace(Scenario(call, [], program=command), self.place, "lacks", call, errno.ENOSYS)
            self.assert_complete(run, "")

    def test_of_several_outputs_none_appears_without_rename(self) -> None:
        command = ["share", "in/model.pte", "in/aligned.pte", "--weights-to", "out/result", "--fat", "out/model.fat"]
        for old in (None, 0o644):
            run = self.run_without("rename", errno.ENOSYS, command, old)
            self.assertEqual(run.code, 1)
            self.assertIn("complete files can't be put there at once", run.stderr)
            self.assert_result(None if old is None else OLD_CONTENT)

    def test_what_makes_writing_faster_or_safer_alone_is_done_without(self) -> None:
        for call in ("flock", "fallocate", "sync_file_range", "fadvise"):
            for error in (errno.ENOSYS, errno.EOPNOTSUPP):
                self.assert_complete(self.run_without(call, error, FILE, 0o644), "")

    def test_a_file_that_can_not_be_made_has_another_way_where_the_mount_is_why(self) -> None:
        for error in (*ABSENT, errno.EPERM):
            run = self.run_without("open for writing", error, FILE, 0o644)
            self.assertEqual(run.code, 1)
            cannot = f"etstream bundle: cannot write beside 'out/result': {os.strerror(error)}"
            self.assertEqual(run.stderr, cannot + ANOTHER_WAY)
            self.assert_result(OLD_CONTENT)
            run = self.run_without("mkdir", error, FOLDER)
            cannot = f"etstream extract: cannot write beside 'out/result': {os.strerror(error)}"
            self.assertEqual(run.stderr, f"{cannot}; {ELSEWHERE}")
            self.assert_result(None)

    def test_a_file_that_is_mounted_by_itself_is_written_the_other_way(self) -> None:
        need_root(self)
        self.place.renew()
        (self.place.out / "host").write_bytes(OLD_CONTENT)
        self.place.result.touch()
        script = 'mount --bind out/host out/result || exit 77; "$@" out/result; echo $?; exec "$@" - >out/result'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", os.environ["ETSTREAM"], *BUNDLE]
        done = subprocess.run(command, cwd=self.place.top, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77:
            skip_loudly(self, f"{self.id()}: nothing can be mounted here")
        self.assertEqual(done.stdout.splitlines()[0], "1")
        self.assertIn(f"Device or resource busy: complete files can't be put there at once{ANOTHER_WAY}", done.stderr)
        self.assertTrue((self.place.out / "host").read_bytes() == self.complete)
        self.assertEqual(self.place.others(), ["host"])


if __name__ == "__main__":
    main()
