# SPDX-License-Identifier: BSD-3-Clause
"""Tests Ctrl-C, threads and memory while bytes move."""

from __future__ import annotations

import io
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import etstream

MIB = 1 << 20


@pytest.mark.parametrize("output", ["file", "slow", "pipe", "fifo", "diff", "merge"])
def test_ctrl_c_stops_promptly_and_leaves_nothing(tmp_path: Path, output: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"old")
    if output == "fifo":
        os.mkfifo(folder / "fifo")
    argument = str(folder / output) if output in ("file", "fifo") else output
    script = Path(__file__).with_name("interrupted.py")
    with subprocess.Popen([sys.executable, script, argument], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        deadline = threading.Timer(20, process.kill)
        deadline.start()
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.3)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - began < 2
        assert process.wait(10) == 0
        deadline.cancel()
    assert (folder / "file").read_bytes() == b"old"
    assert {path.name for path in folder.iterdir()} <= {"file", "fifo"}


def zeros(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)


def test_other_threads_run_while_bytes_move() -> None:
    stop = threading.Event()
    steps = [0]

    def count() -> None:
        while not stop.is_set():
            steps[0] += 1
            time.sleep(0.001)

    plan = etstream.FilePlan.copy(zeros(1024 * MIB))
    counter = threading.Thread(target=count)
    counter.start()
    before, began = steps[0], time.monotonic()
    plan.write("/dev/null")
    took = time.monotonic() - began
    counted = steps[0] - before
    stop.set()
    counter.join()
    assert counted > 100 * took, f"{counted} steps of 1 ms in {took:.2f} s"


def test_layout_is_written_by_threads_at_once(tmp_path: Path, program: Path, cases: Path) -> None:
    plan = etstream.bundle(program, cases, to="segmented", dry_run=True)
    content = np.random.default_rng(0).integers(0, 256, 32 * MIB, np.uint8)
    large = etstream.FilePlan.copy([content, io.BytesIO(content[:1000]), content[:1000]])
    expected = large.source().read()
    small = tmp_path / "expected"
    plan.write(small)

    def write(i: int) -> None:
        large.write(tmp_path / f"large{i}", sync=False)
        for _ in range(20):
            plan.write(tmp_path / f"small{i}", sync=False)

    threads = [threading.Thread(target=write, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        assert (tmp_path / f"large{i}").read_bytes() == expected
        assert (tmp_path / f"small{i}").read_bytes() == small.read_bytes()


def status(field: str) -> int:
    """Returns a number about this process's memory, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith(field + ":"))
    return int(line.split()[1]) << 10


class Watch:
    """An output that notes the most anonymous memory at any write()."""

    def __init__(self) -> None:
        self.before = status("RssAnon")
        self.most = 0

    def write(self, piece: memoryview) -> None:
        self.most = max(self.most, status("RssAnon") - self.before)


def mapped_file(tmp_path: Path) -> Any:
    with open(tmp_path / "sparse", "wb+") as file:
        file.truncate(512 * MIB)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.mark.parametrize(
    "make",
    [
        mapped_file,
        lambda folder: np.ones(256 * MIB, np.int16),
        lambda folder: torch.ones(256 * MIB, dtype=torch.bfloat16),
        lambda folder: etstream.Source.descriptor(os.memfd_create("zeros"), 0, 0),
    ],
    ids=["mmap", "numpy", "torch", "nothing"],
)
def test_no_source_is_copied(tmp_path: Path, make: Any) -> None:
    source = make(tmp_path)
    watch = Watch()
    etstream.FilePlan.copy(source).write(watch)
    assert watch.most <= 4 * MIB


def test_copy_is_seen() -> None:
    """Makes sure that the measurement above would see a copy."""
    content = np.ones(64 * MIB, np.uint8)
    watch = Watch()
    etstream.FilePlan.copy(content.tobytes()).write(watch)
    assert watch.most >= 60 * MIB


def test_nothing_leaks(tmp_path: Path, program: Path, cases: Path) -> None:
    def once(i: int) -> None:
        tensor = torch.zeros(3, i % 7)
        case = etstream.TestCase([tensor, np.zeros(4), 1], [tensor])
        plan = etstream.bundle(program, [etstream.TestSuite("forward", [case])], unchecked=True, dry_run=True)
        plan.write(Null(), progress=lambda done, total: None)
        with pytest.raises(FileNotFoundError):
            etstream.Source("no/such/file")

    class Null:
        def write(self, piece: memoryview) -> int:
            return len(piece)

    for i in range(1000):
        once(i)
    before = status("VmRSS")
    for i in range(9000):
        once(i)
    assert status("VmRSS") - before < 2 * MIB
