"""Writes torch_references.json, the numbers that optimizers, schedules and losses are tested against.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_torch_references.py
"""

import math

import numpy as np
import references
import torch
from sklearn._loss import loss as sklearn_loss

STEPS = 50
RECORDED = (1, 2, 5, 10, 20, 50)
WEIGHTS = 12


# ---- optimizers: a quadratic bowl plus noise that is exact in single precision ------------------------------------


def start():
    return [(5 - i) * 0.25 for i in range(WEIGHTS)]


def gradient(weights, step):
    """curvature * (weight - target) + noise; the tests compute the same."""
    curvature = torch.tensor([0.25 + 0.125 * i for i in range(WEIGHTS)], dtype=weights.dtype)
    target = torch.tensor([0.5 - 0.25 * (i % 4) for i in range(WEIGHTS)], dtype=weights.dtype)
    noise = torch.tensor([((7 * i + 3 * step) % 11 - 5) * 0.125 for i in range(WEIGHTS)], dtype=weights.dtype)
    return curvature * (weights - target) + noise


def betas(options):
    return (options.get("beta1", 0.9), options.get("beta2", 0.999))


TORCH_OPTIMIZERS = {
    "sgd": lambda w, o, lr, wd: torch.optim.SGD(
        w, lr, momentum=o.get("momentum", 0), nesterov=o.get("nesterov", False), weight_decay=wd),
    "adam": lambda w, o, lr, wd: torch.optim.Adam(w, lr, betas(o), o.get("epsilon", 1e-8), weight_decay=wd),
    "adamw": lambda w, o, lr, wd: torch.optim.AdamW(w, lr, betas(o), o.get("epsilon", 1e-8), weight_decay=wd),
    "adagrad": lambda w, o, lr, wd: torch.optim.Adagrad(w, lr, eps=o.get("epsilon", 1e-8), weight_decay=wd),
    "rmsprop": lambda w, o, lr, wd: torch.optim.RMSprop(
        w, lr, alpha=o.get("rho", 0.99), eps=o.get("epsilon", 1e-8), momentum=o.get("momentum", 0),
        weight_decay=wd),
    "nadam": lambda w, o, lr, wd: torch.optim.NAdam(
        w, lr, betas(o), o.get("epsilon", 1e-8), weight_decay=wd, momentum_decay=o.get("momentum_decay", 4e-3),
        foreach=True),  # PyTorch 1.13 multiplies the momentum of a step twice without
}

OPTIMIZER_CASES = [
    ("sgd", {}, 0.05, 0.0),
    ("sgd", {}, 0.05, 0.1),
    ("sgd", {"momentum": 0.9}, 0.02, 0.0),
    ("sgd", {"momentum": 0.9, "nesterov": True}, 0.02, 0.0),
    ("sgd", {"momentum": 0.5, "nesterov": True}, 0.05, 0.1),
    ("adam", {}, 0.05, 0.0),
    ("adam", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}, 0.02, 0.1),
    ("adamw", {}, 0.05, 0.01),
    ("adamw", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}, 0.02, 0.5),
    ("adagrad", {}, 0.2, 0.0),
    ("adagrad", {"epsilon": 1e-3}, 0.1, 0.1),
    ("rmsprop", {}, 0.02, 0.0),
    ("rmsprop", {"momentum": 0.9}, 0.005, 0.0),
    ("rmsprop", {"rho": 0.9, "momentum": 0.5, "epsilon": 1e-4}, 0.01, 0.1),
    ("lamb", {}, 0.02, 0.0),
    ("lamb", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-6}, 0.05, 0.1),
    ("nadam", {}, 0.02, 0.0),
    ("nadam", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4, "momentum_decay": 0.3}, 0.02, 0.1),
    ("lion", {}, 0.01, 0.0),
    ("lion", {"beta1": 0.8, "beta2": 0.95}, 0.02, 0.5),
    ("adafactor", {}, 0.05, 0.0),
    ("adafactor", {}, 0.05, 0.1, (3, 4)),
    ("adafactor", {"beta2_decay": 0.5, "scale_parameter": True}, 0.05, 0.0, (6, 2)),
    ("adafactor", {"scale_parameter": True}, 0.05, 0.0),
    ("muon", {}, 0.02, 0.0, (3, 4)),
    ("muon", {"momentum": 0.8}, 0.05, 0.1, (4, 3)),
    ("muon", {"momentum": 0}, 0.02, 0.0, (6, 2)),
    ("muon", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4, "adamw_lr_multiplier": 0.5}, 0.02, 0.5),
]


