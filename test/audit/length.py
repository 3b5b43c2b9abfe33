"""Steps, epochs, samples and learning rate of a run (configs/guides/batches-and-steps.md)."""

import math

from .config import span_of


def run_facts(run):
    """Ranks and servers: they are no part of the config."""
    return len(run.record["launch"]["hosts"]), run.record["plan"]["servers"]


class Length:
    def __init__(self, run):
        get = run.config.get
        train = run.sets["train"]
        self.rows = len(train) if train is not None else get("data.synthetic_rows")
        self.ranks, self.servers = run_facts(run)
        self.replicas = get("train.replicas") or (self.ranks - self.servers) * get("train.threads", 1)
        self.batch = get("train.global_batch") or get("train.per_replica_batch") * self.replicas
        self.full = get("data.mode") == "full"
        self.positions = self.rows * (self.replicas if self.full else 1)
        self.drop = get("train.tail") == "drop"
        whole, rest = divmod(self.positions, self.batch)
        self.batches = whole if self.drop and whole else whole + (rest > 0)
        self.epoch_samples = whole * self.batch if self.drop and whole else self.positions
        self.last = rest
        self.asynchronous = run.config.get("distribute.strategy") == "parameter_server" and (
            get("distribute.mode", "sync") != "sync" or get("distribute.backup_workers", 0) > 0)
        workers = self.ranks - self.servers
        backup = get("distribute.backup_workers", 0) if self.asynchronous else 0
        self.one_each = self.asynchronous and not backup  # a step is one worker's batch
        per_batch = workers if self.one_each else 1
        self.per_epoch = self.batches * per_batch
        of_one = (self.batch - self.batch // workers * backup) // per_batch
        self.step_batch = of_one if self.asynchronous else self.batch
        self.epoch_samples -= self.epoch_samples // workers * backup if backup else 0
        self.steps = self.planned(get)
        self.get = get

    def planned(self, get):
        if get("train.steps"):
            return int(get("train.steps"))
        if get("train.samples"):
            whole, rest = divmod(int(get("train.samples")), self.epoch_samples)
            return max(1, whole * self.per_epoch + -(-rest // self.step_batch))
        return max(1, math.ceil(get("train.epochs") * self.per_epoch - 1e-9))

    def samples(self, step):
        whole, within = divmod(step, self.per_epoch)
        return whole * self.epoch_samples + min(within * self.step_batch, self.epoch_samples)

    def epochs(self, step):
        return step / self.per_epoch

    def measure(self, step, unit):
        return {"step": step, "sample": self.samples(step), "epoch": self.epochs(step)}[unit]

    def evaluated(self):
        """The steps after which there is an evaluation while the run goes on."""
        number, unit = span_of(self.get("eval.every", "1 epoch"))
        steps = [0] if self.get("eval.at_start") else []
        if number:
            marks = [math.floor(self.measure(s, unit) / number + 1e-9) for s in range(self.steps + 1)]
            steps += [s for s in range(1, self.steps + 1) if marks[s] > marks[s - 1]]
        return steps + ([self.steps] if not steps or steps[-1] != self.steps else [])

    def peak(self):
        ratio = self.step_batch / self.get("train.lr_reference_batch", 256)
        scalings = {"none": 1, "linear": ratio, "sqrt": math.sqrt(ratio)}
        return self.get("train.lr", 0.01) * scalings[self.get("train.lr_scaling", "none")]

    def rate(self, step):
        """Of the step that comes after `step` others; of schedule plateau the rate before all falls."""
        get, peak = self.get, self.peak()
        warmup, unit = span_of(get("train.warmup", "0 steps"))
        now = self.measure(step, unit)
        if now < warmup:
            low = get("train.warmup_from", 0.1)
            return peak * (low + (1 - low) * now / warmup)
        whole = self.measure(self.steps, unit)
        begin = warmup / whole if whole > warmup else 1
        units = ("step", "sample", "epoch")
        start = {u: math.floor(begin * self.measure(self.steps, u) + 0.5) if u != "epoch"
                 else begin * self.epochs(self.steps) for u in units}
        since = {u: max(0, self.measure(step, u) - start[u]) for u in units}
        length = {u: self.measure(self.steps, u) - start[u] for u in units}
        return peak * self.factor(step, since, length, peak, warmup, unit)

    def factor(self, step, since, length, peak, warmup, warmup_unit):
        get = self.get
        kind, end = get("train.schedule", "constant"), get("train.end_lr", 0.0) / peak
        power = get("train.decay_power", 1.0)
        done = min(1.0, since["sample"] / length["sample"]) if length["sample"] > 0 else 1.0
        fall = get("train.decay_factor", 0.1)
        if kind in ("step", "exponential"):
            every, unit = span_of(get("train.decay_every", "30 epochs"))
            passed = since[unit] / every
            return fall ** (math.floor(passed + 1e-9) if kind == "step" else passed)
        if kind == "milestones":
            passed = [mark for mark in get("train.milestones") for number, unit in [span_of(mark)]
                      if self.measure(step, unit) >= number * (1 - 1e-9)]
            return fall ** len(passed)
        cosine = lambda high, low, share: low + (high - low) * (1 + math.cos(math.pi * share)) / 2
        if kind == "cosine":
            return cosine(1, end, done)
        if kind == "polynomial":
            return end + (1 - end) * (1 - done) ** power
        if kind == "one_cycle":
            rise, low = get("train.warmup_share", 0.3), get("train.warmup_from", 0.1)
            return cosine(low, 1, done / rise) if done < rise else cosine(1, end, (done - rise) / (1 - rise))
        if kind == "inverse_sqrt":
            return math.sqrt(warmup / (warmup + since[warmup_unit]))
        if kind == "wsd":
            begin = 1 - get("train.decay_share", 0.2)
            return 1 if done <= begin else end + (1 - end) * ((1 - done) / (1 - begin)) ** power
        return 1


def length_of(run):
    if "length" not in run.found:
        run.found["length"] = Length(run)
    return run.found["length"]
