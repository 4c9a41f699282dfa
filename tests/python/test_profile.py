# SPDX-License-Identifier: BSD-3-Clause
"""Profiles the phases of Python programs, and the phases that ExecuTorch has without their knowing."""

from __future__ import annotations

import json
import mmap
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any

import pytest
from etstream.profile import phase

ETSTREAM = Path(sysconfig.get_path("scripts"), "etstream")
SPIKE = 256 << 20
PHASES = f"""
import mmap, os, threading
from etstream.profile import phase

def spike():
    taken = mmap.mmap(-1, {SPIKE}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)  # MAP_POPULATE
    taken.close()

with phase("outer"):
    with phase("spike"):
        spike()
    with phase("quiet\\nline"):
        pass
try:
    with phase("raises"):
        raise KeyError
except KeyError:
    pass
with phase("of the first thread"):
    endless = phase("of another")
    other = threading.Thread(target=endless.__enter__)
    other.start()
    other.join()
os._exit(0)
"""
USES = """
import os, threading, time
from etstream.profile import phase

def compute():
    while time.thread_time() < 0.3:
        pass

descriptors = os.listdir("/proc/self/fd")
with phase("uses"):
    with open("/dev/zero", "rb", buffering=0) as zeros, open(os.devnull, "wb", buffering=0) as nothing:
        nothing.write(zeros.read(3 << 20) + bytes(4 << 20))
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
assert os.listdir("/proc/self/fd") == descriptors
"""
EXPORT = """
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]).eval()
exported = torch.export.export(model, (torch.ones(1, 64),))
program = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()
program.save("model.pte")
"""

LOW_MEMORY = """
import time
from etstream.executorch import low_memory_export

with low_memory_export(spill="/var/tmp"):
    block = b"1" * (200 << 20)
    time.sleep(0.3)
"""
# A module that loads models as that of transformers does.
MODELING = """
class PreTrainedModel:
    @classmethod
    def from_pretrained(cls, folder):
        return cls.__name__, folder

class Llama(PreTrainedModel):
    pass
"""


def profile(folder: Path, *options: str, script: str) -> dict[str, Any]:
    command = [ETSTREAM, "profile", "--json", "profile.json", *options, "--", sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "profile.json").read_text())
    return found


def test_phases_have_their_spikes_and_lie_in_each_other(tmp_path: Path) -> None:
    found = profile(tmp_path, script=PHASES)
    assert found["notes"] == []
    phases = {each["name"]: each for each in found["phases"]}
    assert [(each["name"], each["depth"], each["ended"]) for each in found["phases"]] == [
        ("outer", 0, True),
        ("spike", 1, True),
        ("quiet line", 1, True),
        ("raises", 0, True),
        ("of the first thread", 0, True),
        ("of another", 0, False),
    ]
    anonymous = {name: each["peak"]["anonymous"] for name, each in phases.items()}
    assert min(anonymous["outer"], anonymous["spike"]) >= SPIKE
    assert max(anonymous["quiet line"], anonymous["raises"]) < SPIKE / 2


def test_a_phase_has_what_all_threads_of_its_process_used(tmp_path: Path) -> None:
    (found,) = profile(tmp_path, script=USES)["phases"]
    assert 3 << 20 <= found["read"] < 4 << 20 and 7 << 20 <= found["written"] < 8 << 20
    assert 0.3 <= found["cpu_seconds"] < 3


def test_shared_memory_is_told_as_anonymous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv("ETSTREAM_PROFILE", str(log))
    shared = mmap.mmap(-1, SPIKE)
    shared.write(bytes(SPIKE))
    with phase("shared"):
        pass
    resident, anonymous, file = map(int, log.read_text().split()[5:8])
    assert anonymous >= SPIKE and file + anonymous == resident


def test_executorchs_steps_are_phases_of_a_script_that_knows_nothing_of_them(tmp_path: Path) -> None:
    found = profile(tmp_path, "--executorch", script=EXPORT)
    depths = {each["name"]: each["depth"] for each in reversed(found["phases"])}
    expected = {
        "export": 0,
        "to_edge_transform_and_lower": 0,
        "preprocess for XnnpackBackend": 2,
        "to_executorch": 0,
        "emit": 1,
        "save": 0,
    }
    assert expected.items() <= depths.items()
    alone = tmp_path / "alone"
    alone.mkdir()
    subprocess.run([sys.executable, "-W", "ignore", "-c", EXPORT], check=True, timeout=300, cwd=alone)
    assert (tmp_path / "model.pte").read_bytes() == (alone / "model.pte").read_bytes()


def test_another_sitecustomize_is_still_imported(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.customized = True")
    script = "assert customized, 'sitecustomize'"
    run = [ETSTREAM, "profile", "--executorch", "--", sys.executable, "-c", script]
    subprocess.run(run, check=True, timeout=60, env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"})


def test_blocks_of_a_low_memory_export_are_spilled(tmp_path: Path) -> None:
    found = profile(tmp_path, script=LOW_MEMORY)
    assert abs(found["spilled"] - (200 << 20)) < 1 << 20
    assert found["peak"]["anonymous"] < 400 << 20  # torch alone takes 280 MiB


def test_loading_a_model_of_transformers_is_a_phase(tmp_path: Path) -> None:
    package = tmp_path / "transformers"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "modeling_utils.py").write_text(MODELING)
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom transformers.modeling_utils import Llama\n"
    found = profile(tmp_path, "--executorch", script=script + "assert Llama.from_pretrained('folder') == ('Llama', 'folder')")
    assert [each["name"] for each in found["phases"]] == ["load"]


@pytest.mark.parametrize(("name", "error"), [("", ValueError), (" \n", ValueError), (3, TypeError), (None, TypeError)])
def test_a_phase_needs_a_name(name: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^phase\(name\): expected the name of a phase"):
        phase(name)


def test_where_nobody_profiles_a_phase_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for log in (None, "/no/such/log"):
        monkeypatch.delenv("ETSTREAM_PROFILE", raising=False)
        if log is not None:
            monkeypatch.setenv("ETSTREAM_PROFILE", log)
        with phase("nothing"):
            threads = [threading.Thread(target=phase("in a thread").__enter__) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
