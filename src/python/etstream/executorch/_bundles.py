# SPDX-License-Identifier: BSD-3-Clause
"""Bundled programs (.bpte) as the dataclasses of ExecuTorch's schema."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any

from etstream import _core
from etstream._buffers import exported, mapped
from etstream._errors import UnsupportedError
from etstream._types import SourceLike
from etstream.executorch._internals import needed
from etstream.executorch._patches import Patch, instead

if TYPE_CHECKING:
    from executorch.devtools.bundled_program import schema


def load_bundled_program(source: SourceLike, *, lazy: bool = True) -> schema.BundledProgram:
    """A bundle in the dataclasses of ExecuTorch's schema, without flatc.

    Equals what deserialize_from_flatbuffer_to_bundled_program gives for a BP08 bundle, but for what that
    gets wrong or fails at: each double is the one in the file (that rounds them to 12 digits, loses the sign
    of zero, and fails at NaN and infinities), and a value of no kind is None.

    Args:
        source: all of a .bpte file, of either format: a path, a buffer, or another source.
        lazy: have `program` and the `data` of tensors be read-only memoryviews: of the file, mapped, whose
            pages are read as they are touched and may be taken back, so it is not to be changed while they
            are in use (nothing else keeps it); or of the buffer. They equal bytes of the same content, and
            ExecuTorch serializes them; but they can't be pickled or deep-copied. Otherwise, and for a source
            that is neither a file nor a buffer, they are bytes.

    Raises:
        CorruptError: the file is damaged; names file and offset.
        UnsupportedError: a tensor has over 16 dimensions.
        ValueError: a tensor has a dtype that ExecuTorch does not know.
    """
    file = _core.Source(source)
    return _Reading(file, _view_of(source, file) if lazy else None).bundle()


def _view_of(source: SourceLike, file: _core.Source) -> memoryview | None:
    """The bytes of `file`, which is `source`, where they lie; None if that is neither a file nor memory."""
    if not isinstance(source, (str, os.PathLike, _core.Source)):
        try:
            return memoryview(exported(source)).cast("B").toreadonly()
        except TypeError:
            return None
    try:
        return mapped(file, mmap.ACCESS_READ)
    except UnsupportedError:
        return None


class _Reading:
    """Of one bundle, whose payloads are parts of `view` where there is one."""

    def __init__(self, file: _core.Source, view: memoryview | None) -> None:
        self._file = file
        self._view = view
        self._schema, self._scalar_type = needed(
            "load_bundled_program()",
            "executorch.devtools.bundled_program.schema",
            "executorch.exir.scalar_type:ScalarType",
        )

    def bundle(self) -> schema.BundledProgram:
        file = _core.BundledProgramFile(self._file)
        schema = self._schema
        return schema.BundledProgram(
            version=file.version,
            method_test_suites=[
                schema.BundledMethodTestSuite(
                    method_name=suite.method_name,
                    test_cases=[
                        schema.BundledMethodTestCase(
                            inputs=self._values(case.inputs),
                            expected_outputs=self._values(case.expected_outputs),
                        )
                        for case in suite.test_cases
                    ],
                )
                for suite in file.suites
            ],
            program=self._payload(file.program),
        )

    def _values(self, values: list[Any]) -> list[schema.Value]:
        return [self._schema.Value(val=self._value(value)) for value in values]

    def _value(self, value: Any) -> Any:
        if isinstance(value, _core.Tensor):
            if value.dtype == "unknown":
                raise ValueError(f"{self._file.name}: a tensor has a dtype that is {value.dtype}")
            return self._schema.Tensor(
                scalar_type=self._scalar_type(value.scalar_type),
                sizes=list(value.sizes),
                data=self._payload(value.data),
                dim_order=list(value.dim_order),
            )
        if isinstance(value, bool):
            return self._schema.Bool(bool_val=value)
        if isinstance(value, int):
            return self._schema.Int(int_val=value)
        return None if value is None else self._schema.Double(double_val=value)

    def _payload(self, source: _core.Source) -> Any:
        begin = None if self._view is None else _core.offset_in(source, self._file)
        if self._view is None or begin is None:
            return source.read()
        return self._view[begin : begin + source.size]


def _deserialize(flatbuffer: bytes) -> schema.BundledProgram:
    return load_bundled_program(flatbuffer, lazy=False)


def patches() -> list[Patch]:
    """What reads bundled programs in ExecuTorch."""
    serialize_bundle = "executorch.devtools.bundled_program.serialize"
    return [Patch(serialize_bundle, "deserialize_from_flatbuffer_to_bundled_program", instead(_deserialize))]
