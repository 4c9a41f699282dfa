# SPDX-License-Identifier: BSD-3-Clause
"""Joins the weights that a program is loaded with, as ExecuTorch's Python functions take one file."""

from __future__ import annotations

import os
from collections.abc import Sequence

from etstream import _core, ptd
from etstream._arguments import asked, is_path
from etstream._programs import all_shards, files_of
from etstream._types import SourceLike

WeightsOfProgram = SourceLike | Sequence[str | os.PathLike[str]]


class Weights:
    """The weights of a program: one source, or the files of whole sets."""

    def __init__(self, given: WeightsOfProgram) -> None:
        listed = [asked(one) for one in files_of([given])]
        self.sources: list[_core.Source] = [_core.Source(one) for one in all_shards(listed, False)]
        self._paths = [one for one in listed if is_path(one)]
        if self._paths and len(self._paths) < len(listed):
            raise TypeError("weights: expected a source, or a list of paths, found a list of both")

    def in_one_file(self) -> _core.LoadableFile:
        """Returns all of them as one .ptd file."""
        if len(self.sources) == 1:
            return _core.LoadableFile(self.sources[0])
        return _core.LoadableFile(ptd(self._paths, opaque=True, dry_run=True).source())
