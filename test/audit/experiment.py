"""Files and commands of an experiment of `factors.py`: config.toml, data, commands.sh.

A level leaves details open, such as which schedule falls; `dice` decides them, so a seed repeats an experiment. Sizes
are small: a run takes a fraction of a second beside its start.
"""

import pathlib
import re
import tomllib

from data_files import CLASS_NAMES, DataFiles
from factors import LOSSES

QUANTILES = (0.1, 0.5, 0.9)
METRICS = {
    "classes": ("auc", "precision", "recall", "average_precision", "f1", "mcc", "balanced_accuracy"),
    "probabilities": ("log_loss", "brier", "ece"),
    "values": ("mean_absolute_error", "mean_squared_error", "r2", "root_mean_squared_error", "spearman"),
}
# The keys of levels that leave nothing open.
KEYS = """
label_smoothing=yes: train.label_smoothing = 0.1; class_weights=balanced: train.class_weights = ["balanced"]
eval_class_weights=yes: eval.class_weights = true; normalise=yes: data.mean = 0.2 & data.std = 1.5
chunks=many: data.chunk_kib = 1; bad_records=yes: data.on_bad_record = "skip" & data.max_bad_share = 0.3
header=no: data.header = "no"; numbers=german: data.decimal = "," & data.thousands = "."
missing=constant: data.missing = "constant(0.5)"; missing_texts=own: data.missing_values = ["", "unknown", "-"]
categories=index: data.encode = "index"; categories=hash: data.encode = "hash(3)"; vocabulary=few: data.vocabulary = 2
skip_lines=yes: data.skip_lines = 2; mode=full: data.mode = "full"; prefetch=none: data.prefetch = 0
precise_bn=yes: eval.precise_bn = 3; precision=bf16: train.precision = "bf16" & debug.emulate_bf16 = true
weight_decay=yes: train.weight_decay = 0.01; clip=norm: train.clip_norm = 0.5; clip=value: train.clip_value = 0.05
lr_scaling=yes: train.lr_reference_batch = 16; multipliers=yes: train.lr_multiplier = ["*.weight: 0.5", "*.bias: 2"]
warmup=yes: train.warmup = "3 steps"; tail=drop: train.tail = "drop"; average=ema: train.ema = 0.8
average=swa: train.swa_from = "1 steps"
bad_steps=skipped: train.on_nan = "skip" & debug.nan_replica = 0 & debug.nan_step = 2; keep=last: train.keep = "last"
early_stopping=yes: train.early_stopping = "2 evaluations"; calibrate=yes: train.calibrate = "temperature"
threshold=number: eval.threshold = 0.3; evaluations=epoch: eval.every = "1 epoch"
evaluations=steps: eval.every = "4 steps"; evaluations=never: eval.every = "never"; at_start=yes: eval.at_start = true
eval_batch=small: eval.batch = 7; audit=yes: data.audit = true
report=tensorboard: report.tensorboard = true & report.histograms = true
report=trace: report.trace = "first 2, last 2 steps"; stages=2: distribute.stages = 2; threads=2: train.threads = 2
checkpoints=many: checkpoint.every = "3 steps" & checkpoint.wait = true
"""


def keys_of(levels):
    for entry in re.split("[;\n]", KEYS.strip()):
        level, keys = entry.strip().split(": ", 1)
        name, level = level.split("=")
        sections = tomllib.loads(keys.replace(" & ", "\n")) if levels[name] == level else {}
        yield from ((f"{section}.{key}", value) for section, own in sections.items() for key, value in own.items())


