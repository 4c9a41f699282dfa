# SPDX-License-Identifier: BSD-3-Clause
"""Objects whose bytes lie in memory or in a file, but who do not say so by the buffer protocol."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from etstream import _core


def exported(array: Any) -> Any:
    """`array`, or where it is NumPy's a view of its bytes, as not all its dtypes (bfloat16, float8) can be exported.

    Raises TypeError for objects, ValueError or BufferError where the bytes are not contiguous.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(array, (numpy.ndarray, numpy.generic)):
        return array
    if array.dtype.hasobject:
        raise TypeError("expected an array of numbers, found one of Python objects")
    if not array.flags.c_contiguous:
        raise ValueError("expected a contiguous array: use numpy.ascontiguousarray()")
    return numpy.asarray(array).reshape(-1).view(numpy.uint8)


def known(value: Any) -> Any:
    """A source that has the bytes of an object of torch's or ExecuTorch's, in place; None for another object."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return tensor_bytes(value)
    if torch is not None and isinstance(value, torch.UntypedStorage):
        return tensor_bytes(torch.empty(0, dtype=torch.uint8).set_(value))
    cords = sys.modules.get("executorch.exir._serialize._cord")
    if cords is not None and isinstance(value, cords.Cord):
        return list(value._buffers)
    if cords is not None and isinstance(value, cords.FileBackedData):
        if hasattr(value, "source"):
            return value.source
        # It may remove its file when it is let go of.
        return _core.Source.file(value._path, owner=value)
    return None


def tensor_bytes(tensor: Any) -> memoryview:
    """The elements of a contiguous torch tensor on the CPU, in place; the view keeps it alive.

    Raises ValueError for one that is elsewhere, or not contiguous.
    """
    import torch

    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise ValueError(f"expected a dense tensor on the CPU, found {tensor.layout} on {tensor.device}")
    if not tensor.is_contiguous():
        raise ValueError("expected a contiguous tensor: use .contiguous(), or pass it as a value")
    if tensor.numel() == 0:
        return memoryview(b"")
    elements = tensor.detach().resolve_conj().resolve_neg()
    # Neither torch's buffers nor NumPy know all of its types, and NumPy may not be there.
    view = (ctypes.c_ubyte * (elements.numel() * elements.element_size())).from_address(elements.data_ptr())
    view.owner = elements
    return memoryview(view).cast("B")
