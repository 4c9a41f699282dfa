# SPDX-License-Identifier: BSD-3-Clause
"""Converts flatbuffers of any schema to JSON and back, without loss."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Literal

from etstream import _core
from etstream._arguments import asked, size
from etstream._types import OutputLike, SourceLike
from etstream._writing import Unpack, WriteOptions, keywords_of, written

Order = Literal["flatc", "python"]


class FlatbufferOptions(WriteOptions, total=False):
    """The options of a flatbuffer that JSON describes.

    Keys, besides those of WriteOptions:
        folder: the folder that paths of data in files are relative to; by default the JSON file's folder, or the
            current one.
        order: the order of objects, on which the bytes depend: "flatc", as in .ptd files and XNNPACK's graphs, or
            "python", the order of FlatBuffers' Python objects, as in .pte and .bpte files.
    """

    folder: Annotated[str | os.PathLike[str] | None, None]
    order: Annotated[Order, "flatc"]


class ExactJson:
    """A schema that converts flatbuffers to JSON and back, without loss. May be used by several threads at once.

    Floats come back as they were, NaN and infinities too; bytes become base64, or stay where they lie. flatc's JSON,
    which FlatbufferText reads and writes, rounds numbers.
    """

    def __init__(self, schema: str | os.PathLike[str], include_folders: Iterable[str | os.PathLike[str]] = ()) -> None:
        """Loads a schema: a .fbs file, which may include others next to it or in include_folders, or a .bfbs file.

        Raises CorruptError with file and line, UnsupportedError, TooLargeError over 16 MiB.
        """
        self._name = asked(schema)
        self._schema = _core.ExactJson(self._name, include_folders)

    def __repr__(self) -> str:
        return f"<etstream.ExactJson of {self._name}>"

    @keywords_of(FlatbufferOptions)
    def compile(
        self, json: SourceLike, output: OutputLike | None = None, **options: Unpack[FlatbufferOptions]
    ) -> _core.FilePlan:
        """Writes the flatbuffer that JSON describes. Returns the plan.

        Args:
            json: a source (pass text as bytes), which flatc or ExecuTorch may have written too.
            output: where the flatbuffer goes.
            options: those of FlatbufferOptions.

        Raises:
            InvalidArgumentError: the JSON does not fit the schema; the message has the line and the place.
            CorruptError: the source is not JSON.
            TooLargeError: the flatbuffer would reach 2 GiB.
        """
        json = asked(json)
        folder = options["folder"]
        if folder is None:
            folder = os.path.dirname(json) if isinstance(json, str) else ""
        return written(lambda: self._schema.plan(json, folder, options["order"]), output, options)

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
        """Writes a flatbuffer as JSON. Warns of bytes behind it in the file, such as segments, which the JSON lacks.

        Args:
            file: a source.
            output: where the JSON goes.
            compact: write no white space.
            defaults: also show scalars that have their default values.
            identifier: expect the schema's identifier in the file; False also takes others.
            size_prefixed: the file begins with its size in 4 bytes, as ETDumps do.
            leave_out_over: leave out vectors of more than this many bytes, and say where they lie in the file.
            file_name: the name of the file that holds these vectors; by default its path, as seen from the output's.

        Raises:
            CorruptError: the file does not fit the schema; the message has the offset.
        """
        file, output = asked(file), asked(output)
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
    """Returns the path by which JSON at `output` refers to `file`; for a source that is no file, its name."""
    if not isinstance(file, str):
        return _core.Source(file).name
    path = os.path.abspath(file)
    if not isinstance(output, str):
        return path
    return os.path.relpath(path, os.path.dirname(os.path.abspath(output)))
