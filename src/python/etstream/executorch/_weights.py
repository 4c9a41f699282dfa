# SPDX-License-Identifier: BSD-3-Clause
"""Joins the weights that a program is loaded with, as ExecuTorch's Python functions take one file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from etstream import _core, plan_tensor_data
from etstream._arguments import asked
from etstream._programs import all_shards, is_path
from etstream._types import SourceLike

WeightsOfProgram = SourceLike | Sequence[str | os.PathLike[str]]


class Weights:
    """The weights of a program: one source, or the files of whole sets."""

    def __init__(self, given: WeightsOfProgram) -> None:
        listed = [asked(one) for one in (given if isinstance(given, (list, tuple)) else [given])]
        self.sources: list[_core.Source] = [_core.Source(one) for one in all_shards(listed, False)]
        self._paths = [one for one in listed if is_path(one)]

    @contextmanager
    def in_one(self) -> Iterator[_core.Source]:
        """Yields all of them as one .ptd file, which may be gone at the end of the block."""
        if len(self.sources) == 1:
            yield self.sources[0]
            return
        with tempfile.TemporaryDirectory(prefix="etstream-weights-") as folder:
            path = os.path.join(folder, "weights.ptd")
            plan_tensor_data(self._paths, allow_opaque=True).write(path, sync=False)
            yield _core.Source(path)
