# SPDX-License-Identifier: BSD-3-Clause
"""Shows that `verify --run` tells how methods end on the installed runtime: well, refused, by a signal and where, or
not at all."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import executorch.kernels.quantized
import numpy as np
import pytest
import torch
from command import Etstream
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir._serialize._program import deserialize_pte_binary, serialize_pte_binary
from executorch.exir.schema import JumpFalseCall

import executorch

sys.path.append(str(Path(__file__).resolve().parents[1] / "readme"))
from json_tables import check, read_tables

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ("--run", "--python", sys.executable)


class Remainder(torch.nn.Module):
    """A model that takes 7 modulo a number, which ends the runtime if the number is 0; no file shows that."""

    def forward(self, x: torch.Tensor) -> Any:
        n = x.item()
        torch._check(n >= 1)
        torch._check(n < 100)
        return torch.ones(3) * (7 % n), x.sin()


class Rows(torch.nn.Module):
    """A model that takes rows of a quantized table, whose kernel asserts that they are there."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.ones(4, 8, dtype=torch.int8))
        self.register_buffer("scales", torch.ones(4))
        self.register_buffer("zeros", torch.zeros(4))

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        row = torch.ops.quantized_decomposed.embedding_byte
        return row(self.rows, self.scales, self.zeros, -128, 127, index) + 1


class Scatter(torch.nn.Module):
    """A model that writes where its last input says; the kernel does not check that this is in the tensor."""

    def forward(self, by: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        backward = torch.ops.aten.max_pool2d_with_indices_backward
        return backward(by.sin(), x, [2, 2], [2, 2], [0, 0], [1, 1], False, index) + 1


class Branch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 4, lambda x: x.sin(), lambda x: x.cos(), (x,))


class Cache(torch.nn.Module):
    """A model that takes rows from a position on, of which there are 8 in all."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.ones(8, 1))

    def forward(self, tokens: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        first, count = position.item(), tokens.size(1)
        torch._check(first >= 0)
        torch._check(first + count <= 8)
        return self.rows.narrow(0, first, count).reshape(1, count) + tokens


class Large(torch.nn.Module):
    """A model that takes 200 MB of planned memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.expand(50_000_000) + 1).sum()


