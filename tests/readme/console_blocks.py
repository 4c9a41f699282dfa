# SPDX-License-Identifier: BSD-3-Clause
"""Runs the blocks of language `console` in README.md, CONTRIBUTING.md and docs/ as they are, and parses those of JSON,
except those of docs/recipes.md, which recipes.py runs.

    python3 console_blocks.py ETSTREAM [--renew]

A line that begins with "$ " is a command for bash; the lines that follow are the output that it has to print, on either
stream. A line "..." stands for any lines. A block with a name behind its language has lines of that file or, if the
repository has no such file, is that file. The blocks of a page run in its order, in one folder with the files of
examples/, the schema of programs and small checkpoints. --renew puts output that differs into the page.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from blocks import PAGES, RECIPES, ROOT, Block, blocks_of

STEP = re.compile(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)


def write_checkpoint(path: Path) -> None:
    """Writes a small checkpoint with names like Hugging Face's, of 516 bytes of data."""
    shapes = {
        "model.embed_tokens.weight": [16, 8],
        "model.layers.0.self_attn.q_proj.weight": [8, 8],
        "model.layers.0.self_attn.o_proj.weight": [8, 8],
        "model.layers.0.self_attn.rotary_emb.inv_freq": [2],
    }
    header, end = {}, 0
    for number, (name, shape) in enumerate(shapes.items(), 1):
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(i % 251 for i in range(end)))


def prepare(folder: Path) -> None:
    shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
    for name in ("program.fbs", "scalar_type.fbs"):
        shutil.copy(ROOT / "schema" / name, folder)
    for name in ("program.ptg", "constants.safetensors"):
        shutil.copy(ROOT / "tests" / "golden" / "native_package" / name, folder)
    shutil.copy(ROOT / "tests" / "golden" / "gguf" / "expected.gguf", folder / "model.gguf")
    write_checkpoint(folder / "model.safetensors")


def is_as_expected(printed: str, expected: str) -> bool:
    pattern = re.escape(expected).replace(re.escape("...\n"), "(?:.*\n)*")
    return re.fullmatch(pattern, printed) is not None


def check_file(block: Block, folder: Path) -> Iterator[str]:
    """Yields an error unless the block is a file, or has lines of one."""
    file = ROOT / block.file
    if not file.exists():
        (folder / block.file).write_text(block.text, encoding="utf-8")
    elif block.text not in file.read_text(encoding="utf-8"):
        yield f"{block}: {block.file} has no such lines"


def check_console(block: Block, folder: Path, renew: bool, must_succeed: bool = False) -> Iterator[str]:
    for step in STEP.finditer(block.text):
        done = subprocess.run(
            ["bash", "-c", step[1]], cwd=folder, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        if must_succeed and done.returncode != 0:
            yield f"{block.page.relative_to(ROOT)}: $ {step[1]}ends with {done.returncode}; printed:\n{done.stdout}"
            continue
        if is_as_expected(done.stdout, step[2]):
            continue
        yield f"{block.page.relative_to(ROOT)}: $ {step[1]}expected:\n{step[2]}printed:\n{done.stdout}"
        if renew:
            text = block.page.read_text(encoding="utf-8")
            block.page.write_text(text.replace(step[0], f"$ {step[1]}{done.stdout}"), encoding="utf-8")


def check_page(page: Path, renew: bool) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        for block in blocks_of(page):
            if block.file:
                yield from check_file(block, folder)
            if block.language == "json":
                json.loads(block.text)
            if block.language == "console":
                yield from check_console(block, folder, renew)


def main() -> int:
    etstream, renew = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["--renew"]
    os.environ |= {"PATH": f"{etstream.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    pages = [page for page in PAGES if page != RECIPES]
    problems = [problem for page in pages for problem in check_page(page, renew)]
    consoles = sum(one.language == "console" for page in pages for one in blocks_of(page))
    print("\n".join(problems) or f"{consoles} consoles print what they show")
    return 1 if problems or not consoles else 0


if __name__ == "__main__":
    sys.exit(main())
