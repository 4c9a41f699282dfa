# SPDX-License-Identifier: BSD-3-Clause
"""Shows that torch.load reads what etstream writes, that etstream reads what torch.save writes, and that it never
executes a pickle."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import random
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from command import Etstream
from executorch.examples.models.llama.llama_transformer import construct_transformer
from executorch.examples.models.llama.model_args import ModelArgs
from rounds import ROUNDS
from safetensors.torch import load_file, save_file
from torchao.quantization import Int8WeightOnlyConfig, quantize_
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn,
    torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu,
]  # fmt: skip


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    def alike(a: torch.Tensor, b: torch.Tensor) -> bool:
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits_of(a), bits_of(b))

    return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)


def random_tensors() -> dict[str, torch.Tensor]:
    """Returns a tensor of each type, and of each number of dimensions."""
    generator = torch.Generator().manual_seed(7)
    tensors = {}
    for i, dtype in enumerate(DTYPES):
        shape = [(), (0, 3), (5,), (2, 3), (2, 1, 4), (1, 2, 3, 2)][i % 6]
        size = max(torch.Size(shape).numel(), 0) * dtype.itemsize
        high = 2 if dtype is torch.bool else 256
        data = torch.randint(0, high, (size,), dtype=torch.uint8, generator=generator)
        tensors[f"layer.{i}.größe"] = data.view(dtype).reshape(shape)
    return tensors


def pickle_in(file: Path | io.BytesIO) -> bytes:
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        return archive.read(name)


@pytest.mark.parametrize("mmap", [True, False])
def test_torch_loads_tensors_of_all_types(etstream: Etstream, tmp_path: Path, mmap: bool) -> None:
    save_file(random_tensors(), tmp_path / "in.safetensors")
    etstream.ptd([tmp_path / "in.safetensors"], tmp_path / "out.pth", "--to", "pth")
    loaded = torch.load(tmp_path / "out.pth", weights_only=True, mmap=mmap)
    tensors = random_tensors()
    assert same({name: loaded[name] for name in tensors}, tensors)
    with zipfile.ZipFile(tmp_path / "out.pth") as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize("count", [0, 1, 2, 40, 999, 1000, 1001, 2000])
def test_the_pickle_is_the_one_that_torch_writes(etstream: Etstream, tmp_path: Path, count: int) -> None:
    shapes = [(), (1,), (0, 300), (2, 1, 0, 70000), (0, 2**31 - 1), (0, 2**31), (0, 2**39), (0, 2**62)]
    tensors = {f"layers.{i}.weight": torch.full(shapes[i % 8], i).float() for i in range(count)}
    save_file(tensors, tmp_path / "in.safetensors")
    etstream.ptd([tmp_path / "in.safetensors"], tmp_path / "out.pth", "--to", "pth")
    loaded = torch.load(tmp_path / "out.pth", weights_only=True)
    assert len(loaded) == count
    again = io.BytesIO()
    torch.save(loaded, again)
    assert pickle_in(again) == pickle_in(tmp_path / "out.pth")


def test_tensors_that_share_bytes_share_a_storage(etstream: Etstream, tmp_path: Path) -> None:
    tensor = torch.arange(1 << 16, dtype=torch.float32).reshape(256, 256)
    save_file({"model.embed_tokens.weight": tensor}, tmp_path / "in.safetensors")
    out = tmp_path / "out.pth"
    etstream.ptd([tmp_path / "in.safetensors"], out, "--map", "smollm3", "--to", "pth")
    loaded = torch.load(out, weights_only=True)
    assert sorted(loaded) == ["output.weight", "tok_embeddings.weight"]
    assert len({one.untyped_storage().data_ptr() for one in loaded.values()}) == 1
    assert all(torch.equal(one, tensor) for one in loaded.values())
    assert out.stat().st_size < 1.1 * tensor.nbytes


def read_back(etstream: Etstream, file: Path, *options: str) -> dict[str, torch.Tensor]:
    """Returns the tensors that etstream reads in a file, by way of a file that it writes."""
    etstream.ptd([file], file.with_suffix(".out"), *options, "--to", "pth")
    return torch.load(file.with_suffix(".out"), weights_only=True)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_all_types_are_read_from_what_torch_writes(etstream: Etstream, tmp_path: Path, protocol: int) -> None:
    torch.save(random_tensors(), tmp_path / "in.pth", pickle_protocol=protocol)
    assert same(read_back(etstream, tmp_path / "in.pth"), random_tensors())
    assert etstream.verify(tmp_path / "in.pth").errors == []


def test_strided_and_shared_tensors_are_read_from_where_they_lie(etstream: Etstream, tmp_path: Path) -> None:
    base = torch.arange(120.0).reshape(2, 3, 4, 5)
    tensors = {
        "base": base, "again": base, "transposed": base.transpose(0, 3), "row": base[1, 2], "step": base[:, ::2, 1:],
        "channels_last": base.contiguous(memory_format=torch.channels_last), "expanded": base[0, 0, 0].expand(3, 5),
        "parameter": torch.nn.Parameter(base[0]), "buffer": torch.nn.Buffer(base[1]), "scalar": base[1, 1, 1, 1],
        "empty": base[:0],
    }  # fmt: skip
    torch.save(tensors, tmp_path / "in.pth")
    assert same(read_back(etstream, tmp_path / "in.pth"), {name: one.detach() for name, one in tensors.items()})


def test_names_in_nested_containers_are_joined(etstream: Etstream, tmp_path: Path) -> None:
    linear = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(linear.parameters())
    linear(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    checkpoint = {"model": linear.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": 0.5}
    torch.save(checkpoint | {"list": [torch.ones(1), (torch.zeros(2),)]}, tmp_path / "in.bin")
    state = [f"optimizer.state.{i}.{name}" for i in (0, 1) for name in ("step", "exp_avg", "exp_avg_sq")]
    expected = ["model.weight", "model.bias", *state, "list.0", "list.1.0"]
    read = read_back(etstream, tmp_path / "in.bin")
    assert list(read) == expected
    assert torch.equal(read["model.weight"], linear.weight)
    torch.save(linear.weight, tmp_path / "one.pt")
    assert list(read_back(etstream, tmp_path / "one.pt")) == ["tensor"]


def test_an_index_of_torch_files_is_one_checkpoint(etstream: Etstream, tmp_path: Path) -> None:
    tensors = random_tensors()
    names = list(tensors)
    shards = {"a.bin": names[:5], "b.bin": names[5:]}
    for shard, there in shards.items():
        torch.save({name: tensors[name] for name in there}, tmp_path / shard)
    index = {"metadata": {}, "weight_map": {name: shard for shard, there in shards.items() for name in there}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    etstream.ptd([tmp_path], tmp_path / "out.pth", "--to", "pth")
    assert same(torch.load(tmp_path / "out.pth", weights_only=True), tensors)
    assert "is file 1 of 2 of a set" in etstream.attempt("verify", tmp_path / "a.bin").stderr


def test_data_that_torch_skipped_is_read_as_zeros_and_told(etstream: Etstream, tmp_path: Path) -> None:
    path = tmp_path / "skipped.pt"
    with torch.serialization.skip_data():
        torch.save({"w": torch.ones(1000), "none": torch.ones(0)}, path)
    for mmap in (False, True):
        assert same(torch.load(path, mmap=mmap), read_back(etstream, path))
    found = etstream.verify(path)
    assert found.errors == []
    assert "1 member without a checksum, which would tell damage, such as 'skipped/data/0'" in found.warnings[0]
    assert "1 of them holds only zeros" in found.warnings[0]


class Exported(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.register_buffer("shift", torch.ones(4, dtype=torch.bfloat16))
        self.constant = torch.arange(5.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.constant[:2] + self.shift[0]


def test_an_exported_program_has_weights_and_constants(etstream: Etstream, tmp_path: Path) -> None:
    exported = torch.export.export(Exported(), (torch.ones(1, 3),))
    torch.export.save(exported, tmp_path / "in.pt2")
    read = read_back(etstream, tmp_path / "in.pt2")
    expected = exported.state_dict | exported.constants
    assert sorted(read) == sorted(expected)
    assert all(torch.equal(read[name], expected[name]) for name in read)


class Subclass(torch.Tensor):
    """A tensor of a class that etstream does not know."""


def torchao_weight() -> torch.Tensor:
    linear = torch.nn.Linear(64, 64)
    quantize_(linear, Int8WeightOnlyConfig())
    return linear.weight


OPAQUE = {
    "torchao.quantization.Int8Tensor": torchao_weight,
    "test_torch_files.Subclass": lambda: torch.ones(2).as_subclass(Subclass),
    "torch._utils._rebuild_sparse_tensor": lambda: torch.eye(2).to_sparse(),
    "torch._utils._rebuild_qtensor": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "torch._utils._rebuild_meta_tensor_no_storage": lambda: torch.empty(2, device="meta"),
    "torch.Tensor.conj() or .neg()": lambda: torch.tensor([1 + 2j]).conj(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", list(OPAQUE))
def test_a_tensor_of_a_kind_that_is_not_read_is_opaque(etstream: Etstream, tmp_path: Path, kind: str) -> None:
    plain = {"first": torch.ones(3), "last": torch.zeros(2)}
    path = tmp_path / "in.bin"
    torch.save({"first": plain["first"], "odd": OPAQUE[kind](), "last": plain["last"]}, path)
    assert etstream.verify(path).errors == []
    assert same(read_back(etstream, path, "--only", "first", "--only", "last"), plain)
    outcome = etstream.attempt("ptd", path, "-o", tmp_path / "out.ptd")
    assert outcome.code == 1 and f"tensor 'odd' is of type {kind}, which ExecuTorch has no tensors of" in outcome.stderr
    etstream.ptd([path], tmp_path / "out.ptd", "--opaque")
    torch.save({"odd": OPAQUE[kind](), "other": torch.nn.Linear(1, 1)}, path)
    assert "'torch.nn.modules.linear.Linear'" in etstream.attempt("verify", path).stderr


def archive(pickle: bytes, **members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, data in {"data.pkl": pickle, "version": b"3\n", **members}.items():
            file.writestr(f"archive/{name}", data)
    return out.getvalue()


def words(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def of(opcode: bytes, *items: bytes) -> bytes:
    """Returns items behind a mark, and the instruction that takes them."""
    return b"(" + b"".join(items) + opcode


def called(function: str, *arguments: bytes) -> bytes:
    module, _, name = function.rpartition(".")
    return f"c{module}\n{name}\n".encode() + of(b"t", *arguments) + b"R"


def named(**items: bytes) -> bytes:
    return b"}" + of(b"u", *(words(name) + item for name, item in items.items()))


def stored(key: str, kind: str = "FloatStorage", elements: int = 4) -> bytes:
    return of(b"t", words("storage"), f"ctorch\n{kind}\n".encode(), words(key), words("cpu"), b"K%c" % elements) + b"Q"


HOOKS = called("collections.OrderedDict")
SIZES = b"K\4\x85"


def parts_of(storage: bytes, sizes: bytes = SIZES) -> bytes:
    return of(b"t", storage, b"K\0", sizes, b"K\1\x85", b"\x89", HOOKS)


def pickled(storage: bytes, sizes: bytes = SIZES) -> bytes:
    return b"ctorch._utils\n_rebuild_tensor_v2\n" + parts_of(storage, sizes) + b"R"


def of_type(state: bytes) -> bytes:
    classes = b"ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n"
    return called("torch._tensor._rebuild_from_type_v2", classes, parts_of(stored("0")), state)


A, B, ZERO = pickled(stored("0")), pickled(stored("1")), b"K\0"
SET = of(b"t", stored("1"), ZERO, SIZES, b"K\1\x85")
SEVERAL_READINGS = {
    "BUILD sets a tensor": A + SET + b"b",
    "BUILD sets a parameter": called("torch._utils._rebuild_parameter", A, b"\x88", HOOKS)
    + of(b"t", B, b"N", HOOKS, b"\x89", HOOKS) + b"b",
    "BUILD sets a storage": pickled(stored("0") + named(dtype=b"ctorch\nint32\n") + b"b"),
    "an attribute is the content": of_type(named(data=B)),
    "an attribute of slots is the content": of_type(of(b"t", b"N", named(data=B))),
    "an attribute is the real part": of_type(named(real=b"K\7")),
    "an attribute of a parameter": called("torch._utils._rebuild_parameter_with_state", A, b"\x89", HOOKS, named(data=B)),
    "a storage of two types": of(b"l", A, pickled(stored("0", "IntStorage"))),
    "a storage of two types and sizes": of(b"l", A, pickled(stored("0", "HalfStorage"), b"K\2\x85")),
    "a storage of two sizes": of(b"l", pickled(stored("0", "FloatStorage", 1), b"K\1\x85"), A),
    "a value replaces a tensor": b"}" + of(b"u", words("a"), A, words("a"), ZERO),
    "a dict replaces a dict": b"}" + of(b"u", words("a"), named(x=A), words("a"), named(y=B)),
    "True is 1": b"}" + of(b"u", b"K\1", A, b"\x88", ZERO),
    "1.0 is 1": b"}" + of(b"u", b"K\1", A, b"G" + struct.pack(">d", 1), ZERO),
    "a Counter counts pairs": called("collections.Counter", of(b"t", of(b"t", words("a"), A))),
    "a list of sizes grows later": b"]K\2aq\7ctorch\nSize\nh\7\x85Rq\x080h\7K\2a0"
    + called("torch._utils._rebuild_tensor_v2", stored("0"), ZERO, b"h\x08", b"K\1\x85", b"\x89", HOOKS),
    "attributes": of_type(named(foo=B, requires_grad=b"\x89")),
    "empty tensors of two types": of(b"l", *(pickled(stored("2", kind, 0), b"K\0\x85") for kind in ("FloatStorage", "IntStorage"))),
}  # fmt: skip


class Values:
    """Makes random pickles of which a part is what torch.save writes, and a part is not."""

    def __init__(self, seed: int) -> None:
        self.random, self.kept = random.Random(seed), 0

    def storage(self) -> bytes:
        elements = 4 if self.random.random() < 0.95 else 2
        kind = self.random.choice(["FloatStorage"] * 30 + ["IntStorage", "HalfStorage"])
        return stored(self.random.choice("01"), kind, elements)

    def tensor(self) -> bytes:
        sizes = self.random.choice([SIZES, SIZES, b"K\2\x85", called("torch.Size", b"]" + of(b"e", b"K\3"))])
        return pickled(self.storage(), sizes)

    def items(self, depth: int) -> list[bytes]:
        keys = [words("a"), words("b"), words("data"), words("1"), b"K\1", b"K\2", b"\x88", b"G" + struct.pack(">d", 2)]
        weights = [40, 40, 2, 5, 40, 40, 1, 1]
        chosen = self.random.choices(keys, weights, k=self.random.randrange(4))
        return [key + self.value(depth + 1) for key in (dict.fromkeys(chosen) if self.random.random() < 0.8 else chosen)]

    def state(self) -> bytes:
        name = self.random.choice(["foo"] * 6 + ["data", "real", "grad"])
        state = named(**{name: self.random.choice([self.tensor(), b"K\7", b"N"])})
        return self.random.choice([state, state, b"}", of(b"t", b"N", state), SET])

    def value(self, depth: int = 0) -> bytes:
        if depth > 3 or (depth and self.random.random() < 0.3):
            return self.random.choice([self.tensor(), self.tensor(), b"N", b"K\7", words("x")])
        kinds = {
            "dict": lambda: b"}" + of(b"u", *self.items(depth)),
            "ordered": lambda: called("collections.OrderedDict")
            + b"".join(item + b"s" for item in self.items(depth)) + self.random.choice([b"", self.state() + b"b"]),
            "pairs": lambda: called(
                self.random.choice(["collections.OrderedDict"] * 9 + ["collections.Counter"]),
                b"]" + of(b"e", *(item + b"\x86" for item in self.items(depth)))),
            "list": lambda: b"]" + of(b"e", *(self.value(depth + 1) for _ in range(self.random.randrange(3)))),
            "tuple": lambda: of(b"t", *(self.value(depth + 1) for _ in range(self.random.randrange(3)))),
            "of type": lambda: of_type(self.state()),
            "parameter": lambda: called("torch._utils._rebuild_parameter_with_state", self.tensor(), b"\x89", HOOKS, self.state()),
            "built": lambda: self.value(depth + 1) + self.state() + b"b",
            "kept": lambda: b"h%c" % self.random.randrange(self.kept) if self.kept else self.tensor(),
        }  # fmt: skip
        weights = [6, 4, 2, 4, 2, 2, 2, 0.5, 3] if depth else [6, 6, 2, 3, 1, 0, 0, 0, 0]
        out = self.random.choices(list(kinds.values()), weights)[0]()
        if self.random.random() < 0.3 and self.kept < 250:
            out += b"q%c" % self.kept
            self.kept += 1
        return out


def tensors_in(value: object, name: str = "") -> dict[str, torch.Tensor]:
    """Returns the tensors in what torch.load gives, by the names that etstream gives them."""
    if isinstance(value, torch.Tensor):
        return {name or "tensor": value.detach()}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else []
    found: dict[str, torch.Tensor] = {}
    for key, item in items:
        text = str(int(key) if isinstance(key, bool) else key)
        found |= tensors_in(item, f"{name}.{text}" if name else text)
    return found


def archive_of(pickle: bytes) -> bytes:
    data = {f"data/{key}": struct.pack("<4f", *range(10 * key + 1, 10 * key + 5)) for key in (0, 1)}
    return archive(b"\x80\x02" + pickle + b".", **data, **{"data/2": b"", "byteorder": b"little"})


def read_alike_or_refused(etstream: Etstream, path: Path, file: bytes) -> bool:
    """Returns whether etstream reads an archive, which is as torch.load does if that reads it too."""
    path.write_bytes(file)
    outcome = etstream.attempt("ptd", path, "--to", "pth", "-o", path.with_suffix(".out"), "--no-sync")
    if outcome.code == 0:
        try:
            expected = tensors_in(torch.load(path, weights_only=True))
        except Exception:  # of many kinds
            return True
        ours = torch.load(path.with_suffix(".out"), weights_only=True)
        assert same(dict(sorted(ours.items())), dict(sorted(expected.items()))), file
    return outcome.code == 0


def damaged(seed: random.Random, file: bytes) -> bytes:
    """Returns bytes of which one or two are others, missing or new."""
    out = bytearray(file)
    for _ in range(seed.randrange(1, 3)):
        at = seed.randrange(len(out))
        out[at : at + seed.randrange(2)] = seed.choice([b"", b"\0", b"\xff", seed.randbytes(1), seed.randbytes(1)])
    return bytes(out)


@pytest.mark.parametrize("name", list(SEVERAL_READINGS))
@pytest.mark.filterwarnings("ignore")
def test_what_torch_reads_is_read_alike_or_refused(etstream: Etstream, tmp_path: Path, name: str) -> None:
    read = read_alike_or_refused(etstream, tmp_path / "in.pth", archive_of(SEVERAL_READINGS[name]))
    assert read == name.startswith(("attributes", "empty", "a list of sizes"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(ROUNDS))
def test_random_files_are_read_alike_or_refused(etstream: Etstream, tmp_path: Path, number: int) -> None:
    count = 200
    pickles = [Values(number * count + i).value() for i in range(count)]
    assert count / 4 < sum(read_alike_or_refused(etstream, tmp_path / "in.pth", archive_of(each)) for each in pickles)
    seed = random.Random(number)
    for each in pickles:
        file = archive_of(damaged(seed, each)) if seed.random() < 0.7 else damaged(seed, archive_of(each))
        read_alike_or_refused(etstream, tmp_path / "in.pth", file)


class Runs:
    """An object that would run a command if it were executed."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch executed",)


