"""Steps that a run counts apart: those left out, and those in which batch norm had one value to normalise."""

from .summary import length_of


def check_counted_steps(sheet, run):
    place, summary = "summary.json: ", run.summary
    sheet.equal(place + "skipped_steps", summary.get("skipped_steps", 0), len(left_out(run)))
    if ranks := [m["step"] for m in run.metrics if m["kind"] == "ranks"] if "ranks" in summary else None:
        sheet.equal("metrics.jsonl: step of the last line of ranks", ranks[-1], summary["steps"])
    shown, length = summary.get("single_value_steps", 0), length_of(run)
    if length.asynchronous:
        # The samples of a worker's steps depend on who was first.
        right = length.steps if has_norm(run.config.get("model.layers") or "") else 0
        sheet.check(place + "single_value_steps", shown, right, lambda a, b: a <= b)
        return
    steps = set(range(summary["steps"])) - {step - 1 for step in left_out(run)}
    sheet.equal(place + "single_value_steps", shown, sum(has_one(run.config, length, step) for step in steps))


def has_one(config, length, step):
    begin = step % length.per_epoch * length.batch
    return replicas_with_one(config, length.replicas, begin, min(begin + length.batch, length.epoch_samples)) > 0


def left_out(run):
    """The steps whose gradient is no number: those that debug.nan_step names."""
    get = run.config.get
    first = get("debug.nan_step", 0)
    bad = range(first, first + get("debug.nan_steps", 1)) if get("debug.nan_replica", -1) >= 0 else ()
    return {step + 1 for step in bad if step < run.summary["steps"]}


def has_norm(layers):
    """Whether batch norm has one value of a sample to normalise: that of images has one for each pixel."""
    return "batch_norm" in (layers.partition("flatten")[2] if "conv2d" in layers else layers)


def parts_of(count, parts):
    """As even as can be, the larger ones first."""
    return [count // parts + (i < count % parts) for i in range(parts)]


def replicas_with_one(config, replicas, begin, end):
    """How many replicas normalise one sample in the step of these positions of an epoch, which go to them in turn
    (configs/guides/batch-norm.md)."""
    mode, accumulate = config.get("model.batch_norm", "local"), config.get("train.accumulate", 1)
    if not has_norm(config.get("model.layers") or ""):
        return 0
    scope = replicas if mode == "sync" else int(mode[6:-1]) if mode.startswith("group(") else 1
    rows = [len(range(begin + (i - begin) % replicas, end, replicas)) for i in range(replicas)]
    found = 0
    for first in range(0, replicas, scope):
        together = [0] * accumulate
        for own in rows[first : first + scope]:
            for part, samples in enumerate(parts_of(own, accumulate if scope > 1 else max(min(accumulate, own), 1))):
                together[part] += samples
        found += sum(own > 0 for own in rows[first : first + scope]) if 1 in together else 0
    return found
