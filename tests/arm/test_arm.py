# SPDX-License-Identifier: BSD-3-Clause
"""Runs ExecuTorch's Arm compiler through etstream: it writes the same files as by itself, in little memory.

The tests need an environment as Arm's own set-up makes it, with the flatbuffers that tosa-tools asks for.
"""

from __future__ import annotations

import copy
import filecmp
import os
import runpy
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import arm_models
import phases
import pytest
import torch
from arm_compilations import TARGETS
from etrecords import entries
from executorch.backends.arm.scripts import aot_arm_compiler as arm
from executorch.devtools.etrecord import parse_etrecord
from executorch.exir import to_edge

import etstream.aot_arm_compiler
import etstream.executorch

MIB = 1 << 20
SCRIPTS = Path(arm_models.__file__).parent
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns the folders that arm_compilations.py writes with etstream and without, each in a process of its own."""
    folders = {way: tmp_path_factory.mktemp(way) for way in ("executorch", "etstream")}
    script = SCRIPTS / "arm_compilations.py"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    running = [
        subprocess.Popen([sys.executable, str(script), way, str(folder)], env=environment)
        for way, folder in folders.items()
    ]
    assert [process.wait() for process in running] == [0, 0]
    return folders


def assert_same_files(compiled: dict[str, Path], pattern: str, count: int) -> None:
    ours, theirs = (sorted(compiled[way].glob(pattern)) for way in ("etstream", "executorch"))
    assert [file.name for file in ours] == [file.name for file in theirs]
    assert len(ours) == count
    for file, other in zip(ours, theirs, strict=True):
        assert file.read_bytes() == other.read_bytes(), file.name


def test_the_environment_is_that_of_arms_own_set_up() -> None:
    """Makes sure that the other tests use the flatbuffers and the numpy that Arm's users have."""
    assert version("flatbuffers") == "25.2.10"
    assert tuple(map(int, version("numpy").split(".")[:2])) < (2, 2)


@pytest.mark.parametrize("target", TARGETS)
def test_a_program_is_what_the_compiler_writes_by_itself(target: str, compiled: dict[str, Path]) -> None:
    assert_same_files(compiled, f"*{target}.pte", 1)


@pytest.mark.parametrize("target", TARGETS)
def test_a_bundle_is_what_the_compiler_writes_by_itself(target: str, compiled: dict[str, Path]) -> None:
    assert_same_files(compiled, f"*{target}.bpte", 1)


def test_external_blocks_are_what_executorch_writes_by_itself(compiled: dict[str, Path]) -> None:
    assert_same_files(compiled, "external/model.pte", 1)
    assert_same_files(compiled, "external/commands.ptd", 1)
    assert_same_files(compiled, "external/weights.ptd", 1)
    folder = compiled["etstream"] / "external"
    assert etstream.verify(folder / "model.pte", folder / "commands.ptd", folder / "weights.ptd")


def blocks_of(stream: bytes) -> dict[str, tuple[int, bytes, bool]]:
    """Returns the blocks of a stream of Vela's, each with the offset of its data and whether that is a key."""
    out, at = {}, 0
    while at < len(stream):
        name, size, is_key = struct.unpack_from("<16sIB", stream, at)
        at += 32
        out[name.rstrip(b"\0").decode()] = (at, stream[at : at + size], is_key == 1)
        at += (size + 15) // 16 * 16
    return out


def only_payload(program: Path) -> tuple[dict[str, Any], bytes]:
    """Returns how inspect() describes the data of the only delegate, and the data."""
    (described,) = etstream.inspect(program).payloads
    (payload,) = etstream.ProgramFile(program).payloads
    return described.to_dict(), bytes(payload.data)


@pytest.mark.parametrize("file", ["cnn_arm_delegate_ethos-u55-128", "cnn_arm_delegate_ethos-u85-256", "external/model"])
def test_a_stream_of_velas_is_told_by_its_blocks(file: str, compiled: dict[str, Path]) -> None:
    described, payload = only_payload(compiled["executorch"] / f"{file}.pte")
    blocks = blocks_of(payload)
    assert [(each["name"], each["offset"], each["size"], "key" in each) for each in described["parts"]] == [
        (name, offset, len(data), is_key) for name, (offset, data, is_key) in blocks.items()
    ]
    facts = {each["name"]: each["value"] for each in described["facts"]}
    assert facts["scratch_size"] == struct.unpack("<I", blocks["scratch_size"][1])[0]
    is_external = file.startswith("external")
    assert facts.get("weight_size") == (None if is_external else len(blocks["weight_data"][1]))
    count, *numbers = struct.unpack("<10i", blocks["inputs"][1])
    assert count == 1
    *shape, width, offset, region = numbers
    assert facts["input 0"] == f"{shape} of {width} bytes each, at {offset} in region {region}"
    assert described["keys"] == (2 if is_external else 0)


