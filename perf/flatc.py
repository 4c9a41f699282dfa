# SPDX-License-Identifier: BSD-3-Clause
"""Measures etstream against a process of flatc for each graph, from JSON and to JSON, on XNNPACK's graphs of an
operator and of a MobileNetV2.

    python flatc.py FOLDER [--quick]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir._serialize import _flatbuffer
from inputs import MODELS
from table import show_limit

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))
from flatc_calls import XNNPACK, recorded  # noqa: E402

ETSTREAM = os.environ["ETSTREAM"]
ROOT = Path(__file__).resolve().parents[1]
LONGEST_CALL = 200e-6
MODES = {"compile": ["--binary"], "decompile": ["--json", "--defaults-json", "--strict-json"]}
SUFFIXES = {"compile": ".json", "decompile": ".bin"}


def make_graph(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], folder: Path) -> dict[str, Path]:
    """Returns the files that the largest of the model's graphs is read from."""
    with recorded(folder) as calls:
        graph = torch.export.export(model.eval(), inputs)
        to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()]).to_executorch()
    largest = max(calls, key=lambda call: len(call.output))
    (largest.folder / "schema.bin").write_bytes(largest.output)
    return {mode: largest.folder / f"schema{suffix}" for mode, suffix in SUFFIXES.items()}


def build(program: Path) -> None:
    """Builds a program with the library beside the command."""
    library = Path(ETSTREAM).parents[1]
    compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", f"-I{ROOT}/include", f"-I{library}/include"]
    libraries = [library / "src" / "libetstream.a", "-lflatbuffers", "-lcrypto", "-lz", "-lzstd"]
    subprocess.run([*compiler, ROOT / "perf" / "flatc_call.cpp", *libraries, "-o", program], check=True)


def compare(mode: str, graph: Path, folder: Path, program: Path, rounds: int, longest: float | None) -> bool:
    arguments = [*MODES[mode], "-o", str(folder), str(XNNPACK), *(["--"] if mode == "decompile" else []), str(graph)]
    times = measure.rounds(
        rounds,
        {
            "flatc": lambda: measure.timed([_flatbuffer._get_flatc_path(), *arguments]),
            "etstream": lambda: measure.timed([ETSTREAM, mode, "--no-sync", *arguments]),
        },
    )
    call = 1e-6 * float(subprocess.check_output([program, mode, XNNPACK, graph]))
    flatc, etstream = (measure.median(times[tool]).wall for tool in ("flatc", "etstream"))
    print(f"\n{mode} a graph of {graph.stat().st_size / 1024:.0f} KiB ({graph.suffix})")
    print(f"a process of flatc {1e3 * flatc:.1f} ms, of etstream {1e3 * etstream:.1f} ms; {flatc / call:.0f} calls")
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
    reached, rounds = True, 3 if arguments.quick else 11
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        program = Path(scratch) / "flatc_call"
        build(program)
        models = {
            "operator": (torch.nn.Linear(64, 64), (torch.randn(1, 64),), LONGEST_CALL),
            "MobileNetV2": (*MODELS["MobileNetV2"](), None),
        }
        for name, (model, inputs, longest) in models.items():
            for mode, graph in make_graph(model, inputs, Path(scratch) / f"{name}-calls").items():
                folder = Path(scratch) / f"{name}-{mode}"
                folder.mkdir()
                reached = compare(mode, graph, folder, program, rounds, longest) and reached
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
