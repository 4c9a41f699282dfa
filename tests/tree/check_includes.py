# SPDX-License-Identifier: BSD-3-Clause
"""Proves who includes whom: a folder of src/ includes itself and the folders that MAY_INCLUDE lists for it.

    python3 check_includes.py ROOT

A public header belongs to the folder that has a source file of the same name, or to the one that HEADER_ONLY gives.
It names no third-party and no operating-system header. Operating-system headers are named only in files called
*_posix.*, *_linux.* or *_apple.*. The folders in OUTSIDE include public headers, and the private ones that match what
OUTSIDE lists: others the library does not export. ExecuTorch's headers are named in src/executorch and in its public headers,
include/etstream/executorch, alone.
"""

import fnmatch
import re
import sys
from pathlib import Path

# Each folder comes after those that it may include, so that no arrows form a circle.
MAY_INCLUDE = {
    "base": "",
    "io": "base",
    "layout": "base io",
    "flatbuffer": "base io layout",
    "tensor": "base io",
    "container": "base io flatbuffer tensor",
    "pte": "base io flatbuffer tensor container",
    "pte/rewrite": "base io layout flatbuffer tensor container pte",
    "ptd": "base io layout flatbuffer tensor container",
    "fat": "base io layout container",
    "zip": "base io layout",
    "ptn": "base io layout flatbuffer tensor container zip",
    "bpte": "base io layout flatbuffer tensor container pte",
    "bpte/cases": "base io layout flatbuffer tensor container bpte",
    "weights/torch": "base io layout flatbuffer tensor container zip",
    "weights": "base io layout flatbuffer tensor container pte pte/rewrite ptd ptn weights/torch",
    "weights/rename": "base io flatbuffer container weights",
    "process": "base io",
    "runs": "base io layout tensor container pte bpte process",
    "heap": "base io process",
    "profile": "base io flatbuffer heap process",
    "report": "base io layout flatbuffer tensor container pte pte/rewrite ptd fat ptn bpte bpte/cases weights weights/torch"
    " weights/rename runs profile",
    "jobs": "base io layout tensor container pte pte/rewrite ptd fat ptn bpte bpte/cases weights weights/torch"
    " weights/rename runs report",
    "cli": "base io layout flatbuffer tensor container pte pte/rewrite ptd fat ptn bpte bpte/cases weights weights/torch"
    " weights/rename runs report jobs heap profile",
    "python": "base io layout flatbuffer tensor container pte pte/rewrite ptd fat ptn bpte bpte/cases weights weights/torch"
    " weights/rename runs report jobs heap profile",
    "executorch": "base io tensor pte bpte",
}
OUTSIDE = {
    "cli": "base/* jobs/* report/reports.h",
    "python": "base/* jobs/* report/reports.h",
    "executorch": "base/*",
}
HEADER_ONLY = {"export": "base", "result": "base", "version": "base", "segment_info": "container",
               "tensor_layout": "tensor", "command_end": "process"}

