"""The losses (configs/REFERENCE.md): of each record, and what kind of outputs and targets each is for."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Form:
    """`targets`: "class", "binary" or "value"; `link`: what makes predictions of outputs."""

    loss: str
    targets: str
    link: str
    levels: tuple = ()  # of quantiles
    options: object = None  # of the loss: the config

    @property
    def has_probabilities(self):
        return self.link in ("softmax", "logit")


KINDS = {
    "softmax_cross_entropy": ("class", "softmax"),
    "softmax_focal": ("class", "softmax"),
    "multiclass_hinge": ("class", "score"),
    "binary_cross_entropy": ("binary", "logit"),
    "binary_focal": ("binary", "logit"),
    "binary_hinge": ("binary", "score"),
    "poisson": ("value", "exp"),
    "tweedie": ("value", "exp"),
    "gamma": ("value", "exp"),
    "cosine_distance": ("value", "direction"),
    "quantile": ("value", "quantile"),
}


def form_of(config):
    loss = config.get("train.loss", "softmax_cross_entropy")
    targets, link = KINDS.get(loss, ("value", "identity"))
    levels = config.get("train.quantiles", [0.5]) if loss == "quantile" else ()
    return Form(loss, targets, link, tuple(levels if isinstance(levels, list) else [levels]), config)


def log_softmax(outputs):
    top = outputs.max(axis=1, keepdims=True)
    return outputs - top - np.log(np.exp(outputs - top).sum(axis=1, keepdims=True))


def sigmoid(x):
    return np.exp(log_sigmoid(np.asarray(x, float)))


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def classes_of(targets):
    """Of class numbers or rows of probabilities."""
    return targets.argmax(axis=1) if targets.shape[1] > 1 else targets[:, 0].astype(int)


def shares_of(targets, classes):
    """A probability of each class for each record."""
    if targets.shape[1] > 1:
        return targets
    return np.eye(classes)[targets[:, 0].astype(int)]


def loss_matrix(form, outputs, targets):
    """The loss of each target of each record; NaN where the target is missing. Of classes and directions one column."""
    get = form.options.get
    if form.targets == "class":
        shares = shares_of(targets, outputs.shape[1])
        if form.loss == "multiclass_hinge":
            true = classes_of(targets)[:, None]
            own = np.take_along_axis(outputs, true, 1)
            others = outputs.copy()
            np.put_along_axis(others, true, -np.inf, 1)
            return np.maximum(0, 1 + others.max(axis=1, keepdims=True) - own)
        logs = log_softmax(outputs)
        if form.loss == "softmax_focal":
            p = np.exp(logs)
            return -(shares * (1 - p) ** get("train.focal_gamma", 2.0) * logs).sum(axis=1, keepdims=True)
        smoothing = get("train.label_smoothing", 0.0)
        shares = shares * (1 - smoothing) + smoothing / outputs.shape[1]
        return -(shares * logs).sum(axis=1, keepdims=True)
    if form.targets == "binary":
        if form.loss == "binary_hinge":
            return np.maximum(0, 1 - np.where(np.isnan(targets), np.nan, np.where(targets > 0.5, 1, -1)) * outputs)
        yes, no = log_sigmoid(outputs), log_sigmoid(-outputs)
        if form.loss == "binary_cross_entropy":
            return -(targets * yes + (1 - targets) * no)
        gamma, alpha = get("train.focal_gamma", 2.0), get("train.focal_alpha")
        for_yes, for_no = (1, 1) if alpha is None else (alpha, 1 - alpha)
        return -(targets * for_yes * np.exp(no * gamma) * yes + (1 - targets) * for_no * np.exp(yes * gamma) * no)
    if form.link == "direction":
        return 1 - cosine(outputs, targets)[:, None]
    if form.loss == "quantile":
        return pinball_matrix(form, outputs, targets)
    if form.loss == "poisson":
        return np.exp(outputs) - targets * outputs
    if form.loss == "gamma":
        return outputs + targets * np.exp(-outputs)
    if form.loss == "tweedie":
        p = get("train.tweedie_power", 1.5)
        return np.exp((2 - p) * outputs) / (2 - p) - targets * np.exp((1 - p) * outputs) / (1 - p)
    error = outputs - targets
    if form.loss == "mean_absolute_error":
        return np.abs(error)
    if form.loss == "huber":
        delta = get("train.huber_delta", 1.0)
        return np.where(np.abs(error) <= delta, error**2 / 2, delta * (np.abs(error) - delta / 2))
    return error**2


def cosine(outputs, targets):
    lengths = np.sqrt((outputs**2).sum(axis=1)) * np.sqrt((targets**2).sum(axis=1))
    both = (outputs * targets).sum(axis=1)
    return np.divide(both, lengths, out=np.zeros_like(both), where=lengths > 0)


def pinball_matrix(form, outputs, targets):
    """A column for each output."""
    levels = np.array(form.levels)
    d = np.repeat(targets, len(levels), axis=1) - outputs
    q = np.tile(levels, targets.shape[1])
    return np.where(d > 0, q * d, (q - 1) * d)


def predictions(form, outputs):
    """In the units that training sees."""
    return np.exp(outputs) if form.link == "exp" else outputs


def probabilities(form, outputs):
    return sigmoid(outputs) if form.link == "logit" else np.exp(log_softmax(outputs))
