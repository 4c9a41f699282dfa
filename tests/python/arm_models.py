# SPDX-License-Identifier: BSD-3-Clause
"""Writes models as files for ExecuTorch's Arm compiler, with the same weights each time."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

_CNN = """
torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.ReLU(),
torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 10),
"""
_LINEARS = "*[torch.nn.Linear({width}, {width}) for _ in range(4)]"


def write_cnn(folder: Path) -> Path:
    """Writes a model of 20 KiB."""
    return _write(folder / "cnn.py", _CNN, "1, 3, 32, 32")


def write_linears(folder: Path, width: int = 4096) -> Path:
    """Writes a model of 4 layers, by default of 256 MiB."""
    return _write(folder / "linears.py", _LINEARS.format(width=width), f"1, {width}")


def cnn() -> tuple[Any, Any]:
    """Returns the model and its inputs."""
    with tempfile.TemporaryDirectory() as folder:
        names = runpy.run_path(str(write_cnn(Path(folder))))
    return names["ModelUnderTest"].eval(), names["ModelInputs"]


def _write(file: Path, layers: str, shape: str) -> Path:
    file.write_text(
        f"import torch\n\ntorch.manual_seed(0)\nModelUnderTest = torch.nn.Sequential({layers})\n"
        f"ModelInputs = (torch.randn({shape}),)\n"
    )
    return file