MANY = 200_000
HOSTILE = {
    "a command": pickle.dumps(Runs(), 2),
    "a command of protocol 4": pickle.dumps(Runs(), 4),
    "a command of protocol 0": pickle.dumps(Runs(), 0),
    "an instance": b"(S'touch executed'\nios\nsystem\n.",
    "deep lists": b"\x80\x02" + b"](" * MANY + b"e" * MANY + b".",
    "deep dicts": b"\x80\x02" + b"}U\x01a" * MANY + b"s" * (MANY - 1) + b".",
    "a list in itself": b"\x80\x02]q\x00h\x00a.",
    "doubled lists": b"\x80\x02]q\x00" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(100)) + b".",
    "a long tuple again and again": b"\x80\x02(" + b"K\x01" * MANY + b"tq\x00" + b"ccollections\nOrderedDict\nq\x01"
    + b"h\x01h\x00R0" * MANY + b".",
    "dicts that are copied": b"\x80\x02ccollections\nOrderedDict\nq\x01](" + b"K\x01K\x02\x86" * MANY + b"e\x85q\x00"
    + b"h\x01h\x00R0" * MANY + b"N.",
    "long names": b"\x80\x02}(X\x40\x42\x0f\x00" + b"n" * 1_000_000 + b"q\x00}" + b"h\x00}" * MANY + b"u.",
    "a huge count": b"\x80\x02\x8d" + b"\xff" * 8 + b"x.",
    "a memo whose numbers had one hash": b"\x80\x02}" + b"".join(b"p%d\n" % (172_933 * i) for i in range(MANY)) + b"x.",
    "a huge memo": b"\x80\x02}r\xff\xff\xff\xffj\xff\xff\xff\xfe.",
    "no end": b"\x80\x02}q\x00(",
    "nothing on the stack": b"\x80\x02.",
    "no mark": b"\x80\x02u.",
}  # fmt: skip


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_pickles_are_refused(etstream: Etstream, tmp_path: Path, name: str) -> None:
    (tmp_path / "in.pth").write_bytes(archive(HOSTILE[name]))
    command = ["prlimit", "--as=268435456", "--cpu=10", etstream.binary, "ptd", "in.pth", "--to", "pth", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert re.search(r"in\.pth: (offset \d+: pickle: )?\w", done.stderr), done.stderr
    assert os.listdir(tmp_path) == ["in.pth"]
    if "command" in name:
        assert "'posix.system', and etstream knows tensors and containers only" in done.stderr


def test_every_beginning_of_a_file_is_refused(etstream: Etstream, tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2), "b": {"c": torch.ones(3)[::2]}}, tmp_path / "in.pth")
    whole = pickle_in(tmp_path / "in.pth")
    members = {"data/0": bytes(8), "data/1": bytes(12)}
    for size in range(0, len(whole), 7):
        (tmp_path / "cut.pth").write_bytes(archive(whole[:size], **members))
        assert etstream.attempt("verify", tmp_path / "cut.pth").code == 1
    (tmp_path / "cut.pth").write_bytes(archive(whole, **members))
    assert etstream.verify(tmp_path / "cut.pth").errors == []
    for wrong in ({"data/0": bytes(7), "data/1": bytes(12)}, {"data/0": bytes(8)}, members | {"byteorder": b"big"}):
        (tmp_path / "cut.pth").write_bytes(archive(whole, **wrong))
        assert etstream.attempt("verify", tmp_path / "cut.pth").code == 1


