# SPDX-License-Identifier: BSD-3-Clause
"""What `etstream profile` has Python do: it puts this folder in front of PYTHONPATH, and Python imports this module
before any other. --callers and --memray have modules of their own; --executorch has ExecuTorch's steps as phases.

A step is a function of ExecuTorch's or torch's. It is wrapped as soon as the module that has it is imported, before
others take it from there. What a release does not have is passed over.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))

# By module: what of it, and the phase's name.
_STEPS: dict[str, dict[str, str]] = {
    "torch.export": {"export": "export"},
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


def _module(name: str) -> ModuleType:
    """One of this folder, under a name that no other module has."""
    spec = importlib.util.spec_from_file_location(f"_etstream_{name}", os.path.join(_HERE, f"etstream_{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _phase(name: str) -> Any:
    return _profile.phase(name)


def _in_phase(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        with _phase(name):
            return function(*arguments, **named)

    return run


def _wrap(module: ModuleType, steps: dict[str, str]) -> None:
    for path, name in steps.items():
        *owners, attribute = path.split(".")
        owner = functools.reduce(lambda found, each: getattr(found, each, None), owners, module)
        function = getattr(owner, attribute, None)
        if callable(function):
            setattr(owner, attribute, _in_phase(name, function))


def _wrap_backends(module: ModuleType) -> None:
    """Each backend's preprocess, by the backend's name."""
    details = getattr(module, "BackendDetails", None)
    if details is None:
        return
    begin = details.__init_subclass__.__func__

    def subclass(cls: type, **named: Any) -> None:
        begin(cls, **named)
        for method in ("preprocess", "preprocess_multimethod"):
            own = cls.__dict__.get(method)
            if isinstance(own, staticmethod):
                wrapped = _in_phase(f"preprocess for {cls.__name__}", own.__func__)
                setattr(cls, method, staticmethod(wrapped))

    details.__init_subclass__ = classmethod(subclass)


class _Loader(importlib.abc.Loader):
    """Loads as another loader does, and wraps what the module has then."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if module.__name__ == _BACKENDS:
            _wrap_backends(module)
        else:
            _wrap(module, _STEPS[module.__name__])


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
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def _import_next() -> None:
    """The sitecustomize that this one stands before."""
    paths = [path for path in sys.path if os.path.abspath(path) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "ETSTREAM_PROFILE_STEPS" in os.environ:
    _profile = _module("profile")
    sys.meta_path.insert(0, _Finder())
if "ETSTREAM_PROFILE_CALLERS" in os.environ:
    _module("callers").begin()
if (_recording := os.environ.pop("ETSTREAM_PROFILE_MEMRAY", None)) is not None:
    _module("recording").begin(_recording)
_import_next()
