# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of other libraries as etstream's."""

from __future__ import annotations

import sys
from typing import Any

from etstream import _core
from etstream._buffers import expect_elements, tensor_bytes


def tensor(value: Any) -> _core.Tensor:
    """A torch tensor or a NumPy array; in place where it is contiguous, otherwise a copy of it. One of etstream's stays."""
    if isinstance(value, _core.Tensor):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        expect_elements(value)
        value = value.cpu().contiguous()
        return _core.Tensor(dtype, list(value.shape), tensor_bytes(value))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        array = numpy.asarray(value)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        return _core.Tensor(array.dtype.name, list(array.shape), numpy.ascontiguousarray(array))
    raise TypeError(
        f"expected an int, a float, a bool, None, or a tensor, found {type(value).__name__}"
    )
