#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for `systemd-run --user --scope` on a system without systemd, such as a container.

    systemd_run.py --user --scope [--quiet] -p MemoryMax=SIZE -p MemorySwapMax=0 COMMAND ARGS...

Runs the command in a memory cgroup of its own, of version 1 or 2, which lies below that of the caller. Ends as the
command does. Exits with 1 and a message if no such group can be made.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
OWN = Path("/proc/self/cgroup")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_of(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def folders() -> Iterator[tuple[Path, str]]:
    """Yields the groups below which a group may be made, and the name of the file that has a group's limit."""
    own: dict[str, str] = {}
    for line in OWN.read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path.lstrip("/")
    for line in MOUNTS.read_text(encoding="utf-8").splitlines():
        _, folder, kind, options, *_ = line.split()
        mount = Path(folder)
        if kind == "cgroup" and "memory" in options.split(","):
            path = next((own[names] for names in own if "memory" in names.split(",")), "")
            yield from ((mount / one, "memory.limit_in_bytes") for one in dict.fromkeys((path, "")))
        elif kind == "cgroup2":
            # A group with processes can't have groups with limits below it, other than the root.
            path = own.get("", "")
            yield from ((mount / one, "memory.max") for one in dict.fromkeys((path, os.path.dirname(path), "")))


def make_group(limit: int) -> Path:
    """Makes a group with that limit in bytes. Raises an OSError if none can be made."""
    reasons = ["no memory cgroup is mounted"]
    for parent, limit_file in folders():
        group = parent / f"etstream-recipes-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            # The file is missing if the group above does not hand the controller down.
            os.stat(group / limit_file)
            (group / limit_file).write_text(str(limit), encoding="utf-8")
            for swap, value in (("memory.memsw.limit_in_bytes", str(limit)), ("memory.swap.max", "0")):
                if (group / swap).exists():
                    (group / swap).write_text(value, encoding="utf-8")
            return group
        except OSError as error:
            reasons.append(str(error))
            group.rmdir()
    raise OSError(reasons[-1])


def run_in(group: Path, command: list[str]) -> int:
    """Returns the command's status, as waitpid() gives it."""
    child = os.fork()
    if child == 0:
        try:
            (group / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error}", file=sys.stderr)
        os._exit(1)
    return os.waitpid(child, 0)[1]


def remove(group: Path) -> None:
    """Removes the group, with the processes that the command left behind in it."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:
            for process in (group / "cgroup.procs").read_text(encoding="utf-8").split():
                os.kill(int(process), signal.SIGKILL)
            time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--user", action="store_true", required=True)
    parser.add_argument("--scope", action="store_true", required=True)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("-p", dest="properties", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    properties = dict(one.split("=", 1) for one in options.properties)
    if properties.keys() != {"MemoryMax", "MemorySwapMax"} or properties["MemorySwapMax"] != "0":
        parser.error("expected -p MemoryMax=SIZE -p MemorySwapMax=0")
    try:
        group = make_group(size_of(properties["MemoryMax"]))
    except OSError as error:
        print(f"no memory cgroup can be made here: {error}", file=sys.stderr)
        return 1
    try:
        status = run_in(group, options.command)
    finally:
        remove(group)
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
