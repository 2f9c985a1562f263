"""Records rotations of transformers' rope utils: python scripts/record_rotations.py > test/layers/attention/rotations.json, with transformers."""

import json

import torch
import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

HEAD = 16
ORIGINAL = 64

CASES = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic at 64": {"rope_type": "dynamic", "factor": 2.0, "seq_len": 64},
    "dynamic at 200": {"rope_type": "dynamic", "factor": 2.0, "seq_len": 200},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": ORIGINAL,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": ORIGINAL},
    "yarn, other turns, not truncated": {
        "rope_type": "yarn",
        "factor": 8.0,
        "beta_fast": 6.0,
        "beta_slow": 0.5,
        "truncate": False,
        "original_max_position_embeddings": ORIGINAL,
    },
    "yarn, mscale": {
        "rope_type": "yarn",
        "factor": 40.0,
        "mscale": 1.0,
        "mscale_all_dim": 0.707,
        "original_max_position_embeddings": ORIGINAL,
    },
    "yarn, attention factor, half of the elements": {
        "rope_type": "yarn",
        "factor": 2.0,
        "attention_factor": 1.5,
        "partial_rotary_factor": 0.5,
        "original_max_position_embeddings": ORIGINAL,
    },
}


def record(parameters):
    parameters = {**parameters, "rope_theta": 10000.0}
    seq_len = parameters.pop("seq_len", None)
    config = LlamaConfig(
        hidden_size=2 * HEAD,
        num_attention_heads=2,
        head_dim=HEAD,
        max_position_embeddings=ORIGINAL,
        rope_parameters=parameters,
    )
    frequencies, factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, torch.device("cpu"), seq_len=seq_len)
    angles = 5 * frequencies
    return {
        "inv_freq": frequencies.tolist(),
        "attention_factor": factor,
        "cos": (angles.cos() * factor).tolist(),
        "sin": (angles.sin() * factor).tolist(),
    }


print(
    json.dumps(
        {
            "transformers": transformers.__version__,
            "head_dim": HEAD,
            "position": 5,
            "cases": {name: record(parameters) for name, parameters in CASES.items()},
        },
        indent=1,
    )
)
