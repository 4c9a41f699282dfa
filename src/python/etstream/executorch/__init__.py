# SPDX-License-Identifier: BSD-3-Clause
"""Saves the programs, weights and bundles that ExecuTorch exports, without copying them, and runs them.

Works with ExecuTorch from 1.3 on. Some of it stands in for functions inside of ExecuTorch and torch; if a release lacks
such a function, an ImportError names it when it is needed. All functions may be called from several threads at once.
"""

from __future__ import annotations

import sys as _sys

from etstream._package import present as _present
from etstream.executorch._patches import expect_installed as _expect_installed

_expect_installed()

from etstream.executorch._bundles import load_bundled_program, save_bundled_program  # noqa: E402
from etstream.executorch._cords import LazyData  # noqa: E402
from etstream.executorch._install import Installation, install, is_installed, uninstall  # noqa: E402
from etstream.executorch._low_memory import LowMemoryReport, low_memory_export  # noqa: E402
from etstream.executorch._patches import FunctionUse  # noqa: E402
from etstream.executorch._programs import (  # noqa: E402
    plan_ptd_file,
    plan_pte_file,
    program_source,
    save_program,
    save_tensor_data,
)
from etstream.executorch._runtime import (  # noqa: E402
    Bundle,
    BundleResult,
    CaseResult,
    FatProgram,
    LoadedProgram,
    load,
    load_fat,
    open_bundle,
)
from etstream.executorch._specialize import (  # noqa: E402
    Recipe,
    RecipeError,
    Specialized,
    SpecializeOptions,
    register_recipe,
    registered_recipes,
    specialize,
    specialized_preprocess,
)

__all__ = [
    "Bundle", "BundleResult", "CaseResult", "FatProgram", "FunctionUse", "Installation", "LazyData", "LoadedProgram",
    "LowMemoryReport", "Recipe", "RecipeError", "SpecializeOptions", "Specialized", "install", "is_installed", "load",
    "load_bundled_program", "load_fat", "low_memory_export", "open_bundle", "plan_ptd_file", "plan_pte_file",
    "program_source", "register_recipe", "registered_recipes", "save_bundled_program", "save_program",
    "save_tensor_data", "specialize", "specialized_preprocess", "uninstall",
]

_present(_sys.modules[__name__])
del annotations
