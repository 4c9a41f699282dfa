# SPDX-License-Identifier: BSD-3-Clause
"""Makes the golden files: small ones, written by ExecuTorch or torch, for tests without these libraries.

    python tests/golden/make_golden.py

Each has a folder. In those of bundles, `etstream bundle --unchecked program.pte --cases cases.json` has to write
expected.bpte.
"""

from __future__ import annotations

import collections
import io
import math
import sys
import zipfile
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peer"))

import executorch_bundle  # noqa: E402
import models  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
from cases import (  # noqa: E402
    STORES_BY_DTYPE,
    Case,
    Store,
    Suite,
    Tensor,
    item_size,
    write_cases,
)
from executorch.backends.native.serialization import graph_serialize  # noqa: E402
from executorch.backends.native.serialization import schema as native_schema  # noqa: E402
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (  # noqa: E402
    XnnpackPartitioner,
)
from executorch.exir import to_edge_transform_and_lower  # noqa: E402
from executorch.exir._serialize._ptn import write_ptn  # noqa: E402
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload  # noqa: E402
from executorch.exir.scalar_type import ScalarType  # noqa: E402
from executorch.exir.tensor_layout import TensorLayout  # noqa: E402
from executorch.extension.flat_tensor.serialize.serialize import (  # noqa: E402
    FlatTensorSerializer,
)


def every_value_kind(folder: Path) -> None:
    integers = [0, 1, -1, 2**31, -(2**63), 2**63 - 1]
    doubles = [0.0, -0.0, 1.5, 0.1, 1e22, 5e-324, -1.7976931348623157e308]
    not_finite = [math.nan, math.inf, -math.inf]
    tensor = _tensor("float32", (2, 3), Store.NPY)
    inputs = [None, *integers, True, False, *doubles, *not_finite, tensor]
    _write(folder, b"not an ExecuTorch program", [Suite("forward", [Case(inputs, [tensor, None])])])


def every_dtype(folder: Path) -> None:
    tensors = [
        _tensor(dtype, (3,), stores[index % len(stores)])
        for index, (dtype, stores) in enumerate(STORES_BY_DTYPE.items())
    ]
    _write(folder, _bytes(64), [Suite("forward", [Case(tensors, tensors[:1])])])


def shapes_and_dim_orders(folder: Path) -> None:
    """Writes empty and zero-dimensional tensors, and dimension orders that are given."""
    stores = cycle(Store)
    shapes = [(), (0,), (2, 0, 3), (1,), (2, 1, 3, 2)]
    plain = [_tensor("int16", shape, next(stores)) for shape in shapes for _ in Store]
    ordered = [
        _tensor("uint8", (), Store.NPY, ()),
        _tensor("int64", (0, 2), Store.SAFETENSORS, (1, 0)),
        _tensor("float32", (1, 2, 2, 3), Store.RAW, (0, 2, 3, 1)),
        _tensor("float16", (2, 3), Store.NPY, (0, 1)),
    ]
    _write(folder, _bytes(33), [Suite("forward", [Case(plain, ordered)])])


def suites_in_given_order(folder: Path) -> None:
    """Writes unsorted methods, one of them twice; no cases, no values; names beyond ASCII."""
    suites = [
        Suite("forward", [Case([1], [2.0]), Case([], [])]),
        Suite("größe \u6a21\u578b \U0001f600", [Case([None], [])]),
        Suite("encode", []),
        Suite("", [Case([_tensor("bool", (5,), Store.RAW)], [True])]),
        Suite("forward", [Case([3], [])]),
        Suite('line\nquote" slash/ backslash\\', [Case([], [False])]),
    ]
    _write(folder, b"\x01", suites)


def no_suites_no_program(folder: Path) -> None:
    _write(folder, b"", [])


def sorted_suites_of_a_real_program(folder: Path) -> None:
    """Writes a program with two methods, given as an object in the other order."""
    exported = models.export("two_methods")
    models.write_for_command(exported, folder / "program.pte", Store.SAFETENSORS)


BUNDLES: tuple[Callable[[Path], None], ...] = (
    every_value_kind,
    every_dtype,
    shapes_and_dim_orders,
    suites_in_given_order,
    no_suites_no_program,
    sorted_suites_of_a_real_program,
)


