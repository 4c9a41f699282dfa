# SPDX-License-Identifier: BSD-3-Clause
"""Equal tensors are one piece of data in a file, and come back as many."""

from __future__ import annotations

from pathlib import Path

import etstream
import pytest
import torch
from safetensors.torch import load_file

LAYERS, WIDTH = 24, 512


def test_a_dict_of_equal_tensors_comes_back(tmp_path: Path) -> None:
    state = {f"layers.{i}.weight": torch.zeros(WIDTH, WIDTH) for i in range(LAYERS)}
    file, out = tmp_path / "own.ptd", tmp_path / "own.safetensors"
    etstream.save_ptd(state, file)
    loaded = etstream.load_ptd(file)
    assert list(loaded) == list(state)
    assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())
    checkpoint = etstream.Checkpoint(file)
    assert len(checkpoint) == LAYERS
    etstream.ptd(checkpoint, tmp_path / "again.ptd")
    assert (tmp_path / "again.ptd").read_bytes() == file.read_bytes()
    with pytest.raises(etstream.TooLargeError, match=r"found 24.0 MiB \(2516"):
        etstream.ptd(file, out, to="safetensors")
    with pytest.raises(etstream.TooLargeError, match="over the limit of 1.0 MiB"):
        etstream.ptd(file, out, to="safetensors", max_disk=1 << 20)
    with pytest.raises(etstream.TooLargeError):
        etstream.ptd(file, to="safetensors", dry_run=True).write(out)
    assert not out.exists()
    etstream.ptd(file, out, to="safetensors", max_disk=25 << 20)
    assert len(load_file(out)) == LAYERS
    # The limit is not for tensors in memory, which are as the caller made them.
    etstream.ptd(state, out, to="safetensors")
    tied = dict.fromkeys(state, torch.zeros(WIDTH, WIDTH))
    etstream.ptd(tied, out, to="safetensors")
    assert len(load_file(out)) == LAYERS
