# SPDX-License-Identifier: BSD-3-Clause
"""Tests where files can be written to, what shows meanwhile, and what is there after an error."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import pickle
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import EXAMPLES

import etstream
from etstream._writing import callback

CONTENT = os.urandom((3 << 20) + 12345)
LAYOUT = etstream.FilePlan.copy(CONTENT)


class Collector:
    """An object with write() alone, which returns what `answer` makes of a piece's size."""

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.answer = answer
        self.pieces: list[bytes] = []

    def write(self, piece: memoryview) -> Any:
        assert piece.readonly and piece.contiguous and len(piece) <= 1 << 20
        taken = self.answer(len(piece))
        self.pieces.append(bytes(piece[:taken]))
        return taken


@pytest.mark.parametrize(
    "answer",
    [lambda size: None, lambda size: size, lambda size: (size + 1) // 2, lambda size: np.int64(size)],
    ids=["none", "all", "half", "numpy"],
)
def test_object_with_write_gets_all(answer: Callable[[int], Any]) -> None:
    collector = Collector(answer)
    LAYOUT.write(collector)
    assert b"".join(collector.pieces) == CONTENT


@pytest.mark.parametrize("answer", [0, -1, len(CONTENT) + 1])
def test_write_that_says_what_cannot_be_is_an_error(answer: int) -> None:
    with pytest.raises(etstream.IoError, match="says that it took"):
        LAYOUT.write(Collector(lambda size: answer))


def test_write_that_returns_no_number_is_an_error() -> None:
    with pytest.raises(TypeError, match="interpreted as an integer"):
        LAYOUT.write(type("Odd", (), {"write": lambda self, piece: "x"})())


def test_exception_of_write_comes_out_as_it_was() -> None:
    class Full:
        def write(self, piece: memoryview) -> None:
            self.kept = piece
            raise PermissionError(13, "as planned")

    full = Full()
    with pytest.raises(PermissionError, match="as planned") as caught:
        LAYOUT.write(full)
    assert caught.value.errno == 13
    assert len(full.kept) == 1 << 20, "valid memory, whoever looks at it later"


def test_pieces_may_be_kept() -> None:
    for keep in (lambda piece: piece, lambda piece: np.frombuffer(piece, np.uint8)):
        kept: list[Any] = []
        LAYOUT.write(type("Keeps", (), {"write": lambda self, piece, keep=keep: kept.append(keep(piece))})())
        assert b"".join(kept) == CONTENT


def test_raw_file_that_would_block_is_an_error() -> None:
    class Raw(io.RawIOBase):
        def write(self, piece: Any) -> None:
            return None

    with pytest.raises(BlockingIOError):
        LAYOUT.write(Raw())


def test_files_of_python(tmp_path: Path) -> None:
    for name, opened in {
        "raw": lambda path: open(path, "wb", buffering=0),
        "buffered": lambda path: open(path, "wb"),
        "gzip": lambda path: gzip.open(path, "wb", compresslevel=1),
    }.items():
        with opened(tmp_path / name) as file:
            file.write(b"before")
            LAYOUT.write(file)
            file.write(b"after")
        reader = gzip.open if name == "gzip" else open
        with reader(tmp_path / name, "rb") as file:
            assert file.read() == b"before" + CONTENT + b"after"
    buffer = io.BytesIO()
    LAYOUT.write(buffer)
    assert buffer.getvalue() == CONTENT
    with pytest.raises(TypeError):
        LAYOUT.write(io.StringIO())


def received(read: Callable[[], bytes], write: Callable[[], None]) -> bytes:
    """Returns the bytes that another thread reads meanwhile."""
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(read()))
    thread.start()
    write()
    thread.join(10)
    return got[0]


