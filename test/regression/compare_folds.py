"""Compares the folds of `trainer cv` with scikit-learn's, on the tables that scripts/fetch-data brings.

  scripts/peers/python test/regression/compare_folds.py [TRAINER]        from the top of the tree

For each table and each of KFold, StratifiedKFold, GroupKFold and TimeSeriesSplit:
- the folds of scikit-learn, as a column of the table, are those of --fold-column, record by record;
- the folds that the trainer makes itself have scikit-learn's sizes (of each class, for stratified ones), and for
  groups and time its very records.
"""
import csv
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter

import numpy
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

TRAINER = sys.argv[1] if len(sys.argv) > 1 else "build/release/trainer"
FOLDS = 4
TABLES = {
    "data/cpssw8_train.csv": {"label": "over_20", "group": "age", "model": "dense(2)", "loss": "softmax_cross_entropy"},
    "data/diamonds_train.csv": {"label": "log_price", "group": "clarity", "model": "dense(1)",
                                "loss": "mean_squared_error"},
}
failures = 0


def check(what, holds):
    global failures
    failures += not holds
    print(f"{'ok  ' if holds else 'FAIL'} {what}")


def folds_of_trainer(table, info, flags, directory):
    """The fold of each record, 0 for none, as predictions.csv says."""
    run = pathlib.Path(directory) / ("cv" + str(len(list(pathlib.Path(directory).iterdir()))))
    config = pathlib.Path(directory) / "empty.toml"
    config.write_text("")
    command = [TRAINER, "cv", "--config", str(config), "--data.train", str(table), "--data.label", info["label"],
               "--model.layers", info["model"], "--train.loss", info["loss"], "--train.steps", "2",
               "--train.global_batch", "32", "--train.lr", "0.001", "--run.dir", str(run), "--folds",
               str(FOLDS), *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(run / "predictions.csv") as file:
        return numpy.array([int(row["fold"] or 0) for row in csv.DictReader(file)])


def folds_of_sklearn(splitter, rows, labels, groups):
    folds = numpy.zeros(rows, dtype=int)
    for number, (_, held) in enumerate(splitter.split(numpy.zeros(rows), labels, groups), start=1):
        folds[held] = number
    return folds


def sizes(folds):
    return sorted(Counter(folds.tolist()).values())


def same_partition(a, b):
    return len(set(zip(a.tolist(), b.tolist()))) == len(set(a.tolist())) == len(set(b.tolist()))


def compare(table, info):
    with open(table) as file:
        records = list(csv.DictReader(file))
    rows = len(records)
    labels = numpy.array([record[info["label"]] for record in records])
    groups = numpy.array([record[info["group"]] for record in records])
    classes = len(set(labels)) < 10
    splitters = {"KFold": KFold(FOLDS, shuffle=True, random_state=1), "GroupKFold": GroupKFold(FOLDS),
                 "TimeSeriesSplit": TimeSeriesSplit(FOLDS)}
    if classes:
        splitters["StratifiedKFold"] = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
    with tempfile.TemporaryDirectory() as directory:
        wanted = {name: folds_of_sklearn(splitter, rows, labels, groups) for name, splitter in splitters.items()}
        extended = pathlib.Path(directory) / "table.csv"
        with open(extended, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*records[0], *wanted, "moment"])
            for i, record in enumerate(records):
                writer.writerow([*record.values(), *(folds[i] for folds in wanted.values()), i])
        ignored = ["--data.ignore", ",".join([*wanted, "moment"])]
        for name in set(wanted) - {"TimeSeriesSplit"}:
            found = folds_of_trainer(extended, info, ["--fold-column", name, *ignored], directory)
            check(f"{table}: --fold-column has the folds of {name}", (found == wanted[name]).all())
        own = folds_of_trainer(extended, info, ignored, directory)
        check(f"{table}: sizes as of KFold, {sizes(own)}", sizes(own) == sizes(wanted["KFold"]))
        own = folds_of_trainer(extended, info, ["--group", info["group"], *ignored], directory)
        check(f"{table}: sizes as of GroupKFold, {sizes(own)}", sizes(own) == sizes(wanted["GroupKFold"]))
        check(f"{table}: the groups of GroupKFold",
              len(set(Counter(groups.tolist()).values())) < len(set(groups.tolist()))
              or same_partition(own, wanted["GroupKFold"]))
        own = folds_of_trainer(extended, info, ["--time", "moment", *ignored[:1], ",".join(wanted)], directory)
        check(f"{table}: the records of TimeSeriesSplit", (own == wanted["TimeSeriesSplit"]).all())
        if classes:
            own = folds_of_trainer(extended, info, ["--stratified", *ignored], directory)
            per_class = [sizes(folds[labels == label]) for label in set(labels)
                         for folds in (own, wanted["StratifiedKFold"])]
            check(f"{table}: sizes of each class as of StratifiedKFold", per_class[::2] == per_class[1::2])


for each_table, each_info in TABLES.items():
    compare(each_table, each_info)
sys.exit(1 if failures else 0)
