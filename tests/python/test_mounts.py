# SPDX-License-Identifier: BSD-3-Clause
"""Warns in Python if a mount lacks calls that etstream does without."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import etstream
import pytest
import torch

FSYNC = {"x86_64": 74, "aarch64": 82}
NO_SYNC = f"""
import ctypes, struct, sys, warnings
import torch, etstream

# A filter of system calls has fsync fail as where a file system has none.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, {FSYNC.get(platform.machine())}), (6, 0, 0, 0x50016), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0

def save(**options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        etstream.save_ptd({{"w": torch.ones(4)}}, sys.argv[1], **options)
    return [(str(each.message), each.filename) for each in caught]

expected = f"cannot sync {{sys.argv[1]!r}}: Invalid argument: a power failure may undo what was written"
expected += "; sync=False does not ask for it"
((message, file),) = save()
assert message == expected
assert file == "<string>", file
assert save(sync=False) == []
warnings.simplefilter("error")
try:
    etstream.save_ptd({{"w": torch.zeros(4)}}, sys.argv[1])
except UserWarning as warning:
    assert str(warning) == expected
else:
    raise AssertionError("no warning")
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in FSYNC, reason="it filters the system calls of Linux"
)
def test_where_nothing_can_be_synced_a_file_is_complete_and_python_warns(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_SYNC, tmp_path / "w.ptd"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # The last file was complete before the warning.
    assert torch.equal(etstream.load_ptd(tmp_path / "w.ptd")["w"], torch.zeros(4))
