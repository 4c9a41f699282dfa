# SPDX-License-Identifier: BSD-3-Clause
"""The example that exports a Llama, as a user runs it."""

from __future__ import annotations

import json
import re
import shutil
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
    # The weights take 316 MiB, and 50 in four bits; the embedding is not quantized.
    assert (tmp_path / "llama.bpte").stat().st_size > 70 << 20
    for phase in ("quantize", "export", "lower", "to_executorch", "bundle"):
        assert peaks[phase] - peaks["imports"] <= 128 << 20, run.stderr
    assert etstream.verify(tmp_path / "llama.bpte")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["llama.bpte", "profile.json"]


def test_help_is_all_that_is_done_where_it_is_asked_for(tmp_path: Path) -> None:
    names = ["fat_model.py", "make_example.py"]
    # One process runs all, as each takes seconds to import torch.
    script = """
import runpy, sys
for name in sys.argv[1:]:
    for argument in ("--help", "--nonsense"):
        sys.argv = [name, argument]
        try:
            runpy.run_path(name, run_name="__main__")
        except SystemExit as error:
            print("exit code", error.code)
"""
    for name in names:
        shutil.copy(EXAMPLES / name, tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", script, *names]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert ran.returncode == 0, ran.stderr
    said = iter(ran.stdout.split("exit code "))
    for name, before in zip(names, ("", "2\n"), strict=True):
        assert next(said).startswith(f"{before}usage: {name} [-h]")
        assert next(said) == "0\n"
        assert re.search(rf"^{re.escape(name)}: error: .*--nonsense", ran.stderr, re.MULTILINE)
    assert list(said) == ["2\n"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


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
