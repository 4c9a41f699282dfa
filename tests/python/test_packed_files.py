# SPDX-License-Identifier: BSD-3-Clause
"""Packs files and restores them, and has each function read packed files and write them."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import numpy as np
import pytest
from conftest import EXAMPLES, Command

CONTENT = np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32).tobytes() + b"the end"
"""Four pieces, of which the last is short."""


@pytest.fixture(scope="module")
def packed() -> bytes:
    out = io.BytesIO()
    etstream.pack(CONTENT, out)
    assert len(out.getvalue()) < 0.95 * len(CONTENT)
    return out.getvalue()


def piped(content: bytes) -> int:
    """Returns the descriptor of a pipe that a thread writes to, for which it needs the GIL."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            for i in range(0, len(content), 100_000):
                file.write(content[i : i + 100_000])

    # The thread waits for ever if the pipe is not read to its end.
    threading.Thread(target=write, daemon=True).start()
    return reading


class Stream:
    """An object with read() alone, which gives less than it is asked for."""

    def __init__(self, content: bytes) -> None:
        self.file = io.BytesIO(content)

    def read(self, size: int) -> bytes:
        return self.file.read((size + 1) // 2)


def kept(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


SOURCES: dict[str, Callable[[bytes, Path], Any]] = {
    "path": lambda content, folder: kept(folder / "input", content),
    "bytes": lambda content, folder: content,
    "array": lambda content, folder: np.frombuffer(content, np.uint8),
    "list": lambda content, folder: [content[:1000], content[1000:]],
    "Source": lambda content, folder: etstream.Source.descriptor(
        os.open(kept(folder / "input", content), os.O_RDONLY), 0, len(content)
    ),
    "file": lambda content, folder: open(kept(folder / "input", content), "rb"),  # noqa: SIM115
    "stream": lambda content, folder: Stream(content),
    "pipe": lambda content, folder: piped(content),
}

sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@sources
def test_any_source_is_packed_and_unpacked(
    source: Callable[[bytes, Path], Any], packed: bytes, tmp_path: Path
) -> None:
    etstream.pack(source(CONTENT, tmp_path), tmp_path / "out.etz", sync=False)
    assert (tmp_path / "out.etz").read_bytes() == packed
    etstream.unpack(source(packed, tmp_path), tmp_path / "out", sync=False)
    assert (tmp_path / "out").read_bytes() == CONTENT


def test_the_command_writes_the_same(packed: bytes, command: Command, tmp_path: Path) -> None:
    command("pack", kept(tmp_path / "input", CONTENT)).check_returncode()
    assert (tmp_path / "input.etz").read_bytes() == packed


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_byte(threads: int, packed: bytes) -> None:
    for function, content, expected in ((etstream.pack, CONTENT, packed), (etstream.unpack, packed, CONTENT)):
        out = io.BytesIO()
        function(content, out, threads=threads)
        assert out.getvalue() == expected
    with pytest.raises(etstream.InvalidArgumentError, match="threads: "):
        etstream.pack(CONTENT, io.BytesIO(), threads=-1)


def test_outputs_are_paths_whatever_their_ends_and_descriptors(packed: bytes, tmp_path: Path) -> None:
    etstream.pack(CONTENT, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == packed
    etstream.unpack(packed, tmp_path / "out.etz")
    assert (tmp_path / "out.etz").read_bytes() == CONTENT
    with open(tmp_path / "descriptor", "wb") as file:
        etstream.pack(CONTENT, file.fileno())
    assert (tmp_path / "descriptor").read_bytes() == packed


def test_a_stream_is_read_from_its_position_on(packed: bytes) -> None:
    file, out = io.BytesIO(b"before" + CONTENT), io.BytesIO()
    file.seek(6)
    etstream.pack(file, out)
    assert out.getvalue() == packed


@sources
def test_what_is_packed_is_not_packed_again(
    source: Callable[[bytes, Path], Any], packed: bytes, tmp_path: Path
) -> None:
    with pytest.raises(etstream.InvalidArgumentError, match="is a packed file already"):
        etstream.pack(source(packed, tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_not_packed_is_not_unpacked(tmp_path: Path) -> None:
    with pytest.raises(etstream.UnsupportedError, match="input"):
        etstream.unpack(kept(tmp_path / "input", CONTENT), tmp_path / "out")
    for no_source in (None, True, 1.5, io.StringIO("text")):
        with pytest.raises(TypeError):
            etstream.unpack(no_source, tmp_path / "out")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["input"]


def test_damage_is_an_error_with_its_place_and_leaves_nothing(packed: bytes, tmp_path: Path) -> None:
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 1
    path = kept(tmp_path / "input.etz", bytes(damaged))
    with pytest.raises(etstream.CorruptError, match=r"input\.etz: offset \d+: expected") as caught:
        etstream.unpack(path, tmp_path / "out")
    assert 0 < (caught.value.offset or 0) <= len(packed) // 2
    with pytest.raises(etstream.CorruptError, match=r"input\.etz: offset"):
        etstream.Source(path).read()
    assert os.listdir(tmp_path) == ["input.etz"]


def test_an_output_is_no_input(packed: bytes, tmp_path: Path) -> None:
    path = kept(tmp_path / "input", CONTENT)
    for source in (path, open(path, "rb"), os.open(path, os.O_RDONLY)):  # noqa: SIM115
        with pytest.raises(etstream.InvalidArgumentError, match="input"):
            etstream.pack(source, path)
    assert path.read_bytes() == CONTENT


def test_exceptions_and_interrupts_come_out_as_they_were(tmp_path: Path) -> None:
    class Failing:
        def read(self, size: int) -> bytes:
            raise PermissionError(13, "as planned")

    with pytest.raises(PermissionError, match="as planned"):
        etstream.pack(Failing(), tmp_path / "out")  # type: ignore[arg-type]
    reading, writing = os.pipe()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        etstream.pack(reading, tmp_path / "out")
    timer.join()
    os.close(writing)
    assert os.listdir(tmp_path) == []


def test_progress_counts_what_is_read(packed: bytes, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    path = kept(tmp_path / "input", CONTENT)
    etstream.pack(path, tmp_path / "out", progress=lambda done, total: calls.append((done, total)))
    assert len(calls) >= 4 and calls[-1] == (len(CONTENT), len(CONTENT))

    def stop(done: int, total: int) -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        etstream.unpack(packed, tmp_path / "stopped", progress=stop)
    assert not (tmp_path / "stopped").exists()


@pytest.mark.parametrize("form", ["path", "bytes", "array", "list", "file"])
def test_a_source_of_a_packed_file_has_the_original_bytes(form: str, packed: bytes, tmp_path: Path) -> None:
    source = etstream.Source(SOURCES[form](packed, tmp_path))
    assert source.size == len(CONTENT)
    assert bytes(source) == CONTENT
    assert source.read(1_048_000, 2000) == CONTENT[1_048_000:1_050_000]
    assert bytes(source[3_500_000:]) == CONTENT[3_500_000:]


def test_what_is_no_file_stays_as_it_is(packed: bytes, tmp_path: Path) -> None:
    tensor = etstream.Tensor("uint8", [len(packed)], packed)
    assert bytes(tensor.data) == packed
    etstream.save_ptd({"a": tensor}, tmp_path / "a.ptd")
    assert bytes(etstream.Checkpoint(tmp_path / "a.ptd")["a"].data) == packed
    etstream.pte(EXAMPLES / "model.pte", tmp_path / "a.pte", metadata={"packed": packed})
    assert bytes(etstream.ProgramFile(tmp_path / "a.pte").metadata["packed"]) == packed


def test_functions_read_packed_files_and_write_them(cases: Path, program: Path, tmp_path: Path) -> None:
    folder = tmp_path
    etstream.FilePlan.copy(program).write(folder / "model.pte.etz")
    assert (folder / "model.pte.etz").stat().st_size < program.stat().st_size
    model = folder / "model.pte.etz"
    assert etstream.verify(model) and etstream.verify(model.read_bytes())
    report, plain = etstream.inspect(model), etstream.inspect(program)
    assert report.methods == plain.methods
    assert etstream.diff(model, program).same_bytes
    segments = etstream.ProgramFile(program).segments
    assert [bytes(one.data) for one in etstream.ProgramFile(model).segments] == [bytes(one.data) for one in segments]

    etstream.bundle(model, cases, folder / "model.bpte.etz")
    etstream.bundle(program, cases, folder / "model.bpte")
    etstream.unpack(folder / "model.bpte.etz", folder / "unpacked.bpte")
    assert (folder / "unpacked.bpte").read_bytes() == (folder / "model.bpte").read_bytes()
    assert bytes(etstream.BundledProgramFile(folder / "model.bpte.etz").program) == program.read_bytes()

    etstream.save_ptd({"a": np.arange(10)}, folder / "a.ptd.etz")
    assert etstream.load_ptd(folder / "a.ptd.etz", framework="numpy")["a"].tolist() == list(range(10))

    etstream.fat({"cpu": model, "npu": b"a blob"}, folder / "model.fat.etz")
    container = etstream.FatContainerFile(folder / "model.fat.etz")
    assert bytes(container["cpu"]) == program.read_bytes()
    assert etstream.verify(folder / "model.fat.etz") and etstream.verify(container["cpu"])


@pytest.mark.parametrize("opened", [str, etstream.Source])
def test_no_update_is_written_of_a_base_that_changes(tmp_path: Path, opened: Callable[[Path], Any]) -> None:
    now, base = kept(tmp_path / "now", CONTENT), kept(tmp_path / "base", CONTENT[1:])

    def change(done: int, total: int) -> None:
        os.utime(base, (done, total))

    with pytest.raises(etstream.CorruptError, match="base: was changed or replaced"):
        etstream.pack(now, tmp_path / "update.etz", base=opened(base), progress=change)
    assert not (tmp_path / "update.etz").exists()


def test_verify_checks_the_hash_of_a_packed_file(tmp_path: Path) -> None:
    first, second = io.BytesIO(), io.BytesIO()
    for out in (first, second):
        etstream.pack(os.urandom(2 << 20), out)
    # Pieces that can't be made smaller have one size, so both files have the same offsets before the hashes.
    mixed = first.getvalue()[:-64] + second.getvalue()[-64:]
    found = etstream.verify(kept(tmp_path / "mixed.etz", mixed))
    assert len(found.errors) == 1
    assert "mixed.etz: offset" in found.errors[0] and "hash of the original bytes" in found.errors[0]


def test_an_update_is_restored_with_its_base(tmp_path: Path) -> None:
    base = np.frombuffer(CONTENT[:4_000_000], np.float32)
    now = base.copy()
    now[::100] *= 1.001
    update = io.BytesIO()
    etstream.pack(now, update, base=base)
    assert len(update.getvalue()) < len(CONTENT) / 20
    etstream.unpack(update.getvalue(), tmp_path / "restored", base=kept(tmp_path / "base", base.tobytes()))
    assert (tmp_path / "restored").read_bytes() == now.tobytes()

    update_file = kept(tmp_path / "update.etz", update.getvalue())
    with pytest.raises(etstream.InvalidArgumentError, match=r"base to etstream\.unpack"):
        etstream.unpack(update_file, tmp_path / "other")
    with pytest.raises(etstream.InvalidArgumentError, match=r"is not the file that .* was made from"):
        etstream.unpack(update_file, tmp_path / "other", base=now)
    with pytest.raises(etstream.UnsupportedError, match="is an update"):
        etstream.Source(update_file)
    with pytest.raises(etstream.InvalidArgumentError, match="is read once"):
        etstream.pack(Stream(now.tobytes()), tmp_path / "other", base=base)
    assert not (tmp_path / "other").exists()


def test_a_program_is_packed_without_what_its_checkpoint_gives(tmp_path: Path) -> None:
    program, weights = EXAMPLES / "model.pte", tmp_path / "weights.safetensors"
    etstream.ptd(program, weights)
    update = io.BytesIO()
    etstream.pack(program, update, base=weights)
    assert len(update.getvalue()) < program.stat().st_size / 10
    for base in (weights, str(weights), [weights]):
        restored = io.BytesIO()
        etstream.unpack(update.getvalue(), restored, base=base)
        assert restored.getvalue() == program.read_bytes()
    with pytest.raises(etstream.InvalidArgumentError, match="is no checkpoint"):
        etstream.unpack(update.getvalue(), tmp_path / "other", base=program)
    assert not (tmp_path / "other").exists()
