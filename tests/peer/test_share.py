# SPDX-License-Identifier: BSD-3-Clause
"""Programs of one model that get their weights from one file run in ExecuTorch as before."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import recipes
import torch
from command import Etstream
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.runtime import Runtime

ALL = ("portable", "xnnpack", "int8")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a program of each recipe."""
    folder = tmp_path_factory.mktemp("recipes")
    for name, program in recipes.programs().items():
        (folder / f"{name}.pte").write_bytes(program)
    return folder


def outputs(program: Path, inputs: tuple[torch.Tensor, ...], weights: Path | None = None) -> list[torch.Tensor]:
    loaded = Runtime.get().load_program(program, data_path=weights)
    return [output.clone() for output in loaded.load_method("forward").execute(list(inputs))]


def share(etstream: Etstream, files: Iterable[Path], out: Path, *options: str | Path) -> Any:
    """Shares weights, and returns the report. Programs go to the folder, and the weights to weights.ptd there."""
    outcome = etstream.attempt(
        "share", *files, "--weights-to", out / "weights.ptd", "--out-dir", out / "programs", "--json", "--no-sync", *options
    )
    assert outcome.code == 0, outcome
    return json.loads(outcome.stdout)


def assert_run_as_before(
    etstream: Etstream, files: Iterable[Path], out: Path, inputs: tuple[torch.Tensor, ...]
) -> None:
    for file in files:
        thin, weights = out / "programs" / file.name, out / "weights.ptd"
        assert etstream.verify(thin, weights).errors == []
        for ours, before in zip(outputs(thin, inputs, weights), outputs(file, inputs), strict=True):
            assert torch.equal(ours, before), file.name


def payloads(program: Path) -> set[bytes]:
    """Returns the constants, the named data and the data of delegates."""
    file = deserialize_pte_binary(program.read_bytes())
    named = file.named_data.buffers if file.named_data else []
    buffers = list(named)
    buffers += [buffer.storage for buffer in file.program.constant_buffer]
    buffers += [delegate.data for delegate in file.program.backend_delegate_data]
    return {bytes(buffer) for buffer in buffers}


def test_portable_fp32_and_int8_take_little_more_than_their_distinct_bytes(
    programs: Path, etstream: Etstream, tmp_path: Path
) -> None:
    files = [programs / f"{name}.pte" for name in ALL]
    report = share(etstream, files, tmp_path)
    distinct = sum(map(len, set().union(*map(payloads, files))))
    written = sum(path.stat().st_size for path in [tmp_path / "weights.ptd", *(tmp_path / "programs").iterdir()])
    assert report["size_after"] == written
    assert written <= 1.1 * distinct
    assert report["size_before"] == sum(file.stat().st_size for file in files) >= 1.8 * distinct
    # Some data is not shared: the weights that int8 alone has, the data of XNNPACK's delegates, and scalars.
    reasons = {(each["program"], each["reason"]) for each in report["kept"]}
    assert reasons == {
        *((name, "small") for name in ALL),
        ("xnnpack", "delegate"),
        ("int8", "delegate"),
        ("int8", "one_program"),
    }
    assert {tuple(each["programs"]) for each in report["shared"]} == {ALL, ("portable", "xnnpack")}
    assert_run_as_before(etstream, files, tmp_path, (recipes.tokens(),))


def test_they_run_in_executorchs_cpp_module_too(
    programs: Path, module_outputs: Path, etstream: Etstream, tmp_path: Path
) -> None:
    files, inputs = [programs / f"{name}.pte" for name in ALL], recipes.tokens()
    share(etstream, files, tmp_path)
    for file in files:
        done = subprocess.run(
            [module_outputs, tmp_path / "programs" / file.name, tmp_path / "weights.ptd", *map(str, inputs.shape)],
            input=inputs.numpy().tobytes(),
            capture_output=True,
            check=True,
        )
        (before,) = outputs(file, (inputs,))
        torch.testing.assert_close(torch.frombuffer(bytearray(done.stdout), dtype=before.dtype), before.flatten())


def test_a_fat_container_of_programs_that_share_all_weights_is_hardly_larger_than_one(
    programs: Path, etstream: Etstream, tmp_path: Path
) -> None:
    files = [programs / f"{name}.pte" for name in ("portable", "xnnpack", "per_op")]
    fat, weights = tmp_path / "model.fat", tmp_path / "weights.ptd"
    report = share(etstream, files, tmp_path, "--fat", fat)
    assert report["fat"]["size"] == fat.stat().st_size
    assert fat.stat().st_size + weights.stat().st_size <= 1.02 * files[0].stat().st_size
    for file in files:
        taken = tmp_path / "taken.pte"
        assert etstream.attempt("fat", "extract", fat, file.stem, "-o", taken).code == 0
        assert taken.read_bytes() == (tmp_path / "programs" / file.name).read_bytes()
    assert_run_as_before(etstream, files, tmp_path, (recipes.tokens(),))


