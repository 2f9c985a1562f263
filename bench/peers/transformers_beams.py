"""Beam search of a GPT in transformers, as bench/beams.ts searches it: milliseconds a token of all beams.

    bench/peers/.venv/bin/python bench/peers/transformers_beams.py [--shape=small] [--batch=1] [--beams=4] [--threads=1]
"""

import argparse
import statistics
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from common import SHAPES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", default="small")
    for name, default in dict(batch=1, beams=4, threads=1, rounds=3).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    shape = SHAPES[flags.shape]
    config = GPT2Config(vocab_size=shape["vocabulary"], n_positions=shape["context"], n_embd=shape["width"],
                        n_layer=shape["layers"], n_head=shape["heads"])
    model = GPT2LMHeadModel(config).eval()
    ids = torch.ones(flags.batch, 1, dtype=torch.long)
    steps = shape["context"] - 1
    times = []
    for round_ in range(flags.rounds + 1):
        before = time.perf_counter()
        with torch.inference_mode():
            # Without an end that could be drawn, as there.
            model.generate(ids, attention_mask=torch.ones_like(ids), num_beams=flags.beams, max_new_tokens=steps,
                           do_sample=False, length_penalty=0.8, early_stopping="never", eos_token_id=-1, pad_token_id=0)
        if round_ > 0:
            times.append((time.perf_counter() - before) * 1000 / steps)
    print(f"{flags.shape}, {flags.batch} prompts, {flags.beams} beams: {statistics.median(times):.3f} ms a token")


main()
