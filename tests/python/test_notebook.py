# SPDX-License-Identifier: BSD-3-Clause
"""Runs the notebook in examples/ as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from conftest import EXAMPLES
from nbclient import NotebookClient


def test_the_notebook_exports_runs_and_draws(tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / "small_llama.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs: clear them"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs: list[Any] = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = "".join(output.get("text", "") for output in outputs)
    assert "forward, case 0: passed" in said and "bytes referred to" in said
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert list(tmp_path.iterdir()) == []


def test_the_index_has_every_example() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    arrays = {path.name for path in EXAMPLES.glob("*.npy")}
    for path in EXAMPLES.iterdir():
        if path.name not in arrays | {"README.md", "CMakeLists.txt", "__pycache__"}:
            assert f"({path.name})" in index, path.name
