# SPDX-License-Identifier: BSD-3-Clause
"""Shows that the ready-made rules of `etstream ptd --map` give ExecuTorch's Transformer the weights that its own
scripts give, and that ExecuTorch runs a program with the weights that etstream makes of a checkpoint alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from command import Etstream
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir._serialize._cord import Cord
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from executorch.runtime import Runtime
from families import FAMILIES, Family, StateDict, state_dict_of
from test_ptd import SCALAR_TYPES, bytes_of
from torch.fx import Node
from transformers import PreTrainedModel

_TOKENS = torch.tensor([[3, 1, 4, 15, 9, 2, 6, 53, 5, 89, 7]])


def read_state_dict(weights: Path) -> StateDict:
    """Returns the tensors that ExecuTorch reads in a .ptd file."""
    payload = FlatTensorSerializer().deserialize(Cord(weights.read_bytes()))
    types = {number: dtype for dtype, number in SCALAR_TYPES.items()}
    state = {}
    for key, entry in payload.named_data.items():
        layout = entry.tensor_layout
        assert layout is not None, key
        assert list(layout.dim_order) == list(range(len(layout.sizes))), key
        data = bytearray(payload.buffers[entry.buffer_index])
        state[key] = torch.frombuffer(data, dtype=types[layout.scalar_type]).reshape(layout.sizes)
    return state


def assert_same_state(ours: StateDict, theirs: StateDict) -> None:
    assert sorted(ours) == sorted(theirs)
    for key, tensor in theirs.items():
        assert ours[key].shape == tensor.shape, key
        assert ours[key].dtype == tensor.dtype, key
        assert bytes_of(ours[key]) == bytes_of(tensor), key


def logits_of(model: PreTrainedModel) -> torch.Tensor:
    with torch.no_grad():
        return model(_TOKENS, use_cache=False).logits


@dataclass(frozen=True)
class Converted:
    model: PreTrainedModel
    weights: Path
    state: StateDict  # the tensors in `weights`
    checkpoint: Path


@pytest.fixture(scope="module")
def converted(
    etstream: Etstream, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Family], Converted]:
    """Returns a function that makes a family's model, and the command's weights of it, once each."""
    done: dict[str, Converted] = {}

    def convert(family: Family) -> Converted:
        if family.name not in done:
            folder = tmp_path_factory.mktemp(family.name)
            model = family.pretrained()
            # Llama's weights are in shards, those of the others in one file.
            shard = "60KB" if family.name == "llama" else "1GB"
            model.save_pretrained(folder, max_shard_size=shard)
            index = folder / "model.safetensors.index.json"
            checkpoint = index if index.exists() else folder / "model.safetensors"
            weights = folder / "weights.ptd"
            etstream.ptd([checkpoint], weights, "--map", family.name)
            done[family.name] = Converted(model, weights, read_state_dict(weights), checkpoint)
        return done[family.name]

    return convert


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_weights_are_those_of_executorchs_own_conversion(
    family: Family, converted: Callable[[Family], Converted]
) -> None:
    made = converted(family)
    assert_same_state(made.state, family.convert(state_dict_of(made.model)))


@pytest.mark.parametrize(
    "family",
    [family for family in FAMILIES if family.params is not None],
    ids=lambda family: family.name,
)
def test_executorchs_transformer_gives_the_logits_of_the_model_that_was_saved(
    family: Family, converted: Callable[[Family], Converted]
) -> None:
    made = converted(family)
    transformer = family.transformer()
    transformer.load_state_dict(made.state, strict=True)
    with torch.no_grad():
        torch.testing.assert_close(transformer(_TOKENS), logits_of(made.model), atol=1e-4, rtol=0)


def test_a_head_is_as_large_as_the_option_says_where_no_config_is(
    converted: Callable[[Family], Converted], etstream: Etstream, tmp_path: Path
) -> None:
    made = converted(FAMILIES[0])
    for file in made.checkpoint.parent.glob("model*"):
        (tmp_path / file.name).symlink_to(file)
    checkpoint = tmp_path / made.checkpoint.name
    weights = tmp_path / "weights.ptd"
    outcome = etstream.attempt("ptd", checkpoint, "--map", "llama", "-o", weights)
    assert outcome.code == 1
    assert outcome.stderr.endswith("config.json is not there; give it with --head-dim\n")
    assert not weights.exists()
    etstream.ptd([checkpoint], weights, "--map", "llama", "--head-dim", "8")
    assert weights.read_bytes() == made.weights.read_bytes()


def test_fused_and_separate_projections_of_phi_give_the_same_weights(
    converted: Callable[[Family], Converted], etstream: Etstream, tmp_path: Path
) -> None:
    made = converted(next(family for family in FAMILIES if family.name == "phi_4_mini"))
    layer = "model.layers.*"
    rules = {
        f"{layer}.self_attn.qkv_proj.weight": {
            "split": [
                {"key": f"{layer}.self_attn.q_proj.weight", "rows": "columns"},
                f"{layer}.self_attn.k_proj.weight",
                f"{layer}.self_attn.v_proj.weight",
            ]
        },
        f"{layer}.mlp.gate_up_proj.weight": {
            "split": [f"{layer}.mlp.gate_proj.weight", f"{layer}.mlp.up_proj.weight"]
        },
    }
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(rules))
    separate = tmp_path / "separate.safetensors"
    etstream.ptd([made.checkpoint], separate, "--map", file, "--to", "safetensors")
    weights = tmp_path / "weights.ptd"
    etstream.ptd([separate], weights, "--map", "phi_4_mini")
    assert_same_state(read_state_dict(weights), made.state)


def _parameters_outside(node: Node) -> str | None:
    """Returns the file that a constant goes to: buffers, which no checkpoint has, stay in the program."""
    return "weights" if node.name.startswith("p_") else None


def _export(module: torch.nn.Module, folder: Path) -> tuple[Path, Path]:
    """Exports a program with its weights in a file of their own, and returns the paths of both."""
    with torch.no_grad():
        graph = torch.export.export(module, (_TOKENS,), strict=False)
    config = ExecutorchBackendConfig(external_constants=_parameters_outside)
    manager = to_edge(graph).to_executorch(config)
    program = folder / "model.pte"
    manager.save(str(program))
    manager.write_tensor_data_to_file(str(folder))
    return program, folder / "weights.ptd"


def _run(program: Path, weights: Path) -> torch.Tensor:
    method = Runtime.get().load_program(program, data_path=weights).load_method("forward")
    assert method is not None
    [logits] = method.execute([_TOKENS])
    return logits.clone()


def test_executorch_runs_a_llama_with_weights_made_of_its_sharded_checkpoint(
    converted: Callable[[Family], Converted], etstream: Etstream, tmp_path: Path
) -> None:
    llama = FAMILIES[0]
    made = converted(llama)
    assert len(list(made.checkpoint.parent.glob("model-*.safetensors"))) > 1
    transformer = llama.transformer()
    transformer.load_state_dict(llama.convert(state_dict_of(made.model)), strict=True)
    program, executorchs = _export(transformer, tmp_path)
    assert_same_state(made.state, read_state_dict(executorchs))
    findings = etstream.verify(program, made.weights)
    assert (findings.errors, findings.warnings) == ([], [])
    logits = _run(program, made.weights)
    assert bytes_of(logits) == bytes_of(_run(program, executorchs))
    torch.testing.assert_close(logits, logits_of(made.model), atol=1e-4, rtol=0)


class _Tokens(torch.nn.Module):
    """A model that takes tokens alone and gives logits alone, under the names of the model's weights."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model.model
        self.lm_head = model.lm_head

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.model(tokens, use_cache=False, return_dict=True).last_hidden_state
        return self.lm_head(hidden)


def test_executorch_runs_a_model_of_transformers_with_its_checkpoint_under_its_own_names(
    converted: Callable[[Family], Converted], etstream: Etstream, tmp_path: Path
) -> None:
    made = converted(FAMILIES[0])
    program, executorchs = _export(_Tokens(made.model), tmp_path)
    weights = tmp_path / "made.ptd"
    etstream.ptd([made.checkpoint], weights)
    assert_same_state(read_state_dict(weights), read_state_dict(executorchs))
    findings = etstream.verify(program, weights)
    assert (findings.errors, findings.warnings) == ([], [])
    assert etstream.verify(program, made.weights).errors  # the same weights have other names here
    logits = _run(program, weights)
    assert bytes_of(logits) == bytes_of(_run(program, executorchs))
    torch.testing.assert_close(logits, logits_of(made.model), atol=1e-4, rtol=0)
