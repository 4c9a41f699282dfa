# SPDX-License-Identifier: BSD-3-Clause
"""Takes programs (.pte) apart, and writes them again."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from etstream import _core
from etstream._arguments import are_several, asked, by_name, is_path, names, names_by_name, size
from etstream._errors import InvalidArgumentError
from etstream._package import installed_flatbuffers
from etstream._types import OutputLike, SourceLike
from etstream._writing import Unpack, WriteOptions, keywords_of, write, written
from etstream.results import ProgramPlan, Table

MetadataValue = str | bytes | int | float | Sequence[int]


class ProgramOptions(WriteOptions, total=False):
    """The options of a program. One that is not given leaves the program as it is; for JSON it means ExecuTorch's
    default. Alignments are powers of two, in bytes: an int, or a str such as "4K".

    Keys, besides those of WriteOptions:
        segment_alignment: the alignment of each segment, up to 2**30.
        constant_tensor_alignment: the alignment of each constant tensor in its segment, up to 65536.
        delegate_alignment: the alignment of a delegate's data in the flatbuffer, up to 65536.
        delegates: where the data of delegates goes: "inline", in the flatbuffer, which ends at 2 GiB, or "segments".
        strict_alignment: keep constant_tensor_alignment and delegate_alignment in segments too, where ExecuTorch
            ignores them.
        as_of: the release of ExecuTorch, "1.0" or later, whose bytes the program gets.
        flatbuffers: the version of the Python package flatbuffers whose bytes the program gets; for JSON by default the
            installed version.
        drop_method: the name of a method to leave out, with the data that only it uses; or several.
        strip_stack_traces: leave out the places in the model's source that instructions come from.
        keys: the keys of moved constants, by a constant's SHA-256, in hexadecimal, or its number, in decimal. Other
            constants get their tensors' fully qualified names, or their SHA-256, as keys.
        constants_from: sources of .ptd files from which constants and named data are moved in. The path of the first of
            several shards stands for all; any other shard without the rest is refused.
        partial: take shards of constants_from without the rest.
        folder: the folder that paths in JSON are relative to; by default the JSON file's folder, or the current one.
        schema: the path of a schema of programs (.fbs), if it has more than that of ExecuTorch 1.5.1.
        segments_from: a source: the .pte file that gives its data to segments without data in the JSON.
        metadata: what the program says of its model, as named data under "metadata." and the key: text, bytes, floats,
            64-bit integers and lists of them. ProgramFile.metadata gives the bytes.
        split_max_size: where constants are moved out, write several files of tensor data, each with at most this many
            bytes of data, in the order of keys; see ptd_shards().
    """

    segment_alignment: Annotated[int | str | None, None]
    constant_tensor_alignment: Annotated[int | str | None, None]
    delegate_alignment: Annotated[int | str | None, None]
    delegates: Annotated[Literal["inline", "segments"] | None, None]
    strict_alignment: Annotated[bool, False]
    as_of: Annotated[str | None, None]
    flatbuffers: Annotated[str | None, None]
    drop_method: Annotated[str | Iterable[str], ()]
    strip_stack_traces: Annotated[bool, False]
    keys: Annotated[Mapping[str, str] | None, None]
    constants_from: Annotated[Iterable[SourceLike], ()]
    partial: Annotated[bool, False]
    folder: Annotated[str | os.PathLike[str] | None, None]
    schema: Annotated[str | os.PathLike[str] | None, None]
    segments_from: Annotated[SourceLike | None, None]
    metadata: Annotated[Mapping[str, MetadataValue] | None, None]
    split_max_size: Annotated[int | str | None, None]


@keywords_of(ProgramOptions)
def pte(
    program: SourceLike,
    output: OutputLike | None = None,
    *,
    constants_to: OutputLike | None = None,
    **options: Unpack[ProgramOptions],
) -> ProgramPlan:
    """Writes a program (.pte) from another one, or from a description of it in JSON. Returns the plan.

    Without options the bytes stay the same, but for constants in the flatbuffer: they move into a segment, where
    ExecuTorch 1.3 and later need them, unless as_of is earlier.

    Args:
        program: a source: a .pte file, or JSON of ExecuTorch's schema, as etstream's and flatc's decompile
            and ExecuTorch itself write it.
        output: where the program goes: its own path is allowed, another input's is not.
        constants_to: an output too: the .ptd file that constants and named data are moved out to. It appears before the
            program does; if one of the two can't be written, neither appears. With split_max_size it is the path that
            shards are named after: NAME-00001-of-00003.ptd.
        options: those of ProgramOptions.

    Raises:
        CorruptError: the program or the weights are damaged; the description is not JSON.
        InvalidArgumentError: an alignment is not allowed; the JSON does not fit the schema (the message has its line);
            all methods are dropped; two constants have one key; constants are moved both ways; a version is not known;
            the release of as_of has no field for a value.
        NoSuchNameError: the program does not have a method, or a constant of `keys`.
        NoSuchFileError: a file is not there.
        TooLargeError: the flatbuffer would be over 2 GiB.
    """
    program = asked(program)
    with _core.Inputs(program):
        plan = planned_program(program, options, constants_to is not None)
        files: list[tuple[_core.FilePlan, OutputLike | None]] = [(plan.program, output)]
        if plan.shards:
            files[:0] = shard_outputs(plan.shards, constants_to)
        elif plan.tensor_data is not None:
            files.insert(0, (plan.tensor_data, constants_to))
        write(files, options)
    return plan


def planned_program(program: SourceLike, options: ProgramOptions, constants_out: bool = False) -> ProgramPlan:
    """Returns the plan of a program, for all options."""
    if options["keys"] and not constants_out:
        raise InvalidArgumentError("keys are those of constants that are moved out: give constants_to too")
    program, dropped = asked(program), options["drop_method"]
    folder = options["folder"]
    if folder is None:
        folder = os.path.dirname(program) if isinstance(program, str) else ""
    whole, *weights = _core.plan_program(
        program,
        options,
        drop_methods=[dropped] if isinstance(dropped, str) else names("drop_method", dropped),
        strip_stack_traces=options["strip_stack_traces"],
        constants_out=constants_out,
        keys=names_by_name("keys", options["keys"] or {}),
        constants_from=all_shards(sources_of(options["constants_from"]), options["partial"]),
        folder=folder,
        schema=options["schema"],
        segments_from=options["segments_from"],
        described_flatbuffers=installed_flatbuffers(),
        metadata={key: _encoded(value) for key, value in by_name("metadata", options["metadata"] or {})},
        split_max_size=size("split_max_size", options["split_max_size"]),
    )
    if options["split_max_size"] is not None:
        return ProgramPlan(program=whole, shards=Table(weights))
    return ProgramPlan(program=whole, tensor_data=weights[0] if weights else None)


@keywords_of(WriteOptions)
def extract(
    file: SourceLike, piece: str, output: OutputLike | None = None, **options: Unpack[WriteOptions]
) -> _core.FilePlan:
    """Writes a piece of a file, by its path in inspect(): "program", "segments/0", "forward/delegate 0/weight_data",
    "named/lm_head.weight", "cases/forward/0/input 0"...

    Args:
        file: a source: a file of any kind; the path of an index, or of a checkpoint's folder, stands for its files.
        piece: the path of the piece. What is no letter in a name from the file is %XX there: '%', '#', control
            characters, bytes that are not UTF-8, and '/' unless the name is the end of the path.
        output: where the piece goes.
        options: those of WriteOptions.

    Returns the plan, whose size is that of the piece. BundledProgramFile.write_test_cases() writes test cases.

    Raises:
        NoSuchNameError: there is no such piece; the message says what is near.
        CorruptError: the file is damaged.
        InvalidArgumentError: several files of a set have the piece.
    """
    file = asked(file)
    return written(lambda: _core.FilePlan.copy(_core.find_piece(file, piece)), output, options)


def sources_of(given: Any) -> list[Any]:
    """Returns a list of the given sources; a single source becomes a list of one."""
    return list(given) if are_several(given) else [given]


def files_of(given: Iterable[Any]) -> list[Any]:
    """Returns the sources of files in their order, where each list with a path in it stands for several files. Another
    list is the parts of one file."""
    out: list[Any] = []
    for one in given:
        out += one if isinstance(one, (list, tuple)) and any(map(is_path, one)) else [one]
    return out


def all_shards(given: Iterable[Any], partial: bool) -> list[Any]:
    """Returns files_of() `given`, with each path of a set replaced by the paths of all its files, unless `partial`.
    Paths of one set follow one another."""
    files_given = files_of(given)
    if partial:
        return files_given
    out: list[Any] = []
    for are_paths, run in itertools.groupby(files_given, is_path):
        files = list(run)
        out += _core.whole_sets(files, False) if are_paths else files
    return out


def shard_outputs(plans: Sequence[_core.FilePlan], output: Any) -> list[tuple[_core.FilePlan, OutputLike | None]]:
    """Returns the plans of shards with their paths, which are named after `output`."""
    if not isinstance(output, (str, os.PathLike)):
        raise TypeError(f"shards are several files: expected a path that they are named after, found {output!r}")
    path = os.fspath(output)
    return [(plan, _core.shard_path(path, i + 1, len(plans))) for i, plan in enumerate(plans)]


def _encoded(value: MetadataValue) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    try:
        if isinstance(value, float):
            return struct.pack("<d", value)
        return struct.pack("<q", value) if isinstance(value, int) else struct.pack(f"<{len(value)}q", *value)
    except (struct.error, TypeError) as error:
        raise TypeError(f"metadata: {value!r}: {error}") from error
