# SPDX-License-Identifier: BSD-3-Clause
"""Tries files in ExecuTorch's runtime, which may crash on them.

    python tests/peer/executorch_judge.py < TASKS.json > VERDICTS.json

carries the tasks out in a process that is started again each time a task ends it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_SECONDS_A_TASK = 30
_BYTES_FOR_TASKS = 2**31


@dataclass(frozen=True)
class Task:
    """A task: to load a program, with its methods if wanted, or to run a bundle's test case if one is given.

    `weights` is a tensor data file for the program.
    """

    file: str
    method: str | None = None
    case: int = 0
    load_methods: bool = False
    weights: str | None = None


@dataclass(frozen=True)
class Verdict:
    """A verdict: `error` is ExecuTorch's message, or the name of the signal that ended it."""

    accepted: bool
    crashed: bool = False
    error: str = ""


def judge(tasks: Sequence[Task]) -> list[Verdict]:
    """Returns ExecuTorch's verdict on each task; this process is safe from ExecuTorch's crashes."""
    result = subprocess.run(
        [sys.executable, __file__],
        check=True,
        input=json.dumps([asdict(task) for task in tasks]).encode(),
        stdout=subprocess.PIPE,
    )
    return [Verdict(**verdict) for verdict in json.loads(result.stdout)]


def _runtime() -> Any:
    """Returns ExecuTorch's runtime without its exporter, which takes long to import."""
    import torch  # noqa: F401  # _C links to it
    from executorch.extension.pybindings import _C, data_loader  # noqa: F401

    return _C


def _carry_out(task: Task) -> None:
    runtime = _runtime()
    data = Path(task.file).read_bytes()
    if task.method is not None:
        bundle = runtime._load_bundled_program_from_buffer(data)
        bundle.verify_result_with_bundled_expected_output(task.method, task.case, 1e-4, 1e-4)
        return
    strict = runtime.Verification.InternalConsistency
    program = runtime._load_program_from_buffer(
        data, program_verification=strict, data_path=task.weights
    )
    for index in range(program.num_methods() if task.load_methods else 0):
        program.load_method(program.get_method_name(index))


def _limit_memory() -> None:
    """Makes a task that asks for very much memory fail, instead of the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _BYTES_FOR_TASKS
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _verdict(task: Task) -> Verdict:
    signal.alarm(_SECONDS_A_TASK)
    try:
        _carry_out(task)
    except Exception as error:  # any exception means that ExecuTorch has refused
        return Verdict(accepted=False, error=f"{type(error).__name__}: {error}")
    return Verdict(accepted=True)


def _verdicts_until_crash(tasks: Sequence[Task]) -> list[Verdict]:
    """Returns the verdicts on the tasks up to the first that ends its process, that one included."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _limit_memory()
        os.dup2(2, 1)  # ExecuTorch's messages are not verdicts
        with os.fdopen(write_end, "w") as results:
            for task in tasks:
                print(json.dumps(asdict(_verdict(task))), file=results, flush=True)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as results:
        verdicts = [Verdict(**json.loads(line)) for line in results]
    _, status = os.waitpid(child, 0)
    if len(verdicts) < len(tasks):
        name = signal.Signals(os.WTERMSIG(status)).name
        verdicts.append(Verdict(accepted=False, crashed=True, error=name))
    return verdicts


def main() -> None:
    _runtime()  # loads it once, for every child
    tasks = [Task(**task) for task in json.load(sys.stdin)]
    verdicts: list[Verdict] = []
    while len(verdicts) < len(tasks):
        verdicts += _verdicts_until_crash(tasks[len(verdicts) :])
    json.dump([asdict(verdict) for verdict in verdicts], sys.stdout)


if __name__ == "__main__":
    main()
