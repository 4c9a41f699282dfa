# SPDX-License-Identifier: BSD-3-Clause
"""Has Python answer `etstream profile --callers`: on a signal it writes its stack to a file in memory.

faulthandler does that within the signal's handler, without the interpreter's lock: also in the middle of a call that
holds it, as one that allocates may. Between signals it takes nothing.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal

_LOG = "ETSTREAM_PROFILE"
_file = -1


def begin() -> None:
    _tell()
    os.register_at_fork(after_in_child=_tell)


def _tell() -> None:
    """Where this process writes, as src/profile/caller_watch.h has it."""
    global _file
    with contextlib.suppress(KeyError, OSError):
        log = os.open(os.environ[_LOG], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            before, _file = _file, os.memfd_create("etstream-callers")
            number = signal.SIGRTMIN + 11
            faulthandler.register(number, file=_file, all_threads=False)
            if before >= 0:  # that of the process that this one was forked from
                os.close(before)
            os.write(log, f"C {os.getpid()} {_file} {int(number)}\n".encode())
        finally:
            os.close(log)
