# SPDX-License-Identifier: BSD-3-Clause
"""Writes, reads and checks ExecuTorch's files with memory that does not grow with them.

A *source* is where bytes lie: a path, a buffer (bytes, memoryview, mmap, a NumPy array, a torch tensor on the
CPU of any dtype; never copied), a readable and seekable binary file, a Source, or a list of such. An *output* is a
path, an open descriptor, or an object with write(); see Layout.write(). Functions may be called from several
threads at once.
"""

from __future__ import annotations

from etstream._bundles import bundle, convert, plan_bundle
from etstream._core import (
    BundledProgramFile,
    Findings,
    Layout,
    Source,
    Tensor,
    TestCase,
    TestSuite,
    __version__,
    read_test_cases,
)
from etstream._errors import (
    CorruptError,
    Error,
    InvalidArgumentError,
    IoError,
    NotFoundError,
    OutOfMemoryError,
    TooLargeError,
    UnsupportedError,
)
from etstream._reports import verify

__all__ = [
    "BundledProgramFile",
    "CorruptError",
    "Error",
    "Findings",
    "InvalidArgumentError",
    "IoError",
    "Layout",
    "NotFoundError",
    "OutOfMemoryError",
    "Source",
    "Tensor",
    "TestCase",
    "TestSuite",
    "TooLargeError",
    "UnsupportedError",
    "__version__",
    "bundle",
    "convert",
    "plan_bundle",
    "read_test_cases",
    "verify",
]
