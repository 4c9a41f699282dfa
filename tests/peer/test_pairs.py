# SPDX-License-Identifier: BSD-3-Clause
"""Shows that `verify` says of a program and its weights what ExecuTorch's runtime makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import make_golden
import pytest
import torch
from command import Etstream, Findings
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
from executorch.exir.schema import ScalarType
from executorch.exir.tensor_layout import TensorLayout
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from executorch.extension.pybindings import portable_lib
from executorch.runtime import Runtime
from executorch_judge import Task, judge

TABLE = "table.weight"
MATRIX = "linear.weight"


@dataclass(frozen=True)
class Weights:
    """A tensor data file, taken apart."""

    buffers: list[bytes]
    entries: dict[str, DataEntry]

    @staticmethod
    def read(file: Path) -> Weights:
        payload = FlatTensorSerializer().deserialize(Cord(file.read_bytes()))
        return Weights([bytes(buffer) for buffer in payload.buffers], dict(payload.named_data))

    def write(self, file: Path) -> Path:
        payload = DataPayload(self.buffers, self.entries)
        file.write_bytes(bytes(FlatTensorSerializer().serialize(payload)))
        return file

    def without(self, key: str) -> Weights:
        return replace(self, entries={k: entry for k, entry in self.entries.items() if k != key})

    def renamed(self, key: str, name: str) -> Weights:
        return self.without(key).added(name, self.entries[key])

    def added(self, key: str, entry: DataEntry) -> Weights:
        return replace(self, entries={**self.entries, key: entry})

    def relaid(self, key: str, **layout: object) -> Weights:
        entry = self.entries[key]
        assert entry.tensor_layout is not None
        return self.added(key, replace(entry, tensor_layout=replace(entry.tensor_layout, **layout)))

    def with_bytes(self, key: str, content: bytes) -> Weights:
        buffers = list(self.buffers)
        buffers[self.entries[key].buffer_index] = content
        return replace(self, buffers=buffers)

    def key_of_size(self, size: int) -> str:
        (key,) = [k for k, e in self.entries.items() if len(self.buffers[e.buffer_index]) == size]
        return key


@dataclass(frozen=True)
class Pair:
    """A program without its constants, and the file of these."""

    program: Path
    file: Path
    weights: Weights


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Exports a program as ExecuTorch does."""
    folder = tmp_path_factory.mktemp("portable")
    graph = torch.export.export(make_golden.LookUp(), make_golden.LookUp.INPUTS)
    manager = to_edge(graph).to_executorch(ExecutorchBackendConfig(external_constants=True))
    program = folder / "portable.pte"
    program.write_bytes(manager.buffer)
    manager.write_tensor_data_to_file(str(folder))
    (file,) = folder.glob("*.ptd")
    return Pair(program, file, Weights.read(file))


@pytest.fixture(scope="module")
def whole() -> Path:
    """Returns a program that is delegated to XNNPACK in part, with all constants in it."""
    return make_golden.HERE / make_golden.delegated_program.__name__ / "program.pte"


