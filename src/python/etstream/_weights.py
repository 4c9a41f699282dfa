# SPDX-License-Identifier: BSD-3-Clause
"""Converts checkpoints to tensor data (.ptd), and tensor data to checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, overload

from etstream import _core
from etstream._arguments import are_several, asked, by_name, dtype_name, integer, is_path, names, size
from etstream._errors import InvalidArgumentError
from etstream._package import RulesWarning, warn
from etstream._programs import shard_outputs
from etstream._types import DtypeLike, OutputLike, TensorLike
from etstream._writing import Unpack, WriteOptions, keywords_of, write

if TYPE_CHECKING:
    import torch

WeightFormat = Literal["ptd", "safetensors", "pth"]
_FORMATS: dict[str, WeightFormat] = {"safetensors": "safetensors", "torch": "pth"}
"""The formats by what kind_of_ending() says."""
Rules = str | os.PathLike[str] | Mapping[str, Any]
OneOfWeights = str | os.PathLike[str] | _core.Checkpoint | Mapping[str, TensorLike]
WeightsLike = OneOfWeights | Sequence[OneOfWeights]


class TensorDataOptions(WriteOptions, total=False):
    """The options of weights.

    Keys, besides those of WriteOptions:
        map: the rules that rename, cut and leave out tensors: the name of ready-made ones, such as "llama", from
            Hugging Face's names to those of ExecuTorch's Transformer; the path of a JSON file; or the content of one. A
            RulesWarning tells of rules that no tensor matches, and of tensors without a rule. Ready-made rules are
            refused if config.json beside the checkpoint has a model_type that they are not for.
        head_dim: the number of rows of a query or key projection that make up a head, if rules ask for it; by default
            config.json beside the checkpoint has it.
        only: patterns, with * and ?, of the new names of tensors to take.
        dtype: the type that floating-point tensors are converted to while they are written: torch.bfloat16,
            numpy.float16, or a name such as "bfloat16" or "bf16"; or types by patterns of names, of which the last that
            matches counts. The results have the same bits as torch's.
        dedup: store equal bytes once; to find them, tensors of one size are read.
        opaque: take tensors of types that ExecuTorch does not have, such as quantised blocks, as data without a layout,
            which a backend asks for by name.
        segment_alignment: the alignment of each tensor, in bytes, a power of two up to 2**30: an int, or a str such as
            "4K"; 128 by default.
        as_of: the release of ExecuTorch, "1.0" or later, whose bytes the file gets; "1.0" aligned to 16.
        partial: take each file of a set by itself, and only those files of an index that are there; see Checkpoint.
    """

    map: Annotated[Rules | None, None]
    head_dim: Annotated[int | None, None]
    only: Annotated[str | Iterable[str], ()]
    dtype: Annotated[DtypeLike | Mapping[str, DtypeLike] | None, None]
    dedup: Annotated[bool, True]
    opaque: Annotated[bool, False]
    segment_alignment: Annotated[int | str | None, None]
    as_of: Annotated[str | None, None]
    partial: Annotated[bool, False]


@keywords_of(TensorDataOptions)
def ptd(
    inputs: WeightsLike,
    output: OutputLike | None = None,
    *,
    to: WeightFormat | None = None,
    **options: Unpack[TensorDataOptions],
) -> _core.FilePlan:
    """Writes weights: tensor data (.ptd) that programs ask for, or a safetensors file. Returns the plan, whose size is
    that of the file.

    Args:
        inputs: where the tensors come from: a path, of a safetensors file, the index of several
            (model.safetensors.index.json), a GGUF file, a program (.pte), tensor data (.ptd), a package (.ptn) or a
            folder with such files; a Checkpoint; a mapping of names to tensors (torch's on the CPU, NumPy's or
            etstream's, such as a state_dict, in place where they are contiguous); or a list of these, in which tensors
            of one name must be equal.
        output: where the weights go.
        to: "ptd"; "safetensors", byte for byte as the safetensors library writes it; or "pth" for torch.load(), with
            params.json beside it for export_llama if config.json beside the input has the shape of a Llama. By default
            what the ending of the output says, and otherwise "ptd".
        options: those of TensorDataOptions.

    Raises:
        UnsupportedError: a file is of another kind; the format does not have a tensor's type; numbers are quantised,
            and would be without their scales.
        CorruptError: a file is damaged.
        InvalidArgumentError: two tensors of one name differ; a dtype is not floating-point; rules can't be followed;
            the output has the ending of another format.
        NoSuchFileError: a file is not there.
        NoSuchNameError: a pattern matches no tensor; there are no such ready-made rules.
        TypeError: a tensor, which the message names, is quantized, or is made of others as torchao's are, or has no
            data.
    """
    inputs, output = asked(inputs), asked(output)
    if to is None:
        said = _core.kind_of_ending(output) if isinstance(output, str) else None
        to = _FORMATS.get(said or "", "ptd")
    if to not in get_args(WeightFormat):
        raise InvalidArgumentError(f"to: expected 'ptd', 'safetensors' or 'pth', found {to!r}")
    with _core.Inputs(inputs):
        checkpoint = _changed(inputs, options)
        (plan,) = _core.plan_checkpoint(checkpoint, to, options, None)
        files: list[tuple[_core.FilePlan, OutputLike | None]] = [(plan, output)]
        if to == "pth" and isinstance(output, str):
            files += _parameters(checkpoint, output)
        write(files, options)
    return plan


@keywords_of(TensorDataOptions)
def ptd_shards(
    inputs: WeightsLike,
    output: str | os.PathLike[str],
    *,
    split_max_size: int | str,
    **options: Unpack[TensorDataOptions],
) -> list[str]:
    """Writes tensor data as several files (shards), as ptd() writes one. Either all of them appear, or none does.

    Data goes, in the order of its keys, into the first file that has room; all keys of the same bytes go together, and
    no tensor is cut. The same weights give the same files, those of ExecuTorch's externalize_pte_data.

    Args:
        inputs: where the tensors come from; see ptd().
        output: the path that the files are named after: "w.ptd" gives "w-00001-of-00003.ptd".
        split_max_size: the most bytes of data in each file, an int or a str such as "2G".
        options: those of TensorDataOptions.

    Returns the paths.

    Raises:
        InvalidArgumentError: a tensor is larger than split_max_size.
    """
    with _core.Inputs():
        most = size("split_max_size", split_max_size)
        plans = _core.plan_checkpoint(_changed(inputs, options), "ptd", options, most)
        files = shard_outputs(plans, output)
        write(files, options)
    return [str(path) for _, path in files]


@keywords_of(WriteOptions)
def save_ptd(
    tensors: Mapping[str, TensorLike], output: OutputLike | None = None, **options: Unpack[WriteOptions]
) -> _core.FilePlan:
    """Writes tensors by name, such as a state_dict, to a .ptd file, as ptd() does by default. Returns the plan, whose
    size is that of the file.

    Args:
        tensors: the tensors, as ptd() takes them.
        output: where the file goes.
        options: those of WriteOptions.
    """
    return ptd(tensors, output, to="ptd", **options)


def _changed(inputs: WeightsLike, options: TensorDataOptions) -> _core.Checkpoint:
    """Returns all tensors of the inputs, under their new names and types."""
    rules, only, dtype = options["map"], options["only"], options["dtype"]
    if dtype is None:
        dtype = {}
    by_glob = by_name("dtype", dtype) if isinstance(dtype, Mapping) else [("*", dtype)]
    dtypes = [(glob, dtype_name("dtype", one)) for glob, one in by_glob]
    checkpoint, report = _core.changed_checkpoint(
        checkpoints_of(inputs, options["partial"]),
        json.dumps(rules).encode() if isinstance(rules, Mapping) else rules,
        integer("head_dim", options["head_dim"]),
        names("only", [only] if isinstance(only, str) else only),
        dtypes,
    )
    if report is not None:
        _warn("rule", report.unmatched_rules, "no tensor to apply to")
        _warn("tensor", report.left_over_keys, "no rule applies, the name stays")
    return checkpoint


@overload
def load_ptd(
    path: str | os.PathLike[str], *, framework: Literal["torch"] = "torch", partial: bool = False
) -> dict[str, torch.Tensor]: ...
@overload
def load_ptd(path: str | os.PathLike[str], *, framework: Literal["numpy"], partial: bool = False) -> dict[str, Any]: ...
def load_ptd(
    path: str | os.PathLike[str], *, framework: Literal["torch", "numpy"] = "torch", partial: bool = False
) -> dict[str, Any]:
    """Returns the tensors of a .ptd file by name, where they lie: the file is mapped, see Tensor.torch().

    Args:
        path: the path of a .ptd file, of the first of several shards, or of any other file that Checkpoint takes.
        framework: the library whose tensors are returned: torch or NumPy.
        partial: take a shard without the rest; see Checkpoint.

    Raises:
        ImportError: the framework is not installed.
        InvalidArgumentError: the framework is neither of them.
        UnsupportedError: a tensor has a type that the framework lacks, or data is no tensor. A Checkpoint has the bytes
            of these too.
        NoSuchFileError, CorruptError: see Checkpoint.
    """
    if framework not in ("torch", "numpy"):
        raise InvalidArgumentError(f"framework: expected 'torch' or 'numpy', found {framework!r}")
    return {one.name: getattr(one, framework)() for one in _core.Checkpoint(path, partial).tensors}


def _parameters(checkpoint: _core.Checkpoint, output: str) -> list[tuple[_core.FilePlan, OutputLike | None]]:
    """Returns the plan of params.json beside a torch file of a Llama, with its path; nothing for another model."""
    found = _core.llama_parameters(checkpoint)
    if found is None:
        return []
    content, unknown, model_type = found
    if not content:
        source = "export_llama takes one from executorch/examples/models"
        warn(f"config.json is of model_type {model_type!r}, for which no params.json is written; {source}")
        return []
    for member in unknown:
        warn(f"member of config.json {member!r}: not known, params.json says nothing of it")
    return [(_core.FilePlan.copy(content.encode()), os.path.join(os.path.dirname(output), "params.json"))]


def checkpoints_of(given: Any, partial: bool = False) -> list[_core.Checkpoint]:
    """Returns the checkpoints that `given` stands for, see ptd(); a path may stand for a whole set."""
    each = given if isinstance(given, (list, tuple)) else [given]
    opened = iter(_core.open_checkpoints([one for one in each if is_path(one)], partial))
    return [next(opened) if is_path(one) else _checkpoint_of(one) for one in each]


def joined_checkpoint(given: WeightsLike, partial: bool) -> _core.Checkpoint:
    """Returns a checkpoint of all tensors that `given` stands for."""
    joined, _ = _core.changed_checkpoint(checkpoints_of(given, partial), None, None, [], [])
    return joined


def _checkpoint_of(given: Any) -> _core.Checkpoint:
    if isinstance(given, _core.Checkpoint):
        return given
    if not are_several(given):
        expected = "a checkpoint's path, a Checkpoint, or a mapping of names to tensors"
        raise TypeError(f"expected {expected}, found {type(given).__name__}")
    return _core.Checkpoint.of(given)


def _warn(noun: str, subjects: list[str], what: str) -> None:
    if subjects:
        count = f"{noun} {subjects[0]!r}" if len(subjects) == 1 else f"{len(subjects)} {noun}s, such as {subjects[0]!r}"
        warn(RulesWarning(f"{count}: {what}", subjects))
