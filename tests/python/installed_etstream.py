# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest that runs tests with etstream in the place of ExecuTorch's serialization.

    PYTHONPATH=tests/python python -m pytest -p installed_etstream --import-mode=importlib TESTS...

Says at the end how often etstream was called for what it stands in for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import etstream.executorch
import pytest
from etstream import _core

_calls: Counter[str] = Counter()
_COUNTED = ("plan_program", "plan_tensor_data", "plan_bundle", "BundledProgramFile")


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        _calls[name] += 1
        return function(*arguments, **options)

    return call


def pytest_configure() -> None:
    for name in _COUNTED:
        setattr(_core, name, _counted(name, getattr(_core, name)))
    etstream.executorch.install()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.line("etstream: " + " ".join(f"{name}={_calls[name]}" for name in _COUNTED))


def pytest_unconfigure() -> None:
    etstream.executorch.uninstall()
