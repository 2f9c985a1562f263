"""GPT's training step in JAX and optax, as bench/luthierStep.ts trains it. Prints one line of JSON.

The network and the optimizer are those of torch_gpt.py; with bf16 the matrices are rounded for each product, and norms,
softmax, loss and optimizer stay float32.
"""

import functools
import math
import os

import jax
import jax.numpy as jnp
import optax

from common import SHAPES, arguments, measure, report

options = arguments(__doc__.splitlines()[0])
shape = SHAPES[options.shape]
LAYERS, HEADS, WIDTH = shape["layers"], shape["heads"], shape["width"]
CONTEXT, BATCH, VOCABULARY = shape["context"], shape["batch"], shape["vocabulary"]
DTYPE = jnp.bfloat16 if options.precision == "bf16" else jnp.float32


def init(key):
    keys = iter(jax.random.split(key, 2 + 4 * LAYERS))
    normal = lambda *size, std=0.02: std * jax.random.normal(next(keys), size)
    residual = 0.02 / math.sqrt(2 * LAYERS)
    block = lambda: {
        "attention_norm": jnp.ones(WIDTH),
        "qkv": normal(WIDTH, 3 * WIDTH),
        "attention_out": normal(WIDTH, WIDTH, std=residual),
        "ff_norm": jnp.ones(WIDTH),
        "ff_in": normal(WIDTH, 4 * WIDTH),
        "ff_out": normal(4 * WIDTH, WIDTH, std=residual),
    }
    return {
        "tokens": normal(VOCABULARY, WIDTH),
        "positions": normal(CONTEXT, WIDTH),
        "blocks": [block() for _ in range(LAYERS)],
        "norm": jnp.ones(WIDTH),
    }


def layer_norm(x, scale):
    x = x.astype(jnp.float32)
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return (centred * jax.lax.rsqrt(variance + 1e-5) * scale).astype(DTYPE)


def attention(x, block):
    split = lambda t: t.reshape(BATCH, CONTEXT, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
    q, k, v = map(split, jnp.split(x @ block["qkv"].astype(DTYPE), 3, -1))
    scores = (q @ k.swapaxes(-1, -2)).astype(jnp.float32) / math.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool)), scores, -1e9)
    mixed = jax.nn.softmax(scores).astype(DTYPE) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(BATCH, CONTEXT, WIDTH) @ block["attention_out"].astype(DTYPE)


def loss_of(params, ids, labels):
    x = (params["tokens"][ids] + params["positions"]).astype(DTYPE)
    for block in params["blocks"]:
        x = x + attention(layer_norm(x, block["attention_norm"]), block)
        hidden = layer_norm(x, block["ff_norm"]) @ block["ff_in"].astype(DTYPE)
        x = x + jax.nn.gelu(hidden, approximate=False) @ block["ff_out"].astype(DTYPE)
    logits = layer_norm(x, params["norm"]) @ params["tokens"].astype(DTYPE).T
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean()


def main():
    matrices = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(1e-3, 0.9, 0.99, weight_decay=0.1, mask=matrices)
    )
    key = jax.random.PRNGKey(0)
    params = init(key)
    state = optimizer.init(params)
    ids = jax.random.randint(jax.random.PRNGKey(1), (BATCH, CONTEXT), 0, VOCABULARY)
    labels = jax.random.randint(jax.random.PRNGKey(2), (BATCH, CONTEXT), 0, VOCABULARY)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train(params, state):
        loss, grads = jax.value_and_grad(loss_of)(params, ids, labels)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    def step():
        nonlocal params, state
        params, state, loss = train(params, state)
        jax.block_until_ready(params)
        return float(loss)

    numbers = measure(step, options.steps or shape["steps"])
    parameters = sum(p.size for p in jax.tree.leaves(params))
    # XLA takes one thread a core; there is no supported way to change it for the CPU.
    report(options, shape, f"JAX {jax.__version__}", "jit", os.cpu_count(), parameters, numbers)


main()
