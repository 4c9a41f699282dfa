# SPDX-License-Identifier: BSD-3-Clause
"""The fixtures of all tests in this folder."""

from fixtures import etstream, model, run_bundle

__all__ = ["etstream", "model", "run_bundle"]
