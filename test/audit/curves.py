"""The curves of evaluation.json: each point is a count of records at a threshold."""

import math

import numpy as np

from .losses import classes_of, sigmoid
from .report import Span

BINS = 16384
LARGEST = 16.0
MOST_POINTS = 2000


class Ranking:
    """Scores of the records for one class, whether they are of it, and their weights. `score` rises with the
    threshold."""

    def __init__(self, score, error, true, threshold_of):
        self.score, self.error, self.true, self.threshold_of = score, error, true, threshold_of

    def without(self, left_out):
        return Ranking(self.score[~left_out], self.error[~left_out], self.true[~left_out], self.threshold_of)

    def counts(self):
        """(true positives, false positives, least score) at each distinct score, the highest first."""
        order = np.argsort(-self.score, kind="stable")
        score, true = self.score[order], self.true[order]
        ends = np.append(np.flatnonzero(np.diff(score)), len(score) - 1) if len(score) else np.zeros(0, int)
        return np.cumsum(true)[ends], np.cumsum(~true)[ends], score[ends]

    @staticmethod
    def area_of(score, true):
        positives, negatives = true.sum(), (~true).sum()
        if positives == 0 or negatives == 0:
            return math.nan
        _, place = np.unique(score, return_inverse=True)
        p, n = np.bincount(place, true), np.bincount(place, ~true)
        above = np.cumsum(p[::-1]) - p[::-1] / 2
        return float((above * n[::-1]).sum() / (positives * negatives))

    def area(self, cut=lambda score: score):
        side = np.where(self.true, 1.0, -1.0)
        found = [self.area_of(cut(self.score + k * side * self.error), self.true) for k in (0, 1, -1)]
        return Span(found[0], min(found), max(found))


def into_bins(score):
    return np.clip(np.floor((score / LARGEST + 1) / 2 * BINS), 0, BINS - 1)


def rankings(figures):
    """Of class 1 of two classes, of each of several, of each output of yes or no."""
    form, value, error, targets = figures.form, figures.outputs.values, figures.outputs.error, figures.targets
    if form.targets == "binary":
        for i in range(value.shape[1]):
            there = ~np.isnan(targets[:, i])
            link = sigmoid if form.link == "logit" else (lambda x: x)
            errors = error[there, i] * np.ones(there.sum())
            yield i if value.shape[1] > 1 else 1, there, Ranking(value[there, i], errors, targets[there, i] > 0.5, link)
        return
    true, count = classes_of(targets), value.shape[1]
    everything = np.ones(len(value), bool)
    for k in [1] if count == 2 else range(count):
        others = np.delete(value, k, axis=1)
        spread = error.max(axis=1) * 2 if error.ndim == 2 else np.zeros(len(value))
        if form.link == "softmax":
            top = others.max(axis=1)
            score = value[:, k] - top - np.log(np.exp(others - top[:, None]).sum(axis=1))
            yield k, everything, Ranking(score, spread, true == k, sigmoid)
        else:
            score = (value[:, k] - others.max(axis=1)).astype(np.float32) if count == 2 else value[:, k]
            yield k, everything, Ranking(score, spread, true == k, lambda x: x)


