"""Writes torch_averages.json: averages of weights and running moments, for the tests of train.ema and train.swa_from.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_torch_averages.py
"""

import references
import torch
from torch.optim.swa_utils import AveragedModel

STEPS = 30


def exponential(decay):
    """The decay rises with the number of averaged weights, as that of TensorFlow's ExponentialMovingAverage."""

    def average(averaged, now, count):
        share = min(decay, (1 + int(count)) / (10 + int(count)))
        return share * averaged + (1 - share) * now

    return average


def numbers(tensors):
    return [round(float(value), 9) for tensor in tensors for value in tensor.detach().flatten()]


def case(decay):
    """A training of dense(3) batch_norm: weights and moments after each step, and their averages."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    averaged = AveragedModel(model, avg_fn=exponential(decay) if decay > 0 else None, use_buffers=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    moments = lambda of: [of[1].running_mean, of[1].running_var]
    result = {"decay": decay, "weights": [], "moments": [], "averaged_weights": [], "averaged_moments": []}
    for _ in range(STEPS):
        optimizer.zero_grad()
        (model(torch.randn(16, 3)) - torch.randn(16, 3)).square().mean().backward()
        optimizer.step()
        averaged.update_parameters(model)
        result["weights"].append(numbers(model.parameters()))
        result["moments"].append(numbers(moments(model)))
        result["averaged_weights"].append(numbers(averaged.module.parameters()))
        result["averaged_moments"].append(numbers(moments(averaged.module)))
    return result


def main():
    references.write("torch_averages.json", {"averages": [case(decay) for decay in (0.0, 0.5, 0.999)]}, rounded=True)


main()
