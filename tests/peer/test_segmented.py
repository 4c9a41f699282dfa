# SPDX-License-Identifier: BSD-3-Clause
"""Converts bundles of ExecuTorch's own content to segmented ones and back, and runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import Store, Suite, write_cases
from command import Etstream, assert_same_bytes
from executorch_bundle import described_methods, serialize, serialize_as_older_writers
from generated_bundles import GROUPS, generate
from models import MODELS, CachedModel, to_suites
from rounds import ROUNDS
from test_older_bundles import as_flatc_takes_it, older_bundle

ModelByName = Callable[[str], CachedModel]

models = pytest.mark.parametrize("name", list(MODELS))


def there_and_back(etstream: Etstream, bundle: bytes, folder: Path) -> Path:
    """Checks that the bundle comes back from a segmented one, and returns the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    original, segmented = folder / "original.bpte", folder / "segmented.bpte"
    original.write_bytes(bundle)
    etstream.convert(original, segmented, "segmented")
    back = etstream.convert(segmented, folder / "back.bpte", "bp08")
    assert_same_bytes(back, bundle, f"{folder.name}, there and back")
    return segmented


@models
def test_a_model_comes_back_from_a_segmented_bundle(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    segmented = there_and_back(etstream, subject.expected_bundle(), tmp_path)
    assert etstream.verify(segmented).errors == []
    program = etstream.extract_program(segmented, tmp_path / "program.pte")
    assert program == subject.program.read_bytes()
    assert described_methods(program)


@models
def test_bundling_as_segmented_is_bundling_and_converting(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    cases = write_cases(tmp_path, to_suites(subject.cases(), Store.NPY), by_method=True)
    direct = etstream.bundle(
        subject.program, cases, tmp_path / "direct.bpte", "--to", "segmented"
    )
    converted = there_and_back(etstream, subject.expected_bundle(), tmp_path / "converted")
    assert direct == converted.read_bytes()


@pytest.mark.parametrize("name", ["example", "two_methods"])
def test_an_older_bundle_keeps_its_order(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    segmented = there_and_back(etstream, older_bundle(model(name)), tmp_path)
    assert etstream.verify(segmented).errors == []


@pytest.mark.parametrize("group", GROUPS)
def test_any_bundle_comes_back_in_either_order(
    group: str, etstream: Etstream, tmp_path: Path
) -> None:
    for index in range(ROUNDS):
        bundle = generate(group, index)
        newer = serialize(bundle.suites_in_file(), bundle.program)
        there_and_back(etstream, newer, tmp_path / f"new-{index}")
        suites: list[Suite] = list(map(as_flatc_takes_it, bundle.suites_in_file()))
        older = serialize_as_older_writers(suites, bundle.program)
        there_and_back(etstream, older, tmp_path / f"older-{index}")
