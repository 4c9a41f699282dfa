# SPDX-License-Identifier: BSD-3-Clause
"""Links the outputs of `etstream embed` into programs for each target, and reads the bytes back from them.

    ETSTREAM=PATH EXAMPLES=FOLDER python3 embed_test.py
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

ETSTREAM = os.environ["ETSTREAM"]
MODEL = Path(os.environ["EXAMPLES"]) / "model.pte"
READ_BACK = Path(__file__).with_name("read_back.c")
OUTPUTS = ["model.o", "model.S"]


@dataclass
class Board:
    """A compiler for a target, a linker, and what runs the program."""

    target: str
    compiler: list[str]
    linker: list[str]
    runner: list[str]
    machine: str


CLANG = ["clang", "-Os", "-ffreestanding", "-fno-stack-protector"]
ARM = ["arm-none-eabi-gcc", "-Os", "-ffreestanding", "-mthumb"]
BOARDS = {
    "Cortex-M4, soft float": Board(
        "arm", [*ARM, "-mcpu=cortex-m4", "-mfloat-abi=soft"], ["arm-none-eabi-ld"], ["qemu-arm"], "ARM"
    ),
    "Cortex-M7, hard float": Board(
        "arm", [*ARM, "-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"], ["arm-none-eabi-ld"],
        ["qemu-arm"], "ARM",
    ),
    "AArch64": Board(
        "aarch64", [*CLANG, "--target=aarch64-none-elf"], ["aarch64-linux-gnu-ld"], ["qemu-aarch64"], "AArch64"
    ),
    "RISC-V, 32 bits": Board(
        "riscv32", [*CLANG, "--target=riscv32-none-elf", "-march=rv32imac", "-mabi=ilp32"],
        ["riscv64-linux-gnu-ld", "-m", "elf32lriscv"], ["qemu-riscv32"], "RISC-V",
    ),
    "RISC-V, 64 bits": Board(
        "riscv64", [*CLANG, "--target=riscv64-none-elf", "-march=rv64gc", "-mabi=lp64d"],
        ["riscv64-linux-gnu-ld", "-m", "elf64lriscv"], ["qemu-riscv64"], "RISC-V",
    ),
    "x86-64": Board(
        "x86-64", [*CLANG, "--target=x86_64-linux-gnu"], ["ld"], [], "Advanced Micro Devices X86-64"
    ),
}
# Another float ABI than the object file of the target has.
OTHER_ABIS = {
    "riscv32": ["-march=rv32imafc", "-mabi=ilp32f"],
    "riscv64": ["-march=rv64imac", "-mabi=lp64"],
}


class Embed(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_in_folder(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(list(map(str, command)), cwd=self.folder, check=False, capture_output=True, text=True)

    def succeed(self, *command: str | Path) -> str:
        run = self.run_in_folder(*command)
        self.assertEqual((run.returncode, run.stderr), (0, ""), command)
        return run.stdout

    def embed(self, content: bytes, target: str, alignment: int, *options: str) -> None:
        (self.folder / "model.bin").write_bytes(content)
        outputs = [word for output in [*OUTPUTS, "model.h"] for word in ("-o", output)]
        self.succeed(ETSTREAM, "embed", "model.bin", "--symbol", "model", "--target", target, "--align",
                     str(alignment), *options, *outputs)

    def read_back(self, board: Board, linker: list[str], output: str, alignment: int, *options: str) -> bytes:
        """Returns the bytes that a program has which is linked with an output."""
        compiler = [*board.compiler, *options, "-I.", f"-DALIGNMENT={alignment}"]
        self.succeed(*compiler, "-c", READ_BACK, "-o", "main.o")
        objects = ["main.o", output]
        if output.endswith(".S"):
            self.succeed(*compiler, "-c", output, "-o", "compiled.o")
            objects[1] = "compiled.o"
        self.succeed(*linker, *objects, "-o", "program")
        run = subprocess.run([*board.runner, self.folder / "program"], check=False, capture_output=True)
        self.assertEqual(run.returncode, 0)
        return run.stdout

    def test_programs_of_each_target_have_the_bytes(self) -> None:
        content = MODEL.read_bytes()
        for name, board in BOARDS.items():
            for alignment, part in ((16, content + b"odd"), (4096, b"x")):
                self.embed(part, board.target, alignment)
                for linker in (board.linker, ["ld.lld"])[: len(part)]:
                    for output in OUTPUTS:
                        with self.subTest(name, linker=linker[0], output=output, size=len(part)):
                            self.assertEqual(self.read_back(board, linker, output, alignment), part)

    def test_an_object_file_links_with_code_of_another_float_abi(self) -> None:
        content = MODEL.read_bytes()
        for board in BOARDS.values():
            if board.target not in OTHER_ABIS:
                continue
            options = OTHER_ABIS[board.target]
            self.embed(content, board.target, 16)
            with self.subTest(board.target):
                self.assertEqual(self.read_back(board, board.linker, "model.o", 16, *options), content)
                self.assertEqual(self.read_back(board, ["ld.lld"], "model.S", 16, *options), content)

    def test_readelf_has_nothing_to_say_and_sees_one_section_with_three_symbols(self) -> None:
        content = MODEL.read_bytes()
        for name, board in BOARDS.items():
            with self.subTest(name):
                self.embed(content, board.target, 64, "--section", "network_model_sec")
                read = self.succeed("readelf", "--all", "--wide", "model.o")
                self.assertIn(f"Machine:                           {board.machine}", read)
                self.assertRegex(read, r"\[ 1\] network_model_sec +PROGBITS +0+ \w+ \w+ 00 +A +0 +0 +64")
                symbols = re.findall(r"(\d+) OBJECT +GLOBAL +DEFAULT +1 (\S+)", read)
                word = 4 if "32" in re.search(r"Class: +(\S+)", read)[1] else 8
                self.assertEqual(
                    symbols, [(str(len(content)), "model"), ("0", "model_end"), (str(word), "model_size")]
                )

    def test_a_build_fails_once_the_file_has_another_size(self) -> None:
        content = MODEL.read_bytes()
        for name in ("Cortex-M4, soft float", "AArch64", "x86-64"):
            board = BOARDS[name]
            for changed in (content + b"x", content[:-1]):
                self.embed(content, board.target, 16)
                (self.folder / "model.bin").write_bytes(changed)
                with self.subTest(name, size=len(changed)):
                    self.assertNotEqual(self.run_in_folder(*board.compiler, "-c", "model.S").returncode, 0)

    def test_the_header_is_c_and_cpp_of_any_year(self) -> None:
        self.embed(MODEL.read_bytes(), "x86-64", 16)
        for compiler, suffix in (("gcc -std=c89", "c"), ("gcc -std=c11", "c"), ("g++ -std=c++98", "cpp"),
                                 ("g++ -std=c++20", "cpp")):
            source = self.folder / f"use.{suffix}"
            source.write_text('#include "model.h"\n#include "model.h"\nsize_t size(void) { return sizeof(model); }\n')
            self.succeed(*compiler.split(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", source)


if __name__ == "__main__":
    unittest.main()
