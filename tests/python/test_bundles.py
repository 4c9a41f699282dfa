# SPDX-License-Identifier: BSD-3-Clause
"""Bundles, read back to ExecuTorch's own objects, and run on its Python runtime."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import etstream
import models
import pytest
import torch
from cases import STORES_BY_DTYPE, Case, Suite, Tensor, item_size
from etstream import _core
from etstream import executorch as adaptors
from etstream.results import Table
from executorch.devtools.bundled_program import schema
from executorch.devtools.bundled_program import serialize as bundle_serializer
from executorch.devtools.bundled_program.serialize import (
    _bundled_program_schema_to_flatbuffer,
    deserialize_from_flatbuffer_to_bundled_program,
)
from executorch.exir._serialize._program import PTEFile
from executorch.exir.schema import Tensor as ProgramTensor
from executorch_bundle import RunnableBundle, schema_bundle, serialize
from generated_bundles import GROUPS, generate
from models import ModelCase
from rounds import ROUNDS

ModelByName = Callable[[str], models.CachedModel]

MIB = 1 << 20
FORMATS = ("bp08", "segmented")
# The small models; ExecuTorch takes a minute for one of the others.
SMALL = ("example", "two_methods")
# The quick models; ExecuTorch's portable kernels take seconds for a test case of the other one.
QUICK = ("example", "two_methods", "llama", "mobilenet_v2_xnnpack_inline")


def etstream_cases(cases: Sequence[ModelCase]) -> list[etstream.TestCase]:
    return [etstream.TestCase(case.inputs, case.outputs) for case in cases]


def write_bundle(exported: models.Export, path: Path, bundle_format: str = "bp08") -> Path:
    cases = {method: etstream_cases(group) for method, group in exported.cases.items()}
    program = adaptors.program_source(exported.manager)
    etstream.bundle(program, cases, path, to=bundle_format, sync=False)
    return path


def in_format(bundle: bytes, path: Path, bundle_format: str) -> Path:
    etstream.convert(bundle, path, to=bundle_format, sync=False)
    return path


@pytest.mark.parametrize("bundle_format", FORMATS)
@pytest.mark.parametrize("name", models.MODELS)
def test_a_bundle_that_is_read_is_written_as_it_was(
    name: str, bundle_format: str, model: ModelByName, tmp_path: Path
) -> None:
    expected = model(name).expected_bundle()
    path = in_format(expected, tmp_path / "model.bpte", bundle_format)
    loaded = adaptors.load_bundled_program(path)
    assert isinstance(loaded.program, memoryview)
    assert loaded.program == model(name).program.read_bytes()
    path.unlink()  # data that is read stays
    assert _bundled_program_schema_to_flatbuffer(loaded) == expected
    with adaptors.install():
        assert bundle_serializer._bundled_program_schema_to_flatbuffer(loaded) == expected


@pytest.mark.parametrize("name", SMALL)
def test_a_bundle_is_read_as_executorch_reads_it(name: str, model: ModelByName, tmp_path: Path) -> None:
    data = model(name).expected_bundle()
    theirs = deserialize_from_flatbuffer_to_bundled_program(data)
    for bundle_format in FORMATS:
        path = in_format(data, tmp_path / bundle_format, bundle_format)
        for loaded in (
            adaptors.load_bundled_program(path),
            adaptors.load_bundled_program(path.read_bytes()),
            adaptors.load_bundled_program(path, lazy=False),
            adaptors.load_bundled_program(path.open("rb")),
        ):
            assert loaded == theirs
            assert theirs == loaded
        with adaptors.install():
            installed = bundle_serializer.deserialize_from_flatbuffer_to_bundled_program(path.read_bytes())
        assert repr(installed) == repr(theirs)  # it has bytes, as ExecuTorch's has


@pytest.mark.parametrize("group", GROUPS)
def test_every_kind_of_value_is_read(group: str, tmp_path: Path) -> None:
    for index in range(ROUNDS):
        bundle = generate(group, index)
        suites = bundle.suites_in_file()
        data = serialize(suites, bundle.program)
        segmented = in_format(data, tmp_path / "segmented.bpte", "segmented")
        for source in (data, segmented):
            loaded = adaptors.load_bundled_program(source)
            assert _bundled_program_schema_to_flatbuffer(loaded) == data
            eager = adaptors.load_bundled_program(source, lazy=False)
            # The comparison is by text, as NaN does not equal itself.
            assert repr(eager) == repr(schema_bundle(suites, bundle.program)).replace("-0.0", "0.0")


DOUBLES = [math.nan, math.inf, -math.inf, 1 / 3, 5e-324]


def test_doubles_survive_that_executorch_loses() -> None:
    def values_of(loaded: schema.BundledProgram) -> list[float]:
        return [value.val.double_val for value in loaded.method_test_suites[0].test_cases[0].inputs]

    for number in DOUBLES:
        data = serialize([Suite("forward", [Case([number], [])])], b"program")
        assert repr(values_of(adaptors.load_bundled_program(data))) == repr([number])
        if math.isfinite(number):
            assert values_of(deserialize_from_flatbuffer_to_bundled_program(data)) != [number]
        else:
            with pytest.raises(json.JSONDecodeError):
                deserialize_from_flatbuffer_to_bundled_program(data)


def test_what_is_not_a_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bpte").write_bytes(bytes(100))
    for read in (adaptors.load_bundled_program, adaptors.open_bundle):
        with pytest.raises(etstream.Error, match=r"a\.bpte"):
            read(tmp_path / "a.bpte")
        with pytest.raises(etstream.NotFoundError, match=r"b\.bpte"):
            read(tmp_path / "b.bpte")


@pytest.mark.parametrize("name", QUICK)
def test_test_cases_end_as_executorch_has_them_end(name: str, model: ModelByName, tmp_path: Path) -> None:
    data = model(name).expected_bundle()
    theirs = RunnableBundle(data)
    for bundle_format in FORMATS:
        path = in_format(data, tmp_path / f"{bundle_format}.bpte", bundle_format)
        with adaptors.open_bundle(path) as bundle:
            assert bundle.format == bundle_format
            assert bundle.methods == {suite.method_name: len(suite.test_cases) for suite in bundle.suites}
            verdicts = set()
            for tolerance in ({"rtol": 1e-5, "atol": 1e-8}, {"rtol": 1e-3, "atol": 1e-3}):
                for method, count in bundle.methods.items():
                    for case in range(count):
                        result = bundle.verify(method, case, **tolerance)
                        assert bool(result) == passes(theirs, method, case, **tolerance), result
                        verdicts.add(bool(result))
            assert bundle.verify_all(rtol=1e-3, atol=1e-3)
        assert True in verdicts
        if name == "mobilenet_v2_xnnpack_inline":
            assert False in verdicts  # XNNPACK sums in another order


def passes(bundle: RunnableBundle, method: str, case: int, rtol: float, atol: float) -> bool:
    try:
        bundle.verify(method, case, rtol=rtol, atol=atol)
    except RuntimeError:
        return False
    return True


def test_a_wrong_output_is_found(model: ModelByName, tmp_path: Path) -> None:
    cases = model("two_methods").cases()
    inputs, outputs = cases["count"][1].inputs, [output.clone() for output in cases["count"][1].outputs]
    outputs[0][1] += 2
    outputs[1][3:5] *= 1.5
    program = model("two_methods").program
    etstream.bundle(program, {"count": [etstream.TestCase(inputs, outputs)]}, tmp_path / "a.bpte")
    with adaptors.open_bundle(tmp_path / "a.bpte") as bundle:
        result = bundle.verify("count")
        assert not result
        integers, doubles = result.outputs
        assert (integers.elements, integers.mismatches, integers.largest_absolute_error) == (2, 1, 2)
        assert (integers.first.index, integers.worst.index) == (1, 1)
        assert integers.first.expected == integers.first.actual + 2
        assert (doubles.mismatches, doubles.first.index) == (2, 3)
        assert doubles.largest_relative_error == pytest.approx(1 / 3)
        assert "2 of 7 elements not as expected" in str(result)
        assert not bundle.verify_all(integer=1)
    passed, failed = adaptors.CaseResult(method="count", case=0, outputs=Table([etstream.compare(1, 1)])), result
    shown = repr(adaptors.BundleResult(cases=Table((passed,) * 13 + (failed,) * 22)))
    assert shown.startswith(f"<etstream.executorch.BundleResult: 22 of 35 test cases failed\n{failed}\n")
    assert shown.count("FAILED") == 20 and "passed" not in shown and shown.endswith("\nand 2 more>")
    with adaptors.open_bundle(tmp_path / "a.bpte") as bundle:
        assert bundle.verify_all(integer=2, rtol=0.34)


def test_what_is_not_there_is_said(model: ModelByName, tmp_path: Path) -> None:
    (tmp_path / "a.bpte").write_bytes(model("two_methods").expected_bundle())
    bundle = adaptors.open_bundle(tmp_path / "a.bpte")
    with pytest.raises(etstream.NotFoundError, match=r"a\.bpte: .*'forward'.*: 'count', 'scale'"):
        bundle.verify()
    for case in (-1, 3):
        with pytest.raises(etstream.NotFoundError, match="'count' has 3 test cases"):
            bundle.verify("count", case)
    with pytest.raises(etstream.InvalidArgumentError, match="tolerance"):
        bundle.verify("count", rtol=math.nan)
    bundle.close()
    with pytest.raises(ValueError, match="closed"):
        bundle.verify("count")


def test_what_does_not_fit_is_refused_before_it_runs(model: ModelByName, tmp_path: Path) -> None:
    """Refuses values for some of which ExecuTorch's Python functions abort the process, or read out of bounds."""
    program = model("two_methods").program
    inputs = (torch.ones(3, 5), 2, 0.25, True)
    wrong = {
        "input 0 is int32": (torch.ones(3, 5, dtype=torch.int32), *inputs[1:]),
        r"input 0 has shape \[15\]": (torch.ones(15), *inputs[1:]),
        "input 1 is 3": (inputs[0], 3, *inputs[2:]),
        "3 inputs given": inputs[:3],
    }
    for message, values in wrong.items():
        cases = {"scale": [etstream.TestCase(values)]}
        etstream.bundle(program, cases, tmp_path / "a.bpte", unchecked=True)
        with pytest.raises(etstream.InvalidArgumentError, match=rf"'scale', test case 0: {message}"):
            adaptors.open_bundle(tmp_path / "a.bpte").verify("scale")
    damaged = bytearray(program.read_bytes())
    damaged[100:200] = bytes(100)
    cases = {"scale": [etstream.TestCase(inputs)]}
    etstream.bundle(bytes(damaged), cases, tmp_path / "a.bpte", unchecked=True)
    with pytest.raises(etstream.CorruptError, match=r"a\.bpte"):
        adaptors.open_bundle(tmp_path / "a.bpte").verify("scale")


