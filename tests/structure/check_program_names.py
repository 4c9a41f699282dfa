# SPDX-License-Identifier: BSD-3-Clause
"""Proves that src/pte/program_fields.h alone names the tables and fields of programs, and that whoever reads bundles
and tensor data takes fields as they are bound: others use what those headers bind.

    python3 check_program_names.py ROOT

Looks at the string literals of src/pte and src/pte/rewrite ("NamedData", "key", "NamedData.key"), and at the reads of
fields by name in the folders that read no other flatbuffers.
"""

import re
import sys
from pathlib import Path

from check_messages import strings_of_cpp

MODEL = "src/pte/program_fields.h"
OF_ANOTHER_SCHEMA = {"src/pte/xnnpack_payload.cpp", "src/pte/xnnpack_verify.cpp"}
READ = re.compile(
    r"\b(?<!std::)(?:scalar<[^>]*>|has|string|bytes|vector|values<[^>]*>|child|member|tables|find_field|find_table)"
    r'\(\s*(?:[\w*]+,\s*)?"'
)


def names_of_schema(schema: str) -> set[str]:
    """Tables, fields, and fields with their table before them."""
    names = set()
    for table, body in re.findall(r"^table (\w+) \{(.*?)\}", schema, re.MULTILINE | re.DOTALL):
        fields = re.findall(r"(\w+):[^;]*;", body)
        names.update([table, *fields, *(f"{table}.{field}" for field in fields)])
    return names


def check_file(path: Path, relative: str, names: set[str]) -> list[str]:
    """What is wrong with one file, a line each."""
    text = path.read_text(encoding="utf-8")
    problems = []
    if relative.startswith("src/pte/"):
        for line, literal in strings_of_cpp(text):
            if literal.strip('"') in names:
                problems.append(f"{relative}:{line}: names {literal} of the schema: {MODEL} binds it")
        return problems
    for line, code in enumerate(text.splitlines(), 1):
        if READ.search(code):
            problems.append(f"{relative}:{line}: reads a field by its name: {code.strip()}")
    return problems


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    names = names_of_schema((root / "schema/program.fbs").read_text(encoding="utf-8"))
    problems = []
    files = 0
    for folder in ("pte", "report", "jobs", "weights", "container", "ptd", "bpte"):
        for path in sorted((root / "src" / folder).rglob("*")):
            relative = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".cpp") or relative == MODEL or relative in OF_ANOTHER_SCHEMA:
                continue
            files += 1
            problems += check_file(path, relative, names)
    if not names or not files:
        print(f"{root} has no schema or no sources")
        return 1
    print("\n".join([*problems, f"{len(problems)} places"]) if problems else f"{files} files leave names to the model")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
