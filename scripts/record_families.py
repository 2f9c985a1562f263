"""Records tiny language models of published families as transformers writes them, with their logits, greedy tokens, loss and
gradients, for test/models/presets/publishedFamilies.test.ts.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_families.py [FAMILY …]

writes test/fixtures/published/families, a folder a family: config.json and model.safetensors; gradients.safetensors with the
names of the weights; record.safetensors with the logits, and in its metadata ids, loss and versions.
"""
import itertools
import json
import shutil
import sys
from pathlib import Path

import safetensors
import torch
import transformers
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parent.parent / "test/fixtures/published/families"
PROMPT = [3, 14, 15, 9, 26, 5, 35]
GREEDY = 64

SIZES = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=96, pad_token_id=None, bos_token_id=None, eos_token_id=None)

# Of each family the class of its models, and settings in which every part of the network takes part.
FAMILIES = {
    "qwen2": ("Qwen2", dict(SIZES, rms_norm_eps=1e-5, use_sliding_window=True, sliding_window=9, max_window_layers=1,
                            rope_parameters=dict(rope_type="default", rope_theta=50000.0))),
    "qwen3": ("Qwen3", dict(SIZES, head_dim=6, attention_bias=True, rms_norm_eps=1e-5, use_sliding_window=True, sliding_window=9,
                            max_window_layers=1, rope_parameters=dict(rope_type="default", rope_theta=50000.0))),
    "qwen3_next": ("Qwen3Next", dict(
        SIZES, num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"], mlp_only_layers=[0],
        # Norms of small vectors would make more of rounding than the test lets pass.
        rms_norm_eps=1e-2, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=3,
        linear_value_head_dim=2, moe_intermediate_size=8, shared_expert_intermediate_size=16, num_experts=5,
        num_experts_per_tok=2, rope_parameters=dict(rope_type="default", rope_theta=50000.0, partial_rotary_factor=0.5))),
    "mixtral": ("Mixtral", dict(SIZES, num_local_experts=5, num_experts_per_tok=2, sliding_window=9)),
    "gemma2": ("Gemma2", dict(SIZES, head_dim=6, query_pre_attn_scalar=4, sliding_window=9, attn_logit_softcapping=5.0,
                              final_logit_softcapping=4.0)),
    "gemma3_text": ("Gemma3", dict(SIZES, num_hidden_layers=3, head_dim=6, query_pre_attn_scalar=6, sliding_window=9,
                                   sliding_window_pattern=3,
                                   rope_parameters=dict(
                                       full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
                                       sliding_attention=dict(rope_type="default", rope_theta=5000.0)))),
    "olmo2": ("Olmo2", dict(SIZES)),
    # A limit that is met.
    "gpt_oss": ("GptOss", dict(SIZES, head_dim=6, num_local_experts=5, num_experts_per_tok=3, sliding_window=9, swiglu_limit=0.5,
                               rope_parameters=dict(rope_type="yarn", rope_theta=150000.0, factor=4.0, beta_fast=32.0,
                                                    beta_slow=1.0, truncate=False, original_max_position_embeddings=24))),
    "deepseek_v3": ("DeepseekV3", dict(
        SIZES, num_key_value_heads=4, num_hidden_layers=2, first_k_dense_replace=1, moe_intermediate_size=12, n_routed_experts=6,
        num_experts_per_tok=3, n_shared_experts=2, n_group=3, topk_group=2, kv_lora_rank=8, q_lora_rank=6, qk_rope_head_dim=4,
        qk_nope_head_dim=6, v_head_dim=5, num_mtp_layers=0,
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, mscale=1.0, mscale_all_dim=0.8,
                             original_max_position_embeddings=24))),
}


def randomize(model: torch.nn.Module) -> None:
    """Weights of every kind, biases and norms included, large enough that no term of the network vanishes."""
    with torch.no_grad():
        # Of the buffers, only the biases of routers are weights.
        biases = [(name, values) for name, values in model.named_buffers() if name.endswith("correction_bias")]
        for name, values in [*model.named_parameters(), *biases]:
            # Weights of zero-centred norms begin at 0.
            is_factor = "norm" in name and name.endswith("weight") and values.mean() > 0.5
            values.copy_(float(is_factor) + 0.3 * torch.randn_like(values))


def greedy(model: torch.nn.Module) -> list[int] | None:
    """The prompt and the tokens behind it; None where rounding might choose another one than the best."""
    ids = list(PROMPT)
    for _ in range(GREEDY):
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        best = logits.topk(2).values
        if best[0] - best[1] < 1e-3 * logits.abs().max():
            return None
        ids.append(int(logits.argmax()))
    return ids


def drawn(name: str) -> tuple[torch.nn.Module, list[int]]:
    """A model of a family with the first weights by which greedy tokens are beyond doubt, and the tokens."""
    prefix, settings = FAMILIES[name]
    config = transformers.AutoConfig.for_model(name, **settings)
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{prefix}ForCausalLM")(config).eval()
    for seed in itertools.count(1):
        torch.manual_seed(seed)
        randomize(model)
        with torch.no_grad():
            ids = greedy(model)
        if ids is not None:
            return model, ids


def write(name: str, model: torch.nn.Module, loss: torch.Tensor, tensors: dict[str, torch.Tensor], **metadata: str) -> None:
    """Writes a model, its gradients, and a record of other tensors with the loss."""
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    loss.backward()
    versions = {module.__name__: module.__version__ for module in (torch, transformers, safetensors)}
    save_file({key: values.detach().contiguous() for key, values in tensors.items()}, folder / "record.safetensors",
              metadata={**versions, **metadata, "loss": repr(loss.item())})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    # As weights, so that the writer gives them the names that it gives to those.
    model.save_pretrained(folder / "gradients")
    (folder / "gradients/model.safetensors").rename(folder / "gradients.safetensors")
    shutil.rmtree(folder / "gradients")
    (folder / "generation_config.json").unlink(missing_ok=True)


def record(name: str) -> None:
    model, ids = drawn(name)
    given = torch.tensor([ids])
    out = model(given, labels=given, use_cache=False)
    write(name, model, out.loss, {"logits": out.logits[0]}, ids=json.dumps(ids))


if __name__ == "__main__":
    for family in sys.argv[1:] or FAMILIES:
        record(family)
