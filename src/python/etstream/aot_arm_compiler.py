# SPDX-License-Identifier: BSD-3-Clause
"""Runs ExecuTorch's Arm compiler, and saves through etstream.

    python -m etstream.aot_arm_compiler -m model.py -d --bundleio -t TOSA-1.0+FP -o out

takes the arguments of `executorch.backends.arm.scripts.aot_arm_compiler` and writes the same files. From
a script, the same takes three lines:

    with etstream.executorch.install():
        program = edge.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=False))
        etstream.executorch.save_bundled_program(BundledProgram(program, suites), "model.bpte")

Memory then grows neither while `to_executorch` serializes the program nor while the bundle is written. If
`generate_etrecord` is called in the block, memory does not grow while the ETRecord is written either.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import etstream.executorch
import torch
from etstream.executorch._patches import Patch, PatchSet, instead, needed

if TYPE_CHECKING:
    from executorch.devtools.bundled_program.config import MethodTestSuite
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager

__all__ = ["main"]

_COMPILER = "executorch.backends.arm.scripts.aot_arm_compiler"


def __dir__() -> list[str]:
    return __all__


def main() -> None:
    """Runs the compiler with the arguments of this process."""
    (compiler_main,) = needed("etstream.aot_arm_compiler", f"{_COMPILER}:main")
    with etstream.executorch.install(), _compiler_saves:
        compiler_main()


def _save_bundled_program(program: ExecutorchProgramManager, suites: Sequence[MethodTestSuite], path: str) -> None:
    etstream.executorch.save_bundled_program((program, suites), path, unchecked=True)


def _copied(edge: EdgeProgramManager) -> EdgeProgramManager:
    """Returns a deep copy for an ETRecord, which only reads it: its tensors are those of `edge`.

    Parameters that are views are still copied; a copy holds only what is in view.
    """
    programs = [edge.exported_program(method) for method in edge.methods]
    values = [value for each in programs for value in (*each.state_dict.values(), *each.constants.values())]
    tensors = {id(value): value for value in values if isinstance(value, torch.Tensor)}
    users = Counter(tensor.untyped_storage().data_ptr() for tensor in tensors.values())

    def has_storage_alone(tensor: torch.Tensor) -> bool:
        storage = tensor.untyped_storage()
        return users[storage.data_ptr()] == 1 and storage.nbytes() == tensor.nbytes

    memo = {key: tensor for key, tensor in tensors.items() if has_storage_alone(tensor)}
    return copy.deepcopy(edge, memo)


_compiler_saves = PatchSet(
    "etstream.aot_arm_compiler",
    lambda: [
        Patch(_COMPILER, "_save_bundled_program", instead(_save_bundled_program)),
        Patch(_COMPILER, "copy", instead(SimpleNamespace(deepcopy=_copied)), only_there=True),
    ],
)

if __name__ == "__main__":
    main()
