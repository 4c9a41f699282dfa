# SPDX-License-Identifier: BSD-3-Clause
"""Lowers one model for several backends, into one file with one copy of the weights.

    python examples/fat_model.py [FOLDER]

writes model.fat and model.ptd to FOLDER (default: the current one), prints their sizes, and runs the portable and the
XNNPACK program of the container in ExecuTorch. The TOSA program is added if Arm's tools are installed (pip install
'executorch[ethos-u]').
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import torch
from etstream.executorch import load_fat, specialize


class Perceptron(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
            torch.nn.Linear(1024, 10))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def main() -> int:
    parser = argparse.ArgumentParser(description="Lowers a model for several backends, with one copy of the weights.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="the folder for model.fat and model.ptd")
    folder = parser.parse_args().folder
    model, inputs = Perceptron().eval(), (torch.randn(1, 256),)
    recipes = ["xnnpack"]
    if importlib.util.find_spec("tosa_serializer"):
        recipes.insert(0, "tosa")
    else:
        print("no TOSA program: pip install 'executorch[ethos-u]' for Arm's tools")

    made = specialize(torch.export.export(model, inputs), folder / "model.fat", recipes=recipes)
    print(made)

    outputs = {}
    for preferred in ([], ["portable"]):
        with load_fat(made.container, prefer=preferred) as program:
            for other, reason in program.rejected.items():
                print(f"{other} does not run here: {reason}")
            outputs[program.name] = program.run(inputs)[0]
    difference = max((output - model(*inputs)).abs().max().item() for output in outputs.values())
    print(f"{' and '.join(outputs)} ran; they differ from the model by {difference:.1e} at most")
    return 0 if list(outputs) == ["xnnpack", "portable"] and difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
