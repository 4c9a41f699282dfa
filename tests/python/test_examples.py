# SPDX-License-Identifier: BSD-3-Clause
"""The example that exports a Llama, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import etstream
from conftest import EXAMPLES


def test_a_llama_is_exported_bundled_and_verified_within_limits(tmp_path: Path) -> None:
    script = [sys.executable, "-W", "ignore", EXAMPLES / "export_llama.py", "-o", "llama.bpte"]
    run = subprocess.run(
        [Path(sysconfig.get_path("scripts"), "etstream"), "profile", "--json", tmp_path / "profile.json", "--", *script],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert "forward, case 0: passed" in run.stdout
    phases = json.loads((tmp_path / "profile.json").read_text())["phases"]
    peaks = {phase["name"]: phase["peak"]["anonymous"] for phase in phases}
    # The weights are 316 MiB, and 50 in four bits; the embedding is not quantized.
    assert (tmp_path / "llama.bpte").stat().st_size > 70 << 20
    for phase in ("quantize", "export", "lower", "to_executorch", "bundle"):
        assert peaks[phase] - peaks["imports"] <= 128 << 20, run.stderr
    assert etstream.verify(tmp_path / "llama.bpte")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["llama.bpte", "profile.json"]


def test_a_model_for_several_backends_has_its_weights_once_and_runs(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", EXAMPLES / "fat_model.py", tmp_path],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "xnnpack and portable ran" in run.stdout
    # A program that has all its weights takes 5.3 MB.
    assert (tmp_path / "model.ptd").stat().st_size < 5.4e6
    assert (tmp_path / "model.fat").stat().st_size < 20_000
    assert etstream.verify(tmp_path / "model.fat")
