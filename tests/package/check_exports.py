# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a shared library exports what the public headers declare, and nothing else.

    python3 check_exports.py LIBRARY.so FOLDER_OF_HEADERS CLANG

clang lists the functions and classes that the headers declare, nm the symbols that the library exports. A class's
vtable and type information may be exported too.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl"}
# The marks of functions that are defined in the header itself, or nowhere.
NOT_IN_LIBRARY = ("inline", "constexpr", "pure", "explicitlyDeleted", "explicitlyDefaulted", "isImplicit")
# The symbols that are exported only if a translation unit holds a copy of them.
OF_CLASS = re.compile(r"(vtable|typeinfo|typeinfo name) for (etstream::\w+)")


def output_of(*command: str, text: str = "") -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def declarations(headers: Path, clang: str) -> list[dict]:
    """Returns the syntax trees of the headers' declarations in namespace etstream."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "all.cpp"
        names = sorted(path.name for path in (headers / "etstream").glob("*.h"))
        source.write_text("".join(f'#include "etstream/{name}"\n' for name in names))
        text = output_of(clang, "-std=c++20", f"-I{headers}", "-fsyntax-only", "-Xclang", "-ast-dump=json",
                         "-Xclang", "-ast-dump-filter=etstream::", str(source))
    decoder, trees, at = json.JSONDecoder(), [], 0
    while at < len(text):
        tree, at = decoder.raw_decode(text, at)
        trees.append(tree)
        at = len(text) - len(text[at:].lstrip())
    return trees


def walk(tree: dict, functions: set[str], classes: set[str]) -> None:
    kind = tree.get("kind")
    inner = tree.get("inner", [])
    if kind in FUNCTIONS:
        has_body = any(child.get("kind") == "CompoundStmt" for child in inner)
        if not has_body and not any(tree.get(key) for key in NOT_IN_LIBRARY):
            functions.add(tree["mangledName"])
        return
    if kind in ("ClassTemplateDecl", "FunctionTemplateDecl"):
        return
    if kind == "CXXRecordDecl":
        classes.add(f"etstream::{tree.get('name')}")
    for child in inner:
        walk(child, functions, classes)


def main() -> int:
    library, headers, clang = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    mangled: set[str] = set()
    classes: set[str] = set()
    for tree in declarations(headers, clang):
        walk(tree, mangled, classes)
    declared = set(output_of("c++filt", text="\n".join(mangled)).splitlines())
    lines = output_of("nm", "-D", "--defined-only", "-C", library).splitlines()
    exported = {re.sub(r"^[0-9a-f ]*\S ", "", line) for line in lines}
    problems = [f"not exported: {name}" for name in sorted(declared - exported)]
    for name in sorted(exported - declared):
        match = OF_CLASS.fullmatch(name)
        if not match or match[2] not in classes:
            problems.append(f"exported, but in no public header: {name}")
    print("\n".join(problems) or f"{len(declared)} functions are declared and exported, and nothing else")
    return 1 if problems or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
