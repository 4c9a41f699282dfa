# SPDX-License-Identifier: BSD-3-Clause
"""Plans, writes and converts bundles: programs with test cases."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from etstream import _core
from etstream._arguments import asked, by_name, several
from etstream._errors import InvalidArgumentError
from etstream._package import installed_flatbuffers
from etstream._programs import MetadataValue, ProgramOptions, planned_program
from etstream._types import OutputLike, SourceLike, TestCaseLike, TestSuiteLike
from etstream._writing import Unpack, WriteOptions, defaults_of, keywords_of, written

BundleFormat = Literal["bp08", "segmented"]
TestCases = (
    str
    | os.PathLike[str]
    | Mapping[str, Iterable[TestCaseLike] | TestSuiteLike]
    | TestSuiteLike
    | Iterable[TestSuiteLike]
)


def read_test_cases(path: str | os.PathLike[str]) -> list[_core.TestSuite]:
    """Returns the suites of a JSON file of test cases.

    Reads the headers of the tensors' files, but not their data.

    Raises:
        NotFoundError: the file, or one that it names, is not there.
        CorruptError: the file is not JSON.
        InvalidArgumentError: something is no test case; the message names the line, the case and the value.
    """
    return _core.read_test_cases(path)


class BundleOptions(WriteOptions, total=False):
    """The options of a bundle.

    Keys, besides those of WriteOptions:
        to: "bp08" is ExecuTorch's own format, byte for byte, of at most 2 GiB; "segmented" has the program and
            large tensors behind the metadata, of any size, aligned and hashed.
        hash: write hashes into a segmented bundle; verify() can't find damaged data without them.
        program_alignment: the alignment of the program in a BP08 file, in bytes, a power of two from 1 to 65536: an
            int, or a str such as "4K". ExecuTorch's is 32.
        unchecked: skip the check that the test cases fit the program.
        as_of: the release of ExecuTorch whose bytes a BP08 file gets, from "1.0" on; the latest by default.
        flatbuffers: the version of the Python package flatbuffers whose bytes the file gets; by default the installed
            version, or the latest if none is installed.
        metadata: what the program in the bundle says of its model: text, bytes, floats, 64-bit integers and lists of
            them by their keys; see ProgramOptions.
    """

    to: Annotated[BundleFormat, "bp08"]
    hash: Annotated[bool, True]
    program_alignment: Annotated[int | str, 32]
    unchecked: Annotated[bool, False]
    as_of: Annotated[str | None, None]
    flatbuffers: Annotated[str | None, None]
    metadata: Annotated[Mapping[str, MetadataValue] | None, None]


@keywords_of(BundleOptions)
def bundle(
    program: SourceLike, cases: TestCases, output: OutputLike | None = None, **options: Unpack[BundleOptions]
) -> _core.FilePlan:
    """Writes a bundle (.bpte) of a program and test cases for its methods. Returns the plan, whose size is that of the
    file.

    Args:
        program: a source: all of a .pte file.
        cases: the path of a JSON file of test cases; or a mapping of each method to its cases or its suite; or one
            suite, or several. Cases and suites are etstream's, or ExecuTorch's MethodTestCase and MethodTestSuite.
            Suites are sorted by their methods' names, as in ExecuTorch's BundledProgram, unless all of them are
            etstream's in a list, whose order is kept. A tensor is laid out in the method's order of dimensions, unless
            it is a Tensor with a dim_order.
        output: where the bundle goes.
        options: those of BundleOptions.

    Raises:
        InvalidArgumentError: the test cases do not fit the program (the message names method, case and value); a suite
            stands under the name of another method; a version is not known.
        CorruptError: the program can't be read.
        TooLargeError: a BP08 file would be over 2 GiB.
    """
    return written(lambda: _planned(program, cases, options), output, options)


def _planned(program: SourceLike, cases: TestCases, options: BundleOptions) -> _core.FilePlan:
    """Returns the plan of a bundle, for all options."""
    if options["metadata"]:
        changes: Any = {**defaults_of(ProgramOptions), "metadata": options["metadata"]}
        program = planned_program(program, changes).program.source()
    return _core.plan_bundle(program, suites_of(cases), options, options["flatbuffers"] or installed_flatbuffers())


def suites_of(cases: TestCases) -> list[_core.TestSuite]:
    """Returns the suites that `cases` stands for; see bundle()."""
    if isinstance(cases, (str, os.PathLike)):
        return read_test_cases(cases)
    if isinstance(cases, Mapping):
        by_method = dict(by_name("cases", cases))
        return [_core.TestSuite(method, _cases_of(method, by_method[method])) for method in sorted(by_method)]
    given = list(cases) if isinstance(cases, Iterable) else [cases]
    suites = [_suite_of(suite) for suite in given]
    # ExecuTorch's BundledProgram sorts its suites. Etstream's suites keep the order of the file that they are from.
    if any(not isinstance(suite, _core.TestSuite) for suite in given):
        suites.sort(key=lambda suite: suite.method_name)
    return suites


def _suite_of(suite: TestSuiteLike) -> _core.TestSuite:
    if isinstance(suite, _core.TestSuite):
        return suite
    if not hasattr(suite, "method_name") or not hasattr(suite, "test_cases"):
        raise TypeError(f"expected a TestSuite, or a MethodTestSuite of ExecuTorch, found {type(suite).__name__}")
    return _core.TestSuite(suite.method_name, suite.test_cases)


def _cases_of(method: str, given: Iterable[TestCaseLike] | TestSuiteLike) -> Iterable[TestCaseLike]:
    if isinstance(given, Iterable):
        return several(f"cases of {method!r}", "test cases", given)
    suite = _suite_of(given)
    if suite.method_name != method:
        other = suite.method_name
        raise InvalidArgumentError(f"cases of {method!r}: expected its test cases, found a suite of {other!r}")
    return suite.test_cases


def case_of(case: TestCaseLike) -> _core.TestCase:
    """Returns the test case that `case` stands for; see bundle()."""
    if isinstance(case, _core.TestCase):
        return case
    if not hasattr(case, "inputs") or not hasattr(case, "expected_outputs"):
        raise TypeError(f"expected a TestCase, or a MethodTestCase of ExecuTorch, found {type(case).__name__}")
    return _core.TestCase(case.inputs, case.expected_outputs)


class ConvertOptions(WriteOptions, total=False):
    """The options of a bundle in another format.

    Keys, besides those of WriteOptions:
        hash: write hashes into a segmented bundle; verify() can't find damaged data without them.
    """

    hash: Annotated[bool, True]


@keywords_of(ConvertOptions)
def convert(
    bundle: SourceLike, output: OutputLike | None = None, *, to: BundleFormat, **options: Unpack[ConvertOptions]
) -> _core.FilePlan:
    """Writes a bundle in another format without loss; converting it back gives the original bytes. Returns the plan.

    Args:
        bundle: a source: all of a .bpte file, of either format.
        output: where the new bundle goes; it may be the bundle's own path.
        to: "bp08" or "segmented".
        options: those of ConvertOptions.

    Raises:
        CorruptError: the bundle is damaged.
        TooLargeError: a BP08 file would be over 2 GiB.
    """
    bundle = asked(bundle)
    return written(lambda: _core.BundledProgramFile(bundle).plan_as(to, options["hash"]), output, options, bundle)