@pytest.fixture
def compile_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Returns a function that compiles the small model in this process, and returns the folder of the files."""
    model = arm_models.write_cnn(tmp_path)

    def run(main: Callable[[], None], *arguments: str) -> Path:
        folder = tmp_path / main.__module__
        monkeypatch.setattr(sys, "argv", ["compiler", "-m", str(model), "-d", "-o", str(folder), *arguments])
        main()
        return folder

    return run


def run_as_command() -> None:
    runpy.run_module("etstream.aot_arm_compiler", run_name="__main__")


@pytest.mark.parametrize("target", ["TOSA-1.0+FP", "ethos-u85-256"])
def test_a_record_is_what_the_compiler_writes_by_itself(
    target: str, compile_with: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = []
    generate = arm.generate_etrecord
    monkeypatch.setattr(arm, "generate_etrecord", lambda *args: recorded.append(args) or generate(*args))
    folder = compile_with(run_as_command, "--bundleio", "-t", target, *TARGETS[target])
    record = folder / f"cnn_arm_delegate_{target}_etrecord.bin"
    # Two compilations never give the same record, as it contains identities of objects.
    ((_, *programs),) = recorded
    theirs = folder / "theirs.bin"
    generate(theirs, *programs)
    assert entries(record) == entries(theirs)
    assert parse_etrecord(str(record)).edge_dialect_program is not None


def test_the_compiler_is_as_before_when_etstream_is_done(compile_with: Compile) -> None:
    before = dict(vars(arm))
    with pytest.raises(SystemExit):
        compile_with(etstream.aot_arm_compiler.main, "--no-such-option")
    assert vars(arm) == before


def test_a_copy_for_a_record_shares_tensors_and_gives_the_same_record(tmp_path: Path) -> None:
    layers = [torch.nn.Linear(16, 16) for _ in range(4)]
    part, whole = torch.randn(40, 16)[:16], torch.randn(16, 16)
    for layer, view in zip(layers[1:], (part, whole, whole)):
        layer.weight = torch.nn.Parameter(view)
    model = torch.nn.Sequential(*layers, torch.nn.Conv2d(1, 3, 3).to(memory_format=torch.channels_last))
    edge = to_edge(torch.export.export(model, (torch.randn(1, 1, 16, 16),)))
    program = copy.deepcopy(edge).to_executorch()
    shared = etstream.aot_arm_compiler._copied(edge)

    arm.generate_etrecord(tmp_path / "copied", copy.deepcopy(edge), program)
    arm.generate_etrecord(tmp_path / "shared", shared, program)
    assert entries(tmp_path / "shared") == entries(tmp_path / "copied")
    of_both = [each.exported_program().state_dict.items() for each in (edge, shared)]
    same = {name for (name, own), (_, other) in zip(*of_both) if own.data_ptr() == other.data_ptr()}
    assert same == {"0.weight", "0.bias", "1.bias", "2.bias", "3.bias", "4.weight", "4.bias"}


def test_saving_256_mib_takes_at_most_16_mib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = arm_models.write_linears(tmp_path)
    ours, theirs = tmp_path / "ours.bpte", tmp_path / "theirs.bpte"
    arguments = ["-m", str(model), "-d", "--bundleio", "-t", "TOSA-1.0+FP", "-o"]
    worker = SCRIPTS / "arm_worker.py"
    found = phases.profiled([sys.executable, str(worker), "etstream", *arguments, str(ours)])
    growth = {phase.name: phase.growth for phase in found}
    assert growth["save"] <= 16 * MIB
    assert growth["etrecord"] <= 16 * MIB
    assert growth["to_executorch"] <= 16 * MIB

    monkeypatch.setattr(sys, "argv", ["compiler", *arguments, str(theirs)])
    monkeypatch.setattr(arm, "generate_etrecord", lambda *_: None)
    arm.main()
    assert filecmp.cmp(ours, theirs, shallow=False)


def test_the_example_has_a_program_for_tosa_too(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", Path(__file__).resolve().parents[2] / "examples" / "fat_model.py", tmp_path],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "tosa does not run here" in run.stdout
    assert list(etstream.FatContainerFile(tmp_path / "model.fat")) == ["tosa", "xnnpack", "portable"]
