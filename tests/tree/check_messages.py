# SPDX-License-Identifier: BSD-3-Clause
"""Proves that only the command's sources name its options in their messages, as other messages are also read in C++ and
Python.

    python3 check_messages.py ROOT

Options of flatc, whose calls are answered, are known by the word before them, or by their file.
"""

import ast
import re
import sys
from pathlib import Path

STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
OPTION = re.compile(r"(?<!flatc )--[a-z][a-z-]+")
OF_FLATC = "_flatc.py"


def strings_of_cpp(text: str) -> list[tuple[int, str]]:
    """Returns the string literals and their lines."""
    return [
        (number, literal)
        for number, line in enumerate(text.splitlines(), 1)
        if not line.lstrip().startswith("//")
        for literal in STRING.findall(line)
    ]


def strings_of_python(text: str) -> list[tuple[int, str]]:
    """Returns the strings, without docstrings, and the lines that they begin in."""
    tree = ast.parse(text)
    documents = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]


def check_file(root: Path, path: Path) -> list[str]:
    """Returns a line for each error in the messages of one file."""
    text = path.read_text(encoding="utf-8")
    strings = strings_of_python(text) if path.suffix == ".py" else strings_of_cpp(text)
    return [
        f"{path.relative_to(root)}:{line}: names the command's {option}: say what it is in the library"
        for line, string in strings
        for option in OPTION.findall(string)
    ]


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    files = [
        path
        for folder in ("include", "src")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in (".h", ".cpp", ".py") and root / "src/cli" not in path.parents and path.name != OF_FLATC
    ]
    if not files:
        print(f"{root} has no sources")
        return 1
    problems = [problem for path in files for problem in check_file(root, path)]
    print("\n".join(problems) or f"{len(files)} files leave the command's options to the command")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
