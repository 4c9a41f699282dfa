# SPDX-License-Identifier: BSD-3-Clause
"""Shows that the completions work in the shells that they are for.

    python3 completion_test.py bash|zsh|fish COMPLETION ETSTREAM

Bash and zsh run on a terminal of their own, where the Tab key is pressed; fish lists its completions.
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The typed text, words that must be offered, and words that must not.
CASES = [
    ("etstream ", ["bundle", "extract", "inspect", "verify"], ["model.pte", "--cases"]),
    ("etstream --", ["--help", "--version"], ["--cases"]),
    ("etstream bundle --", ["--cases", "--output", "--dry-run", "--program-alignment"], ["--segment"]),
    ("etstream extract --", ["--cases", "--output", "--dry-run"], ["--html"]),
    ("etstream verify m", ["model.pte", "model two.pte"], ["cases.json"]),
    ("etstream bundle model.pte --cases c", ["cases.json", "cases folder"], ["model.pte"]),
    ("etstream bundle --cases cases.json -o m", ["model.pte", "model two.pte"], ["cases.json"]),
    ("etstream bundle --output=m", ["model.pte", "model two.pte"], ["cases.json"]),
    ("etstream bundle --program-alignment ", [], ["model.pte", "cases.json", "cases folder"]),
    ("etstream bundle model.pte --to ", ["bp08", "segmented"], ["model.pte", "cases.json", "cases folder"]),
    ("etstream bundle --to=", ["bp08", "segmented"], ["model.pte", "cases.json", "cases folder"]),
    ("etstream convert model.bpte --to ", ["bp08", "segmented"], ["model.pte", "cases.json", "cases folder"]),
    ("etstream bundle --as-of ", ["1.0", "1.5"], ["model.pte", "cases.json"]),
    ("etstream profile --fail-above ", ["model.pte"], ["SIZE"]),
    ("etstream help ", ["bundle", "verify", "fat"], ["model.pte", "cases.json"]),
    ("etstream run --limit ", [], ["model.pte", "cases.json", "cases folder"]),
    ("etstream fat --", ["--align", "--no-dedup"], ["--segment"]),
    ("etstream fat -o m", ["model.pte", "model two.pte"], ["cases.json"]),
    ("etstream extract x.bpte --cases ", ["cases folder", "other"], ["model.pte", "cases.json"]),
]
READY = "READY>"
# Bash lists the completions at the first Tab, without a question or a pager; none of the user's files is read.
BASH = ["bash", "--norc", "--noprofile", "-i"]
BASH_SETUP = """bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'
bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'; source {completion}; PS1={ready}"""
ZSH = ["zsh", "-f", "-i"]
ZSH_SETUP = """LISTMAX=1000; unset zle_bracketed_paste
fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; PS1={ready}"""


class Terminal:
    """An interactive shell."""

    def __init__(self, command: list[str], folder: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, {"PATH": os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8",
                                             "HOME": folder, "COLUMNS": "200"})

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def shown(self, wanted: list[str], at_most: float = 20) -> str:
        """Returns the text that is shown until all of `wanted` is, and then nothing more for a while."""
        out, end = "", time.monotonic() + at_most
        while time.monotonic() < end:
            if select.select([self.descriptor], [], [], 0.5)[0]:
                out += os.read(self.descriptor, 65536).decode(errors="replace")
            elif all(words in out.replace("\\ ", " ") for words in wanted):
                break
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\a]", "", out)


class TypedAt:
    """A shell on a terminal, which shows the completions of a line below it."""

    def __init__(self, terminal: Terminal, setup: str) -> None:
        self.terminal = terminal
        terminal.type(setup + "\n")
        terminal.shown([READY])

    def offered(self, line: str, wanted: list[str]) -> str:
        self.terminal.type(line + "\t\t")
        shown = self.terminal.shown(wanted)
        self.terminal.type("\x15\n")  # wipes the line
        self.terminal.shown([READY])
        # The line itself, which is shown once more below the list, is left out.
        lists = [row for row in shown.split("\n")[1:] if READY not in row]
        return "\n".join(lists).replace("\\ ", " ")


class Fish:
    def __init__(self, completion: Path, folder: str) -> None:
        self.completion, self.folder = completion, folder

    def offered(self, line: str, _wanted: list[str]) -> str:
        script = f"source {self.completion}; complete -C '{line}'"
        return subprocess.run(["fish", "--no-config", "-c", script], cwd=self.folder, capture_output=True, text=True,
                              check=True, env={**os.environ, "HOME": self.folder}).stdout


def check(shell: TypedAt | Fish) -> list[str]:
    """Returns a line for each error in the completions."""
    out = []
    for line, wanted, unwanted in CASES:
        shown = shell.offered(line, wanted)
        missing = [word for word in wanted if word not in shown]
        extra = [word for word in unwanted if word in shown]
        if missing or extra:
            out.append(f"{line!r}: missing {missing}, too much {extra}, in {shown!r}")
    return out


def problems_of(shell: str, completion: Path, folder: str) -> list[str]:
    if shell == "fish":
        return check(Fish(completion, folder))
    command, setup = (BASH, BASH_SETUP) if shell == "bash" else (ZSH, ZSH_SETUP)
    # The prompt's name in the setup, which is also shown, is not the prompt.
    ready = f"{READY[0]}'''{READY[1:]}'"
    with Terminal(command, folder) as terminal:
        setup = setup.format(completion=completion, folder=completion.parent, ready=ready)
        return check(TypedAt(terminal, setup))


def options_missing(completion: Path, etstream: str) -> list[str]:
    """Returns the options that --help names and the completion does not."""
    text = completion.read_text(encoding="utf-8")

    def help_of(*command: str) -> str:
        return subprocess.run([etstream, *command, "--help"], capture_output=True, text=True, check=True).stdout

    commands = re.findall(r"^  (\w+) ", help_of().split("Subcommands:")[1], re.MULTILINE)
    names = {name for command in commands for name in re.findall(r"--([a-z-]+)", help_of(command))}
    return [f"{name} is not completed" for name in sorted(set(commands) | names) if name not in text]


def main() -> int:
    shell, completion, etstream = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3]
    problems = options_missing(completion, etstream)
    if not shutil.which(shell):
        print(f"SKIPPED: {shell} is not installed")
    else:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("model.pte", "model two.pte", "cases.json"):
                (Path(folder) / name).touch()
            for name in ("cases folder", "other"):
                (Path(folder) / name).mkdir()
            problems += problems_of(shell, completion, folder)
    print("\n".join(problems) or f"{len(CASES)} command lines are completed as they should be in {shell}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
