# SPDX-License-Identifier: BSD-3-Clause
"""Shows that safetensors' own library accepts the same files, and has the types that ExecuTorch lacks."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from command import Etstream
from rounds import ROUNDS
from safetensors import SafetensorError, deserialize
from safetensors.torch import load_file, save_file

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
FILES_A_ROUND = 12


def file_of(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def takes(file: bytes) -> bool:
    """Returns whether safetensors' own library reads it."""
    try:
        deserialize(file)
    except SafetensorError:
        return False
    return True


def random_header(seed: random.Random) -> tuple[dict[str, Any], bytes]:
    """Returns the header and the data of tensors of all types, whose bytes lie in another order than in the header,
    with other members."""
    entries: list[tuple[str, dict[str, Any]]] = []
    at = 0
    for i in range(seed.randrange(4)):
        dtype = seed.choice(list(BITS))
        shape = [seed.choice([0, 1, 2, 3, 4, 8]) for _ in range(seed.randrange(4))]
        size = torch.Size(shape).numel() * BITS[dtype] // 8
        entry: dict[str, Any] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        if seed.random() < 0.2:
            entry[seed.choice(["extra", "strides", "Dtype"])] = seed.choice([None, 1, -1.5, "x", [1, [2]], {"a": {}}])
        entries.append((seed.choice(["a", "größe", "", "layers.0.w", "x\0y"]) + str(i), entry))
        at += size
    seed.shuffle(entries)
    header: dict[str, Any] = dict(entries)
    if seed.random() < 0.5:
        header["__metadata__"] = seed.choice([None, {}, {"format": "pt"}, {"a": "", "b": "\u2028"}])
    return header, seed.randbytes(at)


def damaged(seed: random.Random, header: dict[str, Any], data: bytes) -> tuple[bytes, bytes]:
    """Returns the file with one thing in its header changed, which mostly makes it wrong."""
    tensors = [entry for name, entry in header.items() if name != "__metadata__"]
    kind = seed.randrange(8)
    if kind == 0:
        header["__metadata__"] = seed.choice([[], "x", 1, {"a": 1}, {"a": None}, {"a": []}, True])
    elif tensors and kind == 1:
        seed.choice(tensors)["shape"] = seed.choice([None, 1, [-1], [1.0], ["1"], [2, 2, 2, 2], [2**64], [2**40] * 2])
    elif tensors and kind == 2:
        entry = seed.choice(tensors)
        entry["data_offsets"] = seed.choice([[0], [0, 1, 2], [1, 0], [0, len(data) + 1], None, [0, 1], [2, 3], []])
    elif tensors and kind == 3:
        del seed.choice(tensors)[seed.choice(["dtype", "shape", "data_offsets"])]
    elif tensors and kind == 4:
        seed.choice(tensors)["dtype"] = seed.choice(["F32", "F4", "F6_E2M3", "I64", 3, None, []])
    elif kind == 5:
        data += b"x"
    elif kind < 7:
        header["b"] = seed.choice([1, None, [], {}, "x"])
    text = bytearray(json.dumps(header).encode())
    if kind == 7:
        at = seed.randrange(len(text))
        text[at:at] = seed.choice([b"\xff", b"\xc3", b"\0", b'"', b"\\"])
    return bytes(text), data


def verified(etstream: Etstream, files: list[Path]) -> list[bool]:
    """Returns whether `verify` accepts each file."""
    return [etstream.attempt("verify", file).code == 0 for file in files]


@pytest.mark.parametrize("batch", range(ROUNDS))
def test_random_files_are_accepted_as_the_library_accepts_them(etstream: Etstream, tmp_path: Path, batch: int) -> None:
    seed = random.Random(f"safetensors {batch}")
    files, expected = [], []
    for i in range(FILES_A_ROUND):
        header, data = random_header(seed)
        text = json.dumps(header, ensure_ascii=seed.random() < 0.5).encode() + b" " * seed.randrange(9)
        if i % 2:
            text, data = damaged(seed, header, data)
        file = tmp_path / f"{i}.safetensors"
        file.write_bytes(file_of(text, data))
        files.append(file)
        expected.append(takes(file.read_bytes()))
    assert len(set(expected)) == 2
    found = verified(etstream, files)
    differ = [(file.read_bytes(), theirs) for file, ours, theirs in zip(files, found, expected) if ours != theirs]
    assert not differ, differ[0]


HEADERS = {
    b'{"__metadata__":null,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}': True,
    b'{"a":{"x":{"dtype":[]},"dtype":"F32","x":1,"shape":[2],"data_offsets":[0,8]}}': True,
    b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":' + b"[" * 50 + b"]" * 50 + b"}}": True,
    b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} \n': True,
    b'{"__metadata__":{},"__metadata__":{},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}': False,
    b'{"__metadata__":null,"__metadata__":null,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}': False,
    b'{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}': False,
    b'{"a":{"dtype":"F8_E8M0","shape":[1000],"data_offsets":[0,8]}}': False,
    b'{"a":{"dtype":"F4","shape":[17],"data_offsets":[0,8]}}': False,
    b'{"a":{"dtype":"F32","shape":[9223372036854775808,9223372036854775808,0],"data_offsets":[0,0]}}': False,
    b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":nul}}': False,
}


@pytest.mark.parametrize("header", list(HEADERS))
def test_unusual_headers_are_taken_as_the_library_takes_them(etstream: Etstream, tmp_path: Path, header: bytes) -> None:
    file = tmp_path / "x.safetensors"
    file.write_bytes(file_of(header, bytes(8)))
    assert takes(file.read_bytes()) == (etstream.attempt("verify", file).code == 0) == HEADERS[header]
    if HEADERS[header]:
        assert takes(etstream.ptd([file], tmp_path / "copy.safetensors", "--to", "safetensors"))


def test_types_that_executorch_lacks_are_copied_as_the_library_writes_them(etstream: Etstream, tmp_path: Path) -> None:
    file, copy = tmp_path / "mx.safetensors", tmp_path / "copy.safetensors"
    weight = torch.arange(256).to(torch.uint8)
    tensors = {
        "scale": weight[:16].reshape(2, 8).view(torch.float8_e8m0fnu),
        "blocks": weight[16:48].reshape(2, 16).view(torch.float4_e2m1fn_x2),
        "bias": torch.arange(6).to(torch.complex64),
        "plain": torch.arange(6).to(torch.bfloat16),
    }
    save_file(tensors, file, metadata={"format": "pt"})
    assert etstream.ptd([file], copy, "--to", "safetensors") == file.read_bytes()
    loaded = load_file(copy)
    for name, tensor in tensors.items():
        assert torch.equal(loaded[name].view(torch.uint8), tensor.view(torch.uint8))
        assert (loaded[name].dtype, loaded[name].shape) == (tensor.dtype, tensor.shape)
    listed = etstream.attempt("inspect", copy).stdout.decode()
    assert "F8_E8M0 [2, 8]" in listed and "F4 [2, 32]" in listed


def test_what_the_library_would_refuse_is_not_written(etstream: Etstream, tmp_path: Path) -> None:
    for name, dtype in (("__metadata__", torch.float32), ("a", torch.complex128)):
        source, out = tmp_path / "x.pth", tmp_path / "out.safetensors"
        torch.save({name: torch.ones(2).to(dtype)}, source)
        outcome = etstream.attempt("ptd", source, "--to", "safetensors", "-o", out)
        assert outcome.code == 1 and name in outcome.stderr, outcome
        assert not out.exists()
