# SPDX-License-Identifier: BSD-3-Clause
"""install() says what it does, may be called again, and leaves nothing behind, in a script's own names too."""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import etstream
import pytest
import torch
from etstream.executorch import install, is_installed, uninstall
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir._serialize import _program as program_serializer

SERIALIZE = "executorch.exir._serialize._program.serialize_pte_binary"


class Add(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


@pytest.fixture(scope="module")
def edge() -> Any:
    return to_edge(torch.export.export(Add(), (torch.ones(2),)))


def use_of(installation: Any, name: str) -> Any:
    (found,) = [use for use in installation.functions if use.name == name]
    return found


def leave_to_executorch(edge: Any) -> None:
    # The alignment is no power of two, so ExecuTorch refuses or writes it.
    with contextlib.suppress(Exception):
        edge.to_executorch(ExecutorchBackendConfig(segment_alignment=3)).buffer  # noqa: B018


def test_calls_are_counted_and_so_are_those_left_to_executorch_with_the_reason(edge: Any) -> None:
    with install() as installation:
        before = use_of(installation, SERIALIZE)
        edge.to_executorch()
        assert (before.used, use_of(installation, SERIALIZE).used) == (0, 1)
        leave_to_executorch(edge)
        use = use_of(installation, SERIALIZE)
        assert repr(installation).endswith(" functions, in force>")
    (reason,) = use.left
    assert use.used == 1 and use.left[reason] == 1 and "power of two" in reason
    assert f"{SERIALIZE}: 1 through etstream; 1 left to ExecuTorch: {reason}" in str(installation)
    assert repr(installation).endswith(" functions, not in force>")


def test_it_tells_of_itself_when_asked(edge: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with install(verbose=True):
        assert f"{SERIALIZE}: 0 through etstream" in capsys.readouterr().err
        edge.to_executorch()
    assert f"{SERIALIZE}: 1 through etstream" in capsys.readouterr().err
    install(verbose=True)
    edge.to_executorch()
    capsys.readouterr()
    uninstall()
    assert f"{SERIALIZE}: 1 through etstream" in capsys.readouterr().err


def test_a_call_that_raises_counts_as_failed(edge: Any) -> None:
    with install() as installation:
        with pytest.raises(AttributeError):
            program_serializer.serialize_pte_binary(None)
        use = use_of(installation, SERIALIZE)
    assert (use.used, use.failed, sum(use.left.values())) == (0, 1, 0)
    assert str(use) == f"{SERIALIZE}: 0 through etstream; 1 failed"


def test_an_installation_keeps_its_own_counts_and_state(edge: Any) -> None:
    with install() as earlier:
        edge.to_executorch()
    with install() as later:
        assert (use_of(earlier, SERIALIZE).used, use_of(later, SERIALIZE).used) == (1, 0)
        assert repr(earlier).endswith(", not in force>") and repr(later).endswith(", in force>")


def test_an_installation_ends_once_and_itself(edge: Any) -> None:
    with install():
        with install() as inner:
            with inner:
                pass
            assert repr(inner).endswith(", in force>")
        inner.__exit__()
        assert is_installed() and repr(inner).endswith(", not in force>")
        with pytest.raises(RuntimeError, match=r"call install\(\) again"), inner:
            pass
        with install() as ended:
            uninstall()
            assert repr(ended).endswith(", not in force>")
        assert is_installed()
    assert not is_installed()


def test_the_logger_tells_the_same(edge: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "etstream"), install():
        edge.to_executorch()
        leave_to_executorch(edge)
    records = [record for record in caplog.records if record.name == "etstream"]
    said = [record.getMessage() for record in records if record.levelno == logging.DEBUG]
    assert len(said) == len(records)
    assert f"{SERIALIZE}: replaced" in said and f"{SERIALIZE}: through etstream" in said
    assert any(re.match(f"{SERIALIZE}: left to ExecuTorch: .*power of two", message) for message in said)
    assert said[-1] == "uninstall(): not in force"


def test_a_program_that_can_not_be_saved_is_an_error(edge: Any, tmp_path: Path) -> None:
    manager = edge.to_executorch()
    with install(), pytest.raises(etstream.NoSuchFileError):
        manager.save(str(tmp_path / "none" / "x.pte"))


def test_calls_lie_in_each_other(edge: Any) -> None:
    original = program_serializer.serialize_pte_binary
    assert not is_installed()
    with install() as outer:
        edge.to_executorch()
        with install() as inner:
            assert use_of(inner, SERIALIZE).used == use_of(outer, SERIALIZE).used == 1
        assert is_installed() and program_serializer.serialize_pte_binary is not original
    assert not is_installed() and program_serializer.serialize_pte_binary is original
    uninstall()
    assert not is_installed()


def test_names_of_a_script_are_as_they_were() -> None:
    script = """
import executorch.exir._serialize._program as owner
from executorch.exir._serialize._program import serialize_pte_binary as before
import etstream.executorch
original = before
with etstream.executorch.install():
    from executorch.exir._serialize._program import serialize_pte_binary as meanwhile
    assert before is meanwhile is owner.serialize_pte_binary
assert before is meanwhile is owner.serialize_pte_binary
assert before.__module__.startswith("executorch.")
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120)
