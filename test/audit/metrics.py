"""The measures of an evaluation (configs/REFERENCE.md, "Metrics"), from outputs, targets and weights.

Each is a function of (form, outputs, targets, weights) that gives a number; NaN where it is not defined. Targets that
are missing are NaN, and count for nothing.
"""

import numpy as np

from .losses import classes_of, cosine, loss_matrix, log_sigmoid, log_softmax
from .losses import pinball_matrix, predictions, probabilities, shares_of

BINS = 15


def mean_of_targets(values, weights):
    """The mean over all targets that are there, by the weights of their records."""
    there = ~np.isnan(values)
    all_weights = there * weights[:, None]
    if not all_weights.sum() > 0:
        return np.nan
    return float((np.where(there, values, 0) * weights[:, None]).sum() / all_weights.sum())


def loss(form, outputs, targets, weights):
    return mean_of_targets(loss_matrix(form, outputs, targets), weights)


def answers(form, outputs):
    """Classes, or yes and no of each output."""
    return outputs.argmax(axis=1) if form.targets == "class" else (outputs > 0).astype(float)


def accuracy(form, outputs, targets, weights):
    if form.targets == "class":
        return float(np.average(answers(form, outputs) == classes_of(targets), weights=weights))
    right = np.where(np.isnan(targets), np.nan, (outputs > 0) == (targets > 0.5))
    return mean_of_targets(right, weights)


def top_k(form, outputs, targets, weights, k):
    true = classes_of(targets)[:, None]
    own = np.take_along_axis(outputs, true, 1)
    columns = np.arange(outputs.shape[1])[None, :]
    before = (outputs > own) | ((outputs == own) & (columns < true))
    return float(np.average(before.sum(axis=1) < k, weights=weights))


def log_loss(form, outputs, targets, weights):
    if form.targets == "class":
        shares = shares_of(targets, outputs.shape[1])
        return mean_of_targets(-(shares * log_softmax(outputs)).sum(axis=1, keepdims=True), weights)
    return mean_of_targets(-(targets * log_sigmoid(outputs) + (1 - targets) * log_sigmoid(-outputs)), weights)


def questions(form, outputs, targets, weights):
    """Of each class (of two classes class 1, of outputs each): what is true, what is said, scores and weights."""
    if form.targets == "binary":
        for i in range(outputs.shape[1]):
            there = ~np.isnan(targets[:, i])
            yield targets[there, i] > 0.5, outputs[there, i] > 0, outputs[there, i], weights[there]
        return
    true, said = classes_of(targets), outputs.argmax(axis=1)
    classes = outputs.shape[1]
    scores = log_softmax(outputs) if form.link == "softmax" else outputs
    for k in [1] if classes == 2 else range(classes):
        score = outputs[:, 1] - outputs[:, 0] if classes == 2 else scores[:, k]
        if form.link == "score":  # known exactly: equal as far as single precision has it
            score = score.astype(np.float32)
        yield true == k, said == k, score, weights


def mean_of(values):
    values = [v for v in values if not np.isnan(v)]
    return float(np.mean(values)) if values else np.nan


def ranked(true, scores, weights):
    """Weights of positives and negatives by the distinct scores, the highest first."""
    kinds, place = np.unique(scores, return_inverse=True)
    positives = np.bincount(place, weights * true, len(kinds))[::-1]
    negatives = np.bincount(place, weights * ~true, len(kinds))[::-1]
    return kinds[::-1], positives, negatives


def area(true, scores, weights):
    _, positives, negatives = ranked(true, scores, weights)
    if positives.sum() == 0 or negatives.sum() == 0:
        return np.nan
    above = np.cumsum(positives) - positives / 2
    return float((above * negatives).sum() / (positives.sum() * negatives.sum()))


def auc(*of):
    return mean_of(area(t, s, w) for t, _, s, w in questions(*of))


def precision_area(true, scores, weights, ties=True):
    """`ties`: equal scores count as one; else positives stand behind negatives of the same score, one after the
    other."""
    if not ties:
        order = np.lexsort((true, -scores))
        scores = np.empty(len(order))
        scores[order] = -np.arange(len(order), dtype=float)
    _, positives, negatives = ranked(true, scores, weights)
    if positives.sum() == 0:
        return np.nan
    hits, all_so_far = np.cumsum(positives), np.cumsum(positives + negatives)
    share = np.divide(hits, all_so_far, out=np.zeros_like(hits), where=all_so_far > 0)
    return float((positives * share).sum() / positives.sum())


