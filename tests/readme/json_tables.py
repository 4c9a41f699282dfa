# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the command's reports with --json have what the tables of docs/command say.

    python3 json_tables.py FOLDER ETSTREAM ROOT

A table stands below "## Reports as JSON" and a heading "### NAME", and has the columns `| field | type | |`. A field
marked ° may be absent; any other is in every report. A field that is an element of a list has [] behind the list's name.
"fields as in `NAME`" stands for the rows of what is in another object or list, of the same table or of that whose
heading the word behind it links to.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "any": object}
ROW = re.compile(r"\| `([\w.\[\]]+)`( °)? \| (\w+) \| (.*)\|")
SAME = re.compile(r"fields as in `([\w.\[\]]+)`(?: of \[([\w -]+)\])?")



def named(name: str) -> list[str]:
    """Returns commands that write a program in which one constant has a name, as NAME.json says."""
    return [
        f"pte model.pte --constants-to {name}.ptd --keys {name}.json -o thin.pte --json",
        f"pte thin.pte --constants-from {name}.ptd -o {name}.pte --json",
    ]


# The commands run in a folder with the examples and some golden files; later commands find the output of earlier ones.
COMMANDS = {
    "What was written": [
        "bundle model.pte --cases cases.json -o model.bpte --json",
        "convert model.bpte --to segmented -o segmented.bpte --json",
        "pte model.pte --constants-to weights.ptd -o small.pte --json",
        "ptd named.ptd --opaque --no-dedup -o twice.ptd --json",
        "ptd named.ptd --opaque -o split.ptd --split-max-size 1G --json",
        "ptd weights.ptd -o shards/w.ptd --split-max-size 20480 --json",
        "pte model.pte --metadata a=1 --constants-to split_weights.ptd --split-max-size 1G -o said.pte --json",
        "reweight model.pte --was model.pte --now model.pte -o again.pte --json",
        "reweight small.pte weights.ptd --was weights.ptd --now weights.ptd -o new.pte --weights-to new.ptd --json",
        "reweight model.pte --was shards/w-00001-of-00003.ptd --now shards/w-00001-of-00003.ptd --partial"
        " --keep constants/2 --keep constants/3 -o kept.pte --json",
        "ptn program.ptg --constants constants.safetensors -o model.ptn --json",
        "fat program=model.pte blob=cases.json -o model.fat --json",
        *named("first"),
        *named("second"),
    ],
    "A plan": [
        "bundle model.pte --cases cases.json --dry-run --json",
        "convert model.bpte --to segmented --dry-run --json",
        "pte model.pte --constants-to weights.ptd -o small.pte --dry-run --json",
        "ptd weights.ptd --dry-run --json",
    ],
    "embed": ["embed model.pte --target arm -o model.o -o model.h --json"],
    "pack, unpack": [
        "pack model.pte --json",
        "pack small.pte --base model.pte -o update.etz --json",
        "unpack model.pte.etz -o again.pte --json",
    ],
    "verify": [
        "verify model.bpte --json",
        "verify small.pte weights.ptd --json",
        "verify model.gguf --json",
        "verify shards --json",
        "verify model.pte --run --python ./python --json",
        "verify model.bpte --run --python ./python --json",
    ],
    "compare": [
        "compare model.bpte --outputs outputs --json",
        "compare model.bpte --outputs outputs --case 0 --json",
    ],
    "inspect": [
        "inspect twice.ptd --json --duplicates",
        "inspect segmented.bpte --json",
        "inspect delegated.pte --json",
        "inspect delegated.pte --names names.json --json",
        "inspect named.ptd --json",
        "inspect model.gguf --json",
        "inspect said.pte --json",
        "inspect model.ptn --json",
        "inspect update.etz --json",
        "inspect shards --json",
        "inspect shards/w-00001-of-00003.ptd --json",
    ],
    "share": [
        "share first.pte second.pte --weights-to shared.ptd --fat shared.fat --least-size 1 --json",
        "share first.pte second.pte --dry-run --json",
        "share first.pte second.pte --dry-run --least-size 1 --split-max-size 1M --json",
    ],
    "explain": ["explain model.pte --by model.pte --json", "explain model.pte --by delegated.pte --json"],
    "inspect --graph": [f"inspect {name}.pte --graph forward --json" for name in ("model", "small", "delegated")],
    "inspect --budget": [f"inspect {name} --budget --json" for name in ("model.pte", "segmented.bpte", "delegated.pte")],
    "profile": ["profile --callers --json profile.json -- sh phase.sh"],
    "diff": ["diff model.bpte segmented.bpte --json", "diff model.pte small.pte --json", "diff model.pte model.pte --json",
             "diff delegated.pte other.pte --json"],
}
# The fields of programs with branches, with constants of no weights, and with delegates of other backends, which no file
# here has, and those of blocks in a heap, which not each build has.
UNSEEN = {
    "payloads[].constant",
    "calls[].destination",
    "payloads[].parts[].key",
    *(f"methods[].delegates[].{part}" for part in ("commands", "weights", "scratch")),
    *(f"blocks[].{field}" for field in ("process", "callers", "size", "blocks", "repeated")),
}

# A script that reports a phase as programs do.
PHASE = """read seconds rest </proc/uptime
echo "B $$ $$ ${seconds%.*}000000000 0 0 0 0 0 0 0 0 1 export" >>"$ETSTREAM_PROFILE"
echo 'taken = bytearray(256 << 20)' >taken.py
python3 taken.py
"""

