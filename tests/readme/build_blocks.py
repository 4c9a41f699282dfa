# SPDX-License-Identifier: BSD-3-Clause
"""Runs the pages' commands that build, install and link the library, and lists where each block of code is run, or why
it is not. With --places it does the latter alone, and checks README's first screen and the table of CMake's options."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from blocks import ROOT, block, blocks

HERE = ROOT / "build" / "readme"
PREFIX = HERE / "root" / "usr" / "local"

BUILD_BLOCKS = "tests/readme/build_blocks.py"
PYTHON_BLOCKS = "tests/readme/python_blocks.py"
RECIPES = "tests/readme/recipes.py"
HEADERS = "tests/headers compiles it"
# The place where each block is run, or the reason why it is not, by page and first line. Consoles, JSON and files are
# console_blocks.py's.
BLOCKS = {
    "README.md: examples/run ": "tests/run can't run itself; tests/setup/bare_root runs the first two",
    "README.md: .ci/install-packages build ": BUILD_BLOCKS,
    "README.md: .ci/install-packages python ": "tests/run runs it step by step, and tests/setup/bare_root as it stands",
    "README.md: import etstream": PYTHON_BLOCKS,
    'README.md: #include "etstream/bundled_program.h"': BUILD_BLOCKS,
    "CONTRIBUTING.md: tests/run ": "tests/run can't run itself",
    "CONTRIBUTING.md: .ci/install-packages all": "tests/run all does it, step by step",
    "docs/command/programs.md: from executorch.exir._serialize ": PYTHON_BLOCKS,
    "docs/command/programs.md: #!/bin/sh": PYTHON_BLOCKS,
    "docs/command/checking.md: etstream verify model.bpte --run": "takes ExecuTorch; tests/peer/test_verify_run.py runs"
    " such commands",
    "docs/executorch.md: cmake --preset release ": PYTHON_BLOCKS,
    "docs/executorch.md: from etstream.executorch import open_bundle": PYTHON_BLOCKS,
    "docs/executorch.md: import etstream": PYTHON_BLOCKS,
    "docs/profile.md: etstream profile --executorch ": "takes ExecuTorch's own export of a Llama; tests/python/test_profile.py"
    " profiles a smaller export so",
    "docs/profile.md: export:": "is a job of another project; tests/profile runs what it runs",
    "docs/exporting.md: etstream run ": "takes ExecuTorch's own export of a Llama; tests/heap runs commands, and"
    " perf/export_paths.py this one",
    "docs/installing.md: packaging/wheels ": "tests/run all builds and tries those for x86-64; all of them before a release",
    "docs/installing.md: cpack ": "tests/packaging/debian_packages runs it",
    "docs/installing.md: mkdir /sys/fs/cgroup/small": "takes root, and changes the system; tests/readme/systemd_run.py makes"
    " such groups",
    'docs/library.md: #include "etstream/inspect.h"': HEADERS,
    'docs/library.md: #include "etstream/sink.h"': HEADERS,
    "docs/library.md: find_package(etstream ": BUILD_BLOCKS,
    "docs/library.md: include(FetchContent)": BUILD_BLOCKS,
    "docs/library.md: c++ -std=c++20 app.cpp ": BUILD_BLOCKS,
    "docs/library.md: cmake --preset writer ": "tests/package builds and installs so",
    'docs/phones.md: #include "etstream/checkpoint.h"': HEADERS,
    "docs/platforms.md: packaging/cross macos-arm64 ": "tests/run all does all but those on aarch64",
    "docs/performance.md: perf/run ": "measures, which takes long",
    "docs/performance.md: ETSTREAM=$PWD/": "a part of perf/run",
    "docs/python.md: import etstream": PYTHON_BLOCKS,
    "docs/python.md: kept = etstream.ProgramOptions(": PYTHON_BLOCKS,
    "docs/python.md: plan = etstream.bundle(": PYTHON_BLOCKS,
    "docs/python.md: report = etstream.inspect(": PYTHON_BLOCKS,
    "docs/python.md: plan = etstream.ptd(": PYTHON_BLOCKS,
    "docs/python.md: etstream.fat(": PYTHON_BLOCKS,
    "docs/python.md: etstream.pte(": PYTHON_BLOCKS,
    "docs/python.md: origins = etstream.explain(": PYTHON_BLOCKS,
    "docs/python.md: plan = etstream.reweight(": PYTHON_BLOCKS,
    "docs/python.md: etstream.ptn(": PYTHON_BLOCKS,
    'docs/python.md: etstream.pack("model.pte"': PYTHON_BLOCKS,
    'docs/python.md: etstream.pack("new.pte"': PYTHON_BLOCKS,
    "docs/python.md: etstream.embed(": PYTHON_BLOCKS,
    "docs/python.md: from etstream import executorch as adaptors": PYTHON_BLOCKS,
    "docs/python.md: with adaptors.install():": PYTHON_BLOCKS,
    "docs/python.md: from etstream.executorch import load_fat": PYTHON_BLOCKS,
    "docs/recipes.md: python -m pip install ": RECIPES,
    "docs/weights.md: etstream share portable.pte ": "takes exported models; tests/peer/test_share.py runs it",
    "docs/weights.md: etstream ptd Llama-3.2-1B ": "docs/recipes.md has both, of a checkpoint that is made there",
    "docs/python.md: from etstream.profile import phase": PYTHON_BLOCKS,
    "docs/weights.md: etstream ptd llama/ --map llama ": "takes a checkpoint of billions of weights;"
    " tests/peer/test_ready_made_rules.py runs it on small ones",
}

# A stand-in for sudo: of the commands that users run as root, the one that installs goes to a folder.
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
    # A fresh clone has no earlier configuration, so this removes it.
    (ROOT / "build" / "release" / "CMakeCache.txt").unlink(missing_ok=True)
    shell(block("README.md", ".ci/install-packages build "), ROOT, PATH=f"{stub.parent}:{os.environ['PATH']}")


def project(name: str, how: str = "find_package(etstream ") -> Path:
    """Makes a folder with the program in README.md, and the files that it opens. A block of docs/library.md that begins
    with `how` links it."""
    folder = HERE / name
    shutil.copytree(ROOT / "examples", folder)
    lines = block("README.md", '#include "etstream/bundled_program.h"').splitlines(keepends=True)
    includes = [line for line in lines if line.startswith("#include")]
    body = [line for line in lines if line not in includes]
    program = ["#include <cstdio>\n", *includes, "int main() {\n", *body, "return written ? 0 : 1;\n}\n"]
    (folder / "app.cpp").write_text("".join(program), encoding="utf-8")
    (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    with (folder / "CMakeLists.txt").open("a", encoding="utf-8") as file:
        file.write(block("docs/library.md", how))
    return folder


def check_bundle(folder: Path) -> None:
    """Checks that the program's bundle is the command's."""
    bundle = [PREFIX / "bin" / "etstream", "bundle", "model.pte", "--cases", "cases.json", "-o", "command.bpte"]
    subprocess.run(bundle, cwd=folder, check=True)
    if not filecmp.cmp(folder / "model.bpte", folder / "command.bpte", shallow=False):
        sys.exit(f"{folder}: the program's bundle is not the command's")


def link() -> None:
    folder = project("cmake")
    environment = {"CMAKE_PREFIX_PATH": str(PREFIX)}
    shell("cmake -G Ninja -S . -B build && cmake --build build && build/app", folder, **environment)
    check_bundle(folder)
    # tests/package compiles etstream as a part of another project.
    folder = project("fetch", "include(FetchContent)")
    shell(f"cmake -G Ninja -S . -B build -D FETCHCONTENT_SOURCE_DIR_ETSTREAM='{ROOT}'", folder)
    folder = project("pkg-config")
    (packages,) = PREFIX.rglob("pkgconfig")
    shell(block("docs/library.md", "c++ -std=c++20 app.cpp ") + "./a.out", folder, PKG_CONFIG_PATH=str(packages))
    check_bundle(folder)


def check_first_screen() -> None:
    """Checks that README is short, and that its first screen ends in what a user of Python can run."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    if len(lines) > 150 or lines[28:30] != ["pip install .", "```"]:
        sys.exit("README.md: expected at most 150 lines, and `pip install .` to end the first 30")


def check_options() -> None:
    """Checks that docs/library.md has CMake's options."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    options = re.findall(r"^(?:option\(|set\()(ETSTREAM_\w+)(?=.* CACHE | \")", text, re.MULTILINE)
    told = re.findall(r"^\| `(ETSTREAM_\w+)`", (ROOT / "docs" / "library.md").read_text(encoding="utf-8"), re.MULTILINE)
    if sorted(told) != sorted(options):
        sys.exit(f"docs/library.md has these options: {told}; CMakeLists.txt has these: {options}")


def check_places() -> None:
    told = [str(one) for one in blocks() if one.language not in ("console", "json") and not one.file]
    for one in told:
        if sum(one.startswith(start) for start in BLOCKS) != 1:
            sys.exit(f"a block that is not run, and no reason why: {one}")
    for start in BLOCKS:
        if not any(one.startswith(start) for one in told):
            sys.exit(f"no block begins so: {start}")
    for start, where in BLOCKS.items():
        print(f"{start}...: {where}")


def main() -> int:
    check_places()
    check_first_screen()
    check_options()
    if sys.argv[1:] == ["--places"]:
        return 0
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    install()
    link()
    return 0


if __name__ == "__main__":
    sys.exit(main())
