# SPDX-License-Identifier: BSD-3-Clause
"""One program under the layouts that ExecuTorch's options give it."""

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
    """ExecuTorch's options, by its names; None is its default."""

    segment_alignment: int = 128
    extract_delegate_segments: bool = True
    delegate_alignment: int | None = None
    constant_tensor_alignment: int | None = None

    def options(self) -> list[str]:
        """What gives `etstream pte` this layout, for a program with the same constant_tensor_alignment."""
        out = ["--segment-alignment", str(self.segment_alignment)]
        out += ["--delegates", "segments" if self.extract_delegate_segments else "inline"]
        return [*out, "--delegate-alignment", str(self.delegate_alignment or 16)]

    def key(self) -> str:
        return json.dumps(dataclasses.asdict(self))


# Programs to start from: as exported by default, and as far from that as may be.
BASES = {
    "usual": PteLayout(),
    "unusual": PteLayout(1024, False, 64, 256),
}


def neighbours_of(base: PteLayout) -> Iterator[tuple[list[str], PteLayout]]:
    """One option for `etstream pte`, and what the base becomes by it alone."""
    extracted = not base.extract_delegate_segments
    where = "segments" if extracted else "inline"
    yield ["--delegates", where], dataclasses.replace(base, extract_delegate_segments=extracted)
    yield ["--segment-alignment", "64"], dataclasses.replace(base, segment_alignment=64)


def layouts_of(base: PteLayout) -> Iterator[PteLayout]:
    """All that a program with the base's constant_tensor_alignment is laid out as."""
    yield from (layout for _, layout in neighbours_of(base))
    for alignment, extracted, delegates in itertools.product((16, 128, 4096), (True, False), (None, 32, 4096)):
        yield PteLayout(alignment, extracted, delegates, base.constant_tensor_alignment)


def serialize(manager: ExecutorchProgramManager, layout: PteLayout) -> bytes:
    """What ExecuTorch writes."""
    config = ExecutorchBackendConfig(**dataclasses.asdict(layout))
    program, _ = serialize_for_executorch(
        manager._emitter_output, config, manager._data_serializer, manager._named_data
    )
    return bytes(program)


def write_layouts(manager: ExecutorchProgramManager, folder: Path) -> None:
    """Write BASE.pte for each base, and the hashes of what each becomes."""
    for name, base in BASES.items():
        (folder / f"{name}.pte").write_bytes(serialize(manager, base))
        hashes = {
            layout.key(): hashlib.sha256(serialize(manager, layout)).hexdigest() for layout in layouts_of(base)
        }
        (folder / f"{name}.json").write_text(json.dumps(hashes))
