# SPDX-License-Identifier: BSD-3-Clause
"""Reads programs as ExecuTorch's own exporter does."""

from __future__ import annotations

from executorch.exir._serialize._flatbuffer_program import _patch_generated_flatbuffer_aliases
from executorch.exir._serialize._program import _get_extended_header
from executorch.exir._serialize.generated.executorch_flatbuffer.Program import Program

_patch_generated_flatbuffer_aliases()  # without this, the generated reader takes its modules for classes


def flatbuffer_size(program: bytes) -> int:
    """Returns the offset at which the flatbuffer ends, by the extended header."""
    header = _get_extended_header(program)
    assert header is not None
    return header.program_size


def segments_of(program: bytes) -> list[bytes]:
    """Returns the bytes of each segment."""
    header = _get_extended_header(program)
    assert header is not None
    root = Program.GetRootAs(program, 0)
    listed = [root.Segments(index) for index in range(root.SegmentsLength())]
    starts = [header.segment_base_offset + segment.Offset() for segment in listed]
    return [
        program[start : start + segment.Size()]
        for start, segment in zip(starts, listed, strict=True)
    ]


def names_in(program: bytes) -> list[bytes]:
    """Returns the names of the program's methods and operators."""
    names = []
    root = Program.GetRootAs(program, 0)
    for plan in map(root.ExecutionPlan, range(root.ExecutionPlanLength())):
        names.append(plan.Name())
        for operator in map(plan.Operators, range(plan.OperatorsLength())):
            names += [operator.Name(), operator.Overload()]
    return [name for name in names if name]