def average_precision(*of, ties=True):
    return mean_of(precision_area(t, s, w, ties) for t, _, s, w in questions(*of))


def share_of_hits(form, outputs, targets, weights, divisor):
    def one(true, said, weights):
        of_true, of_said, both = ((x * weights).sum() for x in (true, said, true & said))
        if of_true == 0 and of_said == 0:
            return np.nan
        below = divisor(of_true, of_said)
        return both / below if below > 0 else 0.0

    return mean_of(one(t, s, w) for t, s, _, w in questions(form, outputs, targets, weights))


def precision(*of):
    return share_of_hits(*of, lambda true, said: said)


def recall(*of):
    return share_of_hits(*of, lambda true, said: true)


def f1(*of):
    return share_of_hits(*of, lambda true, said: (true + said) / 2)


def mcc(form, outputs, targets, weights):
    if form.targets == "class" and outputs.shape[1] > 2:
        true, said = (np.eye(outputs.shape[1])[each] for each in (classes_of(targets), outputs.argmax(axis=1)))
        everything = weights.sum()
        t, s = weights @ true, weights @ said
        right = (weights[:, None] * true * said).sum()
        below = np.sqrt((everything**2 - (s**2).sum()) * (everything**2 - (t**2).sum()))
        return float((right * everything - t @ s) / below) if below > 1e-7 * everything**2 else 0.0

    def one(true, said, w):
        if w.sum() == 0:
            return np.nan
        t, s, both = ((each * w).sum() / w.sum() for each in (true, said, true & said))
        below = np.sqrt(t * (1 - t) * s * (1 - s))
        return (both - t * s) / below if min(t, 1 - t, s, 1 - s) > 1e-12 else 0.0

    return mean_of(one(t, s, w) for t, s, _, w in questions(form, outputs, targets, weights))


def balanced_accuracy(form, outputs, targets, weights):
    pairs = form.targets == "binary" or outputs.shape[1] == 2

    def one(true, said, w):
        sides = [(true == side, said == side) for side in ([False, True] if pairs else [True])]
        return mean_of((w * of * right).sum() / (w * of).sum() if (w * of).sum() > 0 else np.nan for of, right in sides)

    return mean_of(one(t, s, w) for t, s, _, w in questions(form, outputs, targets, weights))


def brier(form, outputs, targets, weights):
    p = probabilities(form, outputs)
    if form.targets == "binary":
        squares = (p - targets) ** 2
        return mean_of(mean_of_targets(squares[:, [i]], weights) for i in range(squares.shape[1]))
    shares = shares_of(targets, outputs.shape[1])
    squares = (p[:, 1] - shares[:, 1]) ** 2 if outputs.shape[1] == 2 else ((p - shares) ** 2).sum(axis=1)
    return float(np.average(squares, weights=weights))


def foretold(form, outputs, targets, weights):
    """What was given as a probability, and what share of it came true; of several outputs a list for each."""
    p = probabilities(form, outputs)
    if form.targets == "binary":
        there = ~np.isnan(targets)
        return [(p[own, i], targets[own, i], weights[own]) for i, own in enumerate(there.T)]
    shares = shares_of(targets, outputs.shape[1])
    if outputs.shape[1] == 2:
        return [(p[:, 1], shares[:, 1], weights)]
    said = outputs.argmax(axis=1)[:, None]
    return [(np.take_along_axis(p, said, 1)[:, 0], np.take_along_axis(shares, said, 1)[:, 0], weights)]


def bins_of(p):
    return np.clip(np.ceil(p * BINS), 1, BINS).astype(int) - 1


def reliability(lists):
    """Of each bin that holds something: its number, samples, mean probability, share that came true, weight."""
    p, came, weights = (np.concatenate(parts) for parts in zip(*lists))
    bins = bins_of(p)
    table = []
    for b in range(BINS):
        inside = bins == b
        weight = weights[inside].sum()
        if weight > 0:
            means = (float((weights * each)[inside].sum() / weight) for each in (p, came))
            table.append((b, int(inside.sum()), *means, float(weight)))
    return table


