# SPDX-License-Identifier: BSD-3-Clause
"""Turns the examples in public headers, and in Markdown files, into sources to compile.

    python3 make_examples.py OUT_FOLDER FILE...

A header's examples are the indented paragraphs of its leading comment: C++ for the body of a function that returns
Result<void>, or JSON. The source of a header includes it before all else, so that it must stand alone, then all the
others. A header that declares something has an example. In Markdown the examples are the blocks of C++.
"""

import json
import re
import sys
from pathlib import Path

INDENT = "//   "


def paragraphs(lines: list[str]) -> list[tuple[int, list[str]]]:
    """Returns the paragraphs of the leading comment, each with the number of its first line."""
    out: list[tuple[int, list[str]]] = []
    begins = True
    for number, line in enumerate(lines, 1):
        if not line.startswith("//"):
            break
        if line == "//":
            begins = True
            continue
        if begins:
            out.append((number, []))
        out[-1][1].append(line)
        begins = False
    return out


def examples_of(path: Path) -> list[tuple[int, str]]:
    """Returns the examples of a header that are C++, each with the number of its first line."""
    out = []
    text = path.read_text(encoding="utf-8")
    for number, lines in paragraphs(text.splitlines()):
        if not all(line.startswith(INDENT) for line in lines):
            continue
        code = "\n".join(line[len(INDENT):] for line in lines)
        if code.startswith("{"):
            json.loads(code)
        else:
            out.append((number, code))
    if not out and "namespace etstream" in text:
        sys.exit(f"{path}: the leading comment has no example")
    return out


def readme_examples(path: Path) -> list[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    found = list(re.finditer(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    if not found:
        sys.exit(f"{path}: there is no example")
    return [(text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in found]


def include_name(header: Path) -> str:
    """Returns the name by which a public header is included, such as etstream/sink.h."""
    parts = header.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("include") + 1 :])


def source_of(first: list[str], headers: list[str], path: Path, examples: list[tuple[int, str]]) -> str:
    stem = re.sub(r"\W", "_", path.name)
    lines = [f'#include "{name}"' for name in first + headers]
    lines += ["#include <cstdio>", "#include <vector>"]
    for number, code in examples:
        # Lines that include a header stay as blank lines, so that a compiler's message leads to the example.
        body = re.sub(r"^#include .*$", "", code, flags=re.MULTILINE)
        lines += [f"[[gnu::used]] static etstream::Result<void> {stem}_{number}() {{",
                  f'#line {number} "{path}"', body, "return {};", "}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    paths = [Path(argument) for argument in sys.argv[2:]]
    names = {path: include_name(path) for path in paths if path.suffix == ".h"}
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if path in names:
            text = source_of([names[path]], list(names.values()), path, examples_of(path))
        else:
            text = source_of([], list(names.values()), path, readme_examples(path))
        (folder / f"{path.name}.cpp").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
