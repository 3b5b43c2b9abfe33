"""Loads weights into the PyTorch module that they were trained for, and writes its probabilities.

run_torch.py WEIGHTS RECORDS DIMS OUTPUT
  WEIGHTS  safetensors file of a run with the layers below
  RECORDS  file of float32 numbers; DIMS is their shape, "64,8,8,3", channels last
  OUTPUT   file of float32 numbers
"""

import sys

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x):
        return self.shortcut(x) + self.body(x)


# conv2d(8, 3, padding=1) batch_norm relu maxpool(2)
# residual(conv2d(16, 3, stride=2, padding=1) batch_norm relu conv2d(16, 3, padding=1) batch_norm) relu
# flatten dense(4)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    Residual(
        nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                      nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)),
        nn.Conv2d(8, 16, 1, stride=2, bias=False)),
    nn.ReLU(), nn.Flatten(), nn.Linear(64, 4))

weights, records, dims, output = sys.argv[1:]
model.load_state_dict(load_file(weights), strict=True)
model.eval()
x = np.fromfile(records, np.float32).reshape([int(dim) for dim in dims.split(",")])
with torch.no_grad():
    probabilities = torch.softmax(model(torch.from_numpy(x).permute(0, 3, 1, 2)), dim=1)
probabilities.numpy().astype(np.float32).tofile(output)
