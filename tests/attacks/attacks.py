# SPDX-License-Identifier: BSD-3-Clause
"""Rebuilds the attacks that are published against ExecuTorch's files (six advisories of 2025 on offsets, lengths and
overflows, GHSA-84m3-f99p-cqx5, -9m39-3mf3-xwch, -f9hx-c6jf-3qxm, -h952-963h-rv99, -hj95-mhgf-jxc4 and -xc7w-r669-48pf,
and files on model hubs) from their descriptions, and shows what `etstream verify` and ExecuTorch make of each.

    ETSTREAM=build/release/bin/etstream build/peer/bin/python tests/attacks/attacks.py

prints a table. `verify` has to refuse each with at most MOST_SECONDS of processor time and MOST_MEMORY, and to accept
the sound files that they are made of, which ExecuTorch runs: programs as in tests/mutants/judge.py, other files by its
Python functions, each in a process of its own.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/mutants"), str(ROOT / "tests/peer")]
from fbs import Fbs  # noqa: E402

MOST_SECONDS = 0.05
MOST_MEMORY = 15 << 20  # besides mapped files, as prlimit has it
LARGE, HUGE = 2**31 - 1, 2**64 - 1

PROGRAM = Fbs.read(ROOT / "schema/program.fbs")
SCHEMAS = {".pte": PROGRAM, ".ptd": Fbs.read(ROOT / "schema/flat_tensor.fbs"),
           ".bpte": Fbs.read(ROOT / "schema/bundled_program.fbs")}  # fmt: skip
GRAPH = Fbs.read(ROOT / "schema/xnnpack_graph.fbs")
WIDTHS = {"byte": 1, "ubyte": 1, "long": 8, "ulong": 8}

# The attack, the file, the place, how it is packed, and the value. A place is a path of fields and elements: `*` is the
# first element that has the rest, `U:T` a union that holds a T, `#` the count of a vector, `@` a table's offset to its
# vtable, `@size` the vtable's size, `-F` the entry of field F in it, which 0 takes away. A number is a position, and a
# path after `graph:` is in the graph of an XNNPACK delegate.
PLAN = "execution_plan.0."
TENSOR = PLAN + "values.*.val:Tensor."
CALL = PLAN + "chains.0.instructions.*.instr_args:KernelCall."
DELEGATE = PLAN + "delegates.0."
QUANT = "graph:xvalues.*.xvalue_union:XNNQuantizedTensorValue.quant_params:PerChannelQuant."
SUITE = "method_test_suites.0.test_cases.0."
ATTACKS = [
    ("a root beyond the file", "portable.pte", "0", "I", LARGE),
    ("a table's offset beyond the file", "portable.pte", PLAN + "container_meta_type", "I", LARGE),
    ("a vtable before the file", "portable.pte", "@", "i", LARGE),
    ("a vtable behind the file", "portable.pte", PLAN + "@", "i", -LARGE),
    ("a vtable of an odd size", "portable.pte", PLAN + "@size", "H", 0xFFFF),
    ("a field outside of its table", "portable.pte", PLAN + "-values", "H", 0xFFF0),
    ("a vector longer than the file", "portable.pte", PLAN + "values.#", "I", 2**28),
    ("a string longer than the file", "portable.pte", PLAN + "operators.0.name.#", "I", LARGE),
    ("an extended header of a huge program", "portable.pte", "16", "Q", HUGE),
    ("segments that begin beyond the file", "xnnpack.pte", "24", "Q", 2**62),
    ("a segment beyond the file", "xnnpack.pte", "segments.*.offset", "Q", HUGE - 15),
    ("a segment whose end overflows", "xnnpack.pte", "segments.*.size", "Q", HUGE),
    ("a method without values", "portable.pte", PLAN + "-values", "H", 0),
    ("a method without operators", "portable.pte", PLAN + "-operators", "H", 0),
    ("a call of fewer arguments", "portable.pte", CALL + "args.#", "I", 1),
    ("an argument that is no value", "portable.pte", CALL + "args.0", "i", LARGE),
    ("an operator that is not there", "portable.pte", CALL + "op_index", "i", 9999),
    ("an input that is no value", "portable.pte", PLAN + "inputs.0", "i", LARGE),
    ("an output that is no value", "portable.pte", PLAN + "outputs.0", "i", -2),
    ("a list of values that are not there", "kinds.pte", PLAN + "values.*.val:IntList.items.0", "q", 2**40),
    ("a number of elements that overflows", "portable.pte", TENSOR + "sizes.0", "i", LARGE),
    ("a negative size", "portable.pte", TENSOR + "sizes.0", "i", -LARGE),
    ("a tensor without sizes", "portable.pte", TENSOR + "-sizes", "H", 0),
    ("a dim_order beyond the dimensions", "portable.pte", TENSOR + "dim_order.0", "B", 200),
    ("a dtype that is not there", "portable.pte", TENSOR + "scalar_type", "b", 120),
    ("a tensor beyond planned memory", "portable.pte", TENSOR + "allocation_info.memory_offset_low", "I", LARGE),
    ("a tensor in memory that is not planned", "portable.pte", TENSOR + "allocation_info.memory_id", "I", 77),
    ("planned memory that is too small", "portable.pte", PLAN + "non_const_buffer_sizes.1", "q", 1),
    ("a constant that is not there", "portable.pte", TENSOR + "data_buffer_idx", "I", 9999),
    ("a constant beyond its segment", "portable.pte", "constant_segment.offsets.1", "Q", 2**40),
    ("a delegate without an id", "xnnpack.pte", DELEGATE + "-id", "H", 0),
    ("a delegate without data", "xnnpack.pte", DELEGATE + "-processed", "H", 0),
    ("a delegate's data that is not there", "xnnpack.pte", DELEGATE + "processed.index", "I", 9999),
    ("a compile spec's key longer than the file", "specs.pte", DELEGATE + "compile_specs.0.key.#", "I", LARGE),
    ("compile specs without values", "specs.pte", DELEGATE + "compile_specs.0.-value", "H", 0),
    ("named data in a segment that is not there", "xnnpack.pte", "named_data.0.segment_index", "I", 0xFFFF),
    ("named data without a key", "xnnpack.pte", "named_data.0.-key", "H", 0),
    ("a graph of XNNPACK beyond its data", "xnnpack.pte", "graph:0", "I", LARGE),
    ("a node of a tensor that is not there", "xnnpack.pte",
     "graph:xnodes.*.xnode_union:XNNFullyConnected.input1_id", "I", 9999),
    ("scales of an empty list", "xnnpack_quantized.pte", QUANT + "-scale_buffer_idx", "H", 0),
    ("scales in a constant that is not there", "xnnpack_quantized.pte", QUANT + "scale_buffer_idx", "I", 9999),
    ("named data in a segment that is not there", "weights.ptd", "named_data.*.segment_index", "I", 9999),
    ("a layout larger than its segment", "weights.ptd", "named_data.0.tensor_layout.sizes.0", "i", 2**20),
    ("a layout whose elements overflow", "weights.ptd", "named_data.0.tensor_layout.sizes.0", "i", LARGE),
    ("a layout with another dim_order", "weights.ptd", "named_data.0.tensor_layout.dim_order.0", "B", 99),
    ("a segment whose end overflows", "weights.ptd", "segments.0.size", "Q", HUGE),
    ("a segment beyond the file", "weights.ptd", "segments.*.offset", "Q", 2**63),
    ("fewer inputs than the method has", "cases.bpte", SUITE + "inputs.#", "I", 1),
    ("a tensor larger than its data", "cases.bpte", SUITE + "inputs.*.val:Tensor.sizes.0", "i", 2**20),
    ("data longer than the file", "cases.bpte", SUITE + "inputs.*.val:Tensor.data.#", "I", LARGE),
    ("a program longer than the file", "cases.bpte", "program.#", "I", LARGE),
]  # fmt: skip


# XNNPACK's programs have no compile specs, which this gives one.
MAKE_SPECS = """
import sys
from pathlib import Path
from parts import Parts
parts = Parts.of(Path(sys.argv[1]).read_bytes())
parts.tree["execution_plan"][0]["delegates"][0]["compile_specs"] = [{"key": "k", "value": [1]}]
Path(sys.argv[2]).write_bytes(parts.assemble())
"""


class Flatbuffer:
    def __init__(self, content: bytes, schema: Fbs, base: int) -> None:
        self.content, self.schema, self.base = content, schema, base

    def read(self, kind: str, at: int) -> int:
        return int(struct.unpack_from("<" + kind, self.content, at)[0])

    def behind(self, at: int) -> int:
        return at + self.read("I", at)

    def places(self, path: str) -> Iterator[int]:
        return self._in_table(self.behind(self.base), self.schema.root, path.split("."))

    def _in_table(self, table: int, kind: str, steps: list[str]) -> Iterator[int]:
        vtable = table - self.read("i", table)
        if steps[0] in ("@", "@size"):
            yield table if steps[0] == "@" else vtable
            return
        name, _, member = steps[0].lstrip("-").partition(":")
        slot = 0
        for field in self.schema.tables[kind]:
            union = self.schema.unions.get(field.type, {})
            slot += bool(union)
            if field.name == name:
                break
            slot += 1
        entry = vtable + 4 + 2 * slot
        if entry >= vtable + self.read("H", vtable) or not self.read("H", entry):
            return
        if steps[0][0] == "-":
            yield entry
            return
        if union and self.read("B", table + self.read("H", entry - 2)) != 1 + [*union].index(member):
            return
        place = table + self.read("H", entry)
        held = union[member] if union else field.type
        if not steps[1:]:
            yield place
        elif steps[1] == "#":
            yield self.behind(place)
        elif not field.is_vector:
            yield from self._in_table(self.behind(place), held, steps[1:])
        else:
            vector = self.behind(place)
            count = self.read("I", vector)
            for index in range(count) if steps[1] == "*" else [int(steps[1])] if int(steps[1]) < count else []:
                element = vector + 4 + index * WIDTHS.get(held, 4)
                if steps[2:]:
                    yield from self._in_table(self.behind(element), held, steps[2:])
                else:
                    yield element


def attacked(content: bytes, suffix: str, path: str, kind: str, value: int) -> bytes:
    schema, base = SCHEMAS[suffix], 0
    if path.startswith("graph:"):
        header = content.index(b"XH00") - 4
        schema, path, base = GRAPH, path[6:], header + struct.unpack_from("<I", content, header + 10)[0]
    at = base + int(path) if path.isdigit() else next(Flatbuffer(content, schema, base).places(path))
    out = bytearray(content)
    struct.pack_into("<" + kind, out, at, value)
    return bytes(out)


def sound_files(etstream: str, folder: Path) -> dict[str, bytes]:
    names = ("portable", "kinds", "xnnpack", "xnnpack_quantized")
    programs = ROOT / "build/mutants"
    missing = [name for name in names if not (programs / f"{name}.inputs").exists()]
    if missing:
        subprocess.run([sys.executable, str(ROOT / "tests/mutants/programs.py"), str(programs), *missing], check=True)
    made = {f"{name}.pte": (programs / f"{name}.pte").read_bytes() for name in names}
    thin, weights = folder / "thin.pte", folder / "weights.ptd"
    move = [etstream, "pte", str(programs / "portable.pte"), "--constants-to", str(weights), "-o", str(thin)]
    subprocess.run(move, check=True, stdout=subprocess.DEVNULL)
    specs = folder / "specs.pte"
    make = [sys.executable, "-c", MAKE_SPECS, str(programs / "xnnpack.pte"), str(specs)]
    subprocess.run(make, check=True, cwd=ROOT / "tests/mutants", stderr=subprocess.DEVNULL)
    golden = ROOT / "tests/golden/sorted_suites_of_a_real_program/expected.bpte"
    made |= {"specs.pte": specs.read_bytes(), "weights.ptd": weights.read_bytes(), "cases.bpte": golden.read_bytes()}
    return made


def verified(etstream: str, file: Path) -> tuple[int, str, float]:
    """Returns the exit code of `verify` in MOST_MEMORY, its first error, and its least seconds of three runs."""
    seconds, code, said = [], 0, ""
    for _ in range(3):
        with tempfile.TemporaryFile() as words:
            command = ["prlimit", f"--data={MOST_MEMORY}", etstream, "verify", str(file)]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=words)
            _, status, used = os.wait4(child.pid, 0)
            code = child.returncode = os.waitstatus_to_exitcode(status)
            words.seek(0)
            said = words.readline().decode().strip()
        seconds.append(used.ru_utime + used.ru_stime)
    return code, said.partition(": ")[2].partition(": ")[2], min(seconds)


def ends_in_executorch(files: list[Path], thin: bytes) -> list[str]:
    import torch
    from executorch_bundle import LoadedProgram, RunnableBundle
    from judge import Judge

    inputs = torch.load(ROOT / "build/mutants/portable.inputs", weights_only=True)["forward"]

    def with_weights(file: Path) -> None:
        LoadedProgram(thin, file.read_bytes()).run("forward", inputs)

    def on_cases(file: Path) -> None:
        bundle = RunnableBundle(file.read_bytes())
        for method in bundle.methods():
            bundle.verify(method, 0, rtol=1e-3, atol=1e-3)

    programs = [file for file in files if file.suffix == ".pte"]
    judged = dict(zip(programs, Judge().run(programs, 1), strict=True))
    return [
        judged[file][0] if file in judged else by_python(with_weights if file.suffix == ".ptd" else on_cases, file)
        for file in files
    ]


def by_python(run: Callable[[Path], None], file: Path) -> str:
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            run(file)
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        import signal

        return signal.Signals(os.WTERMSIG(status)).name
    return "refused" if os.WEXITSTATUS(status) else "ran"


def main() -> int:
    etstream, wrong = os.environ["ETSTREAM"], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sound = sound_files(etstream, folder)
        files, rows = [], []
        for name, content in sound.items():
            (folder / name).write_bytes(content)
            if verified(etstream, folder / name)[0] != 0:
                wrong.append(f"{name}, which is sound, is refused")
        for number, (what, name, path, kind, value) in enumerate(ATTACKS):
            file = folder / f"{number}{Path(name).suffix}"
            file.write_bytes(attacked(sound[name], file.suffix, path, kind, value))
            code, said, seconds = verified(etstream, file)
            if code != 1 or seconds > MOST_SECONDS or "out of memory" in said:
                wrong.append(f"{what} ({name}): exit {code}, {seconds:.3f} s: {said}")
            files.append(file)
            rows.append((what, name, f"{1000 * seconds:.0f} ms", said))
        ends = ends_in_executorch([*(folder / name for name in sound), *files], (folder / "thin.pte").read_bytes())
    wrong += [f"ExecuTorch does not run {name}" for name, end in zip(sound, ends, strict=False) if end != "ran"]
    ends = ends[len(sound) :]
    for (*row, said), end in zip(rows, ends, strict=True):
        print("{:45} {:22} {:>6}  {:14} {}".format(*row, end, said[:90]))
    counts = Counter("ended by a signal" if end.startswith("SIG") else end.split()[0] for end in ends)
    print(f"{len(ends)} attacks; ExecuTorch: {dict(counts)}; verify: {len(wrong)} wrong")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
