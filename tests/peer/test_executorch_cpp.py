# SPDX-License-Identifier: BSD-3-Clause
"""Runs bundles on ExecuTorch's C++ runtime, as it is installed, by etstream::executorch and examples/run_bundle.cpp."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import executorch.kernels.quantized  # noqa: F401 what its operators are in a program
import pytest
import torch
from cases import Case, Store, Suite, write_cases
from command import Etstream, assert_same_bytes
from executorch.exir import EdgeCompileConfig, to_edge
from layouts import BASES
from models import LARGE_PROGRAMS, MODELS, PROGRAMS, CachedModel, Export, ModelCase, executorch_bundle, to_suites
from run_bundle import BUILD, EXECUTORCH_TESTS, ROOT, Report, RunBundle

ModelByName = Callable[[str], CachedModel]

TOLERANCE = ("1e-4", "1e-4")

models = pytest.mark.parametrize("name", list(MODELS))


def bundled(
    etstream: Etstream, program: Path, suites: list[Suite], folder: Path, *options: str
) -> Path:
    """Writes a bundle of the test cases, whether or not they fit."""
    cases = write_cases(folder, suites)
    output = folder / "out.bpte"
    etstream.bundle(program, cases, output, "--unchecked", "--no-sync", *options)
    return output


def exported_bundle(
    etstream: Etstream,
    module: torch.nn.Module,
    groups: list[ModelCase],
    folder: Path,
) -> Path:
    """Writes a segmented bundle of a small model, exported for its first test case."""
    graph = torch.export.export(module, groups[0].inputs)
    program = folder / "model.pte"
    # The check of operators knows no uint16 and uint32, which the kernels copy.
    edge = to_edge(graph, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    program.write_bytes(edge.to_executorch().buffer)
    suites = to_suites({"forward": groups}, Store.RAW)
    return bundled(etstream, program, suites, folder, "--to", "segmented")


def assert_all_pass(report: Report, count: int) -> None:
    assert report.code == 0, report
    assert f"{count} of {count} test cases passed" in report.stdout
    assert len(report.cases) == count
    assert all(case.outputs and case.passed for case in report.cases)


def test_the_tests_of_the_library_pass(run_bundle: RunBundle) -> None:
    assert run_bundle.binary.exists()
    subprocess.run([str(EXECUTORCH_TESTS)], check=True, capture_output=True, timeout=120)


def test_methods_take_exactly_the_memory_of_their_budgets(
    model: ModelByName, run_bundle: RunBundle, tmp_path: Path
) -> None:
    golden = [file for file in ROOT.glob("tests/golden/*/program.pte") if file.read_bytes()[4:8] == b"ET12"]
    programs = {file.parent.name: file for file in golden}
    for name in PROGRAMS.keys() - set(LARGE_PROGRAMS):
        subject = model(name)
        for base in BASES:
            programs[f"{name}_{base}"] = subject.folder / f"{base}.pte"
            if weights := subject.weights():
                (tmp_path / f"{name}_{base}.ptd").write_bytes(weights)
    for name, program in programs.items():
        (tmp_path / f"{name}.pte").symlink_to(program.resolve())
    ran = subprocess.run(
        [str(EXECUTORCH_TESTS), "--test-case=a method takes exactly its budget*"],
        env={**os.environ, "ETSTREAM_BUDGET_PROGRAMS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    # The program in examples/ is one more.
    assert f"{len(programs) + 1} programs, " in ran.stdout
    assert ", 0 refused, " in ran.stdout


@models
def test_every_case_of_every_method_passes_in_each_format(
    name: str, model: ModelByName, etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    subject = model(name)
    count = sum(map(len, subject.cases().values()))
    suites = sorted(to_suites(subject.cases(), Store.NPY), key=lambda suite: suite.method)
    bp08 = bundled(etstream, subject.program, suites, tmp_path)
    segmented = tmp_path / "segmented.bpte"
    etstream.convert(bp08, segmented, "segmented")
    copied, mapped = (run_bundle.run(bundle, *TOLERANCE) for bundle in (bp08, segmented))
    assert_all_pass(copied, count)
    assert mapped.cases == copied.cases
    # The bundle that runs is the one that ExecuTorch writes, and that comes back from the other format.
    original = bp08.read_bytes()
    assert_same_bytes(original, subject.expected_bundle(), name)
    back = etstream.convert(segmented, tmp_path / "back.bpte", "bp08")
    assert_same_bytes(back, original, f"{name}, there and back")


@models
def test_one_wrong_element_fails_its_case_alone_and_is_named(
    name: str, model: ModelByName, etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    subject = model(name)
    cases = subject.cases()
    method = list(cases)[-1]
    outputs = [output.clone() for output in cases[method][1].outputs]
    wrong = outputs[-1].flatten()
    at = len(wrong) // 2
    wrong[at] += 1
    cases[method][1] = ModelCase(cases[method][1].inputs, tuple(outputs))
    bundle = bundled(etstream, subject.program, to_suites(cases, Store.RAW), tmp_path)
    report = run_bundle.run(bundle, *TOLERANCE)
    assert report.code == 1
    (failed,) = (case for case in report.cases if not case.passed)
    assert (failed.method, failed.index) == (method, 1)
    output = failed.outputs[len(outputs) - 1]
    assert output.mismatches == 1
    assert output.absolute == pytest.approx(1, rel=0.01)
    place = [int(index) for index in torch.unravel_index(torch.tensor(at), outputs[-1].shape)]
    assert f"; first at {place}, expected " in output.rest


# The dtypes that ExecuTorch 1.5.1 exports and copies; the others are compared in the unit tests.
DTYPES = (
    "uint8 int8 int16 int32 int64 uint16 uint32 float16 float32 float64 bool bfloat16 "
    "float8_e5m2 float8_e4m3fn"
).split()


class Copy(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone()


def every_pattern(dtype: torch.dtype) -> torch.Tensor:
    """Returns all values of a small dtype, and some values of others, with infinities and NaN if there are any."""
    if dtype is torch.bool:
        return torch.rand(1000) < 0.5
    if dtype.itemsize == 1:
        return torch.arange(256, dtype=torch.int16).to(torch.uint8).view(dtype)
    if dtype.itemsize == 2:
        return torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(dtype)
    if not dtype.is_floating_point:
        return torch.randint(0, 2**31 - 1, (1000,)).to(dtype)
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0], dtype=dtype)
    return torch.cat([special.repeat(20), torch.randn(1000, dtype=dtype)])


@pytest.mark.parametrize("name", DTYPES)
def test_every_value_of_a_dtype_is_compared_as_torch_compares_it(
    name: str, etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    values = every_pattern(getattr(torch, name))
    # These compare neighbours, and values far apart.
    others = [values, values.roll(1), values[torch.randperm(len(values))]]
    groups = [ModelCase((values,), (expected,)) for expected in others]
    bundle = exported_bundle(etstream, Copy(), groups, tmp_path)
    report = run_bundle.run(bundle, "0", "0.25")
    assert report.cases[0].passed
    for case, expected in zip(report.cases, others, strict=True):
        (output,) = case.outputs
        if values.dtype.is_floating_point:
            a, e = values.double(), expected.double()
            close = torch.isclose(a, e, rtol=0.25, atol=0, equal_nan=True)
            finite = a.isfinite() & e.isfinite()
            difference = (a - e).abs()[finite]
        else:
            close = values == expected
            difference = (values.long() - expected.long()).abs().double()
        assert output.elements == len(values)
        assert output.mismatches == int((~close).sum())
        assert output.absolute == pytest.approx(difference.max().item(), rel=0.05)
        assert output.mean == pytest.approx(difference.mean().item(), rel=0.05)


def eager(module: torch.nn.Module, *inputs: torch.Tensor) -> ModelCase:
    outputs = module(*inputs)
    return ModelCase(inputs, outputs if isinstance(outputs, tuple) else (outputs,))


class Contiguous(torch.nn.Module):
    """A model that moves the elements of an input that lies in another order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone(memory_format=torch.contiguous_format) * 2


