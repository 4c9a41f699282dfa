# SPDX-License-Identifier: BSD-3-Clause
"""Measures the memory of the ways in which people export models: as they are, under `etstream run`, and with
low_memory_export().

    ETSTREAM=PATH python export_paths.py SCRATCH_FOLDER [--shape NAME] [--wide N] [--only GLOB]... [--way NAME]...
        [--limit SIZE] [--from SIZE] [--sparse]

A model of 16 GB, which needs 80 GB on the disk, in 4 GiB:

    ... --shape 8B --sparse --only "export_llama XNNPACK 8da4w" --way run --limit 4G

Each export is a process of its own, one after the other. Prints a row for each:

- anonymous: the most anonymous memory there was, as `etstream profile` sees it every 10 ms, over the most of a process
  that only imports the path's modules, the same way.
- resident: the most of resident memory, pages of files and the imports among them.
- disk: the most that the heap's file took.
- same: whether the output is byte for byte that of the way `plain`.

Weights are random, and those of one shape the same; with --sparse
only a few of each tensor, and the rest zeros that take no room on the disk. --wide makes each layer so many times as
wide. An export that asks for more than --most GiB of memory of its own gets no more; a private mapping of the checkpoint,
as `torch.load(mmap=True)` makes it, does not count.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkpoints import mapped_read_only, write_checkpoint
from profiles import ETSTREAM, MIB, Profiled, profiled

ROOT = Path(__file__).resolve().parent
sys.path.append(str(ROOT.parent / "tests" / "python"))
import arm_models  # noqa: E402

WORKLOADS = [sys.executable, str(ROOT / "export_workloads.py")]
WAYS = ("plain", "run", "low")
LLAMA = "executorch.examples.models.llama.export_llama"
ARM = "executorch.backends.arm.scripts.aot_arm_compiler"
LOWERING = ["executorch.exir", "executorch.backends.xnnpack.partition.xnnpack_partitioner", "torch._dynamo"]
LLM = [*LOWERING, "transformers.models.llama.modeling_llama", "transformers.integrations.executorch", "torchao"]
SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 4096,
    },
    # The next shape is four times as wide.
    "81M": {
        "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 16,
        "num_attention_heads": 4, "num_key_value_heads": 1, "vocab_size": 128256,
    },
    "505M": {
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 16,
        "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 128256,
    },
    # The shape of Llama 3 8B.
    "8B": {
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    },
}  # fmt: skip
WIDE = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")


@dataclass(frozen=True)
class Export:
    """An export: `arguments` are those of `module`, a script that is run as it is, or else of export_workloads.py."""

    name: str
    imports: Sequence[str]
    arguments: Sequence[str]
    module: str = ""

    def command(self, way: str) -> list[str]:
        if way == "low":
            what = ["module", self.module] if self.module else []
            return [*WORKLOADS, "--low", *what, *self.arguments]
        return [sys.executable, "-m", self.module, *self.arguments] if self.module else [*WORKLOADS, *self.arguments]


def llama(name: str, *options: str) -> Export:
    """Returns an export by ExecuTorch's own script."""
    checkpoint = ["-c", "checkpoint/consolidated.00.pth", "-p", "checkpoint/params.json"]
    attention = ["--model", "llama3_2", "-kv", "--use_sdpa_with_kv_cache"]
    arguments = [*checkpoint, *attention, *options, "-n", "output.pte"]
    return Export(f"export_llama {name}", [LLAMA, *LOWERING], arguments, LLAMA)


def llm(name: str, kind: str) -> Export:
    return Export(name, LLM, ["llm", kind, "checkpoint", "output.pte"])


def arm(target: str) -> Export:
    arguments = ["-m", "linears.py", "-d", "-q", "-t", target, "-o", "output.pte"]
    return Export(f"Arm compiler, {target}", [ARM, *LOWERING], arguments, ARM)


