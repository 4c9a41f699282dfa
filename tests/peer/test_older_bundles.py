# SPDX-License-Identifier: BSD-3-Clause
"""Reads bundles in the order of ExecuTorch's older writers, which went through JSON and flatc."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import Case, Store, Suite, Value
from command import Etstream
from executorch_bundle import RunnableBundle, serialize, serialize_as_older_writers
from generated_bundles import GROUPS, generate
from models import CachedModel, to_suites
from rounds import ROUNDS

ModelByName = Callable[[str], CachedModel]

small_models = pytest.mark.parametrize("name", ["example", "two_methods"])


def older_bundle(subject: CachedModel) -> bytes:
    suites = to_suites(subject.cases(), Store.RAW)
    in_order = sorted(suites, key=lambda suite: suite.method)
    return serialize_as_older_writers(in_order, subject.program.read_bytes())


def extracted(etstream: Etstream, bundle: bytes, folder: Path) -> dict[str, bytes]:
    """Returns the program and all files of the test cases."""
    folder.mkdir()
    file = folder / "bundle.bpte"
    file.write_bytes(bundle)
    cases = etstream.extract_cases(file, folder / "cases").parent
    program = etstream.extract_program(file, folder / "program.pte")
    return {"": program, **{path.name: path.read_bytes() for path in cases.iterdir()}}


def assert_describe_the_same(etstream: Etstream, older: bytes, newer: bytes, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    from_older = extracted(etstream, older, folder / "older")
    assert from_older == extracted(etstream, newer, folder / "newer")


@small_models
def test_verify_accepts_an_older_bundle(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    older = older_bundle(model(name))
    assert older != model(name).expected_bundle()
    file = tmp_path / "older.bpte"
    file.write_bytes(older)
    assert etstream.verify(file).errors == []
    RunnableBundle(older).verify(sorted(model(name).cases())[0], 0, rtol=1e-4, atol=1e-4)


@small_models
def test_extract_gives_of_an_older_bundle_what_it_gives_of_a_new_one(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    older, newer = older_bundle(model(name)), model(name).expected_bundle()
    assert_describe_the_same(etstream, older, newer, tmp_path)


@small_models
def test_inspect_shows_of_an_older_bundle_what_it_shows_of_a_new_one(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    file = tmp_path / "older.bpte"
    file.write_bytes(older_bundle(model(name)))
    older, newer = etstream.inspect(file), etstream.inspect(model(name).folder / "expected.bpte")
    for what in ("format", "version", "methods", "suites"):
        assert older[what] == newer[what]
    sizes = [{part["path"]: part["size"] for part in shown["parts"]} for shown in (older, newer)]
    assert sizes[0] == sizes[1]


def flatc_takes(value: Value) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def as_flatc_takes_it(suite: Suite) -> Suite:
    """Returns the suite without values that the older writers refused."""
    return Suite(
        suite.method,
        [
            Case(
                inputs=list(filter(flatc_takes, case.inputs)),
                expected_outputs=list(filter(flatc_takes, case.expected_outputs)),
            )
            for case in suite.cases
        ],
    )


@pytest.mark.parametrize("group", GROUPS)
def test_extract_gives_of_any_older_bundle_what_it_gives_of_a_new_one(
    group: str, etstream: Etstream, tmp_path: Path
) -> None:
    for index in range(ROUNDS):
        bundle = generate(group, index)
        suites = list(map(as_flatc_takes_it, bundle.suites_in_file()))
        older = serialize_as_older_writers(suites, bundle.program)
        newer = serialize(suites, bundle.program)
        assert_describe_the_same(etstream, older, newer, tmp_path / str(index))
