"""Writes calibration_references.json: temperatures that SciPy finds for outputs, and what they do to the log loss.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_calibration_references.py
"""

import numpy as np
import references
from make_sklearn_references import calibration_error, sigmoid, softmax
from scipy import optimize

ROWS = 83
random = np.random.RandomState(20260727)


def fit(log_loss):
    found = optimize.minimize_scalar(lambda b: log_loss(np.exp(b)), bounds=(np.log(0.01), np.log(100)),
                                     method="bounded", options={"xatol": 1e-13, "maxiter": 2000})
    return float(1 / np.exp(found.x))


def case(kind, x, t, weights, log_loss, error):
    temperature = fit(log_loss)
    told = {"targets_are": kind, "rows": ROWS, "outputs": x.ravel().tolist(), "temperature": temperature,
            "targets": [None if np.isnan(value) else float(value) for value in t.ravel()],
            "loss_before": log_loss(1), "loss_after": log_loss(1 / temperature),
            "ece_before": error(1), "ece_after": error(1 / temperature)}
    return told if weights is None else told | {"weights": weights.tolist()}


def make_weights():
    return np.round(random.gamma(1.5, 1, ROWS) * 8) / 8


def class_case(classes, scale, weights=None, soft=False):
    """Targets are drawn by the probabilities of outputs that are `scale` times smaller."""
    x = random.normal(0, 2, (ROWS, classes)).astype(np.float32).astype(float)
    p = softmax(x / scale)
    t = np.array([random.choice(classes, p=row) for row in p])
    drawn = np.array([random.dirichlet(2 * row + 0.1) for row in p]).astype(np.float32).astype(float)
    one_hot = drawn if soft else np.eye(classes)[t]

    def log_loss(b):
        return float(np.average(-(one_hot * np.log(softmax(x * b))).sum(axis=1), weights=weights))

    def error(b):
        p = softmax(x * b)
        if classes == 2:
            return calibration_error(p[:, 1], one_hot[:, 1], weights)
        guesses = p.argmax(axis=1)
        return calibration_error(p.max(axis=1), one_hot[np.arange(ROWS), guesses], weights)

    return case("classes", x, one_hot if soft else t.astype(float), weights, log_loss, error)


def binary_case(outputs, scale, weights=None, gaps=False):
    x = random.normal(0, 3, (ROWS, outputs)).astype(np.float32).astype(float)
    t = (random.random_sample(x.shape) < sigmoid(x / scale)).astype(float)
    if gaps:
        t[1::3, 0] = np.nan
    there = ~np.isnan(t)
    spread = np.repeat((np.ones(ROWS) if weights is None else weights)[:, None], outputs, axis=1)[there]

    def log_loss(b):
        p = sigmoid(x[there] * b)
        return float(np.average(-np.log(np.where(t[there] > 0, p, 1 - p)), weights=spread))

    def error(b):
        of_outputs = [calibration_error(sigmoid(x[inside, i] * b), t[inside, i],
                                        weights if weights is None else weights[inside])
                      for i, inside in enumerate(there.T)]
        return float(np.mean(of_outputs))

    return case("binary", x, t, weights, log_loss, error)


def main():
    cases = [class_case(4, 2.5), class_case(2, 0.6), class_case(5, 1.7, make_weights()), class_case(3, 2, soft=True),
             binary_case(1, 3), binary_case(1, 0.5, make_weights()), binary_case(3, 1.8, gaps=True)]
    references.write("calibration_references.json", {"calibration": cases})


if __name__ == "__main__":
    main()