def test_a_case_without_expected_outputs_runs(model: ModelByName, tmp_path: Path) -> None:
    subject = model("two_methods")
    case = etstream.TestCase(subject.cases()["scale"][0].inputs)
    etstream.bundle(subject.program, {"scale": [case]}, tmp_path / "a.bpte")
    result = adaptors.open_bundle(tmp_path / "a.bpte").verify("scale")
    assert result
    assert result.outputs == ()


def test_bundles_run_from_wherever_they_are(model: ModelByName, tmp_path: Path) -> None:
    subject = model("example")
    cases = {"forward": etstream_cases(subject.cases()["forward"])}
    offsets = set()
    for padding in range(1, 9):
        # The length of the name moves the program.
        moved = cases | {"x" * padding: []}
        etstream.bundle(
            subject.program, moved, tmp_path / "a.bpte", program_alignment=1, unchecked=True, sync=False
        )
        opened = etstream.BundledProgramFile(tmp_path / "a.bpte")
        offsets.add(opened.program_offset % 16)
        assert adaptors.open_bundle(tmp_path / "a.bpte").verify_all(rtol=1e-3)
    assert len(offsets) > 1
    data = subject.expected_bundle()
    (tmp_path / "two").write_bytes(b"0123456789abcdef" + data)
    for source in (data, etstream.Source.file(tmp_path / "two", 16)):
        assert adaptors.open_bundle(source).verify("forward", 1, rtol=1e-3)
        assert adaptors.load_bundled_program(source).program == subject.program.read_bytes()


