# SPDX-License-Identifier: BSD-3-Clause
"""Lets skipped tests fail: a plugin of pytest for the tests against ExecuTorch, of which none may be skipped."""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Lets a skipped test fail, as it shows nothing and must not look as if it did."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"the test was skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Lets a skipped file fail."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"the file was skipped: {report.longrepr}"
    return report
