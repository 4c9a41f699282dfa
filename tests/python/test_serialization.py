# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's own objects, serialized by etstream, give the bytes that ExecuTorch gives."""

from __future__ import annotations

import copy
import dataclasses
import gc
import hashlib
import importlib
import io
import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import models
import pytest
import torch
from etstream import executorch as adaptors
from etstream.executorch import RecipeError
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program import serialize as bundle_serializer
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.exir import ExecutorchBackendConfig, lowered_backend_module, to_edge
from executorch.exir._serialize import _flatbuffer
from executorch.exir._serialize import _program as program_serializer
from executorch.exir._serialize import _serialize
from executorch.exir._serialize._cord import Cord, FileBackedData
from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir._serialize._program import PTEFile
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
from executorch.exir.schema import Buffer
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorConfig, FlatTensorSerializer
from layouts import BASES, PteLayout
from rounds import ROUNDS

ModelByName = Callable[[str], models.CachedModel]


def suites_of(cases: models.CasesByMethod) -> list[MethodTestSuite]:
    return [
        MethodTestSuite(method, [MethodTestCase(case.inputs, case.outputs) for case in group])
        for method, group in cases.items()
    ]


def serialize(emitted: models.Emitted, layout: PteLayout) -> tuple[Cord, dict[str, Cord]]:
    """Returns what ExecuTorch's own function returns, in which other functions do the work."""
    config = ExecutorchBackendConfig(**dataclasses.asdict(layout))
    serializer = FlatTensorSerializer(FlatTensorConfig(128))
    return _serialize.serialize_for_executorch(emitted.output, config, serializer, emitted.named_data)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", models.PROGRAMS)
def test_programs_and_named_data_are_byte_identical(name: str, base: str, model: ModelByName) -> None:
    subject = model(name)
    emitted = subject.emitted()
    expected = json.loads((subject.folder / f"{base}.json").read_text())
    with adaptors.install():
        for key, digest in expected.items():
            program, named_data = serialize(emitted, PteLayout(**json.loads(key)))
            assert isinstance(program._buffers[0], adaptors.LazyData)
            assert len(program) == len(bytes(program))
            assert hashlib.sha256(bytes(program)).hexdigest() == digest, key
            assert named_data.keys() == ({"weights"} if subject.weights() else set())
            for cord in named_data.values():
                assert bytes(cord) == subject.weights()


@pytest.mark.parametrize("name", models.MODELS)
def test_bundles_are_byte_identical(name: str, model: ModelByName, tmp_path: Path) -> None:
    subject = model(name)
    bundled = BundledProgram(None, suites_of(subject.cases()), str(subject.program))
    plan = adaptors.save_bundled_program(bundled, tmp_path / "out.bpte")
    assert (tmp_path / "out.bpte").read_bytes() == subject.expected_bundle()
    assert plan.size == len(subject.expected_bundle())
    adaptors.save_bundled_program(bundled, tmp_path / "segmented.bpte", to="segmented")
    assert etstream.verify(tmp_path / "segmented.bpte")
    etstream.convert(tmp_path / "segmented.bpte", tmp_path / "back.bpte", to="bp08")
    assert (tmp_path / "back.bpte").read_bytes() == subject.expected_bundle()
    with adaptors.install():
        ours = bundle_serializer.serialize_from_bundled_program_to_flatbuffer(bundled)
        schema = bundled.serialize_to_schema()
        assert bundle_serializer._bundled_program_schema_to_flatbuffer(schema) == ours
    assert ours == subject.expected_bundle()


@pytest.fixture(scope="module")
def exported() -> models.Export:
    return models.export("two_methods")


