# SPDX-License-Identifier: BSD-3-Clause
"""Writes, reads and checks ExecuTorch's files with memory that does not grow with them.

The help() of a function names the forms that its arguments take: sources (SourceLike), outputs (OutputLike), and
options, such as ProgramOptions. Options are keywords, which a dict keeps, with all types checked:

    options = etstream.ProgramOptions(segment_alignment="4K", as_of="1.4")
    etstream.pte("a.pte", "b.pte", **options)
    etstream.pte("c.pte", "d.pte", **options | {"as_of": "1.5"})

Functions may be called from several threads at once.
"""

from __future__ import annotations

import sys as _sys
from collections.abc import Mapping as _Mapping

from etstream import results as results
from etstream._arrays import Tolerance, compare
from etstream._bundles import BundleOptions, ConvertOptions, TestCases, bundle, convert, read_test_cases
from etstream._containers import FatContainerOptions, NativePackageOptions, embed, fat, pack, ptn, unpack
from etstream._core import (
    BundledProgramFile,
    Checkpoint,
    CheckpointTensor,
    FatContainerFile,
    FilePlan,
    FlatbufferText,
    NativePackageFile,
    ProgramFile,
    Source,
    Tensor,
    TestCase,
    TestSuite,
)
from etstream._core import version as __version__
from etstream._errors import (
    CorruptError,
    Error,
    ExecutionError,
    InvalidArgumentError,
    IoError,
    NoSuchFileError,
    NoSuchNameError,
    NotFoundError,
    OutOfMemoryError,
    TooLargeError,
    UnsupportedError,
)
from etstream._flatbuffers import ExactJson, FlatbufferOptions
from etstream._package import RulesWarning
from etstream._package import present as _present
from etstream._program_weights import SharingOptions, explain, reweight, share
from etstream._programs import ProgramOptions, extract, pte
from etstream._reports import compare_outputs, diff, graph, inspect, memory_budget, verify
from etstream._types import OutputLike, SourceLike, StreamLike, TensorLike
from etstream._weights import TensorDataOptions, load_ptd, ptd, ptd_shards, save_ptd
from etstream._writing import WriteOptions

__all__ = [
    "BundleOptions", "BundledProgramFile", "Checkpoint", "CheckpointTensor", "ConvertOptions", "CorruptError", "Error",
    "ExactJson", "ExecutionError", "FatContainerFile", "FatContainerOptions", "FilePlan", "FlatbufferOptions",
    "FlatbufferText", "InvalidArgumentError", "IoError", "NativePackageFile", "NativePackageOptions",
    "NoSuchFileError", "NoSuchNameError", "NotFoundError", "OutOfMemoryError", "OutputLike", "ProgramFile",
    "ProgramOptions", "RulesWarning", "SharingOptions", "Source", "SourceLike", "StreamLike", "Tensor",
    "TensorDataOptions", "TensorLike", "TestCase", "TestCases", "TestSuite", "Tolerance", "TooLargeError",
    "UnsupportedError", "WriteOptions", "__version__", "bundle", "compare", "compare_outputs", "convert", "diff",
    "embed", "explain", "extract", "fat", "graph", "inspect", "load_ptd", "memory_budget", "pack", "ptd", "ptd_shards",
    "pte", "ptn", "read_test_cases", "results", "reweight", "save_ptd", "share", "unpack", "verify",
]

# These classes have __getitem__, __len__ and __iter__; the other methods of a Mapping follow from these.
for _kind in (Checkpoint, FatContainerFile):
    _Mapping.register(_kind)
    for _name in ("__contains__", "get", "items", "keys", "values"):
        setattr(_kind, _name, getattr(_Mapping, _name))
del _kind, _name

_present(_sys.modules[__name__])
del annotations
