# SPDX-License-Identifier: BSD-3-Clause
"""Tests what `pip install .` gives: the package, its stubs and the command; and what it can do without ExecuTorch."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import is_typeddict

import etstream
import nanobind
from etstream._writing import defaults_of

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
print(len(etstream.bundle(sys.argv[1], sys.argv[2], dry_run=True)))
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
    for module in (etstream, etstream.results, importlib.import_module("etstream.executorch")):
        assert module.__doc__
        for name in module.__all__:
            value = getattr(module, name)
            assert name.startswith("__") or value.__doc__, name


def plain_signature(function: Callable[..., object]) -> str:
    """Returns a signature without annotations, in which options of a TypedDict are `**options`."""
    signature = inspect.signature(inspect.unwrap(function))
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
            elif is_typeddict(value):
                common = {} if value is etstream.WriteOptions else defaults_of(etstream.WriteOptions)
                own = {key: default for key, default in defaults_of(value).items() if key not in common}
                keys = ", ".join(f"{key}={default!r}" for key, default in own.items())
                assert told.pop(f"{module.__name__}.{name}") == f"(*, {keys})"
            elif inspect.isclass(value) and module is etstream and not issubclass(value, Exception):
                members = {member for member in vars(value) if not member.startswith("_")} - set(dir(Mapping))
                assert members <= words, f"{name}: {members - words}"
    assert set(told) == {"etstream.ExactJson"}
    assert told["etstream.ExactJson"] == plain_signature(etstream.ExactJson)


def test_a_free_threaded_python_is_refused_when_the_package_is_built_for_it() -> None:
    folders = [ROOT / "src", ROOT / "include", nanobind.include_dir(), sysconfig.get_path("include")]
    compiler = ["c++", "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in folders)]
    said = [
        subprocess.run([*compiler, *options, ROOT / "src/python/module.cpp"], capture_output=True, text=True).stderr
        for options in ([], ["-DPy_GIL_DISABLED"])
    ]
    sentence = "etstream needs a Python with the GIL, which guards the objects that it refers to"
    assert [sentence in errors for errors in said] == [False, True], said[1]


SIDE_BY_SIDE = (ROOT / "docs" / "command-and-python.md").read_text(encoding="utf-8")


def test_command_and_python_side_by_side_are_as_they_are() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "command").glob("*.md"))
    sections = {section.split("\n", 1)[0]: section for section in pages.split("\n## etstream ")[1:]}
    used = set()
    rows = [line.split("|")[1:-1] for line in SIDE_BY_SIDE.splitlines() if line.startswith("| ")][1:]
    for _, commands, in_python in rows:
        for line in re.findall(r"`([^`]*)`", commands):
            words = line.split(" -- ")[0].split()
            name = words[0]
            used.add(name)
            for option in (word for word in words if word.startswith("-") and len(word) > 1):
                assert re.search(rf"`{option}[`, ]", sections[name]), (line, option)
        for call in re.findall(r"`(?:with )?(etstream\.[\w.]*)\(([^`]*)`", in_python):
            path, arguments = call
            function = importlib.import_module("etstream")
            importlib.import_module("etstream.executorch")
            importlib.import_module("etstream.profile")
            for part in path.split(".")[1:]:
                function = getattr(function, part)
            told = re.findall(r"[(, ](\w+)=", f"({arguments}")
            if inspect.isfunction(function):
                assert set(told) <= set(inspect.signature(function).parameters), call
            used.add(path)
    assert set(sections) <= used
    functions = {f"etstream.{name}" for name in etstream.__all__ if inspect.isfunction(getattr(etstream, name))}
    assert functions - {"etstream.read_test_cases"} <= used
