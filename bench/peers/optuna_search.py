"""Best values of Optuna's TPE on six problems: optuna_search.py FIRST LAST prints, for each problem, those of the seeds.

The problems are those of bench/searchProblems.ts, all minimised.
"""

import json
import math
import sys

import optuna

TRIALS = 100
HARTMANN_A = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
HARTMANN_P = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
]


def floats(trial, count, low, high):
    return [trial.suggest_float(f"x{i}", low, high) for i in range(count)]


def branin(trial):
    x, y = trial.suggest_float("x0", -5, 10), trial.suggest_float("x1", 0, 15)
    curve = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return curve**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(trial):
    x = floats(trial, 6, 0, 1)
    weights = [1, 1.2, 3, 3.2]
    return -sum(
        w * math.exp(-sum(a * (v - p) ** 2 for a, v, p in zip(row, x, centre)))
        for w, row, centre in zip(weights, HARTMANN_A, HARTMANN_P)
    )


def ackley5(trial):
    x = floats(trial, 5, -32.768, 32.768)
    squares = math.sqrt(sum(v * v for v in x) / 5)
    waves = sum(math.cos(2 * math.pi * v) for v in x) / 5
    return -20 * math.exp(-0.2 * squares) - math.exp(waves) + 20 + math.e


def rosenbrock4(trial):
    x = floats(trial, 4, -5, 10)
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(3))


def mixed(trial):
    rate = math.log10(trial.suggest_float("learningRate", 1e-5, 1, log=True))
    layers = trial.suggest_int("numLayers", 1, 12)
    dims = trial.suggest_int("modelDims", 32, 512, step=32)
    dropout = trial.suggest_float("dropout", 0, 0.5)
    activation = trial.suggest_categorical("activation", ["relu", "gelu", "silu", "tanh"])
    penalty = {"relu": 0.3, "gelu": 0, "silu": 0.05, "tanh": 0.8}[activation]
    best_rate = -2.5 - 0.1 * layers
    return (
        (rate - best_rate) ** 2
        + 0.02 * (layers - 8) ** 2
        + 2 * (dims / 512 - 0.7) ** 2
        + 3 * (dropout - 0.1 - 0.01 * layers) ** 2
        + penalty
    )


def conditional(trial):
    optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam", "lion"])
    decay = math.log10(trial.suggest_float("weightDecay", 1e-5, 1, log=True))
    common = 0.1 * (decay + 2) ** 2
    if optimizer == "sgd":
        rate = math.log10(trial.suggest_float("sgdRate", 1e-4, 10, log=True))
        momentum = trial.suggest_float("momentum", 0, 0.99)
        return 0.3 + common + (rate + 1 + momentum) ** 2 + (momentum - 0.9) ** 2
    if optimizer == "adam":
        rate = math.log10(trial.suggest_float("adamRate", 1e-6, 1e-1, log=True))
        beta2 = math.log10(1 - trial.suggest_float("beta2", 0.9, 0.9999))
        return common + (rate + 3) ** 2 + 0.2 * (beta2 + 2) ** 2
    rate = math.log10(trial.suggest_float("lionRate", 1e-6, 1e-1, log=True))
    return 0.1 + common + 2 * (rate + 4) ** 2


PROBLEMS = [branin, hartmann6, ackley5, rosenbrock4, mixed, conditional]


def best_of(problem, seed):
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
    study = optuna.create_study(sampler=sampler)
    study.optimize(problem, n_trials=TRIALS)
    return study.best_value


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    first, last = int(sys.argv[1]), int(sys.argv[2])
    best = {each.__name__: [best_of(each, seed) for seed in range(first, last)] for each in PROBLEMS}
    print(json.dumps({"optuna": optuna.__version__, "first": first, "last": last, "best": best}))
