# SPDX-License-Identifier: BSD-3-Clause
"""Provides what tests against ExecuTorch share: the command under test and the exported models."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import executorch
import pytest
from command import Etstream
from models import CachedModel, cached
from run_bundle import RunBundle, build


@pytest.fixture(scope="session")
def etstream() -> Etstream:
    """Returns the command that ETSTREAM names; ends the whole run if there is none."""
    name = os.environ.get("ETSTREAM")
    if not name:
        pytest.exit("set ETSTREAM to the etstream command to be tested", returncode=2)
    binary = Path(name).resolve()
    if not os.access(binary, os.X_OK):
        pytest.exit(f"ETSTREAM={name}: no such command", returncode=2)
    return Etstream(binary)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CachedModel]:
    """Returns a function that returns a model by name, exported at its first use.

    Exports are kept for later runs if ETSTREAM_PEER_CACHE names a folder.
    """
    folder = os.environ.get("ETSTREAM_PEER_CACHE")
    cache = Path(folder) if folder else tmp_path_factory.mktemp("models")
    return lambda name: cached(name, cache)


@pytest.fixture(scope="session")
def run_bundle() -> RunBundle:
    """Returns the C++ program that runs bundles, built at its first use."""
    return build()


@pytest.fixture(scope="session")
def module_outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a program on ExecuTorch's C++ runtime, see module_outputs.cpp, and returns its path."""
    sdk = Path(executorch.__path__[0])
    program = tmp_path_factory.mktemp("cpp") / "module_outputs"
    # Kernels and backends register themselves, though nothing calls them.
    libraries = ("executorch", "executorch_kernels_optimized", "executorch_backend_xnnpack", "executorch_threadpool")
    command = ["c++", "-std=c++17", "-w", "-DC10_USING_CUSTOM_GENERATED_MACROS", f"-I{sdk}/include"]
    command += [f"-I{sdk}/include/executorch/runtime/core/portable_type/c10"]
    command += [str(Path(__file__).with_name("module_outputs.cpp")), "-o", str(program)]
    command += [f"-L{sdk}/lib", f"-Wl,-rpath,{sdk}/lib,--no-as-needed", *(f"-l{name}" for name in libraries)]
    subprocess.run(command, check=True)
    return program
