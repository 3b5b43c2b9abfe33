"""Steps that a run counts apart: those left out, and those in which batch norm had one value to normalise."""

import re

from .summary import length_of


def check_counted_steps(sheet, run):
    place, summary = "summary.json: ", run.summary
    sheet.equal(place + "skipped_steps", summary.get("skipped_steps", 0), len(left_out(run)))
    shown, length = summary.get("single_value_steps", 0), length_of(run)
    if length.asynchronous:
        # The samples of a worker's steps depend on who was first.
        right = length.steps if has_norm(run.config.get("model.layers") or "") else 0
        sheet.check(place + "single_value_steps", shown, right, lambda a, b: a <= b)
        return
    steps = set(range(summary["steps"])) - {step - 1 for step in left_out(run)}
    sheet.equal(place + "single_value_steps", shown, sum(single_value(run.config, length, step) for step in steps))


def left_out(run):
    """The steps that the log says were left out, each once: those after a checkpoint may be made twice."""
    return {int(found[1].replace(",", "")) for line in run.log if (found := re.search(r" warning step ([\d,]+) is left out: ", line))}


def has_norm(layers):
    """Whether batch norm has one value of a sample to normalise: that of images has one for each pixel."""
    return "batch_norm" in (layers.partition("flatten")[2] if "conv2d" in layers else layers)


def parts_of(count, parts):
    """As even as can be, the larger ones first."""
    return [count // parts + (i < count % parts) for i in range(parts)]


def single_value(config, length, step):
    """Whether a replica normalises one sample in a step (configs/guides/batch-norm.md)."""
    if not has_norm(config.get("model.layers") or ""):
        return False
    mode = config.get("model.batch_norm", "local")
    scope = length.replicas if mode == "sync" else int(mode[6:-1]) if mode.startswith("group(") else 1
    rows = parts_of(length.samples(step + 1) - length.samples(step), length.replicas)
    accumulate = config.get("train.accumulate", 1)
    for begin in range(0, len(rows), scope):
        together = [0] * accumulate
        for own in rows[begin : begin + scope]:
            for part, samples in enumerate(parts_of(own, accumulate if scope > 1 else max(min(accumulate, own), 1))):
                together[part] += samples
        if 1 in together:
            return True
    return False
