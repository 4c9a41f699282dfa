# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions that etstream raises. Messages name the file, the offset, what was expected and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Error(Exception):
    """What they all are."""

    filename: str | None = None
    """The file that the message is about."""
    offset: int | None = None
    """The place in that file, in bytes from its beginning, if the message names one."""

    @classmethod
    def about(cls, filename: str, words: str) -> Self:
        """One whose message begins with the file's name."""
        error = cls(f"{filename}: {words}")
        error.filename = filename
        return error


class InvalidArgumentError(Error, ValueError):
    """The caller asked for something that makes no sense."""


class CorruptError(Error, ValueError):
    """A file's bytes contradict its format."""


class UnsupportedError(Error):
    """Valid, but not something that etstream does."""


class TooLargeError(Error):
    """Over a limit of the format or of the machine."""


class NotFoundError(Error):
    """Something is not there: a file, or a name."""


def _with_errno(self: OSError) -> tuple[Any, ...]:
    """For pickle, which leaves the errno out where it is not among the arguments."""
    return type(self), self.args, {**self.__dict__, "errno": self.errno}


class NoSuchFileError(NotFoundError, FileNotFoundError):
    """A file is not there. Its errno is ENOENT or ENOTDIR."""

    __reduce__ = _with_errno


class NoSuchNameError(NotFoundError, KeyError):
    """A name is not in a file, or none that is known: of a method, a tensor, a segment, rules."""

    __str__ = Exception.__str__  # a KeyError shows its message in quotes


class IoError(Error, OSError):
    """The operating system refused a read or a write; errno says why, where a call of it failed."""

    __reduce__ = _with_errno


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed."""


class ExecutionError(Error, RuntimeError):
    """ExecuTorch's runtime could not load or run a method."""
