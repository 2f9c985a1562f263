"""The most FLOP/s that PyTorch's square matrix products reach on this machine. Prints one line of JSON."""

import json
import time

import torch

from common import arguments

SIZES = (512, 768, 1024, 1536, 2048)
REPEATS = 12


def main():
    options = arguments(__doc__)
    if options.threads:
        torch.set_num_threads(options.threads)
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    best, best_size = 0.0, 0
    for size in SIZES:
        a, b, out = (torch.randn(size, size).to(dtype) for _ in range(3))
        for repeat in range(REPEATS + 2):
            start = time.perf_counter()
            torch.mm(a, b, out=out)
            flops = 2 * size**3 / (time.perf_counter() - start)
            # The first two warm up.
            if repeat >= 2 and flops > best:
                best, best_size = flops, size
    how = f"PyTorch's matrix product of size {best_size}"
    print(json.dumps({"gflops": best / 1e9, "how": how}), flush=True)


main()
