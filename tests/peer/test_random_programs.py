# SPDX-License-Identifier: BSD-3-Clause
"""Any program, of any values, is laid out again as ExecuTorch's serializer lays it out. A failure names the seed."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from command import Etstream, assert_same_bytes
from executorch.exir import schema
from executorch.exir._serialize._flatbuffer import _flatc_compile, _prepare_schema
from executorch.exir._serialize._flatbuffer_program import _flatbuffer_to_program
from layouts import PteLayout
from random_programs import RandomProgram, generate, random_layouts
from rounds import ROUNDS

GROUPS = 10
PROGRAMS = 2 * GROUPS * ROUNDS


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_programs_under_any_layout_are_byte_identical(
    group: int, etstream: Etstream, tmp_path: Path
) -> None:
    program, out = tmp_path / "program.pte", tmp_path / "out.pte"
    for seed in range(group, PROGRAMS, GROUPS):
        subject = generate(seed)
        first, second = random_layouts(random.Random(f"layouts {seed}"), subject)
        original = subject.serialize(first)
        program.write_bytes(original)
        what = f"generate({seed}) under {first}"
        same = etstream.pte(program, out)
        assert_same_bytes(same, original, f"{what}, without options")
        again = etstream.pte(program, out, *first.options())
        assert_same_bytes(again, original, f"{what}, under the same")
        other = etstream.pte(program, out, *second.options())
        assert_same_bytes(other, subject.serialize(second), f"{what}, to {second}")


@pytest.mark.parametrize(
    ("option", "part"),
    [("constant_tensor_alignment", "constants"), ("delegate_alignment", "delegate ")],
)
def test_segments_lie_where_executorch_has_them_which_is_not_as_these_options_say(
    option: str, part: str, etstream: Etstream, tmp_path: Path
) -> None:
    program, out = tmp_path / "program.pte", tmp_path / "out.pte"
    layout = PteLayout(segment_alignment=64, **{option: 4096})
    starts = []
    for seed in range(5 * ROUNDS):
        subject = replace(generate(seed), named_data=None)
        program.write_bytes(subject.serialize(PteLayout(extract_delegate_segments=False)))
        ours = etstream.pte(program, out, *layout.options())
        assert_same_bytes(ours, subject.serialize(layout), f"generate({seed}), {option}")
        parts = etstream.inspect(out)["parts"]
        starts += [each["offset"] for each in parts if each["what"].startswith(part)]
    assert sum(start % 4096 != 0 for start in starts) > ROUNDS


def test_the_alignment_of_segments_stays_where_the_gaps_between_them_show_it(
    etstream: Etstream, tmp_path: Path
) -> None:
    program, out = tmp_path / "program.pte", tmp_path / "out.pte"
    shown = 0
    for seed in range(20 * ROUNDS):
        subject = replace(generate(seed), named_data=None)
        layout = PteLayout(segment_alignment=512)
        original = subject.serialize(layout)
        sizes = [segment.size for segment in _flatbuffer_to_program(original).segments]
        # The second segment lies where an alignment of 128 would not put it.
        if len(sizes) < 2 or not 0 < sizes[0] % 512 <= 384 or sizes[1] == 0:
            continue
        shown += 1
        program.write_bytes(original)
        same = etstream.pte(program, out, "--delegates", "segments")
        assert_same_bytes(same, original, f"generate({seed}) under {layout}")
    assert shown > ROUNDS


@pytest.fixture(scope="module")
def some_programs() -> list[RandomProgram]:
    return [generate(seed) for seed in range(120)]


def test_every_kind_of_value_and_instruction_is_generated(some_programs: list[RandomProgram]) -> None:
    plans = [plan for subject in some_programs for plan in subject.program.execution_plan]
    values = {type(value.val) for plan in plans for value in plan.values}
    assert values == {*get_args(schema.KernelTypes), type(None)}
    chains = [chain for plan in plans for chain in plan.chains]
    calls = {type(each.instr_args) for chain in chains for each in chain.instructions}
    assert calls == set(get_args(schema.InstructionArguments))
    tensors = [value.val for plan in plans for value in plan.values if isinstance(value.val, schema.Tensor)]
    assert any(tensor.allocation_info and tensor.data_buffer_idx for tensor in tensors)
    places = {tensor.extra_tensor_info and tensor.extra_tensor_info.location for tensor in tensors}
    assert places == {None, *schema.TensorDataLocation}
    assert {chain.stacktrace is None for chain in chains} == {True, False}
    doubles = {repr(value.val) for plan in plans for value in plan.values if type(value.val) is schema.Double}
    wanted = map(schema.Double, (0.0, -0.0, 5e-324, math.nan, math.inf, -math.inf))
    assert doubles >= set(map(repr, wanted))


def test_every_kind_of_data_is_generated(some_programs: list[RandomProgram]) -> None:
    blobs = [[each.data for each in subject.program.backend_delegate_data] for subject in some_programs]
    sizes = {len(blob) for group in blobs for blob in group}
    assert {0, 1, 3, 16, 4097} <= sizes
    assert any(len(set(group)) < len(group) for group in blobs)
    for data in ("mutable_data", "named_data"):
        assert {getattr(subject, data) is None for subject in some_programs} == {True, False}
    assert len({subject.serialize(PteLayout()) for subject in some_programs}) == len(some_programs)


def test_a_random_program_as_json_is_the_same_program(
    some_programs: list[RandomProgram], tmp_path: Path
) -> None:
    json, binary = tmp_path / "program.json", tmp_path / "program.pte"
    program_schema = _prepare_schema(str(tmp_path)).root_path
    for subject in some_programs[:ROUNDS]:
        json.write_text(subject.json())
        _flatc_compile(str(tmp_path), program_schema, str(json))
        read = RandomProgram(_flatbuffer_to_program(binary.read_bytes()), None, None)
        alone = replace(subject, mutable_data=None, named_data=None)
        assert read.serialize(PteLayout()) == alone.serialize(PteLayout())
