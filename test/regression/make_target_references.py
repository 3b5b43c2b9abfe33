"""Writes target_references.json: class weights, soft labels and missing targets, by PyTorch and scikit-learn.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_target_references.py
"""

import numpy as np
import references
import torch
from make_sklearn_references import calibration_error
from scipy import stats
from sklearn import metrics
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional as F

ROWS = 13
random = np.random.RandomState(20250317)


def numbers(array):
    """Flat, with the nine digits that single precision can hold; a missing number is null."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    return [None if np.isnan(value) else float(f"{value:.9g}") for value in flat]


def outputs(columns):
    return np.round(random.normal(0, 1.5, (ROWS, columns)), 3).astype(np.float32)


def loss_case(name, options, x, targets, function, **more):
    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    value = function(leaf)
    value.backward()
    return {
        "loss": name, "options": options, "rows": ROWS, "outputs": numbers(x), "targets": numbers(targets),
        "value": value.item(), "gradient": numbers(leaf.grad.numpy()), **more,
    }


def balanced_case(classes, shares):
    labels = np.concatenate([np.arange(classes), random.choice(classes, 200, p=shares)])
    return {
        "counts": np.bincount(labels, minlength=classes).tolist(),
        "weights": compute_class_weight("balanced", classes=np.arange(classes), y=labels).tolist(),
    }


def class_weight_case(classes, soft):
    x = outputs(classes)
    y = random.randint(0, classes, ROWS)
    weights = np.round(random.gamma(2, 1, classes) * 8) / 8 + 0.125
    hard = torch.tensor(y)
    told = np.eye(classes)[y] if soft else y  # one-hot rows mean the same
    return loss_case("softmax_cross_entropy", {}, x, told,
                     lambda leaf: F.cross_entropy(leaf, hard, weight=torch.tensor(weights, dtype=torch.float64)),
                     class_weights=weights.tolist())


def soft_case(classes, smoothing):
    x = outputs(classes)
    raw = random.dirichlet(np.ones(classes), ROWS).astype(np.float32)
    targets = torch.tensor(raw, dtype=torch.float64)
    return loss_case("softmax_cross_entropy", {"label_smoothing": smoothing}, x, raw,
                     lambda leaf: F.cross_entropy(leaf, targets, label_smoothing=smoothing))


def with_gaps(targets):
    """Nearly a third is missing, but something of each row and each column is there."""
    gaps = random.random_sample(targets.shape) < 0.3
    gaps[np.arange(len(targets)), random.randint(0, targets.shape[1], len(targets))] = False
    gaps[:2] = False
    return np.where(gaps, np.nan, targets)


def masked_case(name, options, columns, weighted):
    x = outputs(columns)
    binary = name == "binary_cross_entropy"
    full = random.random_sample((ROWS, columns)) if binary else np.round(random.normal(0, 2, (ROWS, columns)), 2)
    told = with_gaps(full).astype(np.float32)
    mask = torch.tensor(~np.isnan(told))
    targets = torch.tensor(np.nan_to_num(told), dtype=torch.float64)
    weights = np.round(random.gamma(1.5, 1, ROWS) * 8) / 8 if weighted else np.ones(ROWS)
    spread = torch.tensor(weights, dtype=torch.float64)[:, None].expand(ROWS, columns)[mask]
    functions = {
        "binary_cross_entropy": lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none"),
        "mean_squared_error": lambda a, b: F.mse_loss(a, b, reduction="none"),
        "huber": lambda a, b: F.huber_loss(a, b, reduction="none", delta=options.get("huber_delta", 1.0)),
    }
    more = {"weights": weights.tolist()} if weighted else {}
    return loss_case(name, options, x, told,
                     lambda leaf: (functions[name](leaf[mask], targets[mask]) * spread).sum() / spread.sum(), **more)


def masked_metrics(kind, weighted):
    columns = 3
    x = outputs(columns)
    full = random.randint(0, 2, (ROWS, columns)) if kind == "binary" else np.round(x + random.normal(0, 1, x.shape), 2)
    told = with_gaps(full.astype(np.float64)).astype(np.float32).astype(np.float64)
    there = ~np.isnan(told)
    weights = np.round(random.gamma(1.5, 1, ROWS) * 8) / 8 + 0.125 if weighted else np.ones(ROWS)
    spread = np.repeat(weights[:, None], columns, axis=1)[there]
    by_column = [(told[there[:, c], c], x[there[:, c], c].astype(np.float64), weights[there[:, c]])
                 for c in range(columns)]
    pooled = (told[there], x[there].astype(np.float64))

    def mean(metric):
        return float(np.mean([metric(truth, score, weight) for truth, score, weight in by_column]))

    if kind == "binary":
        values = {
            "auc": mean(lambda t, s, w: metrics.roc_auc_score(t, s, sample_weight=w)),
            "precision": mean(lambda t, s, w: metrics.precision_score(t, s > 0, sample_weight=w, zero_division=0)),
            "recall": mean(lambda t, s, w: metrics.recall_score(t, s > 0, sample_weight=w, zero_division=0)),
            "log_loss": metrics.log_loss(pooled[0], 1 / (1 + np.exp(-pooled[1])), sample_weight=spread),
            "average_precision": mean(lambda t, s, w: metrics.average_precision_score(t, s, sample_weight=w)),
            "f1": mean(lambda t, s, w: metrics.f1_score(t, s > 0, sample_weight=w, zero_division=0)),
            "mcc": mean(lambda t, s, w: metrics.matthews_corrcoef(t, s > 0, sample_weight=w)),
            "balanced_accuracy": mean(lambda t, s, w: metrics.balanced_accuracy_score(t, s > 0, sample_weight=w)),
            "brier": mean(lambda t, s, w: metrics.brier_score_loss(t, 1 / (1 + np.exp(-s)), sample_weight=w)),
            "ece": mean(lambda t, s, w: calibration_error(1 / (1 + np.exp(-s)), t, w)),
        }
        accuracy = metrics.accuracy_score(pooled[0], pooled[1] > 0, sample_weight=spread)
    else:
        values = {
            "r2": mean(lambda t, s, w: metrics.r2_score(t, s, sample_weight=w)),
            "mean_absolute_error": metrics.mean_absolute_error(*pooled, sample_weight=spread),
            "mean_squared_error": metrics.mean_squared_error(*pooled, sample_weight=spread),
            "root_mean_squared_error": mean(
                lambda t, s, w: metrics.root_mean_squared_error(t, s, sample_weight=w)),
            "mean_absolute_percentage_error": metrics.mean_absolute_percentage_error(*pooled, sample_weight=spread),
            "spearman": mean(lambda t, s, w: stats.spearmanr(np.repeat(t, (8 * w).astype(int)),
                                                             np.repeat(s, (8 * w).astype(int))).correlation),
        }
        accuracy = 0
    told_weights = {"weights": weights.tolist()} if weighted else {}
    return {"targets_are": kind, "rows": ROWS, "outputs": numbers(x), "targets": numbers(told),
            "values": {name: float(value) for name, value in values.items()}, "accuracy": float(accuracy),
            **told_weights}


def main():
    masked = [("binary_cross_entropy", {}), ("mean_squared_error", {}), ("huber", {"huber_delta": 0.7})]
    sections = {
        "balanced": [balanced_case(2, [0.93, 0.07]), balanced_case(5, [0.4, 0.3, 0.2, 0.08, 0.02])],
        "class_weights": [class_weight_case(3, False), class_weight_case(4, True)],
        "soft": [soft_case(3, 0.0), soft_case(17, 0.0), soft_case(5, 0.1)],
        "masked": [masked_case(name, options, columns, weighted)
                   for name, options in masked for columns in (2, 19) for weighted in (False, True)],
        "metrics": [masked_metrics(kind, weighted) for kind in ("binary", "values") for weighted in (False, True)],
    }
    references.write("target_references.json", sections)


if __name__ == "__main__":
    main()
