"""Records the factors of wavelengths by which Llama 3's rotations are scaled in transformers:
python scripts/record_rope_factors.py > test/trained/published/ropeFactors.json, with transformers."""

import json

import torch
import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

# Depth of a head and factor of the published models; all have a base of 500,000 and came from 8,192 tokens.
MODELS = {"Llama 3.1 8B": (128, 8.0), "Llama 3.2 1B": (64, 32.0)}
THETA = 500000.0


def record(depth, factor):
    scaling = dict(rope_type="llama3", rope_theta=THETA, factor=factor, low_freq_factor=1.0, high_freq_factor=4.0)
    config = LlamaConfig(
        hidden_size=2 * depth,
        num_attention_heads=2,
        head_dim=depth,
        max_position_embeddings=131072,
        rope_parameters={**scaling, "original_max_position_embeddings": 8192},
    )
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = 1.0 / THETA ** (torch.arange(0, depth, 2, dtype=torch.float64) / depth)
    # Frequencies are float32: six digits of their quotients count.
    factors = [float(f"{value:.6g}") for value in (plain / frequencies.double()).tolist()]
    return dict(head_dim=depth, factor=factor, factors=factors)


print(
    json.dumps(
        dict(
            transformers=transformers.__version__,
            rope_theta=THETA,
            models={name: record(*model) for name, model in MODELS.items()},
        ),
        indent=1,
    )
)