# Single headers that a folder includes although the lists above forbid the rest of their folder, and why.
EXCEPTIONS = {
    # Constants that leave a program become a .ptd file: these two describe it before and after.
    "pte/rewrite": "etstream/tensor_data.h etstream/tensor_data_file.h",
    # Why ExecuTorch refuses a program: the keys that it lacks, and what is wrong with the file.
    "executorch": "etstream/program_weights.h etstream/verify.h",
    # A test case may take its tensors from a safetensors file.
    "bpte/cases": "weights/safetensors.h",
    # The constants of a package are a safetensors file, and come from checkpoints.
    "ptn": "etstream/checkpoint.h weights/safetensors.h",
    # The tensors of torch's files are those of checkpoints.
    "weights/torch": "etstream/checkpoint.h",
    # The module makes Python's objects and streams with what the public headers hide: schemas that it packs Python
    # objects with, descriptors, the heap of the running process; and raises what a check found.
    "python": "bpte/bundled_program_schema.h bpte/case_check.h bpte/case_layout.h container/findings.h"
    " flatbuffer/schema.h flatbuffer/schema_packer.h flatbuffer/value_reader.h heap/in_process_linux.h io/descriptor_posix.h"
    " pte/rewrite/payload_extraction.h tensor/dimensions.h tensor/strided_source.h",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
OPERATING_SYSTEM = re.compile(
    r"(sys|linux|net|netinet|arpa|mach|mach-o|malloc)/.*"
    r"|(unistd|fcntl|dirent|poll|pthread|signal|dlfcn|termios|pwd|grp|libproc)\.h"
)
SYSTEM_FILES = ("_posix", "_linux", "_apple")
STANDARD = re.compile(r"[a-z0-9_]+")  # no .h: <vector>, <cstdio>


def owner_of(root: Path, header: str) -> str | None:
    """The folder that a public header ("etstream/sink.h") belongs to."""
    if Path(header).parent.name == "executorch":
        return "executorch"
    stem = Path(header).stem
    if stem in HEADER_ONLY:
        return HEADER_ONLY[stem]
    stems = [stem, *(stem + system for system in SYSTEM_FILES)]
    owners = {f for f in MAY_INCLUDE if f not in OUTSIDE for s in stems if (root / "src" / f / f"{s}.cpp").exists()}
    return owners.pop() if len(owners) == 1 else None


def folder_of(root: Path, relative: Path) -> str | None:
    """The folder of src/ that a file, of src/ or of include/, belongs to."""
    if relative.parts[0] == "include":
        return owner_of(root, str(relative))
    return relative.parent.relative_to("src").as_posix()


def check_file(root: Path, path: Path) -> list[str]:
    """What is wrong with the includes of one file, a line each."""
    relative = path.relative_to(root)
    public = relative.parts[0] == "include"
    folder = folder_of(root, relative)
    if folder is None:
        return [f"{relative}: no folder, or more than one, has its source; see HEADER_ONLY"]
    if folder not in MAY_INCLUDE:
        return [f"{relative}: MAY_INCLUDE has no src/{folder}"]
    problems = []
    for bracket, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
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
        target = owner_of(root, name) if is_public else str(Path(name).parent)
        if public and not is_public:
            problems.append(f'{relative}: a public header includes "{name}", which is not public')
        if target == folder or name in EXCEPTIONS.get(folder, "").split():
            continue
        if target not in MAY_INCLUDE[folder].split():
            problems.append(f'{relative}: src/{folder} may not include "{name}"')
        allowed = OUTSIDE.get(folder, "*").split()
        if not is_public and not any(fnmatch.fnmatch(name, pattern) for pattern in allowed):
            problems.append(f'{relative}: src/{folder} includes "{name}", which is not public')
    return problems


def check_lists(root: Path, files: list[Path]) -> list[str]:
    """What the lists have that is not so: folders that are not there, circles, exceptions that nothing needs."""
    problems = [f"MAY_INCLUDE: there is no src/{f}" for f in MAY_INCLUDE if not (root / "src" / f).is_dir()]
    order = list(MAY_INCLUDE)
    for folder, others in MAY_INCLUDE.items():
        before = order[: order.index(folder)]
        problems += [f"MAY_INCLUDE: {folder} comes before {o}" for o in others.split() if o not in before]
    included: dict[str, set[str]] = {}
    for path in files:
        names = {name for _, name in INCLUDE.findall(path.read_text(encoding="utf-8"))}
        included.setdefault(folder_of(root, path.relative_to(root)) or "", set()).update(names)
    for folder, headers in EXCEPTIONS.items():
        unused = [h for h in headers.split() if h not in included.get(folder, set())]
        problems += [f"EXCEPTIONS: src/{folder} no longer includes {h}" for h in unused]
    return problems


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    files = [p for d in ("include", "src") for p in sorted((root / d).rglob("*")) if p.suffix in (".h", ".cpp")]
    if not files:
        print(f"{root} has no sources")
        return 1
    problems = [problem for path in files for problem in check_file(root, path)]
    problems += check_lists(root, files)
    print("\n".join(problems) or f"{len(files)} files include only what they may")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
