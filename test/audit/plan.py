"""plan.txt: the layers and the rows of the plan."""

import re

import numpy as np

from .said import human_bytes
from .report import number_of
from .forward import parts_of_input, window_of
from .log_data import first_averaged
from .outputs import scaling_of
from .steps import replicas_with_one
from .summary import length_of
from .texts import Text, taken

SLOTS = {"adam": 2, "adamw": 2, "lamb": 2, "nadam": 2, "adagrad": 1, "lion": 1}
BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


ELEMENTWISE = ("relu", "tanh", "sigmoid", "leaky_relu", "elu", "gelu", "silu", "softplus", "identity")


class Rows:
    """Values of the plan by the names of their rows; of names that stand twice the first."""

    def __init__(self, text):
        self.text, self.begin = text, text.find("\n\n")

    def get(self, name, default=None):
        found = taken(re.compile(rf"^{name}  +(\S.*)$", re.M).search(self.text, self.begin))
        return found[1] if found else default

    def __getitem__(self, name):
        return self.get(name)


def steps_text(length):
    text = f"{length.per_epoch:,}"
    if length.asynchronous or length.last == 0:
        return text
    return f"{text} (rounded down, {length.positions - length.epoch_samples:,} dropped)" if length.drop else f"{text} (rounded up, last: {length.last:,})"


def check_plan(sheet, run):
    text = Text(sheet, "plan.txt", run.text("plan.txt"))
    text.ignore(r"^strategy +.*|zero1|bf16|fp32|\(S - 1\) / \((?:v )?m \+ S - 1\)|\b\d+\.(?:\w+\.)*\w+(?=[,.])")
    rows = Rows(text)
    length, place = length_of(run), "plan.txt: "
    least = length.batch // length.replicas
    stages = run.config.get("distribute.stages", 1)
    right = {
        "ranks": f"{length.ranks:,}",
        "  of them servers": f"{length.servers:,}" if length.servers else None,
        "  stages of a group": f"{stages:,}" if stages > 1 else None,
        "replicas": f"{length.replicas:,}",
        "threads per rank": f"{run.config.get('train.threads', 1):,}",
        "data mode": "full" if length.full else "shard",
        "rows": f"{length.rows:,}",
        "global batch": None if length.one_each else f"{length.batch:,}",
        "batch per replica": f"{least:,}" if length.batch % length.replicas == 0 else f"{least} or {least + 1}",
        "steps per epoch": steps_text(length),
        "samples per epoch": f"{length.epoch_samples:,}",
        "steps": f"{length.steps:,}",
        "samples": f"{length.samples(length.steps):,}",
        "batch norm": batch_norm_text(run, length),
        "precision": run.config.get("train.precision", "fp32"),
    }
    parameters = sum(t.size for name, t in run.tensors.items() if "running_" not in name and "num_batches" not in name)
    right["parameters"] = f"{parameters:,}"
    right["model file"] = human_bytes((run.directory / "model.safetensors").stat().st_size)
    stored = 4 * sum(t.size for t in run.tensors.values())
    for name, value in right.items():
        if name == "batch norm" and value is None:
            continue
        sheet.equal(place + name, rows.get(name), value)
    sheet.digits(place + "epochs", rows.get("epochs", ""), length.epochs(length.steps))
    sheet.digits(place + "each example seen", rows.get("each example seen", "").split(" time")[0], length.samples(length.steps) / length.rows)
    # On one host gradients are summed in shared memory, unless they are compressed or have owners.
    shared = run.config.get("distribute.algorithm", "auto") in ("auto", "shared") and run.config.get("distribute.compression", "fp32") == "fp32"
    hosts = len(set(re.findall(r"^rank \d+: host (\S+?),", run.text("ranks.txt"), re.M)))
    if length.ranks == 1 or hosts == 1 and run.config["distribute.strategy"] in ("allreduce", "central_storage", "local_sgd") and shared:
        sheet.equal(place + "sent per step and rank", rows.get("sent per step and rank", "").removesuffix(" on average"), "0 B")
    if 4 * parameters <= 1024 * run.config.get("distribute.bucket_kib", 1024):
        sheet.equal(place + "buckets", rows["buckets"], "1")
    check_rates(sheet, place, rows, length)
    check_sentences(sheet, run, place, text, length)
    check_stages(sheet, run, place, text, stages, parameters)
    check_memory(sheet, run, place, rows, parameters, stored)
    check_layers(sheet, run, text)


