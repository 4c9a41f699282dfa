# SPDX-License-Identifier: BSD-3-Clause
"""Makes models whose programs are sound and run, so that `etstream verify` may not refuse them: control flow, buffers,
shapes that change, lists, and operators that look up by indices."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import executorch.kernels.quantized  # noqa: F401  # operators that write to their arguments
import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "field"))
from export_models import Model  # noqa: E402

_ROWS = torch.export.Dim("rows", min=2, max=16)
_COLUMNS = torch.export.Dim("columns", min=1, max=9)


class _Calls(torch.nn.Module):
    """A model that calls `function` with the module, which has the buffers, and the inputs."""

    def __init__(self, function: Callable[..., Any], buffers: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.function = function
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self, *inputs)


def _model(function: Callable[..., Any], *inputs: torch.Tensor, dynamic: Any = None, **buffers: torch.Tensor) -> Model:
    """Returns a model of a function. `dynamic` is a dynamic size of the first input."""
    shapes = None if dynamic is None else ((dynamic, *[None] * (len(inputs) - 1)),)
    return Model.of(_Calls(function, buffers), inputs, dynamic_shapes=shapes)


def scan() -> Model:
    def step(carried: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return carried + row, carried * row

    return _model(lambda _, x: torch._higher_order_ops.scan(step, torch.zeros(4), x, dim=0), torch.randn(3, 4))


def map_with_operand() -> Model:
    def forward(_: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.higher_order.map_impl(lambda row, y: (row.relu() @ y,), (x,), (y,))[0].sum(0)

    return _model(forward, torch.randn(3, 4, 4), torch.randn(4, 4))


def cond_with_indices() -> Model:
    """Returns a model with two ways, of which one writes over much memory before the other looks up."""
    lookup = torch.nn.functional.embedding

    def forward(_: Any, choice: torch.Tensor, at: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return torch.cond(
            choice,
            lambda at, table: (table * 2).sum(0)[None] + lookup(at, table),
            lambda at, table: lookup(at, table.cos()) - 1,
            (at, table),
        )

    return _model(forward, torch.tensor(True), torch.tensor([1, 2, 3]), torch.randn(8, 4))


def cache_at_position() -> Model:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, self.position, x)
        self.position.add_(1)
        return self.cache * 2

    buffers = {"cache": torch.zeros(8, 4), "position": torch.zeros(1, dtype=torch.int64)}
    return _model(forward, torch.randn(1, 4), **buffers)


def _first_rows(x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    count = position[0].item()
    torch._check_is_size(count)
    torch._check(count < 8)
    return x.narrow(0, 0, count).sum(0)


def number_of_input() -> Model:
    return _model(lambda _, x, position: _first_rows(x, position), torch.randn(8, 4), torch.tensor([3]))


def number_of_buffer() -> Model:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        taken = _first_rows(x, self.position)
        self.position.add_(1)
        return taken

    return _model(forward, torch.randn(8, 4), position=torch.ones(1, dtype=torch.int64))


def lists() -> Model:
    def forward(_: Any, x: torch.Tensor) -> Any:
        return [part * 2 for part in torch.split(x, 2, dim=1)] + [part + 1 for part in torch.unbind(x, 1)], None, 3

    return _model(forward, torch.randn(4, 6), dynamic={0: _ROWS})


def views() -> Model:
    def forward(_: Any, x: torch.Tensor) -> Any:
        return x.reshape(-1, 2, 3).transpose(1, 2).reshape(x.shape[0], -1).flatten(), x.view(x.shape[0] * 6)

    return _model(forward, torch.randn(4, 6), dynamic={0: _ROWS})


def sizes() -> Model:
    def forward(_: Any, x: torch.Tensor) -> Any:
        return x + torch.arange(x.shape[0])[:, None], x.sum() * (x.shape[0] + 1) / 2, x.new_zeros(x.shape[0] * 2)

    return _model(forward, torch.randn(4, 6), dynamic={0: _ROWS})


def indices() -> Model:
    def forward(_: Any, x: torch.Tensor, at: torch.Tensor) -> Any:
        where = torch.topk(x, 3)[1]
        put = torch.index_put(x, [at], x[at] * 2)
        return torch.gather(x, 1, where), torch.scatter(x, 1, where, 1.0), put, torch.argmax(x, 1)

    return _model(forward, torch.randn(4, 6), torch.tensor([1, 0]))


def lstm() -> Model:
    return Model.of(torch.nn.LSTM(4, 4), (torch.randn(3, 1, 4),))


def encoder() -> Model:
    return Model.of(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (torch.randn(1, 5, 8),))


def _quantized_table(bits: int, group: int | None) -> Model:
    """Returns a model with a table of 16 rows of 8 bytes, with a scale for each row or for each group of it."""
    operators = torch.ops.quantized_decomposed
    look_up = {8: operators.embedding_byte, 4: operators.embedding_4bit, 2: operators.embedding_2bit}[bits]

    def forward(self: Any, at: torch.Tensor) -> torch.Tensor:
        return look_up.dtype(self.table, self.scales, None, 0, 255, at.abs(), dtype=torch.float32) * 2

    table = torch.randint(0, 255, (16, 8), dtype=torch.uint8)
    scales = torch.rand(16) if group is None else torch.rand(16, 8 * (8 // bits) // group)
    return _model(forward, torch.tensor([[1, 2, 3]]), dynamic={1: _COLUMNS}, table=table, scales=scales)


MODELS: dict[str, Callable[[], Model]] = {
    make.__name__: make
    for make in (
        *(scan, map_with_operand, cond_with_indices, cache_at_position, number_of_input, number_of_buffer),
        *(lists, views, sizes, indices, lstm, encoder),
    )
} | {
    f"quantized_table_{bits}_{'groups' if group else 'rows'}": lambda bits=bits, group=group: _quantized_table(bits, group)
    for bits in (8, 4, 2)
    for group in (None, 4)
}