def test_a_manager_is_saved_without_its_buffer(exported: models.Export, tmp_path: Path) -> None:
    manager = exported.manager
    expected = io.BytesIO()
    manager.write_to_file(expected)
    adaptors.save_program(manager, tmp_path / "model.pte")
    assert (tmp_path / "model.pte").read_bytes() == expected.getvalue()
    suites = suites_of(exported.cases)
    adaptors.save_bundled_program((manager, suites), tmp_path / "model.bpte")
    assert manager._buffer is None
    assert (tmp_path / "model.bpte").read_bytes() == models.executorch_bundle(exported)
    with adaptors.install():
        manager.save(str(tmp_path / "saved.pte"))
        with pytest.raises(ValueError, match=r"does not end with \.pte"):
            manager.save(str(tmp_path / "saved"))
    assert (tmp_path / "saved.pte").read_bytes() == expected.getvalue()


def test_a_manager_takes_test_cases_in_every_form(exported: models.Export) -> None:
    suites = suites_of(exported.cases)
    expected = models.executorch_bundle(exported)
    ours = [etstream.TestSuite(suite.method_name, suite.test_cases) for suite in reversed(suites)]
    for cases in (ours, {suite.method_name: suite for suite in suites}):
        assert bytes(adaptors.save_bundled_program((exported.manager, cases), dry_run=True)) == expected
    one = etstream.BundledProgramFile(adaptors.save_bundled_program((exported.manager, suites[0]), dry_run=True).source())
    assert [suite.method_name for suite in one.suites] == [suites[0].method_name]
    suites[0].test_cases[0].inputs.pop()
    with pytest.raises(etstream.InvalidArgumentError, match="inputs"):
        adaptors.save_bundled_program((exported.manager, suites), dry_run=True)


def test_what_is_no_manager_is_refused_with_the_next_step(exported: models.Export, tmp_path: Path) -> None:
    edge = to_edge(torch.export.export(torch.nn.ReLU(), (torch.ones(1),)))
    takers: list[Callable[[Any], object]] = [
        adaptors.program_source,
        lambda manager: adaptors.save_program(manager, tmp_path / "a.pte"),
        lambda manager: adaptors.save_tensor_data(manager, tmp_path),
        lambda manager: adaptors.save_bundled_program((manager, []), dry_run=True),
    ]
    for take in takers:
        with pytest.raises(TypeError, match=r"found EdgeProgramManager: call its to_executorch\(\) first"):
            take(edge)
        with pytest.raises(TypeError, match="expected an ExecutorchProgramManager, found str"):
            take("model.pte")
    with pytest.raises(TypeError, match="expected a BundledProgram, or a manager and its test cases"):
        adaptors.save_bundled_program(exported.manager, dry_run=True)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="call its to_executorch"):
        adaptors.specialize(edge.exported_program(), tmp_path / "a.fat", recipes={"a": lambda program: edge}, fallback=None)


def test_an_export_with_etstream_in_place_is_the_same(exported: models.Export, tmp_path: Path) -> None:
    with adaptors.install():
        again = models.export("two_methods").manager
        assert isinstance(again._pte_data._buffers[0], adaptors.LazyData)
        with open(tmp_path / "model.pte", "wb") as file:
            again.write_to_file(file)
    assert (tmp_path / "model.pte").read_bytes() == again.buffer == exported.manager.buffer


def test_named_data_goes_to_a_folder(tmp_path: Path) -> None:
    manager = models.export("external_constants").manager
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    manager.write_tensor_data_to_file(str(tmp_path / "theirs"))
    paths = adaptors.save_tensor_data(manager, tmp_path / "ours")
    assert [Path(path).name for path in paths] == ["weights.ptd"]
    assert (tmp_path / "ours/weights.ptd").read_bytes() == (
        tmp_path / "theirs/weights.ptd"
    ).read_bytes()


