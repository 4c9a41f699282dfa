# SPDX-License-Identifier: BSD-3-Clause
"""Names what is missing where ExecuTorch's runtime gives only a number, and takes weights in several files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import etstream
import executorch.kernels.quantized  # noqa: F401 what its operators are in a program
import pytest
import torch
from etstream.executorch import load_fat, open_bundle
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower

X = torch.ones(1, 8)


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Quantized(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)


@pytest.fixture(scope="module")
def expected() -> torch.Tensor:
    return Layers().eval()(X)


@pytest.fixture(scope="module")
def thin() -> bytes:
    """Returns a program that asks for 8 keys."""
    program = to_edge(torch.export.export(Layers().eval(), (X,)))
    return bytes(program.to_executorch(ExecutorchBackendConfig(external_constants=True)).buffer)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "w.ptd"
    etstream.save_ptd(Layers().state_dict(), path, sync=False)
    return path


def bundle_of(program: bytes, folder: Path, outputs: list[torch.Tensor] | None = None) -> Path:
    path = folder / "model.bpte"
    case = etstream.TestCase([X], outputs or [])
    etstream.bundle(program, {"forward": [case]}, path, unchecked=True, sync=False)
    return path


def refused(bundle: Path, weights: object = None) -> str:
    with pytest.raises(etstream.ExecutionError) as raised, open_bundle(bundle, weights=weights) as opened:
        opened.verify()
    said = str(raised.value)
    assert said.startswith(f"{bundle}: method 'forward', test case 0: ExecuTorch says: ")
    return said


def test_an_operator_without_a_kernel_is_named_with_the_import_that_brings_it(tmp_path: Path) -> None:
    edge = to_edge(torch.export.export(Quantized(), (X,)), compile_config=EdgeCompileConfig(_check_ir_validity=False))
    bundle = bundle_of(bytes(edge.to_executorch().buffer), tmp_path)
    script = "import sys; from etstream.executorch import open_bundle; print(open_bundle(sys.argv[1]).verify())"
    fresh = [sys.executable, "-W", "ignore", "-c"]
    said = subprocess.run([*fresh, script, bundle], capture_output=True, text=True, check=False).stderr
    name = re.escape("'quantized_decomposed::quantize_per_tensor.out'")
    assert re.search(
        rf"0x14: operator {name} has no kernel here; `import executorch\.kernels\.quantized` first\n", said
    )
    subprocess.run([*fresh, "import executorch.kernels.quantized\n" + script, bundle], capture_output=True, check=True)


def test_an_operator_that_nothing_registers_is_named(thin: bytes, weights: Path, tmp_path: Path) -> None:
    bundle = bundle_of(thin.replace(b"aten::addmm", b"aten::adxmm"), tmp_path)
    assert "0x14: operator 'aten::adxmm.out' has no kernel here; import what registers it first" in refused(
        bundle, weights
    )


def test_a_backend_that_is_not_registered_is_named(tmp_path: Path) -> None:
    edge = to_edge_transform_and_lower(torch.export.export(Layers().eval(), (X,)), partitioner=[XnnpackPartitioner()])
    program = bytes(edge.to_executorch().buffer)
    assert open_bundle(bundle_of(program, tmp_path)).verify()
    said = refused(bundle_of(program.replace(b"XnnpackBackend", b"NobodysBackend"), tmp_path))
    assert "0x20: backend 'NobodysBackend' has not been registered here; there are " in said
    assert "'XnnpackBackend'" in said


def test_keys_that_are_nowhere_are_counted_and_the_argument_is_named(thin: bytes, tmp_path: Path) -> None:
    bundle = bundle_of(thin, tmp_path)
    names = ", ".join(f"'layers.{i}.{name}'" for i in range(4) for name in ("bias", "weight"))
    none = (
        f"0x2: 8 of the 8 keys that the program asks for are not in it: {names}; weights= takes the .ptd file with them"
    )
    assert none in refused(bundle)
    tensors = Layers().state_dict()
    del tensors["layers.2.weight"]
    etstream.save_ptd(tensors, tmp_path / "seven.ptd", sync=False)
    some = "0x20: 1 of the 8 keys that the program asks for is not in the files that weights= has: 'layers.2.weight'"
    assert some in refused(bundle, tmp_path / "seven.ptd")


def test_weights_of_another_shape_are_named(thin: bytes, tmp_path: Path) -> None:
    tensors = {name: torch.ones([*tensor.shape, 2]) for name, tensor in Layers().state_dict().items()}
    etstream.save_ptd(tensors, tmp_path / "other.ptd", sync=False)
    said = refused(bundle_of(thin, tmp_path), tmp_path / "other.ptd")
    assert "0x24: " in said and "other.ptd: key 'layers.0" in said


def test_inputs_that_a_payload_does_not_take_are_named(thin: bytes, weights: Path, tmp_path: Path) -> None:
    etstream.fat({"cpu": thin}, tmp_path / "model.fat", align=16, sync=False)
    with load_fat(tmp_path / "model.fat", weights=weights) as program:
        for inputs, said in (
            ([torch.ones(3, 8)], r"0x10: input 0 has shape \[3, 8\], expected \[1, 8\]"),
            ([X.int()], "0x12: input 0 is int32, expected float32"),
            ([X, X], "0x12: 2 inputs given, the method has 1"),
        ):
            with pytest.raises(etstream.ExecutionError, match=said):
                program.run(inputs)
        assert program.run([X])


def test_weights_in_shards_are_given_by_the_first_or_as_a_list(
    thin: bytes, weights: Path, expected: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = bundle_of(thin, tmp_path, [expected])
    shards = etstream.ptd_shards(weights, tmp_path / "w.ptd", split_max_size=320, sync=False)
    assert len(shards) > 2
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setenv("TMPDIR", str(room))
    for given in (shards[0], shards, shards[::-1], [shards[0]], tuple(map(Path, shards)), [weights], weights):
        with open_bundle(bundle, weights=given) as opened:
            assert opened.verify(rtol=1e-5)
            assert opened.verify_all(rtol=1e-5)
        assert list(room.iterdir()) == []
    for given in (shards[1], shards[1:]):
        with pytest.raises(etstream.InvalidArgumentError, match="give the first"):
            open_bundle(bundle, weights=given)
    etstream.fat({"cpu": thin}, tmp_path / "model.fat", align=16, sync=False)
    for one in (shards[0], shards):
        with load_fat(tmp_path / "model.fat", weights=one) as program:
            torch.testing.assert_close(program.run([X])[0], expected)
    assert list(room.iterdir()) == []
    content = weights.read_bytes()
    for parts in ([content], (content[:100], etstream.Source(weights)[100:])):
        assert open_bundle(bundle, weights=parts).verify(rtol=1e-5)
    with pytest.raises(TypeError, match="^weights: expected a source, or a list of paths, found a list of both$"):
        open_bundle(bundle, weights=[shards[0], content])


def test_weights_of_another_kind_are_called_what_they_are(thin: bytes, weights: Path, tmp_path: Path) -> None:
    bundle = bundle_of(thin, tmp_path)
    whole = tmp_path / "whole.pte"
    etstream.pte(thin, whole, constants_from=weights, sync=False)
    assert "whole.pte: " in refused(bundle, whole)
    assert "expected tensor data" in refused(bundle, whole)


def test_weights_in_several_files_are_joined_unless_a_key_has_two_values(
    thin: bytes, expected: torch.Tensor, tmp_path: Path
) -> None:
    bundle = bundle_of(thin, tmp_path, [expected])
    tensors = Layers().state_dict()
    halves = [dict(list(tensors.items())[:3]), dict(list(tensors.items())[2:])]
    paths = [tmp_path / "a.ptd", tmp_path / "b.ptd"]
    for half, path in zip(halves, paths, strict=True):
        etstream.save_ptd(half, path, sync=False)
    assert open_bundle(bundle, weights=paths).verify(rtol=1e-5)
    etstream.save_ptd({name: tensor + 1 for name, tensor in halves[0].items()}, paths[0], sync=False)
    with pytest.raises(etstream.InvalidArgumentError, match=r"a\.ptd and in .*b\.ptd with other bytes"):
        open_bundle(bundle, weights=paths).verify()


def test_the_index_of_a_checkpoint_stands_for_its_files(thin: bytes, expected: torch.Tensor, tmp_path: Path) -> None:
    bundle = bundle_of(thin, tmp_path, [expected])
    tensors = list(Layers().state_dict().items())
    files = {"a.safetensors": dict(tensors[:3]), "b.safetensors": dict(tensors[3:])}
    for name, part in files.items():
        etstream.ptd(part, tmp_path / name, to="safetensors", sync=False)
    index = tmp_path / "model.safetensors.index.json"
    entries = ",".join(f'"{key}": "{name}"' for name, part in files.items() for key in part)
    index.write_text(f'{{"weight_map": {{{entries}}}}}')
    assert open_bundle(bundle, weights=index).verify(rtol=1e-5)


def test_a_program_is_no_bundle_and_is_said_to_be_a_program(thin: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(thin)
    with pytest.raises(
        etstream.UnsupportedError, match=r"model\.pte: is a program \(ET12\), expected a bundle"
    ) as raised:
        open_bundle(tmp_path / "model.pte")
    assert raised.value.filename == str(tmp_path / "model.pte")
