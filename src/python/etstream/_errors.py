# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions that etstream raises. Messages name the file, the offset, what was expected and what was found."""


class Error(Exception):
    """What they all are."""


class InvalidArgumentError(Error, ValueError):
    """The caller asked for something that makes no sense."""


class CorruptError(Error, ValueError):
    """A file's bytes contradict its format."""


class UnsupportedError(Error):
    """Valid, but not something that etstream does."""


class TooLargeError(Error):
    """Over a limit of the format or of the machine."""


class NotFoundError(Error, FileNotFoundError):
    """A file, whose errno is ENOENT or ENOTDIR then, or a name in a file is not there."""


class IoError(Error, OSError):
    """The operating system refused a read or a write; errno says why, where a call of it failed."""


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed."""
