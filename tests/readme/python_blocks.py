# SPDX-License-Identifier: BSD-3-Clause
"""Runs the pages' blocks in Python, and the one that runs a bundle on ExecuTorch's runtime, with real objects for the
names that they use. It needs an activated environment that has the package and ExecuTorch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import etstream
import fsspec
import numpy
import torch
from blocks import ROOT, block
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.exir import ExecutorchBackendConfig, to_edge

HERE = ROOT / "build" / "readme-python"


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def model_names() -> dict[str, Any]:
    """Returns an exported model and its test cases, by the names that the pages use."""
    torch.manual_seed(0)
    model = Model().eval()
    inputs = (torch.randn(2, 4),)
    edge = to_edge(torch.export.export(model, inputs))
    cases = [MethodTestCase(inputs=inputs, expected_outputs=model(*inputs).detach())]
    return {
        "torch": torch,
        "to_edge": to_edge,
        "ExecutorchBackendConfig": ExecutorchBackendConfig,
        "model": model,
        "inputs": inputs,
        "edge": edge,
        "suites": [MethodTestSuite(method_name="forward", test_cases=cases)],
    }


def run(page: str, start: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs the block of a page whose first line begins with `start`, and returns all names afterwards."""
    code = block(page, start)
    print(code, flush=True)
    exec(compile(code, f"{page}: {start}", "exec"), names)  # noqa: S102 it is ours
    return names


def flatc_script() -> None:
    """Checks that ExecuTorch calls the script where it calls flatc."""
    script = HERE / "flatc"
    script.write_text(block("docs/command/programs.md", "#!/bin/sh"), encoding="utf-8")
    script.chmod(0o755)
    code = block("docs/command/programs.md", "from executorch.exir._serialize ").replace("/path/to/script", str(script))
    names: dict[str, Any] = {}
    exec(compile(code, "docs/command/programs.md", "exec"), names)  # noqa: S102 it is ours
    schema = HERE / "schema.fbs"
    schema.write_text('table T { n: int; } root_type T; file_identifier "TEST";', encoding="utf-8")
    (HERE / "data.json").write_text('{"n": 7}', encoding="utf-8")
    names["_flatbuffer"]._run_flatc(["--binary", "-o", str(HERE), str(schema), str(HERE / "data.json")])
    (HERE / "data.json").unlink()
    names["_flatbuffer"]._run_flatc(["--json", "--strict-json", "-o", str(HERE), str(schema), "--", str(HERE / "data.bin")])
    assert '"n": 7' in (HERE / "data.json").read_text(encoding="utf-8")


def local_fsspec() -> SimpleNamespace:
    """Returns fsspec with a folder in the place of the host."""

    @contextmanager
    def opened(url: str, mode: str) -> Iterator[Any]:
        with fsspec.open(url.replace("sftp://host/", f"file://{HERE}/remote-"), mode) as file:
            yield file

    return SimpleNamespace(open=opened)


def files_in_python() -> None:
    for name in ("model.pte", "cases.json", "image_0.npy", "image_1.npy", "scores_0.npy", "scores_1.npy"):
        shutil.copy(ROOT / "examples" / name, HERE)
    x, y = numpy.load("image_0.npy"), numpy.load("scores_0.npy")
    etstream.ptd({"w": x}, "weights.ptd")
    names = run("README.md", "import etstream", {"x": x, "y": y, "fsspec": local_fsspec()})
    assert names["findings"], names["findings"]
    assert etstream.verify("model.bpte") and etstream.verify("remote-model.bpte")
    run("docs/python.md", "import etstream", {})
    assert etstream.verify("model.bpte")
    run("docs/python.md", "kept = etstream.ProgramOptions(", {"etstream": etstream})
    assert etstream.verify("pages.pte") and etstream.verify("old.pte")
    run("docs/python.md", "plan = etstream.bundle(", {"etstream": etstream})
    run("docs/python.md", "report = etstream.inspect(", {"etstream": etstream})
    names = run("docs/python.md", "plan = etstream.ptd(", {"etstream": etstream, "x": x})
    assert names["names"] == ["linear.weight"]
    names = run("docs/python.md", "etstream.fat(", {"etstream": etstream})
    assert etstream.verify("model.fat") and len(names["fat"]) == 2
    names = run("docs/python.md", "etstream.pte(", {"etstream": etstream})
    assert etstream.verify("shared.fat") and names["plan"].weights
    base = {f"layers.{i}": tensor.numpy() for i, tensor in enumerate(etstream.Checkpoint("model.pte").tensors)}
    tuned = {name: 2 * values for name, values in base.items()}
    for name, tensors in (("base", base), ("tuned", tuned)):
        etstream.ptd(tensors, f"{name}.safetensors", to="safetensors")
    names = run("docs/python.md", "origins = etstream.explain(", {"etstream": etstream})
    assert not names["origins"].unused
    names = run("docs/python.md", "plan = etstream.reweight(", {"etstream": etstream})
    assert names["plan"].replaced == len(base) and etstream.explain("tuned.pte", by=tuned)
    package = Path(__file__).resolve().parents[1] / "golden" / "native_package"
    for name in ("program.ptg", "constants.safetensors"):
        shutil.copy(package / name, name)
    names = run("docs/python.md", "etstream.ptn(", {"etstream": etstream})
    assert etstream.verify("model.ptn") and len(names["package"].tensors()) == 5
    run("docs/python.md", 'etstream.pack("model.pte"', {"etstream": etstream})
    assert Path("restored.pte").read_bytes() == Path("model.pte").read_bytes()
    shutil.copy("pages.pte", "new.pte")
    run("docs/python.md", 'etstream.pack("new.pte"', {"etstream": etstream})
    assert Path("restored.pte").read_bytes() == Path("new.pte").read_bytes()
    run("docs/python.md", "etstream.embed(", {"etstream": etstream})
    object_file = Path("model.o").read_bytes()
    assert b"network_model_sec" in object_file and Path("model.pte").read_bytes() in object_file
    loaded = run("docs/executorch.md", "import etstream", {"image": torch.from_numpy(x)})
    assert numpy.allclose(loaded["scores"].numpy(), y, atol=1e-4)
    bundle = run("docs/executorch.md", "from etstream.executorch import open_bundle", {})
    assert bundle["result"], bundle["result"]


def adaptors() -> None:
    names = run("docs/python.md", "from etstream import executorch as adaptors", model_names())
    saved = Path("model.pte").read_bytes()
    # No adaptor is in place here.
    assert names["manager"].buffer == saved
    Path("model.bpte").unlink()
    run("docs/python.md", "with adaptors.install():", {"adaptors": names["adaptors"], **model_names()})
    assert etstream.verify("model.bpte")
    names = run("docs/python.md", "from etstream.executorch import load_fat", model_names())
    assert names["program"].name == "xnnpack" and etstream.verify("model.fat")
    run("docs/python.md", "from etstream.profile import phase", model_names())


def runtime() -> None:
    """Runs the last block, which builds in the tree, and runs the bundle of the example."""
    bundle = ROOT / "model.bpte"
    examples = ROOT / "examples"
    etstream.bundle(examples / "model.pte", examples / "cases.json", bundle)
    script = block("docs/executorch.md", "cmake --preset release ")
    print(script, flush=True)
    try:
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, check=True)
    finally:
        bundle.unlink()


def main() -> int:
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    os.chdir(HERE)
    flatc_script()
    files_in_python()
    adaptors()
    runtime()
    return 0


if __name__ == "__main__":
    sys.exit(main())
