"""Records outputs of tiny mixers of transformers, for test/layers/recurrent/recorded.test.ts and
test/layers/attention/recordedAttention.test.ts.

    python3 -m venv .venv && .venv/bin/pip install torch transformers
    .venv/bin/python scripts/record_mixers.py

writes test/fixtures/mixers.json: for each mixer its parameters' shapes, sorted by name, and its outputs. Element i of the k-th
parameter is 0.5 sin(0.7 i + k), of the input [2, 6, 4] sin(0.7 i).
"""
import json
from pathlib import Path

import torch
import transformers
from transformers import DeepseekV3Config, GptOssConfig, Mamba2Config, MambaConfig, Qwen3NextConfig, RecurrentGemmaConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention, DeepseekV3RotaryEmbedding
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssRotaryEmbedding
from transformers.models.mamba.modeling_mamba import MambaMixer
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention, Qwen3NextGatedDeltaNet, Qwen3NextRotaryEmbedding
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRecurrentBlock

TARGET = Path(__file__).resolve().parent.parent / "test/fixtures/mixers.json"
INPUT = torch.sin(torch.arange(48, dtype=torch.float64) * 0.7).float().reshape(2, 6, 4)
POSITIONS = torch.arange(6)

delta = Qwen3NextConfig(hidden_size=4, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=3,
                        linear_value_head_dim=2, linear_conv_kernel_dim=4, num_hidden_layers=4, rms_norm_eps=1e-6)
gemma = RecurrentGemmaConfig(hidden_size=4, lru_width=6, num_attention_heads=2, conv1d_width=4, num_hidden_layers=3,
                             head_dim=2)
CAUSAL = torch.full((6, 6), float("-inf")).triu(1)[None, None]


def attention(kind: type, rotary: type, config: transformers.PretrainedConfig) -> tuple:
    config._attn_implementation = "eager"
    return kind(config, 0), dict(position_embeddings=rotary(config)(INPUT, POSITIONS[None]), attention_mask=CAUSAL)


ROPE = dict(rope_type="default", rope_theta=10000.0)
HEADS = dict(hidden_size=4, num_attention_heads=4, num_key_value_heads=2, head_dim=4, num_hidden_layers=1)


def latent(q_lora_rank: int | None) -> tuple:
    config = DeepseekV3Config(hidden_size=4, num_attention_heads=2, num_key_value_heads=2, q_lora_rank=q_lora_rank,
                              kv_lora_rank=5, qk_nope_head_dim=3, qk_rope_head_dim=4, v_head_dim=2,
                              rope_interleave=False, rope_parameters=dict(ROPE))
    return attention(DeepseekV3Attention, DeepseekV3RotaryEmbedding, config)


MIXERS = {
    "latent": latent(3),
    "latentWholeQueries": latent(None),
    "sinks": attention(GptOssAttention, GptOssRotaryEmbedding,
                       GptOssConfig(**HEADS, attention_bias=True, rope_parameters=dict(ROPE))),
    "outputGate": attention(Qwen3NextAttention, Qwen3NextRotaryEmbedding,
                            Qwen3NextConfig(**HEADS, rms_norm_eps=1e-6,
                                            rope_parameters=dict(ROPE, partial_rotary_factor=1.0))),
    "mamba": (MambaMixer(MambaConfig(hidden_size=4, state_size=3, time_step_rank=2), 0), {}),
    "mamba2": (Mamba2Mixer(Mamba2Config(hidden_size=4, state_size=3, expand=2, head_dim=2, num_heads=4, n_groups=2,
                                        chunk_size=4), 0), {}),
    "gatedDeltaNet": (Qwen3NextGatedDeltaNet(delta, 0), {}),
    "griffin": (RecurrentGemmaRecurrentBlock(gemma, 0),
                dict(position_ids=POSITIONS[None].expand(2, -1), attention_mask=None, use_cache=False)),
}


def record(mixer: torch.nn.Module, arguments: dict) -> dict:
    parameters = sorted(mixer.named_parameters())
    with torch.no_grad():
        for k, (_, parameter) in enumerate(parameters):
            values = 0.5 * torch.sin(0.7 * torch.arange(parameter.numel(), dtype=torch.float64) + k)
            parameter.copy_(values.reshape(parameter.shape))
        made = mixer.eval()(INPUT, **arguments)
    outputs = made[0] if isinstance(made, tuple) else made
    return {
        "parameters": {name: list(parameter.shape) for name, parameter in parameters},
        "outputs": [round(value, 7) for value in outputs.flatten().tolist()],
    }


recorded = {name: record(*mixer) for name, mixer in MIXERS.items()}
versions = {"torch": torch.__version__, "transformers": transformers.__version__}
TARGET.write_text(json.dumps({"versions": versions, **recorded}) + "\n")
