# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that make no sense are refused by their names, before anything is done."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import pytest


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
