# SPDX-License-Identifier: BSD-3-Clause
"""Makes the inputs of `etstream bundle`: model.pte, cases.json and its tensors.

From the top folder of the project:

    python examples/make_example.py
    etstream bundle examples/model.pte --cases examples/cases.json -o model.bpte
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from executorch.exir import ExecutorchProgramManager, to_edge

METHOD = "forward"


class DigitClassifier(torch.nn.Module):
    """A model that scores a 16x16 grey image as each of ten digits (untrained)."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1)
        self.scores = torch.nn.Linear(8 * 8 * 8, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.scores(torch.relu(self.features(image)).flatten(1))


def make_model() -> DigitClassifier:
    """Returns the model, with the same weights each time."""
    torch.manual_seed(0)
    return DigitClassifier().eval()


def make_inputs(count: int) -> list[torch.Tensor]:
    """Returns images to test the model with, the same ones each time."""
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(1, 1, 16, 16, generator=generator) for _ in range(count)]


def compile_model(model: DigitClassifier, image: torch.Tensor) -> ExecutorchProgramManager:
    """Returns the model as an ExecuTorch program."""
    return to_edge(torch.export.export(model, (image,))).to_executorch()


def write_case(folder: Path, index: int, image: torch.Tensor, scores: torch.Tensor) -> dict:
    """Writes one test case's tensors into `folder`, and returns its entry in cases.json."""
    np.save(folder / f"image_{index}.npy", image.numpy())
    np.save(folder / f"scores_{index}.npy", scores.numpy())
    return {
        "inputs": [{"npy": f"image_{index}.npy"}],
        "expected_outputs": [{"npy": f"scores_{index}.npy"}],
    }


def main() -> None:
    description = "Makes model.pte, cases.json and its tensors again, in the folder of this script."
    argparse.ArgumentParser(description=description).parse_args()
    folder = Path(__file__).resolve().parent
    model = make_model()
    images = make_inputs(2)
    with torch.no_grad():
        cases = [write_case(folder, i, image, model(image)) for i, image in enumerate(images)]
    (folder / "cases.json").write_text(json.dumps({METHOD: cases}, indent=2) + "\n")
    (folder / "model.pte").write_bytes(compile_model(model, images[0]).buffer)


if __name__ == "__main__":
    main()
