# SPDX-License-Identifier: BSD-3-Clause
"""Provides what the tests of the Python module share: files to work with, and the command that comes with it."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures import model
from skips_fail import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["command", "cases", "model", "program", "pytest_make_collect_report", "pytest_runtest_makereport"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def command() -> Command:
    """Returns a function that runs the command that the wheel installed, with arguments; its output is text."""
    binary = Path(sysconfig.get_path("scripts"), "etstream")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture(scope="session")
def program() -> Path:
    """Returns a small program (.pte), with constants in a segment."""
    return EXAMPLES / "model.pte"


@pytest.fixture(scope="session")
def cases() -> Path:
    """Returns the test cases of the small program."""
    return EXAMPLES / "cases.json"
