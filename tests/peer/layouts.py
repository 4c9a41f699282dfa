# SPDX-License-Identifier: BSD-3-Clause
"""Lays out one program as ExecuTorch's options ask."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from executorch.exir import ExecutorchBackendConfig, ExecutorchProgramManager
from executorch.exir._serialize._serialize import serialize_for_executorch


@dataclass(frozen=True)
class PteLayout:
    """The options of ExecuTorch, by its names; None is its default."""

    segment_alignment: int = 128
    extract_delegate_segments: bool = True
    delegate_alignment: int | None = None
    constant_tensor_alignment: int | None = None

    def options(self) -> list[str]:
        """Returns the options that give this layout to `etstream pte`."""
        out = ["--segment-alignment", str(self.segment_alignment)]
        out += ["--constant-tensor-alignment", str(self.constant_tensor_alignment or 16)]
        out += ["--delegates", "segments" if self.extract_delegate_segments else "inline"]
        return [*out, "--delegate-alignment", str(self.delegate_alignment or 16)]

    def key(self) -> str:
        return json.dumps(dataclasses.asdict(self))


# The programs to start from: as exported by default, and as different from that as possible.
BASES = {
    "usual": PteLayout(),
    "unusual": PteLayout(1024, False, 64, 256),
}


def neighbours_of(base: PteLayout) -> Iterator[tuple[list[str], PteLayout]]:
    """Yields options for `etstream pte` that leave out most, and the layout that the base gets by them alone."""
    extracted = not base.extract_delegate_segments
    where = "segments" if extracted else "inline"
    yield ["--delegates", where], dataclasses.replace(base, extract_delegate_segments=extracted)
    yield ["--segment-alignment", "64"], dataclasses.replace(base, segment_alignment=64)
    for alignment in (1, 16, 512):
        # A program shows the alignment of delegates only if it has some in the flatbuffer, and one segment may lie at a
        # multiple of more than it has to.
        options = ["--constant-tensor-alignment", str(alignment)]
        options += ["--delegate-alignment", str(base.delegate_alignment or 16)]
        options += ["--segment-alignment", str(base.segment_alignment)]
        yield options, dataclasses.replace(base, constant_tensor_alignment=alignment)


def layouts_of(base: PteLayout, *, few: bool) -> Iterator[PteLayout]:
    """Yields all layouts that the base gets; with `few`, three of the eighteen that differ in several options."""
    yield from (layout for _, layout in neighbours_of(base))
    several = list(itertools.product((16, 128, 4096), (True, False), (None, 32, 4096)))
    for alignment, extracted, delegates in several[5::6] if few else several:
        yield PteLayout(alignment, extracted, delegates, base.constant_tensor_alignment)


def serialize(manager: ExecutorchProgramManager, layout: PteLayout) -> bytes:
    """Returns the program that ExecuTorch writes."""
    config = ExecutorchBackendConfig(**dataclasses.asdict(layout))
    program, _ = serialize_for_executorch(
        manager._emitter_output, config, manager._data_serializer, manager._named_data
    )
    return bytes(program)


def write_plans(manager: ExecutorchProgramManager, folder: Path, *, few: bool) -> None:
    """Writes BASE.pte for each base, and the hashes of the programs that it becomes."""
    for name, base in BASES.items():
        (folder / f"{name}.pte").write_bytes(serialize(manager, base))
        hashes = {
            layout.key(): hashlib.sha256(serialize(manager, layout)).hexdigest()
            for layout in layouts_of(base, few=few)
        }
        (folder / f"{name}.json").write_text(json.dumps(hashes))
