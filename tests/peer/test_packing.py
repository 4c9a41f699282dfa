# SPDX-License-Identifier: BSD-3-Clause
"""Packed files give the original back, bit for bit: of every model, format and dtype, in files and in pipes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cases import Store, write_cases
from command import Etstream
from models import MODELS, CachedModel, to_suites
from safetensors.torch import save_file
from test_gguf import plain_tensors, write
from test_native_package import DTYPES

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 1 << 20  # the bytes of a piece


def assert_comes_back(etstream: Etstream, file: Path, known: bool = True) -> Path:
    """Packs a file and unpacks it, by files and by pipes; `known` files are verified while they are packed. Returns the
    packed file."""

    def run(*command: str | Path, given: bytes | None = None) -> bytes:
        done = subprocess.run([etstream.binary, *command], input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    original = file.read_bytes()
    packed, again = Path(f"{file}.etz"), file.with_name("again")
    run("pack", file, "--no-sync")
    run("unpack", packed, "-o", again, "--no-sync")
    assert again.read_bytes() == original
    assert run("pack", "-", given=original) == packed.read_bytes()
    assert run("unpack", "-", given=packed.read_bytes()) == original
    subprocess.run(["zstd", "--test", "--quiet", packed], check=True)
    if known:
        run("verify", packed)
        run("diff", file, packed)
    return packed


@pytest.mark.parametrize("name", MODELS)
def test_models_and_their_bundles(
    name: str, model: Callable[[str], CachedModel], etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    program = tmp_path / "model.pte"
    program.write_bytes(subject.program.read_bytes())
    packed = assert_comes_back(etstream, program)
    listing = write_cases(tmp_path, to_suites(subject.cases(), Store.NPY), by_method=True)
    bundle, from_packed = tmp_path / "model.bpte", tmp_path / "from_packed.bpte"
    expected = etstream.bundle(program, listing, bundle, "--no-sync")
    assert etstream.bundle(packed, listing, from_packed, "--no-sync") == expected
    assert_comes_back(etstream, bundle)
    etstream.convert(bundle, tmp_path / "segmented.bpte", "segmented")
    assert_comes_back(etstream, tmp_path / "segmented.bpte")
    if weights := subject.weights():
        (tmp_path / "weights.ptd").write_bytes(weights)
        assert_comes_back(etstream, tmp_path / "weights.ptd")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_weights_of_each_type(dtype: torch.dtype, etstream: Etstream, tmp_path: Path) -> None:
    torch.manual_seed(1)
    values = torch.randn(700_001) * 20
    checkpoint, weights = tmp_path / "w.safetensors", tmp_path / "w.ptd"
    save_file({"w": values.to(dtype), "odd": torch.arange(3, dtype=torch.uint8)}, checkpoint)
    packed = assert_comes_back(etstream, checkpoint)
    if dtype.is_floating_point:
        assert packed.stat().st_size < 0.97 * checkpoint.stat().st_size
    etstream.ptd([packed], weights)
    assert_comes_back(etstream, weights)


def test_gguf(etstream: Etstream, tmp_path: Path) -> None:
    write(tmp_path / "w.gguf", plain_tensors(), {})
    assert_comes_back(etstream, tmp_path / "w.gguf")


def test_packages_and_containers(etstream: Etstream, tmp_path: Path) -> None:
    package, container = tmp_path / "model.ptn", tmp_path / "model.fat"
    package.write_bytes((ROOT / "tests" / "golden" / "native_package" / "expected.ptn").read_bytes())
    packed = assert_comes_back(etstream, package)
    command = ["fat", f"native={packed}", f"portable={ROOT / 'examples' / 'model.pte'}", "-o", container]
    subprocess.run([etstream.binary, *command], check=True, stdout=subprocess.DEVNULL)
    assert_comes_back(etstream, container)


@pytest.mark.parametrize("size", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
@pytest.mark.parametrize("content", ["zeros", "random", "text"])
def test_any_bytes(size: int, content: str, etstream: Etstream, tmp_path: Path) -> None:
    torch.manual_seed(size)
    text = (ROOT / "README.md").read_bytes()
    made = {
        "zeros": lambda: bytes(size),
        "random": lambda: bytes(torch.randint(256, (size,), dtype=torch.uint8).numpy()),
        "text": lambda: (text * (size // len(text) + 1))[:size],
    }
    (tmp_path / "any").write_bytes(made[content]())
    assert_comes_back(etstream, tmp_path / "any", known=False)
