# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests with etstream in the place of ExecuTorch's serialization, as a plugin of pytest.

    PYTHONPATH=tests/python python -m pytest -p installed_etstream --import-mode=importlib TESTS...

At the end it prints how often etstream was called for the functions that it stands in for, and how often it left a call
to ExecuTorch.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import etstream.executorch
import pytest
from etstream import _core
from etstream.executorch._patches import Patch, PatchSet

_calls: Counter[str] = Counter()
_OURS = ("plan_pte_file", "plan_ptd_file", "plan_bundle", "BundledProgramFile")
_EXECUTORCHS = {
    "serialize_pte_binary": "executorch.exir._serialize._program",
    "serialize": "executorch.extension.flat_tensor.serialize.serialize:FlatTensorSerializer",
}


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        _calls[name] += 1
        return function(*arguments, **options)

    return call


_executorchs_counted = PatchSet(
    "the test",
    lambda: [
        Patch(owner, name, functools.partial(_counted, name)) for name, owner in _EXECUTORCHS.items()
    ],
)


def pytest_configure() -> None:
    for name in _OURS:
        setattr(_core, name, _counted(name, getattr(_core, name)))
    _executorchs_counted.__enter__()
    etstream.executorch.install()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    calls = {name: _calls[name] for name in (*_OURS, *_EXECUTORCHS)}
    terminalreporter.line("etstream: " + json.dumps(calls))


def pytest_unconfigure() -> None:
    etstream.executorch.uninstall()
    _executorchs_counted.__exit__()
