# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest under which a test that is skipped has failed: against ExecuTorch there is none that may be."""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What is skipped shows nothing, and is not to look as if it did."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"the test was skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same of a whole file."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"the file was skipped: {report.longrepr}"
    return report