def batch_norm_text(run, length):
    """How many samples are normalised together."""
    if "batch_norm" not in (run.config.get("model.layers") or ""):
        return None
    mode = run.config.get("model.batch_norm", "local")
    least = length.batch // length.replicas
    least //= max(min(run.config.get("train.accumulate", 1), least), 1)
    together = {"local": 1, "averaged": 1, "sync": length.replicas}.get(mode) or min(int(re.search(r"\d+", mode)[0]), length.replicas)
    return f"{mode} ({least * together:,} samples)"


def check_rates(sheet, place, rows, length):
    rates = [length.rate(step) for step in range(length.steps)] if length.steps <= 100000 else None
    if rates is None:
        return
    for name, value in (("start", rates[0]), ("peak", max(rates)), ("end", rates[-1])):
        shown = rows.get(f"learning rate: {name}", "").removeprefix("at most ")
        sheet.digits(f"{place}learning rate: {name}", shown, value)


def check_memory(sheet, run, place, rows, parameters, stored):
    parts = ["weights", "optimizer state", "gradients, exchange", "activations", "training data", "evaluation", "copy for checkpoints"]
    size = lambda text: float(text.split()[0]) * BYTES[text.split()[1]]
    slack = lambda text: 0.0501 * BYTES[text.split()[1]] if text.split()[1] != "B" else 0.5
    total = rows["memory per rank"]
    shown = [rows["  " + part] for part in parts]
    sheet.check(place + "memory per rank", size(total), sum(map(size, shown)), lambda a, b: abs(a - b) <= slack(total) + sum(map(slack, shown)))
    # Tensors begin at multiples of 64 bytes, so the gradient has gaps.
    gaps = 128 * len(run.tensors)
    sheet.check(place + "gradient", size(rows["gradient"]), 4 * parameters, lambda a, b: b - slack(rows["gradient"]) <= a <= b + gaps + slack(rows["gradient"]))
    # A rank has the weights of its stage.
    whole = 4 * parameters if run.config.get("distribute.stages", 1) == 1 else 0
    sheet.check(place + "weights", size(rows["  weights"]), whole, lambda a, b: a >= b - slack(rows["  weights"]))
    optimizer = run.config.get("train.optimizer", "sgd")
    slots = SLOTS.get(optimizer, bool(run.config.get("train.momentum")) if optimizer == "sgd" else None)
    averages = bool(run.config.get("train.ema")) + bool(run.config.get("train.swa_from"))
    if slots is not None and length_of(run).ranks == 1 and run.config.get("distribute.strategy") in ("allreduce", "central_storage", "auto"):
        sheet.equal(place + "checkpoint", rows["checkpoint"], human_bytes(stored + 4 * (slots + averages) * parameters))
        if not slots or averages:
            return
        state = rows["  optimizer state"]
        sheet.check(place + "optimizer state", size(state), 4 * slots * parameters, lambda a, b: b - slack(state) <= a <= b + slots * gaps + slack(state))


