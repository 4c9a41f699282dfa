# SPDX-License-Identifier: BSD-3-Clause
"""Bundles of real models are the ones ExecuTorch makes, and its runtime takes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cases import Store, write_cases
from command import Etstream, assert_same_bytes
from executorch_bundle import RunnableBundle
from models import MODELS, CachedModel, CasesByMethod, ModelCase, to_suites

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RTOL, ATOL = 1e-4, 1e-4

ModelByName = Callable[[str], CachedModel]


def bundle_of(
    etstream: Etstream, program: Path, cases: CasesByMethod, store: Store, folder: Path
) -> bytes:
    listing = write_cases(folder, to_suites(cases, store), by_method=True)
    return etstream.bundle(program, listing, folder / "out.bpte", "--no-sync")


def with_outputs_swapped(cases: CasesByMethod) -> CasesByMethod:
    """Returns cases in which every method's first case expects the outputs of its second."""
    return {
        method: [ModelCase(group[0].inputs, group[1].outputs), *group[1:]]
        for method, group in cases.items()
    }


@pytest.mark.parametrize("store", Store)
@pytest.mark.parametrize("name", MODELS)
def test_bundle_is_byte_identical_to_executorchs(
    name: str, store: Store, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    ours = bundle_of(etstream, subject.program, subject.cases(), store, tmp_path)
    assert_same_bytes(ours, subject.expected_bundle(), f"{name}, tensors in {store.value}")


@pytest.mark.parametrize("name", MODELS)
def test_executorch_verifies_every_case_of_every_method(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    cases = subject.cases()
    bundle = RunnableBundle(bundle_of(etstream, subject.program, cases, Store.NPY, tmp_path))
    assert bundle.methods() == sorted(cases)
    for method, group in cases.items():
        for index in range(len(group)):
            bundle.verify(method, index, rtol=RTOL, atol=ATOL)
        outputs = bundle.run(method, group[0].inputs)
        torch.testing.assert_close(tuple(outputs), group[0].outputs, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("name", MODELS)
def test_executorch_reports_a_wrong_expected_output(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    wrong = with_outputs_swapped(subject.cases())
    bundle = RunnableBundle(bundle_of(etstream, subject.program, wrong, Store.NPY, tmp_path))
    for method in wrong:
        with pytest.raises(RuntimeError, match="Result verification failed with status 32"):
            bundle.verify(method, 0, rtol=RTOL, atol=ATOL)
        bundle.verify(method, 1, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("name", MODELS)
def test_pipe_gets_the_same_bytes_as_a_file(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    listing = write_cases(tmp_path, to_suites(subject.cases(), Store.RAW), by_method=True)
    to_file = etstream.bundle(subject.program, listing, tmp_path / "out.bpte")
    assert etstream.bundle_to_pipe(subject.program, listing) == to_file


def test_executorch_verifies_the_bundle_of_the_checked_in_example(
    etstream: Etstream, tmp_path: Path
) -> None:
    output = tmp_path / "out.bpte"
    bundle = RunnableBundle(
        etstream.bundle(EXAMPLES / "model.pte", EXAMPLES / "cases.json", output)
    )
    for index in range(2):
        bundle.verify("forward", index, rtol=RTOL, atol=ATOL)
