# SPDX-License-Identifier: BSD-3-Clause
"""README's commands that build, install and link the library, and the command's that need nothing else."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

from blocks import block, blocks

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "build" / "readme"
PREFIX = HERE / "root" / "usr" / "local"

# By their first lines: what runs each block here, or why it is not run.
RUN_HERE = {
    ".ci/install-packages build ",
    "etstream decompile --exact ",
    "find_package(etstream ",
    '#include "etstream/bundled_program.h"',
    "c++ -std=c++20 app.cpp ",
}
RUN_IN_PYTHON = {
    "from executorch.exir._serialize ",
    "#!/bin/sh",
    "import etstream",
    "from etstream import executorch as adaptors",
    "with adaptors.install():",
    "cmake --preset release -DETSTREAM_BUILD_TESTS=OFF -DETSTREAM_BUILD_EXECUTORCH=ON ",
}
NOT_RUN = {
    "examples/run ": "tests/run can't run itself; tests/setup/bare_root runs the first two",
    "etstream bundle MODEL.pte ": "says which commands there are; tests/cli runs each",
    "etstream ptd model.safetensors.index.json ": "takes a checkpoint of billions of weights, and shows a file of rules;"
    " tests/peer/test_key_maps.py runs it on small ones",
    ".ci/install-packages python ": "tests/python/install runs it, and tests/setup/bare_root as it stands",
}

# Of the commands that README has users run as root, the one that installs goes to a folder.
SUDO = f"""#!/bin/sh
[ "$1" != cmake ] || DESTDIR={HERE}/root exec "$@"
PATH=${{PATH#*:}} exec sudo "$@"
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES CXX)
add_executable(app app.cpp)
"""


def shell(script: str, folder: Path, **environment: str) -> None:
    print(script, flush=True)
    command = ["bash", "-euo", "pipefail", "-c", script]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)


def install() -> None:
    stub = HERE / "bin" / "sudo"
    stub.parent.mkdir()
    stub.write_text(SUDO, encoding="utf-8")
    stub.chmod(0o755)
    # As in a fresh clone: what was configured before is not asked.
    (ROOT / "build" / "release" / "CMakeCache.txt").unlink(missing_ok=True)
    shell(block(".ci/install-packages build "), ROOT, PATH=f"{stub.parent}:{os.environ['PATH']}")


def project(name: str) -> Path:
    """A folder with README's program, and the files that it opens."""
    folder = HERE / name
    shutil.copytree(ROOT / "examples", folder)
    lines = block('#include "etstream/bundled_program.h"').splitlines(keepends=True)
    includes = [line for line in lines if line.startswith("#include")]
    body = [line for line in lines if line not in includes]
    program = ["#include <cstdio>\n", *includes, "int main() {\n", *body, "return written ? 0 : 1;\n}\n"]
    (folder / "app.cpp").write_text("".join(program), encoding="utf-8")
    (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    with (folder / "CMakeLists.txt").open("a", encoding="utf-8") as file:
        file.write(block("find_package(etstream "))
    return folder


def check_bundle(folder: Path) -> None:
    """The program's bundle is the command's."""
    bundle = [PREFIX / "bin" / "etstream", "bundle", "model.pte", "--cases", "cases.json", "-o", "command.bpte"]
    subprocess.run(bundle, cwd=folder, check=True)
    if not filecmp.cmp(folder / "model.bpte", folder / "command.bpte", shallow=False):
        sys.exit(f"{folder}: the program's bundle is not the command's")


def link() -> None:
    folder = project("cmake")
    environment = {"CMAKE_PREFIX_PATH": str(PREFIX)}
    shell("cmake -G Ninja -S . -B build && cmake --build build && build/app", folder, **environment)
    check_bundle(folder)
    folder = project("pkg-config")
    (packages,) = PREFIX.rglob("pkgconfig")
    shell(block("c++ -std=c++20 app.cpp ") + "./a.out", folder, PKG_CONFIG_PATH=str(packages))
    check_bundle(folder)


def edit_as_json() -> None:
    folder = HERE / "json"
    folder.mkdir()
    for name in ("schema/program.fbs", "schema/scalar_type.fbs", "examples/model.pte"):
        shutil.copy(ROOT / name, folder)
    shell(block("etstream decompile --exact "), folder, PATH=f"{PREFIX}/bin:{os.environ['PATH']}")
    if not filecmp.cmp(folder / "model.pte", folder / "edited.pte", shallow=False):
        sys.exit("a program that was not edited is another one")


def main() -> int:
    known = [*RUN_HERE, *RUN_IN_PYTHON, *NOT_RUN]
    for first in blocks():
        if sum(first.startswith(start) for start in known) != 1:
            sys.exit(f"README has a block that is not run, and no reason why: {first}")
    for start in known:
        if not any(first.startswith(start) for first in blocks()):
            sys.exit(f"README has no block that begins with {start}")
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    install()
    link()
    edit_as_json()
    for start, reason in NOT_RUN.items():
        print(f"not run: {start}...: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
