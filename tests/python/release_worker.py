# SPDX-License-Identifier: BSD-3-Clause
"""Tries etstream.executorch with another release of ExecuTorch, in a process of its own.

    python release_worker.py RELEASE FOLDER

RELEASE is where the release's packages lie, and FOLDER where files may be written. Prints the result of each feature as
JSON: "same", if its bytes, or objects, are those that the release gives by itself; "same content", if the bytes differ
only in where things lie; "other"; or the error.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# This comes before any import of ExecuTorch, as none of its packages may come from the environment's release.
RELEASE, FOLDER = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
sys.path.insert(0, str(RELEASE))
import executorch  # noqa: E402

executorch.__path__ = [str(RELEASE / "executorch")]
warnings.simplefilter("ignore")

import torch  # noqa: E402

import etstream  # noqa: E402
import etstream.executorch as adaptors  # noqa: E402
from etrecords import entries  # noqa: E402
from executorch.devtools import BundledProgram, generate_etrecord  # noqa: E402
from executorch.devtools.bundled_program import serialize as bundles  # noqa: E402
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite  # noqa: E402
from executorch.exir import (  # noqa: E402
    EdgeProgramManager,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


torch.manual_seed(0)
MODEL = Model().eval()
INPUTS = (torch.randn(2, 128),)
EXTERNAL = ExecutorchBackendConfig(external_constants=True)


def portable() -> EdgeProgramManager:
    return to_edge(torch.export.export(MODEL, INPUTS))


def xnnpack() -> EdgeProgramManager:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    exported = torch.export.export(MODEL, INPUTS)
    return to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])


def files(manager: ExecutorchProgramManager) -> list[bytes]:
    """Returns the files that the release writes: the program, and its weights."""
    folder = FOLDER / "weights"
    folder.mkdir(exist_ok=True)
    manager.write_tensor_data_to_file(str(folder))
    return [manager.buffer, *(path.read_bytes() for path in sorted(folder.glob("*.ptd")))]


PROGRAM = portable().to_executorch()
WITH_WEIGHTS = portable().to_executorch(EXTERNAL)
SUITES = [MethodTestSuite("forward", [MethodTestCase(INPUTS, (MODEL(*INPUTS),))])]
BUNDLE = bundles.serialize_from_bundled_program_to_flatbuffer(BundledProgram(PROGRAM, SUITES))


def save_program() -> bool:
    output = io.BytesIO()
    adaptors.save_program(PROGRAM, output)
    return output.getvalue() == PROGRAM.buffer


def save_tensor_data() -> bool:
    saved = [Path(path).read_bytes() for path in adaptors.save_tensor_data(WITH_WEIGHTS, FOLDER)]
    return len(saved) == 1 and saved == files(WITH_WEIGHTS)[1:]


def save_bundled_program() -> bool | str:
    output = io.BytesIO()
    adaptors.save_bundled_program((PROGRAM, SUITES), output)
    found = etstream.diff(output.getvalue(), BUNDLE, ignore_layout=True)
    return found.same_bytes or ("same content" if found.same_content else "other")


def load_bundled_program() -> bool:
    return adaptors.load_bundled_program(BUNDLE) == bundles.deserialize_from_flatbuffer_to_bundled_program(BUNDLE)


def verify() -> bool:
    (FOLDER / "model.pte").write_bytes(PROGRAM.buffer)
    return bool(etstream.verify(FOLDER / "model.pte")) and bool(etstream.verify(BUNDLE))


def open_bundle() -> bool:
    with adaptors.open_bundle(BUNDLE) as bundle:
        assert bundle.methods == {"forward": 1}
        assert bundle.program.read() == PROGRAM.buffer
        return bool(bundle.verify("forward", 0))


def install() -> bool:
    expected = [files(edge().to_executorch(EXTERNAL)) for edge in (portable, xnnpack)]
    lowered = len(expected[1][0])
    with adaptors.install():
        found = [files(edge().to_executorch(EXTERNAL)) for edge in (portable, xnnpack)]
        bundle = bundles.serialize_from_bundled_program_to_flatbuffer(BundledProgram(PROGRAM, SUITES))
        PROGRAM.save(str(FOLDER / "saved.pte"))
    return (
        lowered > 0
        and found == expected
        and bundle == BUNDLE
        and (FOLDER / "saved.pte").read_bytes() == PROGRAM.buffer
    )


def etrecord() -> bool:
    edge = portable()
    generate_etrecord(FOLDER / "theirs", edge, PROGRAM)
    with adaptors.install():
        generate_etrecord(FOLDER / "ours", edge, PROGRAM)
    return entries(FOLDER / "ours") == entries(FOLDER / "theirs")


def low_memory_export() -> bool:
    expected = [files(edge().to_executorch(config)) for edge in (portable, xnnpack) for config in (None, EXTERNAL)]
    with adaptors.low_memory_export(FOLDER):
        managers = [edge().to_executorch(config) for edge in (portable, xnnpack) for config in (None, EXTERNAL)]
    saved = io.BytesIO()
    adaptors.save_program(managers[0], saved)
    return [files(manager) for manager in managers] == expected and saved.getvalue() == expected[0][0]


FEATURES: list[Callable[[], bool | str]] = [
    *(save_program, save_tensor_data, save_bundled_program, load_bundled_program, verify, open_bundle),
    *(install, etrecord, low_memory_export),
]


def outcome(feature: Callable[[], bool | str]) -> str:
    try:
        found = feature()
        return found if isinstance(found, str) else "same" if found else "other"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    for name, module in sys.modules.copy().items():
        place: Any = getattr(module, "__file__", None)
        if name.startswith("executorch.") and place is not None:
            assert Path(place).is_relative_to(RELEASE), f"{name} is from {place}"
    print(json.dumps({feature.__name__: outcome(feature) for feature in FEATURES}))


if __name__ == "__main__":
    main()
