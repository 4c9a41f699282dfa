# SPDX-License-Identifier: BSD-3-Clause
"""XNNPACK's graphs of an operator and of a MobileNetV2, from JSON and to JSON: etstream against a process of flatc a
graph.

A call of the library is what a graph more takes the command, which loads the schema once; reading the graph and
writing what becomes of it are in it.

    python flatc.py FOLDER [--quick]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import measure
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir._serialize import _flatbuffer
from inputs import MODELS
from measure import Time
from table import show_limit

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))
from flatc_calls import XNNPACK, recorded  # noqa: E402

ETSTREAM = os.environ["ETSTREAM"]
GRAPHS = 1000
LONGEST_CALL = 200e-6
MODES = {"compile": ["--binary"], "decompile": ["--json", "--defaults-json", "--strict-json"]}
SUFFIXES = {"compile": ".json", "decompile": ".bin"}


def make_graph(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], folder: Path) -> dict[str, Path]:
    """The files that the largest of the model's graphs is read from."""
    with recorded(folder) as calls:
        graph = torch.export.export(model.eval(), inputs)
        to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()]).to_executorch()
    largest = max(calls, key=lambda call: len(call.output))
    (largest.folder / "schema.bin").write_bytes(largest.output)
    return {mode: largest.folder / f"schema{suffix}" for mode, suffix in SUFFIXES.items()}


def compare(mode: str, graph: Path, folder: Path, rounds: int, longest: float | None) -> bool:
    copies = [folder / f"{i}{graph.suffix}" for i in range(GRAPHS)]
    for copy in copies:
        shutil.copy(graph, copy)
    flatc = [_flatbuffer._get_flatc_path(), *MODES[mode]]
    ours = [ETSTREAM, mode, "--no-sync", *MODES[mode]]

    def timed(command: list[str], files: list[Path]) -> Callable[[], Time]:
        arguments = [*command, "-o", str(folder / "out"), str(XNNPACK), "--", *map(str, files)]
        if mode == "compile" and command is flatc:
            arguments.remove("--")  # which flatc has before binary files alone
        return lambda: measure.timed(arguments)

    (folder / "out").mkdir()
    contenders = {
        "etstream": timed(ours, copies[:1]),
        "flatc": timed(flatc, copies[:1]),
        "etstream, all": timed(ours, copies),
    }
    times = measure.rounds(rounds, contenders)
    seconds = {tool: measure.median(runs).wall for tool, runs in times.items()}
    call = (seconds["etstream, all"] - seconds["etstream"]) / (GRAPHS - 1)
    low, mid, high = measure.ratios(times["flatc"], times["etstream"])
    print(f"\n{mode} a graph of {graph.stat().st_size / 1024:.0f} KiB ({graph.suffix})")
    print(f"a process of flatc {1e3 * seconds['flatc']:.1f} ms, of etstream {1e3 * seconds['etstream']:.1f} ms: "
          f"{mid:.2f} ({low:.2f} to {high:.2f}) of its time; {seconds['flatc'] / call:.0f} calls")
    what = f"a call of the library to {mode}"
    if longest is None:
        print(f"{what}: {1e6 * call:.0f} us")
        return True
    return show_limit(what, 1e6 * call, 1e6 * longest, "us")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="three rounds")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    reached = True
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        models = {
            "operator": (torch.nn.Linear(64, 64), (torch.randn(1, 64),), LONGEST_CALL),
            "MobileNetV2": (*MODELS["MobileNetV2"](), None),
        }
        for name, (model, inputs, longest) in models.items():
            for mode, graph in make_graph(model, inputs, Path(scratch) / f"{name}-calls").items():
                folder = Path(scratch) / f"{name}-{mode}"
                folder.mkdir()
                reached = compare(mode, graph, folder, 3 if arguments.quick else 11, longest) and reached
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
