# SPDX-License-Identifier: BSD-3-Clause
"""Makes test cases that do not fit the program that they are bundled with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import torch
from cases import Case, Store, Suite, Tensor, Value
from models import CachedModel, to_suites

BAD_CASE = 1


class Fate(Enum):
    """The ways in which ExecuTorch 1.5.1 ends when it runs such a test case."""

    UNDEFINED = "SIGSEGV, or what it makes of the memory that was never set"
    ABORT = "SIGABRT"
    INPUT_REFUSED = "RuntimeError: Method execution failed with status 0x10"
    NOT_COMPARED = "RuntimeError: Result verification failed with status 16"
    MISMATCH = "RuntimeError: Result verification failed with status 32"
    UNNOTICED = ""


@dataclass(frozen=True)
class Misfit:
    """A misfit: case BAD_CASE of `method` is spoilt; `says` is the report that is expected."""

    model: str
    method: str
    spoil: Callable[[Case], Case]
    says: str
    fate: Fate

    def message(self) -> str:
        return f"method '{self.method}', test case {BAD_CASE}: {self.says}"

    def suites(self, subject: CachedModel) -> list[Suite]:
        return [
            self._spoilt(suite) if suite.method == self.method else suite
            for suite in to_suites(subject.cases(), Store.RAW)
        ]

    def _spoilt(self, suite: Suite) -> Suite:
        cases = list(suite.cases)
        cases[BAD_CASE] = self.spoil(cases[BAD_CASE])
        return Suite(suite.method, cases)


def _with(values: Sequence[Value], index: int, value: Value) -> list[Value]:
    return [*values[:index], value, *values[index + 1 :]]


def _input(index: int, value: Value) -> Callable[[Case], Case]:
    return lambda case: Case(_with(case.inputs, index, value), case.expected_outputs)


def _output(index: int, value: Value) -> Callable[[Case], Case]:
    return lambda case: Case(case.inputs, _with(case.expected_outputs, index, value))


def _zeros(dtype: torch.dtype, *shape: int) -> Tensor:
    return Tensor.from_torch(torch.zeros(shape, dtype=dtype), Store.RAW)


def _transposed_output(case: Case) -> Case:
    """Returns a case with its output in another order of dimensions, and the same bytes."""
    (tensor,) = case.expected_outputs
    assert isinstance(tensor, Tensor)
    return Case(case.inputs, [dataclasses.replace(tensor, dim_order=(1, 0))])


def _example(spoil: Callable[[Case], Case], says: str, fate: Fate) -> Misfit:
    return Misfit("example", "forward", spoil, says, fate)


def _scale(spoil: Callable[[Case], Case], says: str, fate: Fate) -> Misfit:
    return Misfit("two_methods", "scale", spoil, says, fate)


def _count(spoil: Callable[[Case], Case], says: str, fate: Fate) -> Misfit:
    return Misfit("two_methods", "count", spoil, says, fate)


_F32, _F64 = torch.float32, torch.float64

MISFITS = {
    "no inputs": _example(
        lambda case: Case([], case.expected_outputs),
        "0 inputs given, the method has 1",
        Fate.UNDEFINED,
    ),
    "too few inputs": _count(
        lambda case: Case(case.inputs[:1], case.expected_outputs),
        "1 input given, the method has 2",
        Fate.UNDEFINED,
    ),
    "too many inputs": _example(
        lambda case: Case([*case.inputs, 1], case.expected_outputs),
        "2 inputs given, the method has 1",
        Fate.UNNOTICED,
    ),
    "too few outputs": _count(
        lambda case: Case(case.inputs, case.expected_outputs[:1]),
        "1 expected output given, the method has 2",
        Fate.UNDEFINED,
    ),
    "too many outputs": _example(
        lambda case: Case(case.inputs, [*case.expected_outputs] * 2),
        "2 expected outputs given, the method has 1",
        Fate.UNNOTICED,
    ),
    "input of another dtype": _example(
        _input(0, _zeros(_F64, 1, 1, 16, 16)),
        "input 0 is float64, expected float32",
        Fate.INPUT_REFUSED,
    ),
    "input of another shape": _example(
        _input(0, _zeros(_F32, 1, 1, 16, 8)),
        "input 0 has shape [1, 1, 16, 8], expected [1, 1, 16, 16]",
        Fate.INPUT_REFUSED,
    ),
    "input of fewer dimensions": _example(
        _input(0, _zeros(_F32, 16, 16)),
        "input 0 has shape [16, 16], expected [1, 1, 16, 16]",
        Fate.INPUT_REFUSED,
    ),
    "int for a tensor": _example(
        _input(0, 7), "input 0 is an integer, expected a tensor", Fate.INPUT_REFUSED
    ),
    "null for a tensor": _example(
        _input(0, None), "input 0 is nothing (null), expected a tensor", Fate.INPUT_REFUSED
    ),
    "second input of another dtype": _count(
        _input(1, _zeros(torch.uint8, 2, 7)),
        "input 1 is uint8, expected bool",
        Fate.INPUT_REFUSED,
    ),
    "tensor for an int": _scale(
        _input(1, _zeros(_F32, 3, 5)),
        "input 1 is a tensor, expected an integer",
        Fate.INPUT_REFUSED,
    ),
    "double for an int": _scale(
        _input(1, 2.0), "input 1 is a double, expected an integer", Fate.INPUT_REFUSED
    ),
    "another int than exported": _scale(
        _input(1, 3), "input 1 is 3, but the method was exported with 2", Fate.INPUT_REFUSED
    ),
    "another double than exported": _scale(_input(2, 0.5), "input 2 is 0.5", Fate.INPUT_REFUSED),
    "another bool than exported": _scale(_input(3, False), "input 3 is false", Fate.INPUT_REFUSED),
    "output of another dtype": _example(
        _output(0, _zeros(_F64, 1, 10)),
        "expected output 0 is float64, expected float32",
        Fate.MISMATCH,
    ),
    "output of another shape": _example(
        _output(0, _zeros(_F32, 1, 9)),
        "expected output 0 has shape [1, 9], expected [1, 10]",
        Fate.MISMATCH,
    ),
    "second output of another shape": _count(
        _output(1, _zeros(_F64, 6)),
        "expected output 1 has shape [6], expected [7]",
        Fate.MISMATCH,
    ),
    "int for an output": _example(
        _output(0, 7), "expected output 0 is an integer, expected a tensor", Fate.NOT_COMPARED
    ),
    "null for an output": _example(
        _output(0, None),
        "expected output 0 is nothing (null), expected a tensor",
        Fate.NOT_COMPARED,
    ),
    "output in another order of dimensions": _example(
        _transposed_output, "expected output 0 has another dim_order", Fate.ABORT
    ),
}
