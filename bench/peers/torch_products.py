"""Products of a transposed matrix and another in PyTorch: the peer of `npm run bench:products`. Prints one line of JSON."""

import argparse
import contextlib
import json
import statistics
import time

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", required=True, help="rows x sum x columns, separated by commas")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    milliseconds = {}
    for shape in options.shapes.split(","):
        m, k, n = map(int, shape.split("x"))
        a = torch.sin(torch.arange(k * m) * 12.9898).reshape(k, m)
        b = torch.sin(torch.arange(k * n) * 12.9898).reshape(k, n)
        cast = torch.autocast("cpu", dtype=torch.bfloat16) if options.precision == "bf16" else contextlib.nullcontext()
        times = []
        with torch.no_grad(), cast:
            for _ in range(3):
                a.T @ b
            end = time.perf_counter() + options.seconds
            while time.perf_counter() < end:
                start = time.perf_counter()
                a.T @ b
                times.append((time.perf_counter() - start) * 1e3)
        milliseconds[shape] = {"min": min(times), "median": statistics.median(times)}
    print(json.dumps(milliseconds))


main()
