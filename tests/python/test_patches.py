# SPDX-License-Identifier: BSD-3-Clause
"""Replaces functions all at once or not at all, and names those that are not there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from etstream.executorch._patches import Patch, PatchSet, instead


def one() -> str:
    return "one"


def two() -> str:
    return "two"


class Place:
    def method(self) -> str:
        return "method"


@pytest.fixture
def modules() -> Iterator[tuple[types.ModuleType, types.ModuleType]]:
    """Yields a module of functions, and another one that has imported them."""
    owner, user = types.ModuleType("owner_of_functions"), types.ModuleType("user_of_functions")
    for module in (owner, user):
        module.one, module.two, module.Place = one, two, Place  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module
    yield owner, user
    for module in (owner, user):
        del sys.modules[module.__name__]


def state(modules: tuple[types.ModuleType, ...]) -> list[Any]:
    return [*(dict(vars(module)) for module in modules), dict(vars(Place))]


FUNCTIONS = [
    Patch("owner_of_functions", "one", instead(lambda: "ours")),
    Patch("owner_of_functions:Place", "method", lambda original: lambda self: original(self) + ", ours"),
    Patch("owner_of_functions", "len", instead(lambda _: 7), only_there=True),
]


def test_replacements_are_everywhere_and_undone(modules: Any) -> None:
    owner, user = modules
    before = state(modules)
    for _ in range(2):
        with PatchSet("a test", lambda: FUNCTIONS):
            assert (owner.one(), user.one(), owner.len([])) == ("ours", "ours", 7)
            assert Place().method() == "method, ours"
        assert state(modules) == before


def test_nothing_is_replaced_where_a_name_is_not_there_and_all_such_are_named(modules: Any) -> None:
    before = state(modules)
    missing = [
        Patch("owner_of_functions", "three", instead(None)),
        Patch("owner_of_functions:Place", "other", instead(None)),
        Patch("no_such_module.at_all", "x", instead(None)),
    ]
    needs = ["owner_of_functions:Place.four", "owner_of_functions:one"]
    patches = PatchSet("a test", lambda: [*FUNCTIONS, *missing], needs)
    for _ in range(2):
        with pytest.raises(ImportError) as error, patches:
            pass
        assert state(modules) == before
        names = [r"owner_of_functions\.three", r"owner_of_functions\.Place\.other", r"owner_of_functions\.Place\.four"]
        for name in names:
            assert re.search(name, str(error.value))
        assert "no_such_module.at_all (No module named 'no_such_module')" in str(error.value)
        assert re.match(r"a test needs what executorch [\d.]+\S* and torch [\d.]+\S* do not have: ", str(error.value))
        assert "functions.one" not in str(error.value)


def test_a_module_that_can_not_be_imported_is_named_with_the_reason(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaks_on_import.py").write_text("raise AttributeError('made for another torch')")
    monkeypatch.syspath_prepend(tmp_path)
    patches = PatchSet("a test", lambda: [Patch("breaks_on_import", "x", instead(None))])
    with pytest.raises(ImportError, match=r"breaks_on_import \(made for another torch\)"), patches:
        pass


def test_nothing_stays_replaced_where_one_can_not_be_and_a_retry_knows_the_originals(modules: Any) -> None:
    before = state(modules)
    immutable = Patch("builtins:int", "__add__", instead(None))
    given = [*FUNCTIONS, immutable]
    patches = PatchSet("a test", lambda: given)
    for _ in range(2):
        with pytest.raises(TypeError, match="immutable type 'int'"), patches:
            pass
        assert state(modules) == before
    del given[-1]
    with patches:
        assert modules[1].one() == "ours"
    assert state(modules) == before


def test_set_that_failed_may_be_left_without_effect(modules: Any) -> None:
    patches = PatchSet("a test", lambda: [*FUNCTIONS, Patch("owner_of_functions", "three", instead(None))])
    with pytest.raises(ImportError):
        patches.__enter__()
    patches.__exit__()
    assert modules[0].one is one


MISSING = [
    ("install()", "executorch.exir._serialize._program", "serialize_pte_binary"),
    ("install()", "executorch.devtools.etrecord._etrecord", "ETRecordReservedFileNames"),
    ("low_memory_export()", "executorch.exir.emit._emitter", "_Emitter"),
    ("etstream.aot_arm_compiler", "executorch.backends.arm.scripts.aot_arm_compiler", "main"),
    ("load_bundled_program()", "executorch.exir.scalar_type", "ScalarType"),
    ("Bundle.verify()", "executorch.extension.pybindings.portable_lib", "_load_for_executorch"),
]


def test_features_name_what_they_miss_when_they_are_used_and_not_before(
    program: Any, cases: Any, tmp_path: Any
) -> None:
    # Each feature is used in a process of its own, which has the imports from before the fork.
    script = """
import importlib, json, os, sys, warnings
warnings.simplefilter("ignore")
program, cases, bundle = sys.argv[1:4]
import etstream, etstream.executorch, etstream.aot_arm_compiler
etstream.bundle(program, cases, bundle)
opened = etstream.executorch.open_bundle(bundle)
assert opened.methods
uses = {
    "install()": etstream.executorch.install,
    "low_memory_export()": lambda: etstream.executorch.low_memory_export().__enter__(),
    "etstream.aot_arm_compiler": etstream.aot_arm_compiler.main,
    "load_bundled_program()": lambda: etstream.executorch.load_bundled_program(bundle),
    "Bundle.verify()": lambda: opened.verify(),
}
for feature, module, name in json.loads(sys.argv[4]):
    if feature != "etstream.aot_arm_compiler":
        importlib.import_module(module)
    if os.fork() != 0:
        assert os.wait()[1] == 0, feature
        continue
    if feature != "etstream.aot_arm_compiler":
        delattr(sys.modules[module], name)
    else:
        sys.modules[module] = None
    try:
        uses[feature]()
    except ImportError as error:
        print(error, flush=True)
    os._exit(0)
"""
    command = [sys.executable, "-W", "ignore", "-c", script, program, cases, tmp_path / "b", json.dumps(MISSING)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    for (feature, module, name), said in zip(MISSING, ran.stdout.splitlines()[-len(MISSING) :], strict=True):
        missing = module if feature == "etstream.aot_arm_compiler" else f"{module}.{name}"
        assert said.startswith(f"{feature} needs what executorch ")
        assert re.search(rf"do not have: .*{re.escape(missing)}", said)
