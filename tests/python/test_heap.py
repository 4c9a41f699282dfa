# SPDX-License-Identifier: BSD-3-Clause
"""Large blocks under low_memory_export(): no memory of the process, whoever allocates them."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import etstream
import numpy as np
import pytest
import torch
from etstream import _core
from etstream.executorch import low_memory_export

MIB = 1 << 20
SIZE = 256 * MIB
SOURCE = Path(__file__).with_name("blocks.c")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder on a disk, on which /tmp need not be."""
    made = tmp_path
    if subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", made], capture_output=True, text=True).stdout == "tmpfs\n":
        made = Path("/var/tmp", f"etstream-{os.getpid()}", tmp_path.name)
        made.mkdir(parents=True)
    return made


def anonymous() -> int:
    """Returns the bytes of this process that no file backs."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


def in_heap(folder: Path) -> int:
    """Returns the bytes of the file without a name in `folder` that this process has mapped in, shared or private."""
    resident, is_heap = 0, False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            if line[0].isdigit() or line[0] in "abcdef":
                is_heap = f" {folder}/" in line and line.endswith("(deleted)\n")
            elif is_heap and line.startswith("Rss:"):
                resident += int(line.split()[1]) << 10
    return resident


def lies_in(folder: Path, address: int) -> bool:
    """Returns whether the memory at an address is that file's."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            start, end = (int(number, 16) for number in line.split(maxsplit=1)[0].split("-"))
            if start <= address < end:
                return f" {folder}/" in line and line.endswith("(deleted)\n")
    return False


@contextlib.contextmanager
def heap(folder: Path, limit: int = 0) -> Iterator[None]:
    assert _core.start_heap(folder, limit)
    try:
        yield
    finally:
        _core.stop_heap()


