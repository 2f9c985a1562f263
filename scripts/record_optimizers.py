"""Records parameters after steps of optax's, PyTorch's and pytorch_optimizer's optimizers, for test/learners/optimizers/published.test.ts.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_optimizers.py
    npx biome check --write test/fixtures/learners

writes test/fixtures/learners/optimizers.json. Gradients are given, so that no network is needed: sin(0.7 (i + 1)(t + 1)) at
step t and element i of parameters sin(i + 1).
"""
import json
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytorch_optimizer
import torch
from pytorch_optimizer.optimizer.utils import preconditioner

jax.config.update("jax_enable_x64", True)
# Muon's iteration rounds to bfloat16, of which 3 % of a step are left after five turns: here it is in double.
torch.bfloat16 = torch.float64
# Its exact root leaves out the ridge that its iteration has, and Pax's root.
exact_root = preconditioner.compute_power_svd
preconditioner.compute_power_svd = lambda matrix, power: exact_root(matrix + 1e-3 * torch.eye(matrix.shape[-1]), power)
OUT = Path(__file__).resolve().parent.parent / "test/fixtures/learners/optimizers.json"
SHAPE, STEPS, RATE = (4, 6), 4, 0.1

index = np.arange(1, 1 + np.prod(SHAPE), dtype=np.float64).reshape(SHAPE)
start = np.sin(index)
gradient = lambda step: np.sin(0.7 * index * (step + 1))


def of_optax(transform):
    params, state = jnp.asarray(start), transform.init(jnp.asarray(start))
    for step in range(STEPS):
        updates, state = transform.update(jnp.asarray(gradient(step)), state, params)
        params = optax.apply_updates(params, updates)
    return params


def of_torch(cls, **settings):
    """Of a matrix whose rows are outputs, as PyTorch's layers have them."""
    params = torch.tensor(start.T.copy(), requires_grad=True)
    optimizer = cls([params], lr=RATE, **settings)
    for step in range(STEPS):
        params.grad = torch.tensor(gradient(step).T.copy())
        optimizer.step()
    return params.detach().numpy().T


def of_contrib_free(beta1, **settings):
    """Training's parameters, then those to evaluate."""
    transform = optax.contrib.schedule_free_adamw(RATE, b1=beta1, **settings)
    params, state = jnp.asarray(start), transform.init(jnp.asarray(start))
    for step in range(STEPS):
        updates, state = transform.update(jnp.asarray(gradient(step)), state, params)
        params = optax.apply_updates(params, updates)
    return jnp.stack([params, optax.contrib.schedule_free_eval_params(state, params)])


def of_shampoo(**settings):
    """As Pax names it: rows first, statistics and roots at each step."""
    params = torch.tensor(start.copy(), requires_grad=True)
    every = {"preconditioning_compute_steps": 1, "statistics_compute_steps": 1}
    optimizer = pytorch_optimizer.ScalableShampoo(
        [params], lr=RATE, use_svd=True, matrix_eps=1e-3, betas=(0.9, 0.95), shape_interpretation=False, **every, **settings
    )
    for step in range(STEPS):
        params.grad = torch.tensor(gradient(step))
        optimizer.step()
    return params.detach().numpy()


def of_soap(shape, **settings):
    """Gradients of full rank, so that eigenvectors are no matter of chance; more steps than others, since the first moves nothing."""
    params = torch.tensor(start.reshape(shape), requires_grad=True)
    optimizer = pytorch_optimizer.SOAP([params], lr=RATE, precondition_frequency=2, **settings)
    for step in range(STEPS + 2):
        params.grad = torch.tensor(np.sin(0.7 * index**2 * (step + 1)).reshape(shape))
        optimizer.step()
    return params.detach().numpy()


rated = lambda transform: optax.chain(transform, optax.scale(-RATE))
found = {
    "optax.lamb": of_optax(optax.lamb(RATE)),
    "optax.lamb, decayed": of_optax(optax.lamb(RATE, b1=0.8, b2=0.95, eps=1e-3, weight_decay=0.3)),
    "optax.lars": of_optax(optax.lars(RATE, weight_decay=0.2, trust_coefficient=0.3)),
    "optax.lars, Nesterov": of_optax(optax.lars(RATE, eps=0.5, momentum=0.7, nesterov=True, trust_coefficient=0.5)),
    "optax.sm3": of_optax(rated(optax.scale_by_sm3(b1=0.9, eps=0.0))),
    "optax.contrib.muon": of_optax(optax.contrib.muon(RATE, nesterov=False)),
    "optax.contrib.schedule_free_adamw": of_contrib_free(0.8, b2=0.95, weight_decay=0.1),
    "ScalableShampoo": of_shampoo(start_preconditioning_step=1, graft_type=1),
    "ScalableShampoo, RMSProp's size": of_shampoo(
        start_preconditioning_step=3, graft_type=3, diagonal_eps=1e-10, nesterov=False, moving_average_for_momentum=True
    ),
    "ScalableShampoo, AdaGrad's size": of_shampoo(start_preconditioning_step=2, graft_type=2, diagonal_eps=1e-10, block_size=2),
    "SOAP": of_soap((4, 6), max_precondition_dim=5, weight_decay=0.0),
    "SOAP, three dimensions": of_soap((2, 3, 4), betas=(0.8, 0.9), shampoo_beta=0.7, weight_decay=0.0, normalize_gradient=True),
    "SOAP, merged": of_soap((2, 2, 6), max_precondition_dim=4, merge_dims=True, weight_decay=0.0),
    "SOAP, vector": of_soap((24,), weight_decay=0.0, correct_bias=False),
    "torch.optim.Muon": of_torch(torch.optim.Muon, weight_decay=0.0),
    "torch.optim.Muon, as Adam": of_torch(torch.optim.Muon, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
}
OUT.parent.mkdir(parents=True, exist_ok=True)
rounded = {name: [round(float(x), 9) for x in np.ravel(values)] for name, values in found.items()}
versions = {each.__name__: each.__version__ for each in (optax, torch)}
versions["pytorch_optimizer"] = version("pytorch_optimizer")
OUT.write_text(json.dumps({"versions": versions, **rounded}))
