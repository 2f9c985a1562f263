"""nanoGPT's run on Shakespeare for CPUs in PyTorch, measured as lm.ShakespeareChar is: the mean loss over the whole
validation split, in windows that don't overlap. Prints one line of JSON.

    "$LUTHIER_PEERS/venv/bin/python" bench/peers/torch_shakespeare.py --data input.txt --seed 0
"""
import argparse
import json
import math

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, STEPS, WARMUP = 4, 4, 128, 64, 12, 2000, 100
HIGHEST, LOWEST = 1e-3, 1e-4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(WIDTH, bias=False)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.attn_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.ln2 = nn.LayerNorm(WIDTH, bias=False)
        self.fc = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.fc_proj = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        heads = [z.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for z in self.qkv(self.ln1(x)).split(WIDTH, 2)]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.attn_proj(attended.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.fc_proj(F.gelu(self.fc(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * LAYERS) if 'proj' in name else 0.02)

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.tokens.weight.T
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.reshape(-1))


def learning_rate(step):
    if step < WARMUP:
        return HIGHEST * (step + 1) / (WARMUP + 1)
    progress = (step - WARMUP) / (STEPS - WARMUP)
    return LOWEST + 0.5 * (1 + math.cos(math.pi * progress)) * (HIGHEST - LOWEST)


def train(model, data):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{'params': matrices, 'weight_decay': 0.1}, {'params': vectors, 'weight_decay': 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=HIGHEST, betas=(0.9, 0.99), fused=True)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group['lr'] = learning_rate(step)
        starts = torch.randint(len(data) - CONTEXT, (BATCH,))
        ids = torch.stack([data[i : i + CONTEXT] for i in starts])
        labels = torch.stack([data[i + 1 : i + 1 + CONTEXT] for i in starts])
        model(ids, labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def evaluate(model, data):
    windows = (len(data) - 1) // CONTEXT
    ids = data[: windows * CONTEXT].view(windows, CONTEXT)
    labels = data[1 : windows * CONTEXT + 1].view(windows, CONTEXT)
    total = 0.0
    for i in range(0, windows, 256):
        total += model(ids[i : i + 256], labels[i : i + 256]).item() * len(ids[i : i + 256])
    return total / windows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--data', required=True)
    parser.add_argument('--seed', type=int, default=0)
    flags = parser.parse_args()
    torch.manual_seed(flags.seed)
    text = open(flags.data, encoding='utf8').read()
    index = {character: i for i, character in enumerate(sorted(set(text)))}
    data = torch.tensor([index[character] for character in text])
    split = int(0.9 * len(data))
    model = Gpt(len(index))
    train(model, data[:split])
    print(json.dumps({'seed': flags.seed, 'validationLoss': evaluate(model, data[split:])}))


main()
