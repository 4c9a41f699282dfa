# SPDX-License-Identifier: BSD-3-Clause
"""Torch tensors of every kind: those with data of their own give it, the others are refused, and none crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C import _functorch
from torch._subclasses import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.utils._mode_utils import no_dispatch
from torchao.quantization import Int8WeightOnlyConfig, quantize_

import etstream


class Plain(torch.Tensor):
    """A subclass with data of its own."""


class Watched(Plain):
    """A subclass whose operators pass through Python."""

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with no_dispatch():
            return function(*args, **(kwargs or {}))


class Wrapper(torch.Tensor):
    """A subclass without data of its own, which does not say what it is made of."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*(arg.inner if isinstance(arg, Wrapper) else arg for arg in args), **(kwargs or {}))


def ones() -> torch.Tensor:
    return torch.ones(2, 3)


def torchao_weight() -> torch.Tensor:
    linear = torch.nn.Linear(64, 64)
    quantize_(linear, Int8WeightOnlyConfig())
    return linear.weight


def functional() -> torch.Tensor:
    with FunctionalTensorMode():
        return FunctionalTensor.to_functional(ones())


def batched() -> torch.Tensor:
    level = _functorch._vmap_increment_nesting(2, "error")
    try:
        return _functorch._add_batch_dim(ones(), 0, level)
    finally:
        _functorch._vmap_decrement_nesting()


def with_storage_of(size: int) -> torch.Tensor:
    tensor = ones()
    tensor.untyped_storage().resize_(size)
    return tensor


REFUSED = [
    (torchao_weight, TypeError, r"found a torchao\..*Int8Tensor, made of qdata, scale"),
    (lambda: Wrapper(ones()), TypeError, r"found a .*\.Wrapper without data"),
    (lambda: FakeTensorMode().from_tensor(ones()), TypeError, r"found a .*\.FakeTensor without data"),
    (functional, TypeError, r"found a .*\.FunctionalTensor without data"),
    (lambda: torch._to_functional_tensor(ones()), TypeError, "found a torch.Tensor without data"),
    (lambda: torch._efficientzerotensor(3), TypeError, "found a torch.Tensor without data"),
    (batched, TypeError, "found a torch.Tensor without data"),
    (lambda: with_storage_of(0), TypeError, "found a torch.Tensor without data"),
    (lambda: with_storage_of(20), TypeError, "found a torch.Tensor without data"),
    (lambda: torch.quantize_per_tensor(ones(), 0.1, 0, torch.qint8), TypeError, "a quantized one, of torch.qint8"),
    (lambda: torch.ones(2, device="meta"), ValueError, "found torch.strided on meta"),
    (lambda: torch.eye(2).to_sparse(), ValueError, "found torch.sparse_coo on cpu"),
    (lambda: torch.eye(2).to_sparse_csr(), ValueError, "found torch.sparse_csr on cpu"),
    (lambda: ones().to_mkldnn(), ValueError, "found torch._mkldnn on cpu"),
    (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), ValueError, "found a nested one"),
    (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        ValueError,
        "found torch.jagged on cpu",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), REFUSED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensor_without_data_of_its_own_is_refused_by_its_kind(
    make: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    tensor = make()
    with pytest.raises(error, match=message):
        etstream.Source(tensor)
    with pytest.raises(error, match=message):
        etstream.TestCase([tensor])
    with pytest.raises(error, match=rf"^layer\.weight: .*{message}"):
        etstream.ptd({"layer.weight": tensor}, tmp_path / "w.ptd")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("make", [lambda: Wrapper(ones()).untyped_storage(), lambda: with_storage_of(0)])
def test_storage_of_such_a_tensor_is_refused_or_empty(make: Any) -> None:
    given = make()
    if isinstance(given, torch.Tensor):
        assert etstream.Source(given.untyped_storage()).read() == b""
        return
    with pytest.raises(TypeError, match="without data"):
        etstream.Source(given)


def test_storage_elsewhere_is_refused() -> None:
    with pytest.raises(ValueError, match="on the CPU, found one on meta"):
        etstream.Source(torch.ones(2, device="meta").untyped_storage())


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.Parameter(ones()),
        lambda: torch.nn.Parameter(ones().as_subclass(Plain)),
        lambda: ones().as_subclass(Plain),
        lambda: ones().as_subclass(Watched),
        lambda: torch._neg_view(-ones()),
        lambda: ones().requires_grad_(),
        lambda: torch.ones(3, 3)[1:],
    ],
)
def test_tensor_with_data_of_its_own_gives_it(make: Any) -> None:
    tensor = make()
    (value,) = etstream.TestCase([tensor]).inputs
    assert isinstance(value, etstream.Tensor)
    assert (value.dtype, value.sizes) == ("float32", [2, 3])
    assert value.data.read() == etstream.Source(tensor).read() == ones().numpy().tobytes()
    plan = etstream.ptd({"w": tensor}, to="safetensors", dry_run=True)
    assert bytes(plan)[-24:] == ones().numpy().tobytes()


def test_conjugate_gives_its_own_values() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 4j]).conj()
    assert tensor.is_conj()
    assert etstream.Source(tensor).read() == tensor.resolve_conj().numpy().tobytes()


@pytest.mark.parametrize(
    "make", [lambda: torch.empty(0, 3), lambda: ones()[2:], lambda: torch.nn.Parameter(ones()[:0])]
)
def test_tensor_without_elements_has_no_bytes(make: Any) -> None:
    tensor = make()
    assert etstream.Source(tensor).read() == b""
    (value,) = etstream.TestCase([tensor]).inputs
    assert isinstance(value, etstream.Tensor)
    assert (value.sizes, value.data.size) == ([0, 3], 0)