def ece(*of):
    def one(table):
        return sum(abs(p - came) * w for _, _, p, came, w in table) / sum(w for *_, w in table) if table else np.nan

    return mean_of(one(reliability([each])) for each in foretold(*of))


def mean_absolute_error(form, outputs, targets, weights):
    return mean_of_targets(np.abs(predictions(form, outputs) - targets), weights)


def mean_squared_error(form, outputs, targets, weights):
    return mean_of_targets((predictions(form, outputs) - targets) ** 2, weights)


def mean_absolute_percentage_error(form, outputs, targets, weights):
    there = ~(np.isnan(targets) | are_zero(targets))
    shares = np.abs(predictions(form, outputs) - targets)[there] / np.abs(targets[there])
    return float(np.average(shares, weights=(weights[:, None] * there)[there])) if there.any() else np.nan


def are_zero(targets):
    """Of labels that were scaled in single precision, too."""
    return np.abs(targets) <= 1e-6 * np.nanmax(np.abs(targets), initial=0)


def by_output(outputs, targets, weights, one):
    for i in range(targets.shape[1]):
        there = ~np.isnan(targets[:, i])
        yield one(outputs[there, i], targets[there, i], weights[there])


def root_mean_squared_error(form, outputs, targets, weights):
    one = lambda p, t, w: np.sqrt((w * (p - t) ** 2).sum() / w.sum()) if w.sum() > 0 else np.nan
    return mean_of(by_output(predictions(form, outputs), targets, weights, one))


def r2(form, outputs, targets, weights):
    def one(p, t, w):
        if w.sum() == 0:
            return np.nan
        spread = (w * (t - (w * t).sum() / w.sum()) ** 2).sum()
        return 1 - (w * (p - t) ** 2).sum() / spread if spread > 1e-12 * (w * t * t).sum() else np.nan

    return float(np.mean(list(by_output(predictions(form, outputs), targets, weights, one))))


def spearman(form, outputs, targets, weights):
    def ranks(x, w):
        kinds, place = np.unique(x, return_inverse=True)
        of_kind = np.bincount(place, w, len(kinds))
        return (np.cumsum(of_kind) - of_kind / 2)[place]

    def one(p, t, w):
        p, t, w = p[w > 0], t[w > 0], w[w > 0]
        if len(p) == 0:
            return np.nan
        a, b = ranks(p, w), ranks(t, w)
        a, b = a - np.average(a, weights=w), b - np.average(b, weights=w)
        below = np.sqrt((w * a * a).sum() * (w * b * b).sum())
        return (w * a * b).sum() / below if below > 1e-12 * w.sum() ** 3 else np.nan

    return mean_of(by_output(outputs, targets, weights, one))


def pinball(form, outputs, targets, weights):
    return mean_of_targets(pinball_matrix(form, outputs, targets), weights)


def deviance(power, outputs, targets, weights):
    mean = np.exp(outputs)
    if power == 1:
        own = np.where(targets > 0, targets * (np.log(np.where(targets > 0, targets, 1)) - outputs), 0)
        values = 2 * (own - targets + mean)
    elif power == 2:
        values = 2 * (outputs - np.log(targets) + targets / mean - 1)
    else:
        p = power
        own = targets ** (2 - p) / ((1 - p) * (2 - p))
        values = 2 * (own - targets * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p))
    return mean_of_targets(values, weights)


def cosine_similarity(form, outputs, targets, weights):
    return float(np.average(cosine(outputs, targets), weights=weights))


NAMED = (auc, log_loss, precision, recall, f1, mcc, balanced_accuracy, average_precision, brier, ece,
         mean_absolute_error, mean_squared_error, root_mean_squared_error, mean_absolute_percentage_error,
         r2, spearman, pinball, cosine_similarity)  # fmt: skip
BY_NAME = {each.__name__: each for each in NAMED}
BY_NAME |= {
    "poisson_deviance": lambda form, *of: deviance(1, *of),
    "gamma_deviance": lambda form, *of: deviance(2, *of),
    "tweedie_deviance": lambda form, *of: deviance(form.options.get("train.tweedie_power", 1.5), *of),
    "perplexity": lambda *of: float(np.exp(log_loss(*of))),
}
