# SPDX-License-Identifier: BSD-3-Clause
"""Shows that every command reads the files that `verify` accepts, and that `verify` accepts the files that every
command writes.

    agreement_test.py ETSTREAM GOLDEN EXAMPLES [SEED]

Files of each kind are changed in a few bytes. On each file that `verify` accepts, each command for
its kind has to succeed, unless it says that the file is sound and can't become what is asked for. The files that
commands write have to be accepted in turn.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "peer"))
from rounds import ROUNDS  # noqa: E402

ETSTREAM, GOLDEN, EXAMPLES = (Path(argument).resolve() for argument in sys.argv[1:4])
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
MUTANTS = 3 * ROUNDS  # of each file, of which the first is the file itself
METADATA = 1 << 12
"""The number of bytes at a file's beginning that are changed first; most of the bytes behind them are payload."""

SCHEMAS = Path(__file__).resolve().parents[2] / "schema"
BUNDLES = [
    ["extract", "F", "program", "-o", "OUT.pte", "--cases", "FOLDER"],
    ["convert", "F", "-o", "OUT.bpte", "--to", "segmented"],
    ["convert", "F", "-o", "OUT.bpte", "--to", "bp08"],
    ["extract", "F", "program/segments/0", "-o", "OUT.bin"],
]
WEIGHTS = [
    ["ptd", "F", "--opaque", "-o", "OUT.ptd"],
    ["ptd", "F", "--opaque", "--no-dedup", "--max-disk", "1M", "-o", "OUT.ptd"],
    ["ptd", "F", "--max-disk", "1M", "--to", "safetensors", "-o", "OUT.safetensors"],
    ["ptd", "F", "--max-disk", "1M", "--to", "pth", "-o", "OUT.pth"],
    ["ptd", "F", "--opaque", "--split-max-size", "1G", "-o", "SPLIT.ptd"],
]
COMMANDS = {
    ".pte": [
        ["pte", "F", "-o", "OUT.pte"],
        ["pte", "F", "--constants-to", "OUT.ptd", "-o", "OUT.pte"],
        ["bundle", "F", "--cases", "NONE.json", "-o", "OUT.bpte"],
        ["ptd", "F", "-o", "OUT.ptd"],
        ["pte", "F", "--delegates", "inline", "--strict-alignment", "--segment-alignment", "4096", "-o", "OUT.pte"],
        ["pte", "F", "--delegates", "segments", "--strip-stack-traces", "-o", "OUT.pte"],
        ["share", "a=F", "b=F", "--least-size", "1", "--weights-to", "OUT.ptd", "--fat", "OUT.fat"],
        ["decompile", "--exact", "PROGRAM.fbs", "F", "-o", "OUT.json"],
    ],
    ".bpte": BUNDLES,
    ".ptd": WEIGHTS,
    ".safetensors": WEIGHTS,
    ".gguf": WEIGHTS,
    ".ptn": [["extract", "F", "graph", "-o", "OUT.ptg"], *WEIGHTS],
    ".fat": [],
}
ALL = [
    ["inspect", "F"],
    ["inspect", "F", "--json"],
    ["inspect", "F", "--html", "OUT.html"],
    ["diff", "F", "OTHER"],
    ["fat", "a=F", "-o", "OUT.fat"],
]
CANNOT = (
    "ExecuTorch has no tensors of",
    "which safetensors",
    "safetensors has no name for",
    "no layout",
    "nothing to move",
    "there are no constants",
    "has no constants",
    "no tensors",
    "no weights in common",
    "torch has no plain tensors of",
    "a schema that has all of its fields",
    "expected a type of the value",
    "a zero byte, at which ExecuTorch ends names",
    "not UTF-8",
    "--max-disk",
)
"""Parts of messages about a file that is sound, but can't become what is asked for."""
KINDS = {".pte", ".ptd", ".bpte", ".safetensors", ".ptn", ".fat", ".pth"}


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ETSTREAM, *arguments], capture_output=True, text=True, errors="replace")


def seeds(folder: Path) -> list[Path]:
    found = [EXAMPLES / "model.pte", *sorted(path for path in GOLDEN.rglob("*") if path.suffix in COMMANDS)]
    made = [folder / name for name in ("made.bpte", "segmented.bpte", "made.ptd", "small.pte", "made.fat")]
    run("bundle", EXAMPLES / "model.pte", "--cases", EXAMPLES / "cases.json", "-o", made[0])
    run("convert", made[0], "--to", "segmented", "-o", made[1])
    run("pte", EXAMPLES / "model.pte", "--constants-to", made[2], "-o", made[3])
    run("fat", f"a={EXAMPLES / 'model.pte'}", f"b={made[2]}", "-o", made[4])
    return [path for path in found if path.stat().st_size > 0] + made


