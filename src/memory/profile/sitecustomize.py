# SPDX-License-Identifier: BSD-3-Clause
"""Prepares Python for `etstream profile`, which puts this folder in front of PYTHONPATH, so that Python imports this
module before any other. --executorch makes ExecuTorch's steps phases, and --callers makes Python tell what it does when
its memory grows.

A step is a function of ExecuTorch or torch. It is wrapped as soon as its module is imported, before other modules take
it from there. Steps that a release does not have are skipped.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import signal
import sys
import threading
from types import FrameType, ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))

# The steps of each module, and the names of their phases.
_STEPS: dict[str, dict[str, str]] = {
    "torch.export": {"export": "export"},
    "transformers.modeling_utils": {"PreTrainedModel.from_pretrained": "load"},
    "torchao.quantization.quant_api": {"quantize_": "quantize"},
    "torchao.quantization.pt2e.quantize_pt2e": {"prepare_pt2e": "prepare to quantize", "convert_pt2e": "quantize"},
    "executorch.examples.models.llama.export_llama_lib": {"_load_llama_model": "load"},
    "executorch.extension.llm.export.builder": {"LLMEdgeManager.source_transform": "transform the source"},
    "executorch.exir.program._program": {
        "to_edge": "to_edge",
        "to_edge_transform_and_lower": "to_edge_transform_and_lower",
        "EdgeProgramManager.transform": "transform",
        "EdgeProgramManager.to_backend": "to_backend",
        "EdgeProgramManager.to_executorch": "to_executorch",
        "ExecutorchProgramManager.write_to_file": "save",
    },
    "executorch.exir.emit._emit_program": {"emit_program": "emit"},
    "executorch.exir._serialize._program": {"serialize_pte_binary": "serialize"},
    "executorch.devtools.bundled_program.serialize": {"serialize_from_bundled_program_to_flatbuffer": "bundle"},
    "executorch.devtools.etrecord._etrecord": {"generate_etrecord": "ETRecord", "ETRecord.save": "save the ETRecord"},
}
_BACKENDS = "executorch.exir.backend.backend_details"
_MOST_FRAMES = 100  # that faulthandler writes
_OUTERMOST = 16
_stacks = -1  # the file in memory to which this process writes its stacks


def _wrap(module: ModuleType, steps: dict[str, str]) -> None:
    for path, name in steps.items():
        *owners, attribute = path.split(".")
        owner = functools.reduce(lambda found, each: getattr(found, each, None), owners, module)
        function = inspect.getattr_static(owner, attribute, None)
        in_phase = _profile.phase(name)
        if isinstance(function, classmethod):
            setattr(owner, attribute, classmethod(in_phase(function.__func__)))
        elif callable(function):
            setattr(owner, attribute, in_phase(function))


def _wrap_backends(module: ModuleType) -> None:
    """Makes each backend's preprocess a phase with the backend's name."""
    details = getattr(module, "BackendDetails", None)
    if details is None:
        return
    begin = details.__init_subclass__.__func__

    def subclass(cls: type, **named: Any) -> None:
        begin(cls, **named)
        for method in ("preprocess", "preprocess_multimethod"):
            own = cls.__dict__.get(method)
            if isinstance(own, staticmethod):
                in_phase = _profile.phase(f"preprocess for {cls.__name__}")
                setattr(cls, method, staticmethod(in_phase(own.__func__)))

    details.__init_subclass__ = classmethod(subclass)


def _wrap_after(loader: Any, name: str) -> None:
    """Makes the loader wrap the steps of the module of this name once it has loaded it."""
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        if name == module.__name__ == _BACKENDS:
            _wrap_backends(module)
        elif name == module.__name__:
            _wrap(module, _STEPS[name])

    loader.exec_module = exec_module


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _STEPS and name != _BACKENDS:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _wrap_after(spec.loader, name)
                return spec
        return None


def _import_next() -> None:
    """Imports the sitecustomize that this one hides."""
    paths = [path for path in sys.path if os.path.abspath(path) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _write_outermost(_number: int, frame: FrameType | None) -> None:
    """Writes the outermost frames of the main thread, which faulthandler leaves out of a deep stack."""
    lines = []
    while frame is not None:
        lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}\n')
        frame = frame.f_back
    os.write(_stacks, "".join(["Outermost\n", *lines[_MOST_FRAMES:][-_OUTERMOST:]]).encode(errors="replace"))


def _answer_signals() -> None:
    """Makes this process write its stack on a signal, and tells `etstream profile` so; see
    src/memory/profile/jump_watch.h.

    faulthandler writes the stack in the signal's handler, without the interpreter's lock. So it also works during a
    call that holds the lock, as a call that allocates may. Between signals this costs nothing.
    """
    global _stacks
    with contextlib.suppress(KeyError, OSError):
        log = os.open(os.environ["ETSTREAM_PROFILE"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            before, _stacks = _stacks, os.memfd_create("etstream-callers")
            number = signal.SIGRTMIN + 11
            faulthandler.register(number, file=_stacks, all_threads=False)
            if threading.current_thread() is threading.main_thread():
                signal.signal(number + 1, _write_outermost)
            if before >= 0:  # the file of the process that this one was forked from
                os.close(before)
            os.write(log, f"C {os.getpid()} {_stacks} {int(number)}\n".encode())
        finally:
            os.close(log)


if "ETSTREAM_PROFILE_STEPS" in os.environ:
    import etstream_profile as _profile

    sys.meta_path.insert(0, _Finder())
if "ETSTREAM_PROFILE_CALLERS" in os.environ:
    _answer_signals()
    os.register_at_fork(after_in_child=_answer_signals)
_import_next()
