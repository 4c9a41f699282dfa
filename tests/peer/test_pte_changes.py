# SPDX-License-Identifier: BSD-3-Clause
"""Programs written again with other content are those that ExecuTorch exports so, or run as before."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from command import Etstream, assert_same_bytes
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import (
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from executorch.runtime import Runtime

RTOL, ATOL = 1e-5, 1e-5
INPUT = torch.linspace(-1, 1, 40).reshape(2, 20)


class Layers(torch.nn.Module):
    """A model of linear layers, some with the same weights, which other modules may have too."""

    def __init__(self, *layers: torch.nn.Linear) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Counter(torch.nn.Module):
    """A model with a buffer that it changes, and that begins with its saved value."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((4, 20), start))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(1.0)
        return x.sum() + self.total


class Views(torch.nn.Module):
    """A model that reads the same bytes under two layouts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("flat", torch.ones(20))
        self.register_buffer("square", torch.ones(4, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.flat + self.square.sum()


def linears() -> list[torch.nn.Linear]:
    torch.manual_seed(0)
    return [torch.nn.Linear(20, 30), torch.nn.Linear(30, 20), torch.nn.Linear(20, 20)]


@functools.cache
def exported(kind: str, names: str, **config: Any) -> ExecutorchProgramManager:
    """Exports the methods of these names, each a letter; DELEGATED keeps weights as named data, on XNNPACK."""
    modules = modules_of(kind, names)
    programs = {name: torch.export.export(module, (INPUT,)) for name, module in modules.items()}
    if kind == "delegated":
        partitioners = {name: [XnnpackPartitioner()] for name in modules}
        lowered = to_edge_transform_and_lower(programs, partitioner=partitioners)
        return lowered.to_executorch(ExecutorchBackendConfig(**config))
    passes = [InitializedMutableBufferPass(["total"])]
    return to_edge(programs).to_executorch(ExecutorchBackendConfig(passes=passes, **config))


def modules_of(kind: str, names: str) -> dict[str, torch.nn.Module]:
    first, second, third = linears()
    if kind == "states":
        every = {"a": Counter(1.0), "b": Counter(7.0), "c": Layers(third)}
    elif kind == "views":
        every = {"a": Views()}
    else:
        every = {"a": Layers(first, second), "b": Layers(third), "c": Layers(first, second, third)}
    return {name: every[name] for name in names}


def write_program(path: Path, kind: str, names: str = "abc", **config: Any) -> Path:
    path.write_bytes(exported(kind, names, **config).buffer)
    return path


def without(dropped: str) -> str:
    return "".join(name for name in "abc" if name not in dropped)


def drop(names: str) -> list[str]:
    return [word for name in names for word in ("--drop-method", name)]


def outputs(program: Path, weights: Path | None = None) -> dict[str, list[torch.Tensor]]:
    """Returns the outputs of each method in ExecuTorch's runtime."""
    loaded = Runtime.get().load_program(program, data_path=weights)
    return {
        name: [loaded.load_method(name).execute([INPUT])[0] for _ in range(2)]
        for name in loaded.method_names
    }


def assert_same_outputs(ours: dict[str, list[torch.Tensor]], wanted: dict[str, list[torch.Tensor]]) -> None:
    assert ours.keys() == wanted.keys()
    for name, tensors in wanted.items():
        torch.testing.assert_close(ours[name], tensors, rtol=RTOL, atol=ATOL)


def assert_sound(etstream: Etstream, files: Iterable[Path]) -> None:
    for file in files:
        assert etstream.verify(file).errors == []


@pytest.mark.parametrize("dropped", ["a", "b", "c", "ac"])
@pytest.mark.parametrize(("kind", "extracted"), [("portable", True), ("delegated", True), ("delegated", False)])
def test_dropping_methods_gives_what_exporting_the_others_gives(
    kind: str, extracted: bool, dropped: str, etstream: Etstream, tmp_path: Path
) -> None:
    config = {"extract_delegate_segments": extracted, "constant_tensor_alignment": 64}
    program = write_program(tmp_path / "all.pte", kind, **config)
    ours = etstream.pte(program, tmp_path / "some.pte", *drop(dropped))
    wanted = write_program(tmp_path / "wanted.pte", kind, without(dropped), **config)
    assert len(ours) == wanted.stat().st_size < program.stat().st_size
    assert_sound(etstream, [tmp_path / "some.pte"])
    assert_same_outputs(outputs(tmp_path / "some.pte"), outputs(wanted))
    # The order in which methods first use shared data decides where it is.
    if kind == "portable" and dropped in ("b", "c"):
        assert_same_bytes(ours, wanted.read_bytes(), dropped)


@pytest.mark.parametrize("dropped", ["a", "b", "c", "ab"])
def test_mutable_data_of_dropped_methods_goes_with_them(
    dropped: str, etstream: Etstream, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "all.pte", "states")
    assert deserialize_pte_binary(program.read_bytes()).mutable_data is not None
    ours = etstream.pte(program, tmp_path / "some.pte", *drop(dropped))
    assert_same_bytes(ours, bytes(exported("states", without(dropped)).buffer), dropped)
    assert_sound(etstream, [tmp_path / "some.pte"])


def test_without_stack_traces_it_is_the_program_that_is_exported_without(
    etstream: Etstream, tmp_path: Path
) -> None:
    traced = write_program(tmp_path / "traced.pte", "portable", emit_stacktrace=True)
    plain = bytes(exported("portable", "abc").buffer)
    assert traced.stat().st_size > len(plain)
    ours = etstream.pte(traced, tmp_path / "out.pte", "--strip-stack-traces")
    assert_same_bytes(ours, plain, "without stack traces")


