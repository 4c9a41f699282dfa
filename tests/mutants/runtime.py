# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program, on which ExecuTorch's runtime may crash, each time in a process of its own."""

from __future__ import annotations

import os
import re
import resource
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import executorch
import torch
from executorch.exir.tensor import enum_to_scalar_map
from executorch.extension.pybindings import _C, data_loader  # noqa: F401

_SECONDS = 10
_ROOM = 2**31  # the bytes of addresses beyond those of this process
_MOST_SAID = 4000

Inputs = dict[str, tuple[Any, ...]]  # the inputs by method
Task = tuple[bytes, "Inputs | None"]  # zeros without inputs


@dataclass(frozen=True)
class End:
    """The end of a run: `kind` is "ran", "refused", "crashed" or "no end"; `why` has the signal and ExecuTorch's
    words."""

    kind: str
    why: str = ""


def load_libraries() -> None:
    """Loads kernels for quantized tensors and for language models."""
    package = Path(next(iter(executorch.__path__)))
    for library in ("kernels/quantized/libquantized_ops_aot_lib.so", "extension/llm/custom_ops/libcustom_ops_aot_lib.so"):
        torch.ops.load_library(package / library)


def _zeros(meta: Any) -> tuple[Any, ...]:
    tensors = [meta.input_tensor_meta(index) for index in range(meta.num_inputs())]
    return tuple(torch.zeros(each.sizes(), dtype=enum_to_scalar_map[each.dtype()]) for each in tensors)


def _carry_out(program: bytes, inputs: Inputs | None) -> None:
    loaded = _C._load_program_from_buffer(program)
    for index in range(loaded.num_methods()):
        name = loaded.get_method_name(index)
        method = loaded.load_method(name)
        if inputs is None or name in inputs:
            given = _zeros(method.method_meta()) if inputs is None else inputs[name]
            method.call(given)
            method.call(given)


def _limit(room: int) -> None:
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    limit = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _child(programs: Sequence[Task], said: int, results: int) -> None:
    os.dup2(said, 1)
    os.dup2(said, 2)
    _limit(_ROOM)
    for program, inputs in programs:
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        try:
            _carry_out(program, inputs)
            os.write(results, b"+")
        except BaseException:  # any exception means that ExecuTorch has refused
            os.write(results, b"-")
    os._exit(0)


def _run_in_child(programs: Sequence[Task], said: Any) -> tuple[list[End], int]:
    """Returns how the programs up to the first that ends its process have ended, and that process's status."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _child(programs, said.fileno(), write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as results:
        ends = [End("ran" if result == ord("+") else "refused") for result in results.read()]
    _, status = os.waitpid(child, 0)
    return ends, status


def run(program: bytes, inputs: Inputs) -> End:
    return run_all([(program, inputs)])[0]


def run_all(programs: Sequence[Task]) -> list[End]:
    ends: list[End] = []
    while len(ends) < len(programs):
        with tempfile.TemporaryFile() as said:
            done, status = _run_in_child(programs[len(ends) :], said)
            ends += done
            if os.WIFSIGNALED(status):
                ended_by = signal.Signals(os.WTERMSIG(status))
                no_end = ended_by == signal.SIGALRM
                ends.append(End("no end") if no_end else End("crashed", f"{ended_by.name} {_reason(said)}"))
    return ends


def _reason(said: Any) -> str:
    """Returns the last fatal message, without times and numbers."""
    said.seek(0, os.SEEK_END)
    said.seek(max(0, said.tell() - _MOST_SAID))
    lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    fatal = [line for line in lines if "In function" in line or "assert" in line or "terminate" in line]
    last = (fatal or [""])[-1]
    return re.sub(r"\d+", "N", re.sub(r"^.*?\] ", "", last))[:160]
