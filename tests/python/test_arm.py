# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's Arm compiler through etstream: the files that it writes by itself, in little memory."""

from __future__ import annotations

import copy
import filecmp
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import arm_models
import phases
import pytest
import torch
from etrecords import entries
from executorch.backends.arm.scripts import aot_arm_compiler as arm
from executorch.devtools.etrecord import parse_etrecord
from executorch.exir import to_edge

import etstream.aot_arm_compiler
import etstream.executorch

MIB = 1 << 20
TARGETS = {
    "TOSA-1.0+FP": [],
    "TOSA-1.0+INT": ["-q"],
    "ethos-u55-128": ["-q"],
}
Compile = Callable[..., Path]


@pytest.fixture
def compile_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Compiles the small model in this process; gives the folder of what was written."""
    model = arm_models.write_cnn(tmp_path)

    def run(main: Callable[[], None], *arguments: str) -> Path:
        folder = tmp_path / main.__module__
        monkeypatch.setattr(sys, "argv", ["compiler", "-m", str(model), "-d", "-o", str(folder), *arguments])
        main()
        return folder

    return run


def run_as_command() -> None:
    runpy.run_module("etstream.aot_arm_compiler", run_name="__main__")


@pytest.mark.parametrize("target", TARGETS)
def test_a_bundle_is_what_the_compiler_writes_by_itself(
    target: str, compile_with: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = []
    generate = arm.generate_etrecord
    monkeypatch.setattr(arm, "generate_etrecord", lambda *args: recorded.append(args) or generate(*args))
    arguments = ["--bundleio", "-t", target, *TARGETS[target]]
    ours = compile_with(etstream.aot_arm_compiler.main, *arguments)
    theirs = compile_with(arm.main, *arguments)

    bundle, record = f"cnn_arm_delegate_{target}.bpte", f"cnn_arm_delegate_{target}_etrecord.bin"
    assert sorted(file.name for file in ours.iterdir()) == [bundle, record]
    assert (ours / bundle).read_bytes() == (theirs / bundle).read_bytes()
    # No two compilations give the same record, as there are identities of objects in it.
    (_, *programs), _ = recorded
    generate(theirs / record, *programs)
    assert entries(ours / record) == entries(theirs / record)
    assert parse_etrecord(str(ours / record)).edge_dialect_program is not None


def test_a_program_is_what_the_compiler_writes_by_itself(compile_with: Compile) -> None:
    ours = compile_with(run_as_command, "-t", "TOSA-1.0+FP")
    theirs = compile_with(arm.main, "-t", "TOSA-1.0+FP")
    name = "cnn_arm_delegate_TOSA-1.0+FP.pte"
    assert (ours / name).read_bytes() == (theirs / name).read_bytes()


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
    worker = Path(__file__).with_name("arm_worker.py")
    found = phases.watched([sys.executable, str(worker), "etstream", *arguments, str(ours)])
    growth = {phase.name: phase.growth for phase in found}
    assert growth["save"] <= 16 * MIB
    assert growth["etrecord"] <= 16 * MIB
    assert growth["to_executorch"] <= 16 * MIB

    monkeypatch.setattr(sys, "argv", ["compiler", *arguments, str(theirs)])
    monkeypatch.setattr(arm, "generate_etrecord", lambda *_: None)
    arm.main()
    assert filecmp.cmp(ours, theirs, shallow=False)