GROUPED_OPTIMIZERS = [("sgd", {"momentum": 0.9}), ("adamw", {}), ("rmsprop", {})]


def run_torch(name, options, lr, weight_decay):
    weights = torch.nn.Parameter(torch.tensor(start(), dtype=torch.float32))
    optimizer = TORCH_OPTIMIZERS[name]([weights], options, lr, weight_decay)
    for step in range(1, STEPS + 1):
        weights.grad = gradient(weights.detach(), step)
        optimizer.step()
        yield step, weights.detach()


def run_lamb(options, lr, weight_decay):
    """Algorithm 2 of You et al. 2019 (arXiv 1904.00962) with phi(z) = z, in double precision."""
    beta1, beta2 = betas(options)
    weights = torch.tensor(start(), dtype=torch.float64)
    first = torch.zeros_like(weights)
    second = torch.zeros_like(weights)
    for step in range(1, STEPS + 1):
        g = gradient(weights, step)
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        ratio = (first / (1 - beta1**step)) / (torch.sqrt(second / (1 - beta2**step)) + options.get("epsilon", 1e-8))
        direction = ratio + weight_decay * weights
        weights = weights - lr * torch.norm(weights) / torch.norm(direction) * direction
        yield step, weights


def run_lion(options, lr, weight_decay):
    """Algorithm 2 of Chen et al. 2023 (arXiv 2302.06675), in double precision."""
    beta1, beta2 = options.get("beta1", 0.9), options.get("beta2", 0.99)
    weights = torch.tensor(start(), dtype=torch.float64)
    mean = torch.zeros_like(weights)
    for step in range(1, STEPS + 1):
        g = gradient(weights, step)
        direction = torch.sign(beta1 * mean + (1 - beta1) * g)
        weights = weights - lr * (direction + weight_decay * weights)
        mean = beta2 * mean + (1 - beta2) * g
        yield step, weights


def rms(values):
    return torch.sqrt(torch.mean(values**2))


def run_adafactor(options, lr, weight_decay, shape):
    """Algorithms 4 and 5 of Shazeer & Stern 2018 (arXiv 1804.04235) without momentum, in double precision. Weight
    decay is apart, as in PyTorch's Adafactor; with scale_parameter the rate is that of section 8, times lr."""
    weights = torch.tensor(start(), dtype=torch.float64)
    rows = torch.zeros(shape[0], 1, dtype=torch.float64) if shape else None
    columns = torch.zeros(1, shape[1], dtype=torch.float64) if shape else None
    second = torch.zeros_like(weights)
    for step in range(1, STEPS + 1):
        g = gradient(weights, step)
        beta2 = 1 - step**-options.get("beta2_decay", 0.8)
        squares = g**2 + 1e-30
        if shape:
            squares = squares.reshape(shape)
            rows = beta2 * rows + (1 - beta2) * squares.sum(1, keepdim=True)
            columns = beta2 * columns + (1 - beta2) * squares.sum(0, keepdim=True)
            second = (rows @ columns / rows.sum()).flatten()
        else:
            second = beta2 * second + (1 - beta2) * squares
        direction = g / torch.sqrt(second)
        direction = direction / max(1.0, rms(direction))
        rate = lr * max(1e-3, rms(weights)) if options.get("scale_parameter", False) else lr
        weights = weights - lr * weight_decay * weights - rate * direction
        yield step, weights