def toml(value):
    """A value as a config writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return repr(value)


def config_of(keys):
    """The text of a config with these keys."""
    sections = {}
    for key, value in keys.items():
        section, name = key.split(".", 1)
        sections.setdefault(section, []).append(f"{name} = {toml(value)}\n")
    return "".join(f"[{section}]\n{''.join(lines)}" for section, lines in sections.items())


def quoted(text):
    """A text as an argument in commands.sh."""
    return "'" + text.replace("'", "'\\''") + "'"


class Experiment(DataFiles):
    def __init__(self, levels, dice, directory):
        """Writes the files into the directory, which is new."""
        self.levels = levels
        self.dice = dice
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.keys = dict(keys_of(levels))  # of the config
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
        plain = [at(name) for name in ("hidden", "norm", "ties", "image")] == ["blocks", "none", "none", "no"]
        self.ensemble = plain and dice.random() < 0.5
        # Its products of numbers that are not scaled grow without bounds.
        self.ensemble = self.ensemble and (at("scale"), at("optimizer"), at("clip")) != ("other", "sgd", "none")
        self.strategy = {"auto": "", "servers": "parameter_server"}.get(at("strategy"), at("strategy"))
        if self.strategy == "exchange":
            self.strategy = "allreduce" if at("algorithm") == "other" else dice.choice(("allreduce", "zero1"))
        self.alone = at("servers") == "alone"
        self.folds = "record"
        if at("folds") == "other":
            by_class = at("targets") == "one" and at("task") != "value"
            self.folds = dice.choice(("class",) * by_class + ("group",) * (at("format") == "csv"))

        self.sequence = self.plan_sequence()

    def plan_sequence(self):
        """Arrays of numpy and HDF5 may have positions, with padding behind those that count, and targets for each."""
        dice, at = self.dice, self.at
        if at("format") != "array" or at("array") == "binary" or at("image") == "yes" or self.ensemble:
            return None
        if at("look") == "importance" or dice.random() < 0.4:  # one position says nothing
            return None
        sequence = {}
        single = at("targets") == "one" and at("missing_targets") != "yes"
        alike = (at("stratified"), self.folds) == ("no", "record")
        # The plan of composites of positions is not computed by the auditor.
        if single and alike and at("hidden") != "blocks" and dice.random() < 0.7:
            sequence["of positions"] = True
        if dice.random() < 0.8:
            sequence["padding"] = 7.5 if sequence and at("look") == "predict" else dice.choice((float("nan"), 1e30))
            if at("memory") == "load":
                sequence["bucket"] = dice.choice((0, 2, 5))
        return sequence

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
        self.accumulate = ("one", "two", "three").index(self.at("accumulate")) + 1
        parts = self.replicas * self.accumulate
        # A part that is no whole batch is dropped: an epoch, of a hundred records at least, has to have one.
        times = 2 if self.at("tail") == "drop" and parts > 22 else 4
        self.batch = parts * times + (self.at("batch") == "uneven")

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
            self.set("train.quantiles", list(QUANTILES))
        self.target_count = 1 if self.at("targets") == "one" else {"value": 2, "yes_no": 3}[task]
        self.outputs = self.target_count
        if kind == "classes":
            self.outputs = 3 if task == "classes" else 2
        if self.loss == "quantile":
            self.outputs *= len(QUANTILES)
        if self.at("class_weights") == "given":
            names = self.class_names() or ("0", "1", "2")[: 3 if task == "classes" else 2]
            self.set("train.class_weights", [f"{name}: {weight}" for name, weight in zip(names, (1, 2.5, 0.5))])

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
                more = dict.fromkeys(("poisson_deviance", f"{self.loss}_deviance", "mean_absolute_percentage_error"))
                names += tuple(more)  # one of a kind
            return names
        return METRICS["classes"] + (() if "hinge" in self.loss else METRICS["probabilities"])

    # Order, model and steps.

    def plan_order(self):
        if self.at("memory") == "stream":
            self.set("data.memory", "stream")
            self.set("data.shuffle_buffer", self.dice.choice((5, 40)))
        if self.sequence and self.sequence.get("bucket") and self.at("reshuffle") != "batch":
            self.set("data.bucket_by_length", self.sequence["bucket"])
        if self.at("shard_order") == "other":
            # Every replica would read all of a file that is streamed by stride.
            strided = ("strided",) * (self.at("memory") == "load")
            self.set("data.shard_order", self.dice.choice(("contiguous", *strided)))
        if self.at("reshuffle") != "shard":
            self.set("data.reshuffle", self.at("reshuffle"))
        if self.at("augment") == "yes":
            self.set("data.augment", self.dice.choice(("flip", "crop(1)", "crop(2) flip cutout(2)")))

    def plan_model(self):
        self.set("model.layers", " ".join(self.layers()))
        if self.at("norm") == "batch":
            scope = self.at("batch_norm")
            if scope == "shared":
                scope = self.dice.choice(("averaged", "sync", "group(2)"))
            self.set("model.batch_norm", scope)
        if self.at("init") == "other":
            self.set("model.init", self.dice.choice(("xavier", "normal")))

    def layers(self):
        active = self.dice.choice(("relu", "tanh", "gelu", "silu"))
        norm = {"none": [], "batch": ["batch_norm"], "layer": ["layer_norm"]}[self.at("norm")]
        dropout = ["dropout(0.2)"] if self.at("dropout") == "yes" else []
        layers = ["conv2d(3, 3, padding=1)", *norm, active, "flatten"] if self.at("image") == "yes" else []
        if self.sequence is not None:
            windows = ("conv1d(4, 3, padding=same)", "conv1d(4, 2, padding=causal)")
            layers = [self.dice.choice((*windows, "gru(3, bidirectional=true)", "lstm(4)")), *norm, active]
            if "of positions" not in self.sequence:
                layers.append(self.dice.choice(("last", "mean_over_time", "max_over_time")))
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
        names = {"sgd": "sgd", "adam": "adam adamw nadam lamb", "other": "adagrad rmsprop lion adafactor muon"}
        name = dice.choice(names[self.at("optimizer")].split())
        self.set("train.optimizer", name)
        self.set("train.lr", 0.05 if name == "sgd" else 0.01)
        if name == "sgd" and dice.random() < 0.5:
            self.set("train.momentum", 0.9)
            self.set("train.nesterov", dice.random() < 0.5)
        if self.at("lr_scaling") == "yes":
            self.set("train.lr_scaling", dice.choice(("linear", "sqrt")))
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

    def plan_schedule(self):
        schedule = self.at("schedule")
        if schedule == "falling":
            names = "step milestones exponential polynomial cosine one_cycle wsd inverse_sqrt"
            schedule = self.dice.choice(names.split())
            if (schedule, self.at("warmup")) in (("one_cycle", "yes"), ("inverse_sqrt", "no")):
                schedule = "cosine"
        self.set("train.schedule", schedule)
        if schedule in ("step", "exponential"):
            self.set("train.decay_every", "5 steps")
        if schedule == "milestones":
            self.set("train.milestones", ["4 steps", "1 epoch"])
        if schedule == "plateau":
            self.set("train.plateau_patience", "1 evaluations")

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
        if self.at("threshold") == "measure":
            self.set("eval.threshold", self.dice.choice(("f1", "balanced_accuracy", "youden")))

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
            self.set("distribute.schedule", self.at("pipeline"))
        self.set("checkpoint.keep", 2)

    def write_config(self):
        self.write("config.toml", config_of(self.keys).encode())

    # The commands.

    def launch(self, ranks, words):
        return (f"$MPIEXEC -np {ranks} " if ranks > 1 else "") + f"$TRAINER {words}"

    def train_command(self, ranks, flags=""):
        words, command = "--config config.toml --run.dir run --run.progress none" + flags, self.at("command")
        if command == "cv":
            ways = {"record": "", "class": " --stratified", "group": " --group"}[self.folds]
            words = f"cv {words} --folds 3{ways}" + (f" {self.named('group')}" if self.folds == "group" else "")
        if command == "sweep":
            words = f"sweep {words} --grid train.lr=0.01,0.03"
        if command == "halving":
            words = f"sweep {words} --grid train.lr=0.01,0.02,0.04 --halving 2"
        if command != "train":
            words += f" --ranks-per-trial {self.ranks_of_trial}"
        return self.launch(ranks, words)

    def write_commands(self):
        commands = []
        if self.at("resume") != "no":
            # The first try fails on purpose, and the same command goes on.
            failing = self.train_command(self.ranks, " --debug.fail_rank 0 --debug.fail_step 4")
            commands.append(f"! {failing} >failing.console 2>&1")
        commands.append(f"{self.train_command(self.other_ranks)} >run.console 2>&1")
        best = "run/$(grep -o 'best: trial-[0-9]*' run.console | cut -d ' ' -f 2)"
        model = {"cv": "run/fold-0001", "sweep": "run/trial-0001", "halving": best}.get(self.at("command"), "run")
        if self.at("command") == "halving":  # a measure that is undefined in all trials has no best
            commands.append("grep -q 'best: trial' run.console || exit 0")
        look = self.at("look")
        if look == "eval":
            commands.append(f"$TRAINER eval --model {model} --json eval.json >eval.console 2>&1")
        if look == "predict":
            split = "test" if "data.test" in self.keys else "train"
            path, lengths = self.keys[f"data.{split}"], self.keys.get(f"data.{split}_lengths")
            lengths = f" --lengths {quoted(lengths)}" if lengths and "of positions" not in self.sequence else ""
            files = f"--input {quoted(path)}{lengths} --output predictions.csv"
            commands.append(self.launch(2, f"predict --model {model} {files} >predict.console 2>&1"))
        if look == "importance":
            # A measure may be undefined, with a column shuffled too: the command says so, with code 3.
            undefined = "is not defined, or no finite number: choose another measure"
            words = f"--model {model} --repeats 2 --csv importance.csv >importance.console 2>&1"
            passes = f"{{ [ $? = 3 ] && grep -q '{undefined}' importance.console; }}"
            commands.append(f"$TRAINER importance {words} || {passes}")
        head = ["#!/usr/bin/env bash", "# TRAINER=... MPIEXEC=... commands.sh, in its own directory", "set -eu"]
        self.write("commands.sh", "\n".join([*head, *commands, ""]).encode())
