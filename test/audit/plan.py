"""The plan in run.json: its figures, the rows of its table, the layers and the stages of the model."""

import re

import numpy as np

from .forward import parts_of_input, window_of
from .length import length_of
from .outputs import scaling_of
from .report import human_bytes

SLOTS = {"adam": 2, "adamw": 2, "lamb": 2, "nadam": 2, "adagrad": 1, "lion": 1}
UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
MEMORY = ("weights", "optimizer state", "gradients, exchange", "activations", "training data", "evaluation",
          "copy for checkpoints", "program and MPI")  # fmt: skip
ELEMENTWISE = ("relu", "tanh", "sigmoid", "leaky_relu", "elu", "gelu", "silu", "softplus", "identity")
OVER_TIME = ("conv1d", "maxpool1d", "avgpool1d", "last", "mean_over_time", "max_over_time")


class Rows:
    """Values of the plan by the names of their rows; of names that stand twice the first."""

    def __init__(self, sheet, table):
        self.sheet, self.rows, self.seen = sheet, {}, {"strategy"}
        for name, value in table:
            self.rows.setdefault(name.rstrip(), value)

    def get(self, name, default=""):
        self.seen.add(name)
        return self.rows.get(name, default)

    __getitem__ = get

    def unseen(self):
        return sorted(name for name, value in self.rows.items() if name not in self.seen and re.search(r"\d", value))


def size_of(text):
    return float(text.split()[0]) * UNITS[text.split()[1]]


def slack_of(text):
    """How far a size may be off as it is printed."""
    return 0.0501 * UNITS[text.split()[1]] if text.split()[1] != "B" else 0.5


def whole(text):
    return int(text.replace(",", ""))


def steps_text(length):
    text = f"{length.per_epoch:,}"
    if length.asynchronous or length.last == 0:
        return text
    if length.drop:
        return f"{text} (rounded down, {length.positions - length.epoch_samples:,} dropped)"
    return f"{text} (rounded up, last: {length.last:,})"


def check_plan(sheet, run):
    plan, length, place = run.record["plan"], length_of(run), "run.json: plan."
    check_figures(sheet, place, plan, length)
    rows, place = Rows(sheet, plan["table"]), place + "table: "
    least, stages = length.batch // length.replicas, run.config.get("distribute.stages", 1)
    parameters = sum(t.size for name, t in run.tensors.items() if "running_" not in name and "num_batches" not in name)
    stored = 4 * sum(t.size for t in run.tensors.values())
    right = {
        "ranks": f"{length.ranks:,}",
        "  of them servers": f"{length.servers:,}" if length.servers else "",
        "  stages of a group": f"{stages:,}" if stages > 1 else "",
        "replicas": f"{length.replicas:,}",
        "threads per rank": f"{run.config.get('train.threads', 1):,}",
        "data mode": "full" if length.full else "shard",
        "rows": f"{length.rows:,}",
        "global batch": "" if length.one_each else f"{length.batch:,}",
        "batch per replica": f"{least:,}" if length.batch % length.replicas == 0 else f"{least} or {least + 1}",
        "steps per epoch": steps_text(length),
        "samples per epoch": f"{length.epoch_samples:,}",
        "steps": f"{length.steps:,}",
        "samples": f"{length.samples(length.steps):,}",
        "batch norm": batch_norm_text(run, length) or rows.get("batch norm"),
        "precision": run.config.get("train.precision", "fp32"),
        "parameters": f"{parameters:,}",
        "model file": human_bytes((run.directory / "model.safetensors").stat().st_size),
    }
    for name, value in right.items():
        sheet.equal(place + name, rows.get(name), value)
    sheet.equal(place[:-7] + "parameters", plan["parameters"], parameters)
    sheet.digits(place + "epochs", rows.get("epochs"), length.epochs(length.steps))
    seen = rows.get("each example seen").split(" time")[0]
    sheet.digits(place + "each example seen", seen, length.samples(length.steps) / length.rows)
    check_exchange(sheet, run, place, rows, length, parameters)
    check_rates(sheet, place, rows, length)
    check_memory(sheet, run, place, rows, parameters, stored)
    flops = check_layers(sheet, run, plan["model"])
    sheet.equal(place + "FLOPs per sample", whole(rows["FLOPs per sample"]), 3 * flops)
    check_stages(sheet, run, plan["stages"], stages, parameters, flops)
    for name in rows.unseen():
        sheet.figures[f"plan: {name.strip()}"] = rows.rows[name]
    # The sentences say these figures, as unit tests hold; here only that a file for people has the same plan.
    lines = [re.sub(r" +", " ", line).strip() for line in run.text("plan.txt").splitlines()]
    rows = plan["table"] + plan["model"] + plan["stages"]
    said = [*plan["sentences"], *(" ".join(" ".join(row).split()) for row in rows)]
    said = [line.strip() for text in said for line in text.splitlines()]
    sheet.equal("plan.txt: lines that run.json does not have", sorted((set(lines) ^ set(said)) - {""}), [])


