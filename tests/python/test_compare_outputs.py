# SPDX-License-Identifier: BSD-3-Clause
"""Compares files of outputs with a bundle; tests/peer/test_compare.py has the outputs of ExecuTorch's runtime."""

from __future__ import annotations

import re
from pathlib import Path

import etstream
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "model.bpte"
    etstream.bundle(EXAMPLES / "model.pte", EXAMPLES / "cases.json", path)
    return path


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "outputs"
    for case in range(2):
        (folder / str(case)).mkdir(parents=True)
        np.save(folder / str(case) / "out-0.npy", np.load(EXAMPLES / f"scores_{case}.npy"))
    return folder


def test_outputs_as_expected_are_true_with_a_run_for_each_case(bundle: Path, outputs: Path) -> None:
    for source in (bundle, bundle.read_bytes()):
        found = etstream.compare_outputs(source, outputs)
        assert found, found
        assert [run.inputs for run in found.runs] == ["test case 0", "test case 1"]
        assert all(found.runs)
        assert [output.file for output in found.runs[1].outputs] == [str(outputs / "1" / "out-0.npy")]
        assert found.runs[1].outputs[0].elements == 10
        assert (found.errors, found.warnings, found.problems) == ((), (), 0)


def test_an_element_that_differs_has_a_place(bundle: Path, outputs: Path) -> None:
    path = outputs / "1" / "out-0.npy"
    scores = np.load(path)
    scores[0, 7] += 1
    np.save(path, scores)
    found = etstream.compare_outputs(bundle, outputs)
    assert not found
    assert [bool(run) for run in found.runs] == [True, False]
    comparison = found.runs[1].outputs[0]
    assert (comparison.mismatches, comparison.first.place, comparison.worst.place) == (1, (0, 7), (0, 7))
    assert "forward, test case 1: output 0" in str(found)
    assert etstream.compare_outputs(bundle, outputs, atol=2)
    assert etstream.compare_outputs(bundle, outputs, method="forward", case=0)
    with pytest.raises(etstream.InvalidArgumentError):
        etstream.compare_outputs(bundle, outputs, atol=-1)


def test_what_can_not_be_compared_is_a_problem(bundle: Path, outputs: Path) -> None:
    np.save(outputs / "0" / "out-0.npy", np.load(EXAMPLES / "scores_0.npy").astype(np.float64))
    (outputs / "1" / "out-0.npy").rename(outputs / "1" / "scores.npy")
    found = etstream.compare_outputs(bundle, outputs)
    assert not found
    assert found.problems == 2
    assert found.runs[0].outputs[0].problem == "is float64, expected float32"
    assert re.match(r"has no file in '.*outputs'", found.runs[1].outputs[0].problem)
    assert "1/scores.npy" in found.warnings[0]
    with pytest.raises(etstream.NotFoundError):
        etstream.compare_outputs(bundle, outputs, case=2)
    with pytest.raises(etstream.NotFoundError):
        etstream.compare_outputs(bundle, outputs / "missing")
