# SPDX-License-Identifier: BSD-3-Clause
"""Breaks lines of C++ in the ways of break_lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The patterns, and what replaces their matches. clang-format puts spaces around operators and none in templates.
SWAPS = [
    (r" < ", (" <= ", " > ")),
    (r" <= ", (" < ",)),
    (r" > ", (" >= ", " < ")),
    (r" >= ", (" > ",)),
    (r" == ", (" != ",)),
    (r" != ", (" == ",)),
    (r" && ", (" || ",)),
    (r" \|\| ", (" && ",)),
    (r" \+ 1\b(?!\0)", ("",)),
    (r" - 1\b(?!\0)", ("",)),
    (r"(?<!\0) \+ (?!1\b|\0)", (" - ",)),
    (r" - (?!1\b)", (" + ",)),
    (r" % ", (" / ",)),
    (r"\bstd::min\b", ("std::max",)),
    (r"\bstd::max\b", ("std::min",)),
    (r"(?<![\w.:>&*\]] )(?<![\w.>])\w*alignment\b(?!\w*\s*[({=;])", (r"2 * \g<0>",)),
    (r"(?<=[\w>]\()(?<!min\()(?<!max\()(\w[\w.]*), (\w[\w.]*)(?=\))", (r"\2, \1",)),
]
NUMBER = re.compile(r"(?<![\w.\0])(0x[0-9a-fA-F]+|0|[1-9]\d*)(?![\w.\0])")
LITERAL = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
DIGITS_APART = re.compile(r"(?<=\d)'(?=\d)")
# The lines whose breaks do not compile, or change a first value that is overwritten, or end other processes.
LEFT_ALONE = re.compile(
    r"\s*(#|static_assert|using |namespace |template |friend |case .*:$|[\w:]+ \w+ = 0;)|.*\b(requires\b|kill\()"
)


@dataclass(frozen=True)
class Break:
    """A line of a file of the tree, and the line that takes its place. Lines count from 1."""

    file: str
    line: int
    before: str
    after: str

    def listed(self) -> str:
        """Returns the lines that stand for it in a list of breaks."""
        return f"{self.file}\n{self.before.strip()}\n{self.after.strip()}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"


def without_literals(text: str) -> str:
    """Returns C++ with each character of literals and comments replaced by one that no pattern matches."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", "\0", match[0])

    return LITERAL.sub(blank, DIGITS_APART.sub("\0", text))


def condition(code: str) -> tuple[int, int] | None:
    """Returns the beginning and the end of the condition of an `if` or `while` of one line."""
    found = re.search(r"\b(if|while) \(", code)
    if not found:
        return None
    depth, start = 1, found.end()
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 1 and code[at] == ";":
            start = at + 2
        if depth == 0:
            return None if " = " in code[start:at] else (start, at)
    return None


def broken_lines(line: str, code: str, next_code: str = "") -> Iterator[str]:
    """Yields the broken forms of a line. `code` is the line without literals, `next_code` that of the next one."""
    if LEFT_ALONE.match(code):
        return
    for pattern, replacements in SWAPS:
        for found in re.finditer(pattern, code):
            for replacement in replacements:
                yield line[: found.start()] + found.expand(replacement) + line[found.end() :]
    for found in NUMBER.finditer(code):
        value = int(found[0], 0)
        for number in [value + 1] + [value - 1] * (value > 0):
            yield line[: found.start()] + str(number) + line[found.end() :]
    if place := condition(code):
        start, end = place
        yield f"{line[:start]}!({line[start:end]}){line[end:]}"
        leaves = code[end + 1 :] if code[end + 1 :].strip() not in ("", "{") else next_code
        if re.match(r"\s*(return|continue|break)\b", leaves):
            yield line[:start] + "false" + line[end:]
    if re.match(r"\s*ETSTREAM_TRY\(.*\);$", code.rstrip(" \0")):
        yield line[: len(line) - len(line.lstrip())] + ";"


def breaks_of(file: str, text: str) -> list[list[Break]]:
    """Returns the breaks of each line of a file that has any."""
    lines, codes = text.splitlines(), without_literals(text).splitlines()
    found = []
    for at, (line, code) in enumerate(zip(lines, codes, strict=True)):
        following = codes[at + 1] if at + 1 < len(codes) else ""
        broken = dict.fromkeys(b for b in broken_lines(line, code, following) if b != line)
        if broken:
            found.append([Break(file, at + 1, line, after) for after in broken])
    return found


def listed_breaks(path: Path) -> list[list[str]]:
    """Reads a list of breaks: blocks of a file, its line, the lines that take its place, and a sentence on why they are
    listed, with blanks between. A block without lines that take its place lists all breaks of its line."""
    blocks = [block.splitlines() for block in path.read_text(encoding="utf-8").strip().split("\n\n")]
    blocks = [block for block in blocks if block and not block[0].startswith("#")]
    for block in blocks:
        if len(block) < 3:
            raise ValueError(f"{path}: expected a file, a line, what it is broken into and a reason, found {block}")
    return blocks


def is_listed(broken: Break, listed: list[list[str]]) -> bool:
    file, before, after = broken.listed().splitlines()
    return any(block[:2] == [file, before] and (len(block) == 3 or after in block[2:-1]) for block in listed)
