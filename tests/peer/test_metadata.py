# SPDX-License-Identifier: BSD-3-Clause
"""Metadata in a program is named data as ExecuTorch's own store writes it, and its runtime gives it back."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch
from command import Etstream, assert_same_bytes
from executorch.exir import to_edge
from executorch.runtime import Runtime

VALUES = {
    "context.length": ("8192", struct.pack("<q", 8192)),
    "general.name": ("Llama-3.2-1B", b"Llama-3.2-1B"),
    "rope.theta": ("0.5", struct.pack("<d", 0.5)),
    "tokenizer.bos_id": ("-1", struct.pack("<q", -1)),
    "tokenizer.eos_ids": ("[128001, 128009]", struct.pack("<2q", 128001, 128009)),
    "tokenizer.version": ('"3"', b"3"),
    "tokenizer.vocab_size": ("8192", struct.pack("<q", 8192)),
}


def exported(metadata: dict[str, bytes]) -> bytes:
    torch.manual_seed(0)
    edge = to_edge(torch.export.export(torch.nn.Linear(3, 2).eval(), (torch.ones(1, 3),)))
    for key, value in metadata.items():
        edge._named_data_store.add_named_data(f"metadata.{key}", value)
    return bytes(edge.to_executorch().buffer)


@pytest.mark.parametrize("names", [list(VALUES), ["general.name"], ["context.length", "tokenizer.vocab_size"]])
def test_a_program_with_metadata_is_executorchs(names: list[str], etstream: Etstream, tmp_path: Path) -> None:
    (tmp_path / "plain.pte").write_bytes(exported({}))
    expected = exported({name: VALUES[name][1] for name in names})
    options = [option for name in names for option in ("--metadata", f"{name}={VALUES[name][0]}")]
    ours = etstream.pte(tmp_path / "plain.pte", tmp_path / "ours.pte", *options)
    assert_same_bytes(ours, expected, "program")
    found = {one["key"]: one["value"] for one in etstream.inspect(tmp_path / "ours.pte")["metadata"]}
    assert list(found) == names
    assert etstream.verify(tmp_path / "ours.pte").errors == []
    method = Runtime.get().load_program(tmp_path / "ours.pte").load_method("forward")
    assert method is not None and method.execute([torch.ones(1, 3)])[0].shape == (1, 2)
    # The same options again give the same file, and the metadata stays when constants move out.
    assert etstream.pte(tmp_path / "ours.pte", tmp_path / "again.pte", *options) is not None
    assert (tmp_path / "again.pte").stat().st_size == (tmp_path / "ours.pte").stat().st_size
    etstream.pte(tmp_path / "ours.pte", tmp_path / "thin.pte", "--constants-to", str(tmp_path / "w.ptd"))
    assert {one["key"] for one in etstream.inspect(tmp_path / "thin.pte")["metadata"]} == set(names)
    assert etstream.verify(tmp_path / "thin.pte", tmp_path / "w.ptd").errors == []
