# SPDX-License-Identifier: BSD-3-Clause
"""Runs the blocks of docs/recipes.md as they are, from the first to the last, in an activated environment that has the
package and ExecuTorch.

    python recipes.py [--renew] [HEADING]...

Each recipe is a section, and runs in a folder of its own in build/recipes; HEADING selects the recipes whose heading
begins with it. A block with a name behind its language is that file. The commands of a `console` block have to succeed
and to print the lines that it shows; those of an `sh` block have to succeed. A recipe ends at the first command that
fails, and leaves its folder. --renew puts the output into the page.

The page limits memory by systemd-run. If that does not work, systemd_run.py takes its place. If no memory cgroup can be
made at all, nothing is limited, and the steps that end with 137, the status of a command that the system kills, are
left out.
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
# A script that runs the command that follows the options of LIMIT.
NO_LIMIT = '#!/bin/sh\nshift 7\nexec "$@"\n'
KILLED = "137\n"


def limit_holds() -> bool:
    """Returns whether LIMIT runs a command that takes little memory, and no command that takes more."""
    try:
        limited = subprocess.run([*LIMIT, "true"], capture_output=True, check=False).returncode == 0
        return limited and subprocess.run([*LIMIT, *TOO_MUCH], capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        return False


def provide_limit(folder: Path) -> bool:
    """Returns whether `systemd-run` kills a command that takes more than it may. If the system has none that does, puts
    such a command into the folder, and the folder on the path."""
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
    """Yields the differences from the page."""
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
    """Returns the first problem, or all of them if they are put into the page; an empty text if all is well."""
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
