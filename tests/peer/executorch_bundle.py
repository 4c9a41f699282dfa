# SPDX-License-Identifier: BSD-3-Clause
"""Writes and runs bundles as ExecuTorch itself does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import executorch.devtools.bundled_program.schema as bp_schema
import torch
from cases import Suite, Tensor, Value
from executorch.devtools.bundled_program.serialize import (
    _bundled_program_schema_to_flatbuffer,
    convert_to_flatbuffer,
    serialize_from_bundled_program_to_json,
)
from executorch.devtools.bundled_program.version import BUNDLED_PROGRAM_SCHEMA_VERSION
from executorch.exir.scalar_type import ScalarType
from executorch.extension.pybindings import portable_lib

SCALAR_TYPES = {
    "uint8": ScalarType.BYTE,
    "int8": ScalarType.CHAR,
    "int16": ScalarType.SHORT,
    "int32": ScalarType.INT,
    "int64": ScalarType.LONG,
    "float16": ScalarType.HALF,
    "float32": ScalarType.FLOAT,
    "float64": ScalarType.DOUBLE,
    "complex32": ScalarType.COMPLEX32,
    "complex64": ScalarType.COMPLEX64,
    "complex128": ScalarType.COMPLEX128,
    "bool": ScalarType.BOOL,
    "qint8": ScalarType.QINT8,
    "quint8": ScalarType.QUINT8,
    "qint32": ScalarType.QINT32,
    "bfloat16": ScalarType.BFLOAT16,
    "quint4x2": ScalarType.QUINT4x2,
    "quint2x4": ScalarType.QUINT2x4,
    "bits16": ScalarType.BITS16,
    "float8_e5m2": ScalarType.FLOAT8E5M2,
    "float8_e4m3fn": ScalarType.FLOAT8E4M3FN,
    "float8_e5m2fnuz": ScalarType.FLOAT8E5M2FNUZ,
    "float8_e4m3fnuz": ScalarType.FLOAT8E4M3FNUZ,
    "uint16": ScalarType.UINT16,
    "uint32": ScalarType.UINT32,
    "uint64": ScalarType.UINT64,
}
"""The scalar types by torch's name; ExecuTorch's own table lacks five of them."""

_NAMES_OF_SCALAR_TYPES = {int(value): name for name, value in SCALAR_TYPES.items()}


def serialize(suites: Sequence[Suite], program: bytes) -> bytes:
    """Returns the bundle of `suites`, in their order, and `program`.

    Works on the schema's own classes: the public API takes tensors only as
    expected outputs, and only programs it can run.
    """
    return _bundled_program_schema_to_flatbuffer(schema_bundle(suites, program))


def serialize_as_older_writers(suites: Sequence[Suite], program: bytes) -> bytes:
    """Returns the same bundle in another order: by way of JSON and flatc, as ExecuTorch once wrote bundles.

    flatc takes neither None nor numbers that are not finite.
    """
    return convert_to_flatbuffer(
        serialize_from_bundled_program_to_json(schema_bundle(suites, program))
    )


def schema_bundle(suites: Sequence[Suite], program: bytes) -> bp_schema.BundledProgram:
    """Returns the bundle of `suites`, in their order, and `program`, in ExecuTorch's own classes."""
    return bp_schema.BundledProgram(
        version=BUNDLED_PROGRAM_SCHEMA_VERSION,
        method_test_suites=[_schema_suite(suite) for suite in suites],
        program=program,
    )


def _schema_suite(suite: Suite) -> bp_schema.BundledMethodTestSuite:
    return bp_schema.BundledMethodTestSuite(
        method_name=suite.method,
        test_cases=[
            bp_schema.BundledMethodTestCase(
                inputs=_schema_values(case.inputs),
                expected_outputs=_schema_values(case.expected_outputs),
            )
            for case in suite.cases
        ],
    )


def _schema_values(values: Sequence[Value]) -> list[bp_schema.Value]:
    return [bp_schema.Value(val=_schema_union(value)) for value in values]


def _schema_union(value: Value) -> Any:
    if isinstance(value, Tensor):
        return _schema_tensor(value)
    if isinstance(value, bool):
        return bp_schema.Bool(bool_val=value)
    if isinstance(value, int):
        return bp_schema.Int(int_val=value)
    if isinstance(value, float):
        return bp_schema.Double(double_val=value)
    return None


def _schema_tensor(tensor: Tensor) -> bp_schema.Tensor:
    dim_order = tensor.dim_order
    if dim_order is None:
        dim_order = tuple(range(len(tensor.shape)))
    return bp_schema.Tensor(
        scalar_type=SCALAR_TYPES[tensor.dtype],
        sizes=list(tensor.shape),
        data=tensor.data,
        dim_order=list(dim_order),
    )


def described_methods(program: bytes) -> dict[str, tuple[list[str | None], list[str | None]]]:
    """Returns every method's inputs and outputs as "float32 [1, 10]", or None for those that are no tensors."""
    module = portable_lib._load_for_executorch_from_buffer(program)
    metas = {name: module.method_meta(name) for name in sorted(module.method_names())}
    return {
        name: (
            [_described(meta.input_tensor_meta, index) for index in range(meta.num_inputs())],
            [_described(meta.output_tensor_meta, index) for index in range(meta.num_outputs())],
        )
        for name, meta in metas.items()
    }


def _described(tensor_meta: Callable[[int], Any], index: int) -> str | None:
    try:
        info = tensor_meta(index)
    except IndexError:
        return None  # the runtime describes tensors only
    return f"{_NAMES_OF_SCALAR_TYPES[info.dtype()]} {list(info.sizes())}"


class RunnableBundle:
    """A bundle loaded by ExecuTorch's runtime.

    The runtime reads from the bytes for as long as the bundle is in use, so they
    are kept here.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bundle = portable_lib._load_bundled_program_from_buffer(data)
        self._module = portable_lib._load_for_executorch_from_bundled_program(self._bundle)

    def methods(self) -> list[str]:
        return sorted(self._module.method_names())

    def run(self, method: str, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Returns the method's outputs for `inputs`."""
        return self._module.run_method(method, tuple(inputs))

    def verify(self, method: str, case: int, *, rtol: float, atol: float) -> None:
        """Runs a bundled case; raises RuntimeError if the outputs are not the expected ones."""
        self._bundle.verify_result_with_bundled_expected_output(method, case, rtol, atol)


class LoadedProgram:
    """A program loaded by ExecuTorch's runtime, which reads from the bytes for as long as it is in use."""

    def __init__(self, data: bytes, weights: bytes | None = None) -> None:
        self._data = data, weights
        self._module = portable_lib._load_for_executorch_from_buffer(data, weights)

    def run(self, method: str, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Returns the method's outputs for `inputs`."""
        return self._module.run_method(method, tuple(inputs))
