# SPDX-License-Identifier: BSD-3-Clause
"""Provides the fixtures of all tests in this folder."""

from fixtures import etstream, model, module_outputs, run_bundle
from skips_fail import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["etstream", "model", "module_outputs", "pytest_make_collect_report", "pytest_runtest_makereport", "run_bundle"]
