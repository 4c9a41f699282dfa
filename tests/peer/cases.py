# SPDX-License-Identifier: BSD-3-Clause
"""Writes test cases as `etstream bundle` reads them: CASES.json and the tensor files that it names."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch


class Store(Enum):
    """The kinds of file in which a tensor of CASES.json may lie."""

    NPY = "npy"
    SAFETENSORS = "safetensors"
    RAW = "raw"


def _stores_by_dtype() -> dict[str, tuple[Store, ...]]:
    anywhere = "uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 complex64 bool"
    not_numpy = "bfloat16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz"
    only_raw = "qint8 quint8 qint32 quint4x2 quint2x4 bits16 complex32"
    return {
        **dict.fromkeys(anywhere.split(), tuple(Store)),
        **dict.fromkeys(not_numpy.split(), (Store.SAFETENSORS, Store.RAW)),
        **dict.fromkeys(only_raw.split(), (Store.RAW,)),
        "complex128": (Store.NPY, Store.RAW),
    }


STORES_BY_DTYPE = _stores_by_dtype()
"""The kinds of file that can hold each dtype of a bundle, by torch's name."""


def item_size(dtype: str) -> int:
    """Returns the bytes that an element of `dtype` takes."""
    return getattr(torch, dtype).itemsize


@dataclass(frozen=True)
class Tensor:
    """A tensor's bytes, and the kind of file CASES.json names it in."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    dim_order: tuple[int, ...] | None = None
    store: Store = Store.RAW

    @classmethod
    def from_torch(cls, tensor: torch.Tensor, store: Store) -> Tensor:
        flat = tensor.detach().contiguous().flatten()
        return cls(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            data=flat.view(torch.uint8).numpy().tobytes(),
            store=store,
        )


Value = Tensor | int | float | bool | None


@dataclass(frozen=True)
class Case:
    inputs: Sequence[Value]
    expected_outputs: Sequence[Value]


@dataclass(frozen=True)
class Suite:
    method: str
    cases: Sequence[Case]


class _TensorFiles:
    """The files of the tensors of one CASES.json; all safetensors ones go into one file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._in_safetensors: dict[str, torch.Tensor] = {}

    def add(self, tensor: Tensor) -> dict[str, Any]:
        """Takes in `tensor`, and returns its entry in CASES.json."""
        name = f"tensor_{self._count}"
        self._count += 1
        reference = self._stored(tensor, name)
        if tensor.dim_order is not None:
            reference["dim_order"] = list(tensor.dim_order)
        return reference

    def finish(self) -> None:
        """Writes the tensors that add() kept back."""
        if self._in_safetensors:
            file = safetensors.torch.save(self._in_safetensors)
            (self._folder / "tensors.safetensors").write_bytes(file)

    def _stored(self, tensor: Tensor, name: str) -> dict[str, Any]:
        if tensor.store is not Store.RAW:
            tensor = replace(tensor, data=_in_index_order(tensor))
        if tensor.store is Store.NPY:
            array = np.ndarray(tensor.shape, np.dtype(tensor.dtype), tensor.data)
            np.save(self._folder / f"{name}.npy", array)
            return {"npy": f"{name}.npy"}
        if tensor.store is Store.SAFETENSORS:
            self._in_safetensors[name] = _as_torch(tensor)
            return {"safetensors": "tensors.safetensors", "name": name}
        (self._folder / f"{name}.bin").write_bytes(tensor.data)
        return {"raw": f"{name}.bin", "dtype": tensor.dtype, "shape": list(tensor.shape)}


def _in_index_order(tensor: Tensor) -> bytes:
    """Returns the elements in the order of their indices, as .npy and safetensors have them."""
    if tensor.dim_order is None:
        return tensor.data
    lying = [tensor.shape[dimension] for dimension in tensor.dim_order]
    array = np.ndarray(lying, np.dtype(f"V{item_size(tensor.dtype)}"), tensor.data)
    return array.transpose(np.argsort(tensor.dim_order)).tobytes()


def write_cases(
    folder: Path,
    suites: Sequence[Suite],
    *,
    by_method: bool = False,
    ascii_only: bool = True,
) -> Path:
    """Writes CASES.json and its tensors into `folder`.

    With `by_method` CASES.json is an object with a member for each method, otherwise the list that keeps the suites'
    order.
    """
    files = _TensorFiles(folder)
    listed = [_suite_json(suite, files) for suite in suites]
    files.finish()
    document = {suite["method"]: suite["cases"] for suite in listed} if by_method else listed
    path = folder / "cases.json"
    text = json.dumps(document, indent=1, ensure_ascii=ascii_only, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _suite_json(suite: Suite, files: _TensorFiles) -> dict[str, Any]:
    return {
        "method": suite.method,
        "cases": [
            {
                "inputs": [_value_json(value, files) for value in case.inputs],
                "expected_outputs": [_value_json(value, files) for value in case.expected_outputs],
            }
            for case in suite.cases
        ],
    }


def _value_json(value: Value, files: _TensorFiles) -> Any:
    if isinstance(value, Tensor):
        return files.add(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"double": str(value)}
    return value


def _as_torch(tensor: Tensor) -> torch.Tensor:
    dtype = getattr(torch, tensor.dtype)
    if not tensor.data:
        return torch.empty(tensor.shape, dtype=dtype)
    flat = torch.frombuffer(bytearray(tensor.data), dtype=torch.uint8)
    return flat.view(dtype).reshape(tensor.shape)
