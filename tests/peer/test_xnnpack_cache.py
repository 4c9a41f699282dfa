# SPDX-License-Identifier: BSD-3-Clause
"""The weight caches that ExecuTorch's XNNPACK backend writes are read, and hold what its programs look up."""

from __future__ import annotations

import functools
import json
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make_golden
import pytest
import torch
from command import Etstream
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

GOLDEN = make_golden.HERE / "xnnpack_cache" / "cache.xpwc"
IMAGE = torch.linspace(-1, 1, 8 * 12 * 12).reshape(1, 8, 12, 12)


class Net(torch.nn.Module):
    """A module with weights of each kind that XNNPACK packs, with and without a bias, and of one that it does not."""

    def __init__(self) -> None:
        super().__init__()
        self.whole, self.by_channel = torch.nn.Conv2d(8, 16, 3), torch.nn.Conv2d(16, 16, 3, groups=16)
        self.transposed, self.slope = torch.nn.ConvTranspose2d(16, 8, 2, bias=False), torch.nn.PReLU(8)
        self.first, self.second = torch.nn.Linear(8, 40), torch.nn.Linear(40, 24, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.slope(self.transposed(self.by_channel(self.whole(x)))).mean((2, 3))
        return self.second(self.first(x).tanh())


@functools.cache
def exported(quantized: bool) -> bytes:
    """Returns a program; kernels of a quantized one, whose inputs are quantized as it runs, pack no bias."""
    torch.manual_seed(0)
    module = torch.export.export(Net().eval(), (IMAGE,)).module()
    if quantized:
        config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
        prepared = prepare_pt2e(module, XNNPACKQuantizer().set_global(config))
        prepared(IMAGE)
        module = convert_pt2e(prepared)
    graph = torch.export.export(module, (IMAGE,))
    return bytes(to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()]).to_executorch().buffer)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "model.pte"
    path.write_bytes(exported(quantized=False))
    return path


Load = Callable[..., str]


@pytest.fixture
def load(module_outputs: Path) -> Load:
    """Returns a function that has ExecuTorch load a program with a cache, and returns its log."""

    def run(program: Path, cache: Path, weights: Path | str = "") -> str:
        command = [module_outputs, program, weights, cache]
        return subprocess.run(command, check=True, capture_output=True, text=True).stderr

    return run


def fit(etstream: Etstream, *files: Path) -> Any:
    """Returns how the only cache among the files fits the program; no other file has an error or a warning."""
    outcome = etstream.attempt("verify", *files, "--json")
    report = json.loads(outcome.stdout)
    assert report["errors"] == [], outcome
    (found,) = report["xnnpack_caches"]
    assert (report["warnings"] == []) == (found["misses"] == found["unasked"] == []), outcome
    return found


@pytest.mark.parametrize("quantized", [False, True])
def test_a_program_looks_up_what_executorch_puts_there(
    quantized: bool, load: Load, etstream: Etstream, tmp_path: Path
) -> None:
    program, cache = tmp_path / "model.pte", tmp_path / "model.xpwc"
    program.write_bytes(exported(quantized))
    assert "Opened packed weight file for writing" in load(program, cache)
    found = fit(etstream, program, cache)
    assert found["misses"] == found["unasked"] == []
    inspected = etstream.inspect(cache)["xnnpack_cache"]
    assert len(inspected["entries"]) == 5
    # Each of two delegates has written an index. The first is dead, and so are the ends of pages.
    used = sum(entry["size"] for entry in inspected["entries"])
    assert inspected["dead_bytes"] == inspected["index_offset"] - used > 0
    assert "Loaded packed weight cache" in load(program, cache)


def test_weights_of_another_program_are_not_asked_for(
    program: Path, load: Load, etstream: Etstream, tmp_path: Path
) -> None:
    other, cache = make_golden.HERE / "delegated_program" / "program.pte", tmp_path / "cache"
    load(other, cache)
    # ExecuTorch does not add the weights of another program to a file that it has loaded.
    before = cache.read_bytes()
    load(program, cache)
    assert cache.read_bytes() == before
    found = fit(etstream, program, cache)
    assert len(found["misses"]) == 5 and len(found["unasked"]) == 1
    assert fit(etstream, other, cache)["misses"] == []


def test_weights_may_be_in_another_file(program: Path, load: Load, etstream: Etstream, tmp_path: Path) -> None:
    thin, weights, cache = (tmp_path / name for name in ("thin.pte", "weights.ptd", "cache"))
    etstream.pte(program, thin, "--constants-to", str(weights))
    load(thin, cache, weights)
    assert fit(etstream, thin, weights, cache)["misses"] == []


def test_the_golden_cache_is_what_executorch_makes_but_for_the_kernels_of_the_machine(
    load: Load, etstream: Etstream, tmp_path: Path
) -> None:
    load(make_golden.HERE / "delegated_program" / "program.pte", tmp_path / "cache")
    ours, golden = (
        [(entry["name"], entry["offset"]) for entry in etstream.inspect(path)["xnnpack_cache"]["entries"]]
        for path in (tmp_path / "cache", GOLDEN)
    )
    assert ours == golden


def damages(cache: bytes) -> dict[str, bytes]:
    """Returns the cache with changes."""
    end = len(cache) - 20
    (index,) = struct.unpack_from("<Q", cache, end)
    place = end - 20

    def changed(at: int, value: bytes) -> bytes:
        return cache[:at] + value + cache[at + len(value) :]

    return {
        "same": cache,
        "short": cache[:-1],
        "footer alone": cache[end:],
        "no index": changed(end, struct.pack("<Q", end)),
        "index outside": changed(end, struct.pack("<Q", 1 << 63)),
        "fewer": changed(end + 8, struct.pack("<I", 0)),
        "more": changed(end + 8, struct.pack("<I", 2)),
        "more, and a name": cache[:end] + b"\xff" * 4 + changed(end + 8, b"\2")[end:],
        "three bytes later": cache[:end] + bytes(3) + cache[end:],
        "identifier": changed(end + 12, b"XPWC"),
        "version": changed(end + 16, struct.pack("<I", 1)),
        "long name": changed(index, struct.pack("<I", 129)),
        "huge name": changed(index, b"\xff" * 4),
        "short name": changed(index, struct.pack("<I", 127)),
        "at the index": changed(place, struct.pack("<Q", index)),
        "over the index": changed(place + 8, struct.pack("<Q", index + 1)),
        "up to the index": changed(place + 8, struct.pack("<Q", index)),
        "huge": changed(place + 8, b"\xff" * 8),
        "far": changed(place, b"\xff" * 8),
        "seed": changed(place + 16, b"\0\0\0\1"),
    }


@pytest.mark.parametrize("damage", damages(GOLDEN.read_bytes()))
def test_we_open_what_executorch_loads(damage: str, load: Load, etstream: Etstream, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_bytes(damages(GOLDEN.read_bytes())[damage])
    opens = etstream.attempt("inspect", cache).code == 0
    log = load(make_golden.HERE / "delegated_program" / "program.pte", cache)
    assert ("Loaded packed weight cache" in log) == opens, log
