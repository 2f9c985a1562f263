"""Norms without scale in PyTorch, forward and backward, in both memory formats: the peer of `npm run bench:norms`."""

import argparse
import os
import time

import torch
from torch.nn import functional


def group_norm(groups):
    return lambda x: functional.group_norm(x, groups, eps=1e-3)


# Images are [B, C, H, W] here.
CASES = {
    "group norm, 32 groups of 2": ((8, 64, 64, 64), group_norm(32)),
    "group norm, 8 groups of 3": ((8, 24, 64, 64), group_norm(8)),
    "instance norm": ((8, 64, 64, 64), group_norm(64)),
    "batch norm": ((8, 64, 64, 64), lambda x: functional.batch_norm(x, None, None, training=True, eps=1e-3)),
    "layer norm": ((8, 64, 64, 64), lambda x: functional.layer_norm(x, (64,), eps=1e-3)),
}


def shortest(norm, x, seconds):
    dy = torch.cos(x.detach())
    best = float("inf")
    steps = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        x.grad = None
        start = time.perf_counter()
        (norm(x) * dy).sum().backward()
        steps += 1
        if steps > 3:
            best = min(best, time.perf_counter() - start)
    return best * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)
    for name, (shape, norm) in CASES.items():
        elements = torch.Size(shape).numel()
        for memory in (torch.contiguous_format, torch.channels_last):
            x = torch.sin(torch.arange(elements, dtype=torch.float32)).reshape(shape)
            x = x.to(memory_format=memory).requires_grad_(True)
            print(f"PyTorch, {name}, {str(memory)[6:]}: {shortest(norm, x, options.seconds):.2f} ms")


main()
