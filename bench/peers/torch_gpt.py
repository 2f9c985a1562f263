"""GPT's training step in PyTorch, as bench/luthierStep.ts trains it: the peer of `npm run bench:train`.

Pre-norm blocks with norms that have weights alone, no biases, exact GELU, embeddings tied to the output, causal
attention by F.scaled_dot_product_attention; AdamW (fused, betas 0.9 and 0.99, weight decay 0.1 on matrices only), the
gradient clipped to a norm of 1. Random tokens. Prints one line of JSON.
"""

import contextlib
import math

import torch
from torch import nn
from torch.nn import functional as F

from common import SHAPES, arguments, measure, report


class Block(nn.Module):
    """x [B, T, D] -> [B, T, D]: attention and feed-forward, each added to what it read."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.ff_norm = nn.LayerNorm(width, bias=False)
        self.ff_in = nn.Linear(width, 4 * width, bias=False)
        self.ff_out = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = (
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.attention_norm(x)).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, time, width))
        return x + self.ff_out(F.gelu(self.ff_in(self.ff_norm(x))))


class Gpt(nn.Module):
    """ids and labels [B, T] -> mean cross-entropy."""

    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self.register_buffer("places", torch.arange(context), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                residual = name.endswith(("attention_out.weight", "ff_out.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions(self.places)
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))


def main():
    options = arguments(__doc__.splitlines()[0], modes=["eager", "compile"])
    if options.threads:
        torch.set_num_threads(options.threads)
    shape = SHAPES[options.shape]
    torch.manual_seed(0)
    model = Gpt(shape["layers"], shape["heads"], shape["width"], shape["context"], shape["vocabulary"])
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=1e-3,
        betas=(0.9, 0.99),
        fused=True,
    )
    loss_of = torch.compile(model) if options.mode == "compile" else model
    size = (shape["batch"], shape["context"])
    ids = torch.randint(0, shape["vocabulary"], size)
    labels = torch.randint(0, shape["vocabulary"], size)
    bf16 = options.precision == "bf16"

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = loss_of(ids, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    numbers = measure(step, options.steps or shape["steps"])
    version = f"PyTorch {torch.__version__.split('+')[0]}"
    parameters = sum(p.numel() for p in model.parameters())
    report(options, shape, version, options.mode, torch.get_num_threads(), parameters, numbers)


main()
