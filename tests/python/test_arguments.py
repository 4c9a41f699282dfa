# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that make no sense are refused by their names, before anything is done."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import ml_dtypes
import numpy
import pytest
import torch


def test_a_word_that_is_no_choice_is_an_error_of_etstreams(program: Path, cases: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.ptd"
    etstream.save_ptd({"a": etstream.Tensor("int8", [1], b"1")}, weights)
    calls: list[Callable[[Any], object]] = [
        lambda word: etstream.plan_bundle(program, cases, format=word),
        lambda word: etstream.plan_tensor_data(weights, format=word),
        lambda word: etstream.plan_program(program, delegates=word),
        lambda word: etstream.graph(program, format=word),
        lambda word: etstream.load_ptd(weights, framework=word),
    ]
    for call in calls:
        with pytest.raises(etstream.InvalidArgumentError, match="expected '.*' or '.*', found 'bp09'"):
            call("bp09")


def test_one_alone_is_not_taken_for_several(program: Path, tmp_path: Path) -> None:
    def share(programs: Any) -> None:
        etstream.share_weights(programs, tmp_path / "w.ptd", fat=tmp_path / "out.fat")

    takers: list[tuple[Callable[[Any], object], str]] = [
        (share, "programs"),
        (lambda one: etstream.plan_program(program, drop_methods=one), "drop_methods"),
        (lambda one: etstream.plan_native_package(b"", {}, mutable_keys=one), "mutable_keys"),
        (lambda one: etstream.FlatbufferText("a.fbs", one), "include_folders"),
        (lambda one: etstream.ExactJson("a.fbs", one), "include_folders"),
        (etstream.Source.concatenation, "parts"),
    ]
    for take, argument in takers:
        for one in ("model.pte", b"model.pte", program):
            with pytest.raises(TypeError, match=f"{argument}: expected .*, found {re.escape(repr(one))} alone: put"):
                take(one)


def test_a_dtype_is_taken_as_libraries_and_people_have_it(tmp_path: Path) -> None:
    weights = {"a": torch.ones(3), "b": torch.ones(2, dtype=torch.int64)}
    expected = tmp_path / "expected.ptd"
    etstream.save_ptd({"a": torch.ones(3, dtype=torch.bfloat16), "b": weights["b"]}, expected)
    for dtype in (torch.bfloat16, ml_dtypes.bfloat16, numpy.dtype(ml_dtypes.bfloat16), "bfloat16", "torch.bfloat16",
                  "bf16", "BF16", {"a": torch.bfloat16}, {"*": "f32", "?": "bf16"}):  # fmt: skip
        plan = etstream.plan_tensor_data(weights, dtype=dtype)
        assert bytes(plan) == expected.read_bytes(), dtype
    for given, name in (
        (torch.float16, "float16"), (torch.half, "float16"), (numpy.float16, "float16"), ("fp16", "float16"),
        (numpy.dtype("<f2"), "float16"), ("half", "float16"),
    ):  # fmt: skip
        assert etstream.Tensor(given, [1], b"12").dtype == name
    assert etstream.Tensor(numpy.int64, [1], bytes(8)).dtype == etstream.Tensor(torch.long, [1], bytes(8)).dtype
    assert etstream.Tensor(torch.bool, [1], b"1").dtype == etstream.Tensor(numpy.bool_, [1], b"1").dtype == "bool"
    for wrong in (16, float, object(), numpy.float16(1), torch.ones(1), ["bf16"]):
        with pytest.raises(TypeError, match="dtype: expected a dtype of torch's or NumPy's, or a name"):
            etstream.plan_tensor_data(weights, dtype=wrong)  # type: ignore[arg-type]
    with pytest.raises(etstream.InvalidArgumentError, match="dtype: expected .* such as bfloat16, found 'bf17'"):
        etstream.plan_tensor_data(weights, dtype="bf17")
    with pytest.raises(etstream.InvalidArgumentError, match="little-endian"):
        etstream.Tensor(numpy.dtype(">f2"), [1], b"12")


def test_a_size_is_taken_as_the_command_takes_it(program: Path, tmp_path: Path) -> None:
    weights = {"a": torch.ones(3), "b": torch.zeros(510)}
    expected = bytes(etstream.plan_tensor_data(weights, segment_alignment=4096))
    for size in ("4096", "4K", "4k", "4 KiB", "4KB"):
        assert bytes(etstream.plan_tensor_data(weights, segment_alignment=size)) == expected
        assert bytes(etstream.plan_fat_container({"a": b"x"}, align=size)) == bytes(
            etstream.plan_fat_container({"a": b"x"}, align=4096)
        )
        plan = etstream.plan_program(program, segment_alignment=size).program
        assert bytes(plan) == bytes(etstream.plan_program(program, segment_alignment=4096).program)
    assert len(etstream.write_tensor_data_shards(weights, tmp_path / "w.ptd", max_size="2K", max_disk="1 MB")) == 2
    with pytest.raises(etstream.TooLargeError, match="over the limit of 1.0 KiB"):
        etstream.save_ptd(weights, tmp_path / "w.ptd", max_disk="1K")
    for wrong, reason in (
        ("much", "expected a size such as 4G, 512M or 16K, found 'much'"),
        (-1, "expected a size such as 4G, 512M or 16K, found '-1'"),
        ("1.5G", "a smaller unit has a whole number"),
        ("4X", "units are K, M, G, T, P and E"),
        (1 << 64, "expected at most 18446744073709551615B"),
    ):
        with pytest.raises(etstream.InvalidArgumentError, match=f"^max_disk: .*{reason}"):
            etstream.save_ptd(weights, tmp_path / "x.ptd", max_disk=wrong)
    with pytest.raises(etstream.InvalidArgumentError, match="^align: expected at most 4294967295B, found '4G'"):
        etstream.plan_fat_container({"a": b"x"}, align="4G")
    with pytest.raises(TypeError, match="segment_alignment: expected an int, or a size such as '4G', found 1.5"):
        etstream.plan_tensor_data(weights, segment_alignment=1.5)  # type: ignore[arg-type]


def test_max_disk_is_a_number_of_bytes(tmp_path: Path) -> None:
    weights, out = {"a": torch.ones(3)}, tmp_path / "w.ptd"
    with pytest.raises(TypeError, match="max_disk: expected an int"):
        etstream.save_ptd(weights, out, max_disk=1.5)  # type: ignore[arg-type]
    with pytest.raises(etstream.TooLargeError, match="of the disk, over the limit of 100 bytes; max_disk 1K would fit"):
        etstream.save_ptd(weights, out, max_disk=100)
    assert not out.exists()
    assert etstream.save_ptd(weights, out, max_disk=1000).size == out.stat().st_size