# A script that answers as a Python with ExecuTorch does.
PYTHON = """#!/bin/sh
echo '{"ready": true}'
while read -r task; do
  case $task in
    *'"outputs":true'*)
      head -c 40 /dev/zero >&5
      echo '{"end": "ok", "outputs": [{"dtype": "float32", "sizes": [1, 10], "offset": 0, "size": 40}]}'
      read -r task
      echo '{"end": "ok", "outputs": [null]}' ;;
    *'"fill":"zeros"'*) echo '{"end": "refused", "error": 18, "reason": "a check failed", "failed_at": [0, 0]}' ;;
    *'"copy":false'*'"fill":"ones"'*) echo '{"end": "signal", "signal": "SIGSEGV"}' ;;
    *) echo '{"end": "ok"}' ;;
  esac
done
"""


def read_tables(folder: Path) -> dict[str, dict[str, tuple[bool, str]]]:
    """Returns, by heading and by field, whether the field may be absent, and its type, from all pages in the folder."""
    tables: dict[str, dict[str, tuple[bool, str]]] = {}
    same: list[tuple[bool, str, str, str, str]] = []
    for page in sorted(folder.glob("*.md")):
        heading = ""
        for line in page.read_text(encoding="utf-8").partition("## Reports as JSON")[2].splitlines():
            if line.startswith("### "):
                heading = line[4:]
            elif match := ROW.fullmatch(line):
                tables.setdefault(heading, {})[match[1]] = (match[2] is not None, match[3])
                if told := SAME.search(match[4]):
                    same.append((told[2] is not None, heading, match[1], told[2] or heading, told[1]))
    # The tables that others refer to come first.
    for _, heading, field, there, like in sorted(same):
        item = "[]." if tables[there][like][1] == "array" else "."
        rows = {name: row for name, row in tables[there].items() if name.startswith(like + item)}
        assert rows, f"{heading}: {field} has the fields of {like}, which has none"
        tables[heading] |= {field + name.removeprefix(like): row for name, row in rows.items()}
    return tables


def check(value: object, name: str, table: dict[str, tuple[bool, str]], seen: set[str]) -> Iterator[str]:
    """Yields the errors in the part `name` of a report; adds the fields that are there to `seen`."""
    if isinstance(value, list):
        for item in value:
            yield from check(item, f"{name}[]", table, seen)
    if not isinstance(value, dict):
        return
    start = f"{name}." if name else ""
    for field, (may_be_absent, _) in table.items():
        if field == start + field[len(start) :].split(".")[0] and not may_be_absent:
            if field[len(start) :] not in value:
                yield f"{field} is absent"
    for key, inner in value.items():
        field = start + key
        seen.add(field)
        if field not in table:
            yield f"{field} is not in the table"
        elif not isinstance(inner, TYPES[table[field][1]]) or isinstance(inner, bool) and table[field][1] == "integer":
            yield f"{field}: expected {table[field][1]}, found {inner!r}"
        yield from check(inner, field, table, seen)


def main() -> int:
    pages, etstream, root = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    tables, problems = read_tables(pages), []
    golden = root / "tests" / "golden"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "here"
        shutil.copytree(root / "examples", folder)
        shutil.copy(golden / "delegated_program" / "program.pte", folder / "delegated.pte")
        shutil.copy(golden / "tensor_data" / "expected.ptd", folder / "named.ptd")
        (folder / "shards").mkdir()
        (folder / "phase.sh").write_text(PHASE)
        (folder / "python").write_text(PYTHON)
        (folder / "python").chmod(0o755)
        (folder / "outputs").mkdir()
        (folder / "outputs" / "output_0_0.raw").write_bytes(bytes(36))
        (folder / "outputs" / "output_1_0.raw").write_bytes(bytes(40))
        for name in ("program.ptg", "constants.safetensors"):
            shutil.copy(golden / "native_package" / name, folder)
        shutil.copy(golden / "gguf" / "expected.gguf", folder / "model.gguf")
        delegated = (folder / "delegated.pte").read_bytes()
        (folder / "other.pte").write_bytes(delegated[:-1] + bytes([delegated[-1] ^ 1]))  # another bias
        key = "0e46b0f0450941b9cf7ce388df558a92c5d042dae3f9a46a64c946ea56f25415"
        (folder / "names.json").write_text(f'{{"{key}": "linear.bias"}}')
        (folder / "first.json").write_text('{"1": "weight"}')
        (folder / "second.json").write_text('{"2": "weight"}')
        for heading, commands in COMMANDS.items():
            table, seen = dict(tables.get(heading, {})), set()
            if heading == "A plan":
                table |= {f"tensor_data.{field}": row for field, row in table.items() if field != "tensor_data"}
            for command in commands:
                done = subprocess.run([etstream, *shlex.split(command)], cwd=folder, capture_output=True, text=True, check=False)
                report = json.loads(done.stdout or (folder / "profile.json").read_text())
                problems += [f"{command}: {problem}" for problem in check(report, "", table, seen)]
            problems += [f"{heading}: no report has {field}" for field in table if field not in seen | UNSEEN]
    problems += [f"{pages}: no command prints what {heading!r} describes" for heading in tables.keys() - COMMANDS.keys()]
    count = sum(map(len, tables.values()))
    print("\n".join(problems) or f"{len(tables)} tables, {count} fields are what the command reports")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
