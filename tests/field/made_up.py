# SPDX-License-Identifier: BSD-3-Clause
"""Makes up programs and bundles, and describes them for any release to write.

    python made_up.py FOLDER

writes FOLDER/programs/SEED/, with program.pte as 1.5.1 writes it under the first of the layouts in layouts.json, and
FOLDER/bundles/GROUP-INDEX/, with the bytes that stand for a program in program.bin.
"""

from __future__ import annotations

import json
import math
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cases import Case, Suite, Value
from descriptions import describe, describe_suites
from executorch.exir import schema
from generated_bundles import GROUPS
from generated_bundles import generate as generate_bundle
from random_programs import RandomProgram, random_layouts
from random_programs import generate as generate_program

PROGRAMS = 24
BUNDLES_A_GROUP = 2


def without_devices(program: RandomProgram) -> RandomProgram:
    """Returns the program without devices, which came with 1.3."""
    for plan in program.program.execution_plan:
        plan.non_const_buffer_device = None
        for value in plan.values:
            if isinstance(value.val, schema.Tensor) and value.val.extra_tensor_info is not None:
                value.val.extra_tensor_info.device_type = schema.DeviceType.CPU
                value.val.extra_tensor_info.device_index = 0
    return program


def in_json(value: Any) -> bool:
    """Returns whether flatc takes the JSON that Python makes of a value."""
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def for_older_writers(program: RandomProgram) -> RandomProgram:
    """Returns the program without values that are missing, and without numbers that are not finite."""
    for plan in program.program.execution_plan:
        for value in plan.values:
            if value.val is None:
                value.val = schema.Null()
            if isinstance(value.val, schema.Double) and not in_json(value.val.double_val):
                value.val = schema.Double(1.5)
            if isinstance(value.val, schema.DoubleList):
                value.val.items = list(filter(in_json, value.val.items))
    return program


def flatc_suite(suite: Suite) -> Suite:
    """Returns the suite without values that writers up to 1.3 refuse."""

    def taken(values: Any) -> list[Value]:
        return list(filter(in_json, values))

    return Suite(suite.method, [Case(taken(case.inputs), taken(case.expected_outputs)) for case in suite.cases])


def describe_program(seed: int, folder: Path) -> None:
    program = generate_program(seed)
    if seed % 2 == 0:
        program = for_older_writers(without_devices(program))
    layouts = random_layouts(random.Random(f"layouts {seed}"), program)
    if seed % 2 == 0:
        # flatc takes no larger alignment for data in the flatbuffer, where data of delegates without bytes always is.
        layouts = tuple(replace(each, delegate_alignment=32) for each in layouts)
    describe(program.program, program.mutable_data, program.named_data, folder)
    (folder / "program.pte").write_bytes(program.serialize(layouts[0]))
    (folder / "layouts.json").write_text(json.dumps([asdict(each) for each in layouts]))


def describe_bundle(group: str, index: int, folder: Path) -> None:
    bundle = generate_bundle(group, index)
    suites = bundle.suites if index % 2 else list(map(flatc_suite, bundle.suites))
    describe_suites(suites, folder, by_method=bundle.by_method)
    (folder / "program.bin").write_bytes(bundle.program)


def main() -> None:
    folder = Path(sys.argv[1])
    for seed in range(PROGRAMS):
        describe_program(seed, folder / "programs" / str(seed))
    for group in GROUPS:
        for index in range(BUNDLES_A_GROUP):
            describe_bundle(group, index, folder / "bundles" / f"{group}-{index}")


if __name__ == "__main__":
    main()
