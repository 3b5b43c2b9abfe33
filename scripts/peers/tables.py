"""Boosted trees, perceptrons and linear models of scikit-learn, and Lockstep on real tables, with the same splits for all.

  scripts/fetch-data all
  scripts/peers/python scripts/peers/tables.py                   everything; takes hours
  scripts/peers/python scripts/peers/tables.py --sets spam,ames --methods trees,tabular --seeds 1,2      a part of it
  scripts/peers/python scripts/peers/tables.py --methods none    what is known so far

Each seed divides a table anew, by a key of the row's number: a fifth is the test set, a fifth for validation.
--on test trains on all but the test set and measures there. --on validation leaves the test set alone: it trains on
three fifths and measures on the validation part, which is where defaults may be tuned.

  trees          HistGradientBoosting with native categories. Rate and number of leaves are chosen by three-fold
                 cross-validation on the training rows of the first seed that is run (at most --tune-rows of them), and
                 so is the number of trees: the mean of where the folds stop early
  linear         LogisticRegression or Ridge of scikit-learn, of what mlp sees
  mlp            scikit-learn's MLP (128 and 64 units, early stopping), standardised numbers, one-hot categories
  init           Lockstep: `trainer init` on the training rows, its config unedited, then `trainer` and `trainer predict`
  tabular, ...   the same with `trainer init --preset NAME`

The metric is the AUC for two classes, the accuracy for more, R2 for numbers. A method is level with the trees if it
is better, or behind by at most one standard error of the mean difference over the seeds. What is known goes to
--results (JSON) after each run, and is not computed again without --again. Needs a built trainer."""
import argparse
import csv
import fcntl
import importlib.machinery
import importlib.util
import itertools
import json
import math
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from datetime import datetime

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from measuring import runs  # noqa: E402

MISSING = {"", "NA"}
CATEGORIES = 254  # HistGradientBoosting has 255 bins
GRID = [dict(learning_rate=rate, max_leaf_nodes=leaves) for rate in (0.03, 0.1) for leaves in (8, 16, 31)]