@pytest.mark.parametrize("kind", ["portable", "delegated"])
def test_constants_move_out_and_in_again(kind: str, etstream: Etstream, tmp_path: Path) -> None:
    program, weights = write_program(tmp_path / "all.pte", kind), tmp_path / "weights.ptd"
    wanted = outputs(program)
    ours = etstream.pte(program, tmp_path / "out.pte", "--constants-to", str(weights))
    assert len(ours) < program.stat().st_size
    assert_sound(etstream, [tmp_path / "out.pte", weights])
    assert_same_outputs(outputs(tmp_path / "out.pte", weights), wanted)
    back = etstream.pte(tmp_path / "out.pte", tmp_path / "back.pte", "--constants-from", str(weights))
    assert_same_outputs(outputs(tmp_path / "back.pte"), wanted)
    payload = FlatTensorSerializer().deserialize(Cord(weights.read_bytes()))
    assert payload.named_data
    # Named data is in the order in which delegates ask for it, as in ExecuTorch.
    assert_same_bytes(back, program.read_bytes(), "back")
    assert etstream.diff(program, tmp_path / "back.pte")[1]["same_bytes"]
    if kind == "portable":
        for key, entry in payload.named_data.items():
            assert key == hashlib.sha256(payload.buffers[entry.buffer_index]).hexdigest()


def test_tensors_that_share_bytes_under_two_layouts_get_two_keys(
    etstream: Etstream, tmp_path: Path
) -> None:
    program, weights = write_program(tmp_path / "views.pte", "views", "a"), tmp_path / "weights.ptd"
    etstream.pte(program, tmp_path / "out.pte", "--constants-to", str(weights))
    ones = torch.ones(20).numpy().tobytes()
    hashed = hashlib.sha256(ones).hexdigest()
    assert etstream.extract(weights, f"named/{hashed}") == ones
    assert etstream.extract(weights, f"named/{hashed}:float32[4, 5]") == ones
    assert_same_outputs(outputs(tmp_path / "out.pte", weights), outputs(program))
    back = etstream.pte(tmp_path / "out.pte", tmp_path / "back.pte", "--constants-from", str(weights))
    assert_same_bytes(back, program.read_bytes(), "back")


@pytest.mark.parametrize("by_number", [True, False])
def test_with_its_keys_constants_are_external_as_executorch_has_them(
    by_number: bool, etstream: Etstream, tmp_path: Path
) -> None:
    program, weights = write_program(tmp_path / "plain.pte", "portable", "c"), tmp_path / "ours.ptd"
    names = {
        str(i + 1) if by_number else hashlib.sha256(tensor.numpy().tobytes()).hexdigest(): name
        for i, (name, tensor) in enumerate(modules_of("portable", "c")["c"].state_dict().items())
    }
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(names))
    ours = etstream.pte(program, tmp_path / "ours.pte", "--constants-to", str(weights), "--keys", str(keys))
    manager = exported("portable", "c", external_constants=True)
    assert_same_bytes(ours, bytes(manager.buffer), "program")
    (executorchs,) = manager._tensor_data.values()
    assert_same_bytes(weights.read_bytes(), bytes(executorchs), "weights")

    etstream.pte(tmp_path / "ours.pte", tmp_path / "in.pte", "--constants-from", str(weights))
    assert_same_outputs(outputs(tmp_path / "in.pte"), outputs(program))
    again = etstream.pte(tmp_path / "in.pte", tmp_path / "again.pte", "--constants-to", str(tmp_path / "w.ptd"))
    assert_same_bytes(again, ours, "names stay")
    assert_same_bytes((tmp_path / "w.ptd").read_bytes(), weights.read_bytes(), "names stay")


@pytest.mark.parametrize("kind", ["portable", "delegated"])
def test_strict_alignment_holds_in_the_file(kind: str, etstream: Etstream, tmp_path: Path) -> None:
    program = write_program(
        tmp_path / "lax.pte", kind, constant_tensor_alignment=4096, delegate_alignment=4096
    )
    out = tmp_path / "strict.pte"
    warnings = etstream.verify(program).warnings
    assert any("--strict-alignment" in warning for warning in warnings), warnings
    alignments = ("--constant-tensor-alignment", "4096", "--delegate-alignment", "4096")
    etstream.pte(program, out, "--strict-alignment", *alignments)
    parts = [part for part in etstream.inspect(out)["parts"] if part["size"] > 0]
    used = [part for part in parts if part["what"].startswith(("constants", "delegate"))]
    assert used and all(part["offset"] % 4096 == 0 for part in used), parts
    assert etstream.verify(out).warnings == []
    assert_same_outputs(outputs(out), outputs(program))


def test_what_can_not_be_is_refused(etstream: Etstream, tmp_path: Path) -> None:
    program, out = write_program(tmp_path / "all.pte", "portable"), tmp_path / "out.pte"
    weights = str(tmp_path / "weights.ptd")
    for options, message in {
        ("--drop-method", "d"): "has no method 'd', it has 'a', 'b', 'c'",
        tuple(drop("abc")): "no method would be left",
        ("--constants-to", str(out)): "two outputs are to be",
        ("--constants-to", str(program)): "is the input",
        ("--constants-from", str(program)): "expected",
    }.items():
        outcome = etstream.attempt("pte", program, "-o", out, *options)
        assert outcome.code == 1
        assert message in outcome.stderr
        assert not out.exists()
    both = etstream.attempt("pte", program, "-o", out, "--constants-to", weights, "--constants-from", weights)
    assert both.code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.pte"]
