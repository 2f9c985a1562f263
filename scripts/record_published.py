"""Records tiny language models as transformers writes them, with their logits, for test/programs/publishedWeights.test.ts.

    python3 -m venv .venv && .venv/bin/pip install torch transformers safetensors tokenizers
    .venv/bin/python scripts/record_published.py

writes test/fixtures/published: a folder a model, and logits.safetensors, whose metadata has the versions.
"""
import json
import shutil
from pathlib import Path

import safetensors
import tokenizers
import torch
import transformers
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parent.parent / "test/fixtures/published"
IDS = [[3, 14, 15, 9, 26, 5, 35]]
TEXT = ["one two three four five six seven eight nine ten "]

GPT2 = dict(vocab_size=264, n_positions=24, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
LLAMA = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)

MODELS = {
    "gpt2": (GPT2LMHeadModel, GPT2Config(**GPT2), torch.float32, "1GB"),
    "gpt2Half": (GPT2LMHeadModel, GPT2Config(**GPT2, n_inner=24), torch.float16, "8KB"),
    "llama": (LlamaForCausalLM, LlamaConfig(**LLAMA, rope_parameters=dict(rope_type="default", rope_theta=50000.0)),
              torch.float32, "8KB"),
    "llamaBfloat16": (LlamaForCausalLM,
                      LlamaConfig(**LLAMA, head_dim=6, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                                  rope_parameters=LLAMA3), torch.bfloat16, "1GB"),
}


def randomize(model: torch.nn.Module) -> None:
    """Weights of every kind, biases and norms included, large enough that no term of the network vanishes."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            center = 1.0 if "norm" in name or "ln_" in name else 0.0
            parameter.copy_(center * name.endswith("weight") + 0.3 * torch.randn_like(parameter))


def train_tokenizer() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=GPT2["vocab_size"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"], show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def main() -> None:
    torch.manual_seed(1)
    shutil.rmtree(ROOT, ignore_errors=True)
    logits = {}
    for name, (cls, config, dtype, shard) in MODELS.items():
        model = cls(config).eval()
        randomize(model)
        model.to(dtype).save_pretrained(ROOT / name, max_shard_size=shard)
        # The weights as they were rounded, and all else in float32, the frequencies of rotations included.
        reloaded = cls.from_pretrained(ROOT / name, dtype=torch.float32, attn_implementation="eager").eval()
        with torch.no_grad():
            logits[name] = reloaded(torch.tensor(IDS)).logits[0].contiguous()
    train_tokenizer().save(str(ROOT / "gpt2" / "tokenizer.json"))
    for extra in ROOT.glob("*/generation_config.json"):
        extra.unlink()
    modules = (torch, transformers, safetensors, tokenizers)
    versions = {module.__name__: module.__version__ for module in modules}
    save_file(logits, ROOT / "logits.safetensors", metadata={**versions, "ids": json.dumps(IDS[0])})


if __name__ == "__main__":
    main()
