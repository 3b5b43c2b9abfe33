"""Relations between runs that need no right value: what must come out the same, or in a known proportion.

Each function of RELATIONS runs a random experiment in two ways and returns what differs; its docstring is the relation.
A `Bench` has the trainer, the launcher, the dice and a directory. `Bench.broken` spoils the second way by hand, so that
`relations --prove` shows that each relation can fail.
"""

import csv
import io
import itertools
import json
import math
import pathlib
import re
import subprocess

from data_files import npy
from experiment import config_of
from forward import read_tensors

FEATURES = 4

TIMES = {"seconds", "samples_per_second", "time", "hosts", "ranks", "config"}


class Bench:
    def __init__(self, dice, directory, trainer, launcher):
        self.dice, self.directory, self.trainer, self.launcher = dice, pathlib.Path(directory), trainer, launcher
        self.directory.mkdir(parents=True)
        self.broken = False

    def call(self, words, ranks=1, fails=False):
        command = [*self.launcher, "-np", str(ranks), self.trainer] if ranks > 1 else [self.trainer]
        done = subprocess.run([*command, *words], cwd=self.directory, capture_output=True, text=True, timeout=120)
        if (done.returncode == 0) == fails:
            raise RuntimeError(f"{' '.join(words)} ends with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
        return done.stdout

    def train(self, name, keys, ranks=1, flags=(), fails=False):
        self.write(f"{name}.toml", config_of(keys))
        self.call(["--config", f"{name}.toml", "--run.dir", name, "--run.progress", "none", *flags], ranks, fails)
        return self.directory / name

    def predict(self, run, data, ranks=1, flags=()):
        output = f"{run.name}-{data}.predictions.csv"
        self.call(["predict", "--model", run.name, "--input", data, "--output", output, *flags], ranks)
        return (self.directory / output).read_text()

    def eval(self, run, flags=()):
        self.call(["eval", "--model", run.name, "--json", f"{run.name}.json", "--overwrite", *flags])
        return json.loads((self.directory / f"{run.name}.json").read_text())

    def write(self, name, content):
        (self.directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def records(self, count, task):
        """Rows of numbers; a category; a label, which depends on them."""
        rows = []
        for _ in range(count):
            x = [round(self.dice.gauss(0, 1), 3) for _ in range(FEATURES)]
            z = x[0] - 0.5 * x[1] + 0.4 * self.dice.gauss(0, 1)
            label = {"value": round(z, 3), "yes_no": int(z > 0), "classes": int(z > -0.5) + int(z > 0.6)}[task]
            rows.append((x, self.dice.choice(("red", "green", "blue")), label))
        return rows

    def any_task(self, records=0):
        """One of the tasks; of so many records train.csv is written."""
        task = self.dice.choice(("value", "yes_no", "classes"))
        if records:
            self.write("train.csv", table(self.records(records, task)))
        return task

    def keys(self, task, **more):
        """A random small experiment that has the same bits on any number of ranks."""
        dice, losses = self.dice, {"value": ("mean_squared_error", "huber")}
        losses |= {"yes_no": ("binary_cross_entropy",), "classes": ("softmax_cross_entropy",)}
        dropout = dice.choice(("", "dropout(0.3) "))
        keys = {
            "run.seed": dice.randrange(1000),
            "run.log_every": 1,
            "data.label": ["y"],
            "model.layers": f"dense(6) {dice.choice(('relu', 'tanh'))} {dropout}dense({3 if task == 'classes' else 1})",
            "train.loss": dice.choice(losses[task]),
            "train.optimizer": dice.choice(("sgd", "adam", "adamw")),
            "train.lr": dice.choice((0.01, 0.03)),
            "train.epochs": dice.choice((2, 2.5)),
            "train.replicas": 6,
            "train.global_batch": dice.choice((24, 31)),
            "distribute.reduction": "ordered",
        }
        keys.update({key.replace("__", "."): value for key, value in more.items()})
        return keys


def table(rows, order=None, names=None, label=str):
    """A CSV with columns x0 ... x3, kind, y; `order` permutes the columns, `label` writes labels."""
    columns = [f"x{i}" for i in range(FEATURES)] + ["kind", "y"]
    lines = [[*map(str, x), kind, label(y)] for x, kind, y in rows]
    order = order or range(len(columns))
    return "".join(",".join(line[i] for i in order) + "\n" for line in [columns, *lines])


def sparse_line(row):
    x, _, y = row
    return f"{y} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(x)) + "\n"


def apart(first, second, tolerance=None):
    """Tensors that differ in a bit, or by more than a tolerance."""
    a, b = (read_tensors(run / "model.safetensors")[0] for run in (first, second))
    wrong = [f"{second.name}: tensor {name} is in one run only" for name in sorted(set(a) ^ set(b))]
    for name in sorted(set(a) & set(b)):
        if a[name].shape != b[name].shape or tolerance is None and a[name].tobytes() != b[name].tobytes():
            wrong.append(f"{second.name}: tensor {name} differs")
        elif tolerance is not None and not (far := abs(a[name] - b[name]).max()) <= tolerance:
            wrong.append(f"{second.name}: tensor {name} is {far:g} apart")
    return wrong


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def unlike(a, b, tolerance=0.0, place=""):
    """Places at which two JSON values differ, times left out."""
    a, b = without_times(a), without_times(b)
    if isinstance(a, dict) and isinstance(b, dict):
        both = ((key, a.get(key), b.get(key)) for key in sorted(set(a) | set(b)))
        return [line for key, *pair in both for line in unlike(*pair, tolerance, f"{place}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i, pair in enumerate(zip(a, b)) for line in unlike(*pair, tolerance, f"{place}[{i}]")]
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (a, b))
    if a == b or (numbers and math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)):
        return []
    return [f"{place}: {a} and {b}"]


def unlike_texts(a, b, what):
    if a == b:
        return []
    first = next((pair for pair in zip(a.splitlines(), b.splitlines()) if pair[0] != pair[1]), ("", "another length"))
    return [f"{what}: '{first[0]}' and '{first[1]}'"]


def are_close(a, b):
    """Whether two rows have the same words and, up to rounding in single precision, the same numbers."""
    cells = list(itertools.zip_longest(a.split(","), b.split(","), fillvalue=""))
    return all(x == y or "." in x and "." in y and math.isclose(float(x), float(y), rel_tol=2e-6) for x, y in cells)


def json_of(run, name):
    return json.loads((run / name).read_text())


def shown(run):
    """All figures of a run for programs. Lines of kind "ranks" are about times, and there are none of one rank."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    metrics = [line for line in lines if line["kind"] != "ranks"]
    return {"summary": json_of(run, "summary.json"), "evaluation": json_of(run, "evaluation.json"), "metrics": metrics}


def last_evaluation(run):
    return shown(run)["summary"]["evaluation"]


def masked(text):
    """A line of a log or a plan without its times."""
    text = re.sub(r"[\d,.]+(?:e[+-]?\d+)? (?:h|m|s|ms|us|samples/s|tokens/s)\b", "-", text)
    return re.sub(r"; time: .*", "", text)


def files_of(run):
    """What a run has written beside its figures for programs, times left out. A run on other ranks has another plan."""
    log = [masked(line.split(" ", 3)[3]) for line in (run / "log.txt").read_text().splitlines() if line[:2] == "20"]
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', (run / "report.html").read_text(), re.S)
    page = json.loads(found[1])["runs"][0]
    page["curves"] = [curve for curve in page["curves"] if curve["measure"] != "samples_per_second"]
    told = ("epoch ", "step ", "done: ", "kept: ", "calibrated: ", "threshold: ")
    parts = ("curves", "kept", "confusion", "predictions", "reliability", "columns")
    return {
        "names": {str(path.relative_to(run)): 1 for path in (*run.glob("*"), *run.glob("checkpoints/*"))},
        "schema": json_of(run, "schema.json"),
        "plan": (run / "plan.txt").read_text().splitlines(),
        "log": {line: 1 for line in log if line.startswith(told)},
        "page": {part: page.get(part) for part in parts},
    }


def accumulated(bench):
    """A batch that is cut into parts gives the same step, dropout included."""
    task = bench.any_task(150)
    # SGD: other optimizers divide by small numbers, and make much of rounding.
    keys = bench.keys(task, data__train="train.csv", train__optimizer="sgd", train__steps=8, train__epochs=None)
    del keys["train.epochs"]
    whole = bench.train("whole", keys)
    if bench.broken:
        keys["run.seed"] += 1
    parts = bench.train("parts", {**keys, "train.accumulate": bench.dice.choice((2, 3))})
    return apart(whole, parts, 1e-5)


def formats(bench):
    """A table is the same records as libsvm, npy and HDF5 files."""
    task = bench.dice.choice(("value", "yes_no"))
    rows = bench.records(150, task)
    columns = range(FEATURES)
    bench.write("train.csv", table(rows, [*columns, FEATURES + 1]))
    keys = bench.keys(task)
    label = keys.pop("data.label")
    runs = [bench.train("table", {**keys, "data.label": label, "data.train": "train.csv", "data.scale": "none"})]
    if bench.broken:
        rows[70] = ([*rows[70][0][1:], 0], *rows[70][1:])
    bench.write("train.libsvm", "".join(map(sparse_line, rows)))
    runs.append(bench.train("libsvm", {**keys, "data.train": "train.libsvm"}))
    features, labels = [v for x, _, _ in rows for v in x], [y for _, _, y in rows]
    bench.write("x.npy", npy((len(rows), FEATURES), features, "f4"))
    bench.write("y.npy", npy((len(rows),), labels, "f4"))
    runs.append(bench.train("npy", {**keys, "data.train": "x.npy", "data.train_labels": "y.npy"}))
    import h5py
    import numpy

    with h5py.File(bench.directory / "train.h5", "w") as file:
        file["x"] = numpy.array(features, "f4").reshape(-1, FEATURES)
        file["y"] = numpy.array(labels, "f4")
    runs.append(bench.train("hdf5", {**keys, "data.train": "train.h5:x", "data.train_labels": "train.h5:y"}))
    return [line for run in runs[1:] for line in apart(runs[0], run)]


def pieces(bench):
    """Several files, and text that is read by chunks, are one file."""
    task = bench.any_task()
    rows = bench.records(200, task)
    bench.write("train.csv", table(rows))
    keys = bench.keys(task, data__scale=bench.dice.choice(("standard", "robust", "bins(4)", "minmax")))
    whole = bench.train("whole", {**keys, "data.train": "train.csv"})
    cut = bench.dice.randrange(20, 180)
    bench.write("part-1.csv", table(rows[:cut]))
    bench.write("part-2.csv", table(rows[cut + bench.broken :]))
    files = bench.train("files", {**keys, "data.train": "part-*.csv"}, ranks=bench.dice.choice((1, 2)))
    keys |= {"data.train": "train.csv", "data.chunk_kib": 1}
    chunks = bench.train("chunks", keys, ranks=bench.dice.choice((1, 2)))
    return apart(whole, files) + apart(whole, chunks)


def bad_lines(bench):
    """Several ranks skip the same bad lines as one, also in predictions."""
    rows = bench.records(400, "yes_no")
    sparse = bench.dice.random() < 0.5
    lines = table(rows).splitlines(keepends=True)[1:]
    if sparse:
        lines = list(map(sparse_line, rows))
    for position in (390, 260, 130, 10):  # in the part of each rank
        lines.insert(position, "1 x:y\n" if sparse else "too,few\n")
    name, head = ("train.libsvm", "") if sparse else ("train.csv", "x0,x1,x2,x3,kind,y\n")
    bench.write(name, head + "".join(lines))
    keys = bench.keys("yes_no", data__train=name, data__on_bad_record="skip", data__max_bad_share=0.2)
    keys["data.chunk_kib"] = 1
    if sparse:
        del keys["data.label"]
    alone = bench.train("alone", keys)
    first = bench.predict(alone, name)
    if bench.broken:
        lines.pop(260)
        bench.write(name, head + "".join(lines))
    ranks = bench.dice.choice((2, 3))
    several = bench.train("several", keys, ranks)
    wrong = apart(alone, several) + unlike_texts(first, bench.predict(several, name, ranks), "predictions")
    expected = [i + 1 + (not sparse) for i, line in enumerate(lines) if line in ("1 x:y\n", "too,few\n")]
    for run in (alone, several):
        rejects = (run / "rejects.txt").read_text()
        found = sorted(int(number.replace(",", "")) for number in re.findall(r"line ([\d,]+)[:,]", rejects))
        wrong += [] if found == expected else [f"{run.name}/rejects.txt: lines {found}, not {expected}"]
    empty = [int(line.split(",")[0]) for line in first.splitlines()[1:] if line.endswith(",,,")]
    marked = [number - 1 - (not sparse) for number in expected]
    return wrong + ([] if empty == marked else [f"predictions: rows {empty} are empty, not {marked}"])


def tied_stages(bench):
    """Two stages that share two weights give the same bits as one rank."""
    task = bench.any_task(150)
    outputs = 3 if task == "classes" else 1
    layers = f"dense(5) tanh dense(5) tanh dense(5) tanh dense(5, tie=2) tanh dense(5, tie=4) tanh dense({outputs})"
    keys = bench.keys(task, data__train="train.csv", data__validation="share(0.2)", model__layers=layers)
    one = bench.train("one", keys)
    if bench.broken:
        keys["model.layers"] = layers.replace("tie=4", "tie=2")
    two = bench.train("two", {**keys, "distribute.stages": 2}, ranks=2)
    return apart(one, two) + unlike(last_evaluation(one), last_evaluation(two))


def renamed_classes(bench):
    """Other names of the classes, in the same order, give the same bits and the same figures."""
    rows, tests = bench.records(150, "classes"), bench.records(50, "classes")
    keys = bench.keys("classes", data__train="train.csv", data__test="test.csv", eval__metrics=["auc", "f1", "ece"])
    runs = []
    for number, names in enumerate((("a", "b", "c"), ("big, dog", 'cat "x"', "small"))):
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        if bench.broken and number:
            quoted.reverse()
        bench.write("train.csv", table(rows, label=lambda y: quoted[y]))
        bench.write("test.csv", table(tests, label=lambda y: quoted[y]))
        runs.append(bench.train(f"names{number}", keys))
    first, second = (json.dumps(without_times(last_evaluation(run))) for run in runs)
    for old, new in (("big, dog", "a"), ('cat \\"x\\"', "b"), ("small", "c")):
        second = second.replace(f'"{old}"', f'"{new}"')
    return apart(*runs) + unlike(json.loads(first), json.loads(second))


def reordered_columns(bench):
    """Columns in another order are found by their names, in predict and in eval."""
    task = bench.any_task(150)
    tests = bench.records(60, task)
    bench.write("test.csv", table(tests))
    order = bench.dice.sample(range(FEATURES + 2), FEATURES + 2)
    text = table(tests, order)
    if bench.broken:
        text = text.replace("x0", "x").replace("x1", "x0").replace("x,", "x1,").replace("x\n", "x1\n")
    bench.write("other.csv", text)
    run = bench.train("run", bench.keys(task, data__train="train.csv", data__test="test.csv"))
    figures = [bench.eval(run, ("--data.test", name)) for name in ("test.csv", "other.csv")]
    predictions = [bench.predict(run, name) for name in ("test.csv", "other.csv")]
    for result in figures:
        result.pop("data", None)
    text = [json.dumps(result).replace("other.csv", "test.csv") for result in figures]
    return unlike(json.loads(text[0]), json.loads(text[1])) + unlike_texts(*predictions, "predictions")


def other_units(bench):
    """A label in other units, which is standardised, gives predictions and statistics in those units, and the same loss
    and R2."""
    rows, factor = bench.records(150, "value"), bench.dice.choice((10, 1000))
    keys = bench.keys("value", data__train="train.csv", data__validation="share(0.2)", data__columns=["y: standard"])
    keys["eval.metrics"] = ["r2"]
    runs, predictions = [], []
    for unit in (1, factor):
        bench.write("train.csv", table(rows, label=lambda y: repr(round(y * unit, 6))))
        runs.append(bench.train(f"unit{unit}", keys))
        lines = csv.DictReader(io.StringIO(bench.predict(runs[-1], "train.csv")))
        predictions.append([line["prediction"] for line in lines])
    if bench.broken:
        predictions[0] = [repr(2 * float(value)) for value in predictions[0]]
    scaled = [[float(value) * unit for value in values] for values, unit in zip(predictions, (factor, 1))]
    close = lambda a, b: math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3 * factor)
    wrong = [f"row {i}: {pair}" for i, pair in enumerate(zip(*scaled)) if not close(*pair)]
    measures = [{name: last_evaluation(run)[name] for name in ("loss", "r2")} for run in runs]
    for run, unit in zip(runs, (factor, 1)):
        fit = json_of(run, "evaluation.json")["fits"][0]
        measures.append({name: [value * unit for value in fit[name]] for name in ("target", "prediction")})
        label = next(column for column in json_of(run, "schema.json")["columns"] if column["name"] == "y")
        measures[-1].update({name: label[name] * unit for name in ("mean", "deviation", "min", "max")})
    return wrong[:3] + unlike(*measures[:2], 1e-3) + unlike(*measures[2:], 1e-3)


def weight_two(bench):
    """Weight 2 is the record twice: in the measures of an evaluation, and in a step over all records."""
    task = bench.any_task()
    rows = bench.records(90, task)
    weights_of = [bench.dice.choice((1, 1, 2, 3)) for _ in rows]
    head, *lines = table(rows).splitlines()
    weighted = [f"{line},{weight}" for line, weight in zip(lines, weights_of)]
    if bench.broken:
        weights_of[5] += 4
    twice = [f"{line},1" for line, weight in zip(lines, weights_of) for _ in range(weight)]
    bench.write("weighted.csv", "\n".join([head + ",w", *weighted, ""]))
    bench.write("twice.csv", "\n".join([head + ",w", *twice, ""]))
    metrics = {"value": "r2 mean_absolute_error spearman", "yes_no": "auc average_precision f1 brier mcc ece",
               "classes": "auc log_loss f1 balanced_accuracy mcc brier"}[task].split()  # fmt: skip
    keys = bench.keys(task, data__weight="w", data__scale="none", data__ignore=["kind"], eval__metrics=metrics)
    keys |= {"train.optimizer": "sgd", "train.replicas": 1, "train.steps": 1}
    del keys["train.epochs"]
    keys["model.layers"] = keys["model.layers"].replace("dropout(0.3) ", "")
    runs = []
    for name, count in (("weighted", len(rows)), ("twice", sum(weights_of))):
        keys |= {"train.global_batch": count, "data.train": f"{name}.csv", "data.test": f"{name}.csv"}
        runs.append(bench.train(name, keys))
    measures = [{name: last_evaluation(run)[name] for name in ("loss", *metrics)} for run in runs]
    return apart(*runs, 1e-6) + unlike(*measures, 1e-5)


def fold_is_run(bench):
    """A fold of cross-validation is a run on that split."""
    task = bench.any_task(150)
    keys = bench.keys(task, data__train="train.csv")
    if task != "value" and bench.dice.random() < 0.5:
        keys["train.calibrate"] = "temperature"
    config = {**keys, "data.validation": "fold(2/3)"}
    one = bench.train("one", {**config, "run.seed": keys["run.seed"] + bench.broken})
    text = (bench.directory / "one.toml").read_text()
    bench.write("cv.toml", text.replace(f"seed = {keys['run.seed'] + bench.broken}\n", f"seed = {keys['run.seed']}\n"))
    words = "cv --config cv.toml --run.dir cv --folds 3 --run.progress none"
    bench.call(words.split(), bench.dice.choice((1, 2)))
    fold = bench.directory / "cv" / "fold-0002"
    return apart(one, fold) + unlike(shown(one), shown(fold))


def resumed(bench):
    """A run that fails and goes on writes the same files as one that does not, times left out."""
    task = bench.any_task(150)
    keys = bench.keys(task, data__train="train.csv", data__validation="share(0.2)")
    keys |= {"checkpoint.every": "3 steps", "checkpoint.wait": True}
    if bench.dice.random() < 0.5:
        keys["train.ema"] = 0.9
    whole = bench.train("whole", keys)
    flags = ("--debug.fail_rank", "0", "--debug.fail_step", str(bench.dice.randrange(4, 8)))
    bench.train("again", keys, bench.dice.choice((1, 2)), flags, fails=True)
    if bench.broken:
        path = bench.directory / "again/metrics.jsonl"
        path.write_text(path.read_text().replace('"loss":0', '"loss":1', 1).replace('"loss":1.', '"loss":2.', 1))
    again = bench.train("again", keys, ranks := bench.dice.choice((1, 2)))
    files = [files_of(run) for run in (whole, again)]
    if ranks > 1:
        for each in files:
            del each["plan"]
    return apart(whole, again) + unlike(shown(whole), shown(again)) + unlike(*files)


def last_words(bench):
    """`eval RUN` gives the figures that the run ended with."""
    task = bench.any_task(150)
    bench.write("test.csv", table(bench.records(60, task)))
    keys = bench.keys(task, data__train="train.csv", data__validation="share(0.2)")
    if bench.dice.random() < 0.7:
        keys["data.test"] = "test.csv"
    if task != "value" and bench.dice.random() < 0.5:
        keys["train.calibrate"] = "temperature"
    run = bench.train("run", keys)
    words, last = bench.eval(run), last_evaluation(run)
    kept = shown(run)["summary"]["kept"]["step"]
    if last["split"] == "validation" and last["step"] != kept:  # eval has the weights that are kept
        lines = (line for line in shown(run)["metrics"] if line["kind"] == "evaluation")
        last = next(line for line in lines if line["step"] == kept)
    words = words[last["split"]]
    if bench.broken:
        words = {**words, "loss": words["loss"] * 1.001}
    about_run = {"kind", "split", "step", "epoch", "samples_seen"}
    words = {name: value for name, value in words.items() if name in last}
    return unlike({name: value for name, value in last.items() if name not in about_run}, words, 1e-9)


def shuffled(bench):
    """The predictions of a shuffled file are the shuffled predictions."""
    task = bench.any_task(150)
    rows = bench.records(80, task)
    order = bench.dice.sample(range(len(rows)), len(rows))
    bench.write("a.csv", table(rows))
    if bench.broken:
        rows[3], rows[4] = rows[4], rows[3]
    bench.write("b.csv", table([rows[i] for i in order]))
    run = bench.train("run", bench.keys(task, data__train="train.csv"))
    a, b = (bench.predict(run, name, bench.dice.choice((1, 2))).splitlines() for name in ("a.csv", "b.csv"))
    expected = [a[0], *(f"{i}," + a[1 + row].split(",", 1)[1] for i, row in enumerate(order))]
    # Kernels of some CPUs add in another order in the last rows of a block.
    same = len(b) == len(expected) and all(map(are_close, expected, b))
    return [] if same else unlike_texts("\n".join(expected), "\n".join(b), "predictions")


RELATIONS = (accumulated, formats, pieces, bad_lines, tied_stages, renamed_classes, reordered_columns, other_units,
             weight_two, fold_is_run, resumed, last_words, shuffled)  # fmt: skip
