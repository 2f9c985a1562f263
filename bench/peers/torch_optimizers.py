"""An optimizer's steps on the variables of bench/optimizers.ts in PyTorch: the peer of `npm run bench:optimizers`."""

import argparse
import os
import time

import pytorch_optimizer
import torch

LAYER = [(512, 1536), (512, 512), (512, 2048), (2048, 512), (512,)]
SHAPES = [(8192, 512)] + LAYER * 6
RATE = 1e-4

OPTIMIZERS = {
    "torch.optim.AdamW, fused": lambda params, _: torch.optim.AdamW(params, RATE, fused=True),
    "pytorch_optimizer.Lion": lambda params, _: pytorch_optimizer.Lion(params, RATE),
    "torch.optim.Adafactor": lambda params, _: torch.optim.Adafactor(params, RATE),
    "torch.optim.Muon": lambda params, _: torch.optim.Muon([p for p in params if p.ndim == 2], RATE),
    "pytorch_optimizer.ScalableShampoo": lambda params, steps: pytorch_optimizer.ScalableShampoo(
        params,
        RATE,
        graft_type=1,
        block_size=512,
        start_preconditioning_step=1,
        preconditioning_compute_steps=steps,
        no_preconditioning_for_layers_with_dim_gt=4096,
        shape_interpretation=False,
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=OPTIMIZERS)
    parser.add_argument("--steps", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(1)
    params = [torch.zeros(shape, requires_grad=True) for shape in SHAPES]
    for p in params:
        p.grad = torch.rand_like(p) * 2 - 1
    optimizer = OPTIMIZERS[options.name](params, options.steps)
    times, busy = [], []
    end = time.perf_counter() + 1.5
    while time.perf_counter() < end or len(times) < 3:
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(options.steps):
            optimizer.step()
        times.append((time.perf_counter() - start) * 1e3 / options.steps)
        busy.append((time.process_time() - cpu) * 1e3 / options.steps)
    times = sorted(times[1:])
    print(f"  {options.name}: {times[0]:.1f} ms, median {times[len(times) // 2]:.1f}, CPU {min(busy[1:]):.1f}")


main()
