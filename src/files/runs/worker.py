# SPDX-License-Identifier: BSD-3-Clause
"""Runs methods of a program on ExecuTorch's runtime for etstream's run_methods(), which passes this text to Python.

This process imports ExecuTorch, and forks for each run. It reads lines of JSON from standard input, one for each run,
and answers each on standard output with how the run ended. When standard input ends, this process and its run end too.
"""

import sys

sys.path[:] = [folder for folder in sys.path if folder]  # leaves out the working folder, which may hold any torch.py

import contextlib  # noqa: E402
import ctypes  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import resource  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import threading  # noqa: E402
import types  # noqa: E402
from pathlib import Path  # noqa: E402

# The descriptors that this process starts with: the program, or a bundle with its test cases; a copy of the program;
# outputs; weights.
FILE, COPY, OUTPUTS, WEIGHTS = range(3, 7)
MOST_SAID = 65536
MOST_LINES = 2  # the most lines of the log that a reason quotes
NOISE = re.compile(r"cpuinfo|with type id|dim order: \[|^[^A-Za-z]*$|Failed to load .*torchao|KernelCall failed at")
FATAL = re.compile(r"In function|assert|terminate|what\(\)")
FAILED_AT = re.compile(r"failed at instruction (\d+):(\d+)")
NUMBER = re.compile(r"0x:?([0-9a-fA-F]+)")
NO_MEMORY = re.compile(r"bad_alloc|can't allocate memory|not enough memory")
MEMORY_ALLOCATION_FAILED = 0x21


class NotMade(Exception):
    """An input that can't be made."""


def import_runtime():
    """Imports ExecuTorch's runtime, loads libraries of more kernels, and returns the runtime's module.

    The runtime takes a warning from a module of the package that exports, the import of which takes most of the time.
    So an empty package with the same folders stands in its place.
    """
    import executorch

    exporter = types.ModuleType("executorch.exir")
    exporter.__path__ = [f"{folder}/exir" for folder in executorch.__path__]
    sys.modules[exporter.__name__] = executorch.exir = exporter
    try:
        from executorch.extension.pybindings import portable_lib
    except ImportError:
        # It takes more from there, or can't be imported at all.
        del executorch.exir
        for name in [name for name in sys.modules if name.startswith(exporter.__name__)]:
            del sys.modules[name]
        from executorch.extension.pybindings import portable_lib
    import torch

    package = Path(portable_lib.__file__).parents[2]
    for folder in ("kernels/quantized", "extension/llm/custom_ops"):
        for library in (package / folder).rglob("*_ops_aot_lib.*"):
            with contextlib.suppress(Exception):  # the library may be for another torch
                torch.ops.load_library(library)
    return portable_lib


def end_with_etstream(imported):
    """Ends this process if standard input ends while ExecuTorch is being imported, which takes seconds."""
    while not imported.is_set():
        if select.select([0], [], [], 0.1)[0]:
            os._exit(1)


def inverse(order):
    return sorted(range(len(order)), key=order.__getitem__)


def read_bytes(offset, size):
    out = bytearray(size)
    done = 0
    while done < size:
        n = os.preadv(FILE, [memoryview(out)[done:]], offset + done)
        if n == 0:
            raise NotMade("the file has become shorter")
        done += n
    return out


def filled(torch, fill, seed, sizes, dtype):
    if fill == "zeros":
        return torch.zeros(sizes, dtype=dtype)
    if fill == "ones":
        return torch.ones(sizes, dtype=dtype)
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_complex:
        parts = [torch.rand(sizes, generator=generator) * 2 - 1 for _ in range(2)]
        return torch.complex(*parts).to(dtype)
    if dtype.is_floating_point:
        return (torch.rand(sizes, generator=generator) * 2 - 1).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 10, sizes, generator=generator).to(dtype)


def tensor_of(value, task, index):
    import torch

    dtype = getattr(torch, value["dtype"], None)
    if dtype is None:
        raise NotMade(f"torch has no {value['dtype']}")
    order = value["dim_order"]
    sizes = [value["sizes"][dimension] for dimension in order]
    if "offset" not in value:
        out = filled(torch, task["fill"], task["seed"] + index, sizes, dtype)
    elif value["size"] == 0:
        out = torch.empty(sizes, dtype=dtype)
    else:
        data = torch.frombuffer(read_bytes(value["offset"], value["size"]), dtype=torch.uint8)
        out = data.view(dtype).reshape(sizes)
    return out.permute(inverse(order))


def input_of(value, task, index):
    if not isinstance(value, dict):
        return value
    if "kind" in value:
        raise NotMade(f"input {index} is a {value['kind']}, which is not made; test cases in a bundle may have one")
    if "double" in value:
        return float.fromhex(value["double"])
    try:
        return tensor_of(value, task, index)
    except MemoryError:
        raise
    except Exception as error:
        if NO_MEMORY.search(str(error)):
            raise MemoryError from error
        raise NotMade(f"input {index} can't be made: {error}") from error


