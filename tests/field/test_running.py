# SPDX-License-Identifier: BSD-3-Clause
"""Loads the files of every release in the current release's runtime, and runs them with the expected outputs.

Files that etstream writes as of a release have the same bytes, which test_writing.py shows.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from conftest import Files
from executorch_judge import Task, Verdict, judge
from prepare import FIELD, NATIVE, described_models, tensor_layouts
from releases import CURRENT, WRITERS, Writer

pytestmark = pytest.mark.aspect("run")

# The data of this model lies outside, where a bundle's program doesn't find it.
OUTSIDE = "external_constants"

# The convolutions' weights of this model are not in the order of their inputs; the runtime's kernels want one order.
REFUSED = "channels_last"


def tasks_of(folder: Path) -> list[tuple[str, Task]]:
    """Returns the tasks by the hash of the files that they are about."""
    tasks = []
    for model in described_models():
        if model.name in (OUTSIDE, REFUSED):
            continue
        bundle = folder / f"{model.name}.bpte"
        digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
        for method, cases in json.loads((model / "cases.json").read_text()).items():
            for case in range(len(cases)):
                tasks.append((f"{digest} {method} {case}", Task(str(bundle), method, case)))
    return tasks


@pytest.fixture(scope="session")
def verdicts() -> dict[str, Verdict]:
    """Returns the verdicts on all bundles; equal bundles are judged once."""
    folders = [FIELD / "same" / str(writer) for writer in WRITERS] + [FIELD / "native" / str(each) for each in NATIVE]
    tasks = dict(pair for folder in folders for pair in tasks_of(folder))
    return dict(zip(tasks, judge(list(tasks.values())), strict=True))


def assert_run(folder: Path, verdicts: dict[str, Verdict]) -> None:
    for key, task in tasks_of(folder):
        assert verdicts[key].accepted, (task, verdicts[key].error)


def test_bundles_give_the_outputs_that_they_expect(
    writer: Writer, files: Files, verdicts: dict[str, Verdict]
) -> None:
    assert_run(files.folder, verdicts)


@pytest.mark.parametrize("writer", NATIVE, ids=str)
def test_what_a_release_exported_gives_the_outputs_that_it_expects(
    writer: Writer, verdicts: dict[str, Verdict]
) -> None:
    assert_run(FIELD / "native" / str(writer), verdicts)


@pytest.mark.parametrize("writer", [CURRENT], ids=str)
def test_the_model_that_is_left_out_does_not_run_as_the_current_release_exports_it(writer: Writer) -> None:
    (verdict,) = judge([Task(str(FIELD / "current" / f"{REFUSED}.bpte"), "forward")])
    assert verdict == Verdict(accepted=False, error="RuntimeError: Method execution failed with status 0x12")


def test_programs_run_with_data_outside(writer: Writer, files: Files) -> None:
    import torch
    from executorch_bundle import LoadedProgram

    model = FIELD / "current" / OUTSIDE
    (case,) = json.loads((model / "cases.json").read_text())["forward"]

    def tensor(described: dict[str, object]) -> torch.Tensor:
        data = bytearray((model / str(described["raw"])).read_bytes())
        return torch.frombuffer(data, dtype=torch.float32).reshape(described["shape"])

    for layout in tensor_layouts(writer):
        program, weights = ((files.folder / f"{OUTSIDE}.{layout}.{kind}").read_bytes() for kind in ("pte", "ptd"))
        outputs = LoadedProgram(program, weights).run("forward", [tensor(each) for each in case["inputs"]])
        torch.testing.assert_close(outputs, [tensor(each) for each in case["expected_outputs"]])
