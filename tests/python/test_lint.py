# SPDX-License-Identifier: BSD-3-Clause
"""ruff and mypy --strict have nothing to say of the package and the examples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import etstream
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_ruff_finds_nothing() -> None:
    run = [sys.executable, "-m", "ruff", "check", "--no-cache", "src/python", "examples"]
    said = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    assert said.returncode == 0, said.stdout


def test_mypy_finds_nothing(tmp_path: Path) -> None:
    # mypy reads the installed package, as that has the extension's stub. It does not follow ExecuTorch and torch, whose
    # types differ by release and take minutes to read.
    shutil.copytree(Path(etstream.__file__).parent, tmp_path / "etstream")
    options = ["--config-file", ROOT / "pyproject.toml", f"--cache-dir={tmp_path}"]
    run = [sys.executable, "-m", "mypy", *options, "--no-site-packages", "--ignore-missing-imports", "-p", "etstream"]
    said = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert said.returncode == 0, said.stdout


SKIPPED = {
    "test": "import pytest\ndef test_it(): pytest.skip('for no reason')\n",
    "mark": "import pytest\n@pytest.mark.skipif(True, reason='for no reason')\ndef test_it(): pass\n",
    "file": "import pytest\npytest.importorskip('no_such_module', reason='for no reason')\n",
}


@pytest.mark.parametrize("way", SKIPPED)
def test_what_is_skipped_has_failed(way: str, tmp_path: Path) -> None:
    (tmp_path / "test_skipped.py").write_text(SKIPPED[way])
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "skips_fail", tmp_path]
    plugin = {"PYTHONPATH": str(ROOT / "tests" / "peer")}
    said = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **plugin})
    assert said.returncode != 0 and "was skipped: " in said.stdout and "for no reason" in said.stdout, said.stdout