def test_what_is_no_archive_of_tensors_says_how_to_save_it_again(etstream: Etstream, tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(1, 1), tmp_path / "module.pth")
    torch.save({"a": torch.ones(1)}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    torch.save({"a": torch.ones(1)}, tmp_path / "plain.pth")
    with zipfile.ZipFile(tmp_path / "plain.pth") as plain:
        with zipfile.ZipFile(tmp_path / "small.pth", "w", zipfile.ZIP_DEFLATED) as small:
            for name in plain.namelist():
                small.writestr(name, plain.read(name))
    told = {name: etstream.attempt("verify", tmp_path / f"{name}.pth").stderr for name in ("module", "old", "small")}
    assert "'torch.nn.modules.linear.Linear'" in told["module"] and "state_dict()" in told["module"]
    assert "torch before 1.6" in told["old"] and "save it again" in told["old"]
    assert "compressed by method 8; load it in torch and save it again" in told["small"]


LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "rope_theta": 500000.0, "tie_word_embeddings": True,
    "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                     "original_max_position_embeddings": 8192},
}  # fmt: skip


def llama_folder(folder: Path, **config: object) -> dict[str, torch.Tensor]:
    """Writes a tiny checkpoint as Hugging Face has it, with tied embeddings."""
    folder.mkdir()
    sizes = {"q_proj": (64, 64), "k_proj": (32, 64), "v_proj": (32, 64), "o_proj": (64, 64)}
    layer = {f"self_attn.{name}": size for name, size in sizes.items()}
    layer |= {"mlp.gate_proj": (128, 64), "mlp.up_proj": (128, 64), "mlp.down_proj": (64, 128)}
    layer |= {"input_layernorm": (64,), "post_attention_layernorm": (64,)}
    shapes = {f"model.layers.{i}.{name}.weight": size for i in range(2) for name, size in layer.items()}
    shapes |= {"model.embed_tokens.weight": (96, 64), "model.norm.weight": (64,)}
    generator = torch.Generator().manual_seed(3)
    tensors = {name: torch.randn(size, generator=generator) * 0.05 for name, size in shapes.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(LLAMA | config))
    return tensors


