# SPDX-License-Identifier: BSD-3-Clause
"""Makes files part of programs for boards."""

from __future__ import annotations

import os
from collections.abc import Iterable

from etstream import _core
from etstream._arguments import alignment, path, several
from etstream._options import Unpack, keywords_of
from etstream._write import WriteOptions, write


@keywords_of(WriteOptions)
def embed(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    target: str | None = None,
    symbol: str | None = None,
    section: str | None = None,
    align: int | str | None = None,
    **options: Unpack[WriteOptions],
) -> list[_core.FilePlan]:
    """Makes a file part of a program for a board: its bytes become a constant array. Returns the plans of the outputs.

    Args:
        file: the path of a program, a bundle or any other file.
        output: a path or several. The ending of each says what it becomes: NAME.o an object file; NAME.S assembly,
            which names the file; NAME.h a header that declares what either of these has: the array SYMBOL, SYMBOL_end
            and SYMBOL_size, and which comes only with one of them. They appear together, or none does.
        target: the processor that object files are for: "arm" for any Cortex-M, "aarch64", "riscv32", "riscv64" or
            "x86-64".
        symbol: the array's name in C; by default that of the file, model_pte for model.pte.
        section: the section that a linker finds it in; by default ".rodata.SYMBOL".
        align: what the array begins at a multiple of: an int, or a str such as "4K"; by default what the file was
            written for, as "memory_alignment" of inspect() has it.
        options: those of WriteOptions.

    Raises:
        InvalidArgumentError: an output, target, symbol, section or alignment that can't be; the file is empty, or is
            packed where an assembler would read it.
        TooLargeError: an object file for 32 bits would have over 4 GiB.
    """
    given = [output] if isinstance(output, (str, os.PathLike)) else several("output", "paths", output)
    paths = [path("output", one) for one in given]
    with _core.Inputs():
        plans = _core.plan_embedded_file(
            path("file", file), paths, target, symbol, section, None if align is None else alignment("align", align)
        )
        write(list(zip(plans, paths)), options)
    return plans