class Chance(random.Random):
    """A source of random data and options."""

    def named_data(self) -> tuple[list[bytes], dict[str, DataEntry]]:
        """Returns keys that share buffers, and differ in the alignment that they ask for."""
        buffers = [self.randbytes(self.choice([0, 1, 100, 3000])) for _ in range(6)]
        alignments = [None, 1, 16, 64, 512, 4096]
        keys = [f"key {i}" for i in range(self.randrange(10))]
        return buffers, {
            key: DataEntry(self.randrange(len(buffers)), self.choice(alignments), None) for key in keys
        }

    def layout(self) -> dict[str, Any]:
        return {
            "extract_delegate_segments": self.random() < 0.5,
            "segment_alignment": self.choice([1, 16, 128, 4096]),
            "constant_tensor_alignment": self.choice([None, 1, 64, 512]),
            "delegate_alignment": self.choice([None, 1, 32, 256]),
        }


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_named_data_lies_where_its_alignments_have_it(seed: int) -> None:
    chance = Chance(seed)
    payload = DataPayload(*chance.named_data())
    alignment = chance.layout()["segment_alignment"]
    expected = bytes(FlatTensorSerializer(FlatTensorConfig(alignment)).serialize(payload))
    assert bytes(adaptors.plan_ptd_file(payload, alignment)) == expected


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", ["two_methods", "example", "initialized_buffers", "shared_named_data"])
def test_segments_lie_where_their_alignments_have_them(name: str, seed: int, model: ModelByName) -> None:
    chance = Chance(seed)
    output = model(name).emitted().output
    named_data = NamedDataStoreOutput(*chance.named_data(), {}) if seed % 4 else None
    options = chance.layout()
    # ExecuTorch's function changes its arguments.
    theirs, ours = (
        PTEFile(copy.deepcopy(output.program), copy.deepcopy(output.mutable_data), named_data) for _ in range(2)
    )
    expected = bytes(program_serializer.serialize_pte_binary(theirs, **options))
    assert bytes(adaptors.plan_pte_file(ours, **options)) == expected, options


def test_data_may_lie_anywhere(model: ModelByName, tmp_path: Path) -> None:
    """Checks that views, tensors, files and parts of files give the same bytes as bytes do."""
    emitted = model("two_methods").emitted()
    expected = bytes(program_serializer.serialize_pte_binary(PTEFile(emitted.output.program)))
    program = emitted.output.program
    constants = [buffer.storage for buffer in program.constant_buffer]
    assert len(constants) > 1
    (tmp_path / "data").write_bytes(b"??" + b"".join(constants))
    offset = 2
    for wrap in (
        memoryview,
        bytearray,
        etstream.Source,
        adaptors.LazyData,
        lambda data: torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else b"",
    ):
        program.constant_buffer = [Buffer(wrap(data)) for data in constants]
        assert bytes(adaptors.plan_pte_file(PTEFile(program))) == expected
    program.constant_buffer = []
    for data in constants:
        program.constant_buffer.append(
            Buffer(etstream.Source.file(tmp_path / "data", offset, len(data)))
        )
        offset += len(data)
    assert bytes(adaptors.plan_pte_file(PTEFile(program))) == expected


def test_lazy_data_is_file_backed_data(tmp_path: Path) -> None:
    data = adaptors.LazyData(b"some bytes")
    assert isinstance(data, FileBackedData)
    assert len(data) == 10 and data.prefix(4) == b"some" and data.prefix(99) == b"some bytes"
    assert data.sha256() == hashlib.sha256(b"some bytes").digest()
    cord = Cord(data)
    cord.append(b"!")
    with open(tmp_path / "out", "wb") as file:
        cord.write_to_file(file)
    assert bytes(cord) == (tmp_path / "out").read_bytes() == b"some bytes!"


