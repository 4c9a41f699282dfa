# SPDX-License-Identifier: BSD-3-Clause
"""Checks a wheel that is to run anywhere: the libraries that it links, the symbols that it exports, and that it names
no path of the machine that built it.

    check_wheel.py WHEEL... --hidden PATH...
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

# The libraries of glibc and GCC's unwinder, which each system of the tag has.
ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
PACKAGES = (
    "cli11", "flatbuffers", "fmtlib", "libstdc++", "libzstd", "nanobind", "nlohmann-json3", "openssl", "xxhash", "zlib"
)
# The symbols that the module gives to Python.
EXPORTED = {"_core": {"PyInit__core"}}


def problems_of(archive: zipfile.ZipFile, hidden: list[str]) -> list[str]:
    problems = []
    names = archive.namelist()
    for package in PACKAGES:
        if not any(name.endswith(f"/licenses/third_party/{package}.txt") for name in names):
            problems.append(f"the licence of {package} is missing")
    for end in (".dist-info/licenses/LICENSE", "scripts/etstream", "lib/etstream/libetstream_heap.so", "etstream/_core.pyi"):
        if not any(name.endswith(end) for name in names):
            problems.append(f"{end} is missing")
    binaries = 0
    for name in names:
        data = archive.read(name)
        problems += [f"{name} names {path}" for path in hidden if path.encode() in data]
        if data[:4] != b"\x7fELF":
            continue
        binaries += 1
        with archive.open(name) as file:
            elf = ELFFile(file)
            if elf.get_section_by_name(".symtab") or elf.get_section_by_name(".debug_info"):
                problems.append(f"{name} is not stripped")
            for section in elf.iter_sections():
                if isinstance(section, DynamicSection):
                    tags = list(section.iter_tags())
                    needed = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
                    problems += [f"{name} needs {library}" for library in sorted(needed - ALLOWED)]
                    if any(tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH") for tag in tags):
                        problems.append(f"{name} looks for libraries in a folder")
            exported = EXPORTED.get(Path(name).name.split(".")[0])
            symbols = elf.get_section_by_name(".dynsym").iter_symbols() if exported else ()
            visible = {
                one.name
                for one in symbols
                if one["st_shndx"] != "SHN_UNDEF" and one["st_info"]["bind"] != "STB_LOCAL"
            }
            if exported and visible != exported:
                problems.append(f"{name} shows {', '.join(sorted(visible - exported)[:5]) or 'nothing'}")
    if binaries != 3:
        problems.append(f"it has {binaries} binaries: the module, the command and the heap are expected")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--hidden", nargs="*", default=[], help="Paths that nothing in it may name")
    arguments = parser.parse_args()
    failed = False
    for wheel in arguments.wheels:
        with zipfile.ZipFile(wheel) as archive:
            problems = problems_of(archive, arguments.hidden)
        failed |= bool(problems)
        print("\n".join(f"{wheel.name}: {problem}" for problem in problems) or f"{wheel.name}: self-contained")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
