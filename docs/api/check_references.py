# SPDX-License-Identifier: BSD-3-Clause
"""Proves that comments of public headers refer to functions, members, constants and headers that exist.

    python3 check_references.py TAGFILE ROOT

References are `name()`, `Type::name`, `kName` and `name.h`. The tag file, which Doxygen writes, lists all names.
FOREIGN matches names that others define: those of the standard library and of ExecuTorch.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

REFERENCE = re.compile(
    r"(?<![\w.:/-])((?:\w+::)*\w+)(?=\(\))"  # name()
    r"|(?<![\w.:/-])((?:\w+::)+\w+)"  # Type::name
    r"|(?<![\w.:])(k[A-Z]\w*)"
    r"|(?<![\w.-])([\w/]+\.h)\b"
)
FOREIGN = re.compile(r"(std|aten|executorch_prim)::|(load_into|runtime/core/error\.h)$")


def public_names(tags: Path) -> set[str]:
    """Returns each name as it is and with the names around it, from the innermost to the outermost."""
    names: set[str] = set()
    for compound in ElementTree.parse(tags).iter("compound"):
        outer = compound.findtext("name", "")
        found = [outer, *(f"{outer}::{name.text}" for name in compound.iterfind("member/name"))]
        for member in compound.iterfind("member"):
            within = f"{outer}::{member.findtext('name', '')}"
            found += [f"{scope}::{value.text}" for scope in (outer, within) for value in member.iterfind("enumvalue")]
        for name in found:
            parts = name.split("::")
            names.update("::".join(parts[first:]) for first in range(len(parts)))
    return names


def references(header: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(header.read_text(encoding="utf-8").splitlines(), 1):
        comment = re.search(r"//(?!   ).*", line)
        for match in REFERENCE.finditer(comment[0] if comment else ""):
            yield number, next(filter(None, match.groups()))


def main() -> None:
    tags, root = Path(sys.argv[1]), Path(sys.argv[2])
    names = public_names(tags)
    headers = sorted((root / "include").rglob("*.h"))
    files = {header.name for header in headers} | {str(header.relative_to(root / "include")) for header in headers}
    for header in headers:
        for number, name in references(header):
            if not FOREIGN.match(name) and name not in (files if name.endswith(".h") else names):
                print(f"{header.relative_to(root)}:{number}: {name} is not in a public header")


main()
