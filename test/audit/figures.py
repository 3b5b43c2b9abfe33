"""All figures of one evaluation, recomputed: each with the range that the digits of the outputs leave open.

Outputs are known to so many digits. A figure is computed from them as they are, and from outputs that are moved by their
last digit towards the targets, away from them, up and down: the program's figure has to lie in that range.
"""

import numpy as np

from . import metrics
from .losses import classes_of, probabilities, shares_of
from .report import Span


def moved(form, outputs, targets):
    """The outputs, and those at the ends of what they may be."""
    value, error = outputs.values, outputs.error
    yield value
    if not error.any():
        return
    if form.targets == "class":
        side = 2 * shares_of(targets, value.shape[1]) - 1
    elif form.targets == "binary":
        side = np.where(targets > 0.5, 1.0, -1.0)
    else:
        aim = np.repeat(targets, value.shape[1] // targets.shape[1], axis=1)
        side = np.nan_to_num(np.sign((np.log(np.maximum(aim, 1e-30)) if form.link == "exp" else aim) - value))
    for direction in (side, -side, np.ones_like(value), -np.ones_like(value)):
        yield value + direction * error


def spanned(form, outputs, targets, figure):
    """`figure`: a function of outputs that gives a number."""
    with np.errstate(all="ignore"):
        found = [figure(values) for values in moved(form, outputs, targets)]
    return Span(found[0], min(found), max(found))


def default_metrics(form, targets, outputs):
    """Those that an evaluation has where eval.metrics is not given: the usual ones for the targets."""
    if form.targets == "class" and outputs > 2:
        return []
    if form.targets == "value":
        if form.link == "direction":
            return ["cosine_similarity"]
        if form.loss == "quantile":
            return ["pinball"]
        extra = {"poisson": ["poisson_deviance"], "tweedie": ["poisson_deviance", "tweedie_deviance"], "gamma": ["poisson_deviance", "gamma_deviance"]}
        return ["mean_absolute_error", "mean_squared_error", "r2"] + extra.get(form.loss, [])
    return ["auc", "log_loss", "precision", "recall"] if form.has_probabilities else ["auc", "precision", "recall"]


def f1_of(both, true, said):
    """Of counts, as scikit-learn has it: 0 where none is right, undefined where nothing is of the class or called so."""
    return float(2 * both / (true + said)) if true + said else np.nan


class Figures:
    """Of a set: outputs of the model for its records, their targets and weights."""

    def __init__(self, form, outputs, targets, weights, names=()):
        self.form, self.outputs, self.targets, self.weights, self.names = form, outputs, targets, weights, list(names)
        self.classes = outputs.values.shape[1]

    def figure(self, function, *more):
        return spanned(self.form, self.outputs, self.targets, lambda values: function(self.form, values, self.targets, self.weights, *more))

    def named(self, name, top_k=5):
        if name == "loss":
            return self.figure(metrics.loss)
        if name == "accuracy":
            return self.figure(metrics.accuracy)
        if name == "top_k_accuracy":
            return self.figure(metrics.top_k, top_k)
        found = self.figure(metrics.BY_NAME[name])
        return self.loosened(found) if name == "ece" else found

    def loosened(self, found):
        """A mean of distances moves by the mean of what probabilities may be off, whichever way each is."""
        p = [probabilities(self.form, values) for values in moved(self.form, self.outputs, self.targets)]
        off = max((float(np.abs(each - p[0]).max()) for each in p), default=0.0)
        return Span(found.value, found.low - off, found.high + off)

    def faults(self, name):
        """What known faults of the program make of a figure (known.toml)."""
        several = self.form.targets == "binary" and self.classes > 1
        if name in ("brier", "ece") and several:
            return {"pooled-outputs": self.figure(metrics.BY_NAME[name], True)}
        if name in ("auc", "average_precision") and self.form.loss == "multiclass_hinge" and self.classes > 2:
            return {"hinge-scores": spanned(self.form, self.outputs, self.targets, lambda values: metrics.BY_NAME[name](self.form, values, self.targets, self.weights, metrics.log_softmax(values)))}
        return {}

    def confusion(self):
        """Rows are true classes. An output of yes or no has two classes."""
        if self.form.targets == "class":
            true, said, count = classes_of(self.targets), self.outputs.values.argmax(axis=1), self.classes
        else:
            true, said, count = (self.targets[:, 0] > 0.5).astype(int), (self.outputs.values[:, 0] > 0).astype(int), 2
        table = np.zeros((count, count), int)
        np.add.at(table, (true, said), 1)
        return table

    def unsure(self):
        """How many records may be counted elsewhere, as two outputs are as good as equal."""
        value, error = self.outputs.values, self.outputs.error
        if self.form.targets == "class":
            top = np.sort(value, axis=1)
            return int((top[:, -1] - top[:, -2] <= 2 * error.max(axis=1)).sum())
        return int((np.abs(value) <= error).sum())

    def per_class(self):
        """Of each class, or of the yes of each of several outputs: name, precision, recall, f1, samples."""
        if self.form.targets == "binary" and self.classes > 1:
            rows = []
            for i in range(self.classes):
                there = ~np.isnan(self.targets[:, i])
                true, said = self.targets[there, i] > 0.5, self.outputs.values[there, i] > 0
                rows.append(self.scores(int((true & said).sum()), int(true.sum()), int(said.sum())))
            return rows
        table = self.confusion()
        return [self.scores(table[k, k], table[k].sum(), table[:, k].sum()) for k in range(len(table))]

    @staticmethod
    def scores(both, true, said):
        share = lambda part, whole: float(part / whole) if whole else np.nan
        p, r = share(both, said), share(both, true)
        return {"precision": p, "recall": r, "f1": f1_of(both, true, said), "samples": int(true)}

    def reliability(self):
        return metrics.reliability(metrics.foretold(self.form, self.outputs.values, self.targets, self.weights))

    def reliability_errors(self):
        """Bins may lose or gain a record whose probability lies at a border."""
        tables = [metrics.reliability(metrics.foretold(self.form, values, self.targets, self.weights)) for values in moved(self.form, self.outputs, self.targets)]
        return any([row[:2] for row in table] != [row[:2] for row in tables[0]] for table in tables)
