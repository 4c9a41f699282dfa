# SPDX-License-Identifier: BSD-3-Clause
"""Notes which parameter became which key of named data, as backends name the data by its hash.

The notes are made where a backend adds data to its store, and go with the store into the program's manager.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from etstream import _core
from etstream._errors import InvalidArgumentError
from etstream.executorch._patches import Patch, PatchSet, needed, of_manager

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager

_STORE = "executorch.exir._serialize._named_data_store:NamedDataStore"
_XNNPACK_VISITOR = "executorch.backends.xnnpack.operators.node_visitor:NodeVisitor"
_NOTED = "_etstream_names"

_PARAMETRIZED = re.compile(r"\.parametrizations\.([^.]+)\.original\d*$")
"""The pattern of names that torch's export gives to the parts of a parameter, such as a quantized one."""

_Names = dict[str, dict[str, None]]
"""The names of parameters by key, in order, each once."""

_parameter: ContextVar[str | None] = ContextVar("etstream_parameter", default=None)
"""The name of the parameter that a backend is making named data of."""


def _noted(store: Any) -> _Names:
    """Returns the notes on a NamedDataStore, or on its output."""
    return vars(store).setdefault(_NOTED, {})  # type: ignore[no-any-return]


def _add_named_data(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def add(self: Any, key: str, *args: Any, **kwargs: Any) -> Any:
        result = original(self, key, *args, **kwargs)
        name = _parameter.get()
        if name is not None:
            is_scale = key.startswith("scale_")
            _noted(self).setdefault(key, {})[f"{name} (scales)" if is_scale else name] = None
        return result

    return add


def _output(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def output(self: Any) -> Any:
        result = original(self)
        setattr(result, _NOTED, _noted(self))
        return result

    return output


def _merge(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def merge(self: Any, other: Any) -> Any:
        result = original(self, other)
        for key, names in _noted(other).items():
            _noted(self).setdefault(key, {}).update(names)
        return result

    return merge


def _define_tensor(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps XNNPACK's method for a tensor of the graph, which adds the tensor's data and scales to the store."""
    signature = inspect.signature(original)
    is_parameter, name_of = needed(
        "names",
        "executorch.backends.xnnpack.utils.utils:is_param_node",
        "executorch.backends.xnnpack.utils.utils:get_tensor_name",
    )

    @functools.wraps(original)
    def define(self: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        quantization = signature.bind(self, tensor, *args, **kwargs).arguments.get("quant_params")
        node = tensor if quantization is None else quantization.q_input
        program = self.exported_program
        name = name_of(program, node) if is_parameter(program, node) else ""
        token = _parameter.set(_PARAMETRIZED.sub(r".\1", name) or None)
        try:
            return original(self, tensor, *args, **kwargs)
        finally:
            _parameter.reset(token)

    return define


def _patches() -> list[Patch]:
    return [
        Patch(_STORE, "add_named_data", _add_named_data),
        Patch(_STORE, "get_named_data_store_output", _output),
        Patch(_STORE, "merge_named_data_store", _merge),
        Patch(_XNNPACK_VISITOR, "define_tensor", _define_tensor),
    ]


recording = PatchSet("names", _patches)
"""The patches that note names while anyone has entered them."""


def _write_to_file(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def write(self: ExecutorchProgramManager, open_file: Any) -> Any:
        result = original(self, open_file)
        path = getattr(open_file, "name", None)
        if isinstance(path, str) and path.endswith(".pte"):
            plan_of(self).write(beside(path))
        return result

    return write


_MANAGER = "executorch.exir.program._program:ExecutorchProgramManager"
writing = PatchSet("names", lambda: [Patch(_MANAGER, "write_to_file", _write_to_file)])
"""The patches that make write_to_file() of a manager write names too, while anyone has entered them."""


def is_writing() -> bool:
    """Returns whether programs are to be saved with names."""
    return writing.in_place


def beside(path: str) -> str:
    """Returns MODEL.names.json for MODEL.pte or MODEL.pte.etz, where the command and etstream.inspect() look for it."""
    return f"{os.path.splitext(path.removesuffix('.etz'))[0]}.names.json"


def path_of_names(names: str | os.PathLike[str] | bool | None, output: object) -> str | None:
    """Returns the path that names are written to; None if they are not written."""
    if names is None or names is False:
        return None
    if names is not True:
        return os.fspath(names)
    if isinstance(output, (str, os.PathLike)):
        return beside(os.fspath(output))
    raise InvalidArgumentError("names=True needs a path as the output; give the path of the names")


def plan_of(manager: ExecutorchProgramManager) -> _core.FilePlan:
    """Returns the plan of the JSON file that says what the keys of a program's named data stand for."""
    text = json.dumps(names_of(manager), indent=1, ensure_ascii=False)
    return _core.FilePlan.copy(_core.Source(f"{text}\n".encode()))


def names_of(manager: ExecutorchProgramManager) -> dict[str, str | list[str]]:
    """Returns the known names of keys of data in the program and beside it."""
    named_data = of_manager("names", manager, "_named_data")
    if named_data is None:
        return {}
    entries = dict(named_data.pte_data)
    for external in named_data.external_data.values():
        entries.update(external)
    noted = {key: list(names) for key, names in _noted(named_data).items() if key in entries}
    others = {key: entry for key, entry in entries.items() if key not in noted}
    noted.update(_found_by_content(manager, {key: named_data.buffers[e.buffer_index] for key, e in others.items()}))
    return {key: noted[key][0] if len(noted[key]) == 1 else noted[key] for key in entries if key in noted}


def _found_by_content(manager: ExecutorchProgramManager, data: dict[str, Any]) -> dict[str, list[str]]:
    """Returns the names of parameters whose bytes a backend took unchanged, by the key."""
    if not data:
        return {}
    keys: dict[tuple[int, bytes], list[str]] = {}
    for key, buffer in data.items():
        digest = buffer.sha256() if hasattr(buffer, "sha256") else hashlib.sha256(buffer).digest()
        keys.setdefault((len(buffer), digest), []).append(key)
    sizes = {size for size, _ in keys}
    found: dict[str, list[str]] = {}
    for name, tensor in _parameters(manager):
        size = tensor.numel() * tensor.element_size()
        if size not in sizes or not tensor.is_contiguous():
            continue
        digest = hashlib.sha256(memoryview(tensor.detach().reshape(-1).view(torch.uint8).numpy())).digest()
        for key in keys.get((size, digest), ()):
            if name not in found.setdefault(key, []):
                found[key].append(name)
    return found


def _parameters(manager: ExecutorchProgramManager) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the names and tensors of delegated parameters, as far as the manager still has them."""
    (is_lowered,) = needed("names", "executorch.exir.lowered_backend_module:LoweredBackendModule")
    for method in sorted(manager.methods):
        for module in manager.exported_program(method).graph_module.modules():
            if not isinstance(module, is_lowered):
                continue
            program = module.original_module
            for tensors in (program.state_dict, program.constants):
                for name, tensor in tensors.items():
                    if type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu":
                        yield name, tensor
