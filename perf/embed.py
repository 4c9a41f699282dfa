# SPDX-License-Identifier: BSD-3-Clause
"""Measures embedding a file in a program for a Cortex-M, against what users do otherwise.

    ETSTREAM=PATH python embed.py [--quick] PTE_TO_HEADER.py FOLDER

PTE_TO_HEADER.py is ExecuTorch's script, examples/arm/executor_runner/pte_to_header.py. Each way ends with an object
file. gcc-arm-none-eabi has to be installed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import measure
from measure import MIB, Time
from table import rows_of, show

ETSTREAM = os.environ["ETSTREAM"]
GCC = "arm-none-eabi-gcc -mcpu=cortex-m55 -c"
MOST_AS_TEXT = 32 * MIB  # what a compiler takes of C with a number for each byte


def compare(script: Path, folder: Path, size: int, rounds: int) -> bool:
    """Compares the ways for a file of this size in the page cache."""
    model, out = folder / "model.bin", folder / "model.o"
    generator = random.Random(1)
    with model.open("wb") as file:
        for _ in range(size // MIB):
            file.write(generator.randbytes(MIB))
    embed = [ETSTREAM, "embed", str(model), "--target", "arm", "-o", str(out)]
    source = folder / "model.S"
    through_assembly = f"{ETSTREAM} embed {model} -o {source} --no-sync && {GCC} {source} -o {out}"
    linker = ["arm-none-eabi-ld", "-r", "-b", "binary", str(model), "-o", str(out)]
    through_text = f"{sys.executable} {script} -p {model} -o {folder}/model_pte.c && {GCC} {folder}/model_pte.c -o {out}"

    def timed(command: list[str], sync: Path | None = None) -> Callable[[], Time]:
        def run() -> Time:
            out.unlink(missing_ok=True)
            os.sync()
            subprocess.run(["cat", str(model)], stdout=subprocess.DEVNULL, check=True)
            return measure.timed(command, sync)

        return run

    contenders = {
        "etstream embed": timed(embed),
        "... --no-sync": timed([*embed, "--no-sync"]),
        "... NAME.S, gcc": timed(["sh", "-c", through_assembly]),
        "ld -r -b binary, sync": timed(linker, out),
        "ld -r -b binary": timed(linker),
        "cp": timed(["cp", str(model), str(out)]),
    }
    if size <= MOST_AS_TEXT:
        contenders["pte_to_header.py, gcc"] = timed(["sh", "-c", through_text])
    peaks = {"etstream embed": measure.peak_of(embed), "ld -r -b binary": measure.peak_of(linker)}
    against = {
        "ld -r -b binary, sync": ("etstream embed", None),
        "ld -r -b binary": ("... --no-sync", None),
        "cp": ("... --no-sync", None),
        "pte_to_header.py, gcc": ("etstream embed", None),
    }
    return show(f"{size // MIB} MiB", rows_of(measure.rounds(rounds, contenders), against, peaks))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no file of 1 GiB")
    parser.add_argument("script", type=Path, metavar="PTE_TO_HEADER.py")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rounds = 3 if arguments.quick else 7
    sizes = [13 * MIB, 256 * MIB] if arguments.quick else [13 * MIB, 256 * MIB, 1024 * MIB]
    results = [compare(arguments.script, arguments.folder, size, rounds) for size in sizes]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
