# SPDX-License-Identifier: BSD-3-Clause
"""Proves that comments and docstrings begin with a word that says what they are about, and with no noun left out.

    python3 check_comments.py ROOT

Looks at the first line of each comment in C++, Python, CMake files, schemas and scripts, and at docstrings. A comment
behind code may continue the code: it is refused only where it begins with a capital letter.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

FOLDERS = (".ci", "cmake", "docs", "examples", "include", "packaging", "perf", "schema", "src", "tests")
HEADLESS = re.compile(r"(Of|What|Whether|That|Has|How|Which|Who)\b")
LICENSE = "SPDX-License-Identifier"
# These match strings first, so that a comment's sign in a string begins no comment.
CPP = re.compile(
    r'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/'
    r"|///?<?(?P<words>[^\n]*)",
    re.DOTALL,
)
CMAKE = re.compile(r'"(?:[^"\\]|\\.)*"|\[(=*)\[.*?\]\1\]|#(?P<words>[^\n]*)', re.DOTALL)
SHELL = re.compile(r"^(?:(?:[^'\"#\n]|'[^'\n]*'|\"[^\"\n]*\"|(?<=\S)#)*\s)?#(?!!)(?P<words>[^\n]*)", re.MULTILINE)


class Comment(NamedTuple):
    line: int
    column: int
    words: str


def matched_comments(text: str, pattern: re.Pattern[str]) -> list[Comment]:
    """Returns the comments that a pattern with a group `words` finds."""
    out = []
    for match in pattern.finditer(text):
        if match["words"] is not None:
            start = match.start("words")
            column = start - text.rfind("\n", 0, start)
            out.append(Comment(text.count("\n", 0, start) + 1, column, match["words"].strip()))
    return out


def python_comments(text: str) -> list[Comment]:
    """Returns the comments of a Python file; docstrings count as comments."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    out = [
        Comment(token.start[0], token.start[1], token.string.lstrip("#").strip())
        for token in tokens
        if token.type == tokenize.COMMENT and not token.string.startswith("#!")
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            documentation = ast.get_docstring(node)
            if documentation:
                out.append(Comment(node.body[0].lineno, -1, documentation))
    return out


def comments_of(path: Path) -> list[Comment] | None:
    """Returns the comments of a file; None for a file of another kind."""
    if path.suffix in (".cpp", ".h", ".fbs"):
        return matched_comments(path.read_text(encoding="utf-8"), CPP)
    if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
        return matched_comments(path.read_text(encoding="utf-8"), CMAKE)
    if path.suffix == ".py":
        return python_comments(path.read_text(encoding="utf-8"))
    with path.open("rb") as file:
        interpreter = file.readline() if file.read(2) == b"#!" else b""
    if not interpreter:
        return None
    text = path.read_text(encoding="utf-8")
    return python_comments(text) if b"python" in interpreter else matched_comments(text, SHELL)


def check_comments(comments: list[Comment]) -> list[Comment]:
    """Returns the comments that begin without a noun or a verb. A comment right below another one continues it."""
    out = []
    above = None
    for comment in comments:
        continues = above is not None and (comment.line, comment.column) == (above.line + 1, above.column)
        if LICENSE in comment.words or (not continues and not comment.words):
            above = None
            continue
        if not continues and HEADLESS.match(comment.words):
            out.append(comment)
        above = comment
    return out


def check_file(root: Path, path: Path) -> list[str] | None:
    """Returns the problems of one file, a line each; None for a file that is not checked."""
    comments = comments_of(path)
    if comments is None:
        return None
    return [
        f"{path.relative_to(root)}:{line}: {words.split()[0]}...: begin with a verb, or with the noun that it is about"
        for line, _, words in check_comments(comments)
    ]


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    paths = [*root.glob("CMakeLists.txt"), *(path for folder in FOLDERS for path in sorted((root / folder).rglob("*")))]
    checked = [problems for path in paths if path.is_file() and (problems := check_file(root, path)) is not None]
    found = [problem for problems in checked for problem in problems]
    print("\n".join(found) or f"{len(checked)} files have comments that begin with what they are about")
    return 1 if found or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