def orthogonalise(x):
    """zeropower_via_newtonschulz5 of https://kellerjordan.github.io/posts/muon, in double precision."""
    a, b, c = 3.4445, -4.7750, 2.0315
    turned = x.shape[0] > x.shape[1]
    x = x.T if turned else x
    x = x / (torch.norm(x) + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if turned else x


def run_muon(options, lr, weight_decay, shape):
    """https://github.com/KellerJordan/Muon for a matrix; for a vector the AdamW beside it."""
    weights = torch.tensor(start(), dtype=torch.float64)
    beta1, beta2 = betas(options)
    momentum = options.get("momentum", 0.95)
    first = torch.zeros_like(weights)
    second = torch.zeros_like(weights)
    for step in range(1, STEPS + 1):
        g = gradient(weights, step)
        if shape:
            first = momentum * first + (1 - momentum) * g
            update = orthogonalise(((1 - momentum) * g + momentum * first).reshape(shape)).flatten()
            update = update * max(1.0, shape[0] / shape[1])**0.5
            rate = lr
        else:
            first = beta1 * first + (1 - beta1) * g
            second = beta2 * second + (1 - beta2) * g**2
            root = torch.sqrt(second / (1 - beta2**step)) + options.get("epsilon", 1e-8)
            update = first / (1 - beta1**step) / root
            rate = lr * options.get("adamw_lr_multiplier", 0.015)
        weights = weights - rate * weight_decay * weights - rate * update
        yield step, weights


def optimizer_case(name, options, lr, weight_decay, shape=None):
    """`shape`: of the weights as a matrix; they are a vector without."""
    runs = {"lamb": run_lamb, "lion": run_lion}
    whole = {"adafactor": run_adafactor, "muon": run_muon}
    if name in whole:
        run = whole[name](options, lr, weight_decay, shape)
    elif name in runs:
        run = runs[name](options, lr, weight_decay)
    else:
        run = run_torch(name, options, lr, weight_decay)
    weights = {str(step): numbers(values) for step, values in run if step in RECORDED}
    case = {"optimizer": name, "options": options, "lr": lr, "weight_decay": weight_decay}
    return case | ({"shape": shape} if shape else {}) | {"weights": weights}


def clip_case(max_norm):
    parts = [torch.nn.Parameter(torch.zeros(5)), torch.nn.Parameter(torch.zeros(7))]
    g = gradient(torch.tensor(start()), 1)
    parts[0].grad, parts[1].grad = g[:5].clone(), g[5:].clone()
    norm = torch.nn.utils.clip_grad_norm_(parts, max_norm)
    return {"max_norm": max_norm, "gradient": numbers(g), "norm": float(norm),
            "clipped": numbers(torch.cat([part.grad for part in parts]))}


def clip_value_case(value, max_norm):
    """First each number, then the norm of all; a max_norm of 0 is none."""
    parts = [torch.nn.Parameter(torch.zeros(5)), torch.nn.Parameter(torch.zeros(7))]
    g = gradient(torch.tensor(start()), 1)
    parts[0].grad, parts[1].grad = g[:5].clone(), g[5:].clone()
    torch.nn.utils.clip_grad_value_(parts, value)
    if max_norm:
        torch.nn.utils.clip_grad_norm_(parts, max_norm)
    return {"value": value, "max_norm": max_norm, "gradient": numbers(g),
            "clipped": numbers(torch.cat([part.grad for part in parts]))}


def group_case(name, options, groups):
    """Two tensors of 12 weights in parameter groups of their own, each with its rate and weight decay."""
    tensors = [torch.nn.Parameter(torch.tensor(start(), dtype=torch.float32)) for _ in groups]
    lr, weight_decay = 0.05, 0.1
    optimizer = TORCH_OPTIMIZERS[name](
        [{"params": [tensor], "lr": lr * of_lr, "weight_decay": weight_decay * of_decay}
         for tensor, (of_lr, of_decay) in zip(tensors, groups)], options, lr, weight_decay)
    for step in range(1, 11):
        for tensor in tensors:
            tensor.grad = gradient(tensor.detach(), step)
        optimizer.step()
    return {"optimizer": name, "options": options, "lr": lr, "weight_decay": weight_decay, "groups": groups,
            "weights": [numbers(tensor) for tensor in tensors]}


# ---- schedules: in steps, 50 of them ------------------------------------------------------------------------------


def one_cycle(optimizer, o, steps):
    """PyTorch ends both parts a step early, with the last of total_steps: one step more, and it ends as we do."""
    share = o.get("warmup_share", 0.3)
    start = o.get("warmup_from", 0.1)
    lr = optimizer.param_groups[0]["lr"]
    end = o.get("end_lr", 0.0)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, lr, total_steps=steps + 1, pct_start=(share * steps + 1) / (steps + 1), div_factor=1 / start,
        final_div_factor=lr * start / end if end else math.inf, cycle_momentum=False)