def module_of(path):
    loader = importlib.machinery.SourceFileLoader(path.name.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


fetch_data = module_of(ROOT / "scripts/fetch-data")


class Data:
    """A table in columns, without and with its label, divided for a seed."""

    def __init__(self, directory, name, seed, on, rows):
        table = fetch_data.TABLES[name]
        self.name, self.seed, self.label = name, seed, table.label
        records = []
        for part in fetch_data.parts_of(name):
            with open(directory / f"{name}_{part}.csv", encoding="utf-8", newline="") as file:
                self.header, *more = csv.reader(file)
            records += more
        at = self.header.index(self.label)
        records = [record for record in records if record[at] not in MISSING]
        if rows and rows < len(records):
            chosen = sorted(range(len(records)), key=lambda i: fetch_data.place_of(name, i, "rows"))[:rows]
            records = [records[i] for i in sorted(chosen)]
        parts = [fetch_data.part_of(name, i, seed) for i in range(len(records))]
        trains = ("train", "validation") if on == "test" else ("train",)
        self.train = [record for record, part in zip(records, parts) if part in trains]
        self.test = [record for record, part in zip(records, parts) if part == on]
        labels = [record[at] for record in records]
        self.task = task_of(labels)
        self.classes = sorted(set(labels)) if self.task != "numbers" else []

    def labels(self, records):
        at = self.header.index(self.label)
        values = [record[at] for record in records]
        return np.array([float(value) for value in values]) if self.task == "numbers" else np.array(values)


def is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def task_of(labels):
    different = set(labels)
    if len(different) == 2:
        return "binary"
    return "numbers" if all(map(is_number, different)) else "classes"


def moment(text):
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


class Encoder:
    """Makes numbers of records: a date becomes day, day of the year, weekday and hour, a category its code."""

    def __init__(self, data):
        self.columns, self.categorical = [], []
        for at, name in enumerate(data.header):
            known = [record[at] for record in data.train if record[at] not in MISSING]
            if name == data.label or not known:
                continue
            if all(map(is_number, known)):
                self.add(at, None, False)
            elif all(moment(value) for value in known[:100]):
                for part in (lambda t: t.toordinal(), lambda t: t.timetuple().tm_yday, lambda t: t.weekday(), lambda t: t.hour):
                    self.add(at, lambda text, part=part: float(part(moment(text))), False)
            else:
                codes = {value: float(i) for i, (value, _) in enumerate(Counter(known).most_common(CATEGORIES))}
                self.add(at, lambda text, codes=codes: codes.get(text, math.nan), True)

    def add(self, at, convert, categorical):
        self.columns.append((at, convert or float))
        self.categorical.append(categorical)

    def __call__(self, records):
        return np.array([[math.nan if record[at] in MISSING else convert(record[at]) for at, convert in self.columns]
                         for record in records])


def trees_of(data, seed, **options):
    kind = HistGradientBoostingRegressor if data.task == "numbers" else HistGradientBoostingClassifier
    return kind(random_state=seed, max_iter=options.pop("max_iter", 1000), **options)


def score(data, truth, model, x):
    if data.task == "numbers":
        return r2_score(truth, model.predict(x))
    if data.task == "binary":
        return roc_auc_score(truth == data.classes[1], model.predict_proba(x)[:, 1])
    return accuracy_score(truth, model.predict(x))


def fit_trees(model, x, y, task):
    """Holding back for early stopping wants two records of each class: a class with one is left out."""
    if task != "numbers" and model.early_stopping:
        count = Counter(y)
        enough = np.array([count[label] > 1 for label in y])
        x, y = x[enough], y[enough]
    return model.fit(x, y)


def tuned(data, x, y, categorical, seed):
    """The best of the grid by cross-validation, with its number of trees."""
    folds = KFold(3, shuffle=True, random_state=seed) if data.task == "numbers" else StratifiedKFold(3, shuffle=True, random_state=seed)
    best = (-math.inf, None)
    for options in GRID:
        scores, trees = [], []
        for fit, held in folds.split(x, y):
            model = trees_of(data, seed, categorical_features=categorical, early_stopping=True, n_iter_no_change=20, **options)
            fit_trees(model, x[fit], y[fit], data.task)
            scores.append(score(data, y[held], model, x[held]))
            trees.append(model.n_iter_)
        best = max(best, (np.mean(scores), options | {"max_iter": round(float(np.mean(trees)) * 1.1) + 1}), key=lambda of: of[0])
    return best[1]


def run_trees(data, arguments, known):
    encode = Encoder(data)
    x, y = encode(data.train), data.labels(data.train)
    start = time.perf_counter()
    some = np.random.default_rng(data.seed).permutation(len(x))[:arguments.tune_rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer records than folds
        options = dict(known) if known else tuned(data, x[some], y[some], encode.categorical, data.seed)
        chosen = dict(options)
        tuning = time.perf_counter()
        if len(some) < len(x):  # more rows allow more trees: they stop early themselves
            options["max_iter"] = 2000
            model = trees_of(data, data.seed, categorical_features=encode.categorical, early_stopping=True, n_iter_no_change=20, **options)
        else:
            model = trees_of(data, data.seed, categorical_features=encode.categorical, early_stopping=False, **options)
        fit_trees(model, x, y, data.task)
    end = time.perf_counter()
    return {"metric": score(data, data.labels(data.test), model, encode(data.test)), "seconds": end - tuning,
            "tuning_seconds": tuning - start, "chosen": chosen, "trees": int(model.n_iter_)}


def run_dense(data, method):
    """A perceptron, or a linear model: of dense features."""
    encode = Encoder(data)

    def dense(records, state):
        parts = []
        for i, (column, categorical) in enumerate(zip(encode(records).T, encode.categorical)):
            if categorical:
                codes = state.setdefault(i, sorted(set(column[~np.isnan(column)])))
                parts += [column == code for code in codes]
            else:
                mean, deviation = state.setdefault(i, (np.nanmean(column), np.nanstd(column) or 1.0))
                parts.append((np.where(np.isnan(column), mean, column) - mean) / deviation)
        return np.array(parts, dtype=np.float32).T

    state = {}
    x, y = dense(data.train, state), data.labels(data.train)
    mean, deviation = (y.mean(), y.std()) if data.task == "numbers" else (0.0, 1.0)
    start = time.perf_counter()
    if method == "linear":
        model = Ridge() if data.task == "numbers" else LogisticRegression(max_iter=2000)
    else:
        kind = MLPRegressor if data.task == "numbers" else MLPClassifier
        model = kind((128, 64), early_stopping=True, random_state=data.seed, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, (y - mean) / deviation if data.task == "numbers" else y)
    seconds = time.perf_counter() - start
    truth = data.labels(data.test)
    return {"metric": score(data, (truth - mean) / deviation if data.task == "numbers" else truth, model, dense(data.test, state)),
            "seconds": seconds}


def write(path, header, records):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *records])


