# SPDX-License-Identifier: BSD-3-Clause
"""Any bundle, of any values, has the bytes that ExecuTorch's serializer gives it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import executorch_bundle
import pytest
from cases import STORES_BY_DTYPE, Suite, Tensor, Value, write_cases
from command import Etstream, assert_same_bytes
from executorch.devtools.bundled_program.serialize.generated.executorch_flatbuffer import (
    ScalarType as upstream,
)
from executorch.exir.scalar_type import ScalarType
from generated_bundles import (
    GROUPS,
    INT64_MAX,
    INT64_MIN,
    PROGRAM_SIZES,
    GeneratedBundle,
    generate,
)
from rounds import ROUNDS

BUNDLES_A_ROUND = 4  # of each group


def expected_bytes(bundle: GeneratedBundle) -> bytes:
    return executorch_bundle.serialize(bundle.suites_in_file(), bundle.program)


def written_bytes(etstream: Etstream, bundle: GeneratedBundle, folder: Path) -> bytes:
    folder.mkdir()
    program = folder / "program.bin"
    program.write_bytes(bundle.program)
    cases = write_cases(
        folder, bundle.suites, by_method=bundle.by_method, ascii_only=bundle.ascii_only
    )
    return etstream.bundle(program, cases, folder / "out.bpte", "--unchecked", "--no-sync")


@pytest.mark.parametrize("group", GROUPS)
def test_generated_bundles_are_byte_identical(
    group: str, etstream: Etstream, tmp_path: Path
) -> None:
    for index in range(BUNDLES_A_ROUND * ROUNDS):
        bundle = generate(group, index)
        folder = tmp_path / str(index)
        assert_same_bytes(
            written_bytes(etstream, bundle, folder),
            expected_bytes(bundle),
            f"generate({group!r}, {index}), written from {folder}",
        )


@pytest.fixture(scope="module")
def all_bundles() -> list[GeneratedBundle]:
    """Returns the bundles of ten rounds."""
    return [generate(group, index) for group in GROUPS for index in range(10 * BUNDLES_A_ROUND)]


def values_of(suites: list[Suite]) -> Iterator[Any]:
    for suite in suites:
        for case in suite.cases:
            yield from case.inputs
            yield from case.expected_outputs


@pytest.fixture(scope="module")
def all_values(all_bundles: list[GeneratedBundle]) -> list[Any]:
    return [value for bundle in all_bundles for value in values_of(bundle.suites_in_file())]


def test_more_than_200_different_bundles_are_generated(
    all_bundles: list[GeneratedBundle],
) -> None:
    assert len({expected_bytes(bundle) for bundle in all_bundles}) >= 200


def test_every_dtype_of_executorch_is_generated_from_every_kind_of_file(
    all_values: list[Any],
) -> None:
    tensors = [value for value in all_values if isinstance(value, Tensor)]
    assert {(tensor.dtype, tensor.store) for tensor in tensors} == {
        (dtype, store) for dtype, stores in STORES_BY_DTYPE.items() for store in stores
    }
    generated = {executorch_bundle.SCALAR_TYPES[tensor.dtype].value for tensor in tensors}
    in_schema = {value for name, value in vars(upstream.ScalarType).items() if name.isupper()}
    # scalar_type.fbs leaves complex types out, which exir and the runtime have.
    assert generated == in_schema | {ScalarType.COMPLEX32, ScalarType.COMPLEX64, ScalarType.COMPLEX128}


def test_special_numbers_are_generated(all_values: list[Any]) -> None:
    spelt = {repr(value) for value in all_values if not isinstance(value, Tensor)}
    wanted: list[Value] = [None, True, False, 0, INT64_MIN, INT64_MAX]
    wanted += [0.0, -0.0, 5e-324, math.nan, math.inf, -math.inf]
    assert spelt >= set(map(repr, wanted))


def test_special_shapes_are_generated(all_values: list[Any]) -> None:
    shapes = {value.shape for value in all_values if isinstance(value, Tensor)}
    assert () in shapes
    assert (0,) in shapes
    assert any(0 in shape and math.prod(shape[:-1]) > 0 for shape in shapes)


def test_special_bundles_are_generated(all_bundles: list[GeneratedBundle]) -> None:
    assert {len(bundle.program) for bundle in all_bundles} >= set(PROGRAM_SIZES)
    names = [[suite.method for suite in bundle.suites] for bundle in all_bundles]
    assert [] in names
    assert any(len(set(methods)) < len(methods) for methods in names)
    assert any("" in methods for methods in names)
    assert any(not suite.cases for bundle in all_bundles for suite in bundle.suites)
    assert any(
        bundle.by_method and bundle.suites != bundle.suites_in_file() for bundle in all_bundles
    )