def warmup_stable_decay(optimizer, o, steps):
    fall = round(steps * o.get("decay_share", 0.2))
    last = torch.optim.lr_scheduler.PolynomialLR(optimizer, fall, o.get("decay_power", 1.0))
    if "end_lr" in o:
        last = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, o["end_lr"] / 0.4, fall)
    first = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0, 1)
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [first, last], [steps - fall])


TORCH_DECAYS = {
    "constant": lambda optimizer, o, steps: torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0, 1),
    "step": lambda optimizer, o, steps: torch.optim.lr_scheduler.StepLR(optimizer, o["every"], o["decay_factor"]),
    "polynomial": lambda optimizer, o, steps: torch.optim.lr_scheduler.PolynomialLR(
        optimizer, steps, o.get("decay_power", 1.0)),
    "cosine": lambda optimizer, o, steps: torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, steps, o.get("end_lr", 0.0)),
    "milestones": lambda optimizer, o, steps: torch.optim.lr_scheduler.MultiStepLR(
        optimizer, [at - (STEPS - steps) for at in o["at"]], o.get("decay_factor", 0.1)),
    "exponential": lambda optimizer, o, steps: torch.optim.lr_scheduler.ExponentialLR(
        optimizer, o["decay_factor"] ** (1 / o["every"])),
    "one_cycle": one_cycle,
    "inverse_sqrt": lambda optimizer, o, steps: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: math.sqrt((STEPS - steps) / (STEPS - steps + step))),
    "wsd": warmup_stable_decay,
    "plateau": lambda optimizer, o, steps: torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0, 1),
}

# "every", "at" and "warm" are decay_every, milestones and warmup in steps, for PyTorch; the texts beside them are for
# us. An epoch is 10 steps of 4 samples.
SCHEDULE_CASES = [
    ("constant", {}, 0),
    ("constant", {"warmup": "8 steps", "warmup_from": 0.25}, 8),
    ("step", {"decay_every": "7 steps", "every": 7, "decay_factor": 0.5}, 0),
    ("step", {"decay_every": "1.5 epochs", "every": 15, "decay_factor": 0.1, "warmup": "20 samples"}, 5),
    ("step", {"decay_every": "48 samples", "every": 12, "decay_factor": 0.3, "warmup": "0.3 epochs"}, 3),
    ("polynomial", {}, 0),
    ("polynomial", {"decay_power": 2.0, "warmup": "1 epoch", "warmup_from": 0.01}, 10),
    ("cosine", {}, 0),
    ("cosine", {"end_lr": 0.02, "warmup": "5 steps"}, 5),
    ("milestones", {"milestones": ["1 epoch", "25 steps", "160 samples"], "at": [10, 25, 40]}, 0),
    ("milestones", {"milestones": ["2 epochs", "3 epochs"], "at": [20, 30], "decay_factor": 0.5,
                    "warmup": "5 steps"}, 5),
    ("exponential", {"decay_every": "1 step", "every": 1, "decay_factor": 0.9}, 0),
    ("exponential", {"decay_every": "2 epochs", "every": 20, "decay_factor": 0.3, "warmup": "4 steps"}, 4),
    ("one_cycle", {}, 0),
    ("one_cycle", {"warmup_share": 0.4, "warmup_from": 0.04, "end_lr": 0.001}, 0),
    ("inverse_sqrt", {"warmup": "8 steps"}, 8),
    ("inverse_sqrt", {"warmup": "80 samples", "warmup_from": 0.0001}, 20),
    ("wsd", {"decay_power": 2.0}, 0),
    ("wsd", {"warmup": "10 steps", "decay_share": 0.5, "end_lr": 0.04}, 10),
    ("plateau", {"warmup": "8 steps"}, 8),
]


