# SPDX-License-Identifier: BSD-3-Clause
"""Equal weights that ExecuTorch's exporter writes as one segment are read, written again and converted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from command import Etstream
from executorch.exir import ExecutorchBackendConfig, to_edge
from safetensors.torch import load_file

LAYERS, WIDTH = 24, 512


class Net(torch.nn.Module):
    """A model of layers that are still zero."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS))
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Returns the program, and the tensor data with its weights."""
    folder = tmp_path_factory.mktemp("shared")
    net = Net().eval().requires_grad_(False)
    edge = to_edge(torch.export.export(net, (torch.ones(1, WIDTH),)))
    program = edge.to_executorch(ExecutorchBackendConfig(external_constants=True))
    (folder / "net.pte").write_bytes(program.buffer)
    program.write_tensor_data_to_file(str(folder))
    (weights,) = folder.glob("*.ptd")
    assert weights.stat().st_size < 2 * 4 * WIDTH * WIDTH
    return folder / "net.pte", weights


def test_what_executorch_wrote_is_taken(etstream: Etstream, tmp_path: Path, exported: tuple[Path, Path]) -> None:
    program, weights = exported
    assert etstream.attempt("verify", program, weights).code == 0
    again = etstream.ptd([weights], tmp_path / "again.ptd")
    assert len(again) == weights.stat().st_size
    assert etstream.ptd([tmp_path / "again.ptd"], tmp_path / "third.ptd") == again
    assert etstream.extract(weights, "named/layers.3.weight") == bytes(4 * WIDTH * WIDTH)
    inside = etstream.pte(program, tmp_path / "inside.pte", "--constants-from", str(weights))
    assert len(inside) < 2 * 4 * WIDTH * WIDTH


def test_what_would_be_many_times_larger_needs_a_word(
    etstream: Etstream, tmp_path: Path, exported: tuple[Path, Path]
) -> None:
    weights, out = exported[1], tmp_path / "out.safetensors"
    size = LAYERS * 4 * WIDTH * WIDTH
    outcome = etstream.attempt("ptd", weights, "--to", "safetensors", "-o", out)
    assert outcome.code == 1 and not out.exists()
    assert "found 24.0 MiB" in outcome.stderr and "--max-disk 25M allows it" in outcome.stderr
    etstream.ptd([weights], out, "--to", "safetensors", "--max-disk", "25M")
    loaded = load_file(out)
    assert len(loaded) == LAYERS and sum(each.nbytes for each in loaded.values()) == size
