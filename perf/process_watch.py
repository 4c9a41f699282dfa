# SPDX-License-Identifier: BSD-3-Clause
"""What a process has in memory at most, looked at from outside, and in which mappings its anonymous part lies."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20
_INTERVAL = 0.002
_LOOK_AGAIN = 16 * MIB
"""Mappings are looked at each time the peak has grown by so much; that takes longer than a sample."""


@dataclass
class Taken:
    """Bytes, of the process that exports alone; `places` says where the anonymous ones lay near the peak."""

    anonymous: int = 0
    resident: int = 0
    seconds: float = 0.0
    status: int = 0
    was_ended: bool = False
    places: Counter[str] = field(default_factory=Counter)
    looked_at: int = 0


def watched(command: Sequence[str], log: Path, folder: Path, *, child: bool, most: int) -> Taken:
    """Runs `command` in `folder`; what it says goes to `log`. With `child` the process to look at is the one
    that it starts. It is ended once it has `most` bytes of anonymous memory."""
    taken = Taken()
    environment = {**os.environ, "TMPDIR": str(folder)}
    begun = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment)
        pid = 0 if child else process.pid
        while process.poll() is None:
            pid = pid or _child_of(process.pid)
            if pid:
                _look(pid, taken)
            if taken.anonymous > most and not taken.was_ended:
                taken.was_ended = True
                os.kill(pid, signal.SIGKILL)
            time.sleep(_INTERVAL)
    taken.seconds = time.perf_counter() - begun
    taken.status = process.returncode
    return taken


def _child_of(pid: int) -> int:
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else 0
    return 0


def _look(pid: int, taken: Taken) -> None:
    anonymous, resident = memory_of(pid)
    taken.resident = max(taken.resident, resident)
    if anonymous <= taken.anonymous:
        return
    taken.anonymous = anonymous
    if anonymous > taken.looked_at + _LOOK_AGAIN:
        taken.places = places_of(pid) or taken.places
        taken.looked_at = anonymous


def memory_of(pid: int | str) -> tuple[int, int]:
    """Anonymous and resident; nothing once the process has ended."""
    found = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("RssAnon", "VmRSS"):
                found[name] = int(value.split()[0]) << 10
    return found.get("RssAnon", 0), found.get("VmRSS", 0)


def places_of(pid: int | str) -> Counter[str]:
    """Of each kind of mapping, how many bytes of it are anonymous."""
    places: Counter[str] = Counter()
    place = ""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            words = line.split()
            if re.fullmatch("[0-9a-f]+-[0-9a-f]+", words[0]):
                place = _kind(words)
            elif words[0] == "Anonymous:":
                places[place] += int(words[1]) << 10
    return places


def _kind(words: Sequence[str]) -> str:
    """Of a mapping, by the line that smaps begins with."""
    name = " ".join(words[5:])
    if name.startswith("["):
        return "brk" if name == "[heap]" else name.strip("[]")
    if not name:
        begin, end = (int(side, 16) for side in words[0].split("-"))
        return "unnamed, 1 MiB and more" if end - begin >= MIB else "unnamed, smaller"
    file = name.removesuffix(" (deleted)")
    if re.search(r"\.so(\.[\d.]+)?$", file):
        return "libraries' data"
    if re.fullmatch(r"#\d+", Path(file).name) or ".etstream-heap-" in file:
        return "the heap's file, copied after a fork"
    return f"copied from {Path(file).name}"