def lrs_of(make_scheduler, lr, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr)
    scheduler = make_scheduler(optimizer)
    for _ in range(steps):
        yield optimizer.param_groups[0]["lr"]
        optimizer.step()
        scheduler.step()


def schedule_case(name, options, warm):
    lr = 0.4
    warmup = lambda optimizer: torch.optim.lr_scheduler.LinearLR(optimizer, options.get("warmup_from", 0.1), 1.0, warm)
    decay = lambda optimizer: TORCH_DECAYS[name](optimizer, options, STEPS - warm)
    lrs = list(lrs_of(warmup, lr, warm)) if warm else []
    lrs += lrs_of(decay, lr, STEPS - warm)
    ours = {key: value for key, value in options.items() if key not in ("every", "at")}
    return {"schedule": name, "options": ours | {"lr": lr}, "lrs": [float(f"{value:.12g}") for value in lrs]}


MEASURES = [round(1.5 / (1 + 0.4 * i) + 0.25 * math.sin(1.7 * i), 6) for i in range(40)]


def plateau_case(mode, patience, factor, min_delta, end_lr):
    """PyTorch's patience is the last bad evaluation that changes nothing, ours the first that does."""
    lr = 0.4
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode, factor, patience - 1, threshold=min_delta, threshold_mode="abs", min_lr=end_lr, eps=0)
    lrs = []
    for measure in MEASURES:
        scheduler.step(measure)
        lrs.append(float(f"{optimizer.param_groups[0]['lr']:.12g}"))
    return {"measure": "loss" if mode == "min" else "accuracy", "patience": patience, "decay_factor": factor,
            "min_delta": min_delta, "end_lr": end_lr, "lr": lr, "measures": MEASURES, "lrs": lrs}


PLATEAU_CASES = [("min", 1, 0.5, 0.0, 0.0), ("min", 3, 0.1, 0.05, 0.0), ("max", 2, 0.3, 0.0, 0.01),
                 ("min", 4, 0.25, 0.0, 0.05)]


# ---- losses: computed in double precision on inputs that single precision holds -------------------------------------


def logits(rows, columns, scale, extreme=()):
    values = torch.tensor([[math.sin(3.7 * r + 1.3 * c + 0.5) for c in range(columns)] for r in range(rows)])
    values = torch.round(values * scale * 1024) / 1024
    for row, column, value in extreme:
        values[row, column] = value
    return values


EXTREME = ((0, 0, 50.0), (0, 1, -50.0), (1, 2, 50.0), (2, 0, -50.0))
SMALL = logits(4, 3, 2.0)
WIDE = logits(3, 19, 4.0)
FAR = logits(4, 5, 3.0, EXTREME)


def classes(outputs):
    return torch.tensor([(2 * r + 1) % outputs.shape[1] for r in range(outputs.shape[0])])


def fractions(outputs):
    return torch.round(torch.sigmoid(logits(*outputs.shape, 3.0).flip(0)) * 64).clamp(0, 64) / 64


def values(outputs):
    return logits(*outputs.shape, 2.0).flip(0)


def cross_entropy(x, t, o):
    return torch.nn.functional.cross_entropy(x, t, reduction="sum", label_smoothing=o.get("label_smoothing", 0.0))


def binary_cross_entropy(x, t, o):
    return torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1).sum()


