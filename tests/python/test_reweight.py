# SPDX-License-Identifier: BSD-3-Clause
"""explain() and reweight() do what the command does, with programs and checkpoints in all their forms."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import numpy as np
import pytest
from conftest import Command
from etstream.results import TensorOrigin

Weights = dict[str, Any]


@pytest.fixture(scope="session")
def old(program: Path) -> Weights:
    """Returns the weights of the program, by names."""
    return {f"layers.{i}": tensor.numpy() for i, tensor in enumerate(etstream.Checkpoint(program).tensors)}


@pytest.fixture(scope="session")
def new(old: Weights) -> Weights:
    """Returns other weights for the program."""
    return {name: values + 1 for name, values in old.items()}


@pytest.fixture
def moved_out(program: Path, tmp_path: Path) -> list[Path]:
    """Writes the program without its constants, and two files of these; returns their paths."""
    thin = tmp_path / "thin.pte"
    keys = {str(i + 1): f"layers.{i}" for i in range(4)}
    etstream.pte(program, thin, constants_to=tmp_path / "w.ptd", keys=keys, split_max_size=20800)
    return [thin, *sorted(tmp_path.glob("w-*.ptd"))]


def saved(weights: Weights, path: Path) -> Path:
    etstream.ptd(weights, path, to="safetensors")
    return path


def with_weights(file: Path, old: Weights, new: Weights) -> bytes:
    """Returns the file with the new weights in the places of the old ones."""
    content = file.read_bytes()
    for name, values in old.items():
        content = content.replace(values.tobytes(), new[name].tobytes())
    return content


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_payloads_that_nothing_explains_stay_if_they_are_kept(program: Path, old: Weights, tmp_path: Path) -> None:
    some = {name: old[name] for name in list(old)[1:]}
    with pytest.raises(etstream.UnsupportedError, match="name it with keep$"):
        etstream.reweight(program, was=some, now=some, dry_run=True)
    open_ones = [one.label for one in etstream.explain(program, by=some).payloads if not one.explained]
    plan = etstream.reweight(program, was=some, now=some, output=tmp_path / "kept.pte", keep=open_ones)
    assert (tmp_path / "kept.pte").read_bytes() == program.read_bytes()
    assert [one.label for one in plan.origins.payloads if one.constant == "kept as it was"] == open_ones
    with pytest.raises(etstream.InvalidArgumentError, match="found 'none'; the nearest first: "):
        etstream.reweight(program, was=some, now=some, dry_run=True, keep=["none"])


def test_the_origins_are_those_that_the_command_reports(
    program: Path, old: Weights, command: Command, tmp_path: Path
) -> None:
    some = saved({name: old[name] for name in ("layers.0", "layers.2")} | {"more": old["layers.1"]}, tmp_path / "w")
    origins = etstream.explain(program, by=some)
    reported = command("explain", program, "--by", some, "--json")
    assert reported.returncode == 1 and not origins
    report = json.loads(reported.stdout)
    assert origins.to_dict() == {**report, "names": origins.names}
    assert origins.unused == ()
    assert [one.explained for one in origins.payloads] == [True, True, True, False]
    assert origins.payloads[1].tensors == (TensorOrigin(tensor="more", steps=()),)
    assert etstream.explain(program, by=old)
    bundle = tmp_path / "bundle.bpte"
    etstream.bundle(program, [], bundle)
    assert [one.tensors for one in etstream.explain(bundle, by=old).payloads] == [
        one.tensors for one in etstream.explain(program, by=old).payloads
    ]
    assert etstream.explain(program, by={**old, "unused": np.ones(7)}).unused == ("unused",)


def halves(weights: Weights, folder: Path) -> list[Path]:
    names = sorted(weights)
    parts = {"a.safetensors": names[:2], "b.safetensors": names[2:]}
    return [saved({name: weights[name] for name in part}, folder / file) for file, part in parts.items()]


def in_a_folder(weights: Weights, folder: Path) -> Path:
    (folder / "model").mkdir()
    saved(weights, folder / "model" / "model.safetensors")
    return folder / "model"


def as_ptd(weights: Weights, folder: Path) -> str:
    etstream.save_ptd(weights, folder / "w.ptd")
    return str(folder / "w.ptd")


CHECKPOINTS: dict[str, Callable[[Weights, Path], Any]] = {
    "path": lambda weights, folder: saved(weights, folder / "w.safetensors"),
    "two paths": halves,
    "folder": in_a_folder,
    "tensor data": as_ptd,
    "tensors": lambda weights, folder: weights,
    "Checkpoint": lambda weights, folder: etstream.Checkpoint(saved(weights, folder / "w.safetensors")),
    "both": lambda weights, folder: (halves(weights, folder)[0], weights),
}


@pytest.mark.parametrize("form", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_checkpoint_has_all_forms_that_weights_have(
    form: Callable[[Weights, Path], Any], program: Path, old: Weights, new: Weights, tmp_path: Path
) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    was, now = form(old, tmp_path / "old"), form(new, tmp_path / "new")
    assert etstream.explain(program, by=was) and not etstream.explain(program, by=now)
    output = io.BytesIO()
    plan = etstream.reweight(program, was=was, now=now, output=output)
    assert output.getvalue() == with_weights(program, old, new) == bytes(plan.program)
    assert (plan.weights, plan.replaced, bool(plan.origins)) == ((), 4, True)


def test_the_files_are_those_of_the_command(
    moved_out: list[Path], old: Weights, new: Weights, command: Command, tmp_path: Path
) -> None:
    was, now = saved(old, tmp_path / "old.safetensors"), saved(new, tmp_path / "new.safetensors")
    out = tmp_path / "out"
    out.mkdir()
    ours, theirs = ([out / f"{who}-{file.name}" for file in moved_out] for who in ("our", "their"))
    assert len(ours) == 3
    plan = etstream.reweight(*moved_out[:2], was=was, now=now, output=ours[0], weights_to=ours[1:])
    to = [word for path in theirs[1:] for word in ("--weights-to", path)]
    ran = command("reweight", *moved_out[:2], "--was", was, "--now", now, "-o", theirs[0], *to)
    assert ran.returncode == 0, ran.stderr
    expected = [with_weights(file, old, new) for file in moved_out]
    assert [path.read_bytes() for path in ours] == [path.read_bytes() for path in theirs] == expected
    assert expected[0] == moved_out[0].read_bytes()
    assert [bytes(each) for each in (plan.program, *plan.weights)] == expected
    assert etstream.verify(*ours)


def test_files_may_be_in_memory_and_keep_their_order(
    moved_out: list[Path], old: Weights, new: Weights, tmp_path: Path
) -> None:
    thin, first, second = moved_out
    expected = [with_weights(file, old, new) for file in (thin, second, first)]
    for path, partial in ((first, True), (shutil.copy(first, tmp_path / "first.ptd"), False)):
        outputs = [io.BytesIO(), io.BytesIO(), io.BytesIO()]
        given: list[Any] = [thin.read_bytes(), second.read_bytes(), path]
        etstream.reweight(*given, was=old, now=new, output=outputs[0], weights_to=outputs[1:], partial=partial)
        assert [output.getvalue() for output in outputs] == expected
        assert etstream.explain(*given, by=old, partial=partial)
    with pytest.raises(etstream.InvalidArgumentError, match=r"w-00001-of-00002\.ptd"):
        etstream.explain(thin, second, by=old)


def test_a_plan_writes_nothing_and_knows_all(moved_out: list[Path], old: Weights, new: Weights, tmp_path: Path) -> None:
    before = names_in(tmp_path)
    plan = etstream.reweight(*moved_out[:2], was=old, now=new, dry_run=True)
    assert [bytes(each) for each in plan.weights] == [with_weights(file, old, new) for file in moved_out[1:]]
    assert plan.origins == etstream.explain(*moved_out[:2], by=old)
    assert plan.replaced == 4
    assert names_in(tmp_path) == before


def test_one_file_of_weights_goes_to_a_path(program: Path, old: Weights, new: Weights, tmp_path: Path) -> None:
    thin, weights = tmp_path / "thin.pte", tmp_path / "w.ptd"
    etstream.pte(program, thin, constants_to=weights, keys={str(i + 1): f"layers.{i}" for i in range(4)})
    output = tmp_path / "new.pte"
    etstream.reweight(thin, weights, was=old, now=new, output=output, weights_to=str(tmp_path / "new.ptd"))
    assert (tmp_path / "new.ptd").read_bytes() == with_weights(weights, old, new)
    assert etstream.explain(output, tmp_path / "new.ptd", by=new)


@pytest.mark.parametrize("form", ["memory", "open file", "descriptor"])
def test_one_file_of_weights_goes_to_an_output_of_any_form(
    form: str, program: Path, old: Weights, new: Weights, tmp_path: Path
) -> None:
    thin, weights = tmp_path / "thin.pte", tmp_path / "w.ptd"
    etstream.pte(program, thin, constants_to=weights, keys={str(i + 1): f"layers.{i}" for i in range(4)})
    made = tmp_path / "new.ptd"
    with io.BytesIO() if form == "memory" else open(made, "wb") as output:
        given = output.fileno() if form == "descriptor" else output
        etstream.reweight(thin, weights, was=old, now=new, output=io.BytesIO(), weights_to=given)
        content = output.getvalue() if isinstance(output, io.BytesIO) else None
    assert (content or made.read_bytes()) == with_weights(weights, old, new)


def test_a_list_of_paths_is_several_files_of_weights(
    moved_out: list[Path], old: Weights, new: Weights, tmp_path: Path
) -> None:
    thin, *weights = moved_out
    expected = [with_weights(file, old, new) for file in moved_out]
    origins = etstream.explain(thin, *weights, by=old)
    for given in (weights, tuple(map(str, weights)), [weights[0], weights[1].read_bytes()]):
        partial = bytes in map(type, given)
        assert etstream.verify(thin, given, partial=partial)
        assert len(etstream.explain(thin, given, by=old, partial=partial).payloads) == len(origins.payloads)
        plan = etstream.reweight(thin, given, was=old, now=new, partial=partial, dry_run=True)
        assert [bytes(each) for each in (plan.program, *plan.weights)] == expected
        outputs = [io.BytesIO(), io.BytesIO()]
        etstream.reweight(thin, given, was=old, now=new, output=io.BytesIO(), weights_to=outputs, partial=partial)
        assert [output.getvalue() for output in outputs] == expected[1:]
        with pytest.raises(etstream.InvalidArgumentError, match="weights_to: expected as many .*, 2, found 1"):
            to = {"output": tmp_path / "new.pte", "weights_to": tmp_path / "y.ptd"}
            etstream.reweight(thin, given, was=old, now=new, partial=partial, **to)
    assert etstream.verify(thin.read_bytes(), weights) and not (tmp_path / "y.ptd").exists()


def test_a_list_of_bytes_is_the_parts_of_one_file_of_weights(moved_out: list[Path], old: Weights) -> None:
    thin, *weights = moved_out
    parts = [[file.read_bytes()[:100], etstream.Source(file)[100:]] for file in weights]
    assert etstream.verify(thin, *parts)
    assert etstream.explain(thin, *parts, by=old)
    etstream.pte(thin, back := io.BytesIO(), constants_from=parts)
    assert etstream.verify(back.getvalue())


def test_keys_that_are_hashes_become_those_of_the_new_bytes(
    program: Path, old: Weights, new: Weights, tmp_path: Path
) -> None:
    def pair(name: str) -> list[Path]:
        return [tmp_path / f"{name}.pte", tmp_path / f"{name}.ptd"]

    etstream.pte(program, pair("old")[0], constants_to=pair("old")[1])
    etstream.pte(with_weights(program, old, new), pair("new")[0], constants_to=pair("new")[1])
    output, weights_to = pair("made")
    etstream.reweight(*pair("old"), was=old, now=new, output=output, weights_to=weights_to)
    assert [path.read_bytes() for path in pair("made")] == [path.read_bytes() for path in pair("new")]
    assert etstream.verify(*pair("made"))


def test_new_tensors_that_reach_no_payload_are_a_warning(program: Path, old: Weights, new: Weights) -> None:
    with pytest.warns(UserWarning, match=r"found 1 tensor in neither: 'lora'") as warned:
        etstream.reweight(program, was=old, now=new | {"lora": np.ones(3)}, dry_run=True)
    assert warned[0].filename == __file__


def test_progress_counts_all_files(moved_out: list[Path], old: Weights, new: Weights) -> None:
    reports: list[tuple[int, int]] = []
    outputs = [io.BytesIO(), io.BytesIO()]
    etstream.reweight(
        *moved_out[:2], was=old, now=new, output=io.BytesIO(), weights_to=outputs,
        progress=lambda done, total: reports.append((done, total)),
    )
    total = sum(file.stat().st_size for file in moved_out)
    assert reports[-1] == (total, total) and {each for _, each in reports} == {total}


def test_all_files_appear_or_none_does(moved_out: list[Path], old: Weights, new: Weights, tmp_path: Path) -> None:
    before = names_in(tmp_path)

    def to(*outputs: Any, **options: Any) -> None:
        etstream.reweight(*moved_out[:2], was=old, now=new, output=outputs[0], weights_to=outputs[1:], **options)

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > total - 1000:
            raise Stop

    new_paths = [tmp_path / name for name in ("new.pte", "new-1.ptd", "new-2.ptd")]
    with pytest.raises(etstream.NotFoundError, match="no folder"):
        to(tmp_path / "none" / "new.pte", *new_paths[1:])
    with pytest.raises(Stop):
        to(*new_paths, progress=stop)
    with pytest.raises(etstream.TooLargeError):
        to(*new_paths, max_disk=1000)
    with pytest.raises(etstream.InvalidArgumentError, match="two outputs"):
        to(new_paths[0], new_paths[1], new_paths[1])
    for several in (new_paths[:1], new_paths[:2]):
        with pytest.raises(etstream.InvalidArgumentError, match=r"weights_to: expected as many .*, 2, found [01]"):
            to(*several)
    for wrong, found in ((b"w", "b'w' alone"), (1.5, "float"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"^weights_to: expected outputs, found {found}"):
            etstream.reweight(*moved_out[:2], was=old, now=new, output=new_paths[0], weights_to=wrong)
    assert names_in(tmp_path) == before


def test_no_output_is_an_input(moved_out: list[Path], old: Weights, new: Weights, tmp_path: Path) -> None:
    was, now = saved(old, tmp_path / "old.safetensors"), saved(new, tmp_path / "new.safetensors")
    inputs = [*moved_out, was, now]
    before = [file.read_bytes() for file in inputs]
    others = [tmp_path / "new.pte", tmp_path / "new-1.ptd", tmp_path / "new-2.ptd"]
    for opened in (False, True):
        given: list[Any] = [etstream.Checkpoint(path) if opened else path for path in (was, now)]
        for file in inputs:
            for place in range(3):
                outputs = [*others[:place], file, *others[place + 1 :]]
                with pytest.raises(etstream.InvalidArgumentError, match=r"the output.* is the input"):
                    etstream.reweight(
                        *moved_out[:2], was=given[0], now=given[1], output=outputs[0], weights_to=outputs[1:]
                    )
    assert [file.read_bytes() for file in inputs] == before
    assert not any(path.exists() for path in others)


def without(weights: Weights, name: str) -> Weights:
    return {key: values for key, values in weights.items() if key != name}


def test_weights_that_do_not_fit_are_refused(program: Path, old: Weights, new: Weights, tmp_path: Path) -> None:
    twins = {**old, "twin": old["layers.1"]}, {**new, "twin": old["layers.1"]}
    invalid, unsupported = etstream.InvalidArgumentError, etstream.UnsupportedError
    wrong: list[tuple[Weights, Weights, type[etstream.Error], str]] = [
        (old, without(new, "layers.1"), invalid, "expected a tensor 'layers.1'"),
        (old, {**new, "layers.1": np.ones(9, np.float32)}, invalid, "'layers.1': expected float32 .*, found float32"),
        (old, {**new, "layers.1": np.ones(8, np.int32)}, invalid, "'layers.1': expected float32 .*, found int32"),
        (*twins, invalid, "'layers.1' or 'twin', which were equal and differ now"),
        (new, old, unsupported, "expected tensors that give constant"),
        (without(old, "layers.3"), new, unsupported, "expected tensors that give constant"),
    ]
    for was, now, kind, message in wrong:
        with pytest.raises(kind, match=message):
            etstream.reweight(program, was=was, now=now, output=tmp_path / "new.pte")
    assert names_in(tmp_path) == []


def test_scales_beside_new_weights_are_not_left_out(program: Path, old: Weights, tmp_path: Path) -> None:
    quantised = {name: etstream.Tensor("float8_e4m3fn", list(one.shape), bytes(one.size)) for name, one in old.items()}
    named = {f"{name}.weight": one for name, one in quantised.items()}
    scales = {f"{name}.weight_scale_inv": np.ones([1, 1], np.float32) for name in old}
    new = saved(named | scales, tmp_path / "new.safetensors")  # type: ignore[arg-type]
    with pytest.raises(etstream.UnsupportedError, match="'layers.0.weight' has a scale beside it"):
        etstream.reweight(program, was={f"{name}.weight": one for name, one in old.items()}, now=new, dry_run=True)


def test_files_of_other_kinds_are_refused(program: Path, old: Weights, moved_out: list[Path], tmp_path: Path) -> None:
    weights = saved(old, tmp_path / "w.safetensors")
    calls: list[Callable[[], object]] = [
        lambda: etstream.explain(weights, by=weights),
        lambda: etstream.explain(program, weights, by=weights),
        lambda: etstream.explain(program, by=shutil.copy(__file__, tmp_path / "w.py")),
    ]
    for call in calls:
        with pytest.raises(etstream.UnsupportedError, match=r"safetensors|w\.py"):
            call()
    with pytest.raises(etstream.NotFoundError, match=r"layers\.0"):
        etstream.explain(moved_out[0], by=weights)


def test_origins_do_not_change(program: Path, old: Weights) -> None:
    origins = etstream.explain(program, by=old)
    with pytest.raises(dataclasses.FrozenInstanceError):
        origins.unused = ("a",)  # type: ignore[misc]
    assert hash(origins) == hash(etstream.explain(program, by=old))
