"""The steps of rowGradients.ts in PyTorch: two towers with large tables, sparse gradients beside dense ones.

    python torch_rows.py [batch [rows [threads]]]
"""

import statistics
import sys
import time

import torch

DEFAULTS = [512, 50_000, 1]
GIVEN = [int(each) for each in sys.argv[1:]]
BATCH, ROWS, THREADS = GIVEN + DEFAULTS[len(GIVEN) :]
DIMS, STEPS, ROUNDS = 64, 32, 7
torch.set_num_threads(THREADS)
torch.manual_seed(0)


def towers(sparse, optimizer):
    tables = [torch.nn.Embedding(ROWS, DIMS, sparse=sparse) for _ in range(2)]
    moved = optimizer([table.weight for table in tables])
    ids = [(torch.rand(BATCH).square() * ROWS).long() for _ in range(2)]
    labels = torch.arange(BATCH)

    def step():
        moved.zero_grad()
        users, items = (table(each) for table, each in zip(tables, ids))
        torch.nn.functional.cross_entropy(users @ items.T, labels).backward()
        moved.step()

    def turn():
        began = time.perf_counter()
        for _ in range(STEPS):
            step()
        return (time.perf_counter() - began) / STEPS * 1e3

    turn()
    return turn


OPTIMIZERS = {
    "SGD": [lambda p: torch.optim.SGD(p, lr=0.1, fused=True), lambda p: torch.optim.SGD(p, lr=0.1)],
    "Adagrad": [lambda p: torch.optim.Adagrad(p, lr=0.1, fused=True), lambda p: torch.optim.Adagrad(p, lr=0.1)],
    "AdamW, SparseAdam": [
        lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
        lambda p: torch.optim.SparseAdam(p, lr=0.1),
    ],
}
for name, (dense, sparse) in OPTIMIZERS.items():
    turns = [towers(False, dense), towers(True, sparse)]
    times = [[], []]
    for _ in range(ROUNDS):
        for each, turn in zip(times, turns):
            each.append(turn())
    of_all, of_rows = map(statistics.median, times)
    print(f"{name}: {of_all:.3f} → {of_rows:.3f} ms a step ({of_all / of_rows:.1f} times)", flush=True)
