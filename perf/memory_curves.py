# SPDX-License-Identifier: BSD-3-Clause
"""Draws the pictures in docs/profile.md: the memory of exports over time, each in several ways, as `etstream profile`
sees it.

    ETSTREAM=PATH python memory_curves.py [--only NAME]... SCRATCH_FOLDER PICTURES_FOLDER

Each way is a command of its own, one after the other. Writes NAME.svg for each picture, and prints the peaks and the
phases that hold them. It needs the environment that tests/arm/install makes, and the package of tests/python/install.
It also needs 8 GiB on the disk, and 16 GiB of memory for the bundle through JSON.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot

import export_paths
import inputs
from arm_compiler import WORKER as ARM_WORKER
from arm_compiler import arm_models
from profiles import ETSTREAM, MIB, Profiled, profiled

ROOT = Path(__file__).resolve().parent
MOST_POINTS = 400
COLORS = ("#b4512f", "#3b6fd4", "#5d8a3c")


@dataclass(frozen=True)
class Picture:
    """A picture of several ways, by their names; `prepare` makes the files that they read, in their folder."""

    name: str
    title: str
    prepare: Callable[[Path], None]
    ways: Mapping[str, Sequence[str]]
    is_logarithmic: bool = False


def script(name: str, *arguments: str) -> Sequence[str]:
    return [sys.executable, str(ROOT / name), *arguments]


def write_checkpoint(folder: Path) -> None:
    export_paths.write_inputs(folder, export_paths.SHAPES["81M"], wide=1, sparse=False)


def write_linears(folder: Path) -> None:
    arm_models.write_linears(folder)


def write_resnet(folder: Path) -> None:
    made = inputs.exported("ResNet-50", folder / "inputs")
    (folder / "resnet").symlink_to(made.folder)


def arm(way: str) -> Sequence[str]:
    arguments = ["-m", "linears.py", "-d", "--bundleio", "-t", "TOSA-1.0+INT", "-q", "-o", "output.bpte"]
    return [sys.executable, str(ARM_WORKER), way, *arguments]


def executorch_bundle(way: str) -> Sequence[str]:
    return script("executorch_writer.py", way, "resnet/model.pte", "resnet/cases.pt", "output.bpte")


def export(name: str) -> Sequence[str]:
    return next(one for one in export_paths.EXPORTS if one.name == name).command("plain")


PICTURES = (
    Picture(
        "memory-export-llama",
        "export_llama, 81 M parameters, XNNPACK, 8da4w, 4-bit embeddings",
        write_checkpoint,
        {
            "plain": export("export_llama XNNPACK 8da4w"),
            "etstream run": [ETSTREAM, "run", "--spill", ".", "--", *export("export_llama XNNPACK 8da4w")],
        },
    ),
    Picture(
        "memory-low-memory-export",
        "transformers, 81 M parameters, XNNPACK, float32",
        write_checkpoint,
        {
            "plain": script("export_workloads.py", "llm", "fp32:xnnpack", "checkpoint", "output.pte"),
            "low_memory_export()": script(
                "export_workloads.py", "--low", "llm", "fp32:xnnpack", "checkpoint", "output.pte"
            ),
        },
    ),
    Picture(
        "memory-arm-compiler",
        "Arm compiler, TOSA-1.0+INT, 256 MiB of weights, --bundleio with its ETRecord",
        write_linears,
        {"ExecuTorch": arm("executorch"), "etstream": arm("etstream")},
    ),
    Picture(
        "memory-bundle",
        "A bundle of ResNet-50, 98 MiB (imports of torch and ExecuTorch included)",
        write_resnet,
        {
            "ExecuTorch, JSON and flatc": executorch_bundle("json"),
            "ExecuTorch, its serializer": executorch_bundle("direct"),
            "etstream bundle": [
                ETSTREAM, "bundle", "resnet/model.pte", "--cases", "resnet/cases.json", "-o", "output.bpte",
            ],
        },
        is_logarithmic=True,
    ),
)  # fmt: skip


def told(profile: Profiled) -> str:
    phase = f" in {profile.phase_of_peak}" if profile.phase_of_peak else ""
    return f"{profile.anonymous / MIB:,.0f} MiB{phase}"


def thinned(report: Mapping[str, Any], what: str) -> tuple[list[float], list[float]]:
    """Returns seconds and MiB; of neighbours that fall on one point, the most."""
    time, values = report["samples"]["time"], report["samples"][what]
    step = max(1, len(time) // MOST_POINTS)
    starts = range(0, len(time), step)
    return [time[at] for at in starts], [max(values[at : at + step]) / MIB for at in starts]


def draw(picture: Picture, profiles: Mapping[str, Profiled], to: Path) -> None:
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": picture.name, "font.size": 9})
    figure, axes = matplotlib.pyplot.subplots(figsize=(8, 3.2), layout="constrained")
    for (name, profile), color in zip(profiles.items(), COLORS, strict=False):
        report = profile.report
        label = f"{name}: {told(profile)}, {report['seconds']:.1f} s"
        axes.plot(*thinned(report, "anonymous"), color=color, label=label)
        if report["spilled"]:
            spilled = f"{name}, in the file: {report['spilled'] / MIB:,.0f} MiB"
            axes.plot(*thinned(report, "spilled"), color=color, linestyle=":", linewidth=1, label=spilled)
    axes.set(title=picture.title, xlabel="seconds", ylabel="anonymous memory, MiB")
    if picture.is_logarithmic:
        axes.set(xscale="log", yscale="log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:,g}")
    else:
        axes.set_xlim(left=0)
    axes.set_ylim(bottom=0.1 if picture.is_logarithmic else 0)
    axes.legend(loc="best", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(to / f"{picture.name}.svg", metadata={"Date": None, "Creator": None})
    matplotlib.pyplot.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[picture.name for picture in PICTURES])
    parser.add_argument("scratch", type=Path)
    parser.add_argument("pictures", type=Path)
    options = parser.parse_args()
    folder = options.scratch.resolve() / "memory-curves"
    for picture in PICTURES:
        if picture.name not in (options.only or [picture.name]):
            continue
        folder.mkdir(parents=True)
        try:
            picture.prepare(folder)
            profiles = {}
            for name, command in picture.ways.items():
                profiles[name] = profiled(command, folder, "--executorch")
                if profiles[name].is_failed:
                    sys.exit(profiles[name].log[-4000:])
                print(f"{picture.name:<26} {name:<28} {told(profiles[name])}", flush=True)
            draw(picture, profiles, options.pictures)
        finally:
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    matplotlib.use("svg")
    sys.exit(main())
