# SPDX-License-Identifier: BSD-3-Clause
"""Shows that `compare` takes the outputs that ExecuTorch's runtime computes, as its programs write them to files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import Store
from command import Etstream
from executorch_bundle import RunnableBundle
from models import CachedModel, CasesByMethod
from test_models import bundle_of

ModelByName = Callable[[str], CachedModel]
TOLERANCE = ("--atol", "1e-4", "--rtol", "1e-4")


def write_raw(path: Path, tensor: torch.Tensor) -> None:
    path.with_suffix(".bin").write_bytes(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())


def write_array(path: Path, tensor: torch.Tensor) -> None:
    np.save(path.with_suffix(".npy"), tensor.numpy())


def computed(bundle: RunnableBundle, cases: CasesByMethod) -> dict[str, list[Sequence[torch.Tensor]]]:
    """Returns what the runtime computes, by method and case."""
    return {method: [bundle.run(method, case.inputs) for case in group] for method, group in cases.items()}


def report(etstream: Etstream, *arguments: str | Path) -> tuple[int, dict[str, Any]]:
    outcome = etstream.attempt("compare", *arguments, *TOLERANCE, "--json")
    return outcome.code, json.loads(outcome.stdout)


@pytest.mark.parametrize("write", [write_raw, write_array])
@pytest.mark.parametrize("name", ["llama", "two_methods"])
def test_the_runtimes_outputs_are_as_expected_until_an_element_changes(
    name: str, write: Callable[[Path, torch.Tensor], None], model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    cases = subject.cases()
    bundle = tmp_path / "out.bpte"
    outputs = computed(RunnableBundle(bundle_of(etstream, subject.program, cases, Store.RAW, tmp_path)), cases)
    for method, group in outputs.items():
        folder = tmp_path / method
        for number, tensors in enumerate(group):
            (folder / str(number)).mkdir(parents=True)
            for index, tensor in enumerate(tensors):
                write(folder / str(number) / f"out-{index}", tensor)
        code, found = report(etstream, bundle, "--outputs", folder, "--method", method)
        assert (code, found["ok"], len(found["runs"])) == (0, True, len(group)), found

        changed = group[-1][-1].clone()
        place = [size // 2 for size in changed.shape]
        changed[tuple(place)] += 1
        write(folder / str(len(group) - 1) / f"out-{len(group[-1]) - 1}", changed)
        code, found = report(etstream, bundle, "--outputs", folder, "--method", method)
        assert code == 1
        output = found["runs"][-1]["outputs"][-1]
        assert (output["ok"], output["mismatches"], output["first"]["place"]) == (False, 1, place)
        assert output["largest_absolute_place"] == place
        assert output["largest_absolute_error"] == pytest.approx(1, abs=1e-2)
        assert output["shape"] == list(changed.shape)
        assert sum(not run["outputs"][-1]["ok"] for run in found["runs"]) == 1
