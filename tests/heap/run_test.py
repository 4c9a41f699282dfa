# SPDX-License-Identifier: BSD-3-Clause
"""Shows that programs do under `etstream run` what they do without it, and have their large blocks in a file."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MIB = 1 << 20
ETSTREAM = os.environ["ETSTREAM"]
ALLOCATIONS = os.environ["ALLOCATIONS"]
# A function by which a script reads the memory of its own process, in MiB.
MEMORY = """
def memory(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith(name + ":"))
"""


class EtstreamRun(unittest.TestCase):
    spill: str

    def setUp(self) -> None:
        # The folder is not in /tmp, which is in memory on many machines.
        self.spill = self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp"))

    def tearDown(self) -> None:
        self.assertEqual(os.listdir(self.spill), [])

    def run_with(self, options: list[str], *command: str, **more: object) -> subprocess.CompletedProcess[str]:
        whole = [ETSTREAM, "run", "--spill", self.spill, *options, "--", *command]
        return subprocess.run(whole, capture_output=True, text=True, timeout=280, check=False, **more)

    def python(self, script: str, *options: str, **more: object) -> str:
        done = self.run_with([*options], sys.executable, "-c", MEMORY + script, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def allocations(self, *arguments: str) -> None:
        done = self.run_with(["--from", "16K"], ALLOCATIONS, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_large_blocks_take_no_memory_of_the_process(self) -> None:
        script = "data = bytearray(b'x') * (200 << 20); print(memory('RssAnon'), data[-1])"
        with_heap, last = map(int, self.python(script).split())
        self.assertEqual(last, ord("x"))
        self.assertLess(with_heap, 60)
        # If the heap serves only larger blocks, all of it is memory of the process.
        self.assertGreater(int(self.python(script, "--from", "300M").split()[0]), 200)

    def test_small_objects_of_python_take_none_either(self) -> None:
        # The first 500,000 objects are dropped from everywhere among the others.
        script = """
data = [(number, str(number)) for number in range(1_000_000)]
print(memory("RssAnon"))
del data[::2]
assert all(text == str(number) and number % 2 for number, text in data)
data += [str(number) for number in range(500_000)]
assert data[-1] == "499999"
"""
        self.assertLess(int(self.python(script)), 30)
        self.assertGreater(int(self.python(script, "--from", "2M")), 100)

    def test_pages_over_the_limit_are_let_go_of_and_come_back(self) -> None:
        script = """
import time
blocks = [bytearray(bytes([number])) * (40 << 20) for number in range(10)]
time.sleep(1)
print(memory("RssFile"))
assert all(block[17 << 20] == number for number, block in enumerate(blocks))
"""
        self.assertGreater(int(self.python(script)), 400)
        self.assertLess(int(self.python(script, "--limit", "100M")), 160)

    def test_threads_that_free_each_others_blocks(self) -> None:
        self.allocations("threads", "300")

    def test_forks_whose_parents_and_children_go_on(self) -> None:
        self.allocations("forks", "60")

    def test_a_hundred_thousand_blocks_at_a_time(self) -> None:
        self.allocations("many")

    def test_a_block_of_8_gib(self) -> None:
        size = 8 << 30
        free = shutil.disk_usage(self.spill).free
        if free < size + (1 << 30):
            size = free // 2
            print(f"*** SCALED DOWN: {free >> 20} MiB are free on the disk: a block of {size >> 20} MiB", file=sys.stderr)
        self.allocations("large", str(size))

    def test_the_functions_beside_malloc_give_what_they_can_and_refuse_the_rest(self) -> None:
        script = """
import ctypes
from errno import EINVAL, ENOMEM
library = ctypes.CDLL(None, use_errno=True)
def call(name, *numbers):
    function = getattr(library, name)
    function.restype = ctypes.c_size_t
    ctypes.set_errno(0)
    return function(*map(ctypes.c_size_t, numbers)), ctypes.get_errno()
def aligned(alignment, size):
    return library.posix_memalign(ctypes.byref(ctypes.c_size_t()), ctypes.c_size_t(alignment), ctypes.c_size_t(size))
large = 8 << 20
for numbers in (("calloc", 1 << 63, 2), ("reallocarray", 0, 1 << 63, 2), ("pvalloc", 2**64 - 1)):
    assert call(*numbers) == (0, ENOMEM), numbers
