"""What the peers share: shapes, arguments, timing, and the one line of JSON that each prints."""

import argparse
import json
import pathlib
import resource
import sys
import time

SHAPES = json.loads((pathlib.Path(__file__).parent.parent / "shapes.json").read_text())
WARMUP_STEPS = 3


def arguments(description, modes=(), batch=False):
    """Command line of a peer. `modes` are the ways it can run a step, the first one by default; `batch`: whether it takes one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--shape", choices=SHAPES, default="nano")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    if modes:
        parser.add_argument("--mode", choices=modes, default=modes[0])
    if batch:
        parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=None, help="default: the library's own choice")
    parser.add_argument("--steps", type=int, default=None, help="timed steps; default: those of shapes.json")
    return parser.parse_args()


def measure(step, steps, warmup=WARMUP_STEPS):
    """Times `step`, which trains once and returns the loss as a number when it is done.

    Returns the fields of the result that come from running: the first step has all compilation in it, a few more
    warm up, and each of the `steps` after them is timed alone.
    """
    start = time.perf_counter()
    first_loss = step()
    first_step_seconds = time.perf_counter() - start
    for _ in range(warmup):
        step()
    seconds, cpu = [], []
    for _ in range(steps):
        start, busy = time.perf_counter(), time.process_time()
        loss = step()
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
    seconds.sort()
    middle = steps // 2
    median = seconds[middle] if steps % 2 else (seconds[middle - 1] + seconds[middle]) / 2
    return {
        "steps": steps,
        "medianMs": median * 1e3,
        "minMs": seconds[0] * 1e3,
        "minCpuMs": min(cpu) * 1e3,
        "firstStepSeconds": first_step_seconds,
        "firstLoss": first_loss,
        "loss": loss,
    }


def peak_rss_mb():
    """Most memory that this process has had resident so far, in MiB."""
    # ru_maxrss counts KiB, on macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


# A peer imports this module last: what the libraries themselves take, before there is a model.
LOADED_RSS_MB = peak_rss_mb()


def report(options, shape, version, mode, threads, parameters, numbers):
    """Prints the result."""
    result = {
        "version": version,
        "shape": options.shape,
        "precision": options.precision,
        "mode": mode,
        "threads": threads,
        "parameters": parameters,
        **numbers,
        "tokensPerSec": shape["batch"] * shape["context"] / numbers["medianMs"] * 1e3,
        "loadedRssMb": LOADED_RSS_MB,
        "peakRssMb": peak_rss_mb(),
    }
    print(json.dumps(result), flush=True)
