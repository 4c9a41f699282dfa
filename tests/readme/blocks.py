# SPDX-License-Identifier: BSD-3-Clause
"""Reads the blocks of code in README.md, CONTRIBUTING.md and docs/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# The page of which recipes.py runs all blocks.
RECIPES = ROOT / "docs" / "recipes.md"

FENCED = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    .*\n(?:\n(?=    ))?)+", re.MULTILINE)
SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
# A synopsis that the command itself writes; see command_pages.py.
GENERATED = re.compile(r"^<!-- etstream [\w ]+ -->\n.*?^<!-- end -->\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: Path
    language: str
    file: str  # the name behind the language, of the file that the block is
    text: str

    @property
    def first(self) -> str:
        return self.text.split("\n", 1)[0]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.first}"


def blocks_of(page: Path) -> list[Block]:
    """Returns the fenced blocks in their order, then those indented by four, which have no language."""
    return _blocks_in(page, GENERATED.sub("", page.read_text(encoding="utf-8")))


def recipes() -> dict[str, list[Block]]:
    """Returns the blocks of the page of recipes, by the heading that they stand under."""
    _, *parts = SECTION.split(RECIPES.read_text(encoding="utf-8"))
    return {heading: _blocks_in(RECIPES, text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def _blocks_in(page: Path, text: str) -> list[Block]:
    found = [Block(page, *parts) for parts in FENCED.findall(text)]
    if len(re.findall(r"^```", text, re.MULTILINE)) != 2 * len(found):
        raise ValueError(f"{page}: a fenced block without a language")
    for body in INDENTED.findall(FENCED.sub("", text)):
        found.append(Block(page, "", "", re.sub(r"^    ", "", body, flags=re.MULTILINE)))
    return found


def blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page)]


def block(page: str, start: str) -> str:
    """Returns the block of a page, "docs/python.md", whose first line begins with `start`."""
    (found,) = (one.text for one in blocks_of(ROOT / page) if one.first.startswith(start))
    return found