def test_tensors_are_put_in_the_order_of_the_method(tmp_path: Path) -> None:
    x = torch.randn(2, 3, 4, 5)
    graph = torch.export.export(torch.nn.ReLU(), (x.to(memory_format=torch.channels_last),))
    program = adaptors.program_source(models.to_edge(graph).to_executorch())
    # ExecuTorch writes a channels-last input like this: contiguous, and described as such.
    given = [etstream.Tensor("float32", list(x.shape), value, dim_order=[0, 1, 2, 3]) for value in (x, x.relu())]
    case = etstream.TestCase(given[:1], given[1:])
    etstream.bundle(program, {"forward": [case]}, tmp_path / "a.bpte", unchecked=True)
    assert any("another dim_order" in warning for warning in etstream.verify(tmp_path / "a.bpte").warnings)
    assert adaptors.open_bundle(tmp_path / "a.bpte").verify(rtol=0, atol=0)


def test_nothing_is_left_of_a_test_case_for_the_next(tmp_path: Path) -> None:
    exported = models.export("initialized_buffers")
    exported.cases["forward"] *= 3  # each case counts from where the model begins
    bundle = adaptors.open_bundle(write_bundle(exported, tmp_path / "a.bpte"))
    assert bundle.verify_all()
    assert bundle.verify("forward", 2)