def test_export_llama_reads_a_hugging_face_folder(etstream: Etstream, tmp_path: Path) -> None:
    tensors = llama_folder(tmp_path / "llama")
    etstream.ptd([tmp_path / "llama"], tmp_path / "consolidated.00.pth", "--map", "llama", "--to", "pth")
    parameters = json.loads((tmp_path / "params.json").read_text())
    assert parameters == {
        "dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 96, "hidden_dim": 128,
        "norm_eps": 1e-5, "rope_theta": 500000.0, "use_scaled_rope": True, "rope_scale_factor": 32,
        "high_freq_factor": 4,
    }  # fmt: skip
    loaded = torch.load(tmp_path / "consolidated.00.pth", weights_only=True, mmap=True)
    assert torch.equal(loaded["output.weight"], tensors["model.embed_tokens.weight"])
    files = ["-c", "consolidated.00.pth", "-p", "params.json"]
    command = [sys.executable, "-m", "executorch.examples.models.llama.export_llama", *files, "--model", "llama3_2"]
    done = subprocess.run([*command, "-d", "fp32", "-kv", "-n", "out.pte"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "out.pte").stat().st_size > sum(tensor.nbytes for tensor in tensors.values())


MODELS = {
    "llama": ("llama", transformers.LlamaConfig, transformers.LlamaForCausalLM, {}),
    "mistral": ("llama", transformers.MistralConfig, transformers.MistralForCausalLM, {}),
    "qwen2": ("qwen2_5", transformers.Qwen2Config, transformers.Qwen2ForCausalLM, {}),
    "qwen3": ("qwen3", transformers.Qwen3Config, transformers.Qwen3ForCausalLM, {"head_dim": 32}),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_the_model_of_params_json_computes_what_transformers_does(
    etstream: Etstream, tmp_path: Path, name: str
) -> None:
    rules, config, model_class, more = MODELS[name]
    torch.manual_seed(1)
    shape = {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "rope_theta": 1e6,
    }  # fmt: skip
    model = model_class(config(**shape, **more)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(tmp_path / "model")
    etstream.ptd([tmp_path / "model"], tmp_path / "out.pth", "--map", rules, "--to", "pth")
    params = json.loads((tmp_path / "params.json").read_text())
    ours = construct_transformer(ModelArgs(**params, max_seq_len=64, max_context_len=64, generate_full_logits=True))
    ours.load_state_dict(torch.load(tmp_path / "out.pth", weights_only=True))
    tokens = torch.arange(10)[None] * 7 % 96
    with torch.no_grad():
        outputs = ours.eval()(tokens)
        expected = model(tokens).logits
    logits = outputs[0] if isinstance(outputs, tuple) else outputs
    assert torch.allclose(logits, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "config", [{"hidden_act": "gelu"}, {"attention_bias": True}, {"rope_scaling": {"rope_type": "yarn", "factor": 4}}]
)
def test_both_files_come_or_none(etstream: Etstream, tmp_path: Path, config: dict[str, object]) -> None:
    llama_folder(tmp_path / "llama", **config)
    (tmp_path / "out").mkdir()
    outcome = etstream.attempt("ptd", tmp_path / "llama", "--map", "llama", "--to", "pth", "-o", tmp_path / "out/c.pth")
    assert outcome.code == 1 and "config.json" in outcome.stderr
    assert not list((tmp_path / "out").iterdir())


def quantised_folder(
    folder: Path,
    seed: random.Random,
    block_size: list[int] | None,
    grid: Callable[[int, int], list[int]],
    **config: object,
) -> dict[str, torch.Tensor]:
    """Writes a checkpoint whose projections are FP8, with scales of the shape that `grid` gives."""
    quantization = {"quant_method": "fp8", "weight_block_size": block_size}
    tensors = llama_folder(folder, **({"quantization_config": quantization} | config))
    for name, tensor in list(tensors.items()):
        tensors[name] = tensor.to(seed.choice([torch.bfloat16, torch.float32]))
        if name.endswith("proj.weight"):
            numbers = seed.choices([*range(0x7F), *range(0x80, 0xFF)], k=tensor.numel())  # no NaN
            tensors[name] = torch.tensor(numbers, dtype=torch.uint8).view(torch.float8_e4m3fn).reshape(tensor.shape)
            shape = grid(*tensor.shape)
            scale = torch.tensor([seed.gauss(0, 0.01) for _ in range(math.prod(shape))]).reshape(shape)
            scale = scale.to(seed.choice([torch.float32, torch.bfloat16, torch.float16]))
            tensors |= {f"{name}_scale_inv": scale, f"{name.removesuffix('weight')}activation_scale": scale.clone()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return tensors


@pytest.mark.parametrize("number", range(6 * ROUNDS))
def test_scales_of_fp8_are_applied_as_transformers_does(etstream: Etstream, tmp_path: Path, number: int) -> None:
    seed = random.Random(number)
    block_size = seed.choice([None, [seed.choice([1, 2, 16, 128]), seed.choice([1, 8, 32, 128])]])
    rank = seed.randrange(3)

    def grid(rows: int, columns: int) -> list[int]:
        return [-(-rows // block_size[0]), -(-columns // block_size[1])] if block_size else [1] * rank

    name = seed.choice(["bfloat16", "float16", "float32", None])
    tensors = quantised_folder(tmp_path / "fp8", seed, block_size, grid, dtype=name)
    dtype = getattr(torch, name) if name else tensors["model.embed_tokens.weight"].dtype
    plain = {}
    for key, tensor in tensors.items():
        scale = tensors.get(f"{key}_scale_inv")
        if not key.endswith("_scale_inv") and not key.endswith("activation_scale"):
            plain[key] = tensor if scale is None else Fp8Dequantize(None)._dequantize_one(tensor, scale, dtype)
    llama_folder(tmp_path / "plain")
    save_file(plain, tmp_path / "plain/model.safetensors", {"format": "pt"})
    for options in (["--dtype", "float64"], ["--map", "llama"], ["--map", "llama", "--dtype", "bf16"]):
        made = []
        for folder in (tmp_path / "fp8", tmp_path / "plain"):
            etstream.ptd([folder], folder / "out.pth", "--to", "pth", *options)
            made.append(dict(sorted(torch.load(folder / "out.pth", weights_only=True).items())))
        assert same(*made), options
    assert (tmp_path / "fp8/params.json").read_bytes() == (tmp_path / "plain/params.json").read_bytes()
    etstream.ptd([tmp_path / "fp8"], tmp_path / "copy.safetensors", "--to", "safetensors")
    assert same(load_file(tmp_path / "copy.safetensors"), load_file(tmp_path / "fp8/model.safetensors"))


@pytest.mark.parametrize(
    ("block_size", "shape", "config"),
    [
        ([30, 64], [3, 1], {}),  # transformers raises an error
        ([24, 64], [8, 1], {}),  # transformers takes other blocks
        ([16, 64], [1, 1, 2], {}),
        ([16, 64], [0, 1], {}),
        ([16], [4, 1], {}),
        ([16, 64], [2, 1], {"quantization_config": {"quant_method": "fbgemm_fp8"}}),
        ([16, 64], [2, 1], {"quantization_config": {"quant_method": "compressed-tensors"}}),
        ([16, 64], [2, 1], {"quantization_config": None}),
        ([16, 64], [2, 1], {"dtype": "int8"}),
    ],
)
def test_other_scales_are_refused(
    etstream: Etstream, tmp_path: Path, block_size: list[int], shape: list[int], config: dict[str, object]
) -> None:
    quantised_folder(tmp_path / "fp8", random.Random(1), block_size, lambda *_: shape, **config)
    for options in (["--dtype", "bf16"], ["--map", "llama"]):
        outcome = etstream.attempt("ptd", tmp_path / "fp8", *options, "-o", tmp_path / "never")
        assert outcome.code == 1 and "does not apply" in outcome.stderr


def test_memory_does_not_grow_with_the_checkpoint(etstream: Etstream, tmp_path: Path) -> None:
    size = 5 << 30  # this is over 4 GiB, where zip archives need 64 bits
    header = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with open(tmp_path / "in.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    command = [etstream.binary, "ptd", tmp_path / "in.safetensors", "--to", "pth", "-o", "-"]
    script = 'prlimit --as=67108864 "$@" | tail -c 1000'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script, "bash", *command], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"archive/data/0" in done.stdout