def squared_error(x, t, o):
    return torch.nn.functional.mse_loss(x, t, reduction="none").mean(1).sum()


def huber(x, t, o):
    return torch.nn.functional.huber_loss(x, t, reduction="none", delta=o.get("huber_delta", 1.0)).mean(1).sum()


def answers(outputs):
    """Yes or no."""
    return (fractions(outputs) > 0.5).to(torch.float32)


def counts(outputs):
    """Whole numbers, some of them 0."""
    return torch.round(values(outputs).clamp(min=0) * 2)


def amounts(outputs):
    """Above 0."""
    return values(outputs).abs() + 1 / 64


def absolute_error(x, t, o):
    return torch.nn.functional.l1_loss(x, t, reduction="none").mean(1).sum()


def quantile(x, t, o):
    """Outputs: targets x levels; torchmetrics and pytorch-forecasting write it like this."""
    levels = torch.tensor(o.get("quantiles", [0.5]), dtype=torch.float64)
    d = t[:, :, None] - x.reshape(*t.shape, len(levels))
    return torch.maximum(levels * d, (levels - 1) * d).mean((1, 2)).sum()


def poisson(x, t, o):
    return torch.nn.functional.poisson_nll_loss(x, t, log_input=True, full=False, reduction="none").mean(1).sum()


class Sklearn(torch.autograd.Function):
    """A half deviance of scikit-learn, element by element, with its own gradient."""

    @staticmethod
    def forward(context, x, t, loss):
        value, slope = loss.loss_gradient(t.flatten().numpy(), x.detach().flatten().numpy().copy())
        context.save_for_backward(torch.from_numpy(np.array(slope)).reshape(x.shape))
        return torch.from_numpy(np.array(value)).reshape(x.shape)

    @staticmethod
    def backward(context, gradient):
        return gradient * context.saved_tensors[0], None, None


def tweedie(x, t, o):
    return Sklearn.apply(x, t, sklearn_loss.HalfTweedieLoss(power=o.get("tweedie_power", 1.5))).mean(1).sum()


def gamma(x, t, o):
    return Sklearn.apply(x, t, sklearn_loss.HalfGammaLoss()).mean(1).sum()


def cosine_distance(x, t, o):
    return (1 - torch.nn.functional.cosine_similarity(x, t, dim=1)).sum()


def binary_focal(x, t, o):
    """sigmoid_focal_loss of torchvision."""
    p = torch.sigmoid(x)
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none")
    hit = p * t + (1 - p) * (1 - t)
    alpha = o.get("focal_alpha", 0)
    weight = alpha * t + (1 - alpha) * (1 - t) if alpha else 1
    return (weight * cross_entropy * (1 - hit) ** o.get("focal_gamma", 2.0)).mean(1).sum()


def softmax_focal(x, t, o):
    log_p = torch.log_softmax(x, 1).gather(1, t[:, None])
    others = torch.softmax(x, 1).scatter(1, t[:, None], 0).sum(1, keepdim=True)
    return (-log_p * others ** o.get("focal_gamma", 2.0)).sum()


def binary_hinge(x, t, o):
    return (1 - (2 * t - 1) * x).clamp(min=0).mean(1).sum()


def multiclass_hinge(x, t, o):
    """hinge_loss of scikit-learn for several classes, CategoricalHinge of Keras."""
    rival = x.scatter(1, t[:, None], -math.inf).max(1).values
    return (1 + rival - x.gather(1, t[:, None])[:, 0]).clamp(min=0).sum()


