# SPDX-License-Identifier: BSD-3-Clause
"""Holds every command to the limits that docs/performance.md gives for any file, on generated worst cases.

    python3 bounds_test.py ETSTREAM PERFORMANCE.md EXAMPLES [--show]

Each runs at two sizes. Memory is the peak over that of a run on a tiny file of the kind, for each byte of the largest.
Time is that of the processor, the least of several runs, as other programs on the machine slow any one of them. If it
is long enough to be measured, it may grow in proportion to the size, and not to its square. The output is not much
longer than the input. With --show it prints the measurements.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import worst_cases

TINY, SMALL, LARGE = 2_000, 400_000, 1_600_000
UNMEASURED = 0.1  # the seconds below which the start of a process and other processes count
MOST_GROWTH = 2 * LARGE / SMALL  # the most growth of time; the square would be 4 * LARGE / SMALL
REPEATS = 8  # the repeats of a run that took too long, before that is believed
MOST_SECONDS = 20
HOLE = 1 << 40
PACKED_HOLES = [1 << 28, 1 << 30]
JUMPING = 8 << 20  # the bytes of metadata that lie in more pieces than a reader keeps
MOST_OF_PACKED = 5  # the most times as long for metadata that jumps between pieces as for the same unpacked
MOST_OF_RECIPES = 32 << 20  # the bytes of memory to restore an update by a recipe, with those of any run
MOST_MEMORY = 4 << 30  # the bytes of address space
SLACK = 2 << 20  # the slack of memory and of output, in bytes
MOST_OF_OTHERS = 5  # the most times as long for a program of an unknown writer as for etstream's own
MOST_OUTPUT = 6  # the most bytes of output for each byte of the file
# The most bytes of this process: the kernel counts them as the child's until the child becomes its command.
MOST_OWN = 24 << 20

# The commands by their row in the table, with OUT for a place to write to.
REPORTS = {
    "inspect": ["inspect", "FILE"],
    "inspect --json": ["inspect", "--json", "FILE"],
    "inspect --duplicates": ["inspect", "--duplicates", "FILE"],
    "inspect --html": ["inspect", "--html", "OUT", "FILE"],
    "verify": ["verify", "FILE"],
    "diff": ["diff", "FILE", "OTHER"],
    "pack --base": ["pack", "FILE", "--base", "FILE", "-o", "OUT"],
}
OF_PROGRAMS = {
    "inspect --budget": ["inspect", "--budget", "FILE"],
    "inspect --graph": ["inspect", "--graph", "forward", "FILE"],
    "inspect --graph --json": ["inspect", "--graph", "forward", "--json", "FILE"],
}
WRITERS = {
    ".pte": {
        "pte": ["pte", "FILE", "-o", "OUT", "--segment-alignment", "128"],
        "pte --delegates segments": ["pte", "FILE", "-o", "OUT", "--delegates", "segments"],
        "ptd": ["ptd", "FILE", "-o", "OUT"],
        "share": ["share", "FILE", "FILE", "--least-size", "1", "--dry-run", "--json"],
    },
    ".bpte": {
        "convert": ["convert", "FILE", "--to", "segmented", "-o", "OUT"],
        "extract --cases": ["extract", "FILE", "--cases", "OUT"],
    },
    ".ptd": {
        "ptd": ["ptd", "FILE", "-o", "OUT"],
        "ptd --to safetensors": ["ptd", "FILE", "--to", "safetensors", "-o", "OUT"],
        "ptd --no-dedup": ["ptd", "FILE", "FILE", "--no-dedup", "-o", "OUT"],
        "ptd --dtype": ["ptd", "FILE", "--dtype", "float16", "-o", "OUT"],
        "ptd --split-max-size": ["ptd", "FILE", "--split-max-size", "100M", "-o", "OUT"],
    },
    ".safetensors": {
        "ptd": ["ptd", "FILE", "-o", "OUT"],
        "explain": ["explain", "EXAMPLE", "--by", "FILE"],
    },
    ".pt2": {"ptd": ["ptd", "FILE", "-o", "OUT"]},
    ".pth": {"ptd": ["ptd", "FILE", "-o", "OUT"]},
}
COMPILE = {"compile": ["compile", "SCHEMA", "FILE", "-o", "OUT"]}
KEYS = {"pte --keys": ["pte", "EXAMPLE", "-o", "OUT", "--constants-to", "OUT.ptd", "--keys", "FILE"]}


@dataclass
class Run:
    seconds: float
    memory: int
    output: int
    status: int


def commands_for(name: str) -> dict[str, list[str]]:
    suffix = Path(name).suffix
    if suffix == ".json":
        return KEYS if name == "nested_keys.json" else COMPILE
    graphs = OF_PROGRAMS if suffix in (".pte", ".bpte") else {}
    return {**REPORTS, **graphs, **WRITERS[suffix]}


def size_of(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.iterdir())
    return path.stat().st_size if path.exists() else 0


class Machine:
    def __init__(self, etstream: str, example: Path, folder: Path) -> None:
        self.etstream, self.example, self.folder = etstream, example, folder

    def run(self, command: list[str], file: Path) -> Run:
        out = self.folder / "out"
        words = {"FILE": file, "OTHER": self.example, "EXAMPLE": self.example, "OUT": out, "OUT.ptd": f"{out}.ptd"}
        words["SCHEMA"] = Path(__file__).parent / "keyed.fbs"
        arguments = [str(words.get(word, word)) for word in command]
        limits = ["prlimit", f"--as={MOST_MEMORY}", f"--cpu={MOST_SECONDS}"]
        printed = self.folder / "printed"
        with printed.open("wb") as stdout:
            child = subprocess.Popen([*limits, self.etstream, *arguments], stdout=stdout, stderr=subprocess.DEVNULL)
            _, status, use = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        output = size_of(out) + size_of(Path(f"{out}.ptd"))
        for path in (out, Path(f"{out}.ptd")):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return Run(use.ru_utime + use.ru_stime, use.ru_maxrss << 10, output, child.returncode)


def write_files(folder: Path) -> dict[str, list[Path]]:
    """Writes a file of each kind at each size, smallest first, by other processes; see MOST_OWN."""
    sizes = [TINY, SMALL, LARGE]
    for size in sizes:
        subprocess.run([sys.executable, "-B", worst_cases.__file__, folder / str(size), str(size)], check=True)
    return {name: [folder / str(size) / name for size in sizes] for name in worst_cases.KINDS}


def own_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def grows_too_fast(small: float, large: float) -> bool:
    return large > UNMEASURED and large > MOST_GROWTH * max(small, UNMEASURED / MOST_GROWTH)


def limits_in(page: Path) -> dict[str, int]:
    """Returns the limits in the rows "| `COMMAND` | BYTES | ..." under the heading of hostile files."""
    _, section = page.read_text(encoding="utf-8").split("## Files that are made to be slow", 1)
    rows = re.findall(r"^\| (`[^|]+`) \| (\d+) \|", section.split("\n## ")[0], re.MULTILINE)
    return {command: int(limit) for commands, limit in rows for command in re.findall(r"`([^`]+)`", commands)}


def problems_of(row: str, small: Run, large: Run, base: Run, size: int, limit: int | None) -> list[str]:
    problems = []
    if limit is None:
        return [f"the page has no row for `{row}`"]
    if large.status not in (0, 1, 2):
        problems.append(f"ended with {large.status}")
    used = large.memory - base.memory - SLACK
    if used > limit * size:
        problems.append(f"took {used / size:.0f} bytes of memory for each byte, expected at most {limit}")
    if grows_too_fast(small.seconds, large.seconds):
        problems.append(f"took {small.seconds:.2f} s, and {large.seconds:.2f} s at {LARGE / SMALL:.0f} times the size")
    if large.output > MOST_OUTPUT * size + SLACK:
        problems.append(f"wrote {large.output} bytes from {size}")
    return problems


def time_of_others(machine: Machine, other: Path) -> str | None:
    """Returns the problem if writing `other` again takes too long because no known writer has written it."""
    own = machine.folder / "own.pte"
    command = [machine.etstream, "pte", other, "--delegate-alignment", "16", "-o", own]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    command = ["pte", "FILE", "--delegates", "segments", "-o", "OUT"]
    for _ in range(REPEATS):
        times = [machine.run(command, file).seconds for file in (other, own)]
        if times[0] <= MOST_OF_OTHERS * times[1]:
            return None
    return f"pte took {times[0]:.2f} s for another writer's program, and {times[1]:.2f} s for its own"


def problems_of_packed(machine: Machine) -> list[str]:
    """Returns the problems with packed files: of one that stands for a thousand times its bytes, and of metadata that
    jumps between pieces."""
    plain, packed = machine.folder / "plain.pte", machine.folder / "packed.pte.etz"

    def verify(file: Path) -> Run:
        runs = [machine.run(["verify", "FILE"], file) for _ in range(3)]
        return min(runs, key=lambda run: run.seconds)

    def pack() -> None:
        subprocess.run([machine.etstream, "pack", plain, "-o", packed], check=True, stdout=subprocess.DEVNULL)

    runs = []
    for hole in PACKED_HOLES:
        worst_cases.write_program_with_a_hole(plain, hole)
        pack()
        runs.append(verify(packed))
    problems = problems_of("verify", runs[0], runs[1], runs[0], 0, 0)
    if packed.stat().st_size > PACKED_HOLES[-1] // 1000:
        problems.append(f"a hole of {PACKED_HOLES[-1]} bytes was packed to {packed.stat().st_size}")
    command = [sys.executable, "-B", worst_cases.__file__, machine.folder, str(JUMPING), "values_that_jump.pte"]
    subprocess.run(command, check=True)
    (machine.folder / "values_that_jump.pte").rename(plain)
    pack()
    runs += [verify(plain), verify(packed)]
    if runs[3].seconds > MOST_OF_PACKED * runs[2].seconds:
        problems.append(f"metadata that jumps took {runs[2].seconds:.2f} s, and {runs[3].seconds:.2f} s packed")
    problems += [f"ended with {run.status}" for run in runs if run.status != 0]
    return [f"verify of a packed file: {problem}" for problem in problems]


def problems_of_updates(machine: Machine) -> list[str]:
    """Returns the problems with a file and a base that are made to be slow together."""
    runs = []
    for size in (SMALL // 2, LARGE // 2):
        file, base = (machine.folder / name for name in ("file", "base"))
        for path, content in zip((file, base), worst_cases.file_and_base_of_one_run(size)):
            path.write_bytes(content)
        command = ["pack", "FILE", "--base", str(base), "-o", "OUT"]
        runs.append(min((machine.run(command, file) for _ in range(3)), key=lambda run: run.seconds))
    return [f"pack --base of a made file: {each}" for each in problems_of("pack --base", *runs, runs[0], SMALL, 130)]


def problems_of_recipes(machine: Machine) -> list[str]:
    """Returns the problems with an update that has steps for each of many tensors of a checkpoint."""
    name = "program_of_constants.pte"
    file, checkpoint, update = machine.folder / name, machine.folder / "made.safetensors", machine.folder / "made.etz"
    packed, unpacked = [], []
    for size in (4 * SMALL, 4 * LARGE):
        subprocess.run([sys.executable, "-B", worst_cases.__file__, machine.folder, str(size), name], check=True)
        for command in (["ptd", file, "-o", checkpoint], ["pack", file, "--base", checkpoint, "-o", update]):
            subprocess.run([machine.etstream, *command], check=True, stdout=subprocess.DEVNULL)
        for word, source, runs in (("pack", file, packed), ("unpack", update, unpacked)):
            command = [word, "FILE", "--base", str(checkpoint), "-o", "OUT"]
            runs.append(min((machine.run(command, source) for _ in range(3)), key=lambda run: run.seconds))
    problems = problems_of("pack --base", *packed, packed[0], 4 * LARGE, 1)
    problems += problems_of("unpack --base", *unpacked, unpacked[0], 4 * LARGE, 1)
    if unpacked[1].memory > MOST_OF_RECIPES:
        problems.append(f"took {unpacked[1].memory} bytes of memory, expected at most {MOST_OF_RECIPES}")
    if update.stat().st_size > file.stat().st_size // 10:
        problems.append(f"{update.stat().st_size} bytes of an update for {file.stat().st_size}")
    return [f"a recipe of many parts: {problem}" for problem in problems]


def main() -> int:
    etstream, page, examples = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    show = "--show" in sys.argv
    limits = limits_in(page)
    most: dict[str, float] = {}
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        machine = Machine(etstream, examples / "model.pte", folder)
        hole = folder / "hole.pte"
        worst_cases.write_program_with_a_hole(hole, HOLE)
        verified = machine.run(["verify", "FILE"], hole)
        if verified.status != 0 or verified.seconds > 1:
            failed.append(f"verify of a hole took {verified.seconds:.2f} s and ended with {verified.status}")
        large = folder / "delegate.pte"
        large.write_bytes(worst_cases.program_that_is_mostly_a_delegate(LARGE))
        for row, command in {**REPORTS, **OF_PROGRAMS, **WRITERS[".pte"]}.items():
            status = machine.run(command, large).status
            if status != (1 if row in ("diff", "ptd", "share") else 0):
                failed.append(f"{row} of a program that is mostly a delegate ended with {status}")
        failed += problems_of_packed(machine) + problems_of_updates(machine) + problems_of_recipes(machine)
        written = write_files(folder)
        if problem := time_of_others(machine, written["of_another_writer.pte"][-1]):
            failed.append(problem)
        for name, files in written.items():
            size = files[-1].stat().st_size
            for row, command in commands_for(name).items():
                base, small, large = (machine.run(command, file) for file in files)
                for _ in range(REPEATS):
                    if not grows_too_fast(small.seconds, large.seconds):
                        break
                    small.seconds = min(small.seconds, machine.run(command, files[1]).seconds)
                    large.seconds = min(large.seconds, machine.run(command, files[2]).seconds)
                each = max(large.memory - base.memory, 0) / size
                most[row] = max(most.get(row, 0), each)
                if show:
                    print(f"{name:32} {row:26} {small.seconds:6.2f} {large.seconds:6.2f} s {each:6.0f} B/B"
                          f" {large.output / size:6.1f} out, status {large.status}", flush=True)  # fmt: skip
                failed += [f"{row} on {name}: {p}" for p in problems_of(row, small, large, base, size, limits.get(row))]
    if own_peak() > MOST_OWN:
        failed.append(f"this test took {own_peak()} bytes itself, expected at most {MOST_OWN}")
    for row, each in most.items():
        print(f"{row:26} {each:6.0f} bytes of memory for each of the file, at most {limits.get(row)}")
    print("\n".join(failed) or "all within their bounds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
