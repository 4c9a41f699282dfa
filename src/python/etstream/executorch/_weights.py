# SPDX-License-Identifier: BSD-3-Clause
"""Joins the weights that a program is loaded with, as ExecuTorch's Python functions take one file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from etstream import _core, plan_tensor_data
from etstream._arguments import asked, is_path
from etstream._buffers import mapped
from etstream._errors import UnsupportedError
from etstream._programs import all_shards, files_of
from etstream._types import SourceLike

WeightsOfProgram = SourceLike | Sequence[str | os.PathLike[str]]


class WeightsFile(NamedTuple):
    """The weights of a program in one file."""

    path: str
    sources: list[_core.Source]
    """Sources of the same weights, of which nothing has to be decoded."""


class Weights:
    """The weights of a program: one source, or the files of whole sets."""

    def __init__(self, given: WeightsOfProgram) -> None:
        listed = [asked(one) for one in files_of([given])]
        self.sources: list[_core.Source] = [_core.Source(one) for one in all_shards(listed, False)]
        self._paths = [one for one in listed if is_path(one)]
        if self._paths and len(self._paths) < len(listed):
            raise TypeError("weights: expected a source, or a list of paths, found a list of both")

    @contextmanager
    def in_one(self) -> Iterator[_core.Source]:
        """Yields all of them as one .ptd file, which may be gone at the end of the block."""
        if len(self.sources) == 1:
            yield self.sources[0]
            return
        with _temporary_file(plan_tensor_data(self._paths, allow_opaque=True)) as path:
            yield _core.Source(path)

    @contextmanager
    def in_one_file(self) -> Iterator[WeightsFile]:
        """Yields all of them as one .ptd file that has a path, which may be gone at the end of the block."""
        with self.in_one() as one:
            if len(self.sources) > 1 or (self._paths and _lies_in_a_file(one)):
                yield WeightsFile(one.name, self.sources)
                return
            with _temporary_file(_core.FilePlan.copy(one)) as path:
                yield WeightsFile(path, [_core.named_source(mapped(_core.Source(path)), one.name)])


@contextmanager
def _temporary_file(plan: _core.FilePlan) -> Iterator[str]:
    """Yields the path of a file that is gone at the end of the block; a mapping of it stays."""
    with tempfile.TemporaryDirectory(prefix="etstream-weights-") as folder:
        path = os.path.join(folder, "weights.ptd")
        plan.write(path, sync=False)
        yield path


def _lies_in_a_file(source: _core.Source) -> bool:
    try:
        mapped(source)
    except UnsupportedError:
        return False
    return True
