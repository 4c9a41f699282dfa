# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's own script for Llama, unmodified, gives the same bytes under `etstream run`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SHAPE = {"dim": 256, "hidden_dim": 1024, "n_layers": 1, "n_heads": 8, "n_kv_heads": 2, "vocab_size": 8192}
QUANTIZED = "--model llama3_2 -d fp32 -X -qmode 8da4w -G 32 -E 4,32 -kv --use_sdpa_with_kv_cache".split()
MODULE = "executorch.examples.models.llama.export_llama"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    dim, hidden, vocabulary = SHAPE["dim"], SHAPE["hidden_dim"], SHAPE["vocab_size"]
    key_dim = dim * SHAPE["n_kv_heads"] // SHAPE["n_heads"]
    generator = torch.Generator().manual_seed(1)

    def weights(*shape: int) -> torch.Tensor:
        return (torch.randn(shape, generator=generator) * 0.02).to(torch.bfloat16)

    tensors = {"tok_embeddings.weight": weights(vocabulary, dim), "output.weight": weights(vocabulary, dim)}
    tensors["norm.weight"] = weights(dim)
    for layer in range(SHAPE["n_layers"]):
        shapes = {
            "attention.wq": (dim, dim), "attention.wk": (key_dim, dim), "attention.wv": (key_dim, dim),
            "attention.wo": (dim, dim), "feed_forward.w1": (hidden, dim), "feed_forward.w2": (dim, hidden),
            "feed_forward.w3": (hidden, dim), "attention_norm": (dim,), "ffn_norm": (dim,),
        }  # fmt: skip
        tensors |= {f"layers.{layer}.{name}.weight": weights(*shape) for name, shape in shapes.items()}
    torch.save(tensors, folder / "consolidated.00.pth")
    (folder / "params.json").write_text(json.dumps(SHAPE))
    return folder


def export(checkpoint: Path, folder: Path, *before: str) -> tuple[bytes, str]:
    """Returns the program, and the text on standard error."""
    files = ["-c", str(checkpoint / "consolidated.00.pth"), "-p", str(checkpoint / "params.json")]
    command = [*before, sys.executable, "-m", MODULE, *files, *QUANTIZED, "-n", "llama.pte"]
    folder.mkdir()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return (folder / "llama.pte").read_bytes(), done.stderr


def test_the_script_gives_the_same_bytes(checkpoint: Path, tmp_path: Path) -> None:
    plain, _ = export(checkpoint, tmp_path / "plain")
    run = [os.environ["ETSTREAM"], "run", "--spill", "/var/tmp", "--report", "--"]
    program, report = export(checkpoint, tmp_path / "run", *run)
    assert program == plain
    spilled = re.search(r"^  spilled +([\d.]+) MiB", report, re.MULTILINE)
    # The heap had both tables in float32.
    assert spilled and float(spilled[1]) > 16, report[-1000:]
