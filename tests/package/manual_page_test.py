# SPDX-License-Identifier: BSD-3-Clause
"""Shows that the manual page is well formed and tells of each option, and that its examples work.

    python3 manual_page_test.py PAGE ETSTREAM FOLDER_OF_EXAMPLES
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The commands that print nothing about a well-formed page. The page has no date, as the build's date would make any two
# builds differ.
JUDGES = [
    ["groff", "-man", "-ww", "-z", "-Tutf8"],
    ["mandoc", "-Tlint", "-Wwarning"],
]
EXPECTED = re.compile(r"WARNING: missing date")
CHOICES = re.compile(r"--[a-z-]+ \w+(?:\|\w+)+")  # --to bp08|segmented
# The names of CLI11 for values that have no name of their own.
NAMELESS = re.compile(r"\b(?:TEXT|U?INT|FLOAT)\b")
HEADINGS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "TEST CASES", "EXIT STATUS", "EXAMPLES"]


def judged(page: Path) -> list[str]:
    out = []
    for judge in JUDGES:
        if not shutil.which(judge[0]):
            print(f"SKIPPED: {judge[0]} is not installed")
            continue
        done = subprocess.run([*judge, str(page)], capture_output=True, text=True, check=False)
        out += [line for line in (done.stdout + done.stderr).splitlines() if not EXPECTED.search(line)]
    return out


def plain(roff: str) -> str:
    """Returns the words of a page, without fonts."""
    return re.sub(r"\\f[A-Z]", "", roff).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")


def untold(text: str, etstream: str) -> list[str]:
    """Returns the options that --help names and the page does not, and the headings that are missing."""

    def help_of(*command: str) -> str:
        return subprocess.run([etstream, *command, "--help"], capture_output=True, text=True, check=True).stdout

    out = [f"{heading} is missing" for heading in HEADINGS if f".SH {heading}\n" not in text]
    for command in re.findall(r"^  (\w+) ", help_of().split("Subcommands:")[1], re.MULTILINE):
        section = re.search(rf"^\.SS etstream {command}\n(.*?)^\.S[SH] ", text, re.MULTILINE | re.DOTALL)
        names = set(re.findall(r"--[a-z-]+", help_of(command))) - {"--help"}
        told = set(re.findall(r"--[a-z-]+", section[1])) if section else set()
        out += [f"{command} {name} is missing" for name in sorted(names - told)]
    return out


def unnamed(text: str, etstream: str) -> list[str]:
    """Returns options' values without a name of their own, and choices that the page or --help does not name."""
    out = []
    for option in ("convert --to", "bundle --to"):
        command, name = option.split()
        shown = subprocess.run([etstream, command, "--help"], capture_output=True, text=True, check=True).stdout
        options = [line.strip() for line in shown.splitlines() if "--" in line]
        out += [f"{command} --help shows {line}" for line in options if NAMELESS.search(line)]
        choices = [found for found in CHOICES.findall(shown) if found.startswith(name)]
        if not choices or choices[0] not in text:
            out.append(f"{option} has no words to choose from in --help, or others in the page")
    return out + [f"the page shows {line}" for line in text.splitlines() if NAMELESS.search(line)]


def failing_examples(text: str, etstream: str, examples: str) -> list[str]:
    commands = re.findall(r"^etstream .*", text.split(".SH EXAMPLES")[1], re.MULTILINE)
    out = [] if commands else ["there are no examples"]
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        shutil.copytree(examples, here)
        path = f"{Path(etstream).parent}:{os.environ['PATH']}"
        for command in commands:
            done = subprocess.run(command.split(), cwd=here, capture_output=True, text=True, check=False,
                                  env={**os.environ, "PATH": path})
            if done.returncode:
                out.append(f"{command}: {done.stderr}")
    return out


def main() -> int:
    page, etstream, examples = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    text = plain(page.read_text(encoding="utf-8"))
    problems = judged(page) + untold(text, etstream) + unnamed(text, etstream)
    problems += failing_examples(text, etstream, examples)
    print("\n".join(problems) or f"{page.name} is well formed, whole, and its examples work")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