def check_sentences(sheet, run, place, text, length):
    """What a step and an epoch are."""
    workers, replicas = length.ranks - length.servers, length.replicas
    samples = min(length.batch, length.epoch_samples)
    dropped = length.positions - length.epoch_samples if length.drop else 0
    forms = {
        r"the sum of the gradients of ([\d,]+) samples? over ([\d,]+) replicas?, divided by (?:([\d,]+)|the sum|the number of their positions)": (samples, replicas, samples),
        r"an update that each of the ([\d,]+) replicas? makes .*? its own samples \(([\d,]+) samples? in all\); after every ([\d,]+) of them": (replicas, samples, run.config.get("distribute.average_every")),
        r"^Each of the first ([\d,]+) steps?": (None,),
        r"An epoch is one pass over the ([\d,]+) rows? by all replicas together": (length.rows,),
        r"An epoch is one pass over the ([\d,]+) rows? by every one of the ([\d,]+) replicas?: ([\d,]+) samples?, each example ([\d,]+) times?": (length.rows, replicas, length.epoch_samples, replicas),
        r"An epoch is ([\d,]+) windows? that begin anywhere, over all replicas": (length.rows,),
        r"but for the ([\d,]+) dropped at its end": (dropped,),
        r"Each step is one worker's gradient of ([\d,]+) samples?": (length.step_batch,),
        r"no worker more than (\d+) ahead of the slowest": (run.config.get("distribute.staleness"),),
        r": (\d+) workers? with ([\d,]+) each in an epoch": (workers, length.batches),
        r"with the first (\d+) of (\d+) workers' gradients, ([\d,]+) of ([\d,]+) samples?": (workers - run.config.get("distribute.backup_workers", 0), workers, length.step_batch, length.batch),
        r"exponential average \(train\.ema (\S+)\)": (run.config.get("train.ema"),),
        r"uniform average from step ([\d,]+) on": (first_averaged(run) if run.config.get("train.swa_from") else None,),
        r"The learning rate is multiplied by (\S+) after each": (run.config.get("train.decay_factor"),),
    }
    for pattern, config in ((r"The run ends early after (.*?) without", "train.early_stopping"), (r"after each (.*?) without", "train.plateau_patience")):
        if found := taken(re.search(pattern, text)):
            sheet.equal(f"{place}{config}", found[1], run.config[config])
    if found := taken(re.search(r"The last step of each epoch gives (\d+) of ([\d,]+) replicas? a single value", text)):
        sheet.equal(place + "replicas of the last step", int(found[2]), replicas)
        sheet.equal(place + "replicas with a single value", int(found[1]), replicas_with_one(run.config, replicas, length.positions - length.last, length.positions))
    # Names of measures have digits, too.
    text.ignore(r"without a better \w+")
    factors = sorted({number_of(word.rpartition(":")[2]) for word in run.config.get("train.lr_multiplier") or [] if number_of(word.rpartition(":")[2])})
    shown = [taken(found)[1] for found in re.finditer(r"^Learning rate times (\S+):", text, re.M)]
    sheet.check(place + "learning rate times", sorted(map(number_of, shown)), factors, lambda a, b: set(a) <= set(b))
    for pattern, right in forms.items():
        if found := re.search(pattern, text, re.M):
            known = [(shown, value) for shown, value in zip(found.groups(), right) if shown is not None and value is not None]
            sheet.equal(f"{place}{pattern.split('(')[0][-40:]}", [number_of(shown) for shown, _ in known], [value for _, value in known])
            if None not in right:
                taken(found)


