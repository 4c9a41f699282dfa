# SPDX-License-Identifier: BSD-3-Clause
"""Makes small models of the families that etstream has ready-made rules for: each as in transformers, as in
ExecuTorch's own Transformer, and with ExecuTorch's conversion of the weights between them.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from executorch.examples.models.checkpoint import get_mapped_key
from executorch.examples.models.llama.llama_transformer import construct_transformer
from executorch.examples.models.llama.model_args import ModelArgs

StateDict = dict[str, torch.Tensor]

_VOCABULARY = 97
_HIDDEN = 48
_FEED_FORWARD = 80
_LAYERS = 2


@dataclass(frozen=True)
class Family:
    """A family of models: `config` and `params` are its differences; `convert` makes ExecuTorch's state dict.

    `params` is None if ExecuTorch 1.5.1's Transformer lacks parts of the architecture: of Gemma's, the unit that is
    added to norms' scales, the scale of embeddings, and the norms behind attention.
    """

    name: str  # the name of the rules
    config_class: str
    heads: int
    kv_heads: int
    convert: Callable[[StateDict], StateDict]
    config: dict[str, Any]
    params: dict[str, Any] | None
    head_dim: int | None = None  # given if it isn't the hidden size over the heads

    def pretrained(self) -> transformers.PreTrainedModel:
        """Returns the model of transformers, with random weights, biases and scales too."""
        torch.manual_seed(5)
        head_dim = {"head_dim": self.head_dim} if self.head_dim else {}
        config = getattr(transformers, self.config_class)(
            vocab_size=_VOCABULARY,
            hidden_size=_HIDDEN,
            intermediate_size=_FEED_FORWARD,
            num_hidden_layers=_LAYERS,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            **head_dim,
            **self.config,
        )
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.2)
        return model.eval()

    def transformer(self) -> torch.nn.Module:
        """Returns ExecuTorch's Transformer of this shape, with arbitrary weights."""
        assert self.params is not None
        args = ModelArgs(
            dim=_HIDDEN,
            hidden_dim=_FEED_FORWARD,
            n_layers=_LAYERS,
            n_heads=self.heads,
            n_kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            vocab_size=_VOCABULARY,
            max_seq_len=32,
            max_context_len=32,
            generate_full_logits=True,
            **self.params,
        )
        return construct_transformer(args).eval()


def state_dict_of(model: transformers.PreTrainedModel) -> StateDict:
    """Returns the weights that save_pretrained() saves: of tied weights one."""
    state = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        del state["lm_head.weight"]
    return state


def _wheel(module: str, function: str) -> Callable[[StateDict], StateDict]:
    """Returns ExecuTorch's function in a module that may ask for names of torchtune, which isn't installed."""

    def convert(state: StateDict) -> StateDict:
        members: dict[str, dict[str, Any]] = {
            "torchtune": {},
            "torchtune.models": {},
            "torchtune.models.convert_weights": {"get_mapped_key": get_mapped_key},
            "torchtune.training": {"FullModelHFCheckpointer": None},
        }
        missing = [name for name in members if name not in sys.modules]
        for name in missing:
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(members[name])
        try:
            script = importlib.import_module(f"executorch.examples.models.{module}.convert_weights")
        finally:
            for name in missing:
                del sys.modules[name]
        return getattr(script, function)(state)

    return convert


_META_NAMES = {
    "model.embed_tokens.weight": "tok_embeddings.weight",
    "model.norm.weight": "norm.weight",
    "lm_head.weight": "output.weight",
    "model.layers.{}.input_layernorm.weight": "layers.{}.attention_norm.weight",
    "model.layers.{}.post_attention_layernorm.weight": "layers.{}.ffn_norm.weight",
    "model.layers.{}.self_attn.q_proj.weight": "layers.{}.attention.wq.weight",
    "model.layers.{}.self_attn.k_proj.weight": "layers.{}.attention.wk.weight",
    "model.layers.{}.self_attn.v_proj.weight": "layers.{}.attention.wv.weight",
    "model.layers.{}.self_attn.o_proj.weight": "layers.{}.attention.wo.weight",
    "model.layers.{}.mlp.gate_proj.weight": "layers.{}.feed_forward.w1.weight",
    "model.layers.{}.mlp.down_proj.weight": "layers.{}.feed_forward.w2.weight",
    "model.layers.{}.mlp.up_proj.weight": "layers.{}.feed_forward.w3.weight",
}


