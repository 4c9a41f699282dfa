# SPDX-License-Identifier: BSD-3-Clause
"""Prints a public header with its comments as Doxygen knows them.

    python3 header_filter.py HEADER

The leading comment becomes the file's documentation, and a comment behind a declaration that declaration's. A comment
above several declarations without a blank line between them belongs to each of them. Functions that every class has
need none. Line numbers stay.
"""

import re
import sys
from pathlib import Path

TRAILING = re.compile(r"(?<=\S) +// (?!NOLINT)")
USUAL = {
    r"\w+\(\w+&&\) noexcept;": "Moves it.",
    r"\w+& operator=\(\w+&&\) noexcept;": "Moves it.",
    r"(friend )?(auto|bool) operator(==|<=>)\(.*\) (const )?= default;": "Compares all members.",
}


def filtered(lines: list[str]) -> list[str]:
    out = []
    leading = True
    comment = ""  # above the declaration, in one line
    ended = False  # whether the line before ended a declaration that the comment belongs to
    for number, line in enumerate(lines):
        leading = leading and line.startswith("//")
        code = line.strip()
        if number == 0:
            line = "/// @file"
        elif leading:
            line = re.sub("^//(   )?", lambda match: "///     " if match[1] else "///", line)
        elif code.startswith("///"):
            comment = (comment if not ended else "") + code[3:]
            ended = False
        elif not code or code.startswith("}") or code.endswith("{"):
            comment, ended = "", False
        else:
            usual = next((words for form, words in USUAL.items() if re.match(form, code)), "")
            if usual or (ended and comment and not TRAILING.search(line)):
                line = f"/** {usual or comment} */ {line}"
            if TRAILING.search(line):
                line, comment = TRAILING.sub("  ///< ", line), ""
            ended = bool(re.search(r"[;}]( +//.*)?$", line))
        out.append(line)
    return out


if __name__ == "__main__":
    print("\n".join(filtered(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())))
