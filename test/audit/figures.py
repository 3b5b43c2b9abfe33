"""All figures of one evaluation, recomputed: each with the range that the digits of the outputs leave open.

Outputs are known to so many digits. A figure is computed from them as they are, and from outputs that are moved by
their last digit towards the targets, away from them, up and down: the program's figure has to lie in that range.
"""

import numpy as np

from . import metrics
from .losses import classes_of, predictions, probabilities, shares_of
from .outputs import FAR, UNIT, in_order
from .report import Span
from .table_data import Scale


def answered(p, yes, weights, threshold):
    """The weights of the samples that are said to be no and are, to be yes and are not, no and are not, yes and are."""
    said = p >= threshold
    return [(weights * (a & b)).sum() for a in (~yes, yes) for b in (~said, said)]


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
        shifted = value + direction * error
        yield np.where((error >= FAR) & ((shifted - value) * value > 0), 1e6 * np.sign(value), shifted)


def spanned(form, outputs, targets, figure):
    """`figure`: a function of outputs that gives a number."""
    with np.errstate(all="ignore"):
        found = [figure(values) for values in moved(form, outputs, targets)]
    known = [each for each in found if not np.isnan(each)] or found
    return Span(found[0], min(known), max(known))


def default_metrics(form, targets, outputs):
    """Those that an evaluation has where eval.metrics is not given: the usual ones for the targets."""
    if form.targets == "class" and outputs > 2:
        return []
    if form.targets == "value":
        if form.link == "direction":
            return ["cosine_similarity"]
        if form.loss == "quantile":
            return ["pinball"]
        extra = {"poisson": ["poisson_deviance"], "tweedie": ["poisson_deviance", "tweedie_deviance"],
                 "gamma": ["poisson_deviance", "gamma_deviance"]}
        return ["mean_absolute_error", "mean_squared_error", "r2"] + extra.get(form.loss, [])
    return ["auc", "log_loss", "precision", "recall"] if form.has_probabilities else ["auc", "precision", "recall"]


def f1_of(both, true, said):
    """Of counts, as scikit-learn has it: 0 where none is right, undefined where nothing is of the class or called
    so."""
    return float(2 * both / (true + said)) if true + said else np.nan


# Measures in the units of the labels, as REFERENCE.md says of them.
IN_UNITS = ("mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "mean_absolute_percentage_error",
            "r2", "pinball")


def joined(score):
    """Numbers in the order of the scores, the same for those that single precision may take for one."""
    order = np.argsort(score)
    places = np.empty(len(score))
    places[order] = np.cumsum(np.diff(score[order], prepend=score[order][:1]) > 2 * UNIT * (2.5 + np.abs(score[order])))
    return places


