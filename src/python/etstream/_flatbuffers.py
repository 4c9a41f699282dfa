# SPDX-License-Identifier: BSD-3-Clause
"""Flatbuffers of any schema as JSON that loses nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from etstream import _core
from etstream._arguments import size
from etstream._progress import Progress
from etstream._types import OutputLike, SourceLike

Order = Literal["flatc", "python"]


class ExactJson:
    """A schema, for flatbuffers as JSON that loses nothing, and back. May be used by several threads at once.

    Floats come back as they are, NaN and infinities too; bytes are base64, or are left where they lie. flatc's
    JSON, which FlatbufferText reads and writes, rounds numbers.
    """

    def __init__(
        self, schema: str | os.PathLike[str], include_folders: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        """Loads a schema: a .fbs file, which may include others next to it or in include_folders, or a .bfbs file.

        Raises CorruptError with file and line, UnsupportedError, TooLargeError over 16 MiB.
        """
        self._schema = _core.ExactJson(schema, include_folders)
        self._name = os.fspath(schema)

    def __repr__(self) -> str:
        return f"<etstream.ExactJson of {self._name}>"

    def plan(
        self, json: SourceLike, *, folder: str | os.PathLike[str] | None = None, order: Order = "flatc"
    ) -> _core.FilePlan:
        """The plan of the flatbuffer that JSON describes.

        Args:
            json: a source (text is given as bytes). What flatc and ExecuTorch write is taken too.
            folder: that the paths of data in files are relative to; by default that of the JSON file, or the
                current one.
            order: of objects, which the bytes depend on: flatc's, as .ptd files and XNNPACK's graphs have
                it, or that of FlatBuffers' Python objects, as .pte and .bpte files have it.

        Raises:
            InvalidArgumentError: what does not fit the schema, with line and where it is.
            CorruptError: what is not JSON.
            TooLargeError: a flatbuffer of 2 GiB.
        """
        if folder is None:
            folder = os.path.dirname(json) if isinstance(json, (str, os.PathLike)) else ""
        return self._schema.plan(json, folder, order)

    def compile(
        self,
        json: SourceLike,
        output: OutputLike,
        *,
        folder: str | os.PathLike[str] | None = None,
        order: Order = "flatc",
        sync: bool = True,
        progress: Progress | bool | None = None,
    ) -> _core.FilePlan:
        """Writes the flatbuffer that JSON describes: plans it as plan() does, writes it as FilePlan.write() does."""
        with _core.Inputs():
            plan = self.plan(json, folder=folder, order=order)
            plan.write(output, sync=sync, progress=progress)
        return plan

    def decompile(
        self,
        file: SourceLike,
        output: OutputLike,
        *,
        compact: bool = False,
        defaults: bool = False,
        identifier: bool = True,
        size_prefixed: bool = False,
        leave_out_over: int | str | None = None,
        file_name: str | None = None,
        sync: bool = True,
    ) -> None:
        """Writes a flatbuffer as JSON. What is behind it in the file is not looked at.

        Args:
            file: a source.
            output: where the JSON goes; see FilePlan.write().
            compact: without white space.
            defaults: show scalars that have their defaults too.
            identifier: the file has the schema's identifier; False also takes others.
            size_prefixed: the file begins with its size in 4 bytes, as ETDumps do.
            leave_out_over: leave out vectors of more bytes than that, and say where they lie in the file.
            file_name: by which they say it; by default the path of the file, as seen from that of the output.

        Raises:
            CorruptError: with the offset, for what does not fit the schema.
        """
        if file_name is None:
            file_name = _name_from(output, file)
        with _core.Inputs():
            self._schema.decompile(
                file,
                output,
                compact=compact,
                defaults=defaults,
                identifier=identifier,
                size_prefixed=size_prefixed,
                leave_out_over=size("leave_out_over", leave_out_over),
                file_name=file_name,
                sync=sync,
            )


def _name_from(output: OutputLike, file: SourceLike) -> str:
    """What JSON at `output` calls `file`, so that it is found from there; the name of what is no file."""
    if not isinstance(file, (str, os.PathLike)):
        return _core.Source(file).name
    path = os.path.abspath(file)
    if not isinstance(output, (str, os.PathLike)):
        return path
    return os.path.relpath(path, os.path.dirname(os.path.abspath(output)))
