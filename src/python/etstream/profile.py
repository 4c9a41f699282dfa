# SPDX-License-Identifier: BSD-3-Clause
"""Marks phases of a program, for `etstream profile`.

    with etstream.profile.phase("lower"):
        program = to_edge(exported)

    etstream profile --html report.html -- python export.py

If nobody profiles the program, phases cost nothing to speak of.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter

__all__ = ["phase"]

_LOG = "ETSTREAM_PROFILE"


def __dir__() -> list[str]:
    return __all__


class _Phase(contextlib.ContextDecorator):
    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        _tell("B", self._name)

    def __exit__(self, *_: object) -> None:
        _tell("E", "")


def phase(name: str) -> _Phase:
    """Puts this thread in a phase while a `with` block, or a function that this decorates, runs. Phases of a thread may
    be nested.

    Under `etstream profile` the kernel's high-water mark of the process (VmHWM) is reset where a phase begins and ends,
    which takes about 0.1 ms. On systems other than Linux nothing happens.

    Raises:
        TypeError: `name` is no text.
        ValueError: `name` is empty, or nothing but white space.
    """
    if not isinstance(name, str):
        raise TypeError(f"phase(name): expected the name of a phase as text, found {name!r}")
    if not name.strip():
        raise ValueError(f"phase(name): expected the name of a phase, found {name!r}")
    return _Phase(name)


def _tell(kind: str, name: str) -> None:
    """Writes an event to the profile's log, in the format of src/memory/profile/phase_log.h."""
    path = os.environ.get(_LOG)
    if path is None:
        return
    with contextlib.suppress(OSError):
        import resource  # which only Unix has

        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            status = _numbers("/proc/self/status", b":\t")
            io = _numbers("/proc/self/io", b": ")
            memory = [status[b"VmHWM"], status[b"VmRSS"], status[b"RssAnon"] + status[b"RssShmem"], status[b"RssFile"]]
            cpu = time.process_time_ns()
            reset = _reset_high_water()
            words = [
                kind,
                os.getpid(),
                threading.get_native_id(),
                time.clock_gettime_ns(time.CLOCK_MONOTONIC),
                *(kibibytes << 10 for kibibytes in memory),
                cpu,
                io[b"rchar"],
                io[b"wchar"],
                resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10,
                int(reset),
                " ".join(name.splitlines()),
            ]
            os.write(log, (" ".join(map(str, words)) + "\n").encode(errors="replace"))
        finally:
            os.close(log)


def _numbers(path: str, mark: bytes) -> Counter[bytes]:
    """Returns the first number of each line "NAME: NUMBER"; 0 for names that the file lacks, or if it can't be read."""
    found: Counter[bytes] = Counter()
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        for line in file.read(16384).split(b"\n"):
            name, _, value = line.partition(mark)
            number = value.split(maxsplit=1)[:1]
            if number and number[0].isdigit():
                found[name] = int(number[0])
    return found


def _reset_high_water() -> bool:
    try:
        with open("/proc/self/clear_refs", "wb", buffering=0) as file:
            file.write(b"5")
    except OSError:
        return False
    return True