def call(command, directory):
    result = subprocess.run([str(word) for word in command], cwd=directory, env=runs.mpi_environment(), text=True,
                            capture_output=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stderr[-2000:]}{result.stdout[-2000:]}")
    return result.stdout


def run_lockstep(data, arguments, preset):
    """What a user does: init, train, predict."""
    with tempfile.TemporaryDirectory(prefix="tables.") as directory:
        folder = pathlib.Path(directory)
        write(folder / "table.csv", data.header, data.train)
        at = data.header.index(data.label)
        unknown = [[*record[:at], *record[at + 1:]] for record in data.test]
        (folder / "new").mkdir()
        write(folder / "new/rows.csv", [name for name in data.header if name != data.label], unknown)
        call([arguments.trainer, "init", "table.csv", "--label", data.label, "--output", "table.toml", *preset,
              "--run.dir", "run", "--run.seed", data.seed, *shlex.split(arguments.flags)], folder)
        start = time.perf_counter()
        call([*runs.launcher(), arguments.ranks, arguments.trainer, "--config", "table.toml"], folder)
        seconds = time.perf_counter() - start
        call([arguments.trainer, "predict", "--model", "run", "--input", "new/rows.csv", "--output", "predictions.csv"], folder)
        with open(folder / "predictions.csv", encoding="utf-8", newline="") as file:
            predictions = list(csv.DictReader(file))
        if arguments.keep_config:
            (arguments.keep_config / f"{data.name}.toml").write_text((folder / "table.toml").read_text())
    return {"metric": metric_of(data, predictions), "seconds": seconds}


def metric_of(data, predictions):
    truth = data.labels(data.test)
    if data.task == "binary":
        return roc_auc_score(truth == data.classes[1], [float(row["p_" + data.classes[1]]) for row in predictions])
    found = [row["prediction"] for row in predictions]
    return r2_score(truth, np.array(found, dtype=float)) if data.task == "numbers" else accuracy_score(truth, found)


def run_method(method, data, arguments, known):
    if method == "trees":
        return run_trees(data, arguments, next((r["chosen"] for key, r in known.items()
                                                if key[:2] == (data.name, method) and key[3:] == (arguments.on, arguments.rows)), None))
    if method in ("mlp", "linear"):
        return run_dense(data, method)
    return run_lockstep(data, arguments, [] if method.split(":")[0] == "init" else ["--preset", method.split(":")[0]])