def tensor_data(folder: Path) -> None:
    """Writes named data that is shared, of another dim_order, of no tensor, or with an alignment of its own."""
    buffers = [_bytes(48), _bytes(24), _bytes(10), _bytes(4)]
    matrix = TensorLayout(ScalarType.FLOAT, [3, 4], [0, 1])
    named_data = {
        "linear.weight": DataEntry(0, 16, matrix),
        "tied.weight": DataEntry(0, 16, matrix),
        "conv.weight": DataEntry(1, 16, TensorLayout(ScalarType.HALF, [1, 3, 2, 2], [0, 2, 3, 1])),
        "packed f\u00fcr XNNPACK": DataEntry(2, 192, None),
        "scale": DataEntry(3, 1, TensorLayout(ScalarType.INT, [], [])),
    }
    file = FlatTensorSerializer().serialize(DataPayload(buffers, named_data))
    (folder / "expected.ptd").write_bytes(bytes(file))


FLOATS: tuple[torch.dtype, ...] = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
    torch.float8_e5m2fnuz,
    torch.float8_e4m3fnuz,
)
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def float_conversions(folder: Path) -> None:
    """Writes bits of every floating type, as "float16", and in every type, as "float16 to bfloat16"."""
    tensors: dict[str, torch.Tensor] = {}
    for source in FLOATS:
        inputs = _edge_cases(source)
        tensors[_name(source)] = inputs.view(torch.uint8)
        for target in FLOATS:
            if source != target:
                converted = inputs.to(target).view(torch.uint8)
                tensors[f"{_name(source)} to {_name(target)}"] = converted
    (folder / "expected.safetensors").write_bytes(safetensors.torch.save(tensors))


def _edge_cases(dtype: torch.dtype) -> torch.Tensor:
    """Returns every value of an 8-bit type. For another type, returns the borders of the smaller types, the values
    halfway between two and beside that, infinities, NaNs and arbitrary bits. There are as many as torch's loops take at
    once, as the bits of a NaN may differ if fewer are left."""
    bits = BITS[dtype.itemsize]
    if dtype.itemsize == 1:
        return torch.arange(256, dtype=bits).view(dtype)
    borders = [_borders(smaller) for smaller in FLOATS if smaller.itemsize < dtype.itemsize]
    values, halfway = (torch.cat(each).to(dtype).view(bits) for each in zip(*borders, strict=True))
    infinity = int(torch.tensor(math.inf, dtype=dtype).view(bits))
    nans = [infinity + 2**bit for bit in range(0, (infinity & -infinity).bit_length() - 1, 3)]
    special = torch.tensor([infinity, infinity, *nans, torch.iinfo(bits).max], dtype=bits)
    chosen = torch.cat([values, halfway, halfway + 1, halfway - 1, special])
    generator = torch.Generator().manual_seed(7)
    arbitrary = torch.randint(2**62, (-len(chosen) % 64,), generator=generator).to(bits)
    out = torch.cat([chosen, arbitrary])
    out[1::2] |= torch.iinfo(bits).min
    return out.view(dtype)


def _borders(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the smallest and largest denormal, normal and finite values of a type, and the values halfway between
    them and the next, as float64."""
    bits = BITS[dtype.itemsize]
    normal, largest = (
        int(torch.tensor(value, dtype=dtype).view(bits))
        for value in (torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max)
    )
    codes = [0, 1, normal - 1, normal, largest - 1]
    values = torch.tensor([*codes, largest], dtype=bits).view(dtype).double()
    next_values = torch.tensor([code + 1 for code in codes], dtype=bits).view(dtype).double()
    to_next = next_values - values[:-1]
    return values, values + torch.cat([to_next, to_next[-1:]]) / 2


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class LookUp(torch.nn.Module):
    """A model with a layer that XNNPACK takes over, with named data, and one that it doesn't, with a constant."""

    INPUTS = (torch.tensor([[1.0, -2.0, 0.5, 3.0]]), torch.tensor([2]))

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(5, 3)
        self.linear = torch.nn.Linear(4, 3)
        for parameter in self.parameters():
            parameter.data = torch.arange(parameter.numel()).reshape(parameter.shape) / 4

    def forward(self, x: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.linear(x), self.table(row)


def delegated_program(folder: Path) -> None:
    graph = torch.export.export(LookUp(), LookUp.INPUTS)
    lowered = to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()])
    (folder / "program.pte").write_bytes(lowered.to_executorch().buffer)


