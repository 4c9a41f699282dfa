# SPDX-License-Identifier: BSD-3-Clause
"""Tests the package among others: tensors in place, mappings, ExecuTorch's test cases, printed forms."""

from __future__ import annotations

import collections
import io
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import etstream
import ml_dtypes
import numpy
import pytest
import safetensors.torch
import torch
from conftest import Command
from etstream.results import Comparison, Mismatch
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite

@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "w.ptd"
    etstream.save_ptd(
        {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(5, dtype=torch.bfloat16), "empty": torch.ones(0, 2)}, path
    )
    return path


def test_a_dict_of_tensors_comes_back_from_a_ptd_file(weights: Path) -> None:
    tensors = etstream.load_ptd(weights)
    assert {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()} == {
        "a": (torch.float32, (2, 3)),
        "b": (torch.bfloat16, (5,)),
        "empty": (torch.float32, (0, 2)),
    }
    assert torch.equal(tensors["a"], torch.arange(6.0).reshape(2, 3)) and tensors["b"].sum() == 5
    arrays = etstream.load_ptd(weights, framework="numpy")
    assert arrays["b"].dtype == ml_dtypes.bfloat16 and numpy.array_equal(arrays["a"], tensors["a"].numpy())
    with pytest.raises(ValueError, match="framework: expected 'torch' or 'numpy', found 'jax'"):
        etstream.load_ptd(weights, framework="jax")  # type: ignore[call-overload]


def test_writing_to_a_mapped_tensor_leaves_the_file_as_it_is(weights: Path) -> None:
    before = weights.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        etstream.load_ptd(weights)["a"].fill_(7)
        etstream.load_ptd(weights, framework="numpy")["a"][:] = 7
    assert weights.read_bytes() == before


