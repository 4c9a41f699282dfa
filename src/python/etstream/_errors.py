# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions that etstream raises. Messages name the file, the offset, what was expected and what was found. Some
end with what to do next, with the names of arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Error(Exception):
    """The base class of etstream's errors."""

    filename: str | None = None
    """The file that the message is about."""
    offset: int | None = None
    """The place in that file, in bytes from its beginning, if the message names one."""

    @classmethod
    def about(cls, filename: str, words: str) -> Self:
        """Returns an error whose message begins with the file's name."""
        error = cls(f"{filename}: {words}")
        error.filename = filename
        return error


class InvalidArgumentError(Error, ValueError):
    """A request that makes no sense."""


class CorruptError(Error, ValueError):
    """A file whose bytes contradict its format."""


class UnsupportedError(Error):
    """A valid request or file that etstream does not support."""


class TooLargeError(Error):
    """A size or a number over a limit of the format or of the machine."""


class NotFoundError(Error):
    """A file or a name that is not there."""


def _with_errno(self: OSError) -> tuple[Any, ...]:
    """Returns the parts of a pickle, with the errno, which pickle leaves out if it is not among the arguments."""
    return type(self), self.args, {**self.__dict__, "errno": self.errno}


class NoSuchFileError(NotFoundError, FileNotFoundError):
    """A file that is not there. Its errno is ENOENT or ENOTDIR."""

    __reduce__ = _with_errno


class NoSuchNameError(NotFoundError, KeyError):
    """The name of a method, a tensor, a segment or rules that is not in a file, or that is not known."""

    __str__ = Exception.__str__  # a KeyError shows its message in quotes


class IoError(Error, OSError):
    """A read or a write that the operating system refused; errno says why, if a system call failed."""

    __reduce__ = _with_errno


class OutOfMemoryError(Error, MemoryError):
    """An allocation that failed."""


class ExecutionError(Error, RuntimeError):
    """A method that ExecuTorch's runtime could not load or run."""
