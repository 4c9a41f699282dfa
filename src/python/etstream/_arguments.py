# SPDX-License-Identifier: BSD-3-Clause
"""Checks arguments that many functions take, with errors that name the argument."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from etstream import _core
from etstream._errors import InvalidArgumentError

if TYPE_CHECKING:
    from etstream._types import DtypeLike

UINT32 = 2**32 - 1
UINT64 = 2**64 - 1

Value = TypeVar("Value")


def integer(argument: str, value: int | None, most: int = UINT32) -> Any:
    """Returns an integer from 0 to `most`, or None for None. Raises TypeError, InvalidArgumentError."""
    if value is None:
        return None
    number = _index(argument, value, "an int")
    if not 0 <= number <= most:
        raise InvalidArgumentError(f"{argument}: expected a number from 0 to {most}, found {number}")
    return number


def size(argument: str, value: int | str | None, *, least: int = 0, most: int = UINT64) -> Any:
    """Returns a number of bytes, given as an int or in words, such as "4G"; None for None. Raises TypeError,
    InvalidArgumentError."""
    if value is None:
        return None
    words = value if isinstance(value, str) else str(_index(argument, value, "an int, or a size such as '4G'"))
    try:
        return _core.parse_size(words, least, most)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{argument}: {error}") from None


def alignment(argument: str, value: int | str | None) -> Any:
    """Returns an alignment in bytes, of at most 32 bits; see size()."""
    return size(argument, value, most=UINT32)


def asked(given: Value | os.PathLike[str]) -> Value | str:
    """Returns the path that an os.PathLike stands for, and anything else as it is. What is needed twice is asked once,
    as the next answer could be another."""
    return os.fsdecode(given) if isinstance(given, os.PathLike) else given


def is_path(given: object) -> TypeGuard[str | os.PathLike[str]]:
    """Returns whether an object is a path. Bytes are a source, and no path."""
    return isinstance(given, (str, os.PathLike))


def path(argument: str, given: object) -> str:
    """Returns a path as asked() does. Raises TypeError for anything else."""
    if not is_path(given):
        raise TypeError(f"{argument}: expected a path, found {type(given).__name__}")
    return asked(given)


def are_several(given: object) -> TypeGuard[Iterable[Any]]:
    """Returns whether an object is an iterable of others, and not one path, file or memory: nobody means the
    characters, lines or bytes of these."""
    is_file = hasattr(given, "read") or hasattr(given, "write")
    return isinstance(given, Iterable) and not (is_path(given) or is_file or _is_memory(given))


def _is_memory(given: Any) -> bool:
    try:
        memoryview(given)
    except TypeError:
        return hasattr(given, "data_ptr")  # torch's
    except (ValueError, BufferError):  # of an array with a dtype that can't be exported, or that is not contiguous
        pass
    return True


def several(argument: str, kind: str, given: Iterable[Value]) -> list[Value]:
    """Returns the given elements as a list. Raises TypeError unless are_several()."""
    if are_several(given):
        return list(given)
    if isinstance(given, Iterable) or is_path(given):
        raise TypeError(f"{argument}: expected {kind}, found {shown(given)} alone: put it in a list")
    raise TypeError(f"{argument}: expected {kind}, found {type(given).__name__}")


def shown(given: object) -> str:
    """Returns an object as messages show it, in at most 200 characters."""
    words = repr(given[:200] if isinstance(given, (str, bytes, bytearray)) else given)
    return words if len(words) <= 200 else f"{words[:197]}..."


def names(argument: str, given: Iterable[str]) -> list[str]:
    """Returns the given names as a list. Raises TypeError as several() does, and for elements that are no str."""
    return [_name(argument, one) for one in several(argument, "names", given)]


def names_by_name(argument: str, given: Mapping[str, str]) -> dict[str, str]:
    """Returns the names that names stand for. Raises TypeError as by_name() does, and for values that are no str."""
    return {key: _name(argument, value) for key, value in by_name(argument, given)}


def by_name(argument: str, given: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Returns the items of a mapping whose keys are str. Raises TypeError."""
    if not hasattr(given, "items"):
        raise TypeError(f"{argument}: expected a mapping, found {type(given).__name__}")
    return [(_name(argument, name), value) for name, value in given.items()]


def dtype_name(argument: str, given: DtypeLike) -> str:
    """Returns the name of a dtype, which is given by name or as one of torch or NumPy, such as numpy.float16. Raises
    TypeError for anything else, InvalidArgumentError for a big-endian dtype of NumPy."""
    if isinstance(given, str):
        return given
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(given, torch.dtype):
        return str(given)
    if numpy is not None and isinstance(given, type) and issubclass(given, numpy.generic):
        given = numpy.dtype(given)
    if numpy is not None and isinstance(given, numpy.dtype):
        if given.byteorder == ">":
            raise InvalidArgumentError(f"{argument}: expected a little-endian dtype, found {given!r}")
        return str(given.name)
    expected = "a dtype of torch's or NumPy's, or a name such as 'bfloat16'"
    raise TypeError(f"{argument}: expected {expected}, found {shown(given)}")


def _index(argument: str, given: Any, expected: str) -> int:
    try:
        return operator.index(given)
    except TypeError:
        raise TypeError(f"{argument}: expected {expected}, found {shown(given)}") from None


def _name(argument: str, given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{argument}: expected a str as a name, found {shown(given)}")
    return given
