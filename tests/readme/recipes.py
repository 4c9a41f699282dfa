# SPDX-License-Identifier: BSD-3-Clause
"""Runs the blocks of docs/recipes.md as they stand there, from the first to the last, in an activated environment that has
the package and ExecuTorch.

    python recipes.py [--renew] [HEADING]...

Each recipe is a section, and runs in a folder of its own in build/recipes; HEADING takes only those whose heading begins
so. A block with a name behind its language is that file; commands of one of `console` have to succeed and to print what it
shows, those of one of `sh` to succeed. A recipe ends at the first that does not, and leaves its folder. --renew puts what
is printed into the page.

The page limits memory by systemd-run. Where that does not work, systemd_run.py takes its place; where no memory cgroup can
be made at all, nothing is limited, and the steps that end with 137, which is what the page shows of a command that the
system kills, are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from blocks import ROOT, Block, recipes
from console_blocks import STEP, check_console, check_file

HERE = ROOT / "build" / "recipes"
LIMIT = ["systemd-run", "--user", "--scope", "--quiet", "-p", "MemoryMax=64M", "-p", "MemorySwapMax=0"]
TOO_MUCH = [sys.executable, "-c", "bytearray(256 << 20)"]
STAND_IN = Path(__file__).with_name("systemd_run.py")
# Passes the command on, after the options of LIMIT.
NO_LIMIT = '#!/bin/sh\nshift 7\nexec "$@"\n'
KILLED = "137\n"


def limit_holds() -> bool:
    """Returns whether LIMIT runs what takes little, and nothing that takes more."""
    try:
        limited = subprocess.run([*LIMIT, "true"], capture_output=True, check=False).returncode == 0
        return limited and subprocess.run([*LIMIT, *TOO_MUCH], capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        return False


def provide_limit(folder: Path) -> bool:
    """Returns whether a command is killed by `systemd-run` where it takes more than it may. Puts a command of that name into
    the folder, and the folder on the path, where there is none that does."""
    if limit_holds():
        return True
    command = folder / "systemd-run"
    command.symlink_to(STAND_IN)
    os.environ["PATH"] = f"{command.parent}:{os.environ['PATH']}"
    if limit_holds():
        return True
    command.unlink()
    command.write_text(NO_LIMIT, encoding="utf-8")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return False


def check_block(block: Block, folder: Path, renew: bool, limited: bool) -> Iterator[str]:
    """Yields what went otherwise than the page says."""
    if block.file:
        print(f"{block.language} {block.file}", flush=True)
        yield from check_file(block, folder)
    elif block.language == "console":
        for step in STEP.finditer(block.text):
            print(f"$ {step[1]}", end="", flush=True)
            if limited or not step[2].endswith(KILLED):
                yield from check_console(replace(block, text=step[0]), folder, renew, must_succeed=True)
    elif block.language == "sh":
        print(block.text, end="", flush=True)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, check=False)
        if done.returncode != 0:
            yield f"{block}: ends with {done.returncode}"
    else:
        yield f"{block}: nothing runs a block of this language"


def check_recipe(heading: str, renew: bool, limited: bool) -> str:
    """Returns the first problem, or all of them where they are put into the page; an empty text where all is well."""
    folder = HERE / re.sub(r"\W+", "-", heading)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problems = []
    for block in recipes()[heading]:
        for problem in check_block(block, folder, renew, limited):
            if not renew:
                return problem
            problems.append(problem)
    if not problems:
        shutil.rmtree(folder)
    return "\n".join(problems)


def check_recipes(headings: list[str], renew: bool, limited: bool) -> bool:
    """Returns whether all is well."""
    found = [one for one in recipes() if not headings or one.startswith(tuple(headings))]
    well = bool(found)
    for heading in found:
        print(f"\n=== {heading}", flush=True)
        begin = time.monotonic()
        problem = check_recipe(heading, renew, limited)
        print(problem or f"{heading}: {time.monotonic() - begin:.0f} s", flush=True)
        well = well and not problem
    return well


def main() -> int:
    headings = [one for one in sys.argv[1:] if one != "--renew"]
    os.environ["LC_ALL"] = "C.UTF-8"
    with tempfile.TemporaryDirectory() as folder:
        limited = provide_limit(Path(folder))
        well = check_recipes(headings, "--renew" in sys.argv, limited)
    if not limited:
        print(
            "***********************************************************************\n"
            "* SKIPPED: the steps of docs/recipes.md that show what is killed in    *\n"
            "* 1 GiB, as no memory cgroup can be made here. All others ran, without *\n"
            "* a limit.                                                             *\n"
            "***********************************************************************",
            file=sys.stderr,
        )
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
