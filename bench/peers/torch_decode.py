"""Greedy decoding of a GPT in PyTorch, as bench/luthierDecode.ts decodes it: the peer of `npm run bench:decode`.

Weights, keys and values in float32, or all in bfloat16; the cache is allocated once and written in place, attention reads
what is filled. A token of every sequence is one call; its argmax feeds the next. Prints one line of JSON.
"""

import json
import time

import torch
from torch.nn import functional as F

from common import SHAPES, arguments, peak_rss_mb


class Decoder:
    """A GPT with random weights and a cache for `batch` sequences."""

    def __init__(self, shape, batch, dtype):
        self.layers, self.heads, self.width = shape["layers"], shape["heads"], shape["width"]
        self.batch, self.head = batch, self.width // self.heads

        def weights(*size):
            return (0.02 * torch.randn(*size)).to(dtype)

        self.tokens = weights(shape["vocabulary"], self.width)
        self.positions = weights(shape["context"], self.width)
        self.norm = torch.ones(self.width, dtype=dtype)
        self.blocks = [
            {
                "attention_norm": torch.ones(self.width, dtype=dtype),
                "qkv": weights(3 * self.width, self.width),
                "attention_out": weights(self.width, self.width),
                "ff_norm": torch.ones(self.width, dtype=dtype),
                "ff_in": weights(4 * self.width, self.width),
                "ff_out": weights(self.width, 4 * self.width),
            }
            for _ in range(self.layers)
        ]
        size = (batch, self.heads, shape["context"], self.head)
        self.keys = [torch.zeros(size, dtype=dtype) for _ in range(self.layers)]
        self.values = [torch.zeros(size, dtype=dtype) for _ in range(self.layers)]

    def step(self, ids, position: int):
        """ids [B] at `position` -> the likeliest ids [B] after them."""
        x = self.tokens[ids] + self.positions[position]
        for block, keys, values in zip(self.blocks, self.keys, self.values):
            normed = F.layer_norm(x, (self.width,), block["attention_norm"])
            parts = F.linear(normed, block["qkv"]).split(self.width, dim=-1)
            query, key, value = (part.view(self.batch, self.heads, 1, self.head) for part in parts)
            keys[:, :, position : position + 1] = key
            values[:, :, position : position + 1] = value
            mixed = F.scaled_dot_product_attention(query, keys[:, :, : position + 1], values[:, :, : position + 1])
            x = x + F.linear(mixed.reshape(self.batch, self.width), block["attention_out"])
            normed = F.layer_norm(x, (self.width,), block["ff_norm"])
            x = x + F.linear(F.gelu(F.linear(normed, block["ff_in"])), block["ff_out"])
        return F.linear(F.layer_norm(x, (self.width,), self.norm), self.tokens).argmax(-1)


def main():
    options = arguments(__doc__.splitlines()[0], modes=["eager", "compile"], batch=True)
    if options.threads:
        torch.set_num_threads(options.threads)
    shape = SHAPES[options.shape]
    torch.manual_seed(0)
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    decoder = Decoder(shape, options.batch, dtype)
    step = torch.compile(decoder.step, dynamic=True) if options.mode == "compile" else decoder.step
    length = shape["context"] - 1

    def decode():
        ids = torch.ones(options.batch, dtype=torch.long)
        start = time.perf_counter()
        for position in range(length):
            ids = step(ids, position)
        return (time.perf_counter() - start) / length

    with torch.inference_mode():
        start = time.perf_counter()
        decode()
        first_seconds = time.perf_counter() - start
        seconds = sorted(decode() for _ in range(options.steps or 5))
    median = seconds[len(seconds) // 2]
    result = {
        "shape": options.shape,
        "batch": options.batch,
        "precision": options.precision,
        "mode": options.mode,
        "threads": torch.get_num_threads(),
        "medianMs": median * 1e3,
        "minMs": seconds[0] * 1e3,
        "firstSeconds": first_seconds,
        "tokensPerSec": options.batch / median,
        "peakRssMb": peak_rss_mb(),
    }
    print(json.dumps(result), flush=True)


main()
