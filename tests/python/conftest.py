# SPDX-License-Identifier: BSD-3-Clause
"""The fixtures of all tests in this folder, which finds modules of the tests against ExecuTorch too."""

from fixtures import model

__all__ = ["model"]
