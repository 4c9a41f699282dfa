# SPDX-License-Identifier: BSD-3-Clause
"""Serializes ExecuTorch's programs (.pte) and tensor data (.ptd) from its own objects."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from itertools import accumulate
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from etstream import _core
from etstream._arguments import asked
from etstream._errors import InvalidArgumentError
from etstream._package import installed_executorch, installed_flatbuffers
from etstream._programs import ProgramOptions
from etstream._types import OutputLike
from etstream._writing import Progress, defaults_of
from etstream.executorch._cords import cord_of
from etstream.executorch._key_names import is_writing, path_of_names, plan_of
from etstream.executorch._patches import Patch, instead, leave_to_executorch, of_manager

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager
    from executorch.exir._serialize._cord import Cord
    from executorch.exir._serialize._program import PTEFile
    from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
    from executorch.exir.program._program import ExecutorchProgram
    from executorch.exir.schema import Buffer
    from executorch.exir.tensor_layout import TensorLayout


def plan_pte_file(
    pte_file: PTEFile,
    *,
    extract_delegate_segments: bool = False,
    segment_alignment: int = 128,
    constant_tensor_alignment: int | None = None,
    delegate_alignment: int | None = None,
) -> _core.FilePlan:
    """Returns the plan of a program (.pte), byte for byte as the installed ExecuTorch's serialize_pte_binary writes it.

    Args:
        pte_file: the program and its data; any source may stand for bytes, and is read when the plan is written.
        extract_delegate_segments: put the data of delegates into segments, not into the flatbuffer.
        segment_alignment, constant_tensor_alignment, delegate_alignment: powers of two, in bytes; None for 16.

    Raises:
        InvalidArgumentError: an alignment is not allowed, or the program refers to data that is not there.
        TooLargeError: the flatbuffer would be over 2 GiB.
    """
    program = pte_file.program
    if program.segments or program.named_data:
        raise ValueError("the program already has segments or named data")
    if extract_delegate_segments:
        used = {d.processed.index for plan in program.execution_plan for d in plan.delegates}
        if unused := sorted(set(range(len(program.backend_delegate_data))) - used):
            raise InvalidArgumentError(f"delegate data {unused} belongs to no delegate")
    # Added objects have the attributes of ExecuTorch's dataclasses; the plan decides where segments go.
    segments: list[SimpleNamespace] = []
    changes: dict[str, Any] = {"segments": segments}
    if any(len(buffer.storage) for buffer in pte_file.mutable_data or []):
        segments.append(_segment([buffer.storage for buffer in pte_file.mutable_data]))
        offsets = _offsets(pte_file.mutable_data)
        changes["mutable_data_segments"] = [SimpleNamespace(segment_index=0, offsets=offsets)]
    if pte_file.named_data is not None:
        buffers, entries = pte_file.named_data.buffers, pte_file.named_data.pte_data
        first, places = _in_order(entries)
        changes["named_data"] = [
            SimpleNamespace(key=key, segment_index=len(segments) + places[entry.buffer_index])
            for key, entry in entries.items()
        ]
        segments += [_segment(buffers[index], entry.alignment) for index, entry in first.items()]
    options = {
        **defaults_of(ProgramOptions),
        "segment_alignment": segment_alignment,
        "constant_tensor_alignment": constant_tensor_alignment,
        "delegate_alignment": delegate_alignment,
        "delegates": "segments" if extract_delegate_segments else "inline",
        "as_of": installed_executorch(),
        "flatbuffers": installed_flatbuffers(),
    }
    return _core.plan_pte_file(dataclasses.replace(program, **changes), options)


def _segment(data: Any, alignment: int = 1) -> SimpleNamespace:
    """Returns a segment with its data, a source."""
    size = sum(map(len, data)) if isinstance(data, list) else len(data)
    return SimpleNamespace(offset=0, size=size, data=data, alignment=alignment or 1)


def _offsets(buffers: list[Buffer]) -> list[int]:
    """Returns the offset at which each buffer begins, one right after another."""
    return list(accumulate((len(buffer.storage) for buffer in buffers[:-1]), initial=0))


def _in_order(entries: dict[str, DataEntry]) -> tuple[dict[int, DataEntry], dict[int, int]]:
    """Returns, by the indices of buffers and in the order in which entries refer to them, the first entry of each
    buffer; and each buffer's place in that order."""
    first: dict[int, DataEntry] = {}
    for entry in entries.values():
        first.setdefault(entry.buffer_index, entry)
    return first, {index: place for place, index in enumerate(first)}


def plan_ptd_file(payload: DataPayload, segment_alignment: int = 128, *, unchecked: bool = False) -> _core.FilePlan:
    """Returns the plan of tensor data (.ptd), byte for byte as ExecuTorch's FlatTensorSerializer writes it.

    Args:
        payload: the data; any source may stand for bytes, and is read when the plan is written.
        segment_alignment: the alignment of segments in bytes, a power of two.
        unchecked: skip the check that layouts fit their data, as ExecuTorch does.

    Raises:
        InvalidArgumentError: an alignment is not allowed, or a layout does not fit its data.
    """
    first, places = _in_order(payload.named_data)
    buffers = [(payload.buffers[index], entry.alignment or 1) for index, entry in first.items()]
    entries = [
        (key, places[entry.buffer_index], _layout(entry.tensor_layout)) for key, entry in payload.named_data.items()
    ]
    return _core.plan_ptd_file(buffers, entries, segment_alignment, unchecked)


