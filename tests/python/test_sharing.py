# SPDX-License-Identifier: BSD-3-Clause
"""Weights that programs have in common go to one file, with the programs, or nothing does."""

from __future__ import annotations

from pathlib import Path

import etstream
import pytest
from conftest import Command


@pytest.fixture
def programs(program: Path, tmp_path: Path) -> list[Path]:
    """Writes two programs with the same weights."""
    plain, aligned = tmp_path / "plain.pte", tmp_path / "aligned.pte"
    plain.write_bytes(program.read_bytes())
    etstream.pte(program, aligned, segment_alignment=4096)
    return [plain, aligned]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_programs_weights_and_a_container_are_written_together(programs: list[Path], tmp_path: Path) -> None:
    thin, weights, fat = tmp_path / "thin", tmp_path / "shared.ptd", tmp_path / "model.fat"
    plan = etstream.share(programs, weights, out_dir=thin, fat=fat, least_size=1)
    assert names_in(thin) == ["aligned.pte", "plain.pte"]
    for name, planned in plan.programs.items():
        assert (thin / f"{name}.pte").read_bytes() == bytes(planned)
        assert etstream.verify(thin / f"{name}.pte", weights)
        assert bytes(etstream.FatContainerFile(fat)[name]) == bytes(planned)
    assert plan.weights is not None and plan.container is not None
    assert (weights.stat().st_size, fat.stat().st_size) == (plan.weights.size, plan.container.size)
    assert plan.report.size_after == sum(each.size for each in plan.programs.values()) + plan.weights.size
    etstream.pte(thin / "plain.pte", tmp_path / "back.pte", constants_from=[weights])
    assert (tmp_path / "back.pte").read_bytes() == programs[0].read_bytes()


def test_names_and_an_alignment_give_what_the_command_gives(
    programs: list[Path], command: Command, tmp_path: Path
) -> None:
    named = [f"xnnpack={programs[0]}", f"own={programs[1]}"]
    out = tmp_path / "out"
    ran = command("share", *named, "--weights-to", tmp_path / "w.ptd", "--out-dir", out, "--fat", tmp_path / "w.fat", "--align", "4K")
    assert ran.returncode == 0, ran.stderr
    by_name = {"xnnpack": programs[0], "own": programs[1]}
    etstream.share(by_name, tmp_path / "v.ptd", out_dir=tmp_path / "out2", fat=tmp_path / "v.fat", align=4096)
    assert names_in(out) == names_in(tmp_path / "out2") == ["own.pte", "xnnpack.pte"]
    assert (tmp_path / "w.fat").read_bytes() == (tmp_path / "v.fat").read_bytes()
    assert all(payload.offset % 4096 == 0 for payload in etstream.FatContainerFile(tmp_path / "w.fat").payloads)


def test_the_plan_and_its_report_tell_what_is_shared_without_writing(programs: list[Path], tmp_path: Path) -> None:
    before = names_in(tmp_path)
    plan = etstream.share({"a": programs[0].read_bytes(), "b": programs[1]}, dry_run=True)
    assert plan.container is None
    assert [each.programs for each in plan.report.shared] == [("a", "b")]
    assert {each.reason for each in plan.report.kept} == {"small"}
    assert names_in(tmp_path) == before


def test_programs_that_share_nothing_stay_as_they_are(programs: list[Path], tmp_path: Path) -> None:
    plan = etstream.share({"a": programs[0], "b": programs[1]}, least_size=1 << 20, dry_run=True)
    assert plan.weights is None
    assert bytes(plan.programs["a"]) == programs[0].read_bytes()
    with pytest.raises(etstream.InvalidArgumentError, match="no weights in common"):
        etstream.share(programs, tmp_path / "w.ptd", out_dir=tmp_path, least_size=1 << 20)


def test_what_makes_no_sense_is_refused_and_leaves_nothing(programs: list[Path], tmp_path: Path) -> None:
    before = names_in(tmp_path)
    new = tmp_path / "new.ptd"
    with pytest.raises(etstream.InvalidArgumentError, match="give out_dir"):
        etstream.share(programs, new)
    with pytest.raises(etstream.InvalidArgumentError, match="two programs or more, found 1"):
        etstream.share(programs[:1], new, fat=tmp_path / "new.fat")
    with pytest.raises(etstream.InvalidArgumentError, match="is the input"):
        etstream.share(programs, new, out_dir=tmp_path)
    with pytest.raises(etstream.InvalidArgumentError, match="two outputs"):
        etstream.share(programs, new, fat=new)
    with pytest.raises(etstream.InvalidArgumentError, match="two programs are called 'plain'"):
        etstream.share([programs[0], programs[0]], new, fat=tmp_path / "new.fat")
    with pytest.raises(etstream.InvalidArgumentError, match="expected a name of 1 to 32 characters"):
        etstream.share({"é": programs[0], "b": programs[1]}, new, fat=tmp_path / "new.fat")
    with pytest.raises(etstream.NotFoundError, match="no folder"):
        etstream.share(programs, new, out_dir=tmp_path / "thin", fat=tmp_path / "none" / "new.fat")
    with pytest.raises(etstream.CorruptError, match="offset"):
        etstream.share({"a": programs[0].read_bytes()[:5000], "b": programs[1]}, dry_run=True)
    assert names_in(tmp_path) == before


@pytest.mark.parametrize("name", ["../x", "/x", "a/b"])
def test_names_of_a_container_lead_nowhere_else(name: str, programs: list[Path], tmp_path: Path) -> None:
    container = tmp_path / "in.fat"
    etstream.fat({name: programs[0], "b": programs[1]}, container)
    before = names_in(tmp_path)
    payloads = etstream.FatContainerFile(container)
    with pytest.raises(etstream.InvalidArgumentError, match="expected the name of a file in .* and no path"):
        etstream.share(payloads, tmp_path / "w.ptd", out_dir=tmp_path / ("n" * 3), least_size=1)
    assert names_in(tmp_path) == before


def test_what_is_shared_may_be_in_shards(programs: list[Path], command: Command, tmp_path: Path) -> None:
    options = ["--weights-to", tmp_path / "w.ptd", "--out-dir", tmp_path / "out", "--split-max-size", "20480", "--least-size", "1"]
    ran = command("share", *programs, *options)
    assert ran.returncode == 0, ran.stderr
    plan = etstream.share(
        programs, tmp_path / "v.ptd", out_dir=tmp_path / "out2", least_size=1, split_max_size=20480
    )
    assert plan.weights is None and len(plan.shards) > 1
    ours, theirs = (sorted(tmp_path.glob(f"{name}-*.ptd")) for name in "vw")
    assert [path.read_bytes() for path in ours] == [path.read_bytes() for path in theirs]
    assert len(ours) == len(plan.shards) and etstream.verify(tmp_path / "out2" / "plain.pte", ours[0])
    with pytest.raises(TypeError, match="shards are several files"):
        etstream.share(programs, 1, out_dir=tmp_path / "out3", split_max_size=20480)