@pytest.mark.parametrize("blocking", [True, False])
def test_pipe_and_socket(blocking: bool) -> None:
    for make in (os.pipe, lambda: tuple(end.detach() for end in socket.socketpair())):
        reader, writer = make()
        os.set_blocking(writer, blocking)

        def write(writer: int = writer) -> None:
            LAYOUT.write(writer)
            os.close(writer)

        with open(reader, "rb") as file:
            assert received(file.read, write) == CONTENT
    left, right = socket.socketpair()
    with left, right, left.makefile("wb") as file, right.makefile("rb") as reader:

        def write_file() -> None:
            LAYOUT.write(file)
            file.flush()
            left.shutdown(socket.SHUT_WR)

        assert received(reader.read, write_file) == CONTENT


def test_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert received(fifo.read_bytes, lambda: LAYOUT.write(fifo)) == CONTENT
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_descriptor_is_written_from_its_position_on(tmp_path: Path) -> None:
    with open(tmp_path / "file", "wb") as file:
        os.write(file.fileno(), b"before")
        LAYOUT.write(file.fileno())
    assert (tmp_path / "file").read_bytes() == b"before" + CONTENT


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (True, TypeError),
        (None, TypeError),
        (2.5, TypeError),
        (2**40, ValueError),
        (2**80, OverflowError),
        (10**6, etstream.IoError),
        ("", etstream.InvalidArgumentError),
        ("/", etstream.InvalidArgumentError),
        ("/no/such/folder/file", FileNotFoundError),
        ("a\0b", ValueError),
    ],
)
def test_output_is_refused(output: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        LAYOUT.write(output)


def test_closed_pipe_is_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(etstream.IoError, match="Broken pipe"):
        LAYOUT.write(writer)
    os.close(writer)


def test_path_is_as_it_was_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def stop(done: int, total: int) -> None:
        if done > 0:
            raise ArithmeticError("as planned")

    with pytest.raises(ArithmeticError, match="as planned"):
        LAYOUT.write(path, progress=stop)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    source = etstream.Source(path)
    path.write_bytes(b"changed")
    with pytest.raises(etstream.CorruptError, match="changed"):
        etstream.FilePlan.copy(source).write(tmp_path / "other")
    assert list(tmp_path.iterdir()) == [path]


def test_file_may_be_replaced_by_what_is_made_of_it(tmp_path: Path, program: Path) -> None:
    path = tmp_path / "model.pte"
    path.write_bytes(program.read_bytes())
    etstream.pte(path, path, segment_alignment=4096)
    assert path.read_bytes() != program.read_bytes()
    etstream.pte(path, path, segment_alignment=128)
    assert path.read_bytes() == program.read_bytes()


def test_progress_is_told_in_bytes() -> None:
    calls: list[tuple[int, int]] = []
    plan = etstream.FilePlan.copy([CONTENT] * 20)
    plan.write(io.BytesIO(), progress=lambda done, total: calls.append((done, total)))
    done = [call[0] for call in calls]
    assert done == sorted(done) and done[0] == 0 and done[-1] == plan.size
    assert {call[1] for call in calls} == {plan.size}
    assert all(after - before <= 16 << 20 for before, after in zip(done, done[1:], strict=False))


def test_progress_shows_a_bar_where_tqdm_is(capsys: pytest.CaptureFixture[str]) -> None:
    LAYOUT.write(io.BytesIO(), progress=True)
    bar = capsys.readouterr().err
    assert "100%" in bar and "3.01M/3.01M" in bar
    LAYOUT.write(io.BytesIO(), progress=False)
    assert capsys.readouterr().err == ""


def test_bar_shows_what_is_done_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    bar = callback(True)
    for done in (100, 300, 400):
        bar(done, 400)
    assert "400/400" in capsys.readouterr().err


def test_progress_warns_where_tqdm_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.warns(UserWarning, match="tqdm is not installed") as caught:
        LAYOUT.write(io.BytesIO(), progress=True)
    assert caught[0].filename == __file__


FAMILY = {
    etstream.InvalidArgumentError: ValueError,
    etstream.CorruptError: ValueError,
    etstream.UnsupportedError: etstream.Error,
    etstream.TooLargeError: etstream.Error,
    etstream.NoSuchFileError: FileNotFoundError,
    etstream.NoSuchNameError: KeyError,
    etstream.IoError: OSError,
}


def raise_one(kind: type[Exception], program: Path, tmp_path: Path) -> None:
    if kind is etstream.InvalidArgumentError:
        etstream.pte(program, io.BytesIO(), segment_alignment=3)
    elif kind is etstream.CorruptError:
        etstream.ProgramFile(program.read_bytes()[:-1])
    elif kind is etstream.UnsupportedError:
        etstream.inspect(b"nothing that is known")
    elif kind is etstream.TooLargeError:
        with open(tmp_path / "hole", "wb") as file:
            file.truncate(5 << 30)
        etstream.bundle(etstream.Source.concatenation([program, tmp_path / "hole"]), {}, dry_run=True)
    elif kind is etstream.NoSuchFileError:
        etstream.Source(tmp_path / "none")
    elif kind is etstream.NoSuchNameError:
        etstream.graph(program, "backward")
    elif kind is etstream.IoError:
        LAYOUT.write("/dev/full")


@pytest.mark.parametrize("kind", FAMILY)
def test_error_is_of_the_family(kind: type[Exception], program: Path, tmp_path: Path) -> None:
    with pytest.raises(FAMILY[kind]) as caught:
        raise_one(kind, program, tmp_path)
    assert type(caught.value) is kind and isinstance(caught.value, etstream.Error)
    assert kind.__module__ == "etstream" and str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is kind and str(again) == str(caught.value)
    assert (again.filename, again.offset) == (caught.value.filename, caught.value.offset)
    assert getattr(again, "errno", None) == getattr(caught.value, "errno", None)


OUT_OF_MEMORY = """
import resource, sys, etstream
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (16 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    etstream.read_test_cases(sys.argv[1])
except MemoryError as error:
    print(type(error).__name__, error)
"""


def test_running_out_of_memory_is_an_error(tmp_path: Path) -> None:
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps({"forward": [{"inputs": [1] * 1_000_000}]}))
    command = [sys.executable, "-c", OUT_OF_MEMORY, cases]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert said.startswith("OutOfMemoryError ") and issubclass(etstream.ExecutionError, RuntimeError)


