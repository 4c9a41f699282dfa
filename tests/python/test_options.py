# SPDX-License-Identifier: BSD-3-Clause
"""Options are keywords that a dict keeps and passes on. Signatures have them, and the help() of the dict describes them."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import etstream
import etstream.executorch
import pytest
from etstream._writing import defaults_of

# The options of functions, and the functions that take them.
OPTIONS: dict[type[Any], list[Callable[..., object]]] = {
    etstream.BundleOptions: [etstream.bundle, etstream.executorch.save_bundled_program],
    etstream.ConvertOptions: [etstream.convert],
    etstream.FatContainerOptions: [etstream.fat],
    etstream.FlatbufferOptions: [etstream.ExactJson.compile],
    etstream.NativePackageOptions: [etstream.ptn],
    etstream.ProgramOptions: [etstream.pte],
    etstream.SharingOptions: [etstream.share],
    etstream.TensorDataOptions: [etstream.ptd, etstream.ptd_shards],
    etstream.Tolerance: [etstream.compare, etstream.executorch.Bundle.verify, etstream.executorch.Bundle.verify_all],
    etstream.WriteOptions: [etstream.embed, etstream.extract, etstream.reweight, etstream.save_ptd],
    etstream.executorch.SpecializeOptions: [
        etstream.executorch.specialize,
        etstream.executorch.specialized_preprocess,
    ],
}
FUNCTIONS = [(kind, function) for kind, functions in OPTIONS.items() for function in functions]


def written(plan: etstream.ProgramPlan) -> bytes:
    return bytes(plan.program)


def test_kept_options_are_those_of_the_call(program: Path, tmp_path: Path) -> None:
    kept = etstream.ProgramOptions(segment_alignment=4096, strip_stack_traces=True)
    expected = written(etstream.pte(program, segment_alignment=4096, strip_stack_traces=True, dry_run=True))
    assert expected != program.read_bytes()
    assert written(etstream.pte(program, **kept, dry_run=True)) == expected
    etstream.pte(program, tmp_path / "out.pte", sync=False, **kept)
    assert (tmp_path / "out.pte").read_bytes() == expected
    assert kept == {"segment_alignment": 4096, "strip_stack_traces": True}, "a call changes the options"


def test_changed_options_leave_the_kept_ones_alone(program: Path) -> None:
    kept = etstream.ProgramOptions(segment_alignment=4096)
    narrow = written(etstream.pte(program, segment_alignment=16, dry_run=True))
    assert written(etstream.pte(program, **kept | {"segment_alignment": 16}, dry_run=True)) == narrow
    changed: etstream.ProgramOptions = {**kept, "segment_alignment": 16}
    assert written(etstream.pte(program, **changed, dry_run=True)) == narrow
    assert kept == {"segment_alignment": 4096}


def test_an_option_is_given_once(program: Path) -> None:
    kept = etstream.ProgramOptions(segment_alignment=4096)
    both = etstream.pte(program, as_of="1.3", **kept, dry_run=True)
    assert written(both) == written(etstream.pte(program, as_of="1.3", segment_alignment=4096, dry_run=True))
    with pytest.raises(TypeError, match="multiple values for keyword argument 'segment_alignment'"):
        etstream.pte(program, **kept, segment_alignment=16, dry_run=True)  # type: ignore[misc]


def test_an_option_that_is_not_given_has_its_default(program: Path, cases: Path) -> None:
    for defaults in ({}, defaults_of(etstream.BundleOptions)):
        assert bytes(etstream.bundle(program, cases, **defaults | {"dry_run": True})) == bytes(
            etstream.bundle(program, cases, to="bp08", hash=True, program_alignment=32, unchecked=False, dry_run=True)
        )


def test_a_misspelt_keyword_is_an_error_that_names_close_ones(program: Path, tmp_path: Path) -> None:
    untyped: Any = etstream
    with pytest.raises(TypeError, match=r"^pte\(\) got an unexpected keyword argument 'segment_alignmnet'; "
                       "did you mean 'segment_alignment'"):  # fmt: skip
        untyped.pte(program, segment_alignmnet=16)
    with pytest.raises(TypeError, match="'constant_to'; did you mean 'constants_to' or 'constants_from'"):
        untyped.pte(program, tmp_path / "out.pte", constant_to=tmp_path / "out.ptd")
    with pytest.raises(TypeError, match=r"^bundle\(\) got an unexpected keyword argument 'zzz'$"):
        untyped.bundle(program, {}, tmp_path / "out.bpte", **etstream.BundleOptions(zzz=1))  # type: ignore[typeddict-unknown-key]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "function"), FUNCTIONS)
def test_help_tells_each_option_and_its_default(kind: type[Any], function: Callable[..., object]) -> None:
    said = pydoc.plain(pydoc.render_doc(function))
    parameters = inspect.signature(function).parameters
    described = (inspect.getdoc(kind) or "") + (inspect.getdoc(etstream.WriteOptions) or "")
    assert kind.__name__ in (function.__doc__ or "")
    for key, default in defaults_of(kind).items():
        assert parameters[key].default == default and f"{key}={default!r}" in said
        assert f"\n    {key}: " in described, f"{kind.__name__} does not describe {key}"


def test_a_dry_run_writes_nothing_and_checks_the_outputs(program: Path, cases: Path, tmp_path: Path) -> None:
    plan = etstream.bundle(program, cases, tmp_path / "a.bpte", dry_run=True)
    assert bytes(plan) == bytes(etstream.bundle(program, cases, dry_run=True)) and not list(tmp_path.iterdir())
    with pytest.raises(etstream.NotFoundError, match="no folder"):
        etstream.bundle(program, cases, tmp_path / "none" / "a.bpte", dry_run=True)
    with pytest.raises(etstream.TooLargeError, match="over max_memory 1 byte"):
        etstream.bundle(program, cases, max_memory=1, dry_run=True)
    with pytest.raises(TypeError, match="output: expected a path, .* found NoneType"):
        etstream.bundle(program, cases)


def public(module: ModuleType) -> set[str]:
    return {name for name in dir(module) if not name.startswith("_")}


def test_dir_shows_what_is_public_and_no_more() -> None:
    names = ("etstream", "etstream.executorch", "etstream.profile", "etstream.aot_arm_compiler")
    modules = {name: importlib.import_module(name) for name in names}
    submodules = {name.partition(".")[2] for name in names[1:]}
    for name, module in modules.items():
        own = {one for one in module.__all__ if not one.startswith("_")}
        assert public(module) == own | (submodules if name == "etstream" else set()), name
    assert {"__doc__", "__file__", "__version__"} <= set(dir(etstream))
    script = "import etstream; print([name for name in dir(etstream) if name in ('executorch', 'annotations')])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_without_docstrings_the_package_works() -> None:
    script = "import etstream; print(etstream.bundle.__doc__, len(etstream.fat({'a': b'x'}, align=4, dry_run=True)))"
    done = subprocess.run([sys.executable, "-OO", "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("None ") and done.stdout.split()[1].isdigit(), done.stderr
