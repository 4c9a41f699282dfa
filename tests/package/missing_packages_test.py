# SPDX-License-Identifier: BSD-3-Clause
"""Shows that each missing package is reported in one sentence, which says what to install, and all of them at once.

    missing_packages_test.py SOURCE FOLDER CMAKE
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# The option that hides a package from CMake, and the message without it.
HIDDEN = {
    "FlatBuffers": "FlatBuffers: install libflatbuffers-dev, or let CMAKE_PREFIX_PATH name where it is",
    "fmt": "fmt: install libfmt-dev, or let CMAKE_PREFIX_PATH name where it is",
    "nlohmann_json": "nlohmann_json: install nlohmann-json3-dev, or let CMAKE_PREFIX_PATH name where it is",
    "OpenSSL": "OpenSSL: install libssl-dev, or let CMAKE_PREFIX_PATH name where it is",
    "ZLIB": "ZLIB: install zlib1g-dev, or let CMAKE_PREFIX_PATH name where it is",
    "zstd": "zstd: install libzstd-dev, or let CMAKE_PREFIX_PATH name where it is",
    "CLI11": "CLI11: install libcli11-dev, or let CMAKE_PREFIX_PATH name where it is, or give -DETSTREAM_BUILD_COMMAND=OFF",
    "doctest": "doctest: install doctest-dev, or let CMAKE_PREFIX_PATH name where it is, or give -DETSTREAM_BUILD_TESTS=OFF",
    "Threads": "Threads: install libc6-dev, or give -DETSTREAM_BUILD_TESTS=OFF",
    "Python3": "Python3: install python3, or give -DETSTREAM_BUILD_TESTS=OFF",
    "Python": "Python: install Python 3.10 or newer with its headers, python3-dev, or give -DETSTREAM_BUILD_PYTHON=OFF",
    "executorch": "executorch: pip install executorch==1.5.1 and let CMAKE_PREFIX_PATH name <site-packages>/executorch, "
    "or give -DETSTREAM_BUILD_EXECUTORCH=OFF",
}
XXHASH = "xxHash: install libxxhash-dev, or let CMAKE_PREFIX_PATH name where it is"
NANOBIND = r"nanobind: pip install nanobind for \S+, or give -DETSTREAM_BUILD_PYTHON=OFF"
# A package that is not part of the system, and must not be taken.
TRAP = 'message(FATAL_ERROR "taken from the PATH")\n'


def configured(source: str, folder: Path, cmake: str, *options: str, **environment: str) -> tuple[int, str]:
    """Returns how CMake ended in a new folder, and its errors."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [cmake, "-S", source, "-B", str(folder), "-G", "Ninja", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    return done.returncode, done.stderr


def sentences(errors: str) -> set[str]:
    return set(re.findall(r"^    (\S.*)$", errors, re.MULTILINE))


def environment_with_traps(folder: Path) -> Path:
    """Returns a folder for the front of the PATH, like that of an activated environment, with wrong packages."""
    for name in ("FlatBuffers", "fmt", "nlohmann_json", "OpenSSL", "zstd", "CLI11", "doctest"):
        package = folder / "lib" / "cmake" / name
        package.mkdir(parents=True)
        (package / f"{name}Config.cmake").write_text(TRAP, encoding="utf-8")
    flatc = folder / "bin" / "flatc"
    flatc.parent.mkdir()
    flatc.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    flatc.chmod(0o755)
    return flatc.parent


def main() -> int:
    source, folder, cmake = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    problems = []
    hiding = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in HIDDEN]
    all_options = ["-DETSTREAM_BUILD_PYTHON=ON", "-DETSTREAM_BUILD_EXECUTORCH=ON", "-DCMAKE_FIND_ROOT_PATH=/nonexistent"]
    all_options += ["-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY"]
    code, errors = configured(source, folder / "all", cmake, *hiding, *all_options)
    if code == 0 or sentences(errors) != {*HIDDEN.values(), XXHASH}:
        problems.append(f"of everything missing CMake says\n{errors}")
    code, errors = configured(source, folder / "one", cmake, "-DCMAKE_DISABLE_FIND_PACKAGE_doctest=ON")
    if code == 0 or sentences(errors) != {HIDDEN["doctest"]}:
        problems.append(f"of doctest missing CMake says\n{errors}")
    nanobind = ["-DETSTREAM_BUILD_PYTHON=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_nanobind=ON"]
    code, errors = configured(source, folder / "nanobind", cmake, *nanobind)
    said = sentences(errors)
    if code == 0 or len(said) != 1 or not re.fullmatch(NANOBIND, said.pop()):
        problems.append(f"of nanobind missing CMake says\n{errors}")
    shutil.rmtree(folder / "environment", ignore_errors=True)
    path = environment_with_traps(folder / "environment")
    code, errors = configured(source, folder / "trap", cmake, PATH=f"{path}:{os.environ['PATH']}")
    if code:
        problems.append(f"beside an environment with packages of its own CMake says\n{errors}")
    elif str(path) in (folder / "trap" / "build.ninja").read_text(encoding="utf-8"):
        problems.append("the flatc of the environment is taken")
    print("\n".join(problems) or "each missing package is told in one sentence, and none comes from the PATH")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