class Results:
    """What is known, by (set, method, seed, part, rows), in a JSON file that several runs may add to at a time."""

    def __init__(self, path):
        self.path = path

    def load(self):
        known = json.loads(self.path.read_text()) if self.path.exists() else []
        return {(r["set"], r["method"], r["seed"], r["on"], r["rows"]): r for r in known}

    def add(self, record):
        with open(self.path.with_name(self.path.name + ".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self.load()
            known[(record["set"], record["method"], record["seed"], record["on"], record["rows"])] = record
            unfinished = self.path.with_name(self.path.name + ".unfinished")
            unfinished.write_text("[\n" + ",\n".join(map(json.dumps, known.values())) + "\n]\n")
            unfinished.replace(self.path)


def mean_and_error(values):
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), float(error)


def verdict(ours, theirs):
    """Level or not, on the seeds that both have, and how far ahead in per cent of the trees' metric."""
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return "", math.nan
    difference, error = mean_and_error([ours[seed] - theirs[seed] for seed in seeds])
    percent = 100 * difference / abs(np.mean([theirs[seed] for seed in seeds]))
    if difference >= 0 or difference >= -error:
        return "level" if difference < error or math.isnan(error) else "better", percent
    return ("behind" if percent >= -1 else "more than 1 % behind"), percent


def show(known, arguments):
    """A Markdown table: for each set and method the mean, how far it is ahead of the trees, and the seconds of training.
    What is level with them or better is bold."""
    chosen = [r for r in known.values() if r["on"] == arguments.on and r["rows"] == arguments.rows and r["set"] in arguments.sets]
    methods = list(dict.fromkeys(r["method"] for r in chosen))
    methods.sort(key=lambda m: (m != "trees", m != "linear", m != "mlp", m != "init"))
    print(f"| set | metric | {' | '.join(methods)} |\n|---|---|{'---|' * len(methods)}")
    counts = {method: Counter() for method in methods}
    for name in arguments.sets:
        of_set = [r for r in chosen if r["set"] == name]
        values = {method: {r["seed"]: r["metric"] for r in of_set if r["method"] == method} for method in methods}
        cells = []
        for method in methods:
            if not values[method]:
                cells.append("-")
                continue
            mean, error = mean_and_error(list(values[method].values()))
            seconds = np.mean([r["seconds"] for r in of_set if r["method"] == method])
            word, percent = verdict(values[method], values.get("trees", {}))
            if method == "trees" or not word:
                tuning = max(r.get("tuning_seconds", 0) for r in of_set if r["method"] == method)
                cells.append(f"{mean:.4f} ± {error:.4f} ({seconds:.1f} s{f', tuning {tuning:.0f} s' if tuning else ''})")
                continue
            counts[method][word] += 1
            bold = "**" if word in ("level", "better") else ""
            cells.append(f"{bold}{mean:.4f}{bold} ({percent:+.1f} %, {seconds:.1f} s)")
        if of_set:
            print(f"| `{name}` | {of_set[0]['measure']} | {' | '.join(cells)} |")
    for method in methods:
        if counts[method]:
            print(f"\n{method}: " + ", ".join(f"{count} {word}" for word, count in sorted(counts[method].items())), end="")
    print()


def listed(text):
    return [word for word in text.split(",") if word]


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--sets", type=listed, default=[name for name in fetch_data.TABLES if fetch_data.parts_of(name) and name != "dna"], help="tables of fetch-data, with commas (default: all)")
    add("--methods", type=listed, default=["trees", "linear", "mlp", "init", "tabular", "tabular_large"],
        help="trees, linear, mlp, init, or a preset; preset:WORD is another name for it, for --flags; none")
    add("--seeds", type=listed, default=["1", "2", "3", "4", "5"], help="which seeds (default: 1,2,3,4,5)")
    add("--on", choices=["test", "validation"], default="test", help="the part that is measured on (default: test)")
    add("--rows", type=int, default=0, help="take only so many rows of a table (default: all)")
    add("--tune-rows", type=int, default=8000, help="rows that the trees are tuned on (default: 8000)")
    add("--flags", default="", help="further flags for trainer init; give the method another name then")
    add("--ranks", type=int, default=2, help="ranks of Lockstep (default: 2)")
    add("--dir", type=pathlib.Path, default=ROOT / "data", help="where the tables are (default: data)")
    add("--trainer", type=pathlib.Path, default=ROOT / "build/release/trainer")
    add("--results", type=pathlib.Path, default=ROOT / "data/peers.json", help="what is known (default: data/peers.json)")
    add("--keep-config", type=pathlib.Path, help="a directory for the configs that init has written")
    add("--again", action="store_true", help="also what is known already")
    arguments = parser.parse_args()
    unknown = set(arguments.sets) - fetch_data.TABLES.keys()
    if unknown:
        parser.error(f"no table is called {', '.join(sorted(unknown))}; there are {', '.join(fetch_data.TABLES)}")
    missing = [name for name in arguments.sets if not all(f.exists() for f in fetch_data.files_of(arguments.dir, name))]
    if missing:
        parser.error(f"{', '.join(missing)}: not in {arguments.dir}; what to do: scripts/fetch-data {' '.join(missing)}")
    arguments.trainer = arguments.trainer.resolve()
    return arguments


def main():
    arguments = parsed()
    results = Results(arguments.results)
    for name, seed, method in itertools.product(arguments.sets, map(int, arguments.seeds), arguments.methods):
        if method == "none" or not arguments.again and (name, method, seed, arguments.on, arguments.rows) in results.load():
            continue
        data = Data(arguments.dir, name, seed, arguments.on, arguments.rows)
        try:
            result = run_method(method, data, arguments, results.load())
        except RuntimeError as error:
            print(f"{name} seed {seed} {method}: failed: {error}", file=sys.stderr, flush=True)
            continue
        measure = {"binary": "AUC", "classes": "accuracy", "numbers": "R2"}[data.task]
        results.add({"set": name, "method": method, "seed": seed, "on": arguments.on, "rows": arguments.rows, "measure": measure, **result})
        print(f"{name} seed {seed} {method}: {measure} {result['metric']:.4f}, {result['seconds']:.1f} s", file=sys.stderr, flush=True)
    show(results.load(), arguments)


if __name__ == "__main__":
    main()
