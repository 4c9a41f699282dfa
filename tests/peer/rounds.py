# SPDX-License-Identifier: BSD-3-Clause
"""Says how many rounds the random tests take, each with seeds of its own."""

import os

ROUNDS = int(os.environ.get("ETSTREAM_TEST_ROUNDS", "1"))
