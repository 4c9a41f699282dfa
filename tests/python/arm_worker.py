# SPDX-License-Identifier: BSD-3-Clause
"""Runs ExecuTorch's Arm compiler in a process of its own, which says what phase it is in.

    python arm_worker.py executorch|etstream ARGS...

"save" is the writing of the .pte or .bpte, and "etrecord" is the work after it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import phases
from executorch.backends.arm.scripts import aot_arm_compiler as arm
from executorch.exir import EdgeProgramManager

import etstream.aot_arm_compiler


def enter_with(owner: Any, name: str, phase: str, then: str) -> None:
    """Makes the function enter a phase when it is called, and another when it returns."""
    function: Callable[..., Any] = getattr(owner, name)

    def entering(*args: Any, **kwargs: Any) -> Any:
        phases.enter(phase)
        result = function(*args, **kwargs)
        phases.enter(then)
        return result

    setattr(owner, name, entering)


def main() -> None:
    compiler = {"executorch": arm, "etstream": etstream.aot_arm_compiler}[sys.argv.pop(1)]
    enter_with(arm, "to_edge_transform_and_lower", "lower", "report")
    enter_with(EdgeProgramManager, "to_executorch", "to_executorch", "expected outputs")
    enter_with(compiler, "_save_bundled_program", "save", "etrecord")
    enter_with(arm, "save_pte_program", "save", "etrecord")
    phases.enter("export")
    compiler.main()
    phases.enter("end")


if __name__ == "__main__":
    main()