block, _ = call("malloc", large)
ctypes.memset(block, 7, large)
assert call("realloc", block, 1 << 62) == (0, ENOMEM)
assert ctypes.string_at(block + large - 1, 1) == b"\\7"
block, _ = call("realloc", block, 1)
assert ctypes.string_at(block, 1) == b"\\7"
assert call("realloc", call("malloc", large)[0], 0) == (0, 0)
assert call("malloc_usable_size", 0) == (0, 0)
assert [aligned(each, large) for each in (0, 4, 24, 40, 8, 64)] == [EINVAL] * 4 + [0] * 2
assert aligned(64, 1 << 62) == ENOMEM
for name, numbers, alignment, size in (
    ("memalign", (64, large), 64, large),
    ("valloc", (large,), 4096, large),
    ("pvalloc", (large,), 4096, large),
    ("pvalloc", (1,), 4096, 4096),
):
    block, _ = call(name, *numbers)
    assert block % alignment == 0 and call("malloc_usable_size", block)[0] >= size, (name, size)
"""
        self.assertEqual(self.python(script), "")

    def test_madvise_does_what_it_does_without_the_heap(self) -> None:
        script = """
import ctypes, errno, os
from mmap import MADV_DONTNEED, MADV_FREE, MADV_REMOVE
library = ctypes.CDLL(None, use_errno=True)
library.aligned_alloc.restype = ctypes.c_void_p
size = 64 << 20
block = library.aligned_alloc(ctypes.c_size_t(4096), ctypes.c_size_t(size))
def advise(at, length, advice):
    done = library.madvise(ctypes.c_void_p(block + at), ctypes.c_size_t(length), advice)
    return done and ctypes.get_errno()
def fill():
    ctypes.memset(block, 7, size)
for _ in range(2):
    for advice in (MADV_DONTNEED, MADV_FREE):
        fill()
        assert advise(4096, size - 8192, advice) == 0
        assert ctypes.string_at(block, size) == bytes([7]) * 4096 + bytes(size - 8192) + bytes([7]) * 4096
    fill()
    for at, length, advice in ((1, 4096, MADV_DONTNEED), (0, size, MADV_REMOVE)):
        assert advise(at, length, advice) == errno.EINVAL
    assert ctypes.string_at(block, size) == bytes([7]) * size
    child = os.fork()
    if child == 0:
        advise(0, size, MADV_DONTNEED)
        os._exit(ctypes.string_at(block, size) != bytes(size))
    assert os.waitpid(child, 0)[1] == 0
    assert ctypes.string_at(block, size) == bytes([7]) * size
"""
        self.assertEqual(self.python(script), "")

    def test_workers_that_are_forked_have_copies_of_their_own(self) -> None:
        script = """
import multiprocessing
data = bytearray(8 << 20)
def work(number):
    data[0] += number
    more = bytearray([number]) * (4 << 20)
    return data[0], more[-1]
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]), data[0])
    data[0] = 9
    del data
    data = bytearray(8 << 20)
    print(data[0])
