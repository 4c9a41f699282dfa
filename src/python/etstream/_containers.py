# SPDX-License-Identifier: BSD-3-Clause
"""Writes files that hold others: fat containers, packages, packed files, and parts of programs for boards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from etstream import _core
from etstream._arguments import alignment, asked, by_name, integer, names, path, several
from etstream._errors import InvalidArgumentError
from etstream._types import FilesLike, OutputLike, SourceLike, StreamLike
from etstream._weights import OneOfWeights, checkpoints_of
from etstream._writing import Progress, Unpack, WriteOptions, keywords_of, write, written


class FatContainerOptions(WriteOptions, total=False):
    """The options of a fat container.

    Keys, besides those of WriteOptions:
        align: the alignment of each payload in the file, in bytes, a power of two up to 2**30: an int, or a str such as
            "16K". With 1, payloads of distinct bytes give the file that ExecuTorch's native backend packs; with a
            page's size, each payload can be mapped.
        dedup: store equal payloads once; to find them, payloads of one size are read.
    """

    align: Annotated[int | str, 1]
    dedup: Annotated[bool, True]


@keywords_of(FatContainerOptions)
def fat(
    payloads: Mapping[str, SourceLike], output: OutputLike | None = None, **options: Unpack[FatContainerOptions]
) -> _core.FilePlan:
    """Writes a fat container (NFAT, version 1). Returns the plan, whose size is that of the file.

    Args:
        payloads: sources by name, in the order in which a reader prefers them. Names have 1 to 32 characters of ASCII.
        output: where the container goes.
        options: those of FatContainerOptions.

    Raises:
        InvalidArgumentError: a name or an alignment is not allowed.
        TooLargeError: there are over 65,536 payloads.
    """
    align = alignment("align", options["align"])
    return written(
        lambda: _core.plan_fat_container(by_name("payloads", payloads), align, options["dedup"]), output, options
    )


class NativePackageOptions(WriteOptions, total=False):
    """The options of a package of ExecuTorch's native backend.

    Keys, besides those of WriteOptions:
        mutable: names of constants that are state, in addition to those that the graph changes.
        align: the alignment of members, and of constants whose size is a multiple of it, in bytes, a power of two up to
            2**15: an int, or a str such as "16K".
        modified: the year, month, day, hour, minute and second that the graph is stamped with; by default those of
            SOURCE_DATE_EPOCH, or the local time, as in ExecuTorch.
    """

    mutable: Annotated[Iterable[str], ()]
    align: Annotated[int | str, 1]
    modified: Annotated[Sequence[int] | None, None]


@keywords_of(NativePackageOptions)
def ptn(
    graph: SourceLike,
    constants: OneOfWeights | tuple[()] = (),
    output: OutputLike | None = None,
    **options: Unpack[NativePackageOptions],
) -> _core.FilePlan:
    """Writes a package (.ptn), byte for byte as ExecuTorch's write_ptn does. Returns the plan, whose size is that of
    the file.

    Args:
        graph: a source with the graph, a flatbuffer with the identifier NPTG.
        constants: at least the constants that the graph asks for: a mapping of names to tensors (torch's on the CPU,
            NumPy's or etstream's, in place where they are contiguous), a Checkpoint, or a path that Checkpoint takes.
        output: where the package goes.
        options: those of NativePackageOptions.

    Reads all bytes of the constants, as their checksum stands before them.

    Raises:
        InvalidArgumentError: the source is no graph, a constant that it asks for is missing, or state shares memory
            with another constant.
        UnsupportedError: a constant has a type that packages do not support.
    """
    keys = names("mutable", options["mutable"])
    constants = {} if isinstance(constants, tuple) else asked(constants)
    with _core.Inputs(constants):
        if isinstance(constants, Mapping):
            _check_apart(constants, {*keys, *_core.mutable_keys_of_graph(graph)})
        plan = _core.plan_native_package(
            graph,
            checkpoints_of([constants])[0],
            keys,
            alignment("align", options["align"]),
            None if options["modified"] is None else list(options["modified"])[:6],
        )
        write([(plan, output)], options)
    return plan


def _check_apart(constants: Mapping[str, Any], mutable: set[str]) -> None:
    """Refuses state whose tensor shares a storage, as write_ptn does; later copies would separate the two."""
    by_storage: dict[tuple[str, int], list[str]] = {}
    for key, value in constants.items():
        storage = getattr(value, "untyped_storage", None)
        if storage is not None and value.numel() != 0:
            by_storage.setdefault((str(value.device), storage().data_ptr()), []).append(key)
    for keys in by_storage.values():
        if len(keys) > 1 and mutable.intersection(keys):
            raise InvalidArgumentError(
                f"constants {', '.join(map(repr, sorted(keys)))} share memory, and one of them is changed: a package "
                "can't say that they are one state; use one name for all"
            )


def pack(
    source: StreamLike,
    output: OutputLike,
    *,
    base: FilesLike | None = None,
    threads: int | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> None:
    """Writes a packed file: the bytes of any file, in less space, of which any part can be read by itself.

    All functions read a packed file as the original, and pack what they write to a path that ends in ".etz".

    Args:
        source: the original, which is read once, from its first byte to its last.
        output: where the packed file goes.
        base: an earlier version of the source, which is then a file; or the path of a checkpoint, or several, that the
            program in it was exported from. Writes an update: what the source has that is not in the base, and
            differences from it.
        threads: how many threads code, each with up to 4 MiB of memory; by default one a processor, but at most 4. The
            packed file does not depend on it.

    progress gets 0 as the total of a descriptor or an object with read().

    Raises:
        InvalidArgumentError: the source is a packed file; or a base is given, and the source is no file.
    """
    with _core.Inputs():
        _core.pack(source, output, base, integer("threads", threads) or 0, sync, progress)


def unpack(
    source: StreamLike,
    output: OutputLike,
    *,
    base: FilesLike | None = None,
    threads: int | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> None:
    """Writes the original of a packed file, bit for bit. All hashes are checked.

    Args:
        source: the packed file, which is read once, from its first byte to its last.
        output: where the original goes. At a path it appears once all is checked.
        base: the file, or the checkpoint, that an update was made from, which is compared with the hashes in the
            update first.
        threads: how many threads decode, each with up to 4 MiB of memory; by default one a processor, but at most 4.

    progress gets 0 as the total of a descriptor or an object with read().

    Raises:
        CorruptError: the packed file is damaged; the message names file and offset.
        UnsupportedError: the source is no packed file.
        InvalidArgumentError: the source is an update and the base is missing or another file, or it is none and has a
            base.
    """
    with _core.Inputs():
        _core.unpack(source, output, base, integer("threads", threads) or 0, sync, progress)


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
