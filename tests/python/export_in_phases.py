# SPDX-License-Identifier: BSD-3-Clause
"""Exports a model of 160 MiB from safetensors, in a process that says what phase it is in.

    python export_in_phases.py low|upstream FOLDER

Reads FOLDER/stack.safetensors, and writes FOLDER/portable.pte, FOLDER/xnnpack.pte and FOLDER/vulkan.pte.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from etstream.profile import phase

with phase("imports"):
    import torch
    from etstream.executorch import low_memory_export
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge, to_edge_transform_and_lower
    from safetensors.torch import load_file

LAYERS, WIDTH = 10, 2048
PARTITIONERS = {"portable": [], "xnnpack": [XnnpackPartitioner], "vulkan": [VulkanPartitioner]}


def stack() -> torch.nn.Module:
    with torch.device("meta"):
        return torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).eval()


def main() -> None:
    low, folder = sys.argv[1] == "low", Path(sys.argv[2])
    model, inputs = stack(), (torch.ones(1, WIDTH),)
    model.load_state_dict(load_file(folder / "stack.safetensors"), assign=True)
    with low_memory_export(folder) if low else contextlib.nullcontext(), torch.no_grad():
        for target, partitioners in PARTITIONERS.items():
            with phase(target):
                graph = torch.export.export(model, inputs)
                if partitioners:
                    edge = to_edge_transform_and_lower(graph, partitioner=[make() for make in partitioners])
                else:
                    edge = to_edge(graph)
                program = edge.to_executorch()
                with (folder / f"{target}.pte").open("wb") as file:
                    program.write_to_file(file)
                del graph, edge, program


if __name__ == "__main__":
    main()
