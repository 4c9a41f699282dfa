# SPDX-License-Identifier: BSD-3-Clause
"""What `pip install .` gives: the package, its stubs, the command; and what it is without ExecuTorch."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import etstream

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def test_the_wheel_has_the_command_the_stubs_and_one_version() -> None:
    command = Path(sys.prefix) / "bin" / "etstream"
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert etstream.__version__ in said
    assert metadata.version("etstream") == etstream.__version__
    package = Path(etstream.__file__).parent
    assert (package / "py.typed").exists()
    assert "class Source:" in (package / "_core.pyi").read_text()
    files = {str(file) for file in metadata.files("etstream") or []}
    assert {"etstream/_core.pyi", "etstream/py.typed", "etstream/executorch/__init__.py"} <= files


def test_without_executorch_the_rest_works_and_the_adaptors_say_what_is_missing() -> None:
    script = """
import sys
for name in ("torch", "numpy", "executorch"):
    sys.modules[name] = None
import etstream
print(len(etstream.plan_bundle(sys.argv[1], sys.argv[2])))
try:
    import etstream.executorch
except ImportError as error:
    print(error)
"""
    examples = ROOT / "examples"
    run = [sys.executable, "-c", script, examples / "model.pte", examples / "cases.json"]
    size, message = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert int(size) > (examples / "model.pte").stat().st_size
    assert message.startswith("etstream.executorch needs executorch and torch, not installed here: pip install")


def test_public_names_are_documented() -> None:
    for module in (etstream, importlib.import_module("etstream.executorch")):
        assert module.__doc__
        for name in module.__all__:
            value = getattr(module, name)
            assert name.startswith("__") or value.__doc__, name


def plain_signature(function: Callable[..., object]) -> str:
    """Without annotations."""
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def test_the_page_has_every_public_name_and_the_functions_signatures() -> None:
    told = dict(re.findall(r"\*\*`([\w.]+)(\([^`]*\))`\*\*", PAGE))
    text = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    words = {word for code in re.findall(r"`[^`]*`", text) for word in re.findall(r"\w+", code)}
    for module in (etstream, importlib.import_module("etstream.executorch")):
        for name in module.__all__:
            value = getattr(module, name)
            assert name.startswith("__") or name in words, name
            if inspect.isfunction(value):
                assert told.pop(f"{module.__name__}.{name}") == plain_signature(value)
            elif inspect.isclass(value) and module is etstream and not issubclass(value, Exception):
                members = {member for member in vars(value) if not member.startswith("_")}
                assert members <= words, f"{name}: {members - words}"
    assert set(told) == {"etstream.ExactJson"}
    assert told["etstream.ExactJson"] == plain_signature(etstream.ExactJson)
