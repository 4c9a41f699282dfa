# SPDX-License-Identifier: BSD-3-Clause
"""Proves that all of the Python package's public names have docstrings, and that these refer to names that exist.

    python check_docstrings.py

References are dotted names that begin with `etstream` or with the name of a public class.
"""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import etstream
import etstream.executorch
import etstream.profile
import etstream.results

MODULES = (etstream, etstream.executorch, etstream.profile, etstream.results)
REFERENCE = re.compile(r"(?<![\w.])(\w+)((?:\.\w+)+)")


def public_objects(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yields the functions, the classes and the members of these that users can reach, with their names."""
    yield module.__name__, module
    for name in getattr(module, "__all__", ["phase"]):
        value = getattr(module, name)
        yield f"{module.__name__}.{name}", value
        if isinstance(value, type):
            for member in vars(value).keys() | getattr(value, "__annotations__", {}).keys():
                if not member.startswith("_"):
                    yield f"{module.__name__}.{name}.{member}", getattr(value, member, None)


def main() -> None:
    objects = dict(item for module in MODULES for item in public_objects(module))
    tails = {path.split(".", first)[-1] for path in objects for first in range(path.count(".") + 1)}
    first_words = {"etstream"} | {path.split(".")[-1] for path, value in objects.items() if isinstance(value, type)}
    for path, value in sorted(objects.items()):
        if not (inspect.isroutine(value) or inspect.isdatadescriptor(value) or isinstance(value, (type, ModuleType))):
            continue
        text = inspect.getdoc(value)
        if not text:
            print(f"{path}: has no docstring")
        for first, rest in REFERENCE.findall(text or ""):
            if first in first_words and not rest.startswith("._") and first + rest not in tails:
                print(f"{path}: {first}{rest} is not a name in the package")


main()
