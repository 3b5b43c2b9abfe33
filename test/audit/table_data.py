"""A data set of a table: from its texts, by schema.json, the targets, weights and features of each good record."""

import math
import re

import numpy as np

from .notations import cycle, date_number, day_of_year, notated_number, plain_number

CLIP = 3


class Bad(Exception):
    pass


class Column:
    """A column of schema.json, and its place in the file."""

    def __init__(self, json, index, missing):
        self.json, self.index = json, index
        self.name, self.use = json["name"], json["use"]
        self.kind = json.get("kind")
        self.missing = set(missing) | set(json.get("missing_values", []))
        missing = json.get("missing_values", []) if self.kind == "numeric" else []
        self.missing_numbers = {self.number(text) for text in missing}

    def number(self, text):
        if "date" in self.json:
            return date_number(text, self.json["date"]["form"], self.json["date"].get("before", 2069))
        if "notation" in self.json:
            return notated_number(text, self.json["notation"])
        return plain_number(text)

    def read(self, text, required):
        """The value of a cell: a number or a text; None if it is missing."""
        if self.use == "weight":
            value = self.number(text)
            if value is None or value < 0 or 0 < value < 1.1754943508222875e-38 or value > 3.4028234663852886e38:
                raise Bad(f"{text!r} is no weight")
            return value
        if self.kind == "numeric":
            value = self.number(text)
            if value is not None and abs(value) <= 3.4028234663852886e38 and value not in self.missing_numbers:
                return value
            if not (text in self.missing or value in self.missing_numbers - {None}) or required:
                raise Bad(f"{text!r} in column {self.name!r} is no number")
            return None
        if text in self.missing:
            if required:
                raise Bad(f"no label in column {self.name!r}")
            return None
        if self.json.get("fold_case"):
            text = re.sub(r"[ \t]+", " ", text.lower()).strip()
        if self.use == "label" and text not in self.json["values"]:
            raise Bad(f"{text!r} is no class of the training data")
        return text


def signed_log(x):
    return math.copysign(math.log1p(abs(x)), x)


class Scale:
    """What is done to the numbers of a column, and how it is undone."""

    def __init__(self, json):
        self.kind = json.get("scale", "none")
        self.shift, self.range = 0.0, 1.0
        if self.kind == "minmax":
            self.shift, self.range = json["min"], json["max"] - json["min"]
        elif self.kind in ("standard", "log"):
            self.shift, self.range = json["mean"], json["deviation"]
        elif self.kind == "robust":
            lower, median, upper = json["quartiles"]
            self.shift, self.range = median, upper - lower if upper > lower else (json["max"] - json["min"]) / 2
        self.factor = 1 / self.range if self.range > 0 else 0.0

    def more_digits(self):
        """How many more decimal digits a label has than single precision tells apart."""
        far = 0.0 if self.range <= 0 else 1 / self.range if self.kind == "log" else abs(self.shift) / self.range
        return min(math.ceil(math.log10(far)), 8) if far > 8 else 0

    def straight(self, x):
        s = (x - self.shift) * self.factor
        return s / math.sqrt(1 + (s / CLIP) ** 2) if self.kind == "robust" else s

    def apply(self, x):
        return self.straight(signed_log(x) if self.kind == "log" else x)

    def undo(self, y):
        y = np.asarray(y, float)
        if self.kind == "robust":
            y = np.clip(y, -CLIP * (1 - 1e-6), CLIP * (1 - 1e-6))
            y = y / np.sqrt(1 - (y / CLIP) ** 2)
        x = y * self.range + self.shift
        return np.copysign(np.expm1(np.abs(x)), x) if self.kind == "log" else x

    def undone_error(self, y, error):
        """How far off undone numbers may be, whose scaled ones are off by `error`."""
        return np.abs(self.undo(y + error) - self.undo(y - error)) / 2


def scale_of(json):
    return Scale(json) if json.get("kind") == "numeric" else Scale({})


def fill_of(json):
    """The feature of a missing number."""
    scale = Scale(json)
    return scale.straight(json["mean"]) if json["missing"] == "mean" else scale.apply(json["missing"])


