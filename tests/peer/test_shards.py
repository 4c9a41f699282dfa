# SPDX-License-Identifier: BSD-3-Clause
"""Shows that shards are those of ExecuTorch's externalize_pte_data, and that its Module runs with all of them."""

from __future__ import annotations

import json
import random
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from command import Etstream, assert_same_bytes
from executorch.exir import to_edge
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir._serialize.data_serializer import DataPayload
from executorch.extension.flat_tensor.serialize.serialize import (
    FlatTensorConfig,
    FlatTensorSerializer,
)
from rounds import ROUNDS
from safetensors.torch import save_file
from test_ptd import random_tensor

HERE = Path(__file__).resolve().parent


def executorch_shards(tensors: dict[str, torch.Tensor], most: int) -> list[bytes]:
    """Returns the shards that ExecuTorch writes of a store, in the order in which it made them."""
    store = NamedDataStore()
    for key, tensor in tensors.items():
        store.add_named_data(key, tensor)
    store.externalize_pte_data(most, "shard")
    output = store.get_named_data_store_output()
    serializer = FlatTensorSerializer(FlatTensorConfig())
    return [
        bytes(serializer.serialize(DataPayload(output.buffers, entries)))
        for entries in output.external_data.values()
    ]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_shards_are_executorchs(number: int, etstream: Etstream, tmp_path: Path) -> None:
    seed = random.Random(number)
    tensors: dict[str, torch.Tensor] = {}
    for _ in range(seed.randrange(1, 30)):
        key = "".join(seed.choices("abc.", k=6))
        again = [one for one in tensors.values() if seed.random() < 0.1]
        dtype = seed.choice([torch.float32, torch.int8])
        tensors[key] = again[0].clone() if again else random_tensor(seed, dtype, [seed.randrange(1, 40)])
    save_file(tensors, tmp_path / "weights.safetensors")
    most = seed.choice([160, 300, 1000])
    expected = executorch_shards(tensors, most)
    listed = split(etstream, tmp_path / "weights.safetensors", tmp_path / "out.ptd", most, "--dry-run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weights.safetensors"]
    paths = split(etstream, tmp_path / "weights.safetensors", tmp_path / "out.ptd", most)
    assert paths == listed
    assert len(paths) == len(expected)
    for i, path in enumerate(paths):
        assert path.name == f"out-{i + 1:05}-of-{len(paths):05}.ptd"
        assert_same_bytes(path.read_bytes(), expected[i], path.name)


def split(etstream: Etstream, source: Path, output: Path, most: int, *options: str) -> list[Path]:
    """Returns the paths of the shards that are written."""
    outcome = etstream.attempt(
        "ptd", source, "-o", output, "--split-max-size", str(most), "--json", "--no-sync", *options
    )
    assert outcome.code == 0, outcome
    return [Path(shard["output"]) for shard in json.loads(outcome.stdout)["shards"]]


@pytest.fixture(scope="module")
def run_with_shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the program of run_with_shards/main.cpp, and returns its path."""
    found = find_spec("executorch")
    assert found is not None and found.submodule_search_locations
    build = tmp_path_factory.mktemp("run_with_shards")
    configure = ["cmake", "-S", HERE / "run_with_shards", "-B", build]
    sdk = f"-DCMAKE_PREFIX_PATH={found.submodule_search_locations[0]}"
    subprocess.run([*configure, sdk], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    return build / "run_with_shards"


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_a_program_runs_with_all_its_shards(
    run_with_shards: Path, etstream: Etstream, tmp_path: Path
) -> None:
    module = Layers().eval()
    x = torch.ones(1, 8)
    program = to_edge(torch.export.export(module, (x,))).to_executorch()
    (tmp_path / "whole.pte").write_bytes(program.buffer)
    outcome = etstream.attempt(
        *("pte", tmp_path / "whole.pte", "-o", tmp_path / "thin.pte", "--constants-to", tmp_path / "w.ptd"),
        *("--split-max-size", "600", "--json"),
    )
    assert outcome.code == 0, outcome
    shards = [Path(one["output"]) for one in json.loads(outcome.stdout)["tensor_data"]["shards"]]
    assert len(shards) > 1
    assert etstream.verify(tmp_path / "thin.pte", *shards).errors == []
    # The first one stands for all, and one alone is too few.
    assert etstream.verify(tmp_path / "thin.pte", shards[0]).errors == []
    assert etstream.verify(tmp_path / "thin.pte", shards[1]).errors != []
    ran = subprocess.run(
        [run_with_shards, tmp_path / "thin.pte", *shards], check=True, capture_output=True, text=True
    )
    found = torch.tensor([float(line) for line in ran.stdout.split()])
    torch.testing.assert_close(found, module(x).flatten())
    alone = subprocess.run([run_with_shards, tmp_path / "thin.pte", shards[0]], capture_output=True, check=False)
    assert alone.returncode != 0
    # The constants come back.
    back = etstream.pte(tmp_path / "thin.pte", tmp_path / "back.pte", "--constants-from", str(shards[0]))
    assert etstream.verify(tmp_path / "back.pte").errors == []
    assert len(back) > 1024