"""
        path = Path(self.spill) / "workers.py"
        path.write_text(script)
        done = self.run_with([], sys.executable, str(path))
        path.unlink()
        self.assertEqual(done.stdout, "[(1, 1), (3, 2), (6, 3)] 0\n0\n", done.stderr)

    def test_children_and_parents_have_blocks_of_their_own_however_many_these_are(self) -> None:
        """With a mapping for each block, the kernel's limit would be reached, 65,530 by default."""
        script = """
import multiprocessing
blocks = None
def write(_):
    for block in blocks or ():
        block[0] += 1
    return sum(block[0] for block in blocks or ())
if __name__ == "__main__":
    blocks = [bytearray(16383) for _ in range(80_000)]
    del blocks[::2]
    for method in ("fork", "forkserver", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(write, [1, 2]))
    print(sum(block[0] for block in blocks), len([bytearray(16383) for _ in range(1000)]))
    with open("/proc/self/maps") as maps:
        print(len(list(maps)) < 1000)
    del blocks[::2]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(write, [1]))
    del blocks[:]
    with open("/proc/self/maps") as maps:
        print(len(list(maps)) < 1000)
"""
        path = Path(self.spill) / "workers.py"
        path.write_text(script)
        done = self.run_with([], sys.executable, str(path))
        path.unlink()
        expected = "[40000, 80000]\n[0, 0]\n[0, 0]\n0 1000\nTrue\n[20000]\nTrue\n"
        self.assertEqual((done.stdout, done.stderr), (expected, ""))

    def test_a_child_that_becomes_another_program(self) -> None:
        script = """
import subprocess, sys
data = bytearray(8 << 20)
code = "data = bytearray(4 << 20); print(len(data), sum(data[:10]))"
for options in ({}, {"preexec_fn": lambda: None}, {"close_fds": False}):
    subprocess.run([sys.executable, "-c", code], check=True, **options)
data[:] = b"y" * len(data)
print(data[-1])
"""
        self.assertEqual(self.python(script), "4194304 0\n" * 3 + "121\n")

    def test_a_program_that_closes_all_it_did_not_open(self) -> None:
        script = """
import os
first = bytearray(b"a") * (40 << 20)
os.closerange(3, 4096)
second = bytearray(b"b") * (40 << 20)
del first
third = bytearray(b"c") * (40 << 20)
print(second[-1], third[-1])
"""
        self.assertEqual(self.python(script), "98 99\n")

    def test_a_child_that_can_have_no_copies_of_the_blocks_ends_before_it_runs_anything(self) -> None:
        for change, reason in (
            ("os.closerange(3, 4096)", "their file was closed"),
            ("resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 20))", "Cannot allocate memory"),
        ):
            script = f"""
import os, resource
data = bytearray(b"a") * (40 << 20)
{change}
child = os.fork()
if child == 0:
    data[0] = 0
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), data[0])
"""
            done = self.run_with([], sys.executable, "-c", script)
            self.assertEqual((done.returncode, done.stdout), (0, "125 97\n"), done.stderr)
            self.assertRegex(done.stderr, rf"^etstream: heap: process \d+ ends as it begins: blocks of .*: {reason}\n$")

    def forked_after(self, change: str) -> None:
        """Does `change` in a process that has a block; the process and its child then have no way to the folder."""
        script = f"""
import os, resource, sys
folder = sys.argv[1]
first = bytearray(b"a") * (40 << 20)
{change}
child = os.fork()
second = bytearray(b"b") * (40 << 20)
second += bytes(40 << 20)
assert first == bytearray(b"a") * (40 << 20) and second[1] == ord("b") and second[-1] == 0
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
        spill = Path(self.spill) / "spill"
        spill.mkdir()
        command = [ETSTREAM, "run", "--spill", str(spill), "--", sys.executable, "-c", script, str(spill)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280)
        if spill.exists():
            spill.rmdir()
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), done.stderr)
        self.assertRegex(done.stderr, f"stay in memory, as no file can be made in {spill}: ")
        said = done.stderr.splitlines()
        self.assertEqual(len(said), len(set(said)), done.stderr)  # each process says it once

    def test_a_fork_that_finds_no_folder_goes_on_in_memory(self) -> None:
        self.forked_after("os.rmdir(folder)")

    def test_a_fork_with_too_many_files_goes_on_in_memory(self) -> None:
        self.forked_after("resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))")

    def test_a_fork_after_chroot_goes_on_in_memory(self) -> None:
        if os.geteuid() != 0:
            print("*** SKIPPED: only root may chroot: forks after one are not tested", file=sys.stderr)
            self.skipTest("only root may chroot")
        self.forked_after("os.chroot('/proc/self/fd')")

    def test_the_exit_code_is_the_commands(self) -> None:
        for options in ([], ["--report"]):
            self.assertEqual(self.run_with(options, "sh", "-c", "exit 7").returncode, 7)
            self.assertEqual(self.run_with(options, "sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)
            self.assertEqual(self.run_with(options, "/no/such/program").returncode, 127)
            self.assertEqual(self.run_with(options, self.spill).returncode, 126)

    def test_a_command_ends_where_the_ends_of_children_are_ignored(self) -> None:
        ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)}
        self.assertEqual(self.run_with(["--report"], "true", **ignoring).returncode, 0)

    def test_signals_are_passed_on(self) -> None:
        script = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); print(1, flush=True); signal.pause()"
        for options in ([], ["--report"]):
            command = [ETSTREAM, "run", "--spill", self.spill, *options, "--", sys.executable, "-c", script]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                assert process.stdout is not None
                process.stdout.readline()
                process.terminate()
                self.assertEqual(process.wait(timeout=60), 5)

    def spilled(self) -> int:
        """Returns the bytes on the disk of the files in the folder that processes have open, which have no names."""
        files = {}
        for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
            with contextlib.suppress(OSError):
                if os.readlink(descriptor).startswith(self.spill + "/"):
                    found = descriptor.stat()
                    files[found.st_ino] = 512 * found.st_blocks
        return sum(files.values())

    def test_nothing_is_left_on_the_disk_by_a_process_that_is_killed(self) -> None:
        script = "data = bytearray(b'x') * (512 << 20); print(1, flush=True); import signal; signal.pause()"
        command = [ETSTREAM, "run", "--spill", self.spill, "--", sys.executable, "-c", script]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            self.assertEqual(os.listdir(self.spill), [])
            self.assertGreater(self.spilled(), 400 * MIB)
            process.kill()
        self.assertEqual(self.spilled(), 0)

    def test_the_report_tells_what_lay_where(self) -> None:
        script = "data = bytearray(b'x') * (200 << 20); import time; time.sleep(0.2)"
        done = self.run_with(["--report"], sys.executable, "-c", script)
        found = {name: float(size) for name, size in re.findall(r"^  (\w+) +([\d.]+) MiB", done.stderr, re.MULTILINE)}
        self.assertLess(found["anonymous"], 60, done.stderr)
        self.assertGreater(found["resident"], 200, done.stderr)
        self.assertTrue(200 <= found["spilled"] < 220, done.stderr)
        mappings = re.search(r"^  mappings +(\d+)  in one process at most$", done.stderr, re.MULTILINE)
        self.assertTrue(mappings and 10 < int(mappings[1]) < 1000, done.stderr)

    def test_the_report_counts_pages_that_processes_share_once(self) -> None:
        script = (
            "import mmap, os, time; block = mmap.mmap(-1, 200 << 20, mmap.MAP_PRIVATE);"
            "[block.write(bytes(1 << 20)) for _ in range(200)];"
            "[os.fork() or (time.sleep(1), os._exit(0)) for _ in range(3)]; [os.wait() for _ in range(3)]"
        )
        done = self.run_with(["--report"], sys.executable, "-c", script)
        found = re.search(r"^  anonymous +([\d.]+) MiB", done.stderr, re.MULTILINE)
        self.assertTrue(found and 199 < float(found[1]) < 240, done.stderr)

    def test_folders_that_will_not_do_are_refused_with_the_reason(self) -> None:
        cases = {"/dev/shm": "is in memory itself", "/no/such": "No such file", "/proc": "/proc", __file__: "Not a directory"}
        for folder, reason in cases.items():
            done = subprocess.run([ETSTREAM, "run", "--spill", folder, "--", "echo"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (125, ""))
            self.assertIn(reason, done.stderr)

    def test_a_process_with_too_little_address_space_goes_on_without(self) -> None:
        done = self.run_with([], "sh", "-c", f"ulimit -v 2000000; {sys.executable} -c 'print(len(bytearray(8 << 20)))'")
        self.assertEqual((done.returncode, done.stdout), (0, "8388608\n"))
        self.assertIn("stay in memory", done.stderr)
        self.assertIn("ulimit -v", done.stderr)

    def limited(self, kind: int, size: int, *options: str) -> subprocess.CompletedProcess[str]:
        limit = {"preexec_fn": lambda: resource.setrlimit(kind, (size, size))}
        return self.run_with([*options], ALLOCATIONS, "large", str(8 << 20), **limit)

    def test_a_limit_of_the_shells_that_leaves_no_heap_is_told_before_the_command_runs(self) -> None:
        for kind, name, size, need in (
            (resource.RLIMIT_AS, "ulimit -v", 2000, r"5\.0 GiB"),
            (resource.RLIMIT_DATA, "ulimit -d", 200, r"1\.0 GiB"),
            (resource.RLIMIT_FSIZE, "ulimit -f", 500, r"1\.0 TiB"),
        ):
            size_words = f"{size / 1024:.1f} GiB" if size >= 1024 else f"{size:.1f} MiB"
            for options in ([], ["--report"]):
                done = self.limited(kind, size * MIB, *options)
                self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
                self.assertRegex(
                    done.stderr,
                    f"^etstream run: large blocks can't lie in '{self.spill}': .*: {name} is {size_words}, and the heap needs "
                    f"{need} besides what the program does; raise the limit, or give --optional to run without\n$",
                )
                done = self.limited(kind, size * MIB, "--optional", *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, f"^etstream run: .*{name}.*; the blocks of this command stay in memory\n$")

    def test_limits_of_the_shells_with_room_are_none(self) -> None:
        for kind, size in ((resource.RLIMIT_AS, 8 << 30), (resource.RLIMIT_DATA, 2 << 30), (resource.RLIMIT_FSIZE, 1 << 41)):
            done = self.limited(kind, size)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_optional_runs_the_command_where_the_folder_will_not_do(self) -> None:
        whole = [ETSTREAM, "run", "--spill", "/dev/shm", "--optional", "--", "sh", "-c", "echo here; exit 7"]
        done = subprocess.run(whole, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (7, "here\n"))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("in memory itself (tmpfs); the blocks of this command stay in memory", done.stderr)

    def test_a_limit_to_the_size_of_files_is_no_sudden_death(self) -> None:
        done = self.run_with([], "sh", "-c", f"ulimit -f 1000; {sys.executable} -c 'print(len(bytearray(8 << 20)))'")
        self.assertEqual((done.returncode, done.stdout), (0, "8388608\n"))
        self.assertIn("ulimit -f", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