def test_shared_weights_move_back_in(programs: Path, etstream: Etstream, tmp_path: Path) -> None:
    files = [programs / f"{name}.pte" for name in ALL]
    share(etstream, files, tmp_path)
    for file in files:
        back = tmp_path / f"back-{file.name}"
        etstream.pte(tmp_path / "programs" / file.name, back, "--constants-from", str(tmp_path / "weights.ptd"))
        (ours,), (before,) = outputs(back, (recipes.tokens(),)), outputs(file, (recipes.tokens(),))
        assert torch.equal(ours, before)


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.linear = torch.nn.Conv2d(8, 16, 3), torch.nn.Linear(16, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.convolution(x).mean((2, 3)))


IMAGE = torch.linspace(-1, 1, 8 * 12 * 12).reshape(1, 8, 12, 12)


@functools.cache
def convolutions(seed: int, delegated: bool) -> bytes:
    """Returns a program in which constants have the names that they have in the module."""
    torch.manual_seed(seed)
    graph = torch.export.export(Convolution().eval(), (IMAGE,))
    if delegated:
        return bytes(to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()]).to_executorch().buffer)
    return bytes(to_edge(graph).to_executorch().buffer)


def test_weights_that_a_backend_has_in_another_layout_stay_and_are_named(etstream: Etstream, tmp_path: Path) -> None:
    files = [tmp_path / "portable.pte", tmp_path / "xnnpack.pte"]
    for file, delegated in zip(files, (False, True), strict=True):
        file.write_bytes(convolutions(0, delegated))
    report = share(etstream, files, tmp_path)
    assert sum(each["size"] for each in report["shared"]) == 4 * 16 * 40
    filters = [each for each in report["kept"] if each["size"] == 4 * 16 * 8 * 9]
    assert [(each["program"], each["reason"]) for each in filters] == [(file.stem, "one_program") for file in files]
    assert_run_as_before(etstream, files, tmp_path, (IMAGE,))


def with_names(etstream: Etstream, program: bytes, path: Path) -> Path:
    """Writes the program with its constants named, as they are after moving out by ExecuTorch and in by etstream."""
    thin, weights, keys = (path.with_suffix(suffix) for suffix in (".thin", ".ptd", ".json"))
    path.write_bytes(program)
    keys.write_text(json.dumps({str(number): f"weight.{number}" for number in range(1, 5)}))
    etstream.pte(path, thin, "--constants-to", str(weights), "--keys", str(keys))
    etstream.pte(thin, path, "--constants-from", str(weights))
    return path


def test_other_weights_of_the_same_names_are_renamed_and_run(etstream: Etstream, tmp_path: Path) -> None:
    files = [
        with_names(etstream, convolutions(seed, delegated=False), tmp_path / f"{name}.pte")
        for name, seed in {"one": 1, "two": 2, "one_again": 1, "two_again": 2}.items()
    ]
    report = share(etstream, files, tmp_path)
    assert {each["program"] for each in report["renamed"]} == {"two", "two_again"}
    assert all(each["key"].startswith(f"{each['name']}:float32[") for each in report["renamed"])
    assert_run_as_before(etstream, files, tmp_path, (IMAGE,))


def test_a_tensor_and_a_delegate_of_one_program_share_a_weight(etstream: Etstream, tmp_path: Path) -> None:
    """Shares an embedding that is the output's weight too: an operator's constant, and XNNPACK's named data."""

    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(64, 32)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(self.embedding(tokens), self.embedding.weight)

    inputs = (torch.arange(5).reshape(1, 5),)
    graph = torch.export.export(Tied().eval(), inputs)
    lowered = to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()])
    files = [tmp_path / "one.pte", tmp_path / "other.pte"]
    files[0].write_bytes(lowered.to_executorch().buffer)
    files[1].write_bytes(lowered.to_executorch(ExecutorchBackendConfig(segment_alignment=4096)).buffer)
    report = share(etstream, files, tmp_path)
    (shared,) = report["shared"]
    assert shared["size"] == 4 * 64 * 32 and len(shared["keys"]) == 1
    assert_run_as_before(etstream, files, tmp_path, inputs)
    # The programs also run as before when all constants of one program move out.
    etstream.pte(files[0], tmp_path / "out.pte", "--constants-to", str(tmp_path / "own.ptd"))
    assert torch.equal(outputs(tmp_path / "out.pte", inputs, tmp_path / "own.ptd")[0], outputs(files[0], inputs)[0])
