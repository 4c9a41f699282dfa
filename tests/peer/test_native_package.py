# SPDX-License-Identifier: BSD-3-Clause
"""Packages of the native backend (.ptn) are what ExecuTorch's write_ptn writes, and its reader takes aligned ones."""

from __future__ import annotations

import json
import random
import time
import zipfile
from pathlib import Path

import pytest
import torch
from command import Etstream, assert_same_bytes
from executorch.backends.native.serialization import graph_serialize
from executorch.backends.native.serialization.schema import Program
from executorch.exir._serialize._ptn import read_ptn, write_ptn
from executorch.exir.native import to_native
from rounds import ROUNDS
from safetensors.torch import save_file
from test_ptd import bytes_of, random_tensor

EPOCH = 1_700_000_001
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.float16,
    torch.bfloat16,
    torch.uint32,
    torch.int32,
    torch.float32,
    torch.uint64,
    torch.int64,
    torch.complex64,
    torch.float64,
]


class Tied(torch.nn.Module):
    """A model with two names for equal weights, which are one, and two of different shape, which are not."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 8)
        self.second.weight.data = self.first.weight.data.clone()
        self.bias = torch.nn.Parameter(torch.zeros(8))
        self.row = torch.nn.Parameter(torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)) + self.bias + self.row


class Counting(torch.nn.Module):
    """A model with state that begins with the bytes of a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(4))
        self.register_buffer("other_state", torch.zeros(4))
        self.register_buffer("constant", torch.zeros(4))
        self.register_buffer("same_constant", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(x)
        self.other_state.add_(self.state)
        return self.state + self.other_state + self.constant + self.same_constant


class Adding(torch.nn.Module):
    """A model without constants."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


@pytest.fixture(autouse=True)
def one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes both writers stamp with this time."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(EPOCH))


def sources(folder: Path, graph: bytes, constants: dict[str, torch.Tensor]) -> list[str | Path]:
    """Returns the arguments by which the command writes a package of these."""
    (folder / "program.ptg").write_bytes(graph)
    if not constants:
        return [folder / "program.ptg"]
    save_file({key: each.clone() for key, each in constants.items()}, folder / "constants.safetensors")
    return [folder / "program.ptg", "--constants", folder / "constants.safetensors"]


def check_same(
    etstream: Etstream,
    folder: Path,
    graph: bytes,
    constants: dict[str, torch.Tensor],
    mutable: frozenset[str] = frozenset(),
) -> Path:
    """Writes both packages, and compares them. Returns the path of ours."""
    write_ptn(str(folder / "theirs.ptn"), graph, constants, mutable_keys=mutable)
    given = [option for key in sorted(mutable) for option in ("--mutable", key)]
    outcome = etstream.attempt("ptn", *sources(folder, graph, constants), *given, "-o", folder / "ours.ptn")
    assert outcome.code == 0, outcome
    ours, theirs = (folder / "ours.ptn").read_bytes(), (folder / "theirs.ptn").read_bytes()
    assert_same_bytes(ours, theirs, "package")
    return folder / "ours.ptn"


@pytest.mark.parametrize("module", [Tied, Counting, Adding], ids=lambda module: module.__name__)
def test_exported_models_are_byte_identical(
    module: type[torch.nn.Module], etstream: Etstream, tmp_path: Path
) -> None:
    shape = (4,) if module is Counting else (2, 8)
    native = to_native(torch.export.export(module().eval(), (torch.ones(shape),)))
    native.save(str(tmp_path / "saved.ptn"))
    package = check_same(
        etstream,
        tmp_path,
        native._ptg,
        native._constants,
        frozenset({"state", "other_state"}) if module is Counting else frozenset(),
    )
    assert package.read_bytes() == (tmp_path / "saved.ptn").read_bytes()
    findings = etstream.verify(package)
    assert (findings.errors, findings.warnings) == ([], [])
    # The graph says which constants are mutable, so no option has to.
    outcome = etstream.attempt(
        "ptn", *sources(tmp_path, native._ptg, native._constants), "-o", tmp_path / "unsaid.ptn"
    )
    assert outcome.code == 0, outcome
    assert (tmp_path / "unsaid.ptn").read_bytes() == package.read_bytes()


def empty_graph() -> bytes:
    """Returns a graph that asks for nothing."""
    return bytes(graph_serialize._compile_to_bytes(Program(methods=[])))


def random_constants(seed: random.Random) -> dict[str, torch.Tensor]:
    letters = 'abAB.0_"\\\n\t\x01é€𝄞\x7f '
    out: dict[str, torch.Tensor] = {}
    for _ in range(seed.randrange(1, 40)):
        key = "".join(seed.choices(letters, k=seed.randrange(0, 12)))
        shape = [seed.choice([0, 1, 2, 3, 7]) for _ in range(seed.randrange(0, 5))]
        again = [one for one in out.values() if seed.random() < 0.1]
        out[key] = again[0].clone() if again else random_tensor(seed, seed.choice(DTYPES), shape)
    return out


@pytest.mark.parametrize("number", range(2 * ROUNDS))
def test_random_constants_are_byte_identical(number: int, etstream: Etstream, tmp_path: Path) -> None:
    seed = random.Random(number)
    constants = random_constants(seed)
    mutable = frozenset(key for key in constants if seed.random() < 0.2)
    package = check_same(etstream, tmp_path, empty_graph(), constants, mutable)
    assert etstream.verify(package).errors == []


def test_many_constants_are_byte_identical(etstream: Etstream, tmp_path: Path) -> None:
    constants = {f"layers.{i}.weight": torch.full((i % 7, 3), float(i % 50)) for i in range(3000)}
    check_same(etstream, tmp_path, empty_graph(), constants)


@pytest.mark.parametrize("alignment", ["2", "16", "64", "4096", "32768"])
def test_executorchs_reader_takes_aligned_packages(
    alignment: str, etstream: Etstream, tmp_path: Path
) -> None:
    seed = random.Random(alignment)
    constants = random_constants(seed) | {
        "page": random_tensor(seed, torch.uint8, [32768]),
        "half": random_tensor(seed, torch.float32, [4096]),
    }
    graph = empty_graph()
    output = tmp_path / "aligned.ptn"
    outcome = etstream.attempt("ptn", *sources(tmp_path, graph, constants), "--align", alignment, "-o", output)
    assert outcome.code == 0, outcome
    read_graph, read = read_ptn(str(output))
    assert read_graph == graph
    assert {key: bytes_of(value) for key, value in read.items()} == {
        key: bytes_of(value) for key, value in constants.items()
    }
    with zipfile.ZipFile(output) as archive:
        assert archive.testzip() is None
    # Constants that fill whole units lie where they can be mapped.
    parts = etstream.inspect(output)["parts"]
    unit = int(alignment)
    aligned = [part for part in parts if part["size"] % unit == 0 or part["path"] == "graph"]
    assert len(aligned) >= 2
    assert [part for part in aligned if part["offset"] % unit] == []
    assert etstream.verify(output).errors == []


def test_what_others_write_is_read(etstream: Etstream, tmp_path: Path) -> None:
    constants = {"a": torch.ones(2), "b": torch.ones(2), "c": torch.arange(5)}
    write_ptn(str(tmp_path / "theirs.ptn"), empty_graph(), constants)
    for key, value in constants.items():
        assert etstream.extract(tmp_path / "theirs.ptn", f"named/{key}") == bytes_of(value)
    assert etstream.extract(tmp_path / "theirs.ptn", "graph") == empty_graph()
    # This archive is streamed, with sizes and checksums behind each member.
    with zipfile.ZipFile(tmp_path / "theirs.ptn") as theirs:
        with (tmp_path / "streamed.ptn").open("wb") as raw, zipfile.ZipFile(_Unseekable(raw), "w") as archive:
            for name in theirs.namelist():
                with archive.open(name, "w", force_zip64=name == "program.ptg") as member:
                    member.write(theirs.read(name))
    assert etstream.verify(tmp_path / "streamed.ptn").errors == []
    code, difference = etstream.diff(tmp_path / "theirs.ptn", tmp_path / "streamed.ptn")
    assert (code, difference["same_content"]) == (1, True), json.dumps(difference)


class _Unseekable:
    """A file that can't go back."""

    def __init__(self, raw: object) -> None:
        self.write = raw.write  # type: ignore[attr-defined]
        self.flush = raw.flush  # type: ignore[attr-defined]