def test_errors_of_the_system_have_its_numbers(tmp_path: Path) -> None:
    with pytest.raises(etstream.IoError, match="No space left") as full:
        LAYOUT.write("/dev/full")
    with pytest.raises(etstream.NotFoundError) as absent:
        LAYOUT.write(tmp_path / "nowhere" / "file")
    (tmp_path / "cases.json").write_text('{"forward": [{"inputs": [{"npy": "file"}]}]}')
    with pytest.raises(FileNotFoundError) as no_file:
        etstream.read_test_cases(tmp_path / "cases.json")
    with pytest.raises(etstream.IoError) as closed:
        LAYOUT.write(10**6)
    errors = [caught.value.errno for caught in (full, absent, no_file, closed)]
    assert errors == [errno.ENOSPC, errno.ENOENT, errno.ENOENT, errno.EBADF]
    names = [caught.value.filename for caught in (full, absent, no_file)]
    assert names == ["/dev/full", str(tmp_path / "nowhere" / "file"), str(tmp_path / "file")]
    with pytest.raises(etstream.NotFoundError) as no_name:
        etstream.extract(EXAMPLES / "model.pte", "nothing", io.BytesIO())
    assert not isinstance(no_name.value, OSError) and "nothing" in str(no_name.value)


@pytest.mark.parametrize("form", ["bp08", "segmented"])
def test_bytes_are_those_that_are_written(program: Path, cases: Path, tmp_path: Path, form: Any) -> None:
    plan = etstream.bundle(program, cases, to=form, dry_run=True)
    plan.write(tmp_path / "out")
    assert bytes(plan) == (tmp_path / "out").read_bytes()
