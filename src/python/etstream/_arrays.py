# SPDX-License-Identifier: BSD-3-Clause
"""Reads other libraries' arrays where they lie, and converts etstream's tensors to theirs."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, TypedDict

from etstream import _arguments, _core
from etstream._errors import InvalidArgumentError, UnsupportedError
from etstream._writing import Unpack, keywords_of
from etstream.results import Comparison


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


_BytesFrom = Callable[[int, int], memoryview]


def tensor(value: Any, expected: str = "a tensor") -> _core.Tensor:
    """Returns a torch tensor or a NumPy array as a Tensor, in place: elements that are not contiguous are read where
    they lie.

    Etstream's own tensors stay as they are. Big-endian arrays, and tensors that torch conjugates or negates when they
    are read, are copied.

    Raises what expect_elements() raises, and TypeError, which names what was `expected`, for other values.
    """
    if isinstance(value, _core.Tensor):
        return value
    if isinstance(value, _core.CheckpointTensor):
        if value.dtype is None or value.sizes is None:
            raise TypeError(f"expected a tensor, found data of type {value.type!r}, which ExecuTorch has no tensors of")
        return _core.in_any_order(_core.Tensor(value.dtype, value.sizes, value.data, value.dim_order))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        expect_elements(value)
        value = value.cpu()
        if value.is_contiguous():
            return _core.Tensor(dtype, list(value.shape), tensor_bytes(value))
        value = value.detach().resolve_conj().resolve_neg()
        strides = [stride * value.element_size() for stride in value.stride()]
        span = functools.partial(bytes_of_storage, value)
        return _gathered(dtype, list(value.shape), strides, value.data_ptr(), value.element_size(), span)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        array = numpy.asarray(value)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        if array.flags.c_contiguous or array.dtype.hasobject:
            return _core.Tensor(array.dtype.name, list(array.shape), numpy.ascontiguousarray(array))
        address = array.__array_interface__["data"][0]
        span = functools.partial(bytes_of_array, array)
        return _gathered(array.dtype.name, list(array.shape), list(array.strides), address, array.itemsize, span)
    raise TypeError(f"expected {expected}, found {type(value).__name__}")


def _gathered(
    dtype: str, sizes: list[int], strides: list[int], address: int, item_size: int, bytes_from: _BytesFrom
) -> _core.Tensor:
    """Returns the elements of an array that is neither empty nor contiguous, by strides in bytes from the first element
    on.

    `bytes_from` returns the bytes at an address.
    """
    steps = [(size - 1) * stride for size, stride in zip(sizes, strides)]
    before = -sum(step for step in steps if step < 0)
    span = before + sum(step for step in steps if step > 0) + item_size
    return _core.gathered_tensor(dtype, sizes, strides, bytes_from(address - before, span), before)


def named_tensors(given: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Iterator[tuple[str, _core.Tensor]]:
    """Yields names and tensors; see Checkpoint.of()."""
    if not _arguments.are_several(given):
        expected = "a mapping of names to tensors, or pairs of a name and a tensor"
        raise TypeError(f"expected {expected}, found {type(given).__name__}")
    for pair in given.items() if isinstance(given, Mapping) else given:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"expected pairs of a name and a tensor, found {_arguments.shown(pair)}")
        name, value = pair
        if not isinstance(name, str):
            raise TypeError(f"expected a str as a tensor's name, found {_arguments.shown(name)}")
        try:
            yield name, tensor(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error


def leaves(values: Any) -> list[Any]:
    """Returns the values of a tree, in the order in which ExecuTorch's MethodTestCase has them.

    The order is that of torch.utils._pytree; without torch, that of the containers which _pytree knows from the
    beginning.
    """
    if isinstance(values, Iterable) and not _is_node(values) and not hasattr(values, "__array__"):
        values = list(values)  # neither a tensor nor a known tree, but a generator, for example
    torch = sys.modules.get("torch")
    if torch is None:
        return list(_plain_leaves(values))
    from torch.utils import _pytree

    found: list[Any] = _pytree.tree_leaves(values)
    return found


def _is_node(value: Any) -> bool:
    return type(value) in (list, tuple, dict, OrderedDict, defaultdict, deque) or hasattr(value, "_fields")


def _plain_leaves(value: Any) -> Iterator[Any]:
    if not _is_node(value):
        yield value
        return
    for one in value.values() if isinstance(value, dict) else value:
        yield from _plain_leaves(one)


def numpy_array(tensor: _core.Tensor | _core.CheckpointTensor) -> Any:
    """Returns the elements as a NumPy array; see Tensor.numpy()."""
    import numpy

    name, lying, axes = _arrangement(tensor)
    dtype = _numpy_dtype(name, _label(tensor))
    if 0 in lying:
        return numpy.empty(lying, dtype).transpose(axes)
    elements = numpy.frombuffer(in_memory(tensor.data, dtype.itemsize), numpy.uint8).view(dtype)
    return elements.reshape(lying).transpose(axes)


def torch_tensor(tensor: _core.Tensor | _core.CheckpointTensor, data: bytearray | None = None) -> Any:
    """Returns the elements of a tensor, or those in `data`, as a torch tensor; see Tensor.torch()."""
    import torch

    name, lying, axes = _arrangement(tensor)
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or name.startswith("q"):
        raise UnsupportedError(f"{_label(tensor)}: torch has no tensors of type {name} that are made of their bytes")
    if 0 in lying:
        return torch.empty(lying, dtype=dtype).permute(axes)
    held = in_memory(tensor.data, dtype.itemsize) if data is None else memoryview(data)
    # Torch has no read-only tensors, and warns of a read-only buffer. The documentation of Tensor.torch() says so once
    # and for all.
    elements = torch.frombuffer(bytes_at(_core.address_of(held), len(held), held), dtype=torch.uint8).view(dtype)
    return elements.reshape(lying).permute(axes)


def dlpack(tensor: _core.Tensor | _core.CheckpointTensor, **options: Any) -> Any:
    """Returns a capsule; see Tensor.__dlpack__(). Uses torch if it is loaded, as it knows more types than NumPy."""
    if not in_memory(tensor.data).readonly:
        array = torch_tensor(tensor) if "torch" in sys.modules else numpy_array(tensor)
        return array.__dlpack__(**options)
    # Only NumPy's capsules say that they are read-only, and only to callers that ask for a version that can say so.
    if (options.get("max_version") or (0, 0)) >= (1, 0):
        try:
            return numpy_array(tensor).__dlpack__(**options)
        except (ImportError, UnsupportedError, BufferError):
            pass
    if options.get("copy") is False:
        raise BufferError(f"{tensor.data.name}: it is read-only, which a DLPack capsule can't say of {tensor.dtype}")
    data = bytearray(tensor.data.read())
    array = torch_tensor(tensor, data) if "torch" in sys.modules else numpy_array(tensor).copy()
    return array.__dlpack__(**options)


class Tolerance(TypedDict, total=False):
    """The largest difference between an actual value and the expected one.

    Keys:
        rtol: floating-point elements and doubles agree if |actual - expected| <= atol + rtol * |expected|. The default
            is that of the dtype in torch.testing.assert_close(), as that of atol.
        atol: see rtol.
        integer: the most by which integers may differ; rounding in quantized outputs takes 1. Elements of bool and of
            types of bits have to have the same bits.
        nan_equal: whether NaN agrees with an expected NaN.
    """

    rtol: Annotated[float | None, None]
    atol: Annotated[float | None, None]
    integer: Annotated[int, 0]
    nan_equal: Annotated[bool, True]


@keywords_of(Tolerance)
def compare(expected: Any, actual: Any, **tolerance: Unpack[Tolerance]) -> Comparison:
    """Compares two values of one kind that TestCase takes; of tensors, compares each element. See Tolerance.

    Raises InvalidArgumentError for tensors of different dtypes or shapes, and for other values that can't be compared.
    """
    tolerance["integer"] = _arguments.integer("integer", tolerance["integer"], _arguments.UINT64)
    return Comparison._of(_core.compare(expected, actual, **tolerance))


def _label(tensor: _core.Tensor | _core.CheckpointTensor) -> str:
    """Returns a tensor's name for messages."""
    file = tensor.data.name
    return f"{file}: {tensor.name!r}" if isinstance(tensor, _core.CheckpointTensor) else file


