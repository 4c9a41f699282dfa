# SPDX-License-Identifier: BSD-3-Clause
"""Reports what files consist of, how they differ, and whether they are sound."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Literal, overload

from etstream import _core
from etstream._arguments import UINT64, asked, integer, is_path, names_by_name, size
from etstream._errors import InvalidArgumentError
from etstream._programs import all_shards, files_of
from etstream._types import FilesLike, OutputLike, SourceLike
from etstream.results import Differences, FileFindings, Graph, Inspection, MemoryBudget, OutputFindings


def verify(
    file: SourceLike,
    *weights: FilesLike,
    partial: bool = False,
    run: bool = False,
    python: str | None = None,
    seed: int = 0,
    run_seconds: int = 60,
    run_memory: int | str = "4G",
    atol: float | None = None,
    rtol: float | None = None,
) -> FileFindings:
    """Checks whether a file is sound, and fits the .ptd files that it is to run with.

    Args:
        file: a source: a .pte, .ptd, .bpte, safetensors or GGUF file. The path of an index, of a folder with a
            checkpoint or of a file of a set stands for the whole set: a missing file is an error.
        weights: sources: .ptd files, for a .pte or .bpte. The path of the first of several shards stands for all, and
            a list of paths for each of them.
        partial: check each file by itself, even if it belongs to a set.
        run: also run each method of a .pte or .bpte that has no error, on the test cases of the bundle, or on zeros,
            ones and random numbers. Each run has a process of its own. The findings' `runs` say how it ended, and the
            errors say so if it did not end well.
        python: the path of the Python that has ExecuTorch; by default the running one.
        seed: the seed of random inputs.
        run_seconds, run_memory: the most seconds of a run, and the most memory that it may take besides that of
            ExecuTorch when it is loaded.
        atol, rtol: accept outputs that differ by at most atol + rtol * the expected value, and integers that differ by
            at most atol. The defaults are those of torch.testing for the dtype, and integers have to be equal.

    Returns:
        At most 100 errors and 100 warnings of each file; true if there is no error.

    Raises:
        UnsupportedError: the file is of another kind; or it was to be run, and Python has no ExecuTorch.
    """
    runs = None
    if run:
        runs = _core.run_options(
            python or sys.executable or "python3",
            integer("seed", seed, UINT64),
            integer("run_seconds", run_seconds),
            size("run_memory", run_memory),
            atol,
            rtol,
        )
    files = files_of(weights)
    if is_path(file) and all(map(is_path, files)):
        return FileFindings._of(_core.verify_paths(file, files, partial, runs))
    return FileFindings._of(_core.verify(file, all_shards(files, partial), runs))


def compare_outputs(
    bundle: SourceLike,
    outputs: str | os.PathLike[str],
    *,
    method: str | None = None,
    case: int | None = None,
    atol: float | None = None,
    rtol: float | None = None,
) -> OutputFindings:
    """Compares outputs that a device has written to files with those that the test cases of a bundle expect.

    Args:
        bundle: a source: a .bpte of either format.
        outputs: the folder of the files, one for each output, with the names that `etstream compare` takes.
        method: compare only the test cases of this method.
        case: compare only this test case, counted from 0 over all suites of its method.
        atol, rtol: as in verify().

    Returns:
        Findings whose `runs` have the comparisons, one for each test case; true if all outputs are as expected, and
        each file fits one.

    Raises:
        NotFoundError: there is no such method, case or folder, or no file is an output.
        InvalidArgumentError: a file may be of several cases, or the cases expect no tensors.
    """
    number = None if case is None else integer("case", case, UINT64)
    return OutputFindings._of(_core.compare_outputs(bundle, outputs, method, number, atol, rtol))


def _key_names(names: SourceLike | Mapping[str, str] | None) -> dict[str, str]:
    if names is None:
        return {}
    return names_by_name("names", names) if isinstance(names, Mapping) else _core.read_key_names(names)


def inspect(
    file: SourceLike,
    *,
    duplicates: bool = False,
    html: OutputLike | None = None,
    names: SourceLike | Mapping[str, str] | None = None,
) -> Inspection:
    """Returns what a file consists of, as `etstream inspect --json` reports it.

    Args:
        file: a source: a .pte, .ptd, .bpte, safetensors or GGUF file; the path of an index, or of a folder with a
            checkpoint, stands for its files.
        duplicates: also find data that is in the file twice; to find it, data of one size is read.
        html: where to write a page with a map of the file too, as `etstream inspect --html` does: a path, a descriptor
            or an object with write().
        names: the names that keys of named data stand for: a mapping by key, or a source of JSON as etstream.executorch
            writes it; by default MODEL.names.json beside MODEL.pte.

    Returns:
        The file's `parts`, in its order; the `methods` with their inputs and outputs; `suites` of test cases. Of a
        file with a program also `program`, a summary, and `payloads`, the data of delegates. Of a file with weights,
        and of a program, `named_data`; in a program `asked_by` says who asks for it. `duplicates` if asked for. Of
        several files `files`; `notes` tell of the set that a file belongs to. See etstream.results.Inspection.

    Raises:
        UnsupportedError: the file is of another kind.
        CorruptError: the file is damaged.
    """
    file = asked(file)
    with _core.Inputs():
        known = _key_names(names)
        report = Inspection._of(_core.inspect(file, duplicates, known))
        if html is not None:
            _core.inspect_page(file, known).write(html)
    return report


@overload
def graph(file: SourceLike, method: str = "forward", *, format: Literal["json"] = "json") -> Graph: ...
@overload
def graph(file: SourceLike, method: str = "forward", *, format: Literal["dot"]) -> str: ...
def graph(file: SourceLike, method: str = "forward", *, format: Literal["json", "dot"] = "json") -> Graph | str:
    """Returns a method of a program as a graph of values and calls, as `etstream inspect --graph` reports it.

    Args:
        file: a source: a .pte or a .bpte file.
        method: the method's name.
        format: "json" for a Graph, whose `inputs`, `outputs`, `memory_sizes`, `operators`, `delegates`, `values` and
            `calls` name each other by their places in these lists; "dot" for the text that Graphviz draws.

    Raises:
        NoSuchNameError: the program has no such method.
        CorruptError: the file is damaged.
        InvalidArgumentError: there is no such format.
    """
    if format not in ("json", "dot"):
        raise InvalidArgumentError(f"format: expected 'json' or 'dot', found {format!r}")
    return Graph._of(_core.graph(file, method)) if format == "json" else _core.graph_dot(file, method)


@overload
def memory_budget(file: SourceLike, *, format: Literal["json"] = "json") -> MemoryBudget: ...
@overload
def memory_budget(file: SourceLike, *, format: Literal["c"]) -> str: ...
def memory_budget(file: SourceLike, *, format: Literal["json", "c"] = "json") -> MemoryBudget | str:
    """Returns the memory that ExecuTorch's runtime asks for to load and run a program, as `etstream inspect --budget`
    reports it.

    Args:
        file: a source: a .pte or a .bpte file.
        format: "json" for a MemoryBudget; "c" for the text of definitions in C.

    Raises:
        UnsupportedError: the file is of another kind.
        CorruptError: the file is damaged.
        TooLargeError: a sum is over 2**64 - 1 bytes.
        InvalidArgumentError: there is no such format.
    """
    if format not in ("json", "c"):
        raise InvalidArgumentError(f"format: expected 'json' or 'c', found {format!r}")
    return MemoryBudget._of(_core.memory_budget(file)) if format == "json" else _core.memory_budget_c(file)


def diff(
    a: SourceLike,
    b: SourceLike,
    *,
    ignore_layout: bool = False,
    partial: bool = False,
    atol: float | None = None,
    rtol: float | None = None,
    names: SourceLike | Mapping[str, str] | None = None,
) -> Differences:
    """Returns the differences between two files of one kind, as `etstream diff --json` reports them.

    Args:
        a, b: sources: two .pte, two .bpte files of either format, or two files of weights of any formats; or paths of
            weights, of which at least one is an index, a folder or the first file of a set.
        ignore_layout: omit differences in where things lie in the files.
        partial: compare a file of a set by itself.
        atol, rtol: count elements of weights as equal if they differ by at most atol + rtol * the element of `a`, and
            integers, such as quantized weights, if they differ by at most atol.
        names: the names that keys of named data stand for, in both files: a mapping by key, or a source of JSON; by
            default MODEL.names.json beside each MODEL.pte.

    Returns:
        Whether the files have `same_bytes` and `same_content`, and at most 1000 `differences`, each with its `kind`
        ("content", "layout", or "tolerated" for elements within the tolerance), its `subject`, and what `a` and `b`
        have of it. See etstream.results.Difference.

    Raises:
        InvalidArgumentError: the files are of two kinds; atol or rtol is negative.
        CorruptError: a file is damaged.
    """
    return Differences._of(_core.diff(a, b, ignore_layout, partial, atol, rtol, _key_names(names)))
