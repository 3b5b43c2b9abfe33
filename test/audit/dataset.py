"""A set that a run was trained or evaluated on: its targets, weights, features, and where its records stand in the
files."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from .arrays import read_arrays, read_lengths, sparse
from .forward import ends_with_a_sequence
from .notations import plain_number
from .splits import Parts
from .table_data import TableData
from .table_text import read_table
from .text_data import TextPart, TextSets, is_text
from .window_data import Positions, WindowSet


@dataclass
class DataSet:
    targets: np.ndarray  # [records, targets], as the loss sees them
    weights: np.ndarray
    features: np.ndarray  # or None
    rows: np.ndarray  # of each record, its line of `predict`
    numbers: np.ndarray  # of each record, its number among the good ones of the files
    files: list
    file_of: np.ndarray
    weighted: bool = False
    table: TableData = None  # of a table, with the cells of all its good records
    windows: WindowSet = None  # of which the records are
    lengths: np.ndarray = None  # of sequences: how many positions count; None where all do
    of_positions: bool = False  # each position has targets
    each: int = 1  # targets of a position
    text: TextPart = None  # of a text, whose windows the records are
    place: np.ndarray = None  # of counted(): the position that each is of its record

    def part(self, chosen):
        return self.part_of(np.flatnonzero(chosen))

    def __len__(self):
        return len(self.targets)

    def places(self):
        """Which positions count, as numbers of records and of positions."""
        positions = np.arange(self.targets.shape[1] // self.each)[None, :]
        lengths = np.full(len(self), positions.size) if self.lengths is None else self.lengths
        return np.nonzero(positions < lengths[:, None])

    def first_lines(self):
        """Of the records of whole files, the first line that `predict` writes of each."""
        counts = np.full(len(self), self.targets.shape[1] // self.each) if self.lengths is None else self.lengths
        return np.cumsum(counts) - counts

    def counted(self):
        """What an evaluation counts: the records, or the positions that count."""
        if not self.of_positions:
            return self
        records, places = self.places()
        targets = self.targets.reshape(len(self), -1, self.each)[self.places()]
        return replace(self.part_of(records), targets=targets, place=places, of_positions=False)

    def part_of(self, pick):
        names = ("targets", "weights", "features", "rows", "numbers", "file_of", "lengths")
        there = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(self, **{name: each[pick] for name, each in there.items()})


def read_set(config, schema, cwd, split):
    """All records of the files of a set."""
    kind = config["data.format"]
    if kind == "csv":
        return read_table_set(config, schema, cwd, config[f"data.{split}"])
    if kind == "libsvm":
        return read_sparse_set(config, schema, cwd, split)
    if kind in ("synthetic", "text"):
        return None
    x, y, w, sizes, files = read_arrays(config, cwd, split)
    targets = np.asarray(y, np.float32).astype(float).reshape(len(x), -1)
    count = np.arange(len(x))
    lengths, of_positions = read_lengths(config, cwd, split), ends_with_a_sequence(config)
    each = np.asarray(y).shape[2] if of_positions and np.asarray(y).ndim == 3 else 1
    file_of, weights = np.repeat(np.arange(len(sizes)), sizes), weights_or_ones(w, len(x))
    sequences = {"lengths": lengths, "of_positions": of_positions, "each": each}
    features = normalised(x, config)
    return DataSet(targets, weights, features, count, count, files, file_of, w is not None, **sequences)


def normalised(x, config):
    """By data.mean and data.std: a number for all features, for each, or for each channel."""
    mean = np.asarray(config.get("data.mean", [0.0]), np.float32)
    std = np.asarray(config.get("data.std", [1.0]), np.float32)
    if x.ndim > 1 and mean.size not in (1, x.shape[-1]):
        mean, std = mean.reshape(x.shape[1:]), std if std.size == 1 else std.reshape(x.shape[1:])
    return (x - mean) / std


def weights_or_ones(weights, count):
    return np.ones(count) if weights is None else np.asarray(weights, np.float32).astype(float).reshape(-1)


def read_table_set(config, schema, cwd, text):
    names = [c["name"] for c in schema["columns"]] if config.get("data.header") == "no" else None
    table = read_table(text, cwd, config, names)
    data = TableData(table, schema)
    weights, numbers = data.weights(), np.arange(len(data.rows))
    file_of = np.array(table.file_of, int)[data.rows] if len(data.rows) else np.zeros(0, int)
    figures = (data.targets(), weights_or_ones(weights, len(data.rows)), normalised(data.features(), config))
    return DataSet(*figures, data.rows, numbers, table.files, file_of, weights is not None, data)


def read_sparse_set(config, schema, cwd, split):
    records, file_of, files = sparse(config[f"data.{split}"], cwd)
    training = records if split == "train" else sparse(config["data.train"], cwd)[0]
    indices = [index for record in training if record for index in record[1]]
    first = 0 if 0 in indices else 1
    names = (schema or {}).get("classes")
    good = [i for i, record in enumerate(records) if record and all(index >= first for index in record[1])]
    if names:
        good = [i for i in good if plain_number(records[i][0]) in names]
        targets = [[names.index(plain_number(records[i][0]))] for i in good]
    else:
        good = [i for i in good if plain_number(records[i][0]) is not None]
        targets = [[float(records[i][0])] for i in good]
    x = np.zeros((len(good), max(indices) - first + 1 if indices else 0), np.float32)
    for row, i in enumerate(good):
        for index, value in records[i][1].items():
            if index - first < x.shape[1]:
                x[row, index - first] = value
    good = np.array(good, int)
    targets = np.array(targets, np.float32).astype(float).reshape(len(good), 1)
    figures = (targets, np.ones(len(good)), normalised(x, config))
    return DataSet(*figures, good, np.arange(len(good)), files, np.array(file_of, int)[good])


class DataSets:
    """The sets of a run, each read and divided once."""

    def __init__(self, config, schema, cwd):
        self.config, self.schema, self.cwd = config, schema, cwd
        self.read, self.sets = {}, {}
        self.parts, self.positions = functools.cache(self.parts), functools.cache(self.positions)
        self.texts_data = TextSets(config, cwd) if is_text(config) else None

    def files(self, split):
        if split not in self.read:
            self.read[split] = read_set(self.config, self.schema, self.cwd, split)
        return self.read[split]

    def parts(self):
        """Which of the records of the training files are held back."""
        whole = self.files("train")
        targets = whole.targets if whole is not None else np.zeros((0, 1))
        config = self.config if whole is not None else {}
        return Parts(config, targets, lambda name: self.texts(whole, name), self.column)

    def texts(self, whole, name):
        table = whole.table.table
        place = table.names.index(name)
        return [table.records[row][place] for row in whole.rows]

    def column(self, name):
        return next((c for c in (self.schema or {}).get("columns", []) if c["name"] == name), None)

    def __getitem__(self, split):
        """ "train", "validation" or "test"; None if there is none, or if it is made up."""
        if split not in self.sets and self.texts_data:
            self.sets[split] = self.windows_of_text(split) if split in self.texts_data.spans else None
        if split not in self.sets:
            found = self.records(split)
            windowed = found is not None and self.config.get("data.window")
            self.sets[split] = self.windows(split, found) if windowed else found
        return self.sets[split]

    def positions(self, split):
        """Of the files of a set, in the order of time."""
        whole = self.files(split)
        return Positions(self.config, self.schema, whole, lambda name: self.texts(whole, name), self.column)

    def windows_of_text(self, split):
        texts = self.texts_data
        features, targets = texts.windows(texts.spans[split][0], 1)
        return replace(self.of_windows(features), targets=targets, files=texts.spans[split][2], text=texts.part(split))

    @staticmethod
    def of_windows(features):
        """Windows of tokens without targets."""
        rows, file_of = np.arange(len(features)), np.zeros(len(features), int)
        return DataSet(features[:, :, 0], np.ones(len(rows)), features, rows, rows, [], file_of, of_positions=True)

    def windows(self, split, records):
        file = "train" if split == "train" or split in self.parts().among else split
        positions, inside = self.positions(file), np.zeros(len(self.files(file)), bool)
        inside[records.numbers] = True
        found = WindowSet(positions, inside)
        first = np.array([positions.places[origin][0] for origin in found.origins], int)
        whole = self.files(file)
        figures = (found.targets(), np.ones(len(first)), normalised(found.features(), self.config))
        file_of = np.zeros(len(first), int)
        return DataSet(*figures, whole.rows[first], first, whole.files, file_of, windows=found)

    def records(self, split):
        """Those of the files, of which windows may be taken."""
        parts = self.parts()
        if split in parts.among or split == "train" and parts.among:
            return self.files("train").part(parts.sets == split)
        return self.files(split) if self.config.get(f"data.{split}") else None