def position(edges, x):
    """The bin of a number, and how far in it."""
    if not x > edges[0]:
        return 0.0
    if x >= edges[-1]:
        return float(len(edges) - 1)
    above = int(np.searchsorted(edges, x, side="right"))
    return above - 1 + (x - edges[above - 1]) / (edges[above] - edges[above - 1])


def number_features(json, value):
    """The features of a number or date: those of its parts, the number, its bins."""
    if "date" in json:
        features = []
        for part in json["date"]["parts"]:
            if part == "day":
                features.append(fill_of(json) if value is None else Scale(json).apply(value))
            elif part == "day_of_year":
                features += [float(value is not None and day_of_year(value) == i) for i in range(366)]
            else:
                features += [0.0, 0.0] if value is None else list(cycle(value, part))
        return features
    scale, bins = Scale(json), json.get("bins")
    features = []
    if not bins or bins["keeps_number"]:
        features.append(fill_of(json) if value is None else scale.apply(value))
    if bins:
        known = value if value is not None else json["mean"] if json["missing"] == "mean" else json["missing"]
        if scale.kind == "log" and not (value is None and json["missing"] == "mean"):
            known = signed_log(known)
        at = position(bins["edges"], known)
        width = max(len(bins["edges"]) - 1, 1)
        features += [min(max(at - i, 0.0), 1.0) for i in range(width)]
    return features


def category_features(json, value):
    text = "" if value is None else value
    if json["encode"] == "hash":
        import xxhash

        position_of = xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogateescape")) % json["buckets"]
        return [float(i == position_of) for i in range(json["buckets"])]
    known = json["values"].index(text) + 1 if text in json["values"] else 0
    return [float(known)] if json["encode"] == "index" else [float(i == known) for i in range(len(json["values"]) + 1)]


class TableData:
    """The good records of a table, and what is wrong with the others."""

    def __init__(self, table, schema, labels=True):
        missing = schema["missing_values"]
        self.table = table
        place = {name: i for i, name in enumerate(table.names)}
        self.columns = [Column(json, place.get(json["name"]), missing) for json in schema["columns"]]
        used = [c for c in self.columns if c.use != "ignore" and (labels or c.use == "feature")]
        self.labels = sorted((c for c in used if c.use == "label"), key=lambda c: c.kind != "numeric")
        windows = "windows" in schema  # whose records may lack labels
        one = len(self.labels) == 1 and not windows
        self.rows, self.bad, self.cells = [], {}, []
        for number, record in enumerate(table.records):
            try:
                if isinstance(record, str):
                    raise Bad(record)
                if len(record) != len(table.names):
                    raise Bad(f"{len(record)} fields")
                cells = {c.name: c.read(record[c.index], one and c.use == "label") for c in used if c.index is not None}
                if self.labels and not windows and all(cells[c.name] is None for c in self.labels):
                    raise Bad("no label")
            except Bad as bad:
                self.bad[number] = str(bad)
                continue
            self.rows.append(number)
            self.cells.append(cells)
        self.rows = np.array(self.rows, np.int64)

    def targets(self):
        """As the loss sees them: scaled numbers, numbers of classes; NaN where one is missing."""
        columns = []
        for c in self.labels:
            if c.kind == "numeric":
                scale = Scale(c.json)
                columns.append([math.nan if r[c.name] is None else scale.apply(r[c.name]) for r in self.cells])
            else:
                place = {value: i for i, value in enumerate(c.json["values"])}
                columns.append([math.nan if r[c.name] is None else place[r[c.name]] for r in self.cells])
        targets = np.array(columns, np.float64).T.reshape(len(self.cells), len(self.labels))
        return targets.astype(np.float32).astype(float)

    def weights(self):
        names = [c.name for c in self.columns if c.use == "weight"]
        if not names:
            return None
        return np.array([r[names[0]] for r in self.cells], np.float32).astype(float)

    def features(self):
        numbers = [c for c in self.columns if c.use == "feature" and c.kind == "numeric"]
        categories = [c for c in self.columns if c.use == "feature" and c.kind == "categorical"]
        rows = []
        for r in self.cells:
            row = []
            for c in numbers:
                row += number_features(c.json, r[c.name])
            for c in categories:
                row += category_features(c.json, r[c.name])
            rows.append(row)
        return np.array(rows, np.float32).reshape(len(self.cells), -1)