EXAMPLES: dict[str, tuple[torch.nn.Module, tuple[torch.Tensor, ...]]] = {
    "linear": (torch.nn.Linear(3, 2), (torch.ones(1, 3),)),
    "remainder": (Remainder(), (torch.tensor(3),)),
    "rows": (Rows(), (torch.zeros(3, dtype=torch.int64),)),
    "scatter": (
        Scatter(),
        (torch.ones(1, 1, 2, 2), torch.ones(1, 1, 4, 4), torch.zeros(1, 1, 2, 2, dtype=torch.int64)),
    ),
    "branch": (Branch(), (torch.ones(3),)),
    # ExecuTorch ends a loop of 10 million instructions itself, which takes minutes with these.
    "loop": (Branch(), (torch.ones(100_000),)),
    "large": (Large(), (torch.ones(1),)),
    "cache": (Cache(), (torch.zeros(1, 3, dtype=torch.int64), torch.tensor(1))),
}
DYNAMIC = {"cache": ({1: torch.export.Dim("count", min=1, max=8)}, None)}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function that returns the path of a program; in "loop", a branch leads back to the first instruction if
    x is small."""
    folder = tmp_path_factory.mktemp("programs")

    def path_of(name: str) -> Path:
        path = folder / f"{name}.pte"
        if path.exists():
            return path
        module, inputs = EXAMPLES[name]
        edge = to_edge(
            torch.export.export(module.eval(), inputs, dynamic_shapes=DYNAMIC.get(name)),
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
        content = edge.to_executorch().buffer
        if name == "loop":
            file = deserialize_pte_binary(content)
            for instruction in file.program.execution_plan[0].chains[0].instructions:
                if isinstance(instruction.instr_args, JumpFalseCall):
                    instruction.instr_args.destination_instruction = 0
                    break
            content = bytes(serialize_pte_binary(file))
        path.write_bytes(content)
        return path

    return path_of


@dataclass(frozen=True)
class Report:
    code: int
    runs: dict[str, dict[str, Any]]  # the runs by inputs
    errors: list[str]

    def ends(self) -> dict[str, str]:
        return {inputs: run["end"] for inputs, run in self.runs.items()}


def run(etstream: Etstream, *arguments: str | Path) -> Report:
    """Runs `verify`, and returns its report. The report has the fields that docs/command/reports.md has, and no others."""
    outcome = etstream.attempt("verify", *arguments, *PYTHON, "--json")
    report = json.loads(outcome.stdout)
    table = read_tables(ROOT / "docs" / "command")["verify"]
    assert not list(check(report, "", table, set()))
    assert report["ok"] == (outcome.code == 0)
    assert report["ok"] == all(each["end"] in ("ok", "inputs_refused") for each in report["runs"])
    return Report(outcome.code, {each["inputs"]: each for each in report["runs"]}, report["errors"])


def bundled(etstream: Etstream, program: Path, cases: list[Any], *options: str) -> Path:
    """Writes a bundle of the program with cases of arrays, as inputs and expected outputs."""
    folder, count = program.parent, 0

    def value(array: Any) -> dict[str, str]:
        nonlocal count
        count += 1
        np.save(folder / f"{count}.npy", array)
        return {"npy": f"{count}.npy"}

    told = [{"inputs": [*map(value, given)], "expected_outputs": [*map(value, wanted)]} for given, wanted in cases]
    (folder / "cases.json").write_text(json.dumps({"forward": told}))
    path = folder / f"{program.stem}.bpte"
    etstream.bundle(program, folder / "cases.json", path, "--no-sync", *options)
    return path


def test_a_program_that_runs_is_ok(etstream: Etstream, exported: Callable[[str], Path]) -> None:
    report = run(etstream, exported("linear"), "--seed", "7")
    assert report.ends() == {"zeros": "ok", "ones": "ok", "random (seed 7)": "ok"}
    assert report.code == 0
    outcome = etstream.attempt("verify", exported("linear"), *PYTHON)
    path = exported("linear")
    said = [f"{path}: forward, {inputs}: ok" for inputs in ("zeros", "ones", "random (seed 0)")]
    assert outcome.stdout.decode().splitlines() == [*said, f"{path}: ok"]


def test_what_executorch_refuses_is_told_with_its_error(
    etstream: Etstream, exported: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "other.pte"
    path.write_bytes(exported("linear").read_bytes().replace(b"aten::addmm", b"aten::odd__"))
    report = run(etstream, path)
    assert set(report.ends().values()) == {"refused"}
    refused = report.runs["zeros"]
    assert (refused["error"], refused["error_name"]) == (0x14, "OperatorMissing")
    assert "aten::odd__.out" in refused["reason"]
    assert report.code == 1


def test_made_up_inputs_are_short_first_and_no_error_if_they_are_refused(
    etstream: Etstream, exported: Callable[[str], Path], tmp_path: Path
) -> None:
    ends = {"shortest zeros": "ok", "shortest ones": "ok"}
    assert run(etstream, exported("cache"), "--seed", "0").ends() == {**ends, "shortest random (seed 0)": "ok"}
    report = run(etstream, exported("cache"), "--seed", "1")  # whose position is 8
    assert report.ends() == {**ends, "random (seed 1)": "inputs_refused"}
    assert report.code == 0
    said = etstream.attempt("verify", exported("cache"), "--seed", "1", *PYTHON).stdout.decode()
    told = re.search(r"; no error of the file, .*: verify a bundle with test cases; etstream (.*) takes them\n", said)
    assert told is not None
    # The command that it names gives the method others.
    tokens = {"raw": "tokens.bin", "dtype": "int64", "shape": [1, 2]}
    (tmp_path / "tokens.bin").write_bytes(bytes(16))
    position = {"raw": "position.bin", "dtype": "int64", "shape": []}
    (tmp_path / "position.bin").write_bytes(bytes([6, *bytes(7)]))
    (tmp_path / "cases.json").write_text(json.dumps({"forward": [{"inputs": [tokens, position]}]}))
    files = {"MODEL": exported("cache"), "CASES.json": tmp_path / "cases.json", "OUT.bpte": tmp_path / "out.bpte"}
    made = etstream.attempt(*(files.get(word, word) for word in told[1].split()))
    assert made.code == 0, made.stderr
    assert run(etstream, tmp_path / "out.bpte").ends() == {"test case 0": "ok"}


def test_a_signal_is_told_with_its_operator(etstream: Etstream, exported: Callable[[str], Path]) -> None:
    before = exported("remainder").read_bytes()
    report = run(etstream, exported("remainder"))
    ended = report.runs["zeros"]
    assert (ended["end"], ended["signal"], ended["callee"]) == ("signal", "SIGFPE", "executorch_prim::mod.Scalar")
    assert etstream.graph(exported("remainder"), "forward")["calls"][ended["instruction"]]["name"] == ended["callee"]
    assert report.ends() == {"zeros": "signal", "ones": "ok", "random (seed 0)": "ok"}
    assert exported("remainder").read_bytes() == before


def test_an_assertion_is_the_reason_of_sigabrt(etstream: Etstream, exported: Callable[[str], Path]) -> None:
    ended = run(etstream, exported("rows")).runs["random (seed 0)"]
    assert (ended["signal"], ended["instruction"]) == ("SIGABRT", 0)
    assert re.search(r"In function .*assert failed.*Index out of bounds", ended["reason"])


@pytest.mark.parametrize("bundle_format", ["bp08", "segmented"])
def test_the_case_of_a_bundle_that_ends_the_runtime_is_named(
    bundle_format: str, etstream: Etstream, exported: Callable[[str], Path]
) -> None:
    by, x = np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1, 4, 4), np.float32)
    cases = [([by, x, np.full((1, 1, 2, 2), index)], []) for index in (0, 1 << 40, 2)]
    path = bundled(etstream, exported("scatter"), cases, "--to", bundle_format)
    report = run(etstream, path)
    assert report.ends() == {"test case 0": "ok", "test case 1": "signal", "test case 2": "ok"}
    ended = report.runs["test case 1"]
    assert (ended["signal"], ended["instruction"]) == ("SIGSEGV", 1)
    assert ended["callee"] == "aten::max_pool2d_with_indices_backward.grad_input"


def test_outputs_are_compared_with_the_expected_ones(etstream: Etstream, exported: Callable[[str], Path]) -> None:
    given = np.ones((1, 3), np.float32)
    expected = EXAMPLES["linear"][0](torch.from_numpy(given)).detach().numpy()
    other = expected + np.float32(0.25)
    path = bundled(etstream, exported("linear"), [([given], [expected]), ([given], [other])])
    report = run(etstream, path)
    assert report.ends() == {"test case 0": "ok", "test case 1": "other_outputs"}
    (output,) = report.runs["test case 1"]["outputs"]
    assert (output["elements"], output["mismatches"]) == (2, 2)
    assert output["largest_absolute_error"] == pytest.approx(0.25, abs=1e-3)
    assert run(etstream, path, "--atol", "0.3").ends() == {"test case 0": "ok", "test case 1": "ok"}


def test_a_run_without_end_is_out_of_time(etstream: Etstream, exported: Callable[[str], Path]) -> None:
    assert set(run(etstream, exported("branch")).ends().values()) == {"ok"}
    assert run(etstream, exported("loop"), "--run-seconds", "1").ends()["zeros"] == "out_of_time"


def test_a_run_has_so_much_memory(etstream: Etstream, exported: Callable[[str], Path]) -> None:
    assert set(run(etstream, exported("large"), "--run-memory", "64M").ends().values()) == {"out_of_memory"}
    assert set(run(etstream, exported("large"), "--run-memory", "1G").ends().values()) == {"ok"}


def test_weights_come_from_a_tensor_data_file(
    etstream: Etstream, exported: Callable[[str], Path], tmp_path: Path
) -> None:
    thin, weights = tmp_path / "thin.pte", tmp_path / "w.ptd"
    etstream.pte(exported("linear"), thin, "--constants-to", str(weights))
    assert set(run(etstream, thin, weights).ends().values()) == {"ok"}
    assert set(run(etstream, thin).ends().values()) == {"refused"}
    shards = tmp_path / "s.ptd"
    etstream.pte(exported("linear"), thin, "--constants-to", str(shards), "--split-max-size", "24")
    outcome = etstream.attempt("verify", thin, *sorted(tmp_path.glob("s-*.ptd")), *PYTHON)
    assert outcome.code == 1
    assert "take one tensor data file, found 2; join them first: etstream ptd" in outcome.stderr


def children_of(process: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found.append(int(stat.parent.name))
    return found


def wait_for(what: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def test_the_run_ends_with_the_command(etstream: Etstream, exported: Callable[[str], Path]) -> None:
    with subprocess.Popen([etstream.binary, "verify", exported("loop"), *PYTHON]) as command:
        (worker,) = wait_for(lambda: children_of(command.pid))
        (process,) = wait_for(lambda: children_of(worker))
        command.send_signal(signal.SIGTERM)
        assert command.wait() == -signal.SIGTERM
        for each in (worker, process):
            wait_for(lambda each=each: not Path(f"/proc/{each}").exists())


def test_errors_have_executorchs_names() -> None:
    header = Path(next(iter(executorch.__path__))) / "include/executorch/runtime/core/error.h"
    theirs = {int(number, 16): name for name, number in re.findall(r"^  (\w+) = (0x\w+),", header.read_text(), re.M)}
    source = (ROOT / "src/files/runs/output_run.cpp").read_text()
    ours = {int(number, 16): name for number, name in re.findall(r'\{(0x\w+), "(\w+)"\}', source)}
    assert {0: "Ok", **ours} == theirs


def test_temporary_files_are_gone(etstream: Etstream, exported: Callable[[str], Path], tmp_path: Path) -> None:
    command = [etstream.binary, "verify", exported("remainder"), *PYTHON]
    subprocess.run(command, env=os.environ | {"TMPDIR": str(tmp_path)}, check=False, capture_output=True, timeout=120)
    assert not list(tmp_path.iterdir())