def check_curves(sheet, json, figures):
    wanted = figures.form.targets != "value" and figures.classes <= 10
    sheet.equal("evaluation.json: curves", len(json.get("curves", [])), len(list(rankings(figures))) if wanted else 0)
    if not wanted:
        return
    for i, (curve, (k, there, ranking)) in enumerate(zip(json["curves"], rankings(figures))):
        place = f"evaluation.json: curves[{i}]"
        several = figures.form.targets == "binary" and figures.classes > 1
        name = figures.names[k] if k < len(figures.names) else None
        right = name if several and name else f"{k} ({name})" if name else str(k)
        sheet.equal(place + ".class", curve["class"], right)
        check_curve(sheet, place, curve, ranking, MOST_POINTS // len(json["curves"]))


def check_curve(sheet, place, curve, ranking, most):
    sheet.equal(f"{place}.positives", curve["positives"], int(ranking.true.sum()))
    sheet.equal(f"{place}.negatives", curve["negatives"], int((~ranking.true).sum()))
    if "area" in curve:
        sheet.number(f"{place}.area", curve["area"], ranking.area(), relative=1e-9)
    check_points(sheet, place, curve, ranking, most)


def rounded(part, whole):
    return math.floor(1e5 * part / whole + 0.5) / 1e5 if whole else 0.0


def found_points(curve, ranking):
    """Each point, and what `nearest` says of it."""
    true, false, score = ranking.counts()
    positives, negatives = int(ranking.true.sum()), int((~ranking.true).sum())
    known = {}
    for t, f, s in zip(true, false, score):
        known.setdefault((rounded(t, positives), rounded(f, negatives)), []).append((t, f, s))
    for at in zip(*(curve[name] for name in ("recall", "false_positive_rate", "precision", "threshold"))):
        found = nearest(known, at, ranking)
        yield list(at), found if found is not None else blurred_point(ranking, at, positives, negatives)


def check_points(sheet, place, curve, ranking, most):
    """A point stands for the records whose score is at least that of its threshold."""
    true, false, score = ranking.counts()
    positives, negatives = int(ranking.true.sum()), int((~ranking.true).sum())
    points = len(curve["threshold"])
    blurred = bool((np.diff(np.sort(ranking.score)) <= 2 * ranking.error.max(initial=0)).any())
    # A score near the border of two bins may be in either.
    blurred = blurred or bool((into_bins(ranking.score - ranking.error)
                               != into_bins(ranking.score + ranking.error)).any())
    sheet.check(f"{place}: points", points, (min(len(score), most), len(np.unique(into_bins(ranking.score)))),
                lambda a, b: a <= most and (a in b or b[1] > most or blurred))
    late = 0
    for i, (at, found) in enumerate(found_points(curve, ranking)):
        for name in ("recall", "false_positive_rate", "precision", "threshold"):
            sheet.checked.add(f"{place}.{name}[{i}]")
        if found is None:
            near = int(np.argmin(np.abs(true / max(positives, 1) - at[0]) + np.abs(false / max(negatives, 1) - at[1])))
            sheet.differ(f"{place}[{i}] (recall, false positive rate, precision, threshold)", at,
                         [rounded(true[near], positives), rounded(false[near], negatives),
                          rounded(true[near], true[near] + false[near]),
                          round(float(ranking.threshold_of(score[near])), 5)])
        elif not found:
            late += 1
    if late:
        sheet.differ(f"{place}.threshold", f"{late} of {points} are lower ends of bins",
                     "the least score of those that are taken")
    if points:
        sheet.equal(f"{place}: recall and false positive rate of the last point",
                    (curve["recall"][-1], curve["false_positive_rate"][-1]),
                    (float(positives > 0), float(negatives > 0)))


def blurred_point(ranking, at, positives, negatives):
    """True if the records that are taken at the point may be those above some score, as far as scores are known."""
    recall, false_rate, precision, threshold = at
    taken, wrong = round(recall * positives), round(false_rate * negatives)
    if abs(precision - taken / max(taken + wrong, 1)) > 0.51e-5:
        return None
    for score in np.unique(ranking.score):
        if abs(threshold - float(ranking.threshold_of(score))) > 2 * LARGEST / BINS + 1e-5:
            continue
        sure = ranking.score - ranking.error > score + ranking.error
        may = ranking.score + ranking.error >= score - ranking.error
        if all((sure & of).sum() <= count <= (may & of).sum()
               for of, count in ((ranking.true, taken), (~ranking.true, wrong))):
            return True
    return None


def nearest(known, at, ranking):
    """Whether the point is one of the exact curve: True, with its threshold; False if only its bin is right; None if
    not."""
    recall, false_rate, precision, threshold = at
    best = None
    for t, f, s in known.get((recall, false_rate), []):
        if abs(precision - t / (t + f)) > 0.51e-5:
            continue
        slack = 2 * LARGEST / BINS * 1.01 + 1e-6
        exact = float(ranking.threshold_of(s))
        low = float(ranking.threshold_of(s - slack))
        if abs(threshold - exact) <= 0.52e-5:
            return True
        if low - 0.52e-5 <= threshold <= exact + 0.52e-5 or abs(s) >= LARGEST - slack:
            best = False
    return best