def test_file_backed_data_lasts_as_long_as_what_was_planned(model: ModelByName, tmp_path: Path) -> None:
    """Hands over data as a CUDA backend does: its file goes with the last object that refers to it."""
    program = model("mobilenet_v2").emitted().output.program
    expected = bytes(program_serializer.serialize_pte_binary(PTEFile(copy.deepcopy(program))))
    for i, buffer in enumerate(program.constant_buffer):
        (tmp_path / str(i)).write_bytes(buffer.storage)
        program.constant_buffer[i] = Buffer(FileBackedData.move_from(str(tmp_path / str(i))))
    plan = adaptors.plan_pte_file(PTEFile(program))
    program.constant_buffer.clear()
    gc.collect()
    assert list(tmp_path.iterdir())
    assert bytes(plan) == expected
    del plan
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_with_an_object_is_named(model: ModelByName) -> None:
    emitted = model("two_methods").emitted()
    plan = emitted.output.program.execution_plan[0]
    plan.operators[0].name = 5
    with pytest.raises(TypeError):
        adaptors.plan_pte_file(PTEFile(emitted.output.program))
    emitted = model("two_methods").emitted()
    emitted.output.program.execution_plan[0].inputs = [1 << 40]
    with pytest.raises(etstream.InvalidArgumentError, match="ExecutionPlan.inputs: 1099511627776 does not fit"):
        adaptors.plan_pte_file(PTEFile(emitted.output.program))
    emitted.output.program.execution_plan[0].inputs = ["0"]
    with pytest.raises(etstream.InvalidArgumentError, match="ExecutionPlan.inputs: expected an integer, found str"):
        adaptors.plan_pte_file(PTEFile(emitted.output.program))
    emitted.output.program.execution_plan[0].inputs = []
    emitted.output.program.execution_plan[0].values[0].val = object()
    with pytest.raises(etstream.InvalidArgumentError, match="expected a member of KernelTypes, found object"):
        adaptors.plan_pte_file(PTEFile(emitted.output.program))


def test_patches_reach_every_module_and_are_undone() -> None:
    original = program_serializer.serialize_pte_binary
    assert lowered_backend_module._serialize_pte_binary is original
    with adaptors.install():
        assert program_serializer.serialize_pte_binary is not original
        for place in (_serialize.serialize_pte_binary, lowered_backend_module._serialize_pte_binary):
            assert place is program_serializer.serialize_pte_binary
        with adaptors.install():
            pass
        assert program_serializer.serialize_pte_binary is not original
    for place in (
        program_serializer.serialize_pte_binary,
        _serialize.serialize_pte_binary,
        lowered_backend_module._serialize_pte_binary,
    ):
        assert place is original
    adaptors.uninstall()
    assert program_serializer.serialize_pte_binary is original
    with pytest.raises(ZeroDivisionError), adaptors.install():
        1 / 0
    assert program_serializer.serialize_pte_binary is original


def test_a_module_imported_meanwhile_gets_the_originals_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_meanwhile.py").write_text(
        "from executorch.exir._serialize._flatbuffer import _run_flatc as run\n"
        "from executorch.exir._serialize._program import serialize_pte_binary\n"
        "from executorch.devtools.bundled_program.serialize import (\n"
        "    deserialize_from_flatbuffer_to_bundled_program as read,\n"
        "    serialize_from_bundled_program_to_flatbuffer as write,\n"
        ")\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with adaptors.install():
        taken = importlib.import_module("imported_meanwhile")
        assert taken.serialize_pte_binary is program_serializer.serialize_pte_binary
    assert taken.run is _flatbuffer._run_flatc
    assert taken.serialize_pte_binary is program_serializer.serialize_pte_binary
    assert taken.read is bundle_serializer.deserialize_from_flatbuffer_to_bundled_program
    assert taken.write is bundle_serializer.serialize_from_bundled_program_to_flatbuffer
    for function in (taken.run, taken.serialize_pte_binary, taken.read, taken.write):
        assert function.__module__.startswith("executorch.")


def test_patches_are_put_in_place_by_many_threads_at_once(model: ModelByName) -> None:
    original = program_serializer.serialize_pte_binary
    subject = model("two_methods")
    expected = subject.program.read_bytes()
    emitted = subject.emitted()
    wrong: list[object] = []

    def work() -> None:
        for _ in range(20):
            with adaptors.install():
                program, _ = serialize(emitted, PteLayout())
                if bytes(program) != expected:
                    wrong.append(program)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert program_serializer.serialize_pte_binary is original