@pytest.fixture(scope="module")
def delegated(whole: Path, etstream: Etstream, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Returns the same program, with constants moved out of it."""
    folder = tmp_path_factory.mktemp("delegated")
    program, file = folder / "delegated.pte", folder / "delegated.ptd"
    etstream.pte(whole, program, "--constants-to", str(file))
    return Pair(program, file, Weights.read(file))


def outputs(program: Path, weights: Path | None) -> list[torch.Tensor]:
    loaded = Runtime.get().load_program(program, data_path=weights)
    return list(loaded.load_method("forward").execute(list(make_golden.LookUp.INPUTS)))


def load_in_module(program: Path, weights: Path) -> None:
    """Loads a program by ExecuTorch's Module, as in C++, which merges all tensor data files that it is given."""
    module = portable_lib._load_for_executorch(str(program), data_path=str(weights))
    module.method_meta("forward")


def are_right(found: list[torch.Tensor]) -> bool:
    wanted = make_golden.LookUp()(*make_golden.LookUp.INPUTS)
    return all(torch.allclose(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", ["portable", "delegated"])
def test_a_pair_that_runs_is_sound(
    name: str, etstream: Etstream, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(name)
    assert etstream.verify(pair.program, pair.file) == Findings([], [])
    assert are_right(outputs(pair.program, pair.file))
    with pytest.raises(RuntimeError, match="error: 0x"):
        outputs(pair.program, None)


@dataclass(frozen=True)
class Misfit:
    """A change to weights, the end of the error that ExecuTorch then gives, and the words of `verify`."""

    change: Callable[[Weights], Weights]
    code: str
    said: str


PORTABLE_MISFITS = {
    "renamed": Misfit(lambda w: w.renamed(TABLE, "other"), "20", "'table.weight', float32 [5, 3], in a tensor data file"),
    "dropped": Misfit(lambda w: w.without(TABLE), "20", "expected tensor 'table.weight'"),
    "retyped": Misfit(
        lambda w: w.relaid(TABLE, scalar_type=ScalarType.INT), "24", "found int32 [5, 3]"
    ),
    "reshaped": Misfit(lambda w: w.relaid(TABLE, sizes=[3, 5]), "24", "found float32 [3, 5]"),
    "flat": Misfit(
        lambda w: w.added(
            TABLE,
            replace(w.entries[TABLE], tensor_layout=TensorLayout(ScalarType.FLOAT, [15], [0])),
        ),
        "24",
        "found float32 [15]",
    ),
    "reordered": Misfit(
        lambda w: w.relaid(TABLE, dim_order=[1, 0]), "24", "with dim_order [1, 0]"
    ),
}


@pytest.mark.parametrize("name", PORTABLE_MISFITS)
def test_a_tensor_that_does_not_fit_is_named_and_not_loaded(
    name: str, portable: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    misfit = PORTABLE_MISFITS[name]
    file = misfit.change(portable.weights).write(tmp_path / "w.ptd")
    (error,) = etstream.verify(portable.program, file).errors
    assert misfit.said in error and TABLE in error
    assert f"(0x{misfit.code})" in error
    with pytest.raises(RuntimeError, match=f"error: 0x:{misfit.code}$"):
        outputs(portable.program, file)


def test_a_tensor_without_a_layout_is_named_and_crashes(
    portable: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    entry = replace(portable.weights.entries[TABLE], tensor_layout=None)
    file = portable.weights.added(TABLE, entry).write(tmp_path / "w.ptd")
    (error,) = etstream.verify(portable.program, file).errors
    assert "found data without a layout: ExecuTorch 1.5.1 ends in a fault" in error
    sound, faulty = judge(
        [Task(str(portable.program), weights=str(w), load_methods=True) for w in (portable.file, file)]
    )
    assert sound.accepted
    assert faulty.crashed and faulty.error == "SIGSEGV"


def test_what_nothing_asks_for_is_a_warning_and_runs(
    portable: Pair, delegated: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    for pair in (portable, delegated):
        extra = pair.weights.added("more", next(iter(pair.weights.entries.values())))
        file = extra.write(tmp_path / "w.ptd")
        findings = etstream.verify(pair.program, file)
        assert findings.errors == []
        assert findings.warnings == [f"{file}: key 'more': {pair.program} does not ask for it"]
        assert are_right(outputs(pair.program, file))


def test_a_key_in_two_files_is_an_error_and_so_are_files_without_keys(
    portable: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    one = portable.weights.without(TABLE).write(tmp_path / "one.ptd")
    other = Weights(portable.weights.buffers, {TABLE: portable.weights.entries[TABLE]})
    two = other.write(tmp_path / "two.ptd")
    assert etstream.verify(portable.program, one, two) == Findings([], [])
    (error,) = etstream.verify(portable.program, portable.file, two).errors
    assert f"{two}: key '{TABLE}': expected in one file alone, found in {portable.file} too" in error
    assert "(0x12)" in error
    # Python takes one file. Module treats two files with a common key as one file that has the key twice.
    both = portable.weights.added("table.weighx", portable.weights.entries[TABLE])
    both.write(tmp_path / "both.ptd")
    content = (tmp_path / "both.ptd").read_bytes()
    (tmp_path / "both.ptd").write_bytes(content.replace(b"table.weighx", TABLE.encode()))
    empty = Weights([], {}).write(tmp_path / "empty.ptd")
    assert "expected each key once" in etstream.verify(portable.program, tmp_path / "both.ptd").errors[0]
    assert "expected a key in one of the files" in etstream.verify(portable.program, empty).errors[0]
    load_in_module(portable.program, portable.file)
    for file in (tmp_path / "both.ptd", empty):
        with pytest.raises(RuntimeError, match="0x12$"):
            load_in_module(portable.program, file)


@pytest.mark.parametrize("change", ["renamed", "dropped"])
def test_a_constant_that_xnnpack_misses_is_named_and_not_loaded(
    change: str, delegated: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    key = delegated.weights.key_of_size(48)
    weights = delegated.weights
    changed = weights.without(key) if change == "dropped" else weights.renamed(key, "other")
    file = changed.write(tmp_path / "w.ptd")
    (error,) = etstream.verify(delegated.program, file).errors
    assert f"method 'forward', delegate 0 (XnnpackBackend): expected named data '{key}' of 48 bytes" in error
    assert "(0x20)" in error
    with pytest.raises(RuntimeError, match="error: 0x:20$"):
        outputs(delegated.program, file)


def test_a_constant_of_xnnpack_that_is_too_short_is_named_and_read_all_the_same(
    delegated: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    key = delegated.weights.key_of_size(48)
    file = delegated.weights.with_bytes(key, bytes(12)).write(tmp_path / "w.ptd")
    (error,) = etstream.verify(delegated.program, file).errors
    assert "expected the 48 bytes that method 'forward', delegate 0 (XnnpackBackend) reads, found 12" in error
    assert not are_right(outputs(delegated.program, file))


def test_of_data_in_both_executorch_takes_the_files_and_verify_says_so(
    whole: Path, delegated: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    named = delegated.weights.without(delegated.weights.key_of_size(60))
    same = named.write(tmp_path / "same.ptd")
    findings = etstream.verify(whole, same)
    assert findings.errors == []
    assert sorted(findings.warnings) == sorted(
        f"{same}: key '{key}': {whole} has the same data under it" for key in named.entries
    )
    assert are_right(outputs(whole, same))
    key = named.key_of_size(48)
    other = named.with_bytes(key, bytes(48)).write(tmp_path / "other.ptd")
    (error,) = etstream.verify(whole, other).errors
    assert error.startswith(f"{other}: key '{key}': {whole} has other data under it")
    assert not are_right(outputs(whole, other))
    assert are_right(outputs(whole, None))


def test_a_bundle_s_program_is_checked_too(
    delegated: Pair, portable: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    cases = tmp_path / "cases.json"
    cases.write_text('{"forward": []}')
    for pair, other in ((delegated, portable), (portable, delegated)):
        bundle = tmp_path / "w.bpte"
        etstream.bundle(pair.program, cases, bundle)
        assert etstream.verify(bundle, pair.file).errors == []
        assert len(etstream.verify(bundle, other.file).errors) == 4  # that the file is of another version, and each key


@pytest.mark.parametrize(
    ("offset", "code", "said"),
    [
        (5, "30", "expected the identifier of XNNPACK's graph"),
        (17, "12", "expected a graph inside"),
        (21, "12", "expected constants behind the graph"),
        (35, "30", "offset 0: expected"),
    ],
)
def test_a_payload_that_xnnpack_can_not_load_is_an_error(
    offset: int, code: str, said: str, delegated: Pair, etstream: Etstream, tmp_path: Path
) -> None:
    content = bytearray(delegated.program.read_bytes())
    (part,) = [p for p in etstream.inspect(delegated.program)["parts"] if "delegate" in p["what"]]
    content[part["offset"] + offset] ^= 0x7F
    program = tmp_path / "damaged.pte"
    program.write_bytes(content)
    (error,) = etstream.verify(program, delegated.file).errors
    assert error.startswith(f"{program}: method 'forward', delegate 0 (XnnpackBackend): offset ")
    assert said in error
    with pytest.raises(RuntimeError, match=f"error: 0x:{code}$"):
        outputs(program, delegated.file)
