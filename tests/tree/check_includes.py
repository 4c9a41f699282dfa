# SPDX-License-Identifier: BSD-3-Clause
"""Proves who includes whom: a folder of src/ includes itself and those before it in FOLDERS, as far as its component may.

    python3 check_includes.py ROOT

A public header belongs to the folder that HEADERS gives: the first that includes it. It names no third-party and no
operating-system header. Operating-system headers are named only in files called
*_posix.*, *_linux.* or *_apple.*. The folders in OUTSIDE use the library by its public headers, and include the private
ones that match what OUTSIDE lists. ExecuTorch's headers are named in src/executorch and in its public headers,
include/etstream/executorch, alone. No file has a map or set that hashes: who makes a file could give all its keys one
hash, and each search would read them all.
"""

import fnmatch
import re
import sys
from pathlib import Path

FOLDERS = """
    core/base core/packed core/io core/layout
    flatbuffer flatbuffer/json
    formats/tensor formats/segments formats/ptd formats/safetensors formats/gguf
    formats/pte formats/pte/backends formats/pte/rewrite
    formats/fat formats/bpte formats/zip formats/ptn formats/torch
    formats/checkpoint formats/checkpoint/rename formats/recipe
    runtime_checks
    memory/process memory/heap memory/profile
    files/runs files files/origins
    present cli python executorch
""".split()
# The components that src/CMakeLists.txt makes: the folders of each, and those of others that it includes.
COMPONENTS = {
    "etstream": ("core flatbuffer formats", ""),
    "etstream-checks": ("runtime_checks", "core flatbuffer formats"),
    "etstream-memory": ("memory", "core flatbuffer formats"),
    "etstream-tools": ("files", "core flatbuffer formats runtime_checks memory/process"),
}
OUTSIDE = {
    "cli": "core/base/* present/*",
    # The module makes Python's objects and streams with parts that the public headers hide: schemas that it packs
    # Python objects with, descriptors, files without a name, and the heap of the running process. It raises the errors
    # that a check found.
    "python": "core/base/* present/* core/io/descriptor_posix.h files/runs/unnamed_file_posix.h flatbuffer/schema.h"
    " flatbuffer/schema_packer.h formats/tensor/dimensions.h formats/tensor/strided_source.h"
    " formats/bpte/bundled_program.h formats/bpte/test_cases.h"
    " formats/pte/rewrite/program_description.h memory/heap/in_process_linux.h",
    "executorch": "core/base/*",
}
HEADERS = {
    "result": "core/base",
    "version": "core/base",
    "byte_source": "core/io",
    "packed_file": "core/io",
    "sink": "core/io",
    "flatbuffer_text": "flatbuffer/json",
    "tensor": "formats/tensor",
    "file_kind": "formats/segments",
    "tensor_data": "formats/ptd",
    "checkpoint": "formats/safetensors",
    "program": "formats/pte",
    "program_plan": "formats/pte/rewrite",
    "embedded_file": "files",
    "fat_container": "formats/fat",
    "bundled_program": "formats/bpte",
    "native_package": "formats/ptn",
    "runtime_checks": "runtime_checks",
    "profile": "memory/process",
    "verify": "files/runs",
    "diff": "files",
    "inspect": "files",
    "program_weights": "files",
    "write_files": "files",
    "reweight": "files/origins",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
OPERATING_SYSTEM = re.compile(
    r"(sys|linux|net|netinet|arpa|mach|mach-o|malloc)/.*"
    r"|(unistd|fcntl|dirent|poll|pthread|signal|dlfcn|termios|pwd|grp|libproc)\.h"
)
SYSTEM_FILES = ("_posix", "_linux", "_apple")
STANDARD = re.compile(r"[a-z0-9_]+")  # names without .h: <vector>, <cstdio>
COMPONENT = re.compile(r"^etstream_component\((\S+)((?:\$\{\w+\}|[^)$])*)\)", re.MULTILINE)
HASHED = re.compile(r"\bunordered_(multi)?(map|set)\b")


def owner_of(header: str) -> str | None:
    """Returns the folder that a public header ("etstream/sink.h") belongs to."""
    return "executorch" if Path(header).parent.name == "executorch" else HEADERS.get(Path(header).stem)


def folder_of(relative: Path) -> str | None:
    """Returns the folder of src/ that a file, of src/ or of include/, belongs to."""
    if relative.parts[0] == "include":
        return owner_of(str(relative))
    return relative.parent.relative_to("src").as_posix()


def is_within(folder: str, folders: str) -> bool:
    return any(folder == f or folder.startswith(f + "/") for f in folders.split())


def component_of(folder: str) -> str:
    """Returns the component that has a folder of src/; "" for what is no part of the library."""
    return next((name for name, (own, _) in COMPONENTS.items() if is_within(folder, own)), "")


def check_file(root: Path, path: Path) -> list[str]:
    """Returns a line for each error in the includes of one file."""
    relative = path.relative_to(root)
    public = relative.parts[0] == "include"
    folder = folder_of(relative)
    if folder is None:
        return [f"{relative}: HEADERS gives it no folder"]
    if folder not in FOLDERS:
        return [f"{relative}: FOLDERS has no src/{folder}"]
    included = " ".join(COMPONENTS.get(component_of(folder), FOLDERS))
    before = [f for f in FOLDERS[: FOLDERS.index(folder)] if is_within(f, included)]
    text = path.read_text(encoding="utf-8")
    hashed = HASHED.search(text)
    problems = [f"{relative}: {hashed[0]}: take one that sorts, as its keys may come from a file"] if hashed else []
    for bracket, name in INCLUDE.findall(text):
        if bracket == "<":
            executorch = name.startswith("executorch/")
            if executorch and folder != "executorch":
                problems.append(f"{relative}: <{name}> belongs in src/executorch")
            elif public and not executorch and not STANDARD.fullmatch(name):
                problems.append(f"{relative}: a public header includes <{name}>")
            if OPERATING_SYSTEM.fullmatch(name) and not path.stem.endswith(SYSTEM_FILES):
                problems.append(f"{relative}: <{name}> belongs in a file called *_posix, *_linux or *_apple")
            continue
        if "/" not in name:
            continue  # generated
        is_public = name.startswith("etstream/")
        target = owner_of(name) if is_public else str(Path(name).parent)
        if public and not is_public:
            problems.append(f'{relative}: a public header includes "{name}", which is not public')
        if target == folder:
            continue
        if target not in before:
            problems.append(f'{relative}: src/{folder} may not include "{name}"')
        allowed = OUTSIDE.get(folder, "*").split()
        if not is_public and not any(fnmatch.fnmatch(name, pattern) for pattern in allowed):
            problems.append(f'{relative}: src/{folder} includes "{name}", which is not public')
    return problems


def check_components(root: Path) -> list[str]:
    """Returns the errors of src/CMakeLists.txt: components of other folders, or with headers of other components."""
    problems, listed = [], {}
    for name, body in COMPONENT.findall((root / "src/CMakeLists.txt").read_text(encoding="utf-8")):
        listed.update((word, name) for word in body.split() if word.endswith(".h"))
        others = [word for word in body.split() if component_of(word) not in ("", name)]
        problems += [f"src/CMakeLists.txt: {folder} is no part of {name}" for folder in others]
    for header in sorted(path.name for path in (root / "include/etstream").glob("*.h")):
        name = component_of(owner_of(f"etstream/{header}") or "")
        if listed.pop(header, "etstream") != name:
            problems.append(f"src/CMakeLists.txt: {header} is a header of {name}")
    return problems + [f"src/CMakeLists.txt: there is no {header}" for header in listed]


def check_lists(root: Path, files: list[Path]) -> list[str]:
    """Returns the errors in the lists: folders that are not there, and private headers that nothing needs."""
    problems = [f"FOLDERS: there is no src/{f}" for f in FOLDERS if not (root / "src" / f).is_dir()]
    headers = {path.stem for path in files if path.parent == root / "include/etstream"}
    problems += [f"HEADERS: there is no {header}.h" for header in HEADERS if header not in headers | {"version"}]
    for folder, patterns in OUTSIDE.items():
        texts = [path.read_text(encoding="utf-8") for path in files if folder_of(path.relative_to(root)) == folder]
        included = {name for text in texts for _, name in INCLUDE.findall(text)}
        unused = [p for p in patterns.split() if not fnmatch.filter(included, p)]
        problems += [f"OUTSIDE: src/{folder} includes no {p}" for p in unused]
    return problems


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    files = [p for d in ("include", "src") for p in sorted((root / d).rglob("*")) if p.suffix in (".h", ".cpp")]
    if not files:
        print(f"{root} has no sources")
        return 1
    problems = [problem for path in files for problem in check_file(root, path)]
    problems += check_lists(root, files) + check_components(root)
    print("\n".join(problems) or f"{len(files)} files include only what they may")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