def check_figures(sheet, place, plan, length):
    right = {name: getattr(length, name) for name in ("ranks", "servers", "rows", "steps", "epoch_samples")}
    right |= {"samples": length.samples(length.steps), "global_batch": length.batch}
    for name, value in right.items():
        sheet.equal(place + name, plan[name], value)
    sheet.number(place + "epochs", plan["epochs"], length.epochs(length.steps), relative=1e-9)
    sheet.number(place + "times_each_seen", plan["times_each_seen"], plan["samples"] / length.rows, relative=1e-9)


def batch_norm_text(run, length):
    """How many samples are normalised together; nothing without batch norm."""
    if "batch_norm" not in (run.config.get("model.layers") or ""):
        return ""
    mode = run.config.get("model.batch_norm", "local")
    least = length.batch // length.replicas
    least //= max(min(run.config.get("train.accumulate", 1), least), 1)
    together = {"local": 1, "averaged": 1, "sync": length.replicas}.get(mode)
    together = together or min(int(re.search(r"\d+", mode)[0]), length.replicas)
    return f"{mode} ({least * together:,} samples)"


def check_exchange(sheet, run, place, rows, length, parameters):
    """On one host gradients are summed in shared memory, unless they are compressed or have owners."""
    get = run.config.get
    shared = get("distribute.algorithm", "auto") in ("auto", "shared")
    shared = shared and get("distribute.compression", "fp32") == "fp32"
    one_host = len(set(run.record["launch"]["hosts"])) == 1 and shared
    if length.ranks == 1 or one_host and get("distribute.strategy") in ("allreduce", "central_storage", "local_sgd"):
        sheet.equal(place + "sent per step and rank", rows["sent per step and rank"].removesuffix(" on average"), "0 B")
    if 4 * parameters <= 1024 * get("distribute.bucket_kib", 1024):
        sheet.equal(place + "buckets", rows["buckets"], "1")


def check_rates(sheet, place, rows, length):
    rates = [length.rate(step) for step in range(length.steps)]
    for name, value in (("start", rates[0]), ("peak", max(rates)), ("end", rates[-1])):
        sheet.digits(f"{place}learning rate: {name}", rows[f"learning rate: {name}"].removeprefix("at most "), value)


def check_memory(sheet, run, place, rows, parameters, stored):
    total, shown = rows["memory per rank"], [rows["  " + part] for part in MEMORY]
    slack = slack_of(total) + sum(map(slack_of, shown))
    sheet.near(place + "memory per rank", size_of(total), sum(map(size_of, shown)), slack)
    # Tensors begin at multiples of 64 bytes, so the gradient has gaps.
    gaps = 128 * len(run.tensors)
    between = lambda text, gaps: lambda a, b: b - slack_of(text) <= a <= b + gaps + slack_of(text)
    sheet.check(place + "gradient", size_of(rows["gradient"]), 4 * parameters, between(rows["gradient"], gaps))
    # A rank has the weights of its stage.
    least = 4 * parameters if run.config.get("distribute.stages", 1) == 1 else 0
    sheet.check(place + "weights", size_of(rows["  weights"]), least, lambda a, b: a >= b - slack_of(rows["  weights"]))
    optimizer, get = run.config.get("train.optimizer", "sgd"), run.config.get
    slots = SLOTS.get(optimizer, bool(get("train.momentum")) if optimizer == "sgd" else None)
    averages = bool(get("train.ema")) + bool(get("train.swa_from"))
    one = get("distribute.strategy") in ("allreduce", "central_storage", "auto") and length_of(run).ranks == 1
    if slots is None or not one:
        return
    sheet.equal(place + "checkpoint", rows["checkpoint"], human_bytes(stored + 4 * (slots + averages) * parameters))
    if slots and not averages:
        state = rows["  optimizer state"]
        sheet.check(place + "optimizer state", size_of(state), 4 * slots * parameters, between(state, slots * gaps))


def check_stages(sheet, run, table, stages, parameters, flops):
    """What each stage has of the model."""
    rows, place = table[1:], "run.json: plan.stages: "
    sheet.equal(place + "stages", [int(row[0]) for row in rows], list(range(stages)) if stages > 1 else [])
    if rows:
        sheet.equal(place + "parameters", sum(whole(row[2]) for row in rows), parameters)
        sheet.equal(place + "FLOPs", sum(whole(row[3]) for row in rows), 3 * flops)


