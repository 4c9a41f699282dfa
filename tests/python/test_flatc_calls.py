# SPDX-License-Identifier: BSD-3-Clause
"""Shows that etstream does what ExecuTorch runs flatc for in ExecuTorch's process, to the byte."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NoReturn

import pytest
from etstream import executorch as adaptors
from etstream.executorch._flatc import run_flatc
from executorch.devtools import Inspector
from executorch.exir._serialize import _flatbuffer
from test_flatc import Recorded, executorchs, lowered

__all__ = ["executorchs"]


@pytest.fixture
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise AssertionError(f"a process was run: {arguments}")

    monkeypatch.setattr(subprocess, "run", refuse)


@pytest.mark.usefixtures("without_processes")
def test_each_call_gives_what_flatc_gave(executorchs: Recorded, tmp_path: Path) -> None:
    assert {call.is_compile for call in executorchs.calls} == {True, False}
    for call in executorchs.calls:
        folder = tmp_path / call.folder.name
        folder.mkdir()
        arguments = list(call.arguments)
        arguments[arguments.index("-o") + 1] = str(folder)
        run_flatc(arguments, _flatbuffer._run_flatc)
        (written,) = folder.iterdir()
        assert written.read_bytes() == call.output, call.arguments


@pytest.mark.usefixtures("without_processes")
def test_executorch_exports_and_opens_etdumps_without_a_process(executorchs: Recorded) -> None:
    run = _flatbuffer._run_flatc
    with adaptors.install():
        assert _flatbuffer._run_flatc is not run
        assert lowered().buffer == executorchs.program
        inspector = Inspector(etdump_path=str(executorchs.etdump))
    names = [event.name for block in inspector.event_blocks for event in block.events]
    assert "DELEGATE_CALL" in names
    assert _flatbuffer._run_flatc is run


def test_what_flatc_refuses_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "schema.fbs").write_text("table T { x: int; } root_type T;")
    (tmp_path / "data.json").write_text('{"y": 1}')
    arguments = ["--binary", "-o", str(tmp_path), str(tmp_path / "schema.fbs"), str(tmp_path / "data.json")]
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run_flatc(arguments, _flatbuffer._run_flatc)
    assert "unknown field: y" in refused.value.stderr
    with pytest.raises(subprocess.CalledProcessError):
        _flatbuffer._run_flatc(arguments)


def test_flatc_itself_is_run_for_other_arguments(tmp_path: Path) -> None:
    schema = tmp_path / "schema.fbs"
    schema.write_text("table T { x: int; } root_type T;")
    run_flatc(["--schema", "--binary", "-o", str(tmp_path), str(schema)], _flatbuffer._run_flatc)
    assert (tmp_path / "schema.bfbs").exists()
