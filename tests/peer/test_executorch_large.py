# SPDX-License-Identifier: BSD-3-Clause
"""Large programs, exported by ExecuTorch, run from where they lie in their bundle.

The embedding's program is over 4 GiB, which BP08 cannot hold, and takes 8.5 GiB of memory to export and 8.2 GiB of
disk. If there is less, a smaller one is run, and pytest's summary says so.
"""

from __future__ import annotations

import gc
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from cases import Store, write_cases
from command import Etstream
from executorch.exir import to_edge
from models import Logits, ModelCase, to_suites
from run_bundle import RunBundle
from transformers import LlamaConfig, LlamaForCausalLM

MIB = 1 << 20
GIB = 1 << 30
EMBEDDING_SIZE = 4 * GIB + 4 * MIB
COLUMNS = 1024
ROW = COLUMNS * 4


def room(folder: Path) -> tuple[int, int]:
    """Returns the bytes of memory and of disk that are available."""
    available = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
    assert available
    return int(available[1]) * 1024, shutil.disk_usage(folder).free


def fitting(size: int, folder: Path) -> int:
    """Returns the size that a program can have here, which is `size` if there is room for it."""
    memory, disk = room(folder)
    most = min(memory, disk) * 2 // 5
    if most >= size:
        return size
    smaller = max(most, 256 * MIB)
    warnings.warn(
        f"NOT SHOWN OVER 4 GiB: {memory / GIB:.1f} GiB of memory and {disk / GIB:.1f} GiB of disk "
        f"leave room for a program of {smaller / GIB:.2f} GiB",
        stacklevel=2,
    )
    return smaller


def write_bundle(
    etstream: Etstream, model: torch.nn.Module, case_of: Callable[[], ModelCase], folder: Path
) -> Path:
    """Writes a segmented bundle of the model, and leaves no .pte behind, which is as large."""
    program, bundle = folder / "model.pte", folder / "model.bpte"
    with torch.no_grad():
        case = case_of()
        graph = torch.export.export(model, case.inputs)
    manager = to_edge(graph).to_executorch()
    del graph
    with program.open("wb") as file:
        manager.write_to_file(file)
    del manager
    gc.collect()
    cases = write_cases(folder, to_suites({"forward": [case]}, Store.NPY))
    options = ("--to", "segmented", "--no-sync")
    outcome = etstream.attempt("bundle", program, "--cases", cases, "-o", bundle, *options)
    assert outcome.code == 0, outcome
    program.unlink()
    return bundle


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yields a folder whose large files are gone after the test, also when it fails."""
    yield tmp_path
    for file in tmp_path.iterdir():
        if file.suffix in (".pte", ".bpte"):
            file.unlink()


def test_an_embedding_over_4_gib_runs_in_a_small_part_of_its_size(
    etstream: Etstream, run_bundle: RunBundle, folder: Path
) -> None:
    size = fitting(EMBEDDING_SIZE, folder)
    rows = size // ROW
    # These rows are at both ends, in the middle and around 2 and 4 GiB, if there are such; all others are zeros.
    wanted = [0, 1, rows // 2, rows - 2, rows - 1]
    wanted += [n for edge in (2 * GIB, 4 * GIB) for n in (edge // ROW - 1, edge // ROW) if n < rows]
    index = torch.tensor([sorted(set(wanted))])
    torch.manual_seed(0)
    weights = torch.zeros(rows, COLUMNS)
    weights[index[0]] = torch.randn(index.numel(), COLUMNS)
    model = torch.nn.Embedding.from_pretrained(weights)
    bundle = write_bundle(etstream, model, lambda: ModelCase((index,), (model(index),)), folder)
    del model, weights
    assert bundle.stat().st_size > size
    assert etstream.verify(bundle).errors == []
    report = run_bundle.run(bundle, "0", "0")
    assert report.code == 0, report
    print(f"embedding of {size / MIB:.0f} MiB: at most {report.peak / MIB:.1f} MiB resident")
    assert report.peak < max(size // 100, 16 * MIB)


def test_a_llama_runs_mapped_in_little_memory_of_its_own(
    etstream: Etstream, run_bundle: RunBundle, folder: Path
) -> None:
    config = LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=6,
        num_attention_heads=16,
        num_key_value_heads=4,
        vocab_size=8000,
        max_position_embeddings=128,
        use_cache=False,
    )
    torch.manual_seed(0)
    model = Logits(LlamaForCausalLM(config)).eval()
    tokens = torch.randint(config.vocab_size, (1, 16))
    bundle = write_bundle(etstream, model, lambda: ModelCase((tokens,), (model(tokens),)), folder)
    size = bundle.stat().st_size
    assert size > 300 * MIB
    assert etstream.verify(bundle).errors == []
    limit = size // 4
    mapped = run_bundle.run(bundle, "1e-4", "1e-4", data_limit=limit)
    assert mapped.code == 0, mapped
    print(f"Llama of {size / MIB:.0f} MiB: runs in {limit / MIB:.0f} MiB of its own")
    # The limit holds: a packed program is read into memory, and does not fit.
    assert etstream.attempt("pack", bundle, "-o", folder / "model.bpte.etz", "--no-sync").code == 0
    copied = run_bundle.run(folder / "model.bpte.etz", data_limit=limit)
    assert copied.code == 1
    assert "no memory for" in copied.stderr
