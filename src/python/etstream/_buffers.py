# SPDX-License-Identifier: BSD-3-Clause
"""Objects whose bytes lie in memory or in a file, but who do not say so by the buffer protocol."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from etstream import _core
from etstream._errors import InvalidArgumentError, UnsupportedError


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
    array = numpy.asarray(array)
    if array.nbytes == 0:
        return memoryview(b"")
    view = bytes_of_array(array, array.__array_interface__["data"][0], array.nbytes)
    return view if array.flags.writeable else view.toreadonly()


def known(value: Any) -> Any:
    """A source that has the bytes of an object of torch's or ExecuTorch's, in place; None for another object."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return tensor_bytes(value)
    if torch is not None and isinstance(value, torch.UntypedStorage):
        if value.device.type != "cpu":
            raise ValueError(f"expected a storage on the CPU, found one on {value.device}")
        return tensor_bytes(torch.empty(0, dtype=torch.uint8).set_(value))
    ours = sys.modules.get("etstream.executorch._cords")
    if ours is not None and isinstance(value, ours.LazyData):
        return value.source
    cords = sys.modules.get("executorch.exir._serialize._cord")
    if cords is not None and isinstance(value, cords.Cord):
        return list(value._buffers)
    file_backed: Any = getattr(cords, "FileBackedData", ())
    if isinstance(value, file_backed):
        # It may remove its file when it is let go of.
        return _core.Source.file(value._path, owner=value)
    return None


def tensor_bytes(tensor: Any) -> memoryview:
    """The elements of a contiguous torch tensor on the CPU, in place; the view keeps it alive.

    Raises what expect_elements() does, and ValueError for one that is elsewhere, or not contiguous.
    """
    expect_elements(tensor)
    if tensor.device.type != "cpu":
        raise ValueError(f"expected a dense tensor on the CPU, found one on {tensor.device}")
    if not tensor.is_contiguous():
        raise ValueError("expected a contiguous tensor: use .contiguous(), or pass it as a value")
    if tensor.numel() == 0:
        return memoryview(b"")
    is_lazy = tensor.is_conj() or tensor.is_neg()
    elements = tensor.detach().resolve_conj().resolve_neg() if is_lazy else tensor.detach()
    # Neither torch's buffers nor NumPy know all of its types, and NumPy may not be there.
    return bytes_of_storage(elements, elements.data_ptr(), elements.nbytes)


def bytes_of_storage(tensor: Any, address: int, size: int) -> memoryview:
    """Bytes in the storage of `tensor`, which nobody else has: reading them fails once the storage has been resized."""
    storage = tensor.untyped_storage()
    begin, end = storage.data_ptr(), address + size

    def check() -> None:
        if storage.data_ptr() != begin or begin + storage.nbytes() < end:
            raise InvalidArgumentError("the storage of a tensor was resized after its bytes were planned")

    return memoryview(bytes_at(address, size, tensor, check)).cast("B")


def bytes_of_array(array: Any, address: int, size: int) -> memoryview:
    """Bytes in the memory of a NumPy array: reading them fails once its owner has been resized."""
    owner = array
    while isinstance(owner.base, sys.modules["numpy"].ndarray):
        owner = owner.base
    begin, end = owner.__array_interface__["data"][0], address + size

    def check() -> None:
        if owner.__array_interface__["data"][0] != begin or begin + owner.nbytes < end:
            raise InvalidArgumentError("an array was resized after its bytes were planned")

    # Only what an array owns itself can be resized.
    return memoryview(bytes_at(address, size, array, check if owner.flags.owndata else None)).cast("B")


def bytes_at(address: int, size: int, owner: Any, check: Callable[[], None] | None = None) -> Any:
    """A buffer of the bytes at an address, which may be written to, and which keeps `owner` alive.

    Sources of it call `check` before they read, which raises where the bytes are there no longer.
    """
    view: Any = (ctypes.c_ubyte * size).from_address(address)
    view.owner = owner
    view.etstream_check = check
    return view


def expect_elements(tensor: Any) -> None:
    """Raises unless a torch tensor is dense, and its elements are all that it is and, on the CPU, are in memory.

    ValueError for a sparse, nested or meta tensor; TypeError for a quantized one, and for one without data of its own:
    a subclass that is made of other tensors, a fake or a functional tensor.
    """
    import torch

    if tensor.layout != torch.strided or tensor.device.type == "meta":
        raise ValueError(f"expected a dense tensor on the CPU, found {tensor.layout} on {tensor.device}")
    if tensor.is_nested:
        raise ValueError("expected a dense tensor, found a nested one")
    if tensor.is_quantized:
        raise TypeError(f"expected a tensor of numbers, found a quantized one, of {tensor.dtype}")
    kind = f"a {type(tensor).__module__}.{type(tensor).__qualname__}"
    if hasattr(tensor, "__tensor_flatten__"):
        parts = ", ".join(tensor.__tensor_flatten__()[0])
        raise TypeError(f"expected a tensor with data of its own, found {kind}, made of {parts}")
    if tensor.device.type == "cpu" and tensor.numel() != 0 and not _are_in_memory(tensor):
        raise TypeError(f"expected a tensor with data of its own, found {kind} without data")


def _are_in_memory(tensor: Any) -> bool:
    """Whether a strided tensor's elements are."""
    steps = zip(tensor.shape, tensor.stride())
    end = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps) + 1
    try:
        return bool(tensor.data_ptr() != 0 and tensor.untyped_storage().nbytes() >= end * tensor.element_size())
    except RuntimeError:  # a functional tensor's, for one
        return False


def in_memory(source: _core.Source, alignment: int = 1) -> memoryview:
    """The bytes of a source where they lie: in a buffer, or in a file, mapped so that writing does not change it.

    A copy where they lie in neither, or not at a multiple of `alignment`.
    """
    held = _core.buffer_of(source)
    if held is not None:
        view, begin = held
        found = view.cast("B")[begin : begin + source.size]
    else:
        try:
            found = mapped(source, writable=True)
        except UnsupportedError:
            return memoryview(bytearray(source.read()))
    return found if _core.address_of(found) % alignment == 0 else memoryview(bytearray(found))


def mapped(source: _core.Source, *, writable: bool = False) -> memoryview:
    """The bytes of a source that is a range of a file, mapped so that writing, if allowed, does not change the file.

    No descriptor stays open, as one does by the module mmap: a checkpoint may have thousands of tensors. Raises
    UnsupportedError for another source, and an empty one; IoError.
    """
    pages = _core.FileMapping(source, writable)
    found = memoryview(bytes_at(pages.address, source.size, pages)).cast("B")
    return found if writable else found.toreadonly()