def positions_behind(name, words, positions):
    """How many a window takes that moves over a sequence of so many."""
    width, stride, dilation, padding = window_of(words[name == "conv1d" :])
    stride = stride or (1 if name == "conv1d" else width)
    if padding in ("same", "causal"):
        return width, -(-positions // stride)
    both = 0 if padding == "valid" else 2 * int(padding)
    return width, (positions + both - (width - 1) * dilation - 1) // stride + 1


def layer_over_time(name, words, weight, before):
    """A layer that mixes the positions of a sequence: what comes out, operations, and bytes that it keeps."""
    positions, channels = before
    if name in ("conv1d", "maxpool1d", "avgpool1d"):
        width, positions = positions_behind(name, words, positions)
        channels = weight.shape[0] if name == "conv1d" else channels
        operations = positions * (2 * weight.size if name == "conv1d" else width * channels)
        shape = [positions, channels]
    else:
        operations, shape = 0 if name == "last" else positions * channels, [channels]
    return shape, operations, [4 * (1 + name.startswith("max")) * int(np.prod(shape))]


def numbers_in(shape):
    return [int(each) for each in re.findall(r"\d+", shape)]


def right_of_layer(run, name, words, mine, row, before, width):
    """Shape, operations and bytes that may be kept; None in the place of what is not known."""
    shown, size = numbers_in(row[1]), int(np.prod(numbers_in(row[1])))
    if name == "dense" and "weight" in mine:
        weight, parts = mine["weight"], parts_of_input(words.split(","))
        parts = before[0] if before else parts
        shape = [parts, len(weight)] if before else [parts * len(weight)]
        return shape, 2 * parts * weight.size, [4 * parts * len(weight)]
    if name in ("window_scale", "window_unscale"):
        kind, labels, window = scaling_of(run.config)
        pasts, standard = labels * window, kind == "standard"
        if name == "window_scale":
            return [run.sets["train"].features.shape[1]], (6 if standard else 1) * pasts, [4 * size]
        return [width or size], 4 * pasts + 2 * size if standard else size, [4 * size]
    if name in (*ELEMENTWISE, "dropout", "flatten", "batch_norm", "layer_norm"):
        operations = {"flatten": 0, "batch_norm": 3, "layer_norm": 8}.get(name, 1)
        # The output has memory of its own, or is in that of the input; dropout remembers what it drops.
        kept = [4 * size * copies for copies in ((1, 2) if name == "dropout" else (0, 1))]
        shape = shown if size == (width or size) else [width]
        return shape, operations * size, None if name in ("batch_norm", "layer_norm") else kept
    if name in OVER_TIME and before:
        return layer_over_time(name, words.replace(" ", "").split(","), mine.get("weight"), before)
    if name == "as_sequence":
        parts = numbers_in(words)[0]
        return [parts, (width or size) // parts], 0, [4 * size * ("order=channels" in words)]
    return None, None, None


def check_layers(sheet, run, table):
    """Of each layer its parameters; of models of dense layers and of sequences also operations and activations. Gives
    the operations of all of them."""
    first, *layers, total = table[1:]
    sequence = " positions of " in first[1]
    # Where it is a sequence, [positions, channels] of what comes in.
    before, width = (numbers_in(first[1]), int(np.prod(numbers_in(first[1])))) if sequence else (None, None)
    for row in layers:
        path, text = row[0].split(" ", 1)
        name, words = re.fullmatch(r"(\w+)(?:\((.*)\))?.*", text).groups()
        place, words = f"run.json: plan.model: layer {path}", words or ""
        mine = {tensor.rpartition(".")[2]: t for tensor, t in run.tensors.items() if tensor.rpartition(".")[0] == path}
        trained = [t for kind, t in mine.items() if "running_" not in kind and "num_batches" not in kind]
        if "tie=" not in words:
            sheet.equal(place + ": parameters", whole(row[2]), sum(t.size for t in trained))
        shape, operations, kept = right_of_layer(run, name, words, mine, row, before, width)
        if shape is not None:
            sheet.equal(place, [numbers_in(row[1]), whole(row[3])], [shape, operations])
        else:
            sheet.figures["plan: operations of a layer"] = row
        if kept is not None:
            sheet.check(place + ": activations", row[4], [human_bytes(each) for each in kept], lambda a, b: a in b)
        else:
            sheet.figures["plan: activations of a layer"] = row
        width = None if shape is None else int(np.prod(shape))
        # A chain of a composite begins with what stood before all of its chains.
        outer = " positions " in row[1] and ("." not in path or run.sets.texts_data)
        before = numbers_in(row[1]) if outer else None
    train = run.sets["train"]
    if train is not None and train.features is not None:
        shape = train.features.shape[1:]
        right = list(shape) if sequence else [int(np.prod(shape))]
        shown = numbers_in(first[1])
        sheet.equal("run.json: plan.model: features", shown if sequence else [int(np.prod(shown))], right)
        positions = run.config.get("data.record") == "sequence" or bool(train.text)
        sheet.equal("run.json: plan.model: has positions", sequence, positions)
    flops, place = sum(whole(row[3]) for row in layers), "run.json: plan.model: total"
    sheet.equal(place, [whole(total[2]), whole(total[3])], [sum(whole(row[2]) for row in layers), flops])
    slack = slack_of(total[4]) + sum(slack_of(row[4]) for row in layers)
    sheet.near(place + ": activations", size_of(total[4]), sum(size_of(row[4]) for row in layers), slack)
    return flops
