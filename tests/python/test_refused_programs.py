# SPDX-License-Identifier: BSD-3-Clause
"""Tests programs that ExecuTorch's runtime refuses to load, and that verify says so; and programs that it accepts."""

from __future__ import annotations

from pathlib import Path

import etstream
import pytest
import torch
from executorch.exir import to_edge
from executorch.exir._serialize._program import PTEFile, deserialize_pte_binary, serialize_pte_binary
from executorch.extension.pybindings.portable_lib import _load_for_executorch, _load_for_executorch_from_buffer


class Plus(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class WithNothing(torch.nn.Module):
    """A model whose constants are all empty."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("none", torch.zeros(1, 0, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.none], 1)


def exported(model: torch.nn.Module, *inputs: torch.Tensor) -> bytes:
    return bytes(to_edge(torch.export.export(model.eval(), inputs)).to_executorch().buffer)


def errors_of(*files: Path) -> str:
    return "\n".join(etstream.verify(*files).errors)


def kept_in(program: Path, folder: Path, inputs: list[torch.Tensor]) -> tuple[Path, Path]:
    """Writes a bundle and a fat container of the program."""
    bundle, fat = folder / "program.bpte", folder / "program.fat"
    etstream.bundle(program, {"forward": [etstream.TestCase(inputs, [])]}, bundle, unchecked=True, sync=False)
    etstream.fat({"cpu": program}, fat, sync=False)
    return bundle, fat


def test_a_later_schema_version_is_an_error(tmp_path: Path) -> None:
    x = torch.ones(2)
    file = deserialize_pte_binary(exported(Plus(), x))
    program = tmp_path / "later.pte"
    for version in (0, 1):
        file.program.version = version
        program.write_bytes(bytes(serialize_pte_binary(PTEFile(file.program))))
        said = [errors_of(each) for each in (program, *kept_in(program, tmp_path, [x]))]
        if version == 0:
            assert said == [""] * 3
            assert torch.equal(_load_for_executorch(str(program)).run_method("forward", (x,))[0], x + 1)
            continue
        words = "expected schema version 0, the latest that ExecuTorch 1.5 loads (0x23), found 1"
        assert all(words in each for each in said)
        with pytest.raises(RuntimeError, match="0x23"):
            _load_for_executorch(str(program)).run_method("forward", (x,))
        with pytest.raises(RuntimeError, match="0x23"):
            _load_for_executorch_from_buffer(program.read_bytes()).run_method("forward", (x,))


def test_constants_that_are_all_empty_are_an_error_until_they_are_moved_out(tmp_path: Path) -> None:
    x = torch.randn(1, 3, 4)
    program = tmp_path / "empty.pte"
    program.write_bytes(exported(WithNothing(), x))
    bundle, fat = kept_in(program, tmp_path, [x])
    assert "found 1 constant, all of them empty" in errors_of(program)
    assert "found 1 constant, all of them empty" in errors_of(fat)
    with pytest.raises(RuntimeError, match="0x23"):
        _load_for_executorch(str(program)).run_method("forward", (x,))
    # The runtime has a bundle's program in memory, where it finds the constants.
    assert errors_of(bundle) == ""
    assert any("all of them empty" in warning for warning in etstream.verify(bundle).warnings)
    assert torch.equal(_load_for_executorch_from_buffer(program.read_bytes()).run_method("forward", (x,))[0], x)
    moved, weights = tmp_path / "moved.pte", tmp_path / "empty.ptd"
    etstream.pte(program, moved, constants_to=weights, sync=False)
    assert errors_of(moved, weights) == ""
    assert torch.equal(_load_for_executorch(str(moved), data_path=str(weights)).run_method("forward", (x,))[0], x)


def test_a_program_whose_constants_have_bytes_is_accepted(tmp_path: Path) -> None:
    program = tmp_path / "linear.pte"
    program.write_bytes(exported(torch.nn.Linear(4, 2), torch.randn(1, 4)))
    assert errors_of(program) == ""


class Rows(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


@pytest.mark.parametrize("shape", [(3, 16), (6, 8), (2, 8), (7, 8), (48,), (1, 6, 8)])
def test_a_case_is_refused_beyond_the_bound_of_a_dimension(shape: tuple[int, ...], tmp_path: Path) -> None:
    rows = torch.export.Dim("rows", min=2, max=6)
    graph = torch.export.export(Rows().eval(), (torch.randn(4, 8),), dynamic_shapes=({0: rows},))
    program = tmp_path / "rows.pte"
    program.write_bytes(bytes(to_edge(graph).to_executorch().buffer))
    x = torch.ones(*shape)
    fits = shape in ((6, 8), (2, 8))
    method = _load_for_executorch(str(program))
    if fits:
        method.run_method("forward", (x,))
    else:
        with pytest.raises(RuntimeError, match="0x1[02]"):
            method.run_method("forward", (x,))
    for case in (etstream.TestCase([x], []), etstream.TestCase([torch.ones(6, 8)], [x])):
        etstream.bundle(program, {"forward": [case]}, tmp_path / "rows.bpte", unchecked=True, sync=False)
        said = errors_of(tmp_path / "rows.bpte")
        assert (said == "") == fits
        if len(shape) == 2 and not fits:
            assert f"has shape {list(shape)}, expected at most [6, 8]: {max(shape)} is over the bound" in said or (
                "7 is over the bound of dimension 0" in said
            )
        elif not fits:
            assert f"has shape {list(shape)}, expected at most [6, 8]: it has {len(shape)} dimension" in said
