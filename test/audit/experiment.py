"""Files and commands of an experiment of `factors.py`: config.toml, data, commands.sh.

A level leaves details open, such as which schedule falls; `dice` decides them, so a seed repeats an experiment. Sizes are
small: a run takes a fraction of a second beside its start.
"""

import gzip
import math
import pathlib
import struct

from factors import LOSSES

WIDTH = 4  # numbers of a record, beside the other columns of a table
IMAGE = (6, 6, 1)
LEVELS = (0.1, 0.5, 0.9)  # of the quantile loss
CLASS_NAMES = {
    ("yes_no", "texts"): ("ham", "spam"),
    ("yes_no", "numbers"): ("0", "1"),
    ("yes_no", "odd"): ("no, never", 'yes "really"'),
    ("classes", "texts"): ("low", "mid", "high"),
    ("classes", "numbers"): ("10", "20", "30"),
    ("classes", "odd"): ("a, b", 'say "c"', "d: é"),
}
METRICS = {
    "classes": ("auc", "precision", "recall", "average_precision", "f1", "mcc", "balanced_accuracy"),
    "probabilities": ("log_loss", "brier", "ece"),
    "values": ("mean_absolute_error", "mean_squared_error", "r2", "root_mean_squared_error", "spearman"),
}


def toml(value):
    """A value as a config writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return repr(value)


def quoted(text):
    """A text as an argument in commands.sh."""
    return "'" + text.replace("'", "'\\''") + "'"


class Records:
    """Random records of one set, whose labels depend on the features."""

    def __init__(self, dice, levels, count, unseen, scaled=None):
        self.levels = levels
        # A decimal comma in a column of weights is not read (known fault), so that they are whole there.
        self.whole_weights = levels["numbers"] == "german" or dice.random() < 0.5
        self.scaled = dice.choice(("standard", "log")) if scaled is None else scaled
        width = math.prod(IMAGE) if levels["image"] == "yes" else WIDTH
        self.rows = [self.record(dice, number, width, unseen) for number in range(count)]

    def __len__(self):
        return len(self.rows)

    def record(self, dice, number, width, unseen):
        x = [dice.gauss(0, 1) for _ in range(width)]
        kinds = ("green, dark", 'the "red"', "blue") if self.levels["odd_texts"] == "yes" else ("green", "red", "blue")
        kind = dice.choice(kinds)
        if unseen and dice.random() < 0.1:
            kind = "violet"
        z = x[0] + 0.5 * x[1] + (1 if kind == kinds[0] and self.levels["format"] == "csv" else 0) + 0.3 * dice.gauss(0, 1)
        weight = dice.choice((0, 1, 1, 2, 3)) if self.whole_weights else round(dice.uniform(0, 2), 3)
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


class Experiment:
    def __init__(self, levels, dice, directory):
        """Writes the files into the directory, which is new."""
        self.levels = levels
        self.dice = dice
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.keys = {}  # of the config, in the order of their sections
        self.sets = {}
        self.needs_hdf5 = False
        self.plan_details()
        self.plan_workers()
        self.plan_loss()
        self.plan_data()
        self.plan_order()
        self.plan_model()
        self.plan_steps()
        self.plan_evaluation()
        self.plan_sharing()
        self.write_config()
        self.write_commands()

    def set(self, key, value):
        self.keys[key] = value

    def at(self, name):
        return self.levels[name]

    def plan_details(self):
        """What the levels leave open, where rules are about several details at once."""
        dice, at = self.dice, self.at
        self.sigmoid = at("task") == "yes_no" and at("yes_by") == "sigmoid"
        self.ensemble = at("hidden") == "blocks" and at("norm") == "none" and at("ties") == "none" and at("image") == "no"
        self.ensemble = self.ensemble and dice.random() < 0.5
        self.strategy = {"auto": "", "servers": "parameter_server"}.get(at("strategy"), at("strategy"))
        if self.strategy == "exchange":
            self.strategy = "allreduce" if at("algorithm") == "other" else dice.choice(("allreduce", "zero1"))
        self.alone = at("servers") == "alone"
        self.folds = "record"
        if at("folds") == "other":
            by_class = at("targets") == "one" and at("task") != "value"
            self.folds = dice.choice(("class",) * by_class + ("group",) * (at("format") == "csv"))

    def plan_workers(self):
        self.ranks = int(self.at("ranks"))
        self.ranks_of_trial = 1 if self.at("per_trial") == "one" else self.ranks
        self.threads = int(self.at("threads"))
        self.other_ranks = self.ranks
        if self.at("resume") == "yes" and self.at("stages") == "1" and not self.alone and self.dice.random() < 0.6:
            self.other_ranks = 5 - self.ranks if self.at("strategy") == "servers" else {1: 2, 2: 1, 3: 2}[self.ranks]
        workers = max(self.ranks_of_trial, self.other_ranks) - (self.at("strategy") == "servers")
        if self.at("stages") == "2":
            workers = self.ranks // 2
        self.replicas = workers * self.threads * (1 if self.at("replicas") == "few" else 2)
        if self.at("replicas") == "many" and self.at("batch") == "uneven":
            self.replicas += 1
        if not self.alone:
            self.replicas = max(self.replicas, 2)
        self.accumulate = {"one": 1, "two": 2, "three": 3}[self.at("accumulate")]
        parts = self.replicas * self.accumulate
        # A part that is no whole batch is dropped: an epoch, of a hundred records at least, has to have one.
        self.batch = parts * (2 if self.at("tail") == "drop" and parts > 22 else 4) + (1 if self.at("batch") == "uneven" else 0)

    # What is learned.

    def plan_loss(self):
        task = self.at("task")
        kind = task
        if task == "value" and self.at("targets") == "several":
            kind = "values"
        if task == "yes_no" and not self.sigmoid:
            kind = "classes"
        self.loss = self.dice.choice(LOSSES[kind][("usual", "second", "third").index(self.at("loss"))])
        self.set("train.loss", self.loss)
        if self.loss == "quantile":
            self.set("train.quantiles", list(LEVELS))
        if self.at("label_smoothing") == "yes":
            self.set("train.label_smoothing", 0.1)
        self.target_count = 1 if self.at("targets") == "one" else {"value": 2, "yes_no": 3}[task]
        self.outputs = self.target_count
        if kind == "classes":
            self.outputs = 3 if task == "classes" else 2
        if self.loss == "quantile":
            self.outputs *= len(LEVELS)
        if self.at("class_weights") == "balanced":
            self.set("train.class_weights", ["balanced"])
        if self.at("class_weights") == "given":
            names = self.class_names() or ("0", "1", "2")[: 3 if task == "classes" else 2]
            self.set("train.class_weights", [f"{name}: {weight}" for name, weight in zip(names, (1, 2.5, 0.5))])
        if self.at("eval_class_weights") == "yes":
            self.set("eval.class_weights", True)

    def class_names(self):
        """The texts of the classes of a table; None where classes have none."""
        if self.at("format") != "csv" or self.at("task") == "value" or self.at("targets") == "several":
            return None
        return CLASS_NAMES[self.at("task"), self.at("class_names")]

    def metrics(self):
        """The metrics that suit the task and the loss."""
        if self.at("task") == "value":
            if self.loss == "quantile":
                return ("pinball",)
            if self.loss == "cosine_distance":
                return ("cosine_similarity",)
            names = METRICS["values"]
            if self.loss in ("poisson", "tweedie", "gamma"):
                names += ("poisson_deviance", f"{self.loss}_deviance") if self.loss != "poisson" else ("poisson_deviance",)
                names += ("mean_absolute_percentage_error",)
            return names
        return METRICS["classes"] + (() if "hinge" in self.loss else METRICS["probabilities"])

    # The data.

    def plan_data(self):
        counts = {"train": self.dice.randrange(150, 230)}
        if self.at("validation") == "file":
            counts["validation"] = self.dice.randrange(40, 70)
        if self.at("test") == "yes":
            counts["test"] = self.dice.randrange(40, 70)
        if self.at("stratified") == "yes":
            self.set("data.validation", "stratified(0.2)")
        elif self.at("validation") == "part":
            self.set("data.validation_share", 0.2)
        if self.at("normalise") == "yes":
            self.set("data.mean", 0.2)
            self.set("data.std", 1.5)
        if self.at("format") == "synthetic":
            self.plan_synthetic(counts)
            return
        for name, count in counts.items():
            unseen = self.at("unseen") == "yes" and name != "train"
            scaled = self.sets["train"].scaled if self.sets else None
            self.sets[name] = Records(self.dice, self.levels, count, unseen, scaled)
        self.pack = gzip.compress if self.at("packed") == "yes" else lambda content: content
        self.tail = ".gz" if self.at("packed") == "yes" else ""
        write = {"csv": self.plan_table, "libsvm": self.plan_libsvm, "array": self.plan_arrays}[self.at("format")]
        write()
        if self.at("chunks") == "many":
            self.set("data.chunk_kib", 1)
        if self.at("bad_records") == "yes":
            self.set("data.on_bad_record", "skip")
            self.set("data.max_bad_share", 0.3)

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
                    values = [(i + 1, value) for i, value in enumerate(row["x"]) if i == WIDTH - 1 or self.dice.random() < 0.8]
                    lines.append(f"{row['targets'][0]} " + " ".join(f"{i}:{value}" for i, value in values))
                    if self.at("bad_records") == "yes" and self.dice.random() < 0.04:
                        lines.append(self.dice.choice(("1 x:3", "y 1:2", "1 2:3 1:4")))
                paths.append(self.write(f"{stem}.libsvm{self.tail}", self.pack(("\n".join(lines) + "\n").encode())))
            self.set(f"data.{name}", self.one_path(paths))

    def plan_arrays(self):
        self.kind = {"numpy": self.dice.choice(("npy", "npz")), "hdf5": "hdf5", "binary": "idx"}[self.at("array")]
        if self.at("array") == "binary" and self.at("packed") == "no" and self.at("record_weights") == "none":
            self.kind = self.dice.choice(("idx", "raw"))
        self.set("data.format", {"npy": "numpy", "npz": "numpy"}.get(self.kind, self.kind))
        for name, records in self.sets.items():
            written = [self.write_arrays(stem, rows) for stem, rows in self.parts(name, records.rows)]
            for part, key in (("x", ""), ("y", "_labels"), ("w", "_weights")):
                paths = [paths[part] for paths in written if part in paths]
                if paths:
                    self.set(f"data.{name}{key}", self.one_path(paths))

    def write_arrays(self, stem, rows):
        """Writes features, labels and perhaps weights; returns the paths of "x", "y" and "w" as a config has them."""
        shape = (len(rows), *(IMAGE if self.at("image") == "yes" else (WIDTH,)))
        x = [value for row in rows for value in row["x"]]
        targets = [math.nan if target is None else target for row in rows for target in row["targets"]]
        per_row = len(rows[0]["targets"])
        whole = self.at("task") != "value" and self.at("missing_targets") == "no"
        label_shape = (len(rows),) if per_row == 1 else (len(rows), per_row)
        arrays = {"x": (shape, x, "f4"), "y": (label_shape, targets, "i8" if whole else "f4")}
        if self.at("record_weights") != "none":
            arrays["w"] = ((len(rows),), [row["weight"] for row in rows], "f4")
        if self.kind == "npy":
            return {part: self.write(f"{stem}.{part}.npy{self.tail}", self.pack(npy(*array))) for part, array in arrays.items()}
        if self.kind == "npz":
            return self.write_npz(f"{stem}.npz", arrays)
        if self.kind == "hdf5":
            return self.write_hdf5(f"{stem}.h5", arrays)
        if self.kind == "idx":
            return {part: self.write(f"{stem}-{part}-idx-ubyte{self.tail}", self.pack(idx(*array))) for part, array in arrays.items()}
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
        self.columns = [f"x{i}" for i in range(WIDTH)] + ["amount"]
        self.columns += ["kind", "code"]
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
        if self.at("header") == "no":
            self.set("data.header", "no")
        if self.at("numbers") == "german":
            self.set("data.decimal", ",")
            self.set("data.thousands", ".")
        self.encoding = "utf-8"
        if self.at("encoding") == "other":
            self.encoding = self.dice.choice(("latin1", "utf-16"))
            if self.encoding == "latin1":
                self.set("data.encoding", "latin1")
        if self.at("skip_lines") == "yes":
            self.set("data.skip_lines", 2)

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
            self.set("data.scale", self.dice.choice(("", "robust ")) + ("bins(4, by=label, leaf=10)" if by_label else "bins(4)"))
        if self.at("missing") == "constant":
            self.set("data.missing", "constant(0.5)")
        if self.at("missing_texts") == "own":
            self.set("data.missing_values", ["", "unknown", "-"])
        if self.at("categories") == "index":
            self.set("data.encode", "index")
        if self.at("categories") == "hash":
            self.set("data.encode", "hash(3)")
        if self.at("vocabulary") == "few":
            self.set("data.vocabulary", 2)
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

    # Order, model and steps.

    def plan_order(self):
        if self.at("memory") == "stream":
            self.set("data.memory", "stream")
            self.set("data.shuffle_buffer", self.dice.choice((5, 40)))
        if self.at("mode") == "full":
            self.set("data.mode", "full")
        if self.at("shard_order") == "other":
            # Every replica would read all of a file that is streamed by stride.
            self.set("data.shard_order", self.dice.choice(("contiguous",) + ("strided",) * (self.at("memory") == "load")))
        if self.at("reshuffle") == "global":
            self.set("data.reshuffle", "global")
        if self.at("prefetch") == "none":
            self.set("data.prefetch", 0)
        if self.at("augment") == "yes":
            self.set("data.augment", self.dice.choice(("flip", "crop(1)", "crop(2) flip cutout(2)")))

    def plan_model(self):
        self.set("model.layers", " ".join(self.layers()))
        if self.at("norm") == "batch":
            scope = self.at("batch_norm")
            if scope == "shared":
                scope = self.dice.choice(("averaged", "sync", "group(2)"))
            self.set("model.batch_norm", scope)
        if self.at("precise_bn") == "yes":
            self.set("eval.precise_bn", 3)
        if self.at("init") == "other":
            self.set("model.init", self.dice.choice(("xavier", "normal")))
        if self.at("precision") == "bf16":
            self.set("train.precision", "bf16")
            self.set("debug.emulate_bf16", True)

    def layers(self):
        active = self.dice.choice(("relu", "tanh", "gelu", "silu"))
        norm = {"none": [], "batch": ["batch_norm"], "layer": ["layer_norm"]}[self.at("norm")]
        dropout = ["dropout(0.2)"] if self.at("dropout") == "yes" else []
        layers = ["conv2d(3, 3, padding=1)", *norm, active, "flatten"] if self.at("image") == "yes" else []
        last = f"dense({self.outputs})"
        if self.ensemble:
            block = ["tabm_dense(8)", active]
            return ["scale", "tabm(3)", *block, *dropout, *block, f"tabm_heads({self.outputs})"]
        if self.at("hidden") == "none":
            return [*layers, *([] if layers else norm), *dropout, last]
        block = ["dense(6)", *norm, active]
        if self.at("hidden") == "blocks":
            text = self.dice.choice(("residual(dense(6) {0} dense(6))", "concat(dense(4) | dense(3) {0})",
                                     "wide_deep(dense(6) | dense(4) {0} dense(6))"))
            block = [text.format(active), *norm, active]
        layers += [*block, *dropout]
        for ties in range({"none": 0, "one": 1, "two": 2}[self.at("ties")]):
            layers += ["dense(6)", active] if ties else ["dense(6)", active, "dense(6)", active]
        tied = [i for i, layer in enumerate(layers) if layer == "dense(6)"][-2:] if self.at("ties") != "none" else []
        if self.at("ties") == "one":
            tied = tied[-1:]
        for owner in tied:
            layers += [f"dense(6, tie={owner})", active]
        return [*layers, last]

    def plan_steps(self):
        dice = self.dice
        self.set("run.seed", dice.randrange(1000))
        self.set("run.log_every", dice.choice((1, 4)))
        names = {"sgd": ("sgd",), "adam": ("adam", "adamw", "nadam", "lamb"), "other": ("adagrad", "rmsprop", "lion", "adafactor", "muon")}
        name = dice.choice(names[self.at("optimizer")])
        self.set("train.optimizer", name)
        self.set("train.lr", 0.05 if name == "sgd" else 0.01)
        if name == "sgd" and dice.random() < 0.5:
            self.set("train.momentum", 0.9)
            self.set("train.nesterov", dice.random() < 0.5)
        if self.at("weight_decay") == "yes":
            self.set("train.weight_decay", 0.01)
        if self.at("clip") == "norm":
            self.set("train.clip_norm", 0.5)
        if self.at("clip") == "value":
            self.set("train.clip_value", 0.05)
        if self.at("multipliers") == "yes":
            self.set("train.lr_multiplier", ["*.weight: 0.5", "*.bias: 2"])
        if self.at("lr_scaling") == "yes":
            self.set("train.lr_scaling", dice.choice(("linear", "sqrt")))
            self.set("train.lr_reference_batch", 16)
        self.plan_schedule()
        self.set("train.replicas", self.replicas)
        self.set("train.global_batch", self.batch)
        self.set("train.accumulate", self.accumulate)
        if self.at("length") == "epochs":
            self.set("train.epochs", dice.choice((2, 2.5)))
        elif self.at("length") == "steps":
            self.set("train.steps", dice.randrange(10, 25))
        else:
            self.set("train.samples", min(15 * self.batch + 3, 600))
        if self.at("tail") == "drop":
            self.set("train.tail", "drop")
        if self.at("average") == "ema":
            self.set("train.ema", 0.8)
        if self.at("average") == "swa":
            self.set("train.swa_from", "1 steps")
        if self.at("bad_steps") == "skipped":
            self.keys.update({"train.on_nan": "skip", "debug.nan_replica": 0, "debug.nan_step": 2})

    def plan_schedule(self):
        schedule = self.at("schedule")
        if schedule == "falling":
            schedule = self.dice.choice(("step", "milestones", "exponential", "polynomial", "cosine", "one_cycle", "wsd", "inverse_sqrt"))
            if schedule == "one_cycle" and self.at("warmup") == "yes" or schedule == "inverse_sqrt" and self.at("warmup") == "no":
                schedule = "cosine"
        self.set("train.schedule", schedule)
        if schedule in ("step", "exponential"):
            self.set("train.decay_every", "5 steps")
        if schedule == "milestones":
            self.set("train.milestones", ["4 steps", "1 epoch"])
        if schedule == "plateau":
            self.set("train.plateau_patience", "1 evaluations")
        if self.at("warmup") == "yes":
            self.set("train.warmup", "3 steps")

    # What is measured, and how the work is shared.

    def plan_evaluation(self):
        metrics = self.metrics()
        if self.at("metrics") == "all":
            self.set("eval.metrics", list(metrics))
        if self.at("metrics") == "one" or (self.at("best_by") == "metric" and self.at("metrics") == "usual"):
            metrics = [self.dice.choice(metrics)]
            self.set("eval.metrics", metrics)
        if self.at("best_by") == "metric":
            self.set("train.early_stopping_metric", self.dice.choice(metrics))
        if self.at("keep") == "last":
            self.set("train.keep", "last")
        if self.at("early_stopping") == "yes":
            self.set("train.early_stopping", "2 evaluations")
        if self.at("calibrate") == "yes":
            self.set("train.calibrate", "temperature")
        if self.at("threshold") == "measure":
            self.set("eval.threshold", self.dice.choice(("f1", "balanced_accuracy", "youden")))
        if self.at("threshold") == "number":
            self.set("eval.threshold", 0.3)
        self.set("eval.every", {"epoch": "1 epoch", "steps": "4 steps", "never": "never"}[self.at("evaluations")])
        if self.at("at_start") == "yes":
            self.set("eval.at_start", True)
        if self.at("eval_batch") == "small":
            self.set("eval.batch", 7)
        if self.at("audit") == "yes":
            self.set("data.audit", True)
        if self.at("report") == "tensorboard":
            self.set("report.tensorboard", True)
            self.set("report.histograms", True)
        if self.at("report") == "trace":
            self.set("report.trace", "first 2, last 2 steps")

    def plan_sharing(self):
        if self.strategy:
            self.set("distribute.strategy", self.strategy)
        if self.alone:
            self.set("distribute.mode", self.dice.choice(("async", "bounded")))
        if self.strategy == "local_sgd":
            self.set("distribute.average_every", self.dice.choice((1, 3)))
            self.set("distribute.average_state", self.dice.random() < 0.5)
        if self.at("algorithm") == "other":
            native = self.at("reduction") == "native" and self.at("compression") == "fp32" and self.at("stages") == "1"
            self.set("distribute.algorithm", self.dice.choice(("mpi", "shared") + ("ring", "rabenseifner") * native))
        self.set("distribute.reduction", self.at("reduction"))
        if self.at("compression") == "lossy":
            self.set("distribute.compression", self.dice.choice(("bf16", "fp16", "top_k")))
        if self.at("stages") == "2":
            self.set("distribute.stages", 2)
            self.set("distribute.schedule", self.at("pipeline"))
        if self.threads > 1:
            self.set("train.threads", self.threads)
        if self.at("checkpoints") == "many":
            self.set("checkpoint.every", "3 steps")
            self.set("checkpoint.wait", True)
        self.set("checkpoint.keep", 2)

    def write_config(self):
        sections = {}
        for key, value in self.keys.items():
            section, name = key.split(".", 1)
            sections.setdefault(section, []).append(f"{name} = {toml(value)}")
        text = "\n\n".join("\n".join([f"[{section}]", *sections[section]]) for section in sorted(sections))
        self.write("config.toml", (text + "\n").encode())

    # The commands.

    def launch(self, ranks, words):
        return (f"$MPIEXEC -np {ranks} " if ranks > 1 else "") + f"$TRAINER {words}"

    def train_command(self, ranks, flags=""):
        words = "--config config.toml --run.dir run --run.progress none" + flags
        command = self.at("command")
        if command == "cv":
            words = f"cv {words} --folds 3" + self.flag_of_folds()
        if command == "sweep":
            words = f"sweep {words} --grid train.lr=0.01,0.03"
        if command == "halving":
            words = f"sweep {words} --grid train.lr=0.01,0.02,0.04 --halving 2"
        if command != "train":
            words += f" --ranks-per-trial {self.ranks_of_trial}"
        return self.launch(ranks, words)

    def flag_of_folds(self):
        return {"record": "", "class": " --stratified"}.get(self.folds) if self.folds != "group" else f" --group {self.named('group')}"

    def write_commands(self):
        commands = []
        if self.at("resume") != "no":
            # The first try fails on purpose, and the same command goes on.
            failing = self.train_command(self.ranks, " --debug.fail_rank 0 --debug.fail_step 4")
            commands.append(f"! {failing} >failing.console 2>&1")
        commands.append(f"{self.train_command(self.other_ranks)} >run.console 2>&1")
        best = "run/$(grep -o 'best: trial-[0-9]*' run.console | cut -d ' ' -f 2)"
        model = {"cv": "run/fold-0001", "sweep": "run/trial-0001", "halving": best}.get(self.at("command"), "run")
        look = self.at("look")
        if look == "eval":
            commands.append(f"$TRAINER eval --model {model} --json eval.json >eval.console 2>&1")
        if look == "predict":
            path = self.keys.get("data.test", self.keys["data.train"])
            commands.append(self.launch(2, f"predict --model {model} --input {quoted(path)} --output predictions.csv >predict.console 2>&1"))
        if look == "importance":
            commands.append(f"$TRAINER importance --model {model} --repeats 2 --csv importance.csv >importance.console 2>&1")
        text = "#!/usr/bin/env bash\n# TRAINER=... MPIEXEC=... commands.sh, in its own directory\nset -eu\n" + "\n".join(commands) + "\n"
        self.write("commands.sh", text.encode())


def npy(shape, values, kind):
    """The content of a .npy file (format 1.0)."""
    text = ",".join(str(size) for size in shape) + ("," if len(shape) == 1 else "")
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({text}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    letter = {"f4": "f", "i8": "q"}[kind]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{letter}", *values)


def idx(shape, values, kind):
    """The content of an IDX file: whole numbers as bytes, all others as floats."""
    whole = kind == "i8"
    head = struct.pack(">HBB", 0, 8 if whole else 13, len(shape)) + struct.pack(f">{len(shape)}I", *shape)
    return head + struct.pack(f">{len(values)}{'B' if whole else 'f'}", *values)