# Types that torch has and ExecuTorch lacks, by safetensors' names, and how many of its elements torch's has.
_TORCHS_OWN = {"F8_E8M0": ("float8_e8m0fnu", 1), "F4": ("float4_e2m1fn_x2", 2)}


def _arrangement(tensor: _core.Tensor | _core.CheckpointTensor) -> tuple[str, list[int], list[int]]:
    """Returns the dtype, the sizes in the order in which the elements lie, and each dimension's place in that order."""
    if isinstance(tensor, _core.CheckpointTensor) and tensor.type in _TORCHS_OWN and tensor.shape:
        name, packed = _TORCHS_OWN[tensor.type]
        return name, [*tensor.shape[:-1], tensor.shape[-1] // packed], list(range(len(tensor.shape)))
    if tensor.dtype is None or tensor.sizes is None or tensor.dim_order is None or tensor.dtype == "unknown":
        raise UnsupportedError(f"{_label(tensor)}: data without a type that ExecuTorch has tensors of")
    if isinstance(tensor, _core.Tensor):
        _core.require_sound(tensor)
    lying = [tensor.sizes[dimension] for dimension in tensor.dim_order]
    return tensor.dtype, lying, [tensor.dim_order.index(i) for i in range(len(lying))]


def _numpy_dtype(name: str, label: str) -> Any:
    import numpy

    scalar = getattr(numpy, name, None)
    if name == "bool" or (isinstance(scalar, type) and issubclass(scalar, numpy.generic)):
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"{label}: NumPy has no type {name}: pip install ml_dtypes, or use torch()") from error
    scalar = getattr(ml_dtypes, name, None)
    if scalar is None:
        raise UnsupportedError(f"{label}: neither NumPy nor ml_dtypes has a type {name}")
    return numpy.dtype(scalar)