def test_a_mapped_tensor_takes_no_memory_of_its_size(tmp_path: Path) -> None:
    size = 64 << 20
    etstream.save_ptd({"w": torch.zeros(size // 4)}, tmp_path / "w.ptd", sync=False)
    script = """
import sys, etstream, numpy
def anonymous(): return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("RssAnon")) << 10
before = anonymous()
array = etstream.Checkpoint(sys.argv[1])["w"].numpy()
assert array.nbytes == 64 << 20 and array[::1024].sum() == 0
print(anonymous() - before)
"""
    said = subprocess.run([sys.executable, "-c", script, tmp_path / "w.ptd"], check=True, stdout=subprocess.PIPE)
    assert int(said.stdout) < 8 << 20


def test_a_tensor_in_memory_is_shared_with_the_array_that_it_was_made_of() -> None:
    array = numpy.arange(6, dtype=numpy.int16).reshape(2, 3)
    tensor = etstream.TestCase([array]).inputs[0]
    assert isinstance(tensor, etstream.Tensor) and tensor.shape == (2, 3) and tensor.dtype == "int16"
    assert numpy.shares_memory(tensor.numpy(), array)
    array[0, 0] = 9
    assert tensor.torch()[0, 0] == 9 and numpy.from_dlpack(tensor)[0, 0] == 9
    assert tensor.__dlpack_device__() == (1, 0)
    assert torch.from_dlpack(tensor).data_ptr() == array.ctypes.data
    assert torch.from_dlpack(tensor, copy=True).data_ptr() != array.ctypes.data


def test_types_that_only_torch_knows_go_by_dlpack_where_it_is_loaded(weights: Path) -> None:
    found = torch.from_dlpack(etstream.Checkpoint(weights)["b"])
    assert found.dtype == torch.bfloat16 and found.tolist() == [1] * 5


def test_a_read_only_buffer_is_a_tensor_without_a_warning() -> None:
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert etstream.Tensor("int8", [2], b"\1\2").torch().tolist() == [1, 2]
    finally:
        torch.set_warn_always(False)


def test_dlpack_gives_nobody_a_writable_view_of_read_only_bytes() -> None:
    data = bytes(range(48))
    tensor = etstream.Tensor("float32", [3, 4], data)
    view = numpy.from_dlpack(tensor)
    assert not view.flags.writeable and view.ctypes.data == tensor.numpy().ctypes.data
    for copy in (tensor, etstream.Tensor("bfloat16", [24], data)):
        capsule = copy.__dlpack__()  # this version can't say that it is read-only
        torch.from_dlpack(capsule).zero_()
        with pytest.raises(BufferError, match="read-only, which a DLPack capsule can't say of"):
            copy.__dlpack__(copy=False)
    assert data == bytes(range(48))


def test_threads_that_make_tensors_leave_warnings_as_they_were() -> None:
    tensor = etstream.Tensor("int8", [2], b"\1\2")
    before = list(warnings.filters)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for made in pool.map(lambda _: [tensor.torch() for _ in range(200)], range(4)):
                assert made[0].tolist() == [1, 2]
    finally:
        sys.setswitchinterval(interval)
    assert warnings.filters == before


def test_arrays_of_files_leave_no_descriptors_open(weights: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    tensors = etstream.load_ptd(weights)
    assert tensors["a"].sum() == 15 and descriptors() == before


def test_elements_are_in_the_order_that_the_tensor_says() -> None:
    expected = torch.arange(24).reshape(2, 3, 4)
    data = expected.permute(2, 0, 1).contiguous().numpy()
    tensor = etstream.Tensor("int64", [2, 3, 4], data, [2, 0, 1])
    assert torch.equal(tensor.torch(), expected) and numpy.array_equal(tensor.numpy(), expected.numpy())
    empty = etstream.Tensor("int64", [0, 3], b"", [1, 0])
    assert empty.torch().shape == empty.numpy().shape == (0, 3)
    unaligned = etstream.Tensor("int64", [3], etstream.Source(b"\0" + bytes(range(24)))[1:])
    assert unaligned.torch().tolist() == unaligned.numpy().tolist() == [0x0706050403020100 + i * 0x0808080808080808 for i in range(3)]
    assert unaligned.torch().data_ptr() % 8 == unaligned.numpy().ctypes.data % 8 == 0


def test_a_dim_order_that_is_none_is_refused(program: Path, cases: Path) -> None:
    with pytest.raises(etstream.InvalidArgumentError, match="dim_order that is not a permutation"):
        etstream.Tensor("float32", [2, 2], bytes(16), [0, 0])
    order = b"\x04\0\0\0\0\1\2\3"
    damaged = bytes(etstream.bundle(program, cases, dry_run=True)).replace(order, order[:6] + b"\0\3")
    value = etstream.BundledProgramFile(damaged).suites[0].test_cases[0].inputs[0]
    for call in (value.torch, value.numpy):
        with pytest.raises(etstream.CorruptError, match="a bytes: a tensor has a dim_order that is not"):
            call()
    assert any("input 0 has a dim_order" in error for error in etstream.verify(damaged).errors)


def test_data_that_is_no_tensor_says_so(tmp_path: Path) -> None:
    opaque = tmp_path / "opaque.ptd"
    etstream._core.plan_ptd_file([(b"1234", 1)], [("blob", 0, None)], 128, True).write(opaque)
    for framework in ("torch", "numpy"):
        with pytest.raises(etstream.UnsupportedError, match=rf"{opaque}: 'blob': data without a type"):
            etstream.load_ptd(opaque, framework=framework)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="^a: expected a tensor, found int$"):
        etstream.save_ptd({"a": 3}, tmp_path / "out.ptd")  # type: ignore[dict-item]
    with pytest.raises(etstream.UnsupportedError, match="torch has no tensors of type qint8"):
        etstream.Tensor("qint8", [1], b"1").torch()
    with pytest.raises(etstream.UnsupportedError, match="neither NumPy nor ml_dtypes has a type qint8"):
        etstream.Tensor("qint8", [1], b"1").numpy()


def test_types_that_torch_has_and_executorch_lacks_become_torch_tensors(tmp_path: Path) -> None:
    held = {
        name: torch.arange(12, dtype=torch.uint8).reshape(3, 4).view(dtype)
        for name, dtype in {"scales": torch.float8_e8m0fnu, "fours": torch.float4_e2m1fn_x2}.items()
    }
    safetensors.torch.save_file(held, tmp_path / "w.safetensors")
    torch.save(held, tmp_path / "w.pth")
    for file in ("w.safetensors", "w.pth"):
        checkpoint = etstream.Checkpoint(tmp_path / file)
        for name, expected in held.items():
            found = checkpoint[name].torch()
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


def test_a_checkpoint_is_a_mapping(weights: Path) -> None:
    checkpoint = etstream.Checkpoint(weights)
    assert isinstance(checkpoint, Mapping) and len(checkpoint) == 3 and set(checkpoint) == {"a", "b", "empty"}
    assert checkpoint["a"].shape == (2, 3) and checkpoint["b"].torch().sum() == 5
    assert "a" in checkpoint and "c" not in checkpoint and checkpoint.get("c") is None
    assert {name: tensor.dtype for name, tensor in checkpoint.items()} == {
        "a": "float32",
        "b": "bfloat16",
        "empty": "float32",
    }
    assert [tensor.name for tensor in checkpoint.values()] == list(checkpoint.keys()) == list(checkpoint)
    with pytest.raises(KeyError) as missing:
        checkpoint["layers.0"]
    assert str(missing.value) == f"{weights}: there is no data named 'layers.0'"
    assert isinstance(missing.value, etstream.NoSuchNameError)
    again = etstream.ptd(dict(checkpoint), dry_run=True)
    assert bytes(again) == weights.read_bytes()


def test_a_key_that_is_no_name_is_in_no_mapping() -> None:
    checkpoint = etstream.Checkpoint.of({"a": torch.ones(1)})
    for mapping in (checkpoint, etstream.FatContainerFile(bytes(etstream.fat({"a": b"1"}, dry_run=True)))):
        assert 3 not in mapping and mapping.get(3) is None and mapping.get("\ud800") is None
        with pytest.raises(KeyError, match="there is no (data named|payload) 3"):
            mapping[3]


def test_a_checkpoint_is_made_of_tensors_of_any_kind_by_name() -> None:
    tensors = {"b": torch.ones(2), "a": numpy.zeros(3, "int8"), "c": etstream.Tensor("uint8", [1], b"1")}
    for given in (tensors, tensors.items(), etstream.Checkpoint.of(tensors)):
        checkpoint = etstream.Checkpoint.of(given)
        assert [(one.name, one.dtype) for one in checkpoint.tensors] == [("b", "float32"), ("a", "int8"), ("c", "uint8")]
    with pytest.raises(etstream.InvalidArgumentError, match="two tensors are called 'a'"):
        etstream.Checkpoint.of([("a", torch.ones(1)), ("a", torch.ones(1))])
    for wrong, message in (({3: torch.ones(1)}, "a str .* found 3"), ({"a": "x"}, "a: .* found str"), ("a", "pairs")):
        with pytest.raises(TypeError, match=message):
            etstream.Checkpoint.of(wrong)
    with pytest.raises(TypeError, match="^expected pairs of a name and a tensor, found .{200}$"):
        etstream.Checkpoint.of([b"a" * 5000])


NO_CHECKPOINTS: dict[str, Callable[[Path], Any]] = {
    "BufferedReader": lambda path: path.open("rb"),
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "ndarray": lambda path: numpy.fromfile(path, "uint8"),
    "Tensor": lambda path: torch.ones(3, 2),
    "Source": etstream.Source,
    "int": lambda path: 3,
}


@pytest.mark.parametrize("kind", NO_CHECKPOINTS)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_no_checkpoint_is_refused_by_its_type(kind: str, program: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.safetensors"
    etstream.ptd({"a": torch.zeros(3000)}, weights, to="safetensors")
    wrong = NO_CHECKPOINTS[kind](weights)
    calls: list[Callable[[Any], object]] = [
        lambda given: etstream.ptd(given, tmp_path / "w.ptd"),
        lambda given: etstream.ptd([weights, given], dry_run=True),
        lambda given: etstream.explain(program, by=given),
        lambda given: etstream.reweight(program, was=weights, now=given, dry_run=True),
        lambda given: etstream.ptn(b"", given, dry_run=True),
    ]
    taken = "a checkpoint's path, a Checkpoint, or a mapping of names to tensors"
    for call in calls:
        with pytest.raises(TypeError, match=f"^expected {taken}, found {kind}$"):
            call(wrong)
    with pytest.raises(TypeError, match=f"^expected a mapping of names to tensors, or pairs .*, found {kind}$"):
        etstream.Checkpoint.of(wrong)
    with pytest.raises(TypeError, match=f"^expected a path, found {kind}$"):
        etstream.Checkpoint(wrong)


def test_a_fat_container_is_a_mapping(program: Path) -> None:
    fat = etstream.FatContainerFile(bytes(etstream.fat({"portable": program}, dry_run=True)))
    assert isinstance(fat, Mapping) and list(fat.keys()) == ["portable"] and "x" not in fat
    assert {name: source.size for name, source in fat.items()} == {"portable": program.stat().st_size}
    with pytest.raises(LookupError, match="there is no payload 'x'; there are 'portable'"):
        fat["x"]


class Pair(NamedTuple):
    first: Any
    second: Any


TREES = [
    [1, (2.5, [True]), {"b": 3, "a": 4}],
    (Pair(1, [2]), collections.OrderedDict(z=1, y=2)),
    {"y": [1, 2], "x": (3,)},
    [collections.deque([1, 2]), collections.defaultdict(list, z=2, y=[3])],
    (),
]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("with_torch", [True, False])
def test_trees_are_flattened_as_executorch_does(tree: Any, with_torch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = MethodTestCase(tree).inputs
    if not with_torch:
        monkeypatch.delitem(sys.modules, "torch")
    assert etstream.TestCase(tree).inputs == expected


def test_a_value_alone_is_a_list_of_it_and_iterators_are_read() -> None:
    case = etstream.TestCase(torch.ones(2, 3), (number for number in (1, 2)))
    assert [value.shape for value in case.inputs] == [(2, 3)] and case.expected_outputs == [1, 2]  # type: ignore[union-attr]
    assert etstream.TestCase([], None).expected_outputs == []


def test_executorchs_suites_stand_for_etstreams(program: Path, cases: Path) -> None:
    suites = etstream.read_test_cases(cases)
    theirs = [
        MethodTestSuite(
            suite.method_name,
            [
                MethodTestCase(
                    [value.torch() if isinstance(value, etstream.Tensor) else value for value in case.inputs],
                    [value.torch() if isinstance(value, etstream.Tensor) else value for value in case.expected_outputs],
                )
                for case in suite.test_cases
            ],
        )
        for suite in suites
    ]
    expected = bytes(etstream.bundle(program, suites, dry_run=True))
    assert bytes(etstream.bundle(program, theirs, dry_run=True)) == expected
    assert bytes(etstream.bundle(program, theirs[0], dry_run=True)) == expected
    assert bytes(etstream.bundle(program, {theirs[0].method_name: theirs[0].test_cases}, dry_run=True)) == expected
    assert bytes(etstream.bundle(program, {"forward": theirs[0]}, dry_run=True)) == expected
    assert bytes(etstream.bundle(program, etstream.TestSuite("forward", theirs[0].test_cases), dry_run=True)) == expected
    with pytest.raises(etstream.InvalidArgumentError, match="cases of 'other': .* a suite of 'forward'"):
        etstream.bundle(program, {"other": theirs[0]}, dry_run=True)
    by_method = etstream.bundle(program, {"b": theirs[0].test_cases, "a": []}, unchecked=True, dry_run=True)
    assert [suite.method_name for suite in etstream.BundledProgramFile(bytes(by_method)).suites] == ["a", "b"]
    with pytest.raises(TypeError, match="expected a TestSuite, or a MethodTestSuite of ExecuTorch, found int"):
        etstream.bundle(program, [1], dry_run=True)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected a TestCase, or a MethodTestCase of ExecuTorch, found int"):
        etstream.bundle(program, {"forward": [1]}, dry_run=True)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="cases of 'forward': expected test cases, found 'cases.json' alone"):
        etstream.bundle(program, {"forward": "cases.json"}, dry_run=True)  # type: ignore[dict-item]


def test_a_bundle_gets_the_metadata_that_the_command_gives(
    program: Path, cases: Path, command: Command, tmp_path: Path
) -> None:
    ran = command(
        "bundle", program, "--cases", cases, "-o", tmp_path / "a.bpte", "--metadata", "author=me", "--metadata", "n=3"
    )
    assert ran.returncode == 0, ran.stderr
    etstream.bundle(program, cases, tmp_path / "b.bpte", metadata={"author": "me", "n": 3})
    assert (tmp_path / "b.bpte").read_bytes() == (tmp_path / "a.bpte").read_bytes()
    bundled = etstream.BundledProgramFile(tmp_path / "b.bpte")
    assert bytes(etstream.ProgramFile(bundled.program).metadata["author"]) == b"me"


def test_values_are_compared_as_bundles_are() -> None:
    assert etstream.compare(torch.ones(2), torch.ones(2) + 1e-7)
    found = etstream.compare(torch.ones(2), numpy.array([1, 3], dtype="float32"), rtol=0, atol=1)
    assert isinstance(found, Comparison) and isinstance(found.first, Mismatch)
    assert (found.first.index, found.first.expected, found.first.actual) == (1, 1.0, 3.0)
    found = etstream.compare(torch.tensor([1 + 2j, 3 + 4j]), torch.tensor([1 + 2j, 3 + 5j]))
    assert (found.elements, found.first.index, found.first.expected, found.first.actual) == (2, 1, 3 + 4j, 3 + 5j)
    assert etstream.compare(None, None)


def test_everything_says_what_it_is(program: Path, cases: Path, weights: Path, tmp_path: Path) -> None:
    plan = etstream.bundle(program, cases, tmp_path / "m.bpte")
    bundled = etstream.BundledProgramFile(tmp_path / "m.bpte")
    fat = etstream.FatContainerFile(bytes(etstream.fat({"a": program}, dry_run=True)))
    told = [
        plan,
        bundled,
        *bundled.suites,
        bundled.suites[0].test_cases[0],
        etstream.ProgramFile(program),
        *etstream.ProgramFile(program).segments,
        etstream.Checkpoint(weights),
        etstream.Checkpoint(weights)["a"],
        etstream.Tensor("int8", [2], b"12"),
        fat,
        fat.payloads[0],
        etstream.Source(program),
        etstream.verify(program),
    ]
    for one in told:
        assert f".{type(one).__name__}" in repr(one) and " object at 0x" not in repr(one)
    assert repr(told[-4]) == "<etstream.FatContainerFile of 1 payload: a bytes>"
    assert repr(etstream.TestCase([1], [True])) == "etstream.TestCase([1], [True])"
    assert "float32, (2, 3)" in repr(etstream.Checkpoint(weights)["a"])
    opaque = etstream._core.plan_ptd_file([(b"1", 1)], [("q", 0, None)], 16, False).source()
    etstream.FilePlan.copy(opaque).write(tmp_path / "q.ptd")
    assert repr(etstream.Checkpoint(tmp_path / "q.ptd")["q"]) == "<etstream.CheckpointTensor 'q': data of 1 byte>"
    (tmp_path / "s.fbs").write_text("table T {} root_type T;")
    assert repr(etstream.FlatbufferText(tmp_path / "s.fbs")) == f"<etstream.FlatbufferText of {tmp_path}/s.fbs>"


def test_pytest_takes_test_cases_for_no_tests(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("from etstream import TestCase, TestSuite\ndef test_one(): pass\n")
    run = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", tmp_path / "test_it.py"]
    said = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert said.returncode == 0 and "1 passed" in said.stdout, said.stdout


def test_bytes_are_no_output(program: Path) -> None:
    for write in (etstream.FilePlan.copy(program).write, lambda output: etstream.pte(program, output)):
        with pytest.raises(TypeError, match=r"expected a path.*, found bytes: os\.fsdecode\(\) makes a path of them"):
            write(b"out.pte")


def test_a_warning_is_of_the_line_that_called(weights: Path) -> None:
    rules = {"nothing": "x", "a": "y"}
    with pytest.warns(UserWarning) as direct:
        etstream.ptd(weights, map=rules, dry_run=True)
    with pytest.warns(UserWarning) as through_another:
        etstream.ptd(weights, str(weights) + "2", map=rules | {"never": "z"})
    assert {one.filename for one in (*direct, *through_another)} == {__file__}
    tensors = "2 tensors, such as 'b': no rule applies, the name stays"
    assert {str(one.message) for one in direct} == {"rule 'nothing': no tensor to apply to", tensors}
    assert {str(one.message) for one in through_another} == {
        "2 rules, such as 'nothing': no tensor to apply to",
        tensors,
    }


def test_a_file_that_is_called_as_the_package_is_a_caller_too(weights: Path) -> None:
    user = str(Path(etstream.__file__).parent) + "_user.py"
    code = compile("etstream.ptd(weights, map={'nothing': 'x', 'a': 'y'}, dry_run=True)", user, "exec")
    with pytest.warns(UserWarning) as warned:
        exec(code, {"etstream": etstream, "weights": weights})
    assert {(one.filename, one.lineno) for one in warned} == {(user, 1)}


def test_the_module_is_the_command(command: Command) -> None:
    run = [sys.executable, "-m", "etstream"]
    said = subprocess.run([*run, "--version"], capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout == command("--version").stdout
    wrong = subprocess.run([*run, "nothing"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr == command("nothing").stderr


def test_logging_is_silent_unless_asked_for() -> None:
    assert logging.getLogger("etstream").level == logging.NOTSET and not logging.getLogger("etstream").handlers
