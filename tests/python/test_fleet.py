# SPDX-License-Identifier: BSD-3-Clause
"""The example for many models, on a real cluster of two workers."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLES

import etstream

COUNT = 6


@pytest.fixture
def jobs(tmp_path: Path) -> list[dict[str, Any]]:
    """Returns jobs of each kind, over files of their own; the program of the last one is damaged."""
    for file in [*EXAMPLES.glob("*.npy"), EXAMPLES / "cases.json"]:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    found: list[dict[str, Any]] = []
    for i in range(COUNT):
        (tmp_path / f"{i}.pte").write_bytes((EXAMPLES / "model.pte").read_bytes())
        found.append({"do": "bundle", "program": f"{i}.pte", "output": f"{i}.bpte"})
        found[-1]["cases"] = "other.json" if i == 3 else str(EXAMPLES / "cases.json")
        found.append({"do": "pte", "program": f"{i}.pte", "output": f"lean{i}.pte"})
        found[-1]["constants_to"] = f"lean{i}.ptd"
    etstream.bundle(tmp_path / "0.pte", EXAMPLES / "cases.json", tmp_path / "given.bpte")
    found.append({"do": "convert", "bundle": "given.bpte", "output": "converted.bpte", "to": "segmented"})
    (tmp_path / "cases.json").rename(tmp_path / "other.json")
    weights = {"weight": etstream.Tensor("float32", [2], bytes(8))}
    etstream.ptd(weights, tmp_path / "model.safetensors", to="safetensors")
    index = {"weight_map": {"weight": "model.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    found.append({"do": "ptd", "inputs": "model.safetensors.index.json", "output": "weights.ptd"})
    (tmp_path / "damaged.pte").write_bytes((EXAMPLES / "model.pte").read_bytes()[:-1])
    found.append({"do": "pte", "program": "damaged.pte", "output": "none.pte"})
    (tmp_path / "jobs.json").write_text(json.dumps(found))
    return found


def start(folder: Path) -> subprocess.Popen[str]:
    script = [sys.executable, EXAMPLES / "fleet.py", folder / "jobs.json", folder / "manifest.json"]
    arguments = [*script, "--workers", "2", "--memory-limit", "400MiB"]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(folder: Path, code: int) -> dict[str, str]:
    """Returns what a run prints about each output."""
    with start(folder) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    return dict(line.split(": ", 1) for line in out.splitlines())


def workers_of(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(") ", 1)[1].split()
            if int(fields[1]) == parent and "spawn_main" in (folder / "cmdline").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_fleet(tmp_path: Path, jobs: list[dict[str, Any]]) -> None:
    outputs = [job["output"] for job in jobs]
    # First a worker is killed at work, then the whole run.
    with start(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        workers = workers_of(process.pid)
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        for _ in range(len(jobs) // 2):
            assert process.stdout.readline()
        process.kill()
        process.communicate()
    listed = json.loads((tmp_path / "manifest.json").read_text())
    done_before = {name for name, entry in listed.items() if "outputs" in entry}
    assert len(jobs) // 2 <= len(done_before) < len(jobs)

    # The next run does the rest.
    said = run(tmp_path, code=1)
    assert said.pop("none.pte").startswith("CorruptError: ") and not (tmp_path / "none.pte").exists()
    assert set(said) == set(outputs[:-1])
    assert {name for name, state in said.items() if state == "was done"} == done_before - {"none.pte"}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert list(manifest) == outputs
    for job in jobs[:-1]:
        entry = manifest[job["output"]]
        assert entry["job"] == job and len(entry["outputs"]) == 1 + ("constants_to" in job)
        for name, output in entry["outputs"].items():
            content = (tmp_path / name).read_bytes()
            assert output == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        assert etstream.verify(tmp_path / job["output"])

    # Files that were lost, changed or damaged since are made again, and no others.
    (tmp_path / "0.bpte").unlink()
    (tmp_path / "lean1.ptd").write_bytes(bytes((tmp_path / "lean1.ptd").stat().st_size))
    os.utime(tmp_path / "2.pte")
    os.utime(tmp_path / "scores_0.npy")  # a file of the cases of 3.bpte
    os.utime(tmp_path / "model.safetensors")
    (tmp_path / "damaged.pte").write_bytes((EXAMPLES / "model.pte").read_bytes())
    said = run(tmp_path, code=0)
    again = {name for name, state in said.items() if state == "done"}
    assert again == {"0.bpte", "lean1.pte", "2.bpte", "lean2.pte", "3.bpte", "weights.ptd", "none.pte"}
    assert set(said.values()) == {"done", "was done"} and set(said) == set(outputs)
    assert not list(tmp_path.glob(".*.tmp"))
