"""A peer: PyTorch on random tokens with the GPT of scripts/measuring/gpt.toml or that of GPT-2, one process.

  OMP_NUM_THREADS=2 scripts/peers/python scripts/peers/gpt.py MODEL BATCH STEPS

MODEL is gpt (4 blocks of 128, 65 tokens: nanoGPT's settings for a CPU) or gpt2 (12 blocks of 768, 50,257 tokens), both
with 64 positions, adamw, clipping and a cosine. Prints one line: samples/s after five warm-up steps, as they come and by
torch.compile, whichever is faster."""
import math
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional

POSITIONS = 64
SHAPES = {'gpt': (65, 128, 4, 4), 'gpt2': (50257, 768, 12, 12)}  # tokens, width, blocks, heads
WARM_UP = 5


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        samples, positions, width = x.shape
        q, k, v = (part.view(samples, positions, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, 2))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(samples, positions, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, tokens, width, blocks, heads):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(tokens, width), nn.Embedding(POSITIONS, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)
        self.head.weight = self.tokens.weight
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, 0, 0.02)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions.weight)))


def rate(model, step_model, tokens, batch, steps):
    """Samples/s."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.1 + 0.45 * (1 + math.cos(math.pi * step / steps)))
    ids = torch.randint(tokens, (200_000,))
    start = 0.0
    for step in range(steps):
        if step == WARM_UP:
            start = time.time()
        begins = torch.randint(len(ids) - POSITIONS, (batch,))
        windows = torch.stack([ids[begin:begin + POSITIONS + 1] for begin in begins])
        optimizer.zero_grad(set_to_none=True)
        outputs = step_model(windows[:, :-1])
        functional.cross_entropy(outputs.reshape(-1, tokens), windows[:, 1:].reshape(-1)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return (steps - WARM_UP) * batch / (time.time() - start)


def main():
    name, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', '1')))
    torch.manual_seed(0)
    model = Gpt(*SHAPES[name])
    tokens = SHAPES[name][0]
    eager = rate(model, model, tokens, batch, steps)
    compiled = rate(model, torch.compile(model), tokens, batch, steps)
    print(f'torch {torch.__version__} {name} batch={batch} steps={steps} eager={eager:.4g} compiled={compiled:.4g} '
          f'samples_per_s={max(eager, compiled):.4g}')


if __name__ == '__main__':
    main()
