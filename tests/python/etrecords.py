# SPDX-License-Identifier: BSD-3-Clause
"""Reads ETRecords."""

from __future__ import annotations

import hashlib
from pathlib import Path
from zipfile import ZipFile


def entries(record: Path) -> list[tuple[str, int, int, str]]:
    """Returns the name, the place and the size of each entry, and a hash of its content, in their order."""
    with ZipFile(record) as archive:
        return [
            (entry.filename, entry.header_offset, entry.file_size, _hash(archive, entry.filename))
            for entry in archive.infolist()
        ]


def _hash(archive: ZipFile, name: str) -> str:
    with archive.open(name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