def native_package(folder: Path) -> None:
    """Writes a package and its parts, stamped with 1980-01-01; and a graph that asks for nothing."""
    constants = {
        "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "again": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "scale": torch.full((2,), 0.5, dtype=torch.bfloat16),
        "state": torch.zeros(4),
        "zeros": torch.zeros(4),
    }
    scheme = native_schema.AffineGroup("scale", native_schema.ScalarType.BFLOAT16, -8, 7)
    quantised = native_schema.QuantSpec(scheme)
    meta = native_schema.TensorMeta(native_schema.ScalarType.FLOAT, [], quant=quantised)
    references = [
        native_schema.NamedTensorRef(f"p_{key}", key, meta, mutated=key == "state")
        for key in constants
        if key != "scale"
    ]
    empty = native_schema.Program([])
    method = native_schema.Method("forward", native_schema.Graph([]), references)
    graph = graph_serialize._compile_to_bytes(native_schema.Program([method], "1"))
    (folder / "empty.ptg").write_bytes(graph_serialize._compile_to_bytes(empty))
    (folder / "program.ptg").write_bytes(graph)
    safetensors.torch.save_file(constants, folder / "constants.safetensors")
    with mock.patch("time.localtime", lambda *_: (1980, 1, 1, 0, 0, 0)):
        write_ptn(str(folder / "expected.ptn"), graph, constants, frozenset({"state"}))


TORCH_TYPES: tuple[torch.dtype, ...] = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex32, torch.complex64,
    torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu, torch.float4_e2m1fn_x2,
)  # fmt: skip


class Shifted(torch.nn.Module):
    """A model with a parameter and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.arange(3, dtype=torch.float32))
        self.shift = torch.ones(2, dtype=torch.float32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + self.shift[0]


def torch_files(folder: Path) -> None:
    """Writes the files of torch.save for each type and each protocol, and the weights of an exported program."""
    every_type = {
        _name(dtype): torch.tensor([0, 1] * dtype.itemsize, dtype=torch.uint8).view(dtype) for dtype in TORCH_TYPES
    }
    torch.save(every_type, folder / "every_type.pth")
    matrix = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    linear = torch.nn.Linear(3, 2)
    linear.weight.data = matrix
    linear.bias.data = torch.zeros(2)
    nested = {
        "model": linear.state_dict(),
        "shared": [matrix, (matrix[1], matrix.t(), matrix[:, ::2])],
        "parameter": linear.weight,
        "größe": {7: torch.tensor(1 << 40), True: torch.empty(0, 3, dtype=torch.int8)},
        "left aside": [None, 1.5, -1, 1 << 70, b"bytes", bytearray(b"more"), {1}, frozenset([2]), torch.Size([3])],
        "more": collections.defaultdict(dict, left=torch.device("cpu"), type=torch.float16),
    }
    for protocol in range(2, 6):
        torch.save(nested, folder / f"protocol_{protocol}.pth", pickle_protocol=protocol)
    torch.serialization.set_crc32_options(False)
    torch.save({"a": matrix}, folder / "no_checksums.pth")
    torch.serialization.set_crc32_options(True)
    whole = io.BytesIO()
    torch.export.save(torch.export.export(Shifted(), (torch.ones(3),)), whole)
    with zipfile.ZipFile(whole) as exported, zipfile.ZipFile(folder / "exported.pt2", "w") as weights:
        for name in exported.namelist():
            if "/models/" in name or "/sample_inputs/" in name or "/.data/" in name:
                continue
            weights.writestr(zipfile.ZipInfo(name), exported.read(name))


OTHERS: tuple[Callable[[Path], None], ...] = (
    tensor_data,
    float_conversions,
    delegated_program,
    native_package,
    torch_files,
)


def write_all(folder: Path) -> None:
    """Makes every golden file in a folder of its own below `folder`."""
    for make in (*BUNDLES, *OTHERS):
        own = folder / make.__name__
        own.mkdir(exist_ok=True)
        make(own)


def _write(folder: Path, program: bytes, suites: list[Suite]) -> None:
    (folder / "program.pte").write_bytes(program)
    (folder / "expected.bpte").write_bytes(executorch_bundle.serialize(suites, program))
    write_cases(folder, suites, ascii_only=False)


def _tensor(
    dtype: str, shape: tuple[int, ...], store: Store, dim_order: tuple[int, ...] | None = None
) -> Tensor:
    data = _bytes(math.prod(shape) * item_size(dtype))
    return Tensor(dtype, shape, data, dim_order, store)


def _bytes(size: int) -> bytes:
    return bytes(1 + index % 255 for index in range(size))


if __name__ == "__main__":
    write_all(HERE)
