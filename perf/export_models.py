# SPDX-License-Identifier: BSD-3-Clause
"""Exports four models with ExecuTorch's portable kernels and bundles them, as ExecuTorch does and with etstream.

    python export_models.py FOLDER

The models have random weights. Each way has a process of its own, which is measured phase by phase; the first phase
includes the imports.
"""

from __future__ import annotations

import argparse
import filecmp
import sys
from pathlib import Path

from measure import MIB
from phase_table import phases, show_phases
from table import show_limit, yes

MODELS = ("MobileNetV2", "ResNet-50", "wav2letter", "DeiT tiny")
WAYS = ("executorch", "etstream")
MOST = 16 * MIB
WORKER = Path(__file__).with_name("model_worker.py")


def export_both(model: str, folder: Path) -> bool:
    """Returns whether every target was reached."""
    outputs = {way: folder / f"{way}.bpte" for way in WAYS}
    found = {
        way: phases.profiled([sys.executable, str(WORKER), way, model, str(output)])
        for way, output in outputs.items()
    }
    same = filecmp.cmp(*outputs.values(), shallow=False)
    show_phases(f"{model}, a bundle of {outputs['etstream'].stat().st_size / MIB:.0f} MiB", found)
    print(f"same bytes: {yes(same)}")
    for output in outputs.values():
        output.unlink()
    (bundling,) = (phase.growth for phase in found["etstream"] if phase.name == "bundle")
    return show_limit("growth as it is bundled", bundling / MIB, MOST / MIB, "MiB") and same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    reached = [export_both(model, folder) for model in MODELS]
    print("\nall targets reached" if all(reached) else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
