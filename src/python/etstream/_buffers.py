# SPDX-License-Identifier: BSD-3-Clause
"""Gives access to the bytes of objects that hold them in memory or in a file, but do not offer the buffer protocol."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from etstream import _core
from etstream._errors import InvalidArgumentError, UnsupportedError


def exported(array: Any) -> Any:
    """Returns `array`, or a view of its bytes if it is NumPy's, as some dtypes (bfloat16, float8) can't be exported.

    Raises TypeError for an array of objects, ValueError or BufferError if the bytes are not contiguous.
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
    """Returns a source of the bytes of an object of torch or ExecuTorch, in place; None for another object."""
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
        # The object may remove its file when it is freed.
        return _core.Source.file(value._path, owner=value)
    return None


def tensor_bytes(tensor: Any) -> memoryview:
    """Returns the elements of a contiguous torch tensor on the CPU, in place; the view keeps the tensor alive.

    Raises what expect_elements() does, and ValueError if the tensor is elsewhere or not contiguous.
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
    """Returns bytes in the storage of `tensor`, an object that nobody else has. Reading the bytes fails once the
    storage has been resized."""
    storage = tensor.untyped_storage()
    begin, end = storage.data_ptr(), address + size

    def check() -> None:
        if storage.data_ptr() != begin or begin + storage.nbytes() < end:
            raise InvalidArgumentError("the storage of a tensor was resized after its bytes were planned")

    return memoryview(bytes_at(address, size, tensor, check)).cast("B")


def bytes_of_array(array: Any, address: int, size: int) -> memoryview:
    """Returns bytes in the memory of a NumPy array; reading them fails once their owner has been resized."""
    owner = array
    while isinstance(owner.base, sys.modules["numpy"].ndarray):
        owner = owner.base
    begin, end = owner.__array_interface__["data"][0], address + size

    def check() -> None:
        if owner.__array_interface__["data"][0] != begin or begin + owner.nbytes < end:
            raise InvalidArgumentError("an array was resized after its bytes were planned")

    # Only an array that owns its memory can be resized.
    return memoryview(bytes_at(address, size, array, check if owner.flags.owndata else None)).cast("B")


def bytes_at(address: int, size: int, owner: Any, check: Callable[[], None] | None = None) -> Any:
    """Returns a writable buffer of the bytes at an address, which keeps `owner` alive.

    Sources of the buffer call `check` before they read; it raises an error if the bytes are no longer there.
    """
    view: Any = (ctypes.c_ubyte * size).from_address(address)
    view.owner = owner
    view.etstream_check = check
    return view


def expect_elements(tensor: Any) -> None:
    """Raises an error unless a torch tensor is dense, consists of its elements alone and, on the CPU, has them in
    memory.

    The error is a ValueError for a sparse, nested or meta tensor. It is a TypeError for a quantized tensor, and for one
    without data of its own: a subclass that is made of other tensors, a fake or a functional tensor.
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
    """Returns whether a strided tensor's elements are in memory."""
    steps = zip(tensor.shape, tensor.stride())
    end = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps) + 1
    try:
        return bool(tensor.data_ptr() != 0 and tensor.untyped_storage().nbytes() >= end * tensor.element_size())
    except RuntimeError:  # a functional tensor's methods raise this, for example
        return False


def in_memory(source: _core.Source, alignment: int = 1) -> memoryview:
    """Returns the bytes of a source where they lie: in a buffer, or in a file, mapped so that writing does not change
    it.

    Returns a copy if they lie in neither, or not at a multiple of `alignment`.
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
    """Maps a source that is a range of a file, and returns its bytes. Writing to them, if allowed, does not change the
    file.

    No descriptor stays open, unlike with the module mmap, as a checkpoint may have thousands of tensors. Raises
    UnsupportedError for another source and for an empty one, and IoError.
    """
    pages = _core.FileMapping(source, writable)
    found = memoryview(bytes_at(pages.address, source.size, pages)).cast("B")
    return found if writable else found.toreadonly()
