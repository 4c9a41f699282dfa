# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the tables and fields of a schema are named only where they are bound, as in
src/formats/pte/program_fields.h for programs, and that all other files use those bindings.

    python3 check_program_names.py ROOT

Looks at the string literals of the sources that read such files ("NamedData", "key", "NamedData.key"), and at reads of
fields by name anywhere.
"""

import re
import sys
from pathlib import Path

from check_messages import strings_of_cpp

# The schemas, the sources that read their files, and the one of these that binds the names.
BOUND = {
    "program.fbs": (("src/formats/pte/", "src/runtime_checks/"), "src/formats/pte/program_fields.h"),
    "xnnpack_graph.fbs": (
        ("src/formats/pte/backends/xnnpack", "src/runtime_checks/xnnpack"),
        "src/formats/pte/backends/xnnpack_fields.h",
    ),
}
BINDERS = {binder for _, binder in BOUND.values()}
READ = re.compile(
    r"\b(?<!std::)(?:scalar<[^>]*>|has|string|bytes|vector|values<[^>]*>|child|member|tables|find_field|find_table)"
    r'\(\s*(?:[\w*]+,\s*)?"\w+"'
)


def names_of_schema(schema: str) -> set[str]:
    """Returns tables, fields, and fields with their table before them."""
    names = set()
    for table, body in re.findall(r"^table (\w+) \{(.*?)\}", schema, re.MULTILINE | re.DOTALL):
        fields = re.findall(r"(\w+):[^;]*;", body)
        names.update([table, *fields, *(f"{table}.{field}" for field in fields)])
    return names


def check_file(path: Path, relative: str, names: dict[str, set[str]]) -> list[str]:
    """Returns a line for each error in one file. `names` are those of each schema."""
    text = path.read_text(encoding="utf-8")
    problems = []
    for schema, (readers, binder) in BOUND.items():
        if not relative.startswith(readers) or relative in BINDERS:
            continue
        for line, literal in strings_of_cpp(text):
            if literal.strip('"') in names[schema]:
                problems.append(f"{relative}:{line}: names {literal} of {schema}: {binder} binds it")
    for line, code in enumerate(text.splitlines(), 1):
        if READ.search(code):
            problems.append(f"{relative}:{line}: reads a field by its name: {code.strip()}")
    return problems


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    names = {schema: names_of_schema((root / "schema" / schema).read_text(encoding="utf-8")) for schema in BOUND}
    problems = []
    files = 0
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".h", ".cpp"):
            files += 1
            problems += check_file(path, path.relative_to(root).as_posix(), names)
    if not all(names.values()) or not files:
        print(f"{root} has no schemas or no sources")
        return 1
    print("\n".join([*problems, f"{len(problems)} places"]) if problems else f"{files} files leave names to who binds them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
