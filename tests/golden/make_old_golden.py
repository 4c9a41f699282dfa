# SPDX-License-Identifier: BSD-3-Clause
"""Makes old_flatbuffers/: golden files as ExecuTorch writes them with Python's flatbuffers before 25.12.19, which
shares vtables between tables of different sizes.

    PYTHONPATH=FOLDER python tests/golden/make_old_golden.py

where `pip install --no-deps --target FOLDER flatbuffers==25.2.10` made FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import flatbuffers
import make_golden  # this puts models on the path
import models

HERE = Path(__file__).resolve().parent
VERSION = "25.2.10"


def main() -> None:
    if flatbuffers.__version__ != VERSION:
        sys.exit(f"expected flatbuffers {VERSION}, found {flatbuffers.__version__}")
    folder = HERE / "old_flatbuffers"
    folder.mkdir(exist_ok=True)
    make_golden.delegated_program(folder)
    bundle = models.executorch_bundle(models.export("two_methods"))
    (folder / "bundle.bpte").write_bytes(bundle)


if __name__ == "__main__":
    main()