def filled_tensor() -> torch.Tensor:
    return torch.empty(SIZE // 4).fill_(1.5)


def filled_bytes() -> bytearray:
    made = bytearray(SIZE)
    for at in range(0, SIZE, MIB):
        made[at : at + MIB] = b"x" * MIB
    return made


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], bool]]] = {
    "torch": (filled_tensor, lambda x: bool((x == 1.5).all())),
    "numpy": (lambda: np.ones(SIZE // 8), lambda x: float(x.sum()) == SIZE // 8),
    "numpy zeros": (lambda: np.zeros(SIZE // 8) + 0, lambda x: not x.any()),
    "bytearray": (filled_bytes, lambda x: x.count(b"x") == SIZE),
    "bytes": (lambda: b"y" * SIZE, lambda x: x.count(b"y") == SIZE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_no_memory_of_the_process_within(kind: str, folder: Path) -> None:
    make, is_right = KINDS[kind]
    before = anonymous()
    block = make()
    assert anonymous() - before > SIZE - 32 * MIB
    del block
    before = anonymous()
    with low_memory_export(folder):
        block = make()
        assert anonymous() - before < 64 * MIB
        assert is_right(block)
    assert is_right(block) and anonymous() - before < 64 * MIB
    del block
    assert list(folder.iterdir()) == []
    block = make()
    assert anonymous() - before > SIZE - 64 * MIB


def test_blocks_may_be_freed_and_resized_after_it(folder: Path) -> None:
    with heap(folder):
        blocks = [filled_bytes(), filled_bytes()]
        tensor = filled_tensor()
        small = bytearray(b"s" * 1000)
    blocks[0] += b"z" * (64 * MIB)
    del blocks[1][MIB:]
    small += b"t" * (2 * MIB)
    assert blocks[0].count(b"x") == SIZE and blocks[0].count(b"z") == 64 * MIB
    assert blocks[1] == b"x" * MIB and small[:1000] == b"s" * 1000
    tensor.untyped_storage().resize_(2 * SIZE)
    assert bool((tensor == 1.5).all())
    del blocks, tensor, small
    assert in_heap(folder) == 0


Library = Callable[..., ctypes.CDLL]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Returns a function that compiles blocks.c and loads it, as another library each time."""
    number = itertools.count()
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler

    def load(*options: str) -> ctypes.CDLL:
        path = tmp_path_factory.mktemp("library") / f"libblocks{next(number)}.so"
        command = [compiler, "-shared", "-fPIC", "-O1", "-fno-builtin", SOURCE, "-o", path, *options]
        subprocess.run(command, check=True)
        loaded = ctypes.CDLL(str(path))
        for name in ("make", "make_zeros", "make_aligned", "make_by_memalign", "make_by_aligned_alloc"):
            function = getattr(loaded, name)
            function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * (1 + ("al" in name))
        loaded.grow.restype, loaded.grow.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
        loaded.grow_array.restype = ctypes.c_void_p
        loaded.grow_array.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
        loaded.usable.restype, loaded.usable.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
        loaded.discard.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        loaded.drop.restype, loaded.drop.argtypes = None, [ctypes.c_void_p]
        loaded.read_line.restype, loaded.read_line.argtypes = ctypes.c_long, [ctypes.c_char_p, ctypes.c_size_t]
        return loaded

    return load


WAYS = {
    "at the first call": ["-Wl,-z,lazy"],
    "when it is loaded": ["-Wl,-z,relro,-z,now"],
    "without stubs": ["-fno-plt", "-Wl,-z,relro,-z,now"],
    "by addresses in data": ["-DTABLE"],
}


@pytest.mark.parametrize("way", WAYS)
def test_libraries_free_blocks_whenever_and_however_they_are_bound(
    way: str, library: Library, folder: Path
) -> None:
    size = 64 * MIB
    before = library(*WAYS[way])
    old = before.make(size)
    anonymous_before = anonymous()
    with low_memory_export(folder):
        within = library(*WAYS[way])
        makers = before, within
        blocks = [
            block
            for each in makers
            for block in (
                each.make(size),
                each.make_zeros(size),
                each.make_aligned(1 << 21, size),
                each.make_by_memalign(1 << 16, size),
                each.make_by_aligned_alloc(1 << 12, size),
                each.grow(None, size),
                each.grow_array(None, size // 16, 16),
                each.grow(each.make(3 * MIB), size),
            )
        ]
        for block in blocks:
            ctypes.memset(block, ord("b"), size)
        assert blocks[2] % (1 << 21) == 0 and blocks[3] % (1 << 16) == 0
        assert anonymous() - anonymous_before < 32 * MIB
        assert all(lies_in(folder, block) for block in blocks)
        assert within.discard(blocks[2], size) == 0 and ctypes.string_at(blocks[2], size) == bytes(size)
        ctypes.memset(blocks[2], ord("b"), size)
        within.drop(old)
        within.drop(blocks.pop())
    after = library(*WAYS[way])
    assert after.usable(blocks[0]) >= size
    for at, each in enumerate((before, within, after)):
        blocks[at] = each.grow(blocks[at], 2 * size)
        assert ctypes.string_at(blocks[at], size) == b"b" * size
    small = after.grow(blocks[3], 1000)
    assert ctypes.string_at(small, 1000) == b"b" * 1000
    after.drop(small)
    for at, block in enumerate(blocks[:3] + blocks[4:]):
        (before, within, after)[at % 3].drop(block)
    plain = [each.make(size) for each in (before, within, after)]
    assert not any(lies_in(folder, block) for block in plain)
    for block in plain:
        after.drop(block)


def test_the_c_library_resizes_blocks(library: Library, folder: Path) -> None:
    (folder / "line").write_bytes(b"l" * (20 * MIB) + b"\n")
    loaded = library()
    with low_memory_export(folder):
        assert loaded.read_line(os.fsencode(folder / "line"), 2 * MIB) == 20 * MIB + 1


def test_libraries_are_found_where_who_loads_them_says(library: Library, folder: Path) -> None:
    shutil.copy(library()._name, folder / "libfound_by_runpath.so")
    loader = library(f"-Wl,-rpath,{folder}")
    other = library()
    with low_memory_export(folder):
        assert loader.has(b"libfound_by_runpath.so") and not loader.has(b"libnowhere.so")
        assert loader.has(b"libm.so.6") and other.has(b"libm.so.6")
    assert not library().has(b"libnowhere.so")


def test_modules_imported_within_it_and_later_free_its_blocks(folder: Path) -> None:
    script = """
import sys
from etstream import _core
assert _core.start_heap(sys.argv[1], 0)
data = b"x" * (64 << 20)
import numpy
array = numpy.frombuffer(data, dtype=numpy.uint8) + 1
_core.stop_heap()
import zlib, sqlite3, lzma
array.resize(2 * len(data), refcheck=False)
packed = zlib.compress(data, 1)
assert zlib.decompress(packed) == data and int(array[: len(data)].min()) == ord("y")
del data, array
"""
    subprocess.run([sys.executable, "-c", script, folder], check=True, timeout=60)


def test_an_allocator_that_was_preloaded_serves_the_other_blocks(folder: Path, tmp_path: Path) -> None:
    """A Python at a fixed address, such as Debian's, has entries of its own for malloc() and free()."""
    library = tmp_path / "allocator.so"
    source = SOURCE.with_name("allocator.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", source, "-o", library], check=True)
    script = """
import sys
from etstream import _core
before = [bytes(600 + at) for at in range(1000)]
assert _core.start_heap(sys.argv[1], 0)
within = [bytearray(600 + at) for at in range(1000)]
del before
for block in within:
    block.extend(bytes(5000))
large = bytearray(64 << 20)
_core.stop_heap()
del within, large
"""
    subprocess.run([sys.executable, "-c", script, folder], check=True, timeout=60,
                   env={**os.environ, "LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc"})  # fmt: skip


class _Expected(Exception):
    pass


def test_an_error_within_it_ends_it_and_the_next_one_works(folder: Path) -> None:
    for _ in range(3):
        before = anonymous()
        with pytest.raises(_Expected), low_memory_export(folder):
            kept = filled_tensor()
            raise _Expected
        assert anonymous() - before < 64 * MIB
        outside = filled_tensor()
        assert anonymous() - before > SIZE - 64 * MIB
        assert bool((kept == outside).all())
        del kept, outside


def test_nested_ones_end_with_the_last(folder: Path) -> None:
    first, second = folder / "first", folder / "second"
    first.mkdir()
    second.mkdir()
    before = anonymous()
    with low_memory_export(first, limit=1 << 40):
        with low_memory_export(second):
            inner = filled_tensor()
        outer = filled_tensor()
        assert lies_in(first, inner.data_ptr()) and lies_in(first, outer.data_ptr())
    with low_memory_export(second):
        later = filled_tensor()
        assert lies_in(second, later.data_ptr())
        assert anonymous() - before < 64 * MIB
        inner.add_(1)  # the block is a private copy by now
        assert anonymous() - before > SIZE - 64 * MIB
    assert bool((inner == 2.5).all()) and bool((outer == later).all())
    del outer, later
    outside = filled_tensor()
    assert anonymous() - before > 2 * SIZE - 128 * MIB
    del outside


def test_small_objects_made_within_lie_there_too_and_may_be_dropped_after_it(folder: Path) -> None:
    def make() -> list[tuple[int, str]]:
        return [(number, str(number)) for number in range(1_000_000)]

    before = anonymous()
    with heap(folder):
        made = make()
        assert anonymous() - before < 32 * MIB
        del made[::2]
    assert all(text == str(number) for number, text in made)
    del made
    before = anonymous()
    made = make()
    assert made[-1] == (999_999, "999999")
    assert anonymous() - before > 64 * MIB


def test_threads_allocate_and_free_across_its_ends(folder: Path) -> None:
    ended = threading.Event()
    shared: list[np.ndarray] = []
    wrong: list[int] = []
    rounds = itertools.count()

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        while not ended.is_set():
            next(rounds)
            number = int(random.integers(1, 250))
            shared.append(np.full(int(random.integers(1, 6 * MIB)), number, dtype=np.uint8))
            grown = bytearray(bytes([number]) * (3 * MIB // 2))
            grown += bytes([number]) * int(random.integers(1, 4 * MIB))
            if grown.count(number) != len(grown):
                wrong.append(number)
            while len(shared) > 16:
                with contextlib.suppress(IndexError):
                    taken = shared.pop(int(random.integers(0, 16)))
                    if taken.min() != taken.max():
                        wrong.append(int(taken[0]))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        with heap(folder):
            time.sleep(0.01)
        time.sleep(0.005)
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong and next(rounds) > 200


def in_child(body: Callable[[], bool]) -> bool:
    """Returns whether `body` returns true in a fork of this process."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os._exit(0 if body() else 1)
        os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_fork_has_blocks_of_its_own(folder: Path) -> None:
    with low_memory_export(folder):
        array = np.full(64 * MIB, 1, dtype=np.uint8)

        def child() -> bool:
            before = anonymous()
            own = np.full(SIZE, 5, dtype=np.uint8)
            is_small = anonymous() - before < 64 * MIB
            array[: 32 * MIB] = 2
            return is_small and int(own.min()) == 5 and int(array.sum(dtype=np.int64)) == 96 * MIB

        assert in_child(child)
        assert int(array.min()) == int(array.max()) == 1
        array[:] = 3
        before = anonymous()
        more = np.full(SIZE, 4, dtype=np.uint8)
        assert anonymous() - before < 64 * MIB
    assert in_child(lambda: int(array.max()) == 3 and int(more.min()) == 4)


def test_a_fork_of_many_blocks_does_not_share_them(folder: Path) -> None:
    with low_memory_export(folder):
        blocks = [bytearray(16383) for _ in range(80_000)]
        del blocks[::2]

        def child() -> bool:
            for block in blocks:
                block[0] += 1
            return sum(block[0] for block in blocks) == len(blocks)

        assert in_child(child) and in_child(child)
        assert not any(block[0] for block in blocks)
        more = [bytearray(16383) for _ in range(1000)]
        assert len(Path("/proc/self/maps").read_text().splitlines()) < 8192
    del more


def _total(array: np.ndarray) -> int:
    made = np.array(array, copy=True)
    return int(made.sum(dtype=np.int64))


def test_processes_of_multiprocessing_take_and_give_large_arrays(folder: Path) -> None:
    with low_memory_export(folder):
        arrays = [np.full(8 * MIB, number, dtype=np.uint8) for number in range(1, 5)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(_total, arrays) == [8 * MIB * number for number in range(1, 5)]


def test_a_limit_that_cannot_be_kept_is_warned_of(folder: Path) -> None:
    script = """
import sys
from etstream.executorch import low_memory_export
with low_memory_export(sys.argv[1], limit=1 << 20) as report:
    pass
print(report)
"""

    hide = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", 'mount -t tmpfs none /proc; exec "$@"', "--"]
    options: dict[str, Any] = {"check": True, "capture_output": True, "text": True}
    ran = subprocess.run([*hide, sys.executable, "-c", script, folder], **options)
    reason = "the limit is not kept: /proc does not tell what this process has in memory"
    assert f"UserWarning: low_memory_export(): {reason}" in ran.stderr
    assert f"as without it: {reason}: 1" in ran.stdout
    command = Path(sysconfig.get_path("scripts"), "etstream")
    ran = subprocess.run([command, "run", "--spill", folder, "--limit", "1M", "--", *hide, "true"], **options)
    assert "is not kept: /proc does not tell what it has in memory" in ran.stderr


def test_folders_that_cannot_hold_it_are_errors(folder: Path) -> None:
    (folder / "file").touch()
    cases: dict[str, tuple[type[etstream.Error], str]] = {
        "/dev/shm": (etstream.InvalidArgumentError, "'/dev/shm': it is in memory itself"),
        str(folder / "nowhere"): (etstream.NotFoundError, "nowhere"),
        str(folder / "file"): (etstream.NotFoundError, "file"),
        "/proc/self": (etstream.Error, "'/proc/self'"),
    }
    for path, (error, words) in cases.items():
        with pytest.raises(error, match=words), low_memory_export(path):
            pass
    for limit, words in ((0, "found '0'"), (4, "found '4', which is bytes; 4G is 4 GiB"), ("1023K", "found '1023K'")):
        with pytest.raises(etstream.InvalidArgumentError, match=f"^limit: expected at least 1M, {words}$"):
            with low_memory_export(limit=limit):
                pass
    before = anonymous()
    outside = filled_tensor()
    assert anonymous() - before > SIZE - 64 * MIB
    del outside
    with low_memory_export(folder, limit="4 GiB"):
        within = filled_tensor()
        assert anonymous() - before < 64 * MIB
    assert bool((within == 1.5).all())


def test_too_little_address_space_is_told_with_what_is_needed(folder: Path) -> None:
    script = """
import resource, sys
import etstream
from etstream.executorch import low_memory_export
kind, size = int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(kind, (size, resource.RLIM_INFINITY))
try:
    with low_memory_export(sys.argv[1]):
        pass
except etstream.InvalidArgumentError as error:
    print(error)
"""
    for kind, size, words in (
        (resource.RLIMIT_FSIZE, 1 << 30, "ulimit -f is 1.0 GiB, and the heap needs 1.0 TiB"),
        (resource.RLIMIT_DATA, 1 << 30, "ulimit -d is 1.0 GiB, and the heap needs 1.0 GiB"),
    ):
        ran = subprocess.run([sys.executable, "-c", script, str(folder), str(int(kind)), str(size)],
                             capture_output=True, text=True, check=True)  # fmt: skip
        assert f"{words} besides what the program does; raise the limit" in ran.stdout, ran.stderr


def test_a_limit_bounds_what_is_mapped_in(folder: Path) -> None:
    def after_filling(limit: int) -> int:
        with heap(folder, limit):
            tensor = filled_tensor()
            time.sleep(2)
            found = in_heap(folder)
            assert bool((tensor == 1.5).all())
        return found

    assert after_filling(0) > SIZE - MIB
    assert after_filling(64 * MIB) <= 72 * MIB
    assert after_filling(0) > SIZE - MIB


def test_under_etstream_run_the_heap_is_the_commands(command: Any, folder: Path) -> None:
    script = """
import sys
from etstream import _core
assert not _core.start_heap(sys.argv[1], 0)
data = b"x" * (256 << 20)
anonymous = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
assert anonymous < 64 << 10, anonymous
"""
    ran = command("run", "--spill", folder, "--", sys.executable, "-c", script, "/nowhere")
    assert ran.returncode == 0, ran.stderr