def mutated(content: bytes, random_: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(random_.choice((1, 1, 1, 2, 4))):
        at = random_.randrange(min(len(out), METADATA) if random_.random() < 0.9 else len(out))
        kind = random_.randrange(5)
        if kind == 0:
            out[at] = random_.choice((0, 1, 2, 7, 127, 128, 255))
        elif kind == 1:
            out[at] ^= 1 << random_.randrange(8)
        elif kind == 2:
            size = random_.choice((4, 8))
            out[at : at + size] = random_.choice((0, 1, len(out), 2**31 - 1, 2 ** (8 * size) - 1)).to_bytes(
                size, "little"
            )
        elif kind == 3:
            other, size = random_.randrange(len(out)), random_.choice((1, 2, 4, 16, 48))
            out[at : at + size] = out[other : other + size]
        else:
            del out[at : at + random_.choice((1, 4, len(out)))]
            out += bytes(random_.choice((0, 1, 4)))
        if not out:
            return bytes(content)
    return bytes(out)


def check(path: Path, seed: Path, folder: Path) -> list[str]:
    """Returns the errors of the commands on a file that `verify` accepts."""
    wrong = []
    for command in ALL + COMMANDS[path.suffix]:
        places = {"F": path, "a=F": f"a={path}", "b=F": f"b={path}", "OTHER": seed, "NONE.json": folder / "none.json"}
        places |= {"FOLDER": folder / "cases", "PROGRAM.fbs": SCHEMAS / "program.fbs", "SPLIT.ptd": folder / "written.ptd"}
        outputs = [folder / f"written{word[3:]}" for word in command if word.startswith("OUT.")]
        places |= {f"OUT{output.suffix}": output for output in outputs}
        done = run(*(places.get(word, word) for word in command))
        if "SPLIT.ptd" in command:
            outputs.append(folder / "written-00001-of-00001.ptd")
        lines = done.stderr.strip().splitlines()
        is_read = done.returncode == 0 or (command[0] == "diff" and done.returncode == 1)
        if done.returncode < 0 or not is_read and not any(word in done.stderr for word in CANNOT):
            wrong.append(f"{' '.join(command)}: exit code {done.returncode}: {lines[-1:]}")
        for output in outputs:
            if done.returncode == 0 and output.suffix in KINDS:
                verified = run("verify", output)
                if verified.returncode != 0:
                    wrong.append(f"{' '.join(command)}: {output.suffix} is refused: {verified.stderr.strip()[:300]}")
            if done.returncode == 0 and output.suffix == ".json":
                again = run("pte", output, "--segments-from", path, "--dry-run")
                if again.returncode != 0:
                    wrong.append(f"{' '.join(command)}: the JSON is refused: {again.stderr.strip()[:300]}")
            output.unlink(missing_ok=True)
        if (folder / "cases").exists():
            again = run(
                "bundle", folder / "none.pte", "--cases", folder / "cases" / "cases.json", "--unchecked", "--dry-run"
            )
            if again.returncode != 0 and "none.pte" not in again.stderr:
                wrong.append(f"{' '.join(command)}: the cases are refused: {again.stderr.strip()[:300]}")
            for file in (folder / "cases").iterdir():
                file.unlink()
            (folder / "cases").rmdir()
    return wrong


def main() -> int:
    tried: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "none.json").write_text("{}")
        random_ = random.Random(SEED)
        for seed in seeds(folder):
            content = seed.read_bytes()
            for number in range(MUTANTS):
                path = folder / f"mutant{seed.suffix}"
                path.write_bytes(content if number == 0 else mutated(content, random_))
                tried[seed.suffix] += 1
                if run("verify", path).returncode != 0:
                    continue
                accepted[seed.suffix] += 1
                for wrong in check(path, seed, folder):
                    failures += 1
                    kept = Path(tempfile.gettempdir()) / f"agreement-{seed.stem}-{number}{seed.suffix}"
                    kept.write_bytes(path.read_bytes())
                    print(f"{kept}: {wrong}", flush=True)
    for suffix, count in sorted(tried.items()):
        print(f"{suffix:13} {count:6} tried, {accepted[suffix]:6} accepted")
    print(f"{failures} failures (seed {SEED})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
