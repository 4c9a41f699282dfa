# SPDX-License-Identifier: BSD-3-Clause
"""Judges how programs end in ExecuTorch's runtime, and what `etstream verify` says of them."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import executorch
import runtime

# The signals that end a program that has read or written where it must not.
MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS")
NEEDED = "to come from a tensor data file"  # verify says this of keys
_SOURCE = Path(__file__).with_name("judge.cpp")


def _built(library: Path) -> Path:
    if not library.exists() or library.stat().st_mtime < _SOURCE.stat().st_mtime:
        package = Path(next(iter(executorch.__path__)))
        include = package / "include"
        portable = include / "executorch" / "runtime" / "core" / "portable_type" / "c10"
        library.parent.mkdir(parents=True, exist_ok=True)
        options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-DC10_USING_CUSTOM_GENERATED_MACROS"]
        options += ["-isystem", str(include), "-isystem", str(portable)]
        libraries = [f"-L{package / 'lib'}", f"-Wl,-rpath,{package / 'lib'}", "-lexecutorch"]
        subprocess.run(["c++", *options, "-o", str(library), str(_SOURCE), *libraries], check=True)
    return library


class Judge:
    """The judge of judge.cpp in this process, which has ExecuTorch's kernels."""

    def __init__(self, library: Path = Path("build/mutants/judge.so")) -> None:
        runtime.load_libraries()
        self._judge = ctypes.CDLL(str(_built(library).absolute())).judge
        self._judge.argtypes = (ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int)

    def run(self, files: list[Path], seed: int) -> list[tuple[str, str]]:
        """Returns how each program ended, and why: in C++, and where it ran there, by Python's functions too."""
        paths = (ctypes.c_char_p * len(files))(*(str(file).encode() for file in files))
        with tempfile.TemporaryFile() as said:
            assert self._judge(paths, len(files), seed, said.fileno()) == 0
            said.seek(0)
            lines = said.read().decode(errors="replace").splitlines()
        assert len(lines) == len(files), (len(lines), len(files))
        ends: list[tuple[str, str]] = [tuple(line.split("\t", 1)) for line in lines]  # type: ignore[misc]
        # Python's functions do more with the outputs.
        ran = [at for at, (end, _) in enumerate(ends) if end == "ran"]
        by_python = runtime.run_all([(files[at].read_bytes(), None) for at in ran])
        for at, (name, _, why) in zip(ran, (end.why.partition(" ") for end in by_python), strict=True):
            if name in MEMORY_SIGNALS:
                ends[at] = name, f"in Python's functions {why}"
        return ends


class Verify:
    """The command `etstream verify`."""

    def __init__(self, command: str) -> None:
        self._command = command
        self.has_warned = False  # True if it warned of a kernel of the last file that takes something unchecked

    def file(self, file: Path) -> str | None:
        """Returns the first error in a file, or None."""
        done = subprocess.run([self._command, "verify", str(file)], capture_output=True, check=False, close_fds=False)
        self.has_warned = b"calls of kernels that check their" in done.stderr
        if done.returncode == 0:
            # Without the data for these keys, a sound file is no promise.
            return f"expected {NEEDED}" if NEEDED.encode() in done.stdout else None
        assert done.returncode == 1, f"verify ended with {done.returncode} on {file}: {done.stderr.decode()}"
        said = done.stderr.decode(errors="replace").splitlines()
        return (said or ["?"])[0]
