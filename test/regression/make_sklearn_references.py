"""Writes sklearn_references.json, the numbers that metrics are tested against.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_sklearn_references.py
"""

import warnings

import numpy as np
import references
import sklearn
from scipy import stats
from sklearn import metrics

warnings.filterwarnings("ignore", message="y_pred contains classes not in y_true")
ROWS = 37
random = np.random.RandomState(20240229)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def make_weights():
    """Multiples of 1/8, some of them 0."""
    return np.round(random.gamma(1.5, 1, ROWS) * 8) / 8


def calibration_error(probabilities, truth, weights=None):
    """Expected calibration error (Guo et al. 2017, equation 3) over 15 bins (a, b]; scikit-learn has none."""
    weights = np.ones(len(truth)) if weights is None else weights
    borders = np.linspace(0, 1, 16)
    error = 0
    for low, high in zip(borders, borders[1:]):
        inside = (probabilities > low) & (probabilities <= high) & (weights > 0)
        if inside.any():
            gap = np.average(probabilities[inside] - truth[inside], weights=weights[inside])
            error += abs(gap) * weights[inside].sum()
    return float(error / weights.sum())


def rank_correlation(t, x, weights=None):
    """A weight is a multiple of 1/8: as often times eight the row is repeated."""
    repeats = np.ones(len(t), int) if weights is None else (8 * weights).astype(int)
    return float(np.mean([stats.spearmanr(np.repeat(t[:, i], repeats), np.repeat(x[:, i], repeats)).correlation
                          for i in range(t.shape[1])]))


def value_metrics(t, x, weights=None):
    values = {
        "mean_absolute_error": metrics.mean_absolute_error(t, x, sample_weight=weights),
        "mean_squared_error": metrics.mean_squared_error(t, x, sample_weight=weights),
        "root_mean_squared_error": metrics.root_mean_squared_error(t, x, sample_weight=weights),
        "r2": metrics.r2_score(t, x, sample_weight=weights),
    }
    if (t != 0).all():  # else it has more digits before the point than a double
        values["mean_absolute_percentage_error"] = metrics.mean_absolute_percentage_error(t, x, sample_weight=weights)
    return values


def binary(truth, scores, probabilities, guesses, weights=None):
    """Of one question."""
    return {
        "auc": metrics.roc_auc_score(truth, scores, sample_weight=weights),
        "log_loss": metrics.log_loss(truth, probabilities, sample_weight=weights),
        "precision": metrics.precision_score(truth, guesses, zero_division=0, sample_weight=weights),
        "recall": metrics.recall_score(truth, guesses, zero_division=0, sample_weight=weights),
        "average_precision": metrics.average_precision_score(truth, scores, sample_weight=weights),
        "brier": metrics.brier_score_loss(truth, probabilities, sample_weight=weights),
        "f1": metrics.f1_score(truth, guesses, zero_division=0, sample_weight=weights),
        "mcc": metrics.matthews_corrcoef(truth, guesses, sample_weight=weights),
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, guesses, sample_weight=weights),
    }


def mean(columns):
    return {name: float(np.mean([column[name] for column in columns])) for name in columns[0]}


def case(kind, x, t, values, weights, accuracy=None):
    """Accuracy is no metric of the catalog: it is told where there are weights."""
    told = {"targets_are": kind, "outputs": x, "targets": t, "values": values}
    if weights is not None:
        told["weights"] = weights
    if accuracy is not None and weights is not None:
        told["accuracy"] = float(accuracy)
    return told


def binary_case(outputs, weights=None):
    # Multiples of 1/4, so that many outputs are equal.
    x = np.round(random.normal(0.2, 1.2, (ROWS, outputs)) * 4) / 4
    t = (random.random_sample((ROWS, outputs)) < sigmoid(x)).astype(int)
    columns = [binary(t[:, i], x[:, i], sigmoid(x[:, i]), x[:, i] > 0, weights) for i in range(outputs)]
    accuracy = np.mean([metrics.accuracy_score(t[:, i], x[:, i] > 0, sample_weight=weights) for i in range(outputs)])
    values = mean(columns) | {
        "ece": float(np.mean([calibration_error(sigmoid(x[:, i]), t[:, i], weights) for i in range(outputs)]))}
    return case("binary", x, t, values, weights, accuracy)


