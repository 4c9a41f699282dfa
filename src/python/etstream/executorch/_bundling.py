# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's bundled programs (.bpte), serialized from its own objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from etstream import _core
from etstream._bundles import BundleFormat, suites_of
from etstream._progress import Progress
from etstream._types import OutputLike
from etstream._writers import installed_executorch, installed_flatbuffers
from etstream.executorch._internals import attribute, needed
from etstream.executorch._patches import Patch, instead
from etstream.executorch._programs import program_source

if TYPE_CHECKING:
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program import schema
    from executorch.devtools.bundled_program.config import MethodTestSuite
    from executorch.exir import ExecutorchProgramManager

    Bundle: TypeAlias = BundledProgram | tuple[ExecutorchProgramManager, Sequence[MethodTestSuite]]

_FEATURE = "save_bundled_program()"


def plan_bundled_program(
    bundled_program: Bundle,
    *,
    format: BundleFormat = "bp08",
    hash: bool = True,
    unchecked: bool = False,
) -> _core.FilePlan:
    """The plan of a bundle (.bpte), of a program whose `.buffer` is never made.

    Args:
        bundled_program: ExecuTorch's BundledProgram; or an ExecutorchProgramManager and the test suites of
            its methods, which BundledProgram checks as it does its own.
        format, hash, unchecked: see etstream.plan_bundle(). BP08 gives the bytes of
            serialize_from_bundled_program_to_flatbuffer.

    Raises:
        AssertionError: what ExecuTorch raises for test suites that do not fit.
        InvalidArgumentError, TooLargeError: see etstream.plan_bundle().
    """
    if isinstance(bundled_program, tuple):
        manager, suites = bundled_program
        (checked,) = needed(_FEATURE, "executorch.devtools:BundledProgram")
        bundled_program = checked(manager, list(suites))
    if bundled_program.executorch_program is not None:
        program = program_source(bundled_program.executorch_program)
    else:
        program = _core.Source.file(attribute(_FEATURE, bundled_program, "_pte_file_path"))
    return _core.plan_bundle(
        program,
        suites_of(bundled_program.method_test_suites),
        format=format,
        hash=hash,
        program_alignment=32,
        unchecked=unchecked,
        as_of=installed_executorch(),
        flatbuffers=installed_flatbuffers(),
    )


def save_bundled_program(
    bundled_program: Bundle,
    output: OutputLike,
    *,
    format: BundleFormat = "bp08",
    hash: bool = True,
    unchecked: bool = False,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> _core.FilePlan:
    """Writes a bundle: plans it as plan_bundled_program() does, and writes it as etstream.FilePlan.write() does.

    Returns the plan, whose size is that of the file.
    """
    plan = plan_bundled_program(bundled_program, format=format, hash=hash, unchecked=unchecked)
    plan.write(output, sync=sync, progress=progress)
    return plan


def _serialize(bundled_program: BundledProgram) -> bytes:
    return bytes(plan_bundled_program(bundled_program, unchecked=True))


def _serialize_schema(bundled_program: schema.BundledProgram) -> bytes:
    return bytes(
        _core.plan_bundle_objects(bundled_program, installed_executorch(), installed_flatbuffers())
    )


def patches() -> list[Patch]:
    """What serializes bundled programs in ExecuTorch."""
    serialize_bundle = "executorch.devtools.bundled_program.serialize"
    return [
        Patch(serialize_bundle, "serialize_from_bundled_program_to_flatbuffer", instead(_serialize)),
        Patch(serialize_bundle, "_bundled_program_schema_to_flatbuffer", instead(_serialize_schema)),
    ]
