# SPDX-License-Identifier: BSD-3-Clause
"""Each function gives what the command of its name gives: the same report, the same bytes, the same message."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from conftest import EXAMPLES, Command

import etstream
import etstream.executorch

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "program.fbs"
CASES = EXAMPLES / "cases.json"
DELEGATED = Path(__file__).resolve().parents[1] / "golden" / "delegated_program" / "program.pte"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def bundle(folder: Path, program: Path, cases: Path) -> Path:
    shutil.copy(program, folder)
    shutil.copy(DELEGATED, folder / "delegated.pte")
    etstream.bundle(program, cases, path := folder / "model.bpte")
    return path


@pytest.fixture(scope="module")
def weights(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    tensors = {f"layers.{i}.weight": rng.standard_normal((8, 4), np.float32) for i in range(4)}
    tensors["layers.3.weight"] = tensors["layers.0.weight"]
    safetensors.numpy.save_file(tensors, path := folder / "weights.safetensors")
    return path


def reported(command: Command, *arguments: str | Path) -> Any:
    return json.loads(command(*arguments, "--json").stdout)


def test_inspect(command: Command, program: Path, bundle: Path, weights: Path) -> None:
    for file in (program, bundle, weights):
        assert etstream.inspect(file).to_dict() == reported(command, "inspect", file)
    report = etstream.inspect(bundle, duplicates=True)
    assert report.to_dict() == reported(command, "inspect", bundle, "--duplicates")
    assert report.duplicates == () and report.methods[0].name == "forward"
    assert etstream.inspect(program.read_bytes()) == replace(etstream.inspect(program), file="a bytes")


def test_inspect_writes_the_page_of_the_command(command: Command, bundle: Path, tmp_path: Path) -> None:
    command("inspect", bundle, "--html", tmp_path / "command.html")
    report = etstream.inspect(bundle, html=tmp_path / "python.html")
    assert report == etstream.inspect(bundle)
    assert (tmp_path / "python.html").read_bytes() == (tmp_path / "command.html").read_bytes()


def test_graph(command: Command, program: Path, bundle: Path) -> None:
    assert etstream.graph(bundle).to_dict() == reported(command, "inspect", program, "--graph", "forward")
    dot = command("inspect", program, "--graph", "forward").stdout
    assert etstream.graph(program, "forward", format="dot") == dot
    with pytest.raises(ValueError, match="found 'svg'"):
        etstream.graph(program, format="svg")  # type: ignore[call-overload]


def test_memory_budget(command: Command, program: Path, bundle: Path) -> None:
    for file in (program, bundle):
        assert etstream.memory_budget(file).to_dict() == reported(command, "inspect", file, "--budget", "--json")
    definitions = command("inspect", program, "--budget", "--format", "c").stdout
    assert etstream.memory_budget(program, format="c") == definitions


def test_diff(command: Command, folder: Path, program: Path, bundle: Path) -> None:
    etstream.pte(program, other := folder / "other.pte", segment_alignment=4096)
    found = etstream.diff(program, other)
    assert found.to_dict() == reported(command, "diff", program, other)
    assert found.same_content and not found.same_bytes and found.differences
    ignoring = etstream.diff(program, other, ignore_layout=True)
    assert ignoring.to_dict() == reported(command, "diff", program, other, "--ignore-layout")
    assert etstream.diff(program, io.BytesIO(program.read_bytes())).same_bytes
    with pytest.raises(etstream.InvalidArgumentError):
        etstream.diff(program, bundle)


def test_verify(command: Command, program: Path) -> None:
    content = bytearray(program.read_bytes())
    content[-1:] = b""
    damaged = etstream.verify(content)
    assert not damaged and etstream.verify(program)
    assert damaged.errors and not etstream.verify(program).warnings


def test_segments_are_read(program: Path, bundle: Path) -> None:
    (segment,) = etstream.ProgramFile(bundle).segments
    content = program.read_bytes()[segment.offset :][: segment.size]
    assert (segment.use, segment.data.read()) == ("constants", content)


def test_the_data_of_a_delegate_is_read() -> None:
    (payload,) = etstream.ProgramFile(DELEGATED).payloads
    assert (payload.method, payload.delegate, payload.backend) == ("forward", 0, "XnnpackBackend")
    assert (payload.format, [part.name for part in payload.parts]) == ("a graph (XH00)", ["graph", "constants"])
    assert [(fact.name, fact.value) for fact in payload.facts] == [("nodes", 1)]
    (shown,) = etstream.inspect(DELEGATED).payloads
    assert payload.to_dict() == {**shown.to_dict(), "data": payload.data.name} and len(payload.data) == payload.size
    part = payload.parts[0]
    etstream.extract(DELEGATED, part.path, graph := io.BytesIO())
    assert payload.data.read(part.offset, part.size) == graph.getvalue()


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        ("segments/9", "there is no piece 'segments/9'; near are 'segments/0', "),
        ("x", "there is no piece 'x'; there are 'flatbuffer', 'segments/0', "),
        ("forward/delegate 0/weights", "near are 'forward/delegate 0/"),
    ],
)
def test_what_is_not_there_is_not_extracted(piece: str, message: str) -> None:
    for error in (etstream.NoSuchNameError, LookupError):
        with pytest.raises(error, match=message):
            etstream.extract(DELEGATED, piece, io.BytesIO())


def test_test_cases(folder: Path, bundle: Path) -> None:
    etstream.BundledProgramFile(bundle).write_test_cases(folder / "cases")
    (suite,) = etstream.read_test_cases(folder / "cases" / "cases.json")
    assert suite.method_name == "forward" and len(suite.test_cases) == 2
    with pytest.raises(etstream.NotFoundError):
        etstream.read_test_cases(folder / "none.json")


# A task, its file and output, the options in Python and those of the command.
SAME_BYTES: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("extract", "model.bpte", "out.pte", {"piece": "program"}, "program -o"),
    ("extract", "model.pte", "out", {"piece": "segments/0"}, "segments/0 -o"),
    ("extract", "weights.safetensors", "out", {"piece": "named/layers.1.weight"}, "named/layers.1.weight -o"),
    ("convert", "model.bpte", "out.bpte", {"to": "segmented"}, "--to segmented -o"),
    ("pte", "model.pte", "out.pte", {}, "-o"),
    ("pte", "model.pte", "out.pte", {"segment_alignment": 4096}, "--segment-alignment 4096 -o"),
    ("pte", "model.pte", "out.pte", {"constant_tensor_alignment": 64, "strict_alignment": True},
     "--constant-tensor-alignment 64 --strict-alignment -o"),
    ("pte", "delegated.pte", "out.pte", {"delegates": "inline", "delegate_alignment": 32},
     "--delegates inline --delegate-alignment 32 -o"),
    ("pte", "model.pte", "out.pte", {"delegates": "segments", "strip_stack_traces": True},
     "--delegates segments --strip-stack-traces -o"),
    ("pte", "model.pte", "out.pte", {"as_of": "1.1"}, "--as-of 1.1 -o"),
    ("pte", "model.pte", "out.pte", {"as_of": "1.3", "flatbuffers": "25.2.10"}, "--as-of 1.3 --flatbuffers 25.2.10 -o"),
    ("bundle", "model.pte", "out.bpte", {"cases": CASES, "as_of": "1.3"}, f"--cases {CASES} --as-of 1.3 -o"),
    ("bundle", "model.pte", "out.bpte", {"cases": CASES, "flatbuffers": "25.2.10"},
     f"--cases {CASES} --flatbuffers 25.2.10 -o"),
    ("bundle", "model.pte", "out.bpte", {"cases": CASES}, f"--cases {CASES} --flatbuffers {version('flatbuffers')} -o"),
    ("ptd", "weights.safetensors", "out.ptd", {}, "-o"),
    ("ptd", "weights.safetensors", "out.ptd", {"dedup": False, "segment_alignment": 4096},
     "--no-dedup --segment-alignment 4096 -o"),
    ("ptd", "weights.safetensors", "out.ptd", {"as_of": "1.0"}, "--as-of 1.0 -o"),
    ("ptd", "weights.safetensors", "out.ptd", {"only": "*.1.*", "dtype": "bf16"}, "--only *.1.* --dtype bf16 -o"),
    ("ptd", "weights.safetensors", "out.ptd", {"dtype": {"*": "float16", "*.2.*": "float64"}},
     "--dtype float16 --dtype *.2.*=float64 -o"),
    ("ptd", "weights.safetensors", "out.safetensors", {"to": "safetensors"}, "--to safetensors -o"),
    ("ptd", "weights.safetensors", "out.pth", {}, "-o"),
    ("ptd", "weights.safetensors", "out.ptd", {"map": {"layers.*.weight": "l.*.w"}}, "--map rules.json -o"),
]  # fmt: skip


@pytest.mark.usefixtures("bundle", "weights")
@pytest.mark.parametrize(("task", "file", "output", "options", "arguments"), SAME_BYTES, ids=str)
def test_bytes_are_those_of_the_command(
    command: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    file: str,
    output: str,
    options: dict[str, Any],
    arguments: str,
) -> None:
    monkeypatch.chdir(folder)
    Path("rules.json").write_text(json.dumps(options.get("map")))
    plan = getattr(etstream, task)(file, output=output, **options)
    made = Path(output).read_bytes()
    Path(output).unlink()
    command(task, file, *arguments.split(), output)
    assert made == Path(output).read_bytes()
    assert getattr(plan, "program", plan).size == len(made)
    assert output == "out" or etstream.verify(output)


def test_constants_out_and_in(command: Command, folder: Path, program: Path) -> None:
    outputs = [folder / name for name in ("lean.pte", "lean.ptd", "command.pte", "command.ptd")]
    (folder / "keys.json").write_text(json.dumps(keys := {"1": "first"}))
    etstream.pte(program, outputs[0], constants_to=outputs[1], keys=keys)
    command("pte", program, "-o", outputs[2], "--constants-to", outputs[3], "--keys", folder / "keys.json")
    content = [path.read_bytes() for path in outputs]
    assert content[:2] == content[2:] and b"first" in content[1]
    assert "first" in etstream.ProgramFile(outputs[0]).external_keys
    assert etstream.verify(outputs[0], outputs[1])
    etstream.pte(content[0], back := io.BytesIO(), constants_from=[content[1]])
    assert etstream.ProgramFile(back).external_keys == []
    with pytest.raises(etstream.InvalidArgumentError, match="two outputs"):
        etstream.pte(program, outputs[0], constants_to=folder / "." / "lean.pte")
    with pytest.raises(etstream.CorruptError, match="expected"):
        etstream.pte(content[0], io.BytesIO(), constants_from=[content[1][:-1]])


@pytest.mark.parametrize("constant", ["typo", "99", "0" * 64])
def test_keys_and_patterns_of_nothing_are_errors(program: Path, weights: Path, constant: str) -> None:
    with pytest.raises(etstream.NoSuchNameError, match=f"no constant is '{constant}', which is to have the key 'a'"):
        etstream.pte(program, constants_to="w.ptd", keys={"1": "first", constant: "a"}, dry_run=True)
    with pytest.raises(etstream.NoSuchNameError, match=r"no tensor's name matches 'zz\*'"):
        etstream.ptd(weights, dtype={"*": "float16", "zz*": "float16"}, dry_run=True)


def test_both_files_appear_or_none(tmp_path: Path, program: Path) -> None:
    class Full:
        def write(self, piece: memoryview) -> None:
            raise ArithmeticError("as planned")

    with pytest.raises(ArithmeticError):
        etstream.pte(program, Full(), constants_to=tmp_path / "model.ptd")
    assert list(tmp_path.iterdir()) == []


def test_python_writes_as_the_installed_flatbuffers_does(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The tables of these integers have different sizes.
    cases = {"forward": [etstream.TestCase([1, 2, 3])]}
    written = {}
    for installed in ("25.2.10", "25.12.19"):
        monkeypatch.setattr("etstream._bundles.installed_flatbuffers", lambda installed=installed: installed)
        written[installed] = bytes(etstream.bundle(program, cases, unchecked=True, dry_run=True))
        assert written[installed] == bytes(
            etstream.bundle(program, cases, unchecked=True, flatbuffers=installed, dry_run=True)
        )
    assert written["25.2.10"] != written["25.12.19"]
    with pytest.raises(etstream.InvalidArgumentError, match="expected a release of ExecuTorch from 1.0"):
        etstream.bundle(program, cases, as_of="0.7", dry_run=True)


def test_program_from_json(command: Command, folder: Path, program: Path) -> None:
    schema = etstream.ExactJson(SCHEMA)
    schema.decompile(program, description := folder / "model.json")
    plan = etstream.pte(description, segments_from=program, dry_run=True)
    assert bytes(plan.program) == program.read_bytes()
    described = json.loads(description.read_text())
    segment = etstream.ProgramFile(program).segments[0]
    described["segments"][0]["data"] = {"file": str(program), "offset": segment.offset, "size": segment.size}
    again = etstream.pte(json.dumps(described).encode(), folder=folder, dry_run=True)
    assert bytes(again.program) == program.read_bytes()
    for arguments, error in (
        ({"drop_method": ["forward"]}, etstream.InvalidArgumentError),
        ({"drop_method": "backward"}, etstream.NoSuchNameError),
        ({"drop_method": 3}, TypeError),
        ({"keys": {"1": "a"}}, etstream.InvalidArgumentError),
        ({"delegates": "outside"}, ValueError),
        ({"segments_from": program}, etstream.InvalidArgumentError),
        ({"schema": folder / "none.fbs"}, etstream.NoSuchFileError),
    ):
        with pytest.raises(error):
            etstream.pte(program, **arguments, dry_run=True)  # type: ignore[arg-type]


def test_tensors_in_memory_are_written_as_those_in_files(folder: Path, weights: Path) -> None:
    tensors = safetensors.numpy.load_file(weights)
    in_order = {one.name: tensors[one.name] for one in etstream.Checkpoint(weights).tensors}
    expected = bytes(etstream.ptd(weights, dry_run=True))
    assert bytes(etstream.ptd(in_order, dry_run=True)) == expected
    state = {name: torch.from_numpy(tensor) for name, tensor in in_order.items()}
    names = list(state)
    parts = [{name: state[name] for name in names[:2]}, {name: in_order[name] for name in names[1:]}]
    assert bytes(etstream.ptd(parts, dry_run=True)) == expected
    assert bytes(etstream.ptd(etstream.Checkpoint(weights), dry_run=True)) == expected
    with pytest.raises(etstream.InvalidArgumentError, match=names[0]):
        etstream.ptd([state, {names[0]: state[names[0]] + 1}], dry_run=True)


def test_a_torch_file_of_a_llama_has_its_parameters_beside_it(command: Command, tmp_path: Path) -> None:
    for name in ("model", "ours", "theirs"):
        (tmp_path / name).mkdir()
    config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96, "head_dim": 16, "logit_scale": 1}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    tensors = {"tok_embeddings.weight": np.ones(4, dtype="float32")}
    safetensors.numpy.save_file(tensors, tmp_path / "model" / "model.safetensors")
    with pytest.warns(UserWarning, match="'logit_scale': not known"):
        etstream.ptd(tmp_path / "model", tmp_path / "ours" / "w.pth")
    command("ptd", tmp_path / "model", "-o", tmp_path / "theirs" / "w.pth")
    for name in ("w.pth", "params.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    assert torch.load(tmp_path / "ours" / "w.pth")["tok_embeddings.weight"].tolist() == [1, 1, 1, 1]


def test_checkpoint(weights: Path) -> None:
    checkpoint = etstream.Checkpoint(weights)
    first = checkpoint.tensors[0]
    assert (first.name, first.type, first.dtype, first.sizes, first.dim_order) == (
        *("layers.0.weight", "F32", "float32"),
        *([8, 4], [0, 1]),
    )
    assert checkpoint.files == [str(weights)] and first.data.size == 128


def test_rules_warn_of_what_they_miss(weights: Path) -> None:
    with pytest.warns(UserWarning) as caught:
        etstream.ptd(weights, map={"nothing": "something", "layers.0.*": "l.*"}, dry_run=True)
    assert [str(one.message) for one in caught] == [
        "rule 'nothing': no tensor to apply to",
        "3 tensors, such as 'layers.1.weight': no rule applies, the name stays",
    ]
    with pytest.raises(etstream.NotFoundError, match="llama"):
        etstream.ptd(weights, map="no such rules", dry_run=True)
    with pytest.raises(etstream.InvalidArgumentError, match="found 'float7'"):
        etstream.ptd(weights, dtype="float7", dry_run=True)


def test_flatbuffers(command: Command, folder: Path, program: Path) -> None:
    schema = etstream.FlatbufferText(SCHEMA)
    text = schema.decompile(program)
    arguments = ["--strict-json", "--defaults-json", SCHEMA, program, "-o", folder / "command.json"]
    command("decompile", *arguments)
    assert text.encode(errors="surrogateescape") == (folder / "command.json").read_bytes()
    command("compile", SCHEMA, folder / "command.json", "-o", folder / "command.bin")
    assert schema.compile(text.encode()) == (folder / "command.bin").read_bytes()
    assert schema.compile(folder / "command.json") == (folder / "command.bin").read_bytes()
    with pytest.raises(etstream.CorruptError, match="a bytes"):
        schema.compile(b"{")
    with pytest.raises(etstream.CorruptError):
        schema.decompile(b"too short")


@pytest.mark.parametrize("leave_out_over", [None, 16])
def test_exact_json(command: Command, folder: Path, program: Path, leave_out_over: int | None) -> None:
    schema = etstream.ExactJson(SCHEMA, [SCHEMA.parent])
    schema.decompile(program, output := folder / "exact.json", leave_out_over=leave_out_over)
    options = [] if leave_out_over is None else ["--leave-out", str(leave_out_over)]
    command("decompile", "--exact", *options, SCHEMA, program, "-o", folder / "command.json")
    assert output.read_bytes() == (folder / "command.json").read_bytes()
    schema.compile(output, made := folder / "exact.bin")
    command("compile", "--exact", SCHEMA, output, "-o", folder / "command.bin")
    assert made.read_bytes() == (folder / "command.bin").read_bytes()
    schema.compile(output, made, order="python")
    assert bytes(schema.compile(output, order="python", dry_run=True)) == made.read_bytes()
    with pytest.raises(ValueError, match="order"):
        schema.compile(output, order="other", dry_run=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (lambda path: etstream.inspect(path), ["inspect"]),
        (lambda path: etstream.pte(path, "x"), ["pte", "-o", "x"]),
        (lambda path: etstream.convert(path, "x", to="bp08"), ["convert", "--to", "bp08", "-o", "x"]),
        (lambda path: etstream.ptd(path, "x"), ["ptd", "-o", "x"]),
        (lambda path: etstream.extract(path, "program", "x"), ["extract", "program", "-o", "x"]),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"abcdET12efgh" + bytes(90), b'{"version": true}'])
def test_message_is_the_command_s(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[str], object],
    arguments: list[str],
    content: bytes | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(etstream.Error) as caught:
        call("file")
    said = command(arguments[0], "file", *arguments[1:]).stderr
    assert said == f"etstream {arguments[0]}: {caught.value}\n"


def test_classes_present_themselves_as_the_package_s() -> None:
    for package in (etstream, etstream.executorch):
        for name in package.__all__:
            one = getattr(package, name)
            if callable(one):
                assert one.__module__ == package.__name__ and one.__doc__, name
    assert repr(etstream.Source) == "<class 'etstream.Source'>"
