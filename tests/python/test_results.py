# SPDX-License-Identifier: BSD-3-Clause
"""Tests that results have one style: the fields that docs/command lists, a short repr, tables and to_dict()."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import etstream
import numpy as np
import pandas
import pytest
from conftest import EXAMPLES, Command
from etstream import results
from etstream.results import Result, Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "readme"))
from json_tables import read_tables  # noqa: E402

TABLES = read_tables(ROOT / "docs" / "command")
OF_TABLES = {
    "A plan": results.PlannedFile,
    "verify": results.FileFindings,
    "compare": results.OutputFindings,
    "inspect": results.Inspection,
    "inspect --budget": results.MemoryBudget,
    "inspect --graph": results.Graph,
    "share": results.SharingReport,
    "explain": results.WeightOrigins,
    "diff": results.Differences,
}
# Only the command reports the first, and only Python the second.
COMMAND_ALONE = {"tensor_data", "fat", "shards"}
PYTHON_ALONE = {"names", "runs[].outputs[].file"}
DELEGATED = ROOT / "tests" / "golden" / "delegated_program" / "program.pte"


def fields_of(kind: type[Any], start: str = "") -> set[str]:
    """Returns the fields of a class and of those within it, as the tables of docs/command name them."""
    found = set()
    for name, hint in get_type_hints(kind).items():
        found.add(start + name)
        parts = {part for one in (hint, *get_args(hint)) for part in (one, *get_args(one))}
        for part in parts:
            if isinstance(part, type) and issubclass(part, Result):
                is_list = Table in {getattr(one, "__origin__", None) for one in (hint, *get_args(hint))}
                found |= fields_of(part, f"{start}{name}{'[]' * is_list}.")
    return found


@pytest.mark.parametrize("heading", OF_TABLES)
def test_fields_are_those_that_the_page_lists(heading: str) -> None:
    told, ours = set(TABLES[heading]), fields_of(OF_TABLES[heading])
    if heading == "compare":
        ours = {field for field in ours if not re.match(r"runs\[\]\.(reason|error|error_name|signal|instruction|callee)$", field)}
    elif heading != "verify":
        told = {field for field in told if field.split(".")[0].split("[")[0] not in COMMAND_ALONE}
    assert ours - PYTHON_ALONE == told - PYTHON_ALONE


@pytest.fixture
def report() -> results.Inspection:
    return etstream.inspect(DELEGATED)


def test_a_repr_is_short_whatever_is_in_a_result(report: results.Inspection) -> None:
    assert repr(report).startswith(f"<etstream.results.Inspection: file='{str(DELEGATED)[:20]}")
    many = Table(report.parts * 1000)
    large = dataclasses.replace(report, file="x" * 10_000, parts=many, notes=("y" * 1000,) * 1000)
    assert len(repr(large)) < 1000
    assert len(repr(many)) < 1000 and repr(many).endswith(f"... and {len(many) - 3} more]")


def test_a_notebook_shows_fields_and_lists_as_tables(report: results.Inspection) -> None:
    page = report._repr_html_()
    assert f"<td>{DELEGATED}</td>" in page and "<th>alignment</th>" in page and "XnnpackBackend" in page
    odd = dataclasses.replace(report.parts[0], what="<script>")
    many = Table([odd] * 10_000)._repr_html_()
    assert many.count("<tr>") == 52 and "<script>" not in many and "... and 9950 more" in many
    plan = etstream.extract(DELEGATED, "forward/delegate 0", dry_run=True)
    assert "<th>extents</th>" in plan._repr_html_() and "delegate" not in repr(plan)


def test_pandas_has_a_column_for_each_field(report: results.Inspection) -> None:
    assert report.program is not None
    tensors = report.program.methods[0].tensors
    for table in (pandas.DataFrame([each.to_dict() for each in tensors]), pandas.DataFrame(tensors)):
        assert list(table.columns) == [field.name for field in dataclasses.fields(tensors[0])]
        assert table["size"].sum() == sum(each.size for each in tensors)


def test_results_are_values(report: results.Inspection) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.size = 1  # type: ignore[misc]
    for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
        assert again == report and hash(again) == hash(report) and again.to_dict() == report.to_dict()


def test_reports_of_checks_are_those_of_the_command(command: Command, tmp_path: Path) -> None:
    def reported(*arguments: str | Path) -> Any:
        return json.loads(command(*arguments, "--json").stdout)

    bad = tmp_path / "bad.pte"
    bad.write_bytes(DELEGATED.read_bytes()[:-40])
    bundle, outputs, fat = tmp_path / "m.bpte", tmp_path / "outputs", tmp_path / "m.fat"
    etstream.bundle(EXAMPLES / "model.pte", EXAMPLES / "cases.json", bundle)
    for file in (DELEGATED, bundle, bad):
        assert etstream.verify(file).to_dict() == reported("verify", file)
    outputs.mkdir()
    scores = np.load(EXAMPLES / "scores_0.npy")
    scores[0, :2] = [np.inf, scores[0, 1] + 1]
    np.save(outputs / "output_0_0.npy", scores)
    found = etstream.compare_outputs(bundle, outputs)
    assert found.to_dict() == reported("compare", bundle, "--outputs", outputs)
    assert found.runs[0].outputs[0].first is not None
    assert found.runs[0].outputs[0].first.actual == float("inf")
    plan = etstream.bundle(EXAMPLES / "model.pte", EXAMPLES / "cases.json", dry_run=True)
    given = ("bundle", EXAMPLES / "model.pte", "--cases", EXAMPLES / "cases.json", "--dry-run")
    theirs = reported(*given)
    assert plan.to_dict() == {**theirs, "memory": plan.memory}
    programs = (EXAMPLES / "model.pte", DELEGATED)
    etstream.pte(programs[0], tmp_path / "other.pte", segment_alignment=4096)
    both = (programs[0], tmp_path / "other.pte")
    shared = etstream.share(both, fat=fat, weights_to=tmp_path / "w.ptd")
    told = reported("share", *both, "--dry-run")
    assert shared.report.to_dict() == told


def test_numbers_of_json_and_of_python() -> None:
    compared = etstream.compare(np.array([1j]), np.array([complex(1, np.inf)]))
    assert compared.first is not None and compared.first.actual == complex(1, np.inf)
    assert compared.first.to_dict()["actual"] == [1.0, "inf"]
    assert json.loads(json.dumps(compared.to_dict())) == compared.to_dict()