def check_stages(sheet, run, place, text, stages, parameters):
    """What each stage has of the model, and for how long it waits for others."""
    if stages == 1:
        return
    rows = list(re.finditer(r"^(\d+) +(.*?)  +([\d,]+)  +([\d,]+)  +(\S+ \w+)  +(\d+)  +(\S+ \w+)$", text[text.find("\nstage ") :], re.M))
    offset = text.find("\nstage ")
    for row in rows:
        for group in (1, 2, 3, 4):
            text.free[offset + row.start(group) : offset + row.end(group)] = bytes(len(row[group]))
    sheet.equal(place + "stages", [int(row[1]) for row in rows], list(range(stages)))
    sheet.equal(place + "parameters of all stages", sum(int(row[3].replace(",", "")) for row in rows), parameters)
    total = re.search(r"^total +([\d,]+) +([\d,]+)", text, re.M)
    sheet.equal(place + "FLOPs of all stages", sum(int(row[4].replace(",", "")) for row in rows), 3 * int(total[2].replace(",", "")))
    if found := taken(re.search(r"A group takes (\d+) micro-batch(?:es)? through (\d+) stages: each is idle for (\d+) % of forward and backward, by \(S - 1\) / \((?:v )?m \+ S - 1\)(?: with v = (\d+) chunks)?", text)):
        m, s, v = int(found[1]), int(found[2]), int(found[4] or 1)
        sheet.equal(place + "stages of a group in words", s, stages)
        sheet.printed(place + "idle share", found[3], 100 * (s - 1) / (v * m + s - 1))
        if more := taken(re.search(r"(\d+) replicas for each group, or train\.accumulate, would make it (\d+) %", text)):
            sheet.equal(place + "replicas that idle less", int(more[1]), max(s, 2 * m + s - 1))
            sheet.printed(place + "idle share of these", more[2], 100 * (s - 1) / (v * int(more[1]) + s - 1))
    if found := taken(re.search(r"There are (\d+) groups, whose ranks are (\w+) \(distribute\.placement\): the first one is ranks ([\d, ]+)\.", text)):
        groups, placement = length_of(run).ranks // stages, run.config.get("distribute.placement", "neighbours")
        sheet.equal(place + "groups", int(found[1]), groups)
        sheet.equal(place + "placement of groups", found[2], placement)
        first = [stage * groups if placement == "spread" else stage for stage in range(stages)]
        sheet.equal(place + "ranks of the first group", found[3], ", ".join(map(str, first)))
    if uneven := taken(re.search(r"The largest stage has (\S+) times the operations of the average", text)):
        flops = [int(row[4].replace(",", "")) for row in rows]
        sheet.printed(place + "largest stage", uneven[1], max(flops) * len(flops) / sum(flops))


