"""The data of an experiment of `factors.py`: random records, in files of each format and notation."""

import gzip
import math
import struct

WIDTH = 4  # numbers of a record, beside the other columns of a table
IMAGE = (6, 6, 1)
SEQUENCE = (5, 3)
CLASS_NAMES = {
    ("yes_no", "texts"): ("ham", "spam"),
    ("yes_no", "numbers"): ("0", "1"),
    ("yes_no", "odd"): ("no, never", 'yes "really"'),
    ("classes", "texts"): ("low", "mid", "high"),
    ("classes", "numbers"): ("10", "20", "30"),
    ("classes", "odd"): ("a, b", 'say "c"', "d: é"),
}


class Records:
    """Random records of one set, whose labels depend on the features."""

    def __init__(self, dice, levels, count, unseen, scaled=None, sequence=None):
        """`sequence`: what a record of positions has, or None: "padding" and "of positions"."""
        self.levels, self.sequence = levels, sequence
        # A decimal comma in a column of weights is not read (known fault), so that they are whole there.
        self.whole_weights = levels["numbers"] == "german" or dice.random() < 0.5
        self.scaled = dice.choice(("standard", "log")) if scaled is None else scaled
        width = math.prod(IMAGE) if levels["image"] == "yes" else WIDTH if sequence is None else math.prod(SEQUENCE)
        self.rows = [self.record(dice, number, width, unseen) for number in range(count)]

    def __len__(self):
        return len(self.rows)

    def record(self, dice, number, width, unseen):
        x = [dice.gauss(0, 1) for _ in range(width)]
        kinds = ("green, dark", 'the "red"', "blue") if self.levels["odd_texts"] == "yes" else ("green", "red", "blue")
        kind = dice.choice(kinds)
        if unseen and dice.random() < 0.1:
            kind = "violet"
        known = kind == kinds[0] and self.levels["format"] == "csv"
        z = x[0] + 0.5 * x[1] + known + 0.3 * dice.gauss(0, 1)
        weight = dice.choice((0, 1, 1, 2, 3)) if self.whole_weights else round(dice.uniform(0, 2), 3)
        if self.sequence is not None:
            return self.sequence_record(dice, z, x, weight)
        return {
            "id": f"p{number}",
            "x": [round(value, 4) for value in x],
            "amount": round(1000 * math.exp(0.5 * x[1] + 0.3 * dice.gauss(0, 1)), 2),
            "kind": kind,
            "code": f"{dice.randrange(12):03d}",
            "day": dice.randrange(800),
            "group": f"g{dice.randrange(12)}",
            "weight": weight,
            "targets": self.targets(dice, z, x),
        }

    def sequence_record(self, dice, z, x, weight):
        positions, channels = SEQUENCE
        length = dice.randrange(1, positions + 1) if "padding" in self.sequence else positions
        targets = self.targets(dice, z, x)
        if "of positions" in self.sequence:
            each = [self.targets(dice, x[i] + 0.5 * x[i + 1], x)[0] for i in range(0, len(x), channels)]
            targets = each[:length] + [99] * (positions - length)
        x = [round(value, 4) for value in x[: length * channels]]
        x += [self.sequence.get("padding")] * (positions * channels - len(x))
        return {"x": x, "length": length, "weight": weight, "targets": targets}

    def targets(self, dice, z, x):
        task, several = self.levels["task"], self.levels["targets"] == "several"
        if task == "classes":
            return [int(z > -0.3) + int(z > 1)]
        if task == "yes_no":
            targets = [int(z > 0.2), int(x[1] > 0), int(x[0] > x[2])] if several else [int(z > 0.4)]
        else:
            targets = [self.value(z), self.value(x[1] - x[0])] if several else [self.value(z)]
        if self.levels["missing_targets"] == "yes" and dice.random() < 0.15:
            targets[dice.randrange(len(targets))] = None
        return targets

    def value(self, z):
        if self.levels["targets"] == "one" and self.levels["loss"] == "third":
            return max(1, round(math.exp(0.5 * z) * 3))
        if self.levels["label_scale"] == "scaled":
            return round(5000 + 900 * z, 1) if self.scaled == "standard" else round(200 * math.exp(0.8 * z), 2)
        return round(z, 4)


