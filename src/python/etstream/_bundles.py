# SPDX-License-Identifier: BSD-3-Clause
"""Bundles: programs with test cases."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from etstream import _core
from etstream._progress import Progress
from etstream._writers import installed_flatbuffers

BundleFormat = Literal["bp08", "segmented"]
Cases = str | os.PathLike[str] | Mapping[str, Iterable[_core.TestCase]] | Iterable[_core.TestSuite]


def read_test_cases(path: str | os.PathLike[str]) -> list[_core.TestSuite]:
    """The suites of a JSON file of test cases.

    Headers of the tensors' files are read, their data is not.

    Raises:
        NotFoundError: the file, or one that it names, is not there.
        CorruptError: what is not JSON.
        InvalidArgumentError: what is no test case; names the line, the case and the value.
    """
    return _core.read_test_cases(path)


def plan_bundle(
    program: Any,
    cases: Cases,
    *,
    format: BundleFormat = "bp08",
    hash: bool = True,
    program_alignment: int = 32,
    unchecked: bool = False,
    as_of: str | None = None,
    flatbuffers: str | None = None,
) -> _core.FilePlan:
    """The plan of a bundle (.bpte) of a program and test cases for its methods.

    Args:
        program: a source: all of a .pte file.
        cases: the path of a JSON file of test cases; or the cases of each method, whose suites are sorted by
            its name, as ExecuTorch writes them; or suites as they are to come.
        format: "bp08" is ExecuTorch's own, of at most 2 GiB and the same bytes; "segmented" has the program
            and large tensors behind the metadata, of any size, aligned and hashed.
        hash: whether a segmented bundle has hashes, by which verify() finds damage.
        program_alignment: of the program in a BP08 file, in bytes, a power of two from 1 to 65536; 32 is
            ExecuTorch's.
        unchecked: leave out the check that the test cases fit the program.
        as_of: the release of ExecuTorch whose bytes a BP08 file gets, from "1.0" on; the latest by default.
        flatbuffers: the version of the Python package flatbuffers whose bytes it gets; by default that of the
            installed one, or the latest where there is none.

    Raises:
        InvalidArgumentError: the test cases do not fit the program; names method, case and value. A version that is none.
        CorruptError: the program can't be read.
        TooLargeError: a BP08 file would be over 2 GiB.
    """
    return _core.plan_bundle(
        program,
        suites_of(cases),
        format=format,
        hash=hash,
        program_alignment=program_alignment,
        unchecked=unchecked,
        as_of=as_of,
        flatbuffers=flatbuffers or installed_flatbuffers(),
    )


def suites_of(cases: Cases) -> list[_core.TestSuite]:
    """The suites that `cases` stands for; see plan_bundle."""
    if isinstance(cases, (str, os.PathLike)):
        return read_test_cases(cases)
    if isinstance(cases, Mapping):
        return [_core.TestSuite(method, list(cases[method])) for method in sorted(cases)]
    return list(cases)


def bundle(
    program: Any,
    cases: Cases,
    output: Any,
    *,
    format: BundleFormat = "bp08",
    hash: bool = True,
    program_alignment: int = 32,
    unchecked: bool = False,
    as_of: str | None = None,
    flatbuffers: str | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> _core.FilePlan:
    """Bundles a program with test cases: plans it as plan_bundle() does, and writes it as FilePlan.write() does.

    Returns the plan, whose size is that of the file.
    """
    with _core.Inputs():
        plan = plan_bundle(
            program,
            cases,
            format=format,
            hash=hash,
            program_alignment=program_alignment,
            unchecked=unchecked,
            as_of=as_of,
            flatbuffers=flatbuffers,
        )
        plan.write(output, sync=sync, progress=progress)
    return plan


def convert(
    bundle: Any,
    output: Any,
    *,
    format: BundleFormat,
    hash: bool = True,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> _core.FilePlan:
    """Writes a bundle in another format, without loss: there and back gives the original bytes.

    Args:
        bundle: a source: all of a .bpte file, of either format.
        output: see FilePlan.write().
        format, hash: see plan_bundle().

    Raises:
        CorruptError: the bundle is damaged.
        TooLargeError: a BP08 file would be over 2 GiB.
    """
    with _core.Inputs(bundle):
        plan = _core.BundledProgramFile(bundle).plan_as(format, hash)
        plan.write(output, sync=sync, progress=progress)
    return plan
