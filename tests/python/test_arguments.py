# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that make no sense are refused by their names, before anything is done."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import ml_dtypes
import numpy
import pytest
import torch
from etstream.executorch import load, load_fat

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "program.fbs"


class OneAnswer(os.PathLike[str]):
    """A path that is asked for once, as the next answer could be another."""

    def __init__(self, path: Path) -> None:
        self.path, self.asked = path, 0

    def __fspath__(self) -> str:
        self.asked += 1
        assert self.asked == 1, f"{self.path.name} was asked for again"
        return str(self.path)


ASKING: dict[str, Callable[[Callable[[str], Any]], object]] = {
    "pte": lambda path: etstream.pte(path("a.pte"), path("b.pte"), constants_to=path("b.ptd")),
    "pte, dry run": lambda path: etstream.pte(path("a.pte"), dry_run=True),
    "FilePlan.write": lambda path: etstream.pte(path("a.pte"), dry_run=True).program.write(path("b.pte")),
    "convert": lambda path: etstream.convert(path("a.bpte"), path("b.bpte"), to="segmented"),
    "ptd": lambda path: etstream.ptd(path("a.pte"), path("b.ptd")),
    "ptd_shards": lambda path: etstream.ptd_shards(
        path("a.pte"), path("b.ptd"), split_max_size="1G"
    ),
    "share": lambda path: etstream.share(
        [path("a.pte"), path("same.pte")], path("b.ptd"), out_dir=path("folder"), least_size=1
    ),
    "inspect": lambda path: etstream.inspect(path("a.pte"), html=path("b.html")),
    "ExactJson": lambda path: etstream.ExactJson(path("program.fbs")),
    "ExactJson.compile": lambda path: etstream.ExactJson(SCHEMA).compile(path("a.json"), path("b.pte")),
    "ExactJson.decompile": lambda path: etstream.ExactJson(SCHEMA).decompile(path("a.pte"), path("b.json")),
    "load": lambda path: load(path("a.pte")),
    "load_fat": lambda path: load_fat(path("a.fat")),
    "reweight": lambda path: etstream.reweight(
        path("a.pte"), was=path("same.pte"), now=path("now.pte"), output=path("b.pte")
    ),
    "pack": lambda path: etstream.pack(path("a.pte"), path("b.etz")),
    "unpack": lambda path: etstream.unpack(path("a.etz"), path("b.pte")),
}


@pytest.mark.parametrize("call", ASKING.values(), ids=ASKING)
def test_a_path_is_asked_for_once(
    call: Callable[[Callable[[str], Any]], object], program: Path, cases: Path, tmp_path: Path
) -> None:
    for name in ("a.pte", "same.pte", "now.pte"):
        shutil.copy(program, tmp_path / name)
    for schema in SCHEMA.parent.glob("*.fbs"):
        shutil.copy(schema, tmp_path)
    etstream.bundle(program, cases, tmp_path / "a.bpte")
    etstream.fat({"a": program}, tmp_path / "a.fat")
    etstream.pack(program, tmp_path / "a.etz")
    etstream.ExactJson(SCHEMA).decompile(program, tmp_path / "a.json", file_name=str(program))
    given: list[OneAnswer] = []

    def path(name: str) -> OneAnswer:
        given.append(OneAnswer(tmp_path / name))
        return given[-1]

    call(path)
    assert [one.asked for one in given] == [1] * len(given)