def positions_behind(name, words, positions):
    """How many a window takes that moves over a sequence of so many."""
    width, stride, dilation, padding = window_of(words[name == "conv1d" :])
    stride = stride or (1 if name == "conv1d" else width)
    if padding in ("same", "causal"):
        return width, -(-positions // stride)
    both = 0 if padding == "valid" else 2 * int(padding)
    return width, (positions + both - (width - 1) * dilation - 1) // stride + 1


def check_over_time(sheet, place, row, words, weight, before):
    """A layer that mixes the positions of a sequence: what comes out, operations, and bytes that it keeps."""
    name, numbers = row[2].partition("(")[0], [int(each) for each in re.findall(r"\d+", row[3])]
    positions, channels = before
    if name in ("conv1d", "maxpool1d", "avgpool1d"):
        width, positions = positions_behind(name, words, positions)
        channels = weight.shape[0] if name == "conv1d" else channels
        operations = positions * (2 * weight.size if name == "conv1d" else width * channels)
        right = [positions, channels]
    else:
        operations, right = 0 if name == "last" else positions * channels, [channels]
    copies = 2 if name.startswith("max") else 1
    shown = [numbers, int(row[5].replace(",", "")), row[6]]
    sheet.equal(place, shown, [right, operations, human_bytes(4 * copies * int(np.prod(right)))])


def check_layers(sheet, run, text):
    """Of each layer its parameters; of models of dense layers and of sequences also operations and activations."""
    table = text[: text.find("\n\n")]
    rows = list(re.finditer(r"^(\S+) (\S.*?)  +(\S+|\d+ positions of \d+)  +([\d,]+)  +([\d,]+)  +(\S+ \w+)$", table, re.M))
    count = lambda row, group: int(row[group].replace(",", ""))
    take = lambda row, *groups: [text.free.__setitem__(slice(*row.span(group)), bytes(len(row[group]))) for group in groups]
    area = lambda shape: int(np.prod([int(each) for each in re.findall(r"\d+", shape)]))
    features = taken(re.search(r"^input +(\d+(?:x\d+)*|\d+ positions of \d+) *$", text, re.M))
    # Numbers, and where it is a sequence [positions, channels], of what comes in.
    before = before_all = [int(each) for each in re.findall(r"\d+", features[1])] if features and " positions " in features[1] else None
    width = int(np.prod(before)) if before else None
    for row in rows:
        place, (name, words) = f"plan.txt: layer {row[1]}", re.fullmatch(r"(\w+)(?:\((.*)\))?.*", row[2]).groups()
        mine = {path.rpartition(".")[2]: t for path, t in run.tensors.items() if path.rpartition(".")[0] == row[1]}
        trained = [t for kind, t in mine.items() if "running_" not in kind and "num_batches" not in kind]
        take(row, 1, 2)
        if "tie=" not in (words or ""):
            sheet.equal(place + ": parameters", count(row, 4), sum(t.size for t in trained))
            take(row, 4)
        size = area(row[3])
        if name == "dense" and "weight" in mine:
            parts = parts_of_input((words or "").split(","))
            parts = before[0] if before else parts
            width = parts * mine["weight"].shape[0]
            shape = f"{parts} positions of {len(mine['weight'])}" if before else str(width)
            sheet.equal(place, [row[3], count(row, 5), row[6]], [shape, 2 * parts * mine["weight"].size, human_bytes(4 * width)])
            take(row, 3, 5, 6)
        elif name in ("window_scale", "window_unscale"):
            kind, labels, window = scaling_of(run.config)
            pasts, scale, standard = labels * window, name == "window_scale", kind == "standard"
            right = (6 if standard else 1) * pasts if scale else (4 * pasts + 2 * size if standard else size)
            sheet.equal(place, [size, count(row, 5), row[6]], [run.sets["train"].features.shape[1] if scale else width or size, right, human_bytes(4 * size)])
            take(row, 3, 5, 6)
            width = size
        elif name in ELEMENTWISE + ("dropout", "flatten", "batch_norm", "layer_norm"):
            operations = {"flatten": 0, "batch_norm": 3, "layer_norm": 8}.get(name, 1)
            sheet.equal(place, [size, count(row, 5)], [width or size, operations * size])
            # The output has memory of its own, or is in that of the input; dropout remembers what it drops.
            kept = [4 * size * copies for copies in ((1, 2) if name == "dropout" else (0, 1))]
            if name not in ("batch_norm", "layer_norm"):
                sheet.check(place + ": activations", row[6], [human_bytes(each) for each in kept], lambda a, b: a in b)
                take(row, 6)
            take(row, 3, 5)
            width = size
        elif name in ("conv1d", "maxpool1d", "avgpool1d", "last", "mean_over_time", "max_over_time") and before:
            check_over_time(sheet, place, row, (words or "").replace(" ", "").split(","), mine.get("weight"), before)
            take(row, 3, 5, 6)
            width = size
        elif name == "as_sequence":
            order = "order=channels" in (words or "")
            sheet.equal(place, [row[3].split()[0], size, count(row, 5), row[6]],
                        [re.search(r"\d+", words)[0], width or size, 0, human_bytes(4 * size * order)])
            take(row, 3, 5, 6)
            width = size
        else:
            width = None
        # A chain of a composite begins with what stood before all of its chains.
        outer = "positions" in row[3] and ("." not in row[1] or run.sets.texts_data)
        before = [int(each) for each in re.findall(r"\d+", row[3])] if outer else None
    if not rows:
        return
    if features and (x := run.sets["train"].features if run.sets["train"] is not None else None) is not None:
        right = f"{x.shape[1]} positions of {x.shape[2]}" if "sequence" in (run.config.get("data.record"), run.sets["train"].text and "sequence") else int(np.prod(x.shape[1:]))
        sheet.equal("plan.txt: features", features[1] if before_all else area(features[1]), right)
    total = taken(re.search(r"^total +([\d,]+) +([\d,]+) +(\S+ \w+)", text, re.M))
    flops = sum(count(row, 5) for row in rows)
    sheet.equal("plan.txt: total of the layers", [count(total, i) for i in (1, 2)], [sum(count(row, 4) for row in rows), flops])
    size = lambda shown: float(shown.split()[0]) * BYTES[shown.split()[1]]
    slack = lambda shown: 0.0501 * BYTES[shown.split()[1]] if shown.split()[1] != "B" else 0
    sheet.check("plan.txt: activations of all layers", size(total[3]), sum(size(row[6]) for row in rows), lambda a, b: abs(a - b) <= slack(total[3]) + sum(slack(row[6]) for row in rows))
    shown = taken(re.search(r"^FLOPs per sample +([\d,]+)", text, re.M))
    sheet.equal("plan.txt: FLOPs per sample", count(shown, 1), 3 * flops)
