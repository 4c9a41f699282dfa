# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest that runs tests with etstream in the place of ExecuTorch's serialization.

    PYTHONPATH=tests/python python -m pytest -p installed_etstream --import-mode=importlib TESTS...

Says at the end how often etstream was called for what it stands in for, and how often it left that to
ExecuTorch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import etstream.executorch
import pytest
from etstream import _core
from etstream.executorch import _programs

_calls: Counter[str] = Counter()
_COUNTED = {
    _core: ("plan_program", "plan_tensor_data", "plan_bundle", "BundledProgramFile"),
    _programs: ("_executorchs_serialize_pte_binary", "_executorchs_serialize_tensor_data"),
}


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        _calls[name] += 1
        return function(*arguments, **options)

    return call


def pytest_configure() -> None:
    for module, names in _COUNTED.items():
        for name in names:
            setattr(module, name, _counted(name, getattr(module, name)))
    etstream.executorch.install()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    calls = {name: _calls[name] for names in _COUNTED.values() for name in names}
    terminalreporter.line("etstream: " + json.dumps(calls))


def pytest_unconfigure() -> None:
    etstream.executorch.uninstall()
