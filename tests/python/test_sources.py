# SPDX-License-Identifier: BSD-3-Clause
"""Tests the sources of bytes: each gives the bytes that lie there, in place, or is refused."""

from __future__ import annotations

import array
import gc
import io
import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import etstream

CONTENT = bytes(range(256)) * 40


class Trickle(io.RawIOBase):
    """A file that gives 7 bytes at a time."""

    def __init__(self) -> None:
        self._inner = io.BytesIO(CONTENT)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._inner.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        piece = self._inner.read(min(7, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


def mapped(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "content"
    file.write_bytes(CONTENT)
    return file


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path,
        str,
        lambda path: etstream.Source.file(path),
        lambda path: etstream.Source.file(path, size=len(CONTENT)),
        lambda path: CONTENT,
        lambda path: bytearray(CONTENT),
        lambda path: memoryview(CONTENT),
        lambda path: memoryview(CONTENT).cast("I"),
        lambda path: memoryview(CONTENT).cast("d", (40, 32)),
        lambda path: array.array("h", CONTENT),
        mapped,
        lambda path: np.memmap(path, np.uint8, "r"),
        lambda path: np.frombuffer(CONTENT, "<f8").reshape(8, -1),
        lambda path: np.frombuffer(CONTENT, ml_dtypes.bfloat16),
        lambda path: torch.frombuffer(bytearray(CONTENT), dtype=torch.bfloat16).reshape(64, -1),
        lambda path: torch.frombuffer(bytearray(CONTENT), dtype=torch.uint8).untyped_storage(),
        lambda path: io.BytesIO(CONTENT),
        lambda path: open(path, "rb"),
        lambda path: open(path, "rb", buffering=0),
        lambda path: Trickle(),
        lambda path: [CONTENT[:100], path.open("rb"), CONTENT[:0]][::2] + [memoryview(CONTENT)[100:]],
        lambda path: etstream.Source.concatenation([CONTENT[:9], etstream.Source(path)[9:]]),
        lambda path: etstream.FilePlan.copy(CONTENT).source(),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_source_has_the_bytes(path: Path, make: Any) -> None:
    source = etstream.Source(make(path))
    assert len(source) == source.size == len(CONTENT)
    assert source.read() == bytes(source) == CONTENT
    assert source[10:20].read() == CONTENT[10:20] == source.read(10, 10)
    assert repr(source).startswith("<etstream.Source of 10240 bytes")
    output = path.with_name("copy")
    etstream.FilePlan.copy(source).write(output, sync=False)
    assert output.read_bytes() == CONTENT


TORCH_DTYPES = [
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64),
    *(torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.bool),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
]


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_torch_tensor_of_any_dtype_is_a_value_in_place(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.arange(1, 7).to(dtype)[: int(np.prod(shape))].reshape(shape)
    case = etstream.TestCase([tensor])
    (value,) = case.inputs
    assert isinstance(value, etstream.Tensor)
    assert (value.dtype, value.sizes) == (str(dtype).removeprefix("torch."), list(shape))
    assert value.dim_order == list(range(len(shape)))
    assert value.data.read() == bytes(tensor.untyped_storage())[: tensor.nbytes]
    if tensor.numel() > 0:
        tensor.view(torch.uint8).zero_() if shape else tensor.zero_()
        assert value.data.read() == bytes(tensor.nbytes), "it was copied"


NUMPY_DTYPES = [
    *("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bool"),
    *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
]


@pytest.mark.parametrize("name", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_numpy_array_of_any_dtype_is_a_value_in_place(name: str, shape: tuple[int, ...]) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    (value,) = etstream.TestCase([values]).inputs
    assert isinstance(value, etstream.Tensor)
    assert (value.dtype, value.sizes) == (name, list(shape))
    assert value.data.read() == values.tobytes()
    assert etstream.Source(values).read() == values.tobytes()
    if values.size:
        values[...] = np.ones((), dtype)
        assert value.data.read() == values.tobytes(), "it was copied"


def test_values_that_are_not_contiguous_are_copied_and_big_endian_ones_turned() -> None:
    expected = np.arange(6, dtype="<i4").reshape(2, 3).T
    for given in (expected, torch.arange(6, dtype=torch.int32).reshape(2, 3).t(), expected.astype(">i4")):
        (value,) = etstream.TestCase([given]).inputs
        assert (value.dtype, value.sizes) == ("int32", [3, 2])
        assert value.data.read() == expected.tobytes()


def test_complex_tensors_are_taken_as_they_lie() -> None:
    for given in (torch.tensor([1 + 2j, 3j], dtype=torch.complex64), np.array([1 + 2j, 3j])):
        (value,) = etstream.TestCase([given]).inputs
        assert value.dtype == str(given.dtype).removeprefix("torch.")
        assert value.data.read() == np.asarray(given).tobytes()


def test_scalars_are_what_python_says_they_are() -> None:
    given = [True, 3, 2.5, None, np.float64(2.5), np.float32(1), np.bool_(True), np.int64(7), -(2**63)]
    found = etstream.TestCase(given).inputs
    assert found[:4] == given[:4] and found[8] == given[8]
    assert [value.dtype for value in found[4:8]] == ["float64", "float32", "bool", "int64"]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.array([object()]), ValueError, "object"),
        (np.zeros(2, "datetime64[s]"), ValueError, "datetime64"),
        (torch.zeros(2, device="meta"), ValueError, "on the CPU, found torch.strided on meta"),
        (2**63, OverflowError, "too big"),
        ("text", TypeError, "found str"),
    ],
)
def test_value_is_refused(value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^input 1: .*{message}"):
        etstream.TestCase([0, value])
    with pytest.raises(error, match=f"^expected output 2: .*{message}"):
        etstream.TestCase([], [0, (0, value)])


@pytest.mark.parametrize(
    "call",
    [
        etstream.Source,
        etstream.verify,
        etstream.inspect,
        lambda paths: etstream.pte(paths, io.BytesIO()),
        lambda paths: etstream.bundle(paths, {}, dry_run=True),
        lambda paths: etstream.fat({"a": paths}, io.BytesIO()),
        lambda paths: etstream.pack(paths, io.BytesIO()),
        lambda paths: etstream.Source([b"a", paths]),
    ],
)
def test_a_list_of_paths_is_not_the_parts_of_one_file(call: Any, path: Path, program: Path) -> None:
    for given in ([program, path], (str(program),), [b"a", program]):
        with pytest.raises(TypeError, match=r"parts of one file in a list, .* found a path, '.*model\.pte'; .*\.conc"):
            call(given)
    assert bytes(etstream.Source.concatenation([path, str(path)])) == 2 * CONTENT


class Forward(io.BytesIO):
    def seekable(self) -> bool:
        return False


def pipe() -> Any:
    read, write = os.pipe()
    os.close(write)
    return os.fdopen(read, "rb")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: 3, TypeError, "expected a path, a buffer, .* found int"),
        (lambda: None, TypeError, "found NoneType"),
        (lambda: Forward(b"x"), TypeError, "expected a seekable file"),
        (pipe, TypeError, "expected a seekable file"),
        (lambda: io.StringIO("x"), TypeError, "expected a binary file"),
        (lambda: np.zeros((4, 4))[:, 1], ValueError, "contiguous"),
        (lambda: np.zeros((4, 4))[::2], ValueError, "contiguous"),
        (lambda: np.array([object()]), TypeError, "Python objects"),
        (lambda: memoryview(b"abcd")[::2], BufferError, "contiguous"),
        (lambda: torch.zeros(4, 4).t(), ValueError, "contiguous"),
        (lambda: torch.zeros(2, device="meta"), ValueError, "on the CPU"),
        (lambda: torch.eye(2).to_sparse(), ValueError, "dense"),
        (lambda: "no/such/file", FileNotFoundError, "no/such/file"),
        (lambda: "/dev/null", etstream.InvalidArgumentError, "/dev/null"),
        (lambda: etstream.Source(b"abc")[::2], ValueError, "steps of 1"),
        (lambda: etstream.Source(b"abc").read(1, 3), etstream.InvalidArgumentError, "range|inside|bytes"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_source_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        etstream.Source(make())


class Broken(io.BytesIO):
    """A file that fails at the second read."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        if self.reads > 1:
            raise ZeroDivisionError("as planned")
        return super().read(size)


def test_exception_of_a_file_comes_out_as_it_was_and_is_not_raised_again(program: Path) -> None:
    source = etstream.Source(Broken(program.read_bytes()))
    for call in (etstream.verify, etstream.inspect, etstream.ProgramFile):
        with pytest.raises(ZeroDivisionError, match="as planned"):
            call(source)
        with pytest.raises(FileNotFoundError):
            etstream.Source("no/such/file")
        assert etstream.verify(program)


def test_file_that_shrinks_is_an_error() -> None:
    file = io.BytesIO(CONTENT)
    source = etstream.Source(file)
    file.truncate(100)
    with pytest.raises(etstream.CorruptError, match="expected 10240 bytes"):
        source.read()


def test_what_lies_in_place_is_kept_alive_and_let_go() -> None:
    class Held(bytearray):
        pass

    held = Held(CONTENT)
    gone = weakref.ref(held)
    plan = etstream.FilePlan.copy(held)
    del held
    gc.collect()
    assert bytes(plan) == CONTENT
    with pytest.raises(BufferError):
        gone().clear()  # type: ignore[union-attr]
    del plan
    gc.collect()
    assert gone() is None
    storage = weakref.ref((tensor := torch.zeros(3)).untyped_storage())
    source = etstream.Source(tensor)
    del tensor
    assert source.read() == bytes(12)
    del source, storage


def test_a_file_that_has_changed_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    source = etstream.Source(path)
    assert source.read(3, 5) == CONTENT[3:8]
    path.write_bytes(CONTENT[::-1])
    for read in (source.read, lambda: bytes(source), lambda: source[5:9].read()):
        with pytest.raises(etstream.CorruptError, match="file: was changed or replaced"):
            read()


@pytest.mark.parametrize("make", ["cyclic", "deep"])
@pytest.mark.parametrize(
    "call",
    [
        etstream.Source,
        etstream.verify,
        lambda nested: etstream.pte(nested, io.BytesIO()),
        lambda nested: etstream.fat({"a": nested}, io.BytesIO()),
        lambda nested: etstream.Tensor("float32", [3], nested),
    ],
)
def test_lists_of_sources_have_an_end(make: str, call: Any) -> None:
    nested: list[Any] = [b"a"]
    if make == "cyclic":
        nested.append(nested)
    else:
        for _ in range(100_000):
            nested = [nested]
    with pytest.raises(etstream.InvalidArgumentError, match="lists that are nested more than 64 deep"):
        call(nested)


def test_sources_of_sources_have_an_end() -> None:
    source = etstream.Source(b"a")
    with pytest.raises(etstream.TooLargeError, match="nested more than 256 deep"):
        for _ in range(300):
            source = etstream.Source([source, b"x"])
    assert bytes(source[:3]) == b"axx"


@pytest.mark.parametrize("size", [0, 1 << 24])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_storage_that_was_resized_is_not_read(size: int, transposed: bool) -> None:
    elements = torch.arange(60_000.0).reshape(200, 300)
    value = elements.t() if transposed else elements
    plan = etstream.ptd({"a": value}, dry_run=True)
    assert bytes(plan) == bytes(etstream.ptd({"a": value.contiguous()}, dry_run=True))
    elements.untyped_storage().resize_(size)
    with pytest.raises(etstream.InvalidArgumentError, match="storage of a tensor was resized"):
        bytes(plan)


@pytest.mark.parametrize("size", [0, 1 << 24])
@pytest.mark.parametrize("part", [slice(None), slice(5, 9), slice(None, None, -2), (slice(None), 1)])
def test_an_array_that_was_resized_is_not_read(size: int, part: Any) -> None:
    elements = np.arange(60_000.0, dtype=np.float32).reshape(200, 300).copy()
    plan = etstream.ptd({"a": elements[part]}, dry_run=True)
    assert bytes(plan) == bytes(etstream.ptd({"a": elements[part].copy()}, dry_run=True))
    elements.resize(size, refcheck=False)
    with pytest.raises(etstream.InvalidArgumentError, match="array was resized"):
        bytes(plan)


def test_a_tensor_that_gets_other_data_keeps_what_was_planned() -> None:
    value = torch.arange(1000.0)
    plan = etstream.FilePlan.copy(value)
    before = bytes(plan)
    value.data = torch.zeros(3)
    assert bytes(plan) == before
