"""Writes tree_references.json: the thresholds of scikit-learn's decision trees on one column, which edges of bins by
the label are tested against.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_tree_references.py
"""

import numpy as np
import references
import sklearn
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

random = np.random.RandomState(20220310)


def case(classes, rows, leaves, leaf_records, weighted=False, different=0):
    """`different`: so many different numbers; 0: hardly any number twice. Single precision holds all of them."""
    numbers = random.randint(0, different, rows) if different else np.round(random.normal(0, 4, rows) * 1024) / 1024
    signal = np.sin(numbers / 2) + random.normal(0, 0.5, rows)
    labels = np.digitize(signal, np.linspace(-1, 1, classes + 1)[1:-1]) if classes else np.round(signal * 1024) / 1024
    weights = random.randint(1, 17, rows) / 8 if weighted else None
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    tree = kind(max_leaf_nodes=leaves, min_samples_leaf=leaf_records, random_state=1)
    tree.fit(numbers.reshape(-1, 1).astype(float), labels, sample_weight=weights)
    thresholds = sorted(tree.tree_.threshold[tree.tree_.children_left >= 0])
    return {"classes": bool(classes), "max_leaves": leaves, "leaf_records": leaf_records, "numbers": numbers.tolist(),
            "labels": labels.tolist(), "weights": [] if weights is None else weights.tolist(), "thresholds": thresholds}


def main():
    cases = [case(2, 60, 5, 3), case(4, 90, 8, 5), case(3, 80, 6, 4, weighted=True), case(0, 60, 6, 3),
             case(0, 90, 30, 5), case(0, 80, 7, 4, weighted=True), case(2, 120, 8, 6, weighted=True, different=12),
             case(0, 120, 8, 2, different=9)]
    references.write("tree_references.json", {"trees": cases}, rounded=None, sklearn=sklearn.__version__)


if __name__ == "__main__":
    main()
