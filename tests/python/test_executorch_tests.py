# SPDX-License-Identifier: BSD-3-Clause
"""Runs ExecuTorch's own tests of the functions that etstream stands in for, from its wheel: they pass with etstream in
place.

Each also passes without etstream. Tests that take long or write no file are left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import executorch

TESTS = (
    "devtools/bundled_program",
    "devtools/etdump/tests/serialize_test.py",
    "devtools/pte_tool/tests",
    "exir/_serialize/test",
    "extension/flat_tensor/test",
    "backends/xnnpack/test/serialization",
    "exir/backend/test/test_backend_with_named_data_map.py",
)


def test_executorchs_own_tests_pass_with_etstream_in_place(tmp_path: Path) -> None:
    folder = Path(list(executorch.__path__)[0])
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider"]
    command += ["-p", "installed_etstream", "--import-mode=importlib", f"--rootdir={tmp_path}"]
    command += ["-o", "python_files=test_*.py *_test.py", "--durations=5"]
    run = subprocess.run(
        [*command, *(str(folder / test) for test in TESTS)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    print(run.stdout[-1500:])
    outcome = re.search(r"^(\d+) passed.* in .*$", run.stdout, re.MULTILINE)
    assert outcome
    assert not re.search("skipped|failed|error|deselected", outcome[0]), outcome[0]
    assert int(outcome[1]) == 135
    line = next(line for line in run.stdout.splitlines() if line.startswith("etstream: "))
    calls = json.loads(line.removeprefix("etstream: "))
    # These calls have alignments that are no powers of two, programs that are to be refused, and another version's
    # number.
    assert calls.pop("serialize_pte_binary") == 5
    assert calls.pop("serialize") == 1
    assert all(count > 0 for count in calls.values()), calls
