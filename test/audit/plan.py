"""plan.txt: the layers and the rows of the plan."""

import re

import numpy as np

from .forward import layers_of
from .said import human_bytes
from .summary import length_of

SLOTS = {"adam": 2, "adamw": 2, "lamb": 2, "nadam": 2, "adagrad": 1, "lion": 1}
BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def rows_of(text):
    """Names and values of the plan; of names that stand twice the first."""
    rows = {}
    for line in text.splitlines():
        if found := re.fullmatch(r"( {0,2}[a-zA-Z][\w ,:-]*?)  +(\S.*)", line):
            rows.setdefault(found[1], found[2])
    return rows


def steps_text(length):
    text = f"{length.per_epoch:,}"
    if length.asynchronous or length.last == 0:
        return text
    return f"{text} (rounded down, {length.positions - length.epoch_samples:,} dropped)" if length.drop else f"{text} (rounded up, last: {length.last:,})"


def check_plan(sheet, run):
    text = run.text("plan.txt")
    rows = rows_of(text[text.find("\n\n") :])
    length, place = length_of(run), "plan.txt: "
    least = length.batch // length.replicas
    right = {
        "replicas": f"{length.replicas:,}",
        "threads per rank": f"{run.config.get('train.threads', 1):,}",
        "data mode": "full" if length.full else "shard",
        "rows": f"{length.rows:,}",
        "global batch": f"{length.batch:,}",
        "batch per replica": f"{least:,}" if length.batch % length.replicas == 0 else f"{least} or {least + 1}",
        "steps per epoch": steps_text(length),
        "samples per epoch": f"{length.epoch_samples:,}",
        "steps": f"{length.steps:,}",
        "samples": f"{length.samples(length.steps):,}",
        "precision": run.config.get("train.precision", "fp32"),
    }
    parameters = sum(t.size for name, t in run.tensors.items() if "running_" not in name and "num_batches" not in name)
    right["parameters"] = f"{parameters:,}"
    right["model file"] = human_bytes((run.directory / "model.safetensors").stat().st_size)
    stored = 4 * sum(t.size for t in run.tensors.values())
    for name, value in right.items():
        fault = {"plan-without-header": human_bytes(stored)} if name == "model file" else None
        sheet.equal(place + name, rows.get(name), value, fault)
    sheet.digits(place + "epochs", rows.get("epochs", ""), length.epochs(length.steps))
    sheet.digits(place + "each example seen", rows.get("each example seen", "").removesuffix(" times"), length.samples(length.steps) / length.rows)
    check_rates(sheet, place, rows, length)
    check_memory(sheet, run, place, rows, parameters, stored)
    check_layers(sheet, run, text)


def check_rates(sheet, place, rows, length):
    rates = [length.rate(step) for step in range(length.steps)] if length.steps <= 100000 else None
    if rates is None:
        return
    # The peak is the rate that train.lr and its scaling give, whether a step has just that or not.
    for name, value in (("start", rates[0]), ("peak", length.peak()), ("end", rates[-1])):
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
    sheet.check(place + "weights", size(rows["  weights"]), 4 * parameters, lambda a, b: a >= b - slack(rows["  weights"]))
    slots = SLOTS.get(run.config.get("train.optimizer", "sgd"))
    plain = length_of(run).ranks == 1 and not run.config.get("train.ema") and not run.config.get("train.swa_from")
    if slots and plain and run.config.get("distribute.strategy") in ("allreduce", "central_storage", "auto"):
        sheet.equal(place + "checkpoint", rows["checkpoint"], human_bytes(stored + 4 * slots * parameters))
        state = rows["  optimizer state"]
        sheet.check(place + "optimizer state", size(state), 4 * slots * parameters, lambda a, b: b - slack(state) <= a <= b + slots * gaps + slack(state))


def check_layers(sheet, run, text):
    """Of a model of dense layers: outputs, parameters, additions and multiplications, activations."""
    layers = layers_of(run.config.get("model.layers") or "")
    if not layers or any(len(words) > 1 for name, words in layers if name == "dense"):
        return
    flops = parameters = 0
    width = None
    for number, (name, _) in enumerate(layers):
        row = re.search(rf"^{number} {re.escape(name)}\S*(?: \S+)*?  +(\d[\d,]*) +([\d,]+) +([\d,]+) +(.*)$", text, re.M)
        if not row:
            return
        shown = [int(row[i].replace(",", "")) for i in (1, 2, 3)]
        if name == "dense":
            w = run.tensors[f"{number}.weight"]
            bias = run.tensors.get(f"{number}.bias", np.zeros(0))
            width = w.shape[0]
            right = [width, w.size + bias.size, 2 * w.size]
            sheet.equal(f"plan.txt: layer {number}", shown, right)
        elif width is not None:
            sheet.equal(f"plan.txt: layer {number}", shown[:2], [width, 0])
        flops += shown[2]
        parameters += shown[1]
    total = re.search(r"^total +([\d,]+) +([\d,]+)", text, re.M)
    sheet.equal("plan.txt: total of the layers", [int(total[i].replace(",", "")) for i in (1, 2)], [parameters, flops])
    shown = re.search(r"^FLOPs per sample +([\d,]+)", text, re.M)
    sheet.equal("plan.txt: FLOPs per sample", int(shown[1].replace(",", "")), 3 * flops)
