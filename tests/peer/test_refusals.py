# SPDX-License-Identifier: BSD-3-Clause
"""Test cases that don't fit their program are refused: ExecuTorch's reader can't be trusted to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import Case, Store, Suite, write_cases
from command import Etstream
from executorch_bundle import RunnableBundle
from executorch_judge import Task, Verdict, judge
from misfits import BAD_CASE, MISFITS, Fate, Misfit
from models import CachedModel, to_suites

ModelByName = Callable[[str], CachedModel]

every_misfit = pytest.mark.parametrize("name", MISFITS)


def write_misfit(misfit: Misfit, model: ModelByName, folder: Path) -> tuple[Path, Path]:
    """Writes test cases that don't fit their program, and returns the paths of both."""
    subject = model(misfit.model)
    return subject.program, write_cases(folder, misfit.suites(subject), by_method=True)


@every_misfit
def test_bundle_names_the_misfit_and_leaves_no_file(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    program, cases = write_misfit(MISFITS[name], model, tmp_path)
    output = tmp_path / "out.bpte"
    before = set(tmp_path.iterdir())
    outcome = etstream.attempt("bundle", program, "--cases", cases, "-o", output)
    assert outcome.code == 1
    (error,) = outcome.errors()
    assert error.startswith(MISFITS[name].message())
    assert set(tmp_path.iterdir()) == before


@every_misfit
def test_verify_finds_in_the_unchecked_bundle_what_bundle_refuses(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    program, cases = write_misfit(MISFITS[name], model, tmp_path)
    output = tmp_path / "out.bpte"
    refused = etstream.attempt("bundle", program, "--cases", cases, "-o", output).errors()
    etstream.bundle(program, cases, output, "--unchecked", "--no-sync")
    assert etstream.verify(output).errors == refused
    assert etstream.attempt("verify", output).errors() == refused


@pytest.fixture(scope="module")
def verdicts(
    model: ModelByName, etstream: Etstream, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Verdict]:
    """Returns ExecuTorch's verdict on each misfit, which is bundled all the same."""
    tasks = []
    for misfit in MISFITS.values():
        folder = tmp_path_factory.mktemp("misfit")
        program, cases = write_misfit(misfit, model, folder)
        output = folder / "out.bpte"
        etstream.bundle(program, cases, output, "--unchecked", "--no-sync")
        tasks.append(Task(str(output), misfit.method, BAD_CASE))
    return dict(zip(MISFITS, judge(tasks), strict=True))


@every_misfit
def test_executorch_fares_with_the_unchecked_bundle_as_expected(
    name: str, verdicts: dict[str, Verdict]
) -> None:
    fate = MISFITS[name].fate
    verdict = verdicts[name]
    # ExecuTorch accepts only values beyond those that the method has.
    assert verdict.accepted == (fate is Fate.UNNOTICED) == name.startswith("too many")
    if fate is not Fate.UNDEFINED:
        assert verdict.error == fate.value
        assert verdict.crashed == (fate is Fate.ABORT)


def test_test_cases_of_an_unknown_method_are_refused_as_executorch_refuses_them(
    model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model("example")
    (suite,) = to_suites(subject.cases(), Store.NPY)
    cases = write_cases(tmp_path, [Suite("nonesuch", suite.cases)])
    output = tmp_path / "out.bpte"
    refused = etstream.attempt("bundle", subject.program, "--cases", cases, "-o", output)
    assert refused.code == 1
    (error,) = refused.errors()
    assert error.startswith("method 'nonesuch': the program has no such method")
    assert not output.exists()
    etstream.bundle(subject.program, cases, output, "--unchecked", "--no-sync")
    assert etstream.verify(output).errors == [error]
    with pytest.raises(RuntimeError):
        RunnableBundle(output.read_bytes()).verify("nonesuch", 0, rtol=1e-4, atol=1e-4)


def test_every_misfit_of_a_bundle_is_reported(
    model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    misfits = [
        MISFITS[name] for name in ("second input of another dtype", "another int than exported")
    ]
    suites = [
        suite
        for misfit in misfits
        for suite in misfit.suites(model("two_methods"))
        if suite.method == misfit.method
    ]
    cases = write_cases(tmp_path, suites)
    output, program = tmp_path / "out.bpte", model("two_methods").program
    errors = etstream.attempt("bundle", program, "--cases", cases, "-o", output).errors()
    assert len(errors) == len(misfits)
    for error, misfit in zip(errors, misfits, strict=True):
        assert error.startswith(misfit.message())


def test_bundling_without_expected_outputs_is_allowed_as_executorch_runs_such_cases(
    model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model("example")
    (suite,) = to_suites(subject.cases(), Store.NPY)
    for_profiling = [Case(case.inputs, []) for case in suite.cases]
    cases = write_cases(tmp_path, [Suite("forward", for_profiling)])
    output = tmp_path / "out.bpte"
    etstream.bundle(subject.program, cases, output, "--no-sync")
    assert etstream.verify(output).errors == []
