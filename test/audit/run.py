"""A run directory as the auditor reads it: config, schema, weights, data sets, outputs of its model."""

import json
import pathlib
import subprocess

import numpy as np

from .config import Config
from .dataset import DataSets
from .forward import read_tensors
from .losses import form_of
from .outputs import Outputs, from_predictions, from_weights, in_order, predict


class Run:
    def __init__(self, directory, trainer, cwd):
        self.directory = pathlib.Path(directory).absolute()
        self.trainer, self.cwd = str(trainer), str(cwd)
        self.config = Config(self.directory / "config.toml")
        self.schema = self.json("schema.json")
        self.record = self.json("run.json")
        self.summary = self.json("summary.json")
        self.evaluation = self.json("evaluation.json")
        self.metrics = [json.loads(line) for line in self.text("metrics.jsonl").splitlines()]
        self.form = form_of(self.config)
        self.sets = DataSets(self.config, self.schema, cwd)
        self.tensors, self.metadata = {}, {}
        if (self.directory / "model.safetensors").exists():
            self.tensors, self.metadata = read_tensors(self.directory / "model.safetensors")
        self.temperature = float(self.metadata.get("temperature", 1))
        self.found = {}

    def text(self, name):
        path = self.directory / name
        return path.read_text(errors="replace") if path.exists() else ""

    def json(self, name):
        text = self.text(name)
        return json.loads(text) if text else None

    def command(self, *words):
        pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
        done = subprocess.run([self.trainer, *map(str, words)], cwd=self.cwd, **pipes)
        return done.returncode, done.stdout, done.stderr

    def evaluations(self, split, step=None, measure=None):
        """The lines of evaluations of a set: of a step, with a measure that is a number."""
        lines = [m for m in self.metrics if m["kind"] == "evaluation" and m["split"] == split]
        lines = [m for m in lines if step in (None, m["step"])]
        return [m for m in lines if measure is None or m.get(measure) is not None]

    def starts(self):
        """The steps that starts of the run went on from."""
        return list(self.record["launch"]["resumed_at"])

    def started_at(self, step=None):
        """The step that the last start went on from, or the last one before a step; 0 if there was none."""
        return max((start for start in self.starts() if step is None or start < step), default=0)

    def label_columns(self):
        columns = [c for c in (self.schema or {}).get("columns", []) if c["use"] == "label"]
        return [c for c in columns if c["kind"] == "numeric"] + [c for c in columns if c["kind"] != "numeric"]

    def target_columns(self):
        """The label of each target: in a window one for each position of its horizon."""
        return [column for column in self.label_columns() for _ in range(self.config.get("data.horizon") or 1)]

    def class_names(self):
        """Of one label that is a category; empty if classes have numbers."""
        if "classes" in (self.schema or {}):
            return [f"{value:g}" for value in self.schema["classes"]]
        if self.sets.texts_data:
            return self.sets["train"].text.names()
        labels = self.label_columns()
        return labels[0]["values"] if len(labels) == 1 and labels[0]["kind"] == "categorical" else []

    def has_test(self):
        keys = ("test", "test_part", "test_part_share", "synthetic_test_rows")
        return any(self.config.get(f"data.{key}") for key in keys)

    def has_validation(self):
        return bool(self.config.get("data.validation"))

    def files_text(self, split):
        """What the config says of the files that hold a set."""
        if split in self.sets.parts().among:
            split = "train"
        return split, self.config.get(f"data.{split}")

    def predicted(self, split, model=""):
        """Outputs by `trainer predict` for all records of the files of a set."""
        split, text = self.files_text(split)
        key = (text, model)
        if key not in self.found:
            lengths = self.config.get(f"data.{split}_lengths")
            names, cells = predict(self.trainer, f"{self.directory}{model}", text, self.cwd, self.config, lengths)
            own = slice(1, 3 if names[1:3] == ["record", "position"] else 1)  # columns that are no predictions
            without = lambda row: [cell for i, cell in enumerate(row) if not own.start <= i < own.stop]
            shown = (without(names), [without(row) for row in cells])
            self.found[key] = from_predictions(self.form, *shown, self.label_columns())
            self.found[key].names, self.found[key].cells = names, cells
        return self.found[key]

    def outputs(self, split, model=""):
        """The outputs of the set's records, with the temperature that `predict` applies. Where its digits do not tell
        them well, those computed from the weights stand in."""
        dataset = self.sets[split]
        # `predict` goes on behind the end of the file. Of a checkpoint it would be a command for each.
        if dataset.windows or dataset.text or model and self.own_outputs(split, model) is not None:
            return self.own_outputs(split, model)
        given = self.given_outputs(split, model)
        if not model and (own := self.own_outputs(split)) is not None:
            poor = given.error > own.error
            values = np.where(poor, aligned(self.form, own.values), given.values)
            given = Outputs(values, np.where(poor, own.error, given.error))
        return given

    def given_outputs(self, split, model=""):
        """By `trainer predict`, of what counts in the set."""
        dataset = self.sets[split]
        if not dataset.of_positions:
            return self.predicted(split, model).part(dataset.rows)
        records, positions = dataset.places()
        begins = self.sets.files(self.files_text(split)[0]).first_lines()
        return self.predicted(split, model).part(begins[dataset.rows[records]] + positions)

    def own_outputs(self, split, model=""):
        """`model`: "@step-N" of a checkpoint. With averages model.safetensors holds the average itself."""
        tensors = self.tensors
        if model:
            step = int(model.removeprefix("@step-"))
            tensors = read_tensors(self.directory / f"checkpoints/step-{step:09d}/model.safetensors")[0]
        own = from_weights(self.config, tensors, 1.0 if model else self.temperature, self.sets[split])
        return in_order(own, len(self.form.levels)) if own is not None and self.form.loss == "quantile" else own

    def weights(self, split):
        """Of the records in an evaluation."""
        dataset = self.sets[split].counted()
        weights = dataset.weights
        if self.config.get("eval.class_weights") and self.config.get("train.class_weights"):
            weights = weights * self.class_weights()[dataset_classes(dataset)]
        return weights

    def class_weights(self):
        words = self.config["train.class_weights"]
        names = self.class_names()
        classes = dataset_classes(self.sets["train"].counted())
        count = max(len(names), int(classes.max()) + 1, 2)
        if words == ["balanced"]:
            of_class = np.bincount(classes, minlength=count)
            return len(classes) / (np.count_nonzero(of_class) * np.maximum(of_class, 1))
        weights = np.ones(count)
        for word in words:
            name, _, number = word.rpartition(":")
            weights[names.index(name.strip()) if name.strip() in names else int(name)] = float(number)
        return weights


def dataset_classes(dataset):
    return dataset.targets.argmax(axis=1) if dataset.targets.shape[1] > 1 else dataset.targets[:, 0].astype(int)


def aligned(form, own):
    """Softmax outputs are known up to a constant in each row: both as logarithms of probabilities."""
    if form.link != "softmax":
        return own
    top = own.max(axis=1, keepdims=True)
    return own - top - np.log(np.exp(own - top).sum(axis=1, keepdims=True))
