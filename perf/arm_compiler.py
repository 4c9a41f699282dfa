# SPDX-License-Identifier: BSD-3-Clause
"""Measures ExecuTorch's Arm compiler, as it is and with etstream, phase by phase.

    python arm_compiler.py FOLDER

It compiles linear layers of 256 MiB with --bundleio, which writes an ETRecord too. Each way has a process of its own.
"""

from __future__ import annotations

import argparse
import filecmp
import sys
from pathlib import Path

from measure import MIB
from phase_table import Phase, phases, show_phases
from table import show_limit, yes

import arm_models  # The module lies in the folder that phase_table adds to the path.

TARGETS = {"TOSA-1.0+FP": [], "TOSA-1.0+INT": ["-q"], "ethos-u55-128": ["-q"]}
WAYS = ("executorch", "etstream")
SAVE = 16 * MIB
WORKER = Path(arm_models.__file__).with_name("arm_worker.py")


def compile_both(model: Path, target: str, folder: Path) -> bool:
    """Returns whether every target was reached."""
    found: dict[str, list[Phase]] = {}
    for way in WAYS:
        output = folder / f"{way}.bpte"
        arguments = ["-m", str(model), "-d", "--bundleio", "-t", target, *TARGETS[target], "-o", str(output)]
        found[way] = phases.profiled([sys.executable, str(WORKER), way, *arguments])
    show_phases(f"Arm compiler: {target}, 4x Linear(4096)", found)
    same = filecmp.cmp(folder / "executorch.bpte", folder / "etstream.bpte", shallow=False)
    print(f"same bytes: {yes(same)}")
    for way in WAYS:
        (folder / f"{way}.bpte").unlink()
        (folder / f"{way}_etrecord.bin").unlink()
    growth = max(phase.growth for phase in found["etstream"] if phase.name in ("save", "etrecord"))
    return show_limit("growth in save and etrecord", growth / MIB, SAVE / MIB, "MiB") and same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    model = arm_models.write_linears(folder)
    reached = [compile_both(model, target, folder) for target in TARGETS]
    print("\nall targets reached" if all(reached) else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