def told(value, at):
    """Returns a description of an output for JSON, and writes the bytes of a tensor to OUTPUTS, from `at` on."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return {"double": value.hex()}
    if not hasattr(value, "data_ptr"):
        return {"other": type(value).__name__}
    value = value.contiguous()
    size = value.numel() * value.element_size()
    data = memoryview((ctypes.c_char * size).from_address(value.data_ptr())) if size else b""
    done = 0
    while done < size:
        done += os.pwrite(OUTPUTS, data[done:], at + done)
    dtype = str(value.dtype).removeprefix("torch.")
    return {"dtype": dtype, "sizes": list(value.shape), "offset": at, "size": size}


def carry_out(runtime, task):
    inputs = [input_of(value, task, index) for index, value in enumerate(task["inputs"])]
    program = f"/dev/fd/{COPY if task['copy'] else FILE}"
    weights = {"data_path": f"/dev/fd/{WEIGHTS}"} if task["weights"] else {}
    # As executorch.runtime does by default.
    loaded = runtime._load_program(program, program_verification=runtime.Verification.InternalConsistency, **weights)
    method = loaded.load_method(task["method"])
    task["loaded"] = True
    outputs = method.call(inputs)
    if not task["outputs"]:
        return {"end": "ok"}
    out, at = [], 0
    for output in outputs:
        out.append(told(output, at))
        at += out[-1]["size"] if isinstance(out[-1], dict) and "size" in out[-1] else 0
    return {"end": "ok", "outputs": out}


def limit(task):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_REAL, task["seconds"])
    try:
        with open("/proc/self/status") as status:
            (before,) = (int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))
    except OSError:  # this system does not enforce such a limit
        return
    most = before + task["memory"]
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def run_here(runtime, task, result):
    """Carries out a run in this process, writes how it ended to `result`, and ends the process."""
    try:
        limit(task)
        end = carry_out(runtime, task)
    except NotMade as error:
        end = {"end": "not_run", "said": str(error)}
    except MemoryError:
        end = {"end": "out_of_memory"}
    except BaseException as error:
        end = {"end": "refused", "said": str(error), "loaded": "loaded" in task}
    data = json.dumps(end).encode()
    while data:
        data = data[os.write(result, data) :]
    os._exit(0)


def reason_in(log, is_crash):
    """Returns the last lines of the log that say what was wrong, without the places in ExecuTorch's sources."""
    lines = [line.strip() for line in log.decode(errors="replace").splitlines()]
    lines = [line for line in lines if line and not NOISE.search(line)]
    if is_crash:
        lines = [line for line in lines if FATAL.search(line)][-1:]
    return "; ".join(re.sub(r"^.*?\] ", "", line) for line in lines[-MOST_LINES:])[:1000]


def judged(status, answer, log):
    if not os.WIFSIGNALED(status) and answer:
        out = json.loads(answer)
    elif not os.WIFSIGNALED(status):
        out = {"end": "refused", "said": f"the process exited with {os.WEXITSTATUS(status)}"}
    elif os.WTERMSIG(status) == signal.SIGALRM:
        return {"end": "out_of_time"}
    elif os.WTERMSIG(status) == signal.SIGKILL or NO_MEMORY.search(log.decode(errors="replace")):
        return {"end": "out_of_memory"}
    else:
        out = {"end": "signal", "signal": signal.Signals(os.WTERMSIG(status)).name}
    if out["end"] == "ok":
        return out
    out["reason"] = reason_in(log, out["end"] == "signal")
    if out["end"] == "refused":
        number = NUMBER.search(out["said"])
        if number:
            out["error"] = int(number[1], 16)
        if NO_MEMORY.search(out["said"]) or out.get("error") == MEMORY_ALLOCATION_FAILED:
            out["end"] = "out_of_memory"
    at = list(FAILED_AT.finditer(log.decode(errors="replace")))
    if at:
        out["failed_at"] = [int(number) for number in at[-1].groups()]
    return out


def run(runtime, task):
    os.ftruncate(OUTPUTS, 0)
    log_end, log_writer = os.pipe()
    result_end, result_writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(log_writer, 1)
        os.dup2(log_writer, 2)
        run_here(runtime, task, result_writer)
    os.close(log_writer)
    os.close(result_writer)
    kept = {log_end: b"", result_end: b""}
    left = [log_end, result_end]
    while left:
        ready, _, _ = select.select([*left, 0], [], [])
        if 0 in ready:  # etstream has ended
            os.kill(child, signal.SIGKILL)
            os._exit(1)
        for end in ready:
            data = os.read(end, 65536)
            kept[end] += data
            if not data:
                left.remove(end)
                os.close(end)
        kept[log_end] = kept[log_end][-MOST_SAID:]
    return judged(os.waitpid(child, 0)[1], kept[result_end], kept[log_end])


def main():
    for each in (signal.SIGINT, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

    def answer(what):
        data = json.dumps(what).encode() + b"\n"
        while data:
            data = data[os.write(answers, data) :]

    imported = threading.Event()
    watch = threading.Thread(target=end_with_etstream, args=[imported])
    watch.start()
    try:
        runtime = import_runtime()
    except BaseException as error:
        answer({"missing": f"{type(error).__name__}: {error}"})
        return
    finally:
        imported.set()
        watch.join()  # a process that forks has one thread
    answer({"ready": True})
    for line in open(0, "rb", buffering=0, closefd=False):  # noqa: SIM115
        answer(run(runtime, json.loads(line)))


main()
