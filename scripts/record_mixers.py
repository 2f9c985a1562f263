"""Records outputs of tiny recurrent mixers of transformers, for test/layers/recurrent/recorded.test.ts.

    python3 -m venv .venv && .venv/bin/pip install torch transformers
    .venv/bin/python scripts/record_mixers.py

writes test/fixtures/mixers.json: for each mixer its parameters' shapes, sorted by name, and its outputs. Element i of the k-th
parameter is 0.5 sin(0.7 i + k), of the input [2, 6, 4] sin(0.7 i).
"""
import json
from pathlib import Path

import torch
import transformers
from transformers import Mamba2Config, MambaConfig, Qwen3NextConfig, RecurrentGemmaConfig
from transformers.models.mamba.modeling_mamba import MambaMixer
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRecurrentBlock

TARGET = Path(__file__).resolve().parent.parent / "test/fixtures/mixers.json"
INPUT = torch.sin(torch.arange(48) * 0.7).reshape(2, 6, 4)
POSITIONS = torch.arange(6)

delta = Qwen3NextConfig(hidden_size=4, linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=3,
                        linear_value_head_dim=2, linear_conv_kernel_dim=4, num_hidden_layers=4, rms_norm_eps=1e-6)
gemma = RecurrentGemmaConfig(hidden_size=4, lru_width=6, num_attention_heads=2, conv1d_width=4, num_hidden_layers=3,
                             head_dim=2)
MIXERS = {
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
            values = 0.5 * torch.sin(0.7 * torch.arange(parameter.numel()) + k)
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