def class_case(classes, never=None, weights=None):
    """`never`: a class that no sample is of."""
    x = np.round(random.normal(0, 1.5, (ROWS, classes)) * 4) / 4
    t = np.array([random.choice(classes, p=row) for row in softmax(x)])
    t[t == never] = (0 if never is None else (never + 1) % classes)
    guesses, p = x.argmax(axis=1), softmax(x)
    if classes == 2:
        values = binary(t, x[:, 1] - x[:, 0], p[:, 1], guesses, weights)
        values["ece"] = calibration_error(p[:, 1], t, weights)
    else:
        # The logarithm, rounded: rows whose probabilities are equal differ in their last bits.
        scores = np.round(np.log(p), 9)
        rest = [c for c in range(classes) if c != never]
        values = {
            "auc": float(np.mean([metrics.roc_auc_score(t == c, scores[:, c], sample_weight=weights) for c in rest])),
            "log_loss": metrics.log_loss(t, p, labels=list(range(classes)), sample_weight=weights),
            "precision": metrics.precision_score(t, guesses, average="macro", zero_division=0, sample_weight=weights),
            "recall": metrics.recall_score(t, guesses, average="macro", zero_division=0, sample_weight=weights),
            "average_precision": float(np.mean([
                metrics.average_precision_score(t == c, scores[:, c], sample_weight=weights) for c in rest])),
            "brier": float(np.average(((p - np.eye(classes)[t]) ** 2).sum(axis=1), weights=weights)),
            "ece": calibration_error(p.max(axis=1), guesses == t, weights),
            "f1": metrics.f1_score(t, guesses, average="macro", zero_division=0, sample_weight=weights),
            "mcc": metrics.matthews_corrcoef(t, guesses, sample_weight=weights),
            "balanced_accuracy": metrics.balanced_accuracy_score(t, guesses, sample_weight=weights),
        }
    values["perplexity"] = float(np.exp(values["log_loss"]))
    values["bits_per_character"] = float(values["log_loss"] / np.log(2))
    return case("classes", x, t, values, weights, metrics.accuracy_score(t, guesses, sample_weight=weights))


def value_case(outputs, weights=None):
    t = random.normal(7.8, 1, (ROWS, outputs)).astype(np.float32)
    x = (t + random.normal(0.05, 0.3, (ROWS, outputs))).astype(np.float32)
    t, x = t.astype(float), x.astype(float)
    return case("values", x, t, value_metrics(t, x, weights) | {"spearman": rank_correlation(t, x, weights)}, weights)


def log_case(kind, power, weights=None):
    """Outputs are logarithms of predictions. Targets suit the power: counts, amounts with zeros, amounts."""
    mean = np.exp(random.normal(0.5, 0.6, (ROWS, 2)))
    t = random.poisson(mean) if power == 1 else random.gamma(2, mean / 2)
    t = t * (random.random_sample(t.shape) < 0.6) if 1 < power < 2 else t
    x = (np.log(mean) + random.normal(0, 0.2, mean.shape)).astype(np.float32).astype(float)
    t = t.astype(np.float32).astype(float)
    mean_deviance = lambda p: float(np.mean([
        metrics.mean_tweedie_deviance(t[:, i], np.exp(x[:, i]), power=p, sample_weight=weights) for i in range(2)]))
    values = value_metrics(t, np.exp(x), weights) | {
        "spearman": rank_correlation(t, x, weights),
        "poisson_deviance": mean_deviance(1),
    }
    if power > 1:
        values[f"{kind}_deviance"] = mean_deviance(power)
    return case(kind, x, t, values, weights) | {"power": power}


def quantile_case(levels, targets, weights=None):
    """The outputs of a target, one for each level, stand side by side."""
    t = random.normal(2, 1, (ROWS, targets)).astype(np.float32).astype(float)
    x = random.normal(2, 1, (ROWS, targets * len(levels))).astype(np.float32).astype(float)
    each = [metrics.mean_pinball_loss(t[:, i], x[:, i * len(levels) + j], alpha=level, sample_weight=weights)
            for i in range(targets) for j, level in enumerate(levels)]
    return case("quantiles", x, t, {"pinball": float(np.mean(each))}, weights) | {"quantiles": levels}


def direction_case(outputs, weights=None):
    t = random.normal(0, 1, (ROWS, outputs)).astype(np.float32).astype(float)
    x = random.normal(0, 1, (ROWS, outputs)).astype(np.float32).astype(float)
    cosines = 1 - metrics.pairwise.paired_cosine_distances(x, t)
    return case("directions", x, t, {"cosine_similarity": float(np.average(cosines, weights=weights))}, weights)


def plain(told):
    return {key: value.ravel().tolist() if isinstance(value, np.ndarray) else value for key, value in told.items()}


def main():
    cases = [binary_case(1), binary_case(3), class_case(2), class_case(4), class_case(5, never=2), value_case(1),
             value_case(2)]
    cases += [binary_case(1, make_weights()), binary_case(3, make_weights()), class_case(2, weights=make_weights()),
              class_case(4, weights=make_weights()), value_case(1, make_weights()), value_case(2, make_weights())]
    for weights in (None, make_weights()):
        cases += [log_case("poisson", 1.0, weights), log_case("tweedie", 1.3, weights), log_case("gamma", 2.0, weights),
                  quantile_case([0.7], 1, weights), quantile_case([0.1, 0.5, 0.9], 2, weights),
                  direction_case(3, weights)]
    references.write("sklearn_references.json", {"metrics": [{"rows": ROWS, **plain(told)} for told in cases]},
                     sklearn=sklearn.__version__)


if __name__ == "__main__":
    main()