EXPORTS = (
    llama("fp32", "-d", "fp32"),
    llama("bf16", "-d", "bf16"),
    llama("XNNPACK fp32", "-d", "fp32", "-X", "--xnnpack-extended-ops"),
    llama("XNNPACK 8da4w", "-d", "fp32", "-X", "-qmode", "8da4w", "-G", "32", "-E", "4,32"),
    llm("transformers bf16", "bf16:portable"),
    llm("transformers XNNPACK fp32", "fp32:xnnpack"),
    llm("transformers XNNPACK 8da4w", "8da4w:xnnpack"),
    llm("torchao int4 weights", "int4:xnnpack"),
    llm("torchao int8 weights", "int8:xnnpack"),
    llm("pt2e static int8 XNNPACK", "static:xnnpack"),
    llm("Vulkan fp32", "fp32:vulkan"),
    arm("TOSA-1.0+INT"),
    arm("ethos-u55-128"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="505M")
    parser.add_argument("--wide", type=int, default=1, metavar="N")
    parser.add_argument("--only", action="append", metavar="GLOB", help="run only exports whose name matches")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--from", dest="smallest", metavar="SIZE", help="the option of `etstream run`")
    parser.add_argument("--limit", metavar="SIZE", help="the option of `etstream run`")
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--most", type=float, default=10, metavar="GIB")
    options = parser.parse_args()
    folder = options.folder.resolve() / "export-paths"
    folder.mkdir(parents=True)
    try:
        write_inputs(folder, SHAPES[options.shape], options.wide, options.sparse)
        given = {"--from": options.smallest, "--limit": options.limit}
        run_options = [word for name, value in given.items() if value for word in (name, value)]
        Table(folder, options.way or WAYS, int(options.most * (1 << 30)), run_options).show(
            [one for one in EXPORTS if any(fnmatch.fnmatch(one.name, glob) for glob in options.only or "*")],
            f"{options.shape}, {options.wide} times as wide" if options.wide > 1 else options.shape,
        )
    finally:
        shutil.rmtree(folder)
    return 0


def write_inputs(folder: Path, shape: dict[str, Any], wide: int, sparse: bool) -> None:
    """Writes the checkpoint in bfloat16, in the layouts of Hugging Face and of Meta, and linear layers for Arm."""
    import torch

    shape = {name: size * wide if name in WIDE else size for name, size in shape.items()}
    write_checkpoint(folder / "checkpoint", shape, "bfloat16", sparse=sparse)
    with warnings.catch_warnings(action="ignore"):  # The tensors can't be written to, and nothing writes to them.
        tensors = mapped_read_only(folder / "checkpoint" / "model.safetensors")
    meta = {meta_name(name): tensor for name, tensor in tensors.items()}
    torch.save(meta, folder / "checkpoint" / "consolidated.00.pth")
    if sparse:
        subprocess.run(["fallocate", "--dig-holes", folder / "checkpoint" / "consolidated.00.pth"], check=True)
    names = {
        "dim": "hidden_size", "hidden_dim": "intermediate_size", "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads", "n_kv_heads": "num_key_value_heads", "vocab_size": "vocab_size",
    }  # fmt: skip
    params = {name: shape[other] for name, other in names.items()}
    (folder / "checkpoint" / "params.json").write_text(json.dumps(params))
    arm_models.write_linears(folder, 4 * shape["hidden_size"])


def meta_name(name: str) -> str:
    """Returns Meta's name of a tensor of Hugging Face's Llama."""
    for pattern, other in (
        (r"model\.embed_tokens", "tok_embeddings"),
        (r"lm_head", "output"),
        (r"self_attn\.(.)_proj", r"attention.w\1"),
        (r"mlp\.gate_proj", "feed_forward.w1"),
        (r"mlp\.down_proj", "feed_forward.w2"),
        (r"mlp\.up_proj", "feed_forward.w3"),
        (r"input_layernorm", "attention_norm"),
        (r"post_attention_layernorm", "ffn_norm"),
        (r"model\.", ""),
    ):
        name = re.sub(pattern, other, name)
    return name


class Table:
    """A table of measurements, printed as they are made."""

    def __init__(self, folder: Path, ways: Sequence[str], most: int, run_options: Sequence[str]) -> None:
        self._folder = folder
        self._weights = folder / "checkpoint" / "model.safetensors"
        self._ways = ways
        self._most = most
        self._run_command = [ETSTREAM, "run", "--spill", str(folder), *run_options, "--"]
        self._imported: dict[tuple[str, ...], Profiled] = {}

    def show(self, exports: Sequence[Export], title: str) -> None:
        print(f"\n{title}: {self._weights.stat().st_size / MIB:.0f} MiB of weights in bfloat16")
        self._row("", "", "anonymous MiB", "resident MiB", "disk MiB", "seconds", "same")
        for export in exports:
            plain = ""
            for way in self._ways:
                digest = self._run(export, way, plain)
                plain = digest if way == "plain" else plain

    def _run(self, export: Export, way: str, plain: str) -> str:
        """Runs an export, and returns the SHA-256 of its output, or "" after a failure."""
        output = self._folder / "output.pte"
        before = self._after_imports(export, way)
        if before.is_failed:
            print(f"{export.name:<28} {way:<6} NOT RUN: {last_line(before.log)}", flush=True)
            return ""
        most = self._most + self._weights.stat().st_size
        taken = profiled([*self._prefix(way), *export.command(way)], self._folder, most=most)
        if taken.is_failed:
            self._show(export.name, way, taken, before, f"FAILED: {last_line(taken.log)}")
            return ""
        with output.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        output.unlink()
        same = "" if not plain else "yes" if digest == plain else "NO"
        self._show(export.name, way, taken, before, same)
        return digest

    def _prefix(self, way: str) -> list[str]:
        return self._run_command if way == "run" else []

    def _after_imports(self, export: Export, way: str) -> Profiled:
        """Measures a process that only imports the modules that the export needs."""
        modules = [*export.imports, *(["etstream.executorch"] if way == "low" else [])]
        key = ("run" if way == "run" else "", *modules)
        if key not in self._imported:
            command = [*self._prefix(way), sys.executable, "-c", f"import {', '.join(modules)}"]
            self._imported[key] = profiled(command, self._folder)
        return self._imported[key]

    def _show(self, name: str, way: str, taken: Profiled, before: Profiled, same: str) -> None:
        report = taken.report
        anonymous, resident = (taken.anonymous - before.anonymous) / MIB, report["peak"]["resident"] / MIB
        disk = f"{report['spilled'] / MIB:.0f}" if way == "run" else ""
        self._row(name, way, f"{anonymous:.0f}", f"{resident:.0f}", disk, f"{report['seconds']:.0f}", same)
        print(f"{'':<35} imports {before.anonymous / MIB:.0f}", flush=True)

    def _row(self, *columns: str) -> None:
        print("{:<28} {:<6} {:>14} {:>13} {:>9} {:>8} {}".format(*columns), flush=True)


def last_line(text: str) -> str:
    """Returns the last error that Python or the command reports."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    return (errors or lines or ["it says nothing"])[-1][:200]


if __name__ == "__main__":
    sys.exit(main())
