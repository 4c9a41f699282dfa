# SPDX-License-Identifier: BSD-3-Clause
"""Provides what tests against ExecuTorch share: the command under test and the exported models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

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