class Figures:
    """Of a set: outputs of the model for its records, their targets and weights."""

    def __init__(self, form, outputs, targets, weights, names=(), scales=()):
        """`scales`: of the targets; none where they are the labels themselves."""
        self.form, self.outputs, self.targets, self.weights, self.names = form, outputs, targets, weights, list(names)
        self.samples, self.of_positions, self.characters = len(targets), False, None
        self.classes = outputs.values.shape[1]
        self.scales = list(scales) if form.targets == "value" and form.link != "direction" else []
        if form.loss == "quantile" and len(form.levels) > 1:
            self.outputs = in_order(outputs, len(form.levels))

    def labels(self, values, centred=False):
        """Scaled numbers in the units of their labels; or as far as they are from the label whose scaled number is
        0."""
        if not self.scales:
            return values
        each = values.shape[1] // len(self.scales)
        undone = [scale.undo(values[:, i * each : (i + 1) * each]) - (scale.undo(0.0) if centred else 0.0)
                  for i, scale in enumerate(self.scales)]
        return np.concatenate(undone, axis=1)

    def middle(self, level=None):
        """The forecasts of windows (of quantiles the middle one, or that of a level) in units of the labels, and how
        far they may be off: [windows, labels, horizon]."""
        levels = max(len(self.form.levels), 1)
        level = levels // 2 if level is None else level
        value = predictions(self.form, self.outputs.values)
        error = self.outputs.error * (value if self.form.link == "exp" else 1) + np.zeros_like(value)
        apart = lambda each: each[:, level::levels].reshape(len(each), -1, self.windows.positions.horizon)
        value, error = apart(value), apart(error)
        scales = self.scales or [Scale({})] * value.shape[1]
        return tuple(np.stack(parts, axis=1) for parts in zip(
            *((s.undo(value[:, i]), s.undone_error(value[:, i], error[:, i])) for i, s in enumerate(scales))))

    def errors_by_step(self):
        """Mean absolute errors of the forecasts, and how far they may be off."""
        value, error = self.middle()
        return np.abs(value - self.labels(self.targets).reshape(value.shape)).mean(axis=(0, 1)), error.mean(axis=(0, 1))

    def figure(self, function, *more):
        return spanned(self.form, self.outputs, self.targets,
                       lambda values: function(self.form, values, self.targets, self.weights, *more))

    def named(self, name, top_k=5):
        if name == "loss":
            return self.figure(metrics.loss)
        if name == "accuracy":
            return self.figure(metrics.accuracy)
        if name == "top_k_accuracy":
            return self.figure(metrics.top_k, top_k)
        if name in IN_UNITS and self.scales:
            labels = lambda values: self.labels(values, name == "r2")
            return spanned(self.form, self.outputs, self.targets, lambda values: metrics.BY_NAME[name](
                self.form, labels(values), labels(self.targets), self.weights))
        if name == "bits_per_character":
            bits = len(self.targets) / np.log(2) / (self.characters or len(self.targets))
            return self.figure(lambda *of: metrics.log_loss(*of) * bits)
        found = self.figure(metrics.BY_NAME[name])
        if name == "average_precision":
            return self.untied(found)
        if name == "spearman":
            return self.reordered(found)
        return self.loosened(found) if name == "ece" else found

    def untied(self, found):
        """Outputs that are equal as far as they are known may stand in any order: the worst is that of no ties, the
        best that of positives which tie, before all others."""
        if not self.outputs.error.any():
            return found
        worst = self.figure(lambda *of: metrics.average_precision(*of, ties=False))
        best = metrics.mean_of(metrics.precision_area(true, joined(score) + true / 2, w)
                               for true, _, score, w in metrics.questions(self.form, self.outputs.values, self.targets,
                                                                          self.weights))
        return Span(found.value, min(found.low, worst.low), max(found.high, best))

    def reordered(self, found):
        """Numbers that are equal as far as they are known may stand in any order: in that of their targets, or against
        it."""
        ends = []
        for side in (0.5, -0.5):
            values = self.outputs.values.copy()
            for i in range(values.shape[1]):
                order = np.argsort(values[:, i])
                apart = np.diff(values[order, i]) > 2 * self.outputs.error[order, i][1:]
                values[order, i] = np.concatenate([[0], np.cumsum(apart)])
                rank = np.argsort(np.argsort(self.targets[:, i * self.targets.shape[1] // values.shape[1]]))
                values[:, i] += side * rank / len(rank)
            ends.append(metrics.spearman(self.form, values, self.targets, self.weights))
        return Span(found.value, np.nanmin([found.low, *ends]), np.nanmax([found.high, *ends]))

    def loosened(self, found):
        """A mean of distances moves by the mean of what probabilities may be off, whichever way each is."""
        p = [probabilities(self.form, values) for values in moved(self.form, self.outputs, self.targets)]
        off = max((float(np.abs(each - p[0]).max()) for each in p), default=0.0)
        off += 2 * float(sum(self.unsure_bins())) / max(len(self.targets), 1)
        return Span(found.value, found.low - off, found.high + off)

    def confusion(self):
        """Rows are true classes. An output of yes or no has two classes."""
        if self.form.targets == "class":
            true, said, count = classes_of(self.targets), self.outputs.values.argmax(axis=1), self.classes
        else:
            true, said, count = (self.targets[:, 0] > 0.5).astype(int), (self.outputs.values[:, 0] > 0).astype(int), 2
        table = np.zeros((count, count), int)
        np.add.at(table, (true, said), 1)
        return table

    def yes_samples(self):
        """Probabilities of yes, what is yes, and weights, of the records that weigh something; single precision."""
        p = probabilities(self.form, self.outputs.values)[:, -1].astype(np.float32).astype(float)
        yes = classes_of(self.targets) == 1 if self.form.targets == "class" else self.targets[:, 0] > 0.5
        inside = self.weights > 0
        return p[inside], yes[inside], self.weights[inside]

    def answers_at(self, threshold, shown):
        """As `threshold` of an evaluation has them. Where rounding may put probabilities on either side of it, `shown`
        is as good as what is recomputed if it lies between what comes from all on one side and all on the other."""
        below, exact, above = (self.answers_beside(float(threshold), side) for side in (-1e-6, 0, 1e-6))
        cells = lambda answers: np.array([answers["recall"] or 0, *np.ravel(answers.get("confusion", []))])
        if below == above:
            return exact
        at = cells(shown)
        between = [sorted(pair) for pair in zip(cells(below)[: len(at)], cells(above)[: len(at)])]
        fits = all(low - 1e-9 <= value <= high + 1e-9 for value, (low, high) in zip(at, between))
        return {name: shown.get(name, value) for name, value in exact.items()} if fits else exact

    def answers_beside(self, threshold, side):
        p, yes, weights = self.yes_samples()
        counts = np.array(answered(p, yes, np.ones(len(p), int), threshold + side)).reshape(2, 2).tolist()
        none, wrong, missed, both = answered(p, yes, weights, threshold + side)
        share = lambda part, whole: float(part / whole) if whole else None
        return {"probability": threshold, "accuracy": share(none + both, weights.sum()),
                "precision": share(both, both + wrong), "recall": share(both, both + missed),
                "f1": share(2 * both, 2 * both + wrong + missed), "confusion": counts}  # fmt: skip

    def unsure(self):
        """How many records may be counted elsewhere, as two outputs are as good as equal."""
        value, error = self.outputs.values, self.outputs.error
        if self.form.targets == "class":
            top = np.sort(value, axis=1)
            return int((top[:, -1] - top[:, -2] <= 2 * error.max(axis=1)).sum())
        return int((np.abs(value) <= error).sum())

    def per_class(self):
        """Of each class, or of the yes of each of several outputs: counts of its samples that are said to be so, of all
        that are, of all that are said to be, and how many of the last are unsure."""
        if self.form.targets == "binary" and self.classes > 1:
            rows = []
            for i in range(self.classes):
                there = ~np.isnan(self.targets[:, i])
                true, value = self.targets[there, i] > 0.5, self.outputs.values[there, i]
                unsure = np.abs(value) <= self.outputs.error[there, i]
                rows.append((int((true & (value > 0)).sum()), int(true.sum()), int((value > 0).sum()),
                             int(unsure.sum())))
            return rows
        table = self.confusion()
        return [(int(table[k, k]), int(table[k].sum()), int(table[:, k].sum()), self.unsure())
                for k in range(len(table))]

    @staticmethod
    def scores(both, true, said):
        share = lambda part, whole: float(part / whole) if whole else np.nan
        return {"precision": share(both, said), "recall": share(both, true), "f1": f1_of(both, true, said)}

    def reliability(self):
        return metrics.reliability(metrics.foretold(self.form, self.outputs.values, self.targets, self.weights))

    def unsure_bins(self):
        """Of each bin, how many records may or may not be in it, as their probabilities lie at a border."""
        lists = [metrics.foretold(self.form, values, self.targets, self.weights)
                 for values in moved(self.form, self.outputs, self.targets)]
        probabilities = [np.concatenate([p for p, *_ in each]) for each in lists]
        # They are computed in single precision, too.
        bins = np.array([metrics.bins_of(p * factor) for p in probabilities
                         for factor in (1, 1 - 4 * UNIT, 1 + 4 * UNIT)])
        unsure = (bins != bins[0]).any(axis=0)
        return [int((unsure & (bins == b).any(axis=0)).sum()) for b in range(metrics.BINS)]
