# SPDX-License-Identifier: BSD-3-Clause
"""Lays out test tensors in bundles so that an element is the one at its index, also on ExecuTorch's runtime."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import numpy
import pytest
import torch
from etstream import executorch as adaptors
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program import serialize as serializer
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.exir import ExecutorchProgramManager, to_edge

ORDER = [0, 2, 3, 1]
SHAPE = (2, 3, 5, 6)


class Export:
    """A convolution of one layout, with an input and the output of eager torch for it."""

    def __init__(self, memory_format: torch.memory_format, folder: Path) -> None:
        torch.manual_seed(0)
        model = torch.nn.Conv2d(3, 4, 3, padding=1).eval().requires_grad_(False).to(memory_format=memory_format)
        self.input = torch.randn(*SHAPE).to(memory_format=memory_format)
        self.output = model(self.input)
        self.manager: ExecutorchProgramManager = to_edge(torch.export.export(model, (self.input,))).to_executorch()
        self.program = folder / "conv.pte"
        self.program.write_bytes(self.manager.buffer)

    def check(self, bundle: Path) -> etstream.Tensor:
        """Checks that the runtime gives the outputs that the bundle expects, and returns its input, that of the
        model."""
        with adaptors.open_bundle(bundle) as opened:
            runs = opened.verify_all(rtol=1e-4, atol=1e-4)
        assert runs, str(runs)
        assert etstream.verify(bundle)
        (suite,) = etstream.BundledProgramFile(bundle).suites
        given = suite.test_cases[0].inputs[0]
        assert isinstance(given, etstream.Tensor)
        assert numpy.array_equal(given.numpy(), self.input.numpy())
        return given


@pytest.fixture(scope="module")
def channels_last(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return Export(torch.channels_last, tmp_path_factory.mktemp("channels_last"))


@pytest.fixture(scope="module")
def contiguous(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return Export(torch.contiguous_format, tmp_path_factory.mktemp("contiguous"))


def _reversed(value: torch.Tensor) -> Any:
    return numpy.ascontiguousarray(value.numpy()[::-1, :, ::-1])[::-1, :, ::-1]


def _every_other(value: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros(*value.shape[:3], 2 * value.shape[3])
    wide[..., ::2] = value
    return wide[..., ::2]


ARRAYS: dict[str, Callable[[torch.Tensor], Any]] = {
    "torch, contiguous": lambda value: value.contiguous(),
    "torch, channels last": lambda value: value.to(memory_format=torch.channels_last),
    "torch, transposed": lambda value: value.transpose(0, 3).contiguous().transpose(0, 3),
    "torch, every other": _every_other,
    "torch, negated": lambda value: torch.complex(value, -value).conj().imag,
    "NumPy, contiguous": lambda value: value.contiguous().numpy(),
    "NumPy, channels last": lambda value: value.to(memory_format=torch.channels_last).numpy(),
    "NumPy, Fortran order": lambda value: numpy.asfortranarray(value.numpy()),
    "NumPy, reversed": _reversed,
    "NumPy, big-endian": lambda value: value.numpy().astype(">f4"),
    "Tensor": lambda value: etstream.Tensor("float32", list(value.shape), value.contiguous()),
    "Tensor with an order": lambda value: etstream.Tensor(
        "float32", list(value.shape), value.permute(ORDER).contiguous(), dim_order=ORDER
    ),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_any_strides_are_laid_out_as_the_method_asks(
    kind: str, channels_last: Export, tmp_path: Path
) -> None:
    case = etstream.TestCase([ARRAYS[kind](channels_last.input)], [ARRAYS[kind](channels_last.output)])
    path = tmp_path / "conv.bpte"
    etstream.bundle(channels_last.program, {"forward": [case]}, path, sync=False)
    assert channels_last.check(path).dim_order == ORDER


@pytest.mark.parametrize("kind", list(ARRAYS)[:-1])
def test_arrays_of_any_strides_give_the_bundle_of_contiguous_ones(
    kind: str, contiguous: Export, tmp_path: Path
) -> None:
    case = MethodTestCase((contiguous.input,), (contiguous.output,))
    right = serializer.serialize_from_bundled_program_to_flatbuffer(
        BundledProgram(contiguous.manager, [MethodTestSuite("forward", [case])])
    )
    values = [ARRAYS[kind](contiguous.input)], [ARRAYS[kind](contiguous.output)]
    assert bytes(etstream.bundle(contiguous.program, {"forward": [etstream.TestCase(*values)]}, dry_run=True)) == right


def test_a_broadcast_array_is_read_from_its_one_row() -> None:
    row = torch.arange(4.0)
    for array in (row.expand(3, 4), numpy.broadcast_to(row.numpy(), (3, 4))):
        (tensor,) = etstream.TestCase([array]).inputs
        assert isinstance(tensor, etstream.Tensor)
        assert numpy.array_equal(tensor.numpy(), numpy.tile(row.numpy(), (3, 1)))


@pytest.mark.parametrize("order", [None, ORDER])
@pytest.mark.parametrize("kind", ["npy", "Fortran npy", "safetensors"])
def test_files_are_laid_out_as_the_method_asks(
    kind: str, order: list[int] | None, channels_last: Export, tmp_path: Path
) -> None:
    def stored(name: str, value: torch.Tensor) -> dict[str, Any]:
        more = {} if order is None else {"dim_order": order}
        if kind == "safetensors":
            from safetensors.torch import save_file

            save_file({"x": value.contiguous()}, tmp_path / f"{name}.safetensors")
            return {"safetensors": f"{name}.safetensors", "name": "x", **more}
        array = value.contiguous().numpy()
        numpy.save(tmp_path / f"{name}.npy", numpy.asfortranarray(array) if kind == "Fortran npy" else array)
        return {"npy": f"{name}.npy", **more}

    cases = {"inputs": [stored("x", channels_last.input)], "expected_outputs": [stored("y", channels_last.output)]}
    (tmp_path / "cases.json").write_text(json.dumps({"forward": [cases]}))
    path = tmp_path / "conv.bpte"
    etstream.bundle(channels_last.program, tmp_path / "cases.json", path, sync=False)
    assert channels_last.check(path).dim_order == ORDER


def test_executorchs_suites_are_laid_out_as_the_method_asks(channels_last: Export, tmp_path: Path) -> None:
    """Saves an input that ExecuTorch itself writes as contiguous, although it is channels-last; its runtime then copies
    it as it lies."""
    suites = [MethodTestSuite("forward", [MethodTestCase((channels_last.input,), (channels_last.output,))])]
    bundled = BundledProgram(channels_last.manager, suites)
    path = tmp_path / "conv.bpte"
    adaptors.save_bundled_program(bundled, path, sync=False)
    assert channels_last.check(path).dim_order == ORDER
    with adaptors.install():
        assert serializer.serialize_from_bundled_program_to_flatbuffer(bundled) == path.read_bytes()


class Plus(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def test_executorchs_suites_are_sorted_as_executorch_sorts_them(tmp_path: Path) -> None:
    x = torch.ones(2)
    exported = {name: torch.export.export(Plus(), (x,)) for name in ("zeta", "alpha")}
    manager = to_edge(exported).to_executorch()
    suites = [MethodTestSuite(name, [MethodTestCase((x,), (x + 1,))]) for name in exported]
    right = serializer.serialize_from_bundled_program_to_flatbuffer(BundledProgram(manager, suites))
    assert bytes(etstream.bundle(manager.buffer, suites, dry_run=True)) == right
    assert bytes(etstream.bundle(manager.buffer, iter(suites), dry_run=True)) == right
    assert bytes(etstream.bundle(manager.buffer, {s.method_name: s.test_cases for s in suites}, dry_run=True)) == right
    ours = [etstream.TestSuite(suite.method_name, suite.test_cases) for suite in suites]
    plan = etstream.bundle(manager.buffer, ours, dry_run=True)  # in the order given
    plan.write(tmp_path / "ours.bpte", sync=False)
    names = [suite.method_name for suite in etstream.BundledProgramFile(tmp_path / "ours.bpte").suites]
    assert names == ["zeta", "alpha"]
    assert bytes(etstream.bundle(manager.buffer, [ours[0], suites[1]], dry_run=True)) == right
