# SPDX-License-Identifier: BSD-3-Clause
"""Runs packed programs, bundles, weights and fat containers, which give the outputs of the plain ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import executorch.kernels.quantized  # noqa: F401 what its operators are in a program
import pytest
import torch
from conftest import EXAMPLES
from etstream.executorch import load, load_fat, open_bundle, save_bundled_program
from executorch.exir import ExecutorchBackendConfig, to_edge
from models import CachedModel

MODELS = ("example", "llama", "mobilenet_v2_xnnpack_inline", "two_methods")


def packed(path: Path, folder: Path) -> Path:
    """Packs a file, and returns the path."""
    out = folder / f"{path.name}.etz"
    etstream.pack(path, out, sync=False)
    return out


def outputs(program: Any, weights: Any, cases: dict[str, list[Any]]) -> list[torch.Tensor]:
    with load(program, weights) as loaded:
        assert sorted(loaded.methods) == sorted(cases)
        return [
            output.clone()
            for method, group in cases.items()
            for case in group
            for output in loaded.run([*case.inputs], method)
        ]


def assert_equal(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected) > 0
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_packed_programs_and_bundles_give_the_outputs_of_the_plain_program(
    name: str, model: Callable[[str], CachedModel], tmp_path: Path
) -> None:
    subject = model(name)
    cases = subject.cases()
    expected = outputs(subject.program, None, cases)
    assert_equal(outputs(packed(subject.program, tmp_path), None, cases), expected)
    bundle = subject.folder / "expected.bpte"
    etstream.convert(bundle, tmp_path / "segmented.bpte", to="segmented", sync=False)
    for whole in (bundle, tmp_path / "segmented.bpte"):
        assert_equal(outputs(whole, None, cases), expected)
        assert_equal(outputs(packed(whole, tmp_path), None, cases), expected)
        with open_bundle(packed(whole, tmp_path)) as opened:
            assert opened.verify_all(rtol=1e-3, atol=1e-4)


class Layers(torch.nn.Module):
    """Weights of 6 MiB, in tensors that pieces of packed files cut."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(700, 700) for _ in range(3)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


X = torch.linspace(-1, 1, 700).reshape(1, 700)


class Thin:
    """A program, and its weights in another file."""

    def __init__(self, folder: Path) -> None:
        exported = torch.export.export(Layers().eval(), (X,))
        made = to_edge(exported).to_executorch(ExecutorchBackendConfig(external_constants=True))
        self.manager = made
        self.program = folder / "thin.pte"
        etstream.executorch.save_program(made, self.program, sync=False)
        (self.weights,) = map(Path, etstream.executorch.save_tensor_data(made, folder, sync=False))
        with load(self.program, self.weights) as loaded:
            (self.output,) = (one.clone() for one in loaded.run([X]))

    def gives_the_output(self, program: Any, weights: Any) -> bool:
        with load(program, weights) as loaded:
            return torch.equal(loaded.run([X])[0], self.output)


@pytest.fixture(scope="module")
def thin(tmp_path_factory: pytest.TempPathFactory) -> Thin:
    return Thin(tmp_path_factory.mktemp("thin"))


def test_packed_weights_give_the_outputs_of_plain_ones(
    thin: Thin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    torch.testing.assert_close(thin.output, Layers().eval()(X))
    program, weights = packed(thin.program, tmp_path), packed(thin.weights, tmp_path)
    shards = etstream.ptd_shards(weights, tmp_path / "shards.ptd", split_max_size="3M", sync=False)
    assert len(shards) > 1
    shards_packed = [packed(Path(one), tmp_path) for one in shards]
    for given in (weights, weights.read_bytes(), thin.weights.read_bytes(), shards[0], shards_packed):
        assert thin.gives_the_output(program, given)
        assert thin.gives_the_output(thin.program, given)
        assert os.listdir(tmp_path / "temporary") == []
    bundle = tmp_path / "thin.bpte.etz"
    cases = {"forward": [etstream.TestCase([X], [thin.output])]}
    etstream.bundle(program, cases, bundle, sync=False)
    for given in (weights, shards_packed):
        with open_bundle(bundle, weights=given) as opened:
            assert opened.verify_all(rtol=0, atol=0)
    etstream.fat({"cpu": program}, tmp_path / "thin.fat.etz", sync=False)
    with load_fat(tmp_path / "thin.fat.etz", weights=weights) as payload:
        assert torch.equal(payload.run([X])[0], thin.output)


def test_a_program_is_loaded_from_memory_and_open_files(model: Callable[[str], CachedModel], tmp_path: Path) -> None:
    subject = model("example")
    cases = subject.cases()
    expected = outputs(subject.program, None, cases)
    path = packed(subject.program, tmp_path)
    with open(path, "rb") as file:
        for given in (path.read_bytes(), file, etstream.Source(path), subject.program.read_bytes()):
            assert_equal(outputs(given, None, cases), expected)


def test_files_may_go_once_a_packed_program_is_loaded(thin: Thin, tmp_path: Path) -> None:
    program, weights = packed(thin.program, tmp_path), packed(thin.weights, tmp_path)
    with load(program, weights) as loaded:
        program.unlink()
        weights.unlink()
        assert torch.equal(loaded.run([X])[0], thin.output)
    with pytest.raises(ValueError, match="closed"):
        loaded.run([X])


def test_what_cannot_be_loaded_is_refused_by_its_name(thin: Thin, tmp_path: Path) -> None:
    for whole, kind in ((thin.weights, "tensor data"), (EXAMPLES / "cases.json", "JSON")):
        for path in (whole, packed(whole, tmp_path)):
            with pytest.raises(etstream.UnsupportedError, match=f"{path.name}: .*{kind}"):
                load(path)
    damaged = packed(thin.weights, tmp_path)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(etstream.CorruptError, match=rf"{damaged.name}: offset \d+: expected"):
        load(thin.program, damaged)
    with pytest.raises(etstream.ExecutionError, match=r"thin\.pte: .*weights= takes"):
        load(thin.program)
    with load(packed(thin.program, tmp_path), thin.weights) as loaded:
        with pytest.raises(etstream.NoSuchNameError, match=r"thin\.pte\.etz has no method 'other'; methods: 'forward'"):
            loaded.run([X], "other")
        with pytest.raises(etstream.ExecutionError, match=r"input 0 has shape \[1, 2\]"):
            loaded.run([torch.ones(1, 2)])


def test_executorchs_bundled_programs_are_saved_packed(thin: Thin, tmp_path: Path) -> None:
    cases = {"forward": [etstream.TestCase([X], [thin.output])]}
    for name in ("out.bpte", "out.bpte.etz"):
        save_bundled_program((thin.manager, cases), tmp_path / name, sync=False)
    assert (tmp_path / "out.bpte.etz").stat().st_size < (tmp_path / "out.bpte").stat().st_size
    etstream.unpack(tmp_path / "out.bpte.etz", tmp_path / "unpacked.bpte", sync=False)
    assert (tmp_path / "unpacked.bpte").read_bytes() == (tmp_path / "out.bpte").read_bytes()
