"""A step of LoRA by PEFT on the Llama shape of loraShape.json, as bench/luthierLora.ts trains it.

LoRA on all projections of attention and of feed-forward layers; AdamW (fused, betas 0.9 and 0.99), the gradient clipped
to a norm of 1, one batch of random tokens. In bf16 the frozen weights are held in bfloat16, the factors in float32, and
products are computed under autocast. Prints one line of JSON.
"""

import argparse
import contextlib
import json
import pathlib

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from common import measure, peak_rss_mb

SHAPE = json.loads((pathlib.Path(__file__).parent.parent / "loraShape.json").read_text())
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None, help="default: the library's own choice")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    bf16 = options.precision == "bf16"
    config = LlamaConfig(
        vocab_size=SHAPE["vocabulary"],
        hidden_size=SHAPE["width"],
        intermediate_size=SHAPE["hidden"],
        num_hidden_layers=SHAPE["layers"],
        num_attention_heads=SHAPE["heads"],
        num_key_value_heads=SHAPE["kvHeads"],
        max_position_embeddings=SHAPE["context"],
        tie_word_embeddings=True,
        use_cache=False,
        attn_implementation="sdpa",
    )
    torch.set_default_dtype(torch.bfloat16 if bf16 else torch.float32)
    model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    model = get_peft_model(model, LoraConfig(r=SHAPE["rank"], lora_alpha=SHAPE["rank"], target_modules=TARGETS, task_type="CAUSAL_LM"))
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, betas=(0.9, 0.99), fused=True)
    size = (SHAPE["batch"], SHAPE["context"])
    ids, labels = (torch.randint(0, SHAPE["vocabulary"], size) for _ in range(2))

    def loss_of(ids, labels):
        logits = model(input_ids=ids).logits
        return torch.nn.functional.cross_entropy(logits.float().view(-1, logits.size(-1)), labels.view(-1))

    if options.mode == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = loss_of(ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    numbers = measure(step, options.steps, warmup=1)
    parameters = sum(p.numel() for p in model.parameters())
    counts = {"parameters": parameters, "trained": sum(p.numel() for p in trained)}
    print(json.dumps({**counts, **numbers, "peakRssMb": peak_rss_mb()}), flush=True)


main()