def _layout(layout: TensorLayout | None) -> tuple[int, list[int], list[int]] | None:
    if layout is None:
        return None
    return int(layout.scalar_type), list(layout.sizes), list(layout.dim_order)


def save_program(
    manager: ExecutorchProgramManager | ExecutorchProgram,
    output: OutputLike,
    *,
    names: str | os.PathLike[str] | bool | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> None:
    """Writes the program (.pte) of an ExecutorchProgramManager, without ever making its `.buffer`.

    Args:
        manager: the object that to_executorch() returned.
        names: the path of a JSON file that says which parameter became which key of named data; True for
            MODEL.names.json beside MODEL.pte, where etstream.inspect(), diff() and the command look for it. It has the
            parameters that a backend took as they were, and those that XNNPACK transformed within install(names=True)
            or low_memory_export(names=True).
        output: where the program goes; a path is replaced atomically, together with the names.

    The bytes are those of manager.write_to_file(). Raises TypeError for another object, such as an EdgeProgramManager.
    """
    program = _core.FilePlan.copy(program_source(manager))
    output = asked(output)
    names_path = path_of_names(names, output)
    if names_path is None:
        program.write(output, sync=sync, progress=progress)
        return
    known = plan_of(cast("ExecutorchProgramManager", manager))
    _core.write_plans([(program, output), (known, names_path)], sync=sync, progress=progress)


def program_source(manager: ExecutorchProgramManager | ExecutorchProgram) -> _core.Source:
    """Returns the program (.pte) as a source; nothing is copied. Raises TypeError, see save_program()."""
    if hasattr(manager, "_get_pte_data"):  # an ExecutorchProgram
        return _core.Source(manager._get_pte_data())
    return _core.Source(of_manager("save_program()", manager, "_pte_data"))


def save_tensor_data(
    manager: ExecutorchProgramManager,
    folder: str | os.PathLike[str],
    *,
    names: str | os.PathLike[str] | bool | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> list[str]:
    """Writes the tensor data of an ExecutorchProgramManager, a .ptd file for each tag, into a folder.

    Returns the files' paths. All are replaced together, or none is; bytes and names are those of
    manager.write_tensor_data_to_file(). `names` is the path of a JSON file that says which parameter became which key,
    or True for NAME.names.json beside each NAME.ptd; see save_program(). Raises TypeError as save_program() does, and
    InvalidArgumentError for a tag that is a path.
    """
    folder, names = asked(folder), asked(names)
    files: list[tuple[_core.FilePlan, OutputLike]] = []
    for name, cord in (of_manager("save_tensor_data()", manager, "_tensor_data") or {}).items():
        path = _core.path_in_folder(folder, name if name.endswith(".ptd") else f"{name}.ptd")
        files.append((_core.FilePlan.copy(_core.Source(cord)), path))
    paths = [str(path) for _, path in files]
    for names_path in dict.fromkeys(path_of_names(names, path) for path in paths):
        if names_path is not None:
            files.append((plan_of(manager), names_path))
    _core.write_plans(files, sync=sync, progress=progress)
    return paths


_FLAT_TENSOR_VERSION = 0  # the version that etstream writes
_FLAT_TENSOR = "executorch.extension.flat_tensor.serialize.serialize"
NEEDS = (f"{_FLAT_TENSOR}:_FLAT_TENSOR_VERSION",)


def _serialize_pte_binary(executorchs: Callable[..., Cord]) -> Callable[..., Cord]:
    def serialize(pte_file: PTEFile, **options: Any) -> Cord:
        return _cord_or(lambda: plan_pte_file(pte_file, **options), lambda: executorchs(pte_file, **options))

    return serialize


def _serialize_tensor_data(executorchs: Callable[..., Cord]) -> Callable[..., Cord]:
    def serialize(self: Any, data: DataPayload) -> Cord:
        from executorch.extension.flat_tensor.serialize import serialize as flat_tensor

        version = flat_tensor._FLAT_TENSOR_VERSION
        if version != _FLAT_TENSOR_VERSION:
            leave_to_executorch(f"its tensor data is of version {version}, etstream's of {_FLAT_TENSOR_VERSION}")
            return executorchs(self, data)
        return _cord_or(
            lambda: plan_ptd_file(data, self.config.segment_alignment, unchecked=True), lambda: executorchs(self, data)
        )

    return serialize


def _cord_or(plan: Callable[[], _core.FilePlan], executorchs: Callable[[], Cord]) -> Cord:
    """Returns the planned file as a cord. If etstream refuses to plan it, for example with an alignment that is no
    power of two, ExecuTorch's own function runs instead."""
    try:
        return cord_of(plan())
    except InvalidArgumentError as error:
        leave_to_executorch(error)
        return executorchs()


def _save(self: ExecutorchProgramManager, path: str) -> None:
    if not path.endswith(".pte"):
        raise ValueError(f"Path {path} does not end with .pte")
    save_program(self, path, names=is_writing())


def patches() -> list[Patch]:
    """Returns the patches for functions that serialize programs and tensor data in ExecuTorch."""
    manager = "executorch.exir.program._program:ExecutorchProgramManager"
    return [
        Patch("executorch.exir._serialize._program", "serialize_pte_binary", _serialize_pte_binary),
        Patch(f"{_FLAT_TENSOR}:FlatTensorSerializer", "serialize", _serialize_tensor_data),
        Patch(manager, "save", instead(_save)),
    ]
