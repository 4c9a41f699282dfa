# SPDX-License-Identifier: BSD-3-Clause
"""Objects whose bytes lie in memory or in a file, but who do not say so by the buffer protocol."""

from __future__ import annotations

import sys
from typing import Any


def exported(array: Any) -> Any:
    """`array`, or where NumPy can't export its dtype (bfloat16, float8), a view of its bytes.

    Raises BufferError or ValueError where the bytes are not contiguous.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray) and array.dtype.kind == "V":
        return array.reshape(-1).view(numpy.uint8) if array.flags.c_contiguous else array
    return array


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
        return value.source if hasattr(value, "source") else value._path
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
    elements = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
    return memoryview(elements.view(torch.uint8).numpy())
