# SPDX-License-Identifier: BSD-3-Clause
"""A bundle with --program-alignment is still one that ExecuTorch reads and runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cases import Store, write_cases
from command import Etstream
from executorch.devtools.bundled_program.serialize import (
    deserialize_from_flatbuffer_to_bundled_program,
)
from executorch.devtools.bundled_program.serialize.generated.bundled_program_flatbuffer import (
    BundledProgram as reader,
)
from executorch_bundle import RunnableBundle
from models import CachedModel, to_suites


def program_offset(bundle: bytes) -> int:
    """Returns the offset at which the program's bytes begin in the file."""
    program = reader.BundledProgram.GetRootAs(bundle).ProgramAsNumpy()
    whole_file = np.frombuffer(bundle, np.uint8)
    return program.ctypes.data - whole_file.ctypes.data


@pytest.fixture
def aligned_bundle(
    alignment: int, model: Callable[[str], CachedModel], etstream: Etstream, tmp_path: Path
) -> bytes:
    subject = model("example")
    listing = write_cases(tmp_path, to_suites(subject.cases(), Store.NPY), by_method=True)
    options = ("--program-alignment", str(alignment))
    return etstream.bundle(subject.program, listing, tmp_path / "out.bpte", *options)


pytestmark = pytest.mark.parametrize("alignment", [4096, 65536])


def test_program_lies_whole_at_a_multiple_of_the_alignment(
    alignment: int, aligned_bundle: bytes, model: Callable[[str], CachedModel]
) -> None:
    program = model("example").program.read_bytes()
    start = program_offset(aligned_bundle)
    assert start % alignment == 0
    assert aligned_bundle[start : start + len(program)] == program


def test_executorch_reads_what_it_would_have_written(
    aligned_bundle: bytes, model: Callable[[str], CachedModel]
) -> None:
    read = deserialize_from_flatbuffer_to_bundled_program
    assert read(aligned_bundle) == read(model("example").expected_bundle())


def test_executorch_verifies_an_aligned_bundle(aligned_bundle: bytes) -> None:
    bundle = RunnableBundle(aligned_bundle)
    for index in range(2):
        bundle.verify("forward", index, rtol=1e-4, atol=1e-4)
