# SPDX-License-Identifier: BSD-3-Clause
"""Serializes ExecuTorch's bundled programs (.bpte) from its own objects, and reads them back into its dataclasses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias

from etstream import _core
from etstream._arrays import exported, mapped
from etstream._bundles import BundleOptions, TestCases, bundle, suites_of
from etstream._errors import UnsupportedError
from etstream._package import installed_executorch, installed_flatbuffers
from etstream._types import OutputLike, SourceLike
from etstream._writing import Unpack, keywords_of
from etstream.executorch._patches import Patch, attribute, instead, needed
from etstream.executorch._programs import program_source

if TYPE_CHECKING:
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program import schema
    from executorch.exir import ExecutorchProgramManager

    Bundle: TypeAlias = BundledProgram | tuple[ExecutorchProgramManager, TestCases]

_FEATURE = "save_bundled_program()"


@keywords_of(BundleOptions)
def save_bundled_program(
    bundled_program: Bundle, output: OutputLike | None = None, **options: Unpack[BundleOptions]
) -> _core.FilePlan:
    """Writes a bundle (.bpte) of a program whose `.buffer` is never made. Returns the plan, whose size is that of the
    file.

    Args:
        bundled_program: ExecuTorch's BundledProgram; or a pair, `(manager, cases)`, of an ExecutorchProgramManager and
            test cases for its methods: the path of a JSON file of test cases; or a mapping of each method to its cases
            or its suite; or one suite, or several. Cases and suites are etstream's, or ExecuTorch's MethodTestCase and
            MethodTestSuite. Suites are sorted by their methods' names.
        output: where the bundle goes.
        options: those of BundleOptions.

    By default the bytes are those that the installed ExecuTorch's serialize_from_bundled_program_to_flatbuffer gives,
    except for tensors that are not contiguous in the method, such as channels-last ones. ExecuTorch writes their
    elements contiguously, and its runtime takes them for elements in the method's order; here they are in that order.

    Raises:
        TypeError: it is another object, such as an EdgeProgramManager.
        InvalidArgumentError: the test cases do not fit the program (the message names method, case and value).
        TooLargeError: a BP08 file would be over 2 GiB.
    """
    cases: TestCases
    if isinstance(bundled_program, tuple):
        manager, cases = bundled_program
        program = program_source(manager)
    elif not hasattr(bundled_program, "method_test_suites"):
        found = type(bundled_program).__name__
        raise TypeError(f"{_FEATURE}: expected a BundledProgram, or a manager and its test cases, found {found}")
    else:
        cases = bundled_program.method_test_suites
        if bundled_program.executorch_program is not None:
            program = program_source(bundled_program.executorch_program)
        else:
            program = _core.Source.file(attribute(_FEATURE, bundled_program, "_pte_file_path"))
    options["as_of"] = options["as_of"] or installed_executorch()
    return bundle(program, sorted(suites_of(cases), key=lambda suite: suite.method_name), output, **options)


def _serialize(bundled_program: BundledProgram) -> bytes:
    return bytes(save_bundled_program(bundled_program, unchecked=True, dry_run=True))


def _serialize_schema(bundled_program: schema.BundledProgram) -> bytes:
    return bytes(_core.plan_bundle_objects(bundled_program, installed_executorch(), installed_flatbuffers()))


def load_bundled_program(source: SourceLike, *, lazy: bool = True) -> schema.BundledProgram:
    """Returns a bundle in the dataclasses of ExecuTorch's schema, without flatc.

    For a BP08 bundle the result equals that of deserialize_from_flatbuffer_to_bundled_program, except where that
    function errs or fails: each double is the one in the file (the function rounds doubles to 12 digits, loses the sign
    of zero, and fails at NaN and infinities), and a value of no kind is None.

    Args:
        source: all of a .bpte file, of either format: a path, a buffer, or another source.
        lazy: make `program` and the `data` of tensors read-only memoryviews of the mapped file, or of the buffer. Pages
            of the file are read as they are touched and may be taken back, so do not change the file while the views
            are in use (nothing else keeps it). The views equal bytes of the same content, and ExecuTorch serializes
            them, but they can't be pickled or deep-copied. Otherwise, and for a source that is neither a file nor a
            buffer, `program` and `data` are bytes.

    Raises:
        CorruptError: the file is damaged; the message names file and offset.
        UnsupportedError: a tensor has over 16 dimensions.
        ValueError: a tensor has a dtype that ExecuTorch does not know.
    """
    file = _core.Source(source)
    view = _view_of(source, file) if lazy else None
    theirs, scalar_type = needed(
        "load_bundled_program()", "executorch.devtools.bundled_program.schema", "executorch.exir.scalar_type:ScalarType"
    )

    def payload(part: _core.Source) -> Any:
        begin = None if view is None else _core.offset_in(part, file)
        return part.read() if view is None or begin is None else view[begin : begin + part.size]

    def value_of(value: Any) -> Any:
        if isinstance(value, _core.Tensor):
            if value.dtype == "unknown":
                raise ValueError(f"{file.name}: a tensor has a dtype that is {value.dtype}")
            return theirs.Tensor(
                scalar_type=scalar_type(value.scalar_type),
                sizes=list(value.sizes),
                data=payload(value.data),
                dim_order=list(value.dim_order),
            )
        if isinstance(value, bool):
            return theirs.Bool(bool_val=value)
        if isinstance(value, int):
            return theirs.Int(int_val=value)
        return None if value is None else theirs.Double(double_val=value)

    def values_of(values: list[Any]) -> list[schema.Value]:
        return [theirs.Value(val=value_of(one)) for one in values]

    bundle = _core.BundledProgramFile(file)
    return theirs.BundledProgram(
        version=bundle.version,
        method_test_suites=[
            theirs.BundledMethodTestSuite(
                method_name=suite.method_name,
                test_cases=[
                    theirs.BundledMethodTestCase(
                        inputs=values_of(case.inputs), expected_outputs=values_of(case.expected_outputs)
                    )
                    for case in suite.test_cases
                ],
            )
            for suite in bundle.suites
        ],
        program=payload(bundle.program),
    )


def _view_of(source: SourceLike, file: _core.Source) -> memoryview | None:
    """Returns the bytes of `file`, which is `source`, where they lie; None if that is neither a file nor memory."""
    if not isinstance(source, (str, os.PathLike, _core.Source)):
        try:
            return memoryview(exported(source)).cast("B").toreadonly()
        except TypeError:
            return None
    try:
        return mapped(file)
    except UnsupportedError:
        return None


def _deserialize(flatbuffer: bytes) -> schema.BundledProgram:
    return load_bundled_program(flatbuffer, lazy=False)


def patches() -> list[Patch]:
    """Returns the patches for functions that serialize bundled programs in ExecuTorch, and that read them."""
    serialize_bundle = "executorch.devtools.bundled_program.serialize"
    return [
        Patch(serialize_bundle, "serialize_from_bundled_program_to_flatbuffer", instead(_serialize)),
        Patch(serialize_bundle, "_bundled_program_schema_to_flatbuffer", instead(_serialize_schema)),
        Patch(serialize_bundle, "deserialize_from_flatbuffer_to_bundled_program", instead(_deserialize)),
    ]
