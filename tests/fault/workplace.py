# SPDX-License-Identifier: BSD-3-Clause
"""Makes a folder with a command's inputs and, apart from them, the folder that it writes into."""

import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
MIB = 1 << 20

# The other files in the destination folder, which have to stay as they are; some look almost like ours.
NEIGHBOURS = ["neighbour", ".result.etstream-0123.tmp", ".other.etstream-0123456789abcdef.tmp"]


def etstream() -> str:
    """Returns the path of the command under test."""
    return os.environ["ETSTREAM"]


def make_model(path: Path, size: int) -> None:
    """Writes the example's program, with its only segment so large that the file has `size` bytes."""
    model = bytearray((EXAMPLES / "model.pte").read_bytes())
    # The extended header has, after the identifier, its length, the program's size, and the segments' offset and size.
    base, old = struct.unpack_from("<QQ", model, 24)
    metadata_end = struct.unpack_from("<Q", model, 16)[0]
    new = size - base
    place = model.find(struct.pack("<Q", old), 40, metadata_end)
    assert place > 0, "the example's program has one segment"
    struct.pack_into("<Q", model, place, new)
    struct.pack_into("<Q", model, 32, new)
    model += random.Random(size).randbytes(size - len(model))
    path.write_bytes(model)


def make_test_cases(folder: Path, size: int) -> None:
    """Writes one test case of two tensors, one of `size` bytes and one of a few."""
    (folder / "large.bin").write_bytes(random.Random(1).randbytes(size))
    (folder / "small.bin").write_bytes(b"\1\2\3\4")
    tensors = [
        {"raw": "large.bin", "dtype": "uint8", "shape": [size]},
        {"raw": "small.bin", "dtype": "float32", "shape": [1]},
    ]
    cases = {"forward": [{"inputs": tensors[:1], "expected_outputs": tensors[1:]}]}
    (folder / "test_cases.json").write_text(json.dumps(cases))


def make_checkpoint(path: Path, size: int) -> None:
    """Writes a safetensors file of two tensors."""
    header = {
        name: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for name, begin, end in (("large", 0, size - 5), ("small", size - 5, size))
    }
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + random.Random(2).randbytes(size))


def fast_folder() -> str | None:
    """Returns a folder where files take no disk, so that thousands of runs with their fsyncs are quick."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 256 * MIB
    return str(memory) if usable else None


class Workplace:
    """A folder with two folders. in/ has model.pte, aligned.pte with the same constants, cases.json, test_cases.json,
    bundle.bpte, large_cases.bpte, segmented.bpte, model.pte.etz, weights.safetensors and program.ptg; out/ has
    NEIGHBOURS and `result`.

    segmented.bpte has the content of large_cases.bpte. Commands run in the folder above both. To be used in a `with`.
    """

    def __init__(self, model_size: int = 5 * MIB // 2, place: str | None = None) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="etstream-fault-", dir=place or fast_folder()))
        self.inputs = self.top / "in"
        self.out = self.top / "out"
        self.result = self.out / "result"
        self.inputs.mkdir()
        for example in EXAMPLES.iterdir():
            if example.suffix in (".npy", ".json"):
                shutil.copy(example, self.inputs)
        make_model(self.inputs / "model.pte", model_size)
        make_test_cases(self.inputs, 3 * MIB // 2)
        make_checkpoint(self.inputs / "weights.safetensors", 5 * MIB // 2)
        self._run("pte", "in/model.pte", "--segment-alignment", "4096", "-o", "in/aligned.pte")
        shutil.copy(ROOT / "tests" / "golden" / "native_package" / "empty.ptg", self.inputs / "program.ptg")
        self._bundle("cases.json", "bundle.bpte")
        self._bundle("test_cases.json", "large_cases.bpte", "--unchecked")
        self._run("convert", "in/large_cases.bpte", "--to", "segmented", "-o", "in/segmented.bpte")
        self._run("pack", "in/model.pte")
        self.renew()
        self._inputs_before = self._describe_inputs()

    def __enter__(self) -> "Workplace":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.top, ignore_errors=True)

    def _bundle(self, cases: str, output: str, *options: str) -> None:
        self._run("bundle", "in/model.pte", "--cases", f"in/{cases}", "-o", f"in/{output}", *options)

    def _run(self, *arguments: str) -> None:
        subprocess.run([etstream(), *arguments], cwd=self.top, check=True, stdout=subprocess.DEVNULL)

    def renew(self) -> None:
        """Makes out/ as it is before a run, without a result."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        for name in NEIGHBOURS:
            (self.out / name).write_text(name)
            os.utime(self.out / name, ns=(1, 1))

    def _describe_inputs(self) -> list[tuple]:
        return [(path.name, *stamp(path)) for path in sorted(self.inputs.iterdir())]

    def forget_inputs(self) -> None:
        """Accepts the inputs as they are; to be called after the test itself has touched them, by a hard link."""
        self._inputs_before = self._describe_inputs()

    def touched(self) -> list[str]:
        """Returns a sentence for each thing that a run has done to the inputs and the neighbours."""
        complaints = []
        if self._describe_inputs() != self._inputs_before:
            complaints.append("an input was touched")
        for name in NEIGHBOURS:
            path = self.out / name
            if not path.is_file() or path.read_text() != name or path.stat().st_mtime_ns != 1:
                complaints.append(f"{name}, which is none of its business, was touched")
        return complaints

    def others(self) -> list[str]:
        """Returns the names in out/ that are neither neighbours nor the result."""
        return sorted(set(os.listdir(self.out)) - set(NEIGHBOURS) - {self.result.name})


def stamp(path: Path) -> tuple:
    """Returns values that change when a file is written or replaced."""
    status = path.stat()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def content(path: Path) -> bytes | dict | None:
    """Returns the bytes of a file, or of each file of a folder by name, or None if there is nothing."""
    if path.is_dir():
        return {entry.name: content(entry) for entry in path.iterdir()}
    return path.read_bytes() if path.exists() else None