LOSSES = [
    ("softmax_cross_entropy", {}, cross_entropy, classes),
    ("softmax_cross_entropy", {"label_smoothing": 0.1}, cross_entropy, classes),
    ("binary_cross_entropy", {}, binary_cross_entropy, fractions),
    ("mean_squared_error", {}, squared_error, values),
    ("huber", {}, huber, values),
    ("huber", {"huber_delta": 0.5}, huber, values),
    ("mean_absolute_error", {}, absolute_error, values),
    ("quantile", {}, quantile, values),
    ("quantile", {"quantiles": [0.9]}, quantile, values),
    ("poisson", {}, poisson, counts),
    ("tweedie", {}, tweedie, counts),
    ("tweedie", {"tweedie_power": 1.2}, tweedie, counts),
    ("gamma", {}, gamma, amounts),
    ("cosine_distance", {}, cosine_distance, values),
    ("softmax_focal", {}, softmax_focal, classes),
    ("softmax_focal", {"focal_gamma": 0.5}, softmax_focal, classes),
    ("binary_focal", {}, binary_focal, fractions),
    ("binary_focal", {"focal_gamma": 1.5, "focal_alpha": 0.25}, binary_focal, answers),
    ("multiclass_hinge", {}, multiclass_hinge, classes),
    ("binary_hinge", {}, binary_hinge, answers),
]
# The outputs of three levels of one target, and of several.
LEVELS = [
    (("quantile", {"quantiles": [0.1, 0.5, 0.9]}, quantile, lambda x: values(x)[:, ::3]), logits(4, columns, 2.0))
    for columns in (3, 12)
]


def loss_case(name, options, function, make_targets, outputs):
    targets = make_targets(outputs)
    x = outputs.double().requires_grad_()
    value = function(x, targets if targets.dtype == torch.int64 else targets.double(), options)
    value.backward()
    return {"loss": name, "options": options, "rows": outputs.shape[0], "outputs": numbers(outputs),
            "targets": numbers(targets), "value": value.item(), "gradient": numbers(x.grad)}


WEIGHTS_OF_ROWS = (2.5, 0.0, 0.75, 1.0)


def weighted_loss_case(name, options, function, make_targets, outputs):
    """The mean of the losses of the rows by their weights, and its gradient."""
    targets = make_targets(outputs)
    targets = targets if targets.dtype == torch.int64 else targets.double()
    weights = torch.tensor(WEIGHTS_OF_ROWS[:outputs.shape[0]], dtype=torch.float64)
    x = outputs.double().requires_grad_()
    of_rows = torch.stack([function(x[r:r + 1], targets[r:r + 1], options) for r in range(outputs.shape[0])])
    value = (of_rows * weights).sum() / weights.sum()
    value.backward()
    return {"loss": name, "options": options, "rows": outputs.shape[0], "outputs": numbers(outputs),
            "targets": numbers(targets), "weights": numbers(weights), "value": value.item(),
            "gradient": numbers(x.grad)}


def numbers(tensor):
    """As a flat list with the nine digits that single precision can hold."""
    return [float(f"{value:.9g}") for value in tensor.flatten().tolist()]


def write(name, sections):
    references.write(name, sections, rounded=True, torch=torch.__version__)


def main():
    write("torch_references.json", {
        "optimizers": [optimizer_case(*case) for case in OPTIMIZER_CASES],
        "clipping": [clip_case(max_norm) for max_norm in (1.0, 100.0)],
        "value_clipping": [clip_value_case(*case) for case in ((0.5, 0.0), (100.0, 0.0), (0.75, 1.0))],
        "groups": [group_case(name, options, groups) for name, options in GROUPED_OPTIMIZERS
                   for groups in (((1, 1), (2, 0)), ((0.1, 0), (1, 3)))],
        "schedules": [schedule_case(*case) for case in SCHEDULE_CASES],
        "plateaus": [plateau_case(*case) for case in PLATEAU_CASES],
        "losses": [loss_case(*loss, outputs) for loss in LOSSES for outputs in (SMALL, WIDE, FAR)]
        + [loss_case(*loss, outputs) for loss, outputs in LEVELS],
        "weighted_losses": [weighted_loss_case(*loss, outputs) for loss in LOSSES for outputs in (SMALL, WIDE)]
        + [weighted_loss_case(*loss, outputs) for loss, outputs in LEVELS],
    })


if __name__ == "__main__":
    main()
