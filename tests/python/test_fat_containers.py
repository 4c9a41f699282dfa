# SPDX-License-Identifier: BSD-3-Clause
"""Fat containers are what ExecuTorch's native backend packs, and give back what was packed."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

import etstream

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "model.pte"


def packed(payloads: Mapping[str, bytes]) -> bytes:
    """Returns a container in the proposed format: a table, then the payloads one after another."""
    out, offset = [struct.pack("<4sII", b"NFAT", 1, len(payloads))], 0
    for name, payload in payloads.items():
        out.append(struct.pack("<32sQQ", name.encode("ascii"), offset, len(payload)))
        offset += len(payload)
    return b"".join([*out, *payloads.values()])


def test_the_bytes_are_those_of_the_format(tmp_path: Path) -> None:
    payloads = {"portable": EXAMPLE.read_bytes(), "x" * 32: b"a blob", "empty": b"", "npu": bytes(1000)}
    etstream.fat(payloads, tmp_path / "model.fat")
    assert (tmp_path / "model.fat").read_bytes() == packed(payloads)
    again = {**payloads, "again": b"a blob"}
    assert bytes(etstream.fat(again, dedup=False, dry_run=True)) == packed(again)
    assert etstream.fat(again, dry_run=True).size == len(packed(again)) - len(b"a blob")


def test_payloads_are_a_mapping_of_names_to_sources_that_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.fat"
    etstream.fat({"portable": EXAMPLE, "npu": b"a blob"}, path, align=4096)
    fat = etstream.FatContainerFile(path)
    assert (list(fat), len(fat), "npu" in fat, "gpu" in fat) == (["portable", "npu"], 2, True, False)
    assert bytes(fat["portable"]) == EXAMPLE.read_bytes()
    assert [(one.name, one.kind, one.offset % 4096) for one in fat.payloads] == [
        ("portable", "program", 0),
        ("npu", None, 0),
    ]
    assert bytes(dict(fat)["npu"]) == b"a blob"
    with pytest.raises(KeyError, match="gpu"):
        fat["gpu"]
    assert etstream.verify(path)
    assert etstream.inspect(path).format == "fat_container"
    # A program is read in its place in the container.
    assert etstream.inspect(fat["portable"]).methods == etstream.inspect(EXAMPLE).methods


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    for payloads in ({"": b"x"}, {"é": b"x"}, {"y" * 33: b"x"}):
        with pytest.raises(etstream.InvalidArgumentError, match="expected a name of 1 to 32 characters"):
            etstream.fat(payloads, tmp_path / "model.fat")
    with pytest.raises(etstream.InvalidArgumentError, match="power of two"):
        etstream.fat({"a": b"x"}, align=3, dry_run=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(etstream.CorruptError, match="offset 8"):
        etstream.FatContainerFile(b"NFAT" + struct.pack("<II", 1, 2) + bytes(48))
