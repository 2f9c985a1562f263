"""Times Fiddle's operations on configs; prints one line of JSON for each. bench/configOperations.ts does the same in Luthier."""

import copy
import json
import sys
import time

import fiddle as fdl
from fiddle import printing, selectors
from fiddle._src import diffing
from fiddle.experimental import serialization

# An operation is repeated for this long, and not begun where the smaller size says that it would take too long.
BUDGET_SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
TOO_LONG_SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 90.0


class Node:
    def __init__(self, a=1, b=2.0, c="x", child=None, kids=()):
        pass


def wide(n):
    return fdl.Config(Node, kids=[fdl.Config(Node, a=i, b=i * 0.5, c=str(i)) for i in range(n)])


def chain(n):
    root = fdl.Config(Node)
    for i in range(1, n):
        root = fdl.Config(Node, a=i, child=root)
    return root


def diamond(n):
    root = fdl.Config(Node)
    for i in range(1, n):
        root = fdl.Config(Node, a=i, child=root, kids=[root])
    return root


def sets(n):
    config = fdl.Config(Node)

    def run():
        for i in range(n):
            config.a = i

    return run


def median(values):
    return sorted(values)[len(values) // 2]


def report(shape, size, operation, seconds=None, failure=None):
    line = {"shape": shape, "size": size, "operation": operation}
    line.update({"failure": failure} if failure else {"ms": seconds * 1e3})
    print(json.dumps(line), flush=True)
    return seconds


def measure(shape, size, operation, action, last):
    """`last` holds (size, seconds) of the same operation on a smaller graph."""
    if last.get(operation) is not None:
        smaller, seconds = last[operation]
        if seconds * (size / smaller) > TOO_LONG_SECONDS:
            report(shape, size, operation, failure=f"not run: over {TOO_LONG_SECONDS:.0f} s by its growth")
            return
    times = []
    began = time.perf_counter()
    try:
        while not times or time.perf_counter() - began < BUDGET_SECONDS:
            start = time.perf_counter()
            action()
            times.append(time.perf_counter() - start)
    except RecursionError:
        report(shape, size, operation, failure="RecursionError")
        return
    except Exception as error:  # What fails here is a result, too.
        report(shape, size, operation, failure=f"{type(error).__name__}: {str(error)[:60]}")
        return
    last[operation] = (size, report(shape, size, operation, median(times)))


def graph(shape, size, make, last):
    first, second, changed = make(size), make(size), make(size)
    (changed.kids[size // 2] if shape == "wide" else changed).a = -1
    text = None

    def to_json():
        nonlocal text
        text = serialization.dump_json(first)

    operations = {
        "create": lambda: make(size),
        "build": lambda: fdl.build(first),
        "equal": lambda: first == second,
        "deep copy": lambda: copy.deepcopy(first),
        "print": lambda: printing.as_str_flattened(first),
        "to JSON": to_json,
        "from JSON": lambda: serialization.load_json(text),
        "diff": lambda: diffing.build_diff(first, changed),
        "select and set": lambda: selectors.select(first, Node).set(b=3.0),
    }
    for operation, action in operations.items():
        if operation == "from JSON" and text is None:
            report(shape, size, operation, failure="no JSON to read")
            continue
        measure(shape, size, operation, action, last)


def main():
    print(json.dumps({"version": f"Fiddle {fdl.__version__}, Python {sys.version.split()[0]}"}), flush=True)
    measure("writes", 1000, "set", sets(1000), {})
    for shape, make, sizes in (
        ("wide", wide, (100, 1000, 10000)),
        ("chain", chain, (10, 14, 100, 300, 10000)),
        ("diamond", diamond, (10, 14, 18, 60)),
    ):
        last = {}
        for size in sizes:
            # Comparing and printing take four times as long for every two levels: what grew so is not begun.
            if shape == "diamond" and last.get("print") is not None:
                last["print"] = (size, last["print"][1] * 2.0 ** min(1000, size - last["print"][0]))
            if shape in ("chain", "diamond") and last.get("equal") is not None:
                last["equal"] = (size, last["equal"][1] * 2.0 ** min(1000, size - last["equal"][0]))
            try:
                graph(shape, size, make, last)
            except RecursionError:
                report(shape, size, "create", failure="RecursionError")


main()
