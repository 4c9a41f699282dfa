# SPDX-License-Identifier: BSD-3-Clause
"""Proves the direction of includes: a folder of src/ includes only itself and those before it.

    python3 check_includes.py ROOT

Public headers belong to the folder that has a source file of the same name, or, header-only, to src/base.
They name no third-party and no operating-system header. Operating-system headers are named only in files
called *_posix.* or *_linux.*; src/cli and src/executorch include no header of the library but the public ones
and src/base.
ExecuTorch's headers are named in src/executorch and its public headers, include/etstream/executorch, alone.
"""

import re
import sys
from pathlib import Path

FOLDERS = ["base", "io", "layout", "schema", "codec", "format", "heap", "cli", "python", "executorch"]
OUTSIDE = ("cli", "executorch")  # see of the library what its users see
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
OPERATING_SYSTEM = re.compile(
    r"(sys|linux|net|netinet|arpa)/.*|(unistd|fcntl|dirent|poll|pthread|signal|dlfcn|termios|pwd|grp)\.h"
)
SYSTEM_FILES = ("_posix", "_linux")
STANDARD = re.compile(r"[a-z0-9_]+")  # no .h: <vector>, <cstdio>


def owner_of(root: Path, header: str) -> str:
    """The folder that a public header ("etstream/sink.h") belongs to."""
    if Path(header).parent.name == "executorch":
        return "executorch"
    stem = Path(header).stem
    stems = {stem, *(stem + system for system in SYSTEM_FILES)}
    owners = [f for f in FOLDERS for s in (root / "src" / f).glob("*.cpp") if s.stem in stems]
    return owners[0] if owners else "base"


def check_file(root: Path, path: Path) -> list[str]:
    """What is wrong with the includes of one file, a line each."""
    relative = path.relative_to(root)
    public = relative.parts[0] == "include"
    folder = owner_of(root, str(relative)) if public else relative.parts[1]
    if folder not in FOLDERS:
        return [f"{relative}: src/{folder} is not one of the folders {FOLDERS}"]
    problems = []
    for bracket, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if bracket == "<":
            executorch = name.startswith("executorch/")
            if executorch and folder != "executorch":
                problems.append(f"{relative}: <{name}> belongs in src/executorch")
            elif public and not executorch and not STANDARD.fullmatch(name):
                problems.append(f"{relative}: a public header includes <{name}>")
            if OPERATING_SYSTEM.fullmatch(name) and not path.stem.endswith(SYSTEM_FILES):
                problems.append(f"{relative}: <{name}> belongs in a file called *_posix or *_linux")
            continue
        if "/" not in name:
            continue  # generated
        is_public = name.startswith("etstream/")
        target = owner_of(root, name) if is_public else name.split("/")[0]
        if public and not is_public:
            problems.append(f'{relative}: a public header includes "{name}", which is not public')
        if target not in FOLDERS or FOLDERS.index(target) > FOLDERS.index(folder):
            problems.append(f'{relative}: src/{folder} may not include "{name}"')
        if folder in OUTSIDE and not is_public and target not in (folder, "base"):
            problems.append(f'{relative}: src/{folder} includes "{name}", which is not public')
    return problems


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    files = [p for d in ("include", "src") for p in sorted((root / d).rglob("*")) if p.suffix in (".h", ".cpp")]
    if not files:
        print(f"{root} has no sources")
        return 1
    problems = [problem for path in files for problem in check_file(root, path)]
    print("\n".join(problems) or f"{len(files)} files include only what they may")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