def test_a_word_that_is_no_choice_is_an_error_of_etstreams(program: Path, cases: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.ptd"
    etstream.save_ptd({"a": etstream.Tensor("int8", [1], b"1")}, weights)
    calls: list[Callable[[Any], object]] = [
        lambda word: etstream.bundle(program, cases, to=word, dry_run=True),
        lambda word: etstream.ptd(weights, to=word, dry_run=True),
        lambda word: etstream.pte(program, delegates=word, dry_run=True),
        lambda word: etstream.graph(program, format=word),
        lambda word: etstream.memory_budget(program, format=word),
        lambda word: etstream.load_ptd(weights, framework=word),
    ]
    for call in calls:
        with pytest.raises(etstream.InvalidArgumentError, match="expected '.*' or '.*', found 'bp09'"):
            call("bp09")


def test_one_alone_is_not_taken_for_several(program: Path, tmp_path: Path) -> None:
    def share(programs: Any) -> None:
        etstream.share(programs, tmp_path / "w.ptd", fat=tmp_path / "out.fat")

    takers: list[tuple[Callable[[Any], object], str]] = [
        (share, "programs"),
        (lambda one: etstream.ptn(b"", {}, mutable=one, dry_run=True), "mutable"),
        (lambda one: etstream.FlatbufferText("a.fbs", one), "include_folders"),
        (lambda one: etstream.ExactJson("a.fbs", one), "include_folders"),
        (etstream.Source.concatenation, "parts"),
    ]
    for take, argument in takers:
        for one in ("model.pte", b"model.pte", program, io.BytesIO(), bytearray(b"model.pte"), numpy.ones(2)):
            with pytest.raises(TypeError, match=f"{argument}: expected .*, found {re.escape(repr(one))} alone: put"):
                take(one)
        with pytest.raises(TypeError, match=f"{argument}: expected .*, found int$"):
            take(3)
    with pytest.raises(TypeError, match="^mutable: expected names, found b'x.{,200} alone: put it in a list$"):
        etstream.ptn(b"", {}, mutable=b"x" * 5000, dry_run=True)


def test_a_file_or_memory_alone_is_not_taken_for_its_lines_or_bytes(program: Path, tmp_path: Path) -> None:
    thin, weights = tmp_path / "thin.pte", tmp_path / "w.ptd"
    etstream.pte(program, thin, constants_to=weights)
    expected = bytes(etstream.pte(thin, constants_from=[weights], dry_run=True).program)
    with open(weights, "rb") as file:
        content = file.read()
        ones = (file, io.BytesIO(content), content, bytearray(content), memoryview(content),
                numpy.fromfile(weights, "uint8"), torch.frombuffer(bytearray(content), dtype=torch.uint8))  # fmt: skip
        for one in ones:
            assert bytes(etstream.pte(thin, constants_from=one, dry_run=True).program) == expected, type(one)


def test_names_of_names_are_str(program: Path) -> None:
    takers: list[tuple[Callable[[Any], object], str]] = [
        (lambda names: etstream.inspect(program, names=names), "names"),
        (lambda names: etstream.diff(program, program, names=names), "names"),
        (lambda names: etstream.pte(program, constants_to="w.ptd", keys=names, dry_run=True), "keys"),
    ]
    for take, argument in takers:
        for wrong in ({"a": 3}, {3: "a"}):
            with pytest.raises(TypeError, match=f"^{argument}: expected a str as a name, found 3$"):
                take(wrong)


def test_a_dtype_is_taken_as_libraries_and_people_have_it(tmp_path: Path) -> None:
    weights = {"a": torch.ones(3), "b": torch.ones(2, dtype=torch.int64)}
    expected = tmp_path / "expected.ptd"
    etstream.save_ptd({"a": torch.ones(3, dtype=torch.bfloat16), "b": weights["b"]}, expected)
    for dtype in (torch.bfloat16, ml_dtypes.bfloat16, numpy.dtype(ml_dtypes.bfloat16), "bfloat16", "torch.bfloat16",
                  "bf16", "BF16", {"a": torch.bfloat16}, {"*": "f32", "?": "bf16"}):  # fmt: skip
        plan = etstream.ptd(weights, dtype=dtype, dry_run=True)
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
            etstream.ptd(weights, dtype=wrong, dry_run=True)  # type: ignore[arg-type]
    with pytest.raises(etstream.InvalidArgumentError, match="dtype: expected .* such as bfloat16, found 'bf17'"):
        etstream.ptd(weights, dtype="bf17", dry_run=True)
    with pytest.raises(etstream.InvalidArgumentError, match="little-endian"):
        etstream.Tensor(numpy.dtype(">f2"), [1], b"12")


def test_a_size_is_taken_as_the_command_takes_it(program: Path, tmp_path: Path) -> None:
    weights, out = {"a": torch.ones(3), "b": torch.zeros(510)}, tmp_path / "w.ptd"
    calls: list[Callable[[Any], Any]] = [
        lambda size: etstream.ptd(weights, segment_alignment=size, dry_run=True),
        lambda size: etstream.fat({"a": b"x"}, align=size, dry_run=True),
        lambda size: etstream.pte(program, segment_alignment=size, dry_run=True).program,
    ]
    for call in calls:
        assert bytes(call("4 KiB")) == bytes(call("4k")) == bytes(call(4096))
    assert len(etstream.ptd_shards(weights, out, split_max_size="2K", max_disk="1 MB")) == 2
    for limit in ("1K", 1024):
        with pytest.raises(etstream.TooLargeError, match="over the limit of 1.0 KiB; max_disk 3K would fit"):
            etstream.save_ptd(weights, out, max_disk=limit)
    assert not out.exists() and etstream.save_ptd(weights, out, max_disk="3K").size == out.stat().st_size
    for wrong in ("much", -1):
        with pytest.raises(etstream.InvalidArgumentError, match=f"^max_disk: .*4G, 512M or 16K, found '{wrong}'"):
            etstream.save_ptd(weights, out, max_disk=wrong)
    with pytest.raises(etstream.InvalidArgumentError, match="^align: expected at most 4294967295B, found '4G'"):
        etstream.fat({"a": b"x"}, align="4G", dry_run=True)
    with pytest.raises(TypeError, match="segment_alignment: expected an int, or a size such as '4G', found 1.5"):
        etstream.ptd(weights, segment_alignment=1.5, dry_run=True)  # type: ignore[arg-type]
