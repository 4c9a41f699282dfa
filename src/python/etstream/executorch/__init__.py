# SPDX-License-Identifier: BSD-3-Clause
"""etstream where ExecuTorch exports: saves its programs, weights and bundles without copying them.

Fits ExecuTorch 1.5.1, as its adaptors go by what is inside of it; importing this with another one raises ImportError.
All functions may be called from several threads at once.
"""

from __future__ import annotations

from etstream.executorch import _version

_version.check()

from etstream.executorch._bundling import plan_bundled_program, save_bundled_program  # noqa: E402
from etstream.executorch._cords import LazyData  # noqa: E402
from etstream.executorch._install import install, uninstall  # noqa: E402
from etstream.executorch._low_memory import low_memory_export  # noqa: E402
from etstream.executorch._programs import (  # noqa: E402
    plan_program,
    plan_tensor_data,
    program_source,
    save_program,
    save_tensor_data,
)

__all__ = [
    "LazyData",
    "install",
    "low_memory_export",
    "plan_bundled_program",
    "plan_program",
    "plan_tensor_data",
    "program_source",
    "save_bundled_program",
    "save_program",
    "save_tensor_data",
    "uninstall",
]