def test_an_input_in_another_order_of_dimensions_is_brought_into_the_methods(
    etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    module = Contiguous()
    last = torch.randn(1, 2, 3, 4).to(memory_format=torch.channels_last)
    # ExecuTorch writes the case as it lies.
    case = ModelCase((last.contiguous(),), (module(last),))
    manager = to_edge(torch.export.export(module, (last,))).to_executorch()
    bundle = tmp_path / "model.bpte"
    bundle.write_bytes(executorch_bundle(Export(manager, {"forward": [case]})))
    (warning,) = etstream.verify(bundle).warnings
    assert "input 0 lies in another dim_order than the method's input" in warning
    assert_all_pass(run_bundle.run(bundle, *TOLERANCE), 1)


def test_a_case_without_expected_outputs_is_run_and_says_so(
    model: ModelByName, etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    subject = model("example")
    (suite,) = to_suites(subject.cases(), Store.NPY)
    suites = [Suite("forward", [Case(case.inputs, []) for case in suite.cases])]
    report = run_bundle.run(bundled(etstream, subject.program, suites, tmp_path))
    assert report.code == 0
    assert [case.outputs for case in report.cases] == [[], []]


def test_what_executorch_may_crash_on_is_an_error(
    model: ModelByName, etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    program = tmp_path / "model.pte"
    program.write_bytes(os.urandom(5000))
    case = Suite("forward", [Case([], [])])
    for path in (program, model("example").program):
        report = run_bundle.run(bundled(etstream, path, [case], tmp_path))
        assert report.code == 1
        assert report.stderr.startswith("error: ")


def test_a_wrong_command_line_says_how_to_use_it(run_bundle: RunBundle) -> None:
    for arguments in ([], ["a", "b"]):
        report = run_bundle.run(*arguments)
        assert report.code == 2
        assert "usage: run_bundle" in report.stderr


class Quantized(torch.nn.Module):
    """A model that goes through int8 and back, by operators of ExecuTorch's quantized kernels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        operators = torch.ops.quantized_decomposed
        bounds = (0.05, 3, -128, 127, torch.int8)
        return operators.dequantize_per_tensor(operators.quantize_per_tensor(x, *bounds), *bounds)


def test_quantized_operators_run(
    etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    bundle = exported_bundle(etstream, Quantized(), [eager(Quantized(), torch.randn(99))], tmp_path)
    assert_all_pass(run_bundle.run(bundle), 1)


def test_quantized_outputs_pass_within_a_step(
    etstream: Etstream, run_bundle: RunBundle, tmp_path: Path
) -> None:
    values = torch.tensor([-128, 0, 127], dtype=torch.int8)
    expected = torch.tensor([-127, 0, 126], dtype=torch.int8)
    bundle = exported_bundle(etstream, Copy(), [ModelCase((values,), (expected,))], tmp_path)
    assert run_bundle.run(bundle).code == 1
    assert run_bundle.run(bundle, "1", "0").code == 0


def test_what_is_installed_gives_the_component(run_bundle: RunBundle, tmp_path: Path) -> None:
    assert run_bundle.binary.exists()
    script = str(ROOT / "tests" / "package" / "package_test")
    sdk = str(Path(torch.__file__).parents[1] / "executorch")
    for arguments in (
        ["install_build", str(BUILD), str(tmp_path / "prefix")],
        ["find_executorch", str(tmp_path / "prefix"), str(tmp_path / "build"), sdk],
    ):
        ran = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    shutil.rmtree(tmp_path / "build")
