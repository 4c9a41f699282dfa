# SPDX-License-Identifier: BSD-3-Clause
"""Makes up bundles from a seed; each group stresses one part of the format."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cases import STORES_BY_DTYPE, Case, Suite, Tensor, Value, item_size

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
PROGRAM_SIZES = (0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, 4095, 4096, 4097, 65_537, 2**20)

_INTS = (0, 1, -1, 255, 2**31, -(2**31) - 1, 2**53 + 1, INT64_MAX, INT64_MIN)
_DOUBLES = (0.0, -0.0, 1.0, 0.1, 5e-324, -2.2250738585072009e-308, 1.7976931348623157e308)
_NOT_FINITE = (math.nan, math.inf, -math.inf)
_METHOD_NAMES = (
    "forward",
    "",
    "a",
    "abc",
    "abcd",
    "Forward",
    "with space",
    'quote " backslash \\ slash /',
    "tab\tand\nnewline",
    "\x7f\x01",
    "größe",
    "模型",
    "\uff5e",
    "\U0001f600",
    "e\u0301",
    "x" * 300,
)


@dataclass(frozen=True)
class GeneratedBundle:
    """A bundle to be written, and the spelling of its CASES.json."""

    program: bytes
    suites: Sequence[Suite]
    by_method: bool
    ascii_only: bool

    def suites_in_file(self) -> list[Suite]:
        """Returns the suites in the order of the bundle."""
        if self.by_method:
            return sorted(self.suites, key=lambda suite: suite.method)
        return list(self.suites)


def generate(group: str, index: int) -> GeneratedBundle:
    """Returns bundle number `index` of a group, which is always the same."""
    return GROUPS[group](random.Random(f"{group} {index}"), index)


def _bundle(
    rng: random.Random, suites: Sequence[Suite], program: bytes | None = None
) -> GeneratedBundle:
    names = [suite.method for suite in suites]
    return GeneratedBundle(
        program=rng.randbytes(rng.randrange(200)) if program is None else program,
        suites=suites,
        by_method=len(set(names)) == len(names) and rng.random() < 0.5,
        ascii_only=rng.random() < 0.5,
    )


def _some(rng: random.Random, most: int, make: Callable[[random.Random], Any]) -> list[Any]:
    return [make(rng) for _ in range(rng.randint(0, most))]


def _int(rng: random.Random) -> int:
    if rng.random() < 0.5:
        return rng.choice(_INTS)
    return rng.randint(INT64_MIN, INT64_MAX) >> rng.randrange(64)


def _double(rng: random.Random) -> float:
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(_DOUBLES)
    if kind < 0.6:
        return rng.choice(_NOT_FINITE)
    (value,) = struct.unpack("<d", rng.randbytes(8))
    return math.nan if math.isnan(value) else value


def _bool(rng: random.Random) -> bool:
    return rng.random() < 0.5


def _none(_: random.Random) -> None:
    return None


def _shape(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.randint(1, 4) for _ in range(rng.randint(0, 4)))


def _empty_shape(rng: random.Random) -> tuple[int, ...]:
    sizes = [rng.randint(0, 3) for _ in range(rng.randint(0, 4))] + [0]
    rng.shuffle(sizes)
    return tuple(sizes)


def _tensor_of(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(
        dtype=dtype,
        shape=shape,
        data=rng.randbytes(math.prod(shape) * item_size(dtype)),
        store=rng.choice(STORES_BY_DTYPE[dtype]),
    )


def _dtype(rng: random.Random) -> str:
    return rng.choice(list(STORES_BY_DTYPE))


def _tensor(rng: random.Random) -> Tensor:
    return _tensor_of(rng, _dtype(rng), _shape(rng))


def _empty_or_scalar_tensor(rng: random.Random) -> Tensor:
    return _tensor_of(rng, _dtype(rng), () if rng.random() < 0.4 else _empty_shape(rng))


def _tensor_with_dim_order(rng: random.Random) -> Tensor:
    tensor = _tensor(rng)
    order = list(range(len(tensor.shape)))
    rng.shuffle(order)
    return Tensor(tensor.dtype, tensor.shape, tensor.data, tuple(order), tensor.store)


_SCALARS = (_none, _int, _bool, _double)


def _scalar(rng: random.Random) -> Value:
    return rng.choice(_SCALARS)(rng)


def _value(rng: random.Random) -> Value:
    return rng.choice((*_SCALARS, _tensor, _empty_or_scalar_tensor, _tensor_with_dim_order))(rng)


def _case_of(make_value: Callable[[random.Random], Value], most: int) -> Callable[..., Case]:
    def make_case(rng: random.Random) -> Case:
        return Case(_some(rng, most, make_value), _some(rng, most, make_value))

    return make_case


def _one_suite_of(make_value: Callable[[random.Random], Value], most: int) -> Callable[..., Any]:
    """Returns a group of bundles with one suite, whose values are of one sort."""

    def make_bundle(rng: random.Random, _: int) -> GeneratedBundle:
        cases = [_case_of(make_value, most)(rng) for _ in range(rng.randint(1, 3))]
        return _bundle(rng, [Suite("forward", cases)])

    return make_bundle


def _every_dtype(rng: random.Random, _: int) -> GeneratedBundle:
    dtypes = list(STORES_BY_DTYPE)
    rng.shuffle(dtypes)
    inputs = [_tensor_of(rng, dtype, _shape(rng)) for dtype in dtypes]
    return _bundle(rng, [Suite("forward", [Case(inputs, [])])])


def _suite_counts(rng: random.Random, _: int) -> GeneratedBundle:
    """Returns a bundle with no suites, suites without cases, many suites, or methods that come twice."""

    def make_suite(rng: random.Random) -> Suite:
        return Suite(rng.choice("zyxw"), _some(rng, 3, _case_of(_scalar, 2)))

    return _bundle(rng, _some(rng, 6, make_suite))


def _method_names(rng: random.Random, _: int) -> GeneratedBundle:
    names = rng.sample(_METHOD_NAMES, rng.randint(1, 6))
    return _bundle(rng, [Suite(name, _some(rng, 1, _case_of(_scalar, 1))) for name in names])


def _program_sizes(rng: random.Random, index: int) -> GeneratedBundle:
    if index < len(PROGRAM_SIZES):
        size = PROGRAM_SIZES[index]
    else:
        size = rng.randrange(2 ** rng.randrange(1, 17))
    suites = [Suite("forward", [Case([_tensor(rng)], [_value(rng)])])]
    return _bundle(rng, suites, rng.randbytes(size))


def _everything(rng: random.Random, _: int) -> GeneratedBundle:
    def make_suite(rng: random.Random) -> Suite:
        return Suite(rng.choice(_METHOD_NAMES), _some(rng, 4, _case_of(_value, 6)))

    return _bundle(rng, _some(rng, 5, make_suite))


GROUPS: dict[str, Callable[[random.Random, int], GeneratedBundle]] = {
    "scalars": _one_suite_of(_scalar, 12),
    "every_dtype": _every_dtype,
    "empty_and_scalar_tensors": _one_suite_of(_empty_or_scalar_tensor, 5),
    "dim_orders": _one_suite_of(_tensor_with_dim_order, 5),
    "suite_counts": _suite_counts,
    "method_names": _method_names,
    "program_sizes": _program_sizes,
    "everything": _everything,
}
