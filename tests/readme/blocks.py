# SPDX-License-Identifier: BSD-3-Clause
"""README's blocks of code."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def blocks() -> dict[str, str]:
    """Those fenced and those indented by four, each by its first line."""
    text = README.read_text(encoding="utf-8")
    fence = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    found = fence.findall(text)
    indented = re.compile(r"(?:^    .*\n(?:\n(?=    ))?)+", re.MULTILINE)
    for block in indented.findall(fence.sub("", text)):
        found.append(re.sub(r"^    ", "", block, flags=re.MULTILINE))
    return {block.split("\n", 1)[0]: block for block in found}


def block(start: str) -> str:
    """The one whose first line begins so."""
    (found,) = (body for first, body in blocks().items() if first.startswith(start))
    return found
