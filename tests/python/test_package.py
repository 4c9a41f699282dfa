# SPDX-License-Identifier: BSD-3-Clause
"""What `pip install .` gives: the package, its stubs, the command; and what it is without ExecuTorch."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import etstream


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
    examples = Path(__file__).resolve().parents[2] / "examples"
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