def test_weights_come_from_a_file(tmp_path: Path) -> None:
    exported = models.export("external_constants")
    path = write_bundle(exported, tmp_path / "a.bpte", "segmented")
    (weights,) = adaptors.save_tensor_data(exported.manager, tmp_path)
    for source in (weights, Path(weights).read_bytes()):
        with adaptors.open_bundle(path, weights=source) as bundle:
            assert bundle.verify()
    with pytest.raises(etstream.ExecutionError, match="ExecuTorch says: .*0x"):
        adaptors.open_bundle(path).verify()


@pytest.mark.parametrize("dtype", STORES_BY_DTYPE)
def test_every_dtype_is_compared(dtype: str) -> None:
    data = bytes(range(1, 1 + 6 * item_size(dtype)))
    expected = etstream.Tensor(dtype, [2, 3], data)
    other = bytearray(data)
    other[4 * item_size(dtype)] ^= 0x40
    assert etstream.compare(expected, etstream.Tensor(dtype, [2, 3], data))
    found = etstream.compare(expected, etstream.Tensor(dtype, [2, 3], bytes(other)), rtol=0, atol=0)
    assert not found
    assert (found.elements, found.mismatches, found.first.index) == (6, 1, 4)
    with pytest.raises(etstream.InvalidArgumentError, match="sizes|shape|expected"):
        etstream.compare(expected, etstream.Tensor(dtype, [3, 2], data))


def write_ends(plan: etstream.FilePlan, path: Path) -> None:
    """Writes the first and the last MiB of each extent; between them are zeros, which are left out."""
    source = plan.source()
    with path.open("wb") as file:
        for offset, size in ((each.offset, each.size) for each in plan.extents):
            for begin in {0, max(0, size - MIB)}:
                file.seek(offset + begin)
                file.write(source.read(offset + begin, min(size, MIB)))


def embedding(rows: int, weights: Path) -> etstream.FilePlan:
    """Returns a program that looks up rows of 4 KiB in the file of its weights."""
    model, index = torch.nn.Embedding(8, 1024), torch.tensor([[0, 1, 2]])
    manager = models.to_edge(torch.export.export(model, (index,))).to_executorch()
    program = manager._emitter_output.program
    for value in program.execution_plan[0].values:
        if isinstance(value.val, ProgramTensor) and value.val.sizes == [8, 1024]:
            value.val.sizes[0] = rows
    program.constant_buffer[1].storage = etstream.Source.file(weights)
    return adaptors.plan_pte_file(PTEFile(program=program, mutable_data=None, named_data=None))


# A script that reads and runs bundles in 64 MiB, and prints how many bytes of them it has still.
MEASURE = """
import re, resource, sys
import torch
from etstream import executorch
from executorch.devtools.bundled_program import schema
from executorch.extension.pybindings import portable_lib

def size(name):
    with open("/proc/self/status") as status:
        return int(re.search(name + r":\\s+(\\d+)", status.read())[1]) << 10

resource.setrlimit(resource.RLIMIT_DATA, (size("VmData") + (64 << 20),) * 2)
before = size("RssAnon")
for path in sys.argv[1:]:
    with executorch.open_bundle(path) as bundle:
        passed = bundle.verify(rtol=0, atol=0)
    program = executorch.load_bundled_program(path).program
    print(bool(passed), len(program), program[-4096:].hex())
print(size("RssAnon") - before)
"""


def test_large_bundles_take_little_memory(tmp_path: Path) -> None:
    rows = (256 << 20) // 4096
    index = torch.tensor([[0, 1, rows - 1]])
    values = torch.randn(1, 3, 1024)
    weights = tmp_path / "weights"
    with weights.open("wb") as file:
        for row, value in zip(index[0].tolist(), values[0]):
            file.seek(row * 4096)
            file.write(value.numpy().tobytes())
    cases = {"forward": [etstream.TestCase([index], [values])]}
    program = embedding(rows, weights)
    paths = [tmp_path / bundle_format for bundle_format in FORMATS]
    for path in paths:
        plan = etstream.bundle(program.source(), cases, to=path.name, hash=False, dry_run=True)
        write_ends(plan, path)
        assert path.stat().st_size == plan.size > 256 << 20
    weights.unlink()
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, *map(str, paths)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    *bundles, growth = ran.stdout.splitlines()
    assert bundles == [f"True {program.size} {values[0, 2].numpy().tobytes().hex()}"] * 2
    print(f"programs of 256 MiB: +{int(growth) / MIB:.1f} MiB")
    assert int(growth) < 16 * MIB
    assert sorted(tmp_path.iterdir()) == sorted(paths)