class DataFiles:
    """The part of an Experiment that writes its data; `set`, `at`, the dice and the directory are those of
    Experiment."""

    def plan_data(self):
        counts = {"train": self.dice.randrange(150, 230)}
        if self.at("validation") == "file":
            counts["validation"] = self.dice.randrange(40, 70)
        if self.at("test") == "yes":
            counts["test"] = self.dice.randrange(40, 70)
        if self.at("stratified") == "yes":
            self.set("data.validation", "stratified(0.2)")
        elif self.at("validation") == "part":
            self.set("data.validation", "share(0.2)")
        if self.at("format") == "synthetic":
            self.plan_synthetic(counts)
            return
        for name, count in counts.items():
            unseen = self.at("unseen") == "yes" and name != "train"
            scaled = self.sets["train"].scaled if self.sets else None
            self.sets[name] = Records(self.dice, self.levels, count, unseen, scaled, self.sequence)
        self.pack = gzip.compress if self.at("packed") == "yes" else lambda content: content
        self.tail = ".gz" if self.at("packed") == "yes" else ""
        write = {"csv": self.plan_table, "libsvm": self.plan_libsvm, "array": self.plan_arrays}[self.at("format")]
        write()

    def plan_synthetic(self, counts):
        self.set("data.format", "synthetic")
        for name, count in counts.items():
            self.set("data.synthetic_rows" if name == "train" else f"data.synthetic_{name}_rows", count)
        self.set("data.synthetic_features", WIDTH)
        self.set("data.synthetic_classes", {"yes_no": 2, "classes": 3, "value": 0}[self.at("task")])

    def parts(self, name, records):
        """The records of each file of a set, and the names of the files without their endings."""
        if self.at("files") != "several":
            return [(name, records)]
        cut = len(records) // 3
        return [(f"{name}-1", records[:cut]), (f"{name}-2", records[cut:])]

    def write(self, name, content):
        (self.directory / name).write_bytes(content)
        return name

    def one_path(self, paths):
        """What the config says of several files: a pattern, or a list."""
        if len(paths) == 2 and (":" in paths[0] or self.dice.random() < 0.5):
            return paths[0].replace("-1", "-*", 1)
        return ",".join(paths)

    def plan_libsvm(self):
        self.set("data.format", "libsvm")
        if self.at("task") == "classes" or self.at("yes_by") == "softmax":
            self.set("data.columns", ["label: categorical"])
        for name, records in self.sets.items():
            paths = []
            for stem, rows in self.parts(name, records.rows):
                lines = []
                for row in rows:
                    chosen = (i for i in range(WIDTH) if i == WIDTH - 1 or self.dice.random() < 0.8)
                    values = " ".join(f"{i + 1}:{row['x'][i]}" for i in chosen)
                    lines.append(f"{row['targets'][0]} {values}")
                    if self.at("bad_records") == "yes" and self.dice.random() < 0.04:
                        lines.append(self.dice.choice(("1 x:3", "y 1:2", "1 2:3 1:4")))
                paths.append(self.write(f"{stem}.libsvm{self.tail}", self.pack(("\n".join(lines) + "\n").encode())))
            self.set(f"data.{name}", self.one_path(paths))

    def plan_arrays(self):
        self.kind = {"numpy": self.dice.choice(("npy", "npz")), "hdf5": "hdf5", "binary": "idx"}[self.at("array")]
        if self.at("array") == "binary" and self.at("packed") == "no" and self.at("record_weights") == "none":
            self.kind = self.dice.choice(("idx", "raw"))
        self.set("data.format", {"npy": "numpy", "npz": "numpy"}.get(self.kind, self.kind))
        if self.sequence is not None:
            self.set("data.record", "sequence")
        for name, records in self.sets.items():
            written = [self.write_arrays(stem, rows) for stem, rows in self.parts(name, records.rows)]
            for part, key in (("x", ""), ("y", "_labels"), ("w", "_weights"), ("l", "_lengths")):
                paths = [paths[part] for paths in written if part in paths]
                if paths:
                    self.set(f"data.{name}{key}", self.one_path(paths))

    def write_arrays(self, stem, rows):
        """Writes features, labels and perhaps weights; returns the paths of "x", "y" and "w" as a config has them."""
        shape = (len(rows), *(IMAGE if self.at("image") == "yes" else (WIDTH,) if self.sequence is None else SEQUENCE))
        x = [value for row in rows for value in row["x"]]
        targets = [math.nan if target is None else target for row in rows for target in row["targets"]]
        per_row = len(rows[0]["targets"])
        whole = self.at("task") != "value" and self.at("missing_targets") == "no"
        label_shape = (len(rows),) if per_row == 1 else (len(rows), per_row)
        arrays = {"x": (shape, x, "f4"), "y": (label_shape, targets, "i8" if whole else "f4")}
        if self.at("record_weights") != "none":
            arrays["w"] = ((len(rows),), [row["weight"] for row in rows], "f4")
        if self.sequence is not None and "padding" in self.sequence:
            arrays["l"] = ((len(rows),), [row["length"] for row in rows], "i8")
        if self.kind == "npz":
            return self.write_npz(f"{stem}.npz", arrays)
        if self.kind == "hdf5":
            return self.write_hdf5(f"{stem}.h5", arrays)
        if self.kind in ("npy", "idx"):
            name, content = {"npy": (".{}.npy", npy), "idx": ("-{}-idx-ubyte", idx)}[self.kind]
            write = lambda part, array: self.write(stem + name.format(part) + self.tail, self.pack(content(*array)))
            return {part: write(part, array) for part, array in arrays.items()}
        dims = ",".join(str(size) for size in shape[1:])
        self.set("data.raw_layout", f"label:f32{'' if per_row == 1 else f'[{per_row}]'} features:f32[{dims}]")
        content, width = b"", len(x) // len(rows)
        for i in range(len(rows)):
            record = targets[i * per_row : (i + 1) * per_row] + x[i * width : (i + 1) * width]
            content += struct.pack(f"<{len(record)}f", *record)
        return {"x": self.write(f"{stem}.bin", content)}

    def write_npz(self, name, arrays):
        import zipfile

        method = zipfile.ZIP_DEFLATED if self.at("packed") == "yes" else zipfile.ZIP_STORED
        with zipfile.ZipFile(self.directory / name, "w", method) as archive:
            for part, array in arrays.items():
                archive.writestr(f"{part}.npy", npy(*array))
        return {part: f"{name}:{part}" for part in arrays}

    def write_hdf5(self, name, arrays):
        import h5py
        import numpy

        options = {"compression": "gzip"} if self.at("packed") == "yes" else {}
        with h5py.File(self.directory / name, "w") as file:
            for part, (shape, values, kind) in arrays.items():
                file.create_dataset(part, data=numpy.array(values, kind).reshape(shape), **options)
        return {part: f"{name}:/{part}" for part in arrays}

    # Tables.

    def plan_table(self):
        self.columns = [*(f"x{i}" for i in range(WIDTH)), "amount", "kind", "code"]
        if self.at("dates") == "yes":
            self.columns.append("when")
        if self.at("record_weights") != "none":
            self.columns.append("share")
        if self.folds == "group":
            self.columns.append("group")
        self.labels = ["y"] if self.target_count == 1 else ["ya", "yb", "yc"][: self.target_count]
        self.columns = ["id", *self.columns, *self.labels]
        self.plan_notation()
        self.plan_columns()
        for name, records in self.sets.items():
            paths = [self.write_table(stem, rows, name) for stem, rows in self.parts(name, records.rows)]
            self.set(f"data.{name}", self.one_path(paths))

    def plan_notation(self):
        self.separator = ","
        if self.at("separator") == "other":
            self.separator = self.dice.choice((";", "|", "\t"))
        if self.separator != "," and self.dice.random() < 0.5:
            self.set("data.separator", "tab" if self.separator == "\t" else self.separator)
        self.encoding = "utf-8"
        if self.at("encoding") == "other":
            self.encoding = self.dice.choice(("latin1", "utf-16"))
            if self.encoding == "latin1":
                self.set("data.encoding", "latin1")

    def named(self, column):
        """What the config calls a column."""
        return f"c{self.columns.index(column) + 1}" if self.at("header") == "no" else column

    def plan_columns(self):
        words = {}
        add = lambda column, word: words.setdefault(column, []).append(word)
        self.set("data.label", [self.named(label) for label in self.labels])
        if self.at("record_weights") != "none":
            self.set("data.weight", self.named("share"))
        for label in self.labels if self.at("label_scale") == "scaled" else ():
            add(label, self.sets["train"].scaled)
        if self.class_names() and self.at("class_names") == "numbers" and not self.sigmoid:
            add("y", "categorical")
        if self.at("scale") == "other":
            self.set("data.scale", self.dice.choice(("minmax", "log", "robust", "none")))
        if self.at("scale") == "bins":
            by_label = len(self.labels) == 1 and self.dice.random() < 0.5
            bins = "bins(4, by=label, leaf=10)" if by_label else "bins(4)"
            self.set("data.scale", self.dice.choice(("", "robust ")) + bins)
        self.iso = self.dice.random() < 0.5
        if self.at("dates") == "yes" and not self.iso:
            add("when", "date(dmy, day, weekday)")
        if self.at("numbers") == "affixes":
            add("amount", 'number(thousands=comma, prefix="$")')
            add("x2", 'number(suffix="%")')
        if self.at("roles") == "given":
            self.set("data.numeric", [self.named(c) for c in self.columns if c == "amount" or c[0] == "x"])
            self.set("data.categorical", [self.named(c) for c in ("kind", "code") if c in self.columns])
            self.set("data.ignore", [self.named("id")])
        if words:
            self.set("data.columns", [f"{self.named(column)}: {' '.join(texts)}" for column, texts in words.items()])

    def write_table(self, stem, rows, set_name):
        end = "\r\n" if self.at("line_ends") == "windows" else "\n"
        lines = []
        if self.at("skip_lines") == "yes":
            lines += ["A table of made-up records", "nothing but noise"]
        if self.at("header") != "no":
            lines.append(self.separator.join(self.columns))
        for row in rows:
            lines.append(self.separator.join(self.cell(self.text_of(row, column), column) for column in self.columns))
            if self.at("bad_records") == "yes" and self.dice.random() < 0.04:
                lines.append(self.separator.join(["too", "few"]))
        content = (end.join(lines) + end).encode(self.encoding)
        ending = "tsv" if self.separator == "\t" else "csv"
        return self.write(f"{stem}.{ending}{self.tail}", self.pack(content))

    def number(self, value, column):
        if value is None:
            return ""
        if column == "x2" and self.at("numbers") == "affixes":
            return f"{value} %"
        if column == "amount" and self.at("numbers") == "affixes":
            return f"${value:,.2f}"
        if self.at("numbers") == "german":
            return f"{value:,}".replace(",", " ").replace(".", ",").replace(" ", ".")
        return str(value)

    def text_of(self, row, column):
        if column in ("id", "kind", "code", "group"):
            return row[column]
        if column == "when":
            return self.date(row["day"])
        if column in self.labels:
            target = row["targets"][self.labels.index(column)]
            if self.class_names():
                return self.class_names()[target]
            return self.number(target, column)
        if column == "share":
            return self.number(row["weight"], column)
        if self.at("missing") != "none" and column in ("x1", "amount") and self.dice.random() < 0.06:
            return self.dice.choice(("unknown", "-") if self.at("missing_texts") == "own" else ("", "NA", "?"))
        return self.number(row["amount"] if column == "amount" else row["x"][int(column[1:])], column)

    def date(self, day):
        import datetime

        date = datetime.date(2021, 2, 20) + datetime.timedelta(days=day)
        return date.isoformat() if self.iso else date.strftime("%d.%m.%Y")

    def cell(self, text, column):
        if self.at("quotes") == "all" or any(sign in text for sign in (self.separator, '"', "\n")):
            return '"' + text.replace('"', '""') + '"'
        return text


def npy(shape, values, kind):
    """The content of a .npy file (format 1.0)."""
    text = ",".join(str(size) for size in shape) + ("," if len(shape) == 1 else "")
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({text}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return head + struct.pack(f"<{len(values)}{ {'f4': 'f', 'i8': 'q'}[kind] }", *values)


def idx(shape, values, kind):
    """The content of an IDX file: whole numbers as bytes, all others as floats."""
    whole = kind == "i8"
    head = struct.pack(">HBB", 0, 8 if whole else 13, len(shape)) + struct.pack(f">{len(shape)}I", *shape)
    return head + struct.pack(f">{len(values)}{'B' if whole else 'f'}", *values)
