# SPDX-License-Identifier: BSD-3-Clause
"""Installs a wheel and uses it, with Python's own library alone.

    in_bare_root.py WHEEL
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TRY = Path("/try")
ENVIRONMENT = Path("/environment")
# The unpacked pip, compiled by the script that made the root.
PIP = Path("/pip/pip")
USE = """
import etstream
suites = etstream.read_test_cases("cases.json")
etstream.bundle("model.pte", suites, "python.bpte")
findings = etstream.verify("python.bpte")
assert findings, findings
assert not etstream.verify("cut.bpte")
etstream.convert("python.bpte", "segmented.bpte", to="segmented")
assert etstream.inspect("segmented.bpte")
assert "etstream" in etstream.__file__ and etstream.__file__.startswith("/environment/")
program = etstream.ProgramFile("model.pte")
etstream.pte("model.pte", "rewritten.pte")
assert etstream.verify("rewritten.pte")
print("Python", etstream.__version__)
"""
# The heap's library is the wheel's third binary.
HEAP = """
import ctypes
libc = ctypes.CDLL(None)
block = bytearray(64 << 20)
assert "etstream" in open("/proc/self/maps").read()
"""


def run(*command: object, fails: bool = False) -> str:
    done = subprocess.run([str(one) for one in command], cwd=TRY, capture_output=True, text=True, check=False)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main() -> int:
    wheel = Path(sys.argv[1])
    for program in ("cc", "c++", "cmake", "pip"):
        if shutil.which(program):
            sys.exit(f"this is no bare system: it has {program}")
    for library in ("flatbuffers", "stdc++", "crypto.a", "fmt"):
        if found := list(Path("/usr/lib").rglob(f"lib{library}*")):
            sys.exit(f"this is no bare system: it has {found[0]}")
    run(sys.executable, "-m", "venv", "--without-pip", ENVIRONMENT)
    python, etstream = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "bin" / "etstream"
    run(python, PIP, "install", "--no-index", "--quiet", wheel)
    version = wheel.name.split("-")[1]
    if run(etstream, "--version").strip() != f"etstream {version}":
        sys.exit("the command tells another version")
    run(etstream, "bundle", "model.pte", "--cases", "cases.json", "-o", "command.bpte")
    run(etstream, "verify", "command.bpte")
    whole = (TRY / "command.bpte").read_bytes()
    (TRY / "cut.bpte").write_bytes(whole[:-1000])
    run(etstream, "verify", "cut.bpte", fails=True)
    if run(python, "-c", USE).strip() != f"Python {version}":
        sys.exit("the module tells another version")
    if (TRY / "python.bpte").read_bytes() != whole:
        sys.exit("the command and the module bundle to different bytes")
    run(etstream, "run", "--", python, "-c", HEAP)
    run(python, PIP, "uninstall", "--quiet", "--yes", "etstream")
    if left := [one for one in ENVIRONMENT.rglob("*etstream*") if "__pycache__" not in str(one)]:
        sys.exit(f"uninstalling leaves {left[0]}")
    print(f"{os.uname().machine}, Python {sys.version.split()[0]}: installed, used, uninstalled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
