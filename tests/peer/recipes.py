# SPDX-License-Identifier: BSD-3-Clause
"""Exports one small model of Llama's kind in several ways, as for the specializations of a fat container."""

from __future__ import annotations

import torch
from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge, to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

VOCABULARY, WIDTH, HEADS, HIDDEN, LAYERS, LENGTH = 2048, 256, 4, 512, 2, 16


class Norm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.feed_forward_norm = Norm(), Norm()
        self.wq, self.wk, self.wv, self.wo = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.w1, self.w3 = (torch.nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.w2 = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        def heads(y: torch.Tensor) -> torch.Tensor:
            return y.view(1, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)

        def rotate(y: torch.Tensor) -> torch.Tensor:
            half = WIDTH // HEADS // 2
            return y * cos + torch.cat((-y[..., half:], y[..., :half]), -1) * sin

        y = self.attention_norm(x)
        q, k, v = rotate(heads(self.wq(y))), rotate(heads(self.wk(y))), heads(self.wv(y))
        mask = torch.triu(torch.full((LENGTH, LENGTH), -1e9), 1)
        weights = torch.softmax(q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5 + mask, -1)
        x = x + self.wo((weights @ v).transpose(1, 2).reshape(1, LENGTH, WIDTH))
        y = self.feed_forward_norm(x)
        return x + self.w2(torch.nn.functional.silu(self.w1(y)) * self.w3(y))


class Llama(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        self.output = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        size = WIDTH // HEADS
        angles = torch.outer(torch.arange(LENGTH), 1e4 ** (-torch.arange(0, size, 2) / size))
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.output(self.norm(x))


def tokens() -> torch.Tensor:
    return torch.arange(7, 7 + 13 * LENGTH, 13).reshape(1, LENGTH)


def programs() -> dict[str, bytes]:
    """Returns the programs by recipe. "int8" has quantised linear layers; the others have the same weights."""
    torch.manual_seed(0)
    model, example = Llama().eval(), (tokens(),)

    def exported() -> torch.export.ExportedProgram:
        return torch.export.export(model, example)

    def delegated(program: torch.export.ExportedProgram, partitioner: XnnpackPartitioner) -> bytes:
        return bytes(to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch().buffer)

    quantizer = XNNPACKQuantizer().set_module_type(
        torch.nn.Linear, get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    )
    prepared = prepare_pt2e(exported().module(), quantizer)
    prepared(*example)
    quantised = torch.export.export(convert_pt2e(prepared), example)
    return {
        "portable": bytes(to_edge(exported()).to_executorch().buffer),
        "xnnpack": delegated(exported(), XnnpackPartitioner()),
        "per_op": delegated(
            exported(), XnnpackPartitioner(config_precisions=ConfigPrecisionType.FP32, per_op_mode=True)
        ),
        "int8": delegated(quantised, XnnpackPartitioner()),
    }