def _to_meta(head_dim: int) -> Callable[[StateDict], StateDict]:
    """Returns a conversion that does what torchtune's hf_to_tune and ExecuTorch's renaming of its names do together."""

    def convert(state: StateDict) -> StateDict:
        out = {}
        for key, value in state.items():
            new_key = get_mapped_key(key, _META_NAMES)
            if new_key.endswith(("wq.weight", "wk.weight")):
                heads = value.view(-1, 2, head_dim // 2, value.shape[1])
                value = heads.transpose(1, 2).reshape(value.shape)
            out[new_key] = value
        out.setdefault("output.weight", out["tok_embeddings.weight"])
        return out

    return convert


def _tied(convert: Callable[[StateDict], StateDict]) -> Callable[[StateDict], StateDict]:
    """Returns a conversion that adds the output weight, as ExecuTorch's other path for the family does."""
    return lambda state: {"output.weight": state["model.embed_tokens.weight"], **convert(state)}


def _rope(theta: float, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **more}}


_QK_NORM = {"use_qk_norm": True, "qk_norm_before_rope": True}
_LLAMA_3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

FAMILIES = [
    Family(
        "llama",
        "LlamaConfig",
        heads=6,
        kv_heads=2,
        convert=_to_meta(8),
        config={
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
            "max_position_embeddings": 131072,
            "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, **_LLAMA_3},
        },
        params={"norm_eps": 1e-5, "rope_theta": 500000.0, "use_scaled_rope": True},
    ),
    Family(
        "qwen2_5",
        "Qwen2Config",
        heads=6,
        kv_heads=2,
        convert=_wheel("qwen2_5", "qwen_2_5_hf_to_meta"),
        config={"tie_word_embeddings": True, "rms_norm_eps": 1e-6, **_rope(1e6)},
        params={
            "norm_eps": 1e-6,
            "rope_theta": 1e6,
            "use_hf_rope": True,
            "attention_qkv_bias": True,
        },
    ),
    Family(
        "qwen3",
        "Qwen3Config",
        heads=6,
        kv_heads=2,
        head_dim=16,
        convert=_wheel("qwen3", "qwen_3_tune_to_meta"),
        config={"tie_word_embeddings": False, "rms_norm_eps": 1e-6, **_rope(1e6)},
        params={"norm_eps": 1e-6, "rope_theta": 1e6, "use_hf_rope": True, **_QK_NORM},
    ),
    Family(
        "phi_4_mini",
        "Phi3Config",
        heads=6,
        kv_heads=2,
        convert=_tied(_wheel("phi_4_mini", "phi_4_hf_to_meta")),
        config={
            "tie_word_embeddings": True,
            "rms_norm_eps": 1e-5,
            **_rope(10000.0, partial_rotary_factor=0.75),
        },
        params={
            "norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "use_hf_rope": True,
            "partial_rotary_factor": 0.75,
        },
    ),
    Family(
        "gemma",
        "GemmaConfig",
        heads=4,
        kv_heads=1,
        head_dim=16,
        convert=_wheel("gemma", "gemma_to_executorch"),
        config={},
        params=None,
    ),
    Family(
        "gemma2",
        "Gemma2Config",
        heads=4,
        kv_heads=2,
        head_dim=16,
        convert=_wheel("gemma2", "gemma2_to_executorch"),
        config={},
        params=None,
    ),
    Family(
        "gemma3",
        "Gemma3TextConfig",
        heads=4,
        kv_heads=1,
        head_dim=16,
        convert=_wheel("gemma3", "gemma3_to_executorch"),
        config={},
        params=None,
    ),
    Family(
        "smollm2",
        "LlamaConfig",
        heads=3,
        kv_heads=1,
        convert=_to_meta(16),
        config={"rms_norm_eps": 1e-5, "tie_word_embeddings": True, **_rope(100000.0)},
        params={"norm_eps": 1e-5, "rope_theta": 100000.0},
    ),
    Family(
        "smollm3",
        "SmolLM3Config",
        heads=6,
        kv_heads=2,
        convert=_wheel("smollm3", "smollm_to_meta"),
        # The script leaves rows in Hugging Face's order. ExecuTorch 1.5.1's Transformer has no layers
        # without rotary embeddings.
        config={"rms_norm_eps": 1e-6, "no_rope_layers": [1] * _LAYERS, **_rope(5e6)},
        params={"norm_eps": 1e-6, "rope_theta": 5e6, "use_hf_rope": True},
    ),
]
