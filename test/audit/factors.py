"""The factors of a random experiment, their levels, and what cannot be combined.

An experiment is a dictionary from factors to levels. The first level of a factor is the plain one; most rules forbid others:
only a table has dates. A forbidden combination has its reason beside it: the program refuses it with exit code 2, or it makes
no sense. A level leaves details open, such as which schedule falls: `experiment.py` draws them, and makes files and commands.

A pair of levels is possible if some experiment has both. `covering_array.json` has experiments with every possible pair among
them, and the pairs for which `draw --make-array` proved by search that there is no such experiment.
"""

import itertools
import re

LEVELS = """
# What is learned. Which loss a level means depends on the task: see LOSSES.
task: classes yes_no value; targets: one several; loss: usual second third; yes_by: sigmoid softmax; label_smoothing:
no yes; label_scale: none scaled; class_names: numbers texts odd; missing_targets: no yes; metrics: usual all one;
record_weights: none given; class_weights: none balanced given; eval_class_weights: no yes
# Files.
format: csv libsvm array synthetic; array: numpy hdf5 binary; image: no yes; normalise: no yes; files: one several;
packed: no yes; chunks: one many; bad_records: no yes; validation: none part file; stratified: no yes; test: yes no
# Tables.
header: auto no; separator: comma other; quotes: few all; line_ends: unix windows; encoding: utf8 other; skip_lines:
no yes; roles: inferred given; numbers: plain german affixes; scale: standard other bins; missing: none mean constant;
missing_texts: usual own; categories: onehot index hash; odd_texts: no yes; vocabulary: all few; unseen: no yes;
dates: no yes
# Which samples come when.
memory: load stream; mode: shard full; shard_order: shuffled other; reshuffle: shard global batch; prefetch: auto
none; augment: no yes
# The model.
hidden: dense none blocks; norm: none batch layer; batch_norm: local shared; precise_bn: no yes; dropout: no yes;
ties: none one two; init: he other; precision: fp32 bf16
# Steps.
optimizer: sgd adam other; schedule: constant falling plateau; warmup: no yes; lr_scaling: no yes; clip: none norm
value; multipliers: no yes; weight_decay: no yes; length: epochs steps samples; tail: keep drop; batch: even uneven;
replicas: few many; accumulate: one two three; average: none ema swa; bad_steps: none skipped
# What is kept and measured.
keep: best last; early_stopping: no yes; best_by: loss metric; calibrate: no yes; threshold: none measure number;
evaluations: epoch steps never; at_start: no yes; eval_batch: large small; audit: no yes; report: page tensorboard
trace
# How the work is shared, and which command then looks at the run.
command: train cv sweep halving; folds: record other; per_trial: all one; ranks: 1 2 3; threads: 1 2; strategy: auto
exchange servers local_sgd; servers: sync alone; algorithm: auto other; reduction: native ordered; compression: fp32
lossy; stages: 1 2; pipeline: 1f1b gpipe; resume: no yes; checkpoints: few many; look: predict eval importance
"""
FACTORS = {name.strip(): tuple(levels.split()) for line in re.sub("#.*", ";", LEVELS).split(";") if line.strip() for name, levels in [line.split(":")]}
FORBIDDEN = []  # ({factor: levels}, reason)
NO_TABLE = "libsvm array synthetic"  # formats that are no tables


def forbid(reason, **combination):
    FORBIDDEN.append(({name: tuple(levels.split()) for name, levels in combination.items()}, reason))


def only_tables(name):
    """All levels but the plain one need a table."""
    forbid("only a table has it", **{name: " ".join(FACTORS[name][1:])}, format=NO_TABLE)


LOSSES = {
    "classes": (("softmax_cross_entropy",), ("softmax_focal",), ("multiclass_hinge",)),
    "yes_no": (("binary_cross_entropy",), ("binary_focal",), ("binary_hinge",)),
    "value": (("mean_squared_error",), ("huber", "mean_absolute_error", "quantile"), ("poisson", "tweedie", "gamma")),
    "values": (("mean_squared_error",), ("huber", "mean_absolute_error"), ("cosine_distance", "quantile")),
}

# What is learned.
forbid("classes are one label", task="classes", targets="several")
forbid("yes and no alone can be either", yes_by="softmax", task="classes value")
forbid("several labels of yes or no are no classes", yes_by="softmax", targets="several")
forbid("cross entropy of classes spreads labels", label_smoothing="yes", task="value")
forbid("cross entropy of classes spreads labels", label_smoothing="yes", loss="second third")
forbid("cross entropy of classes spreads labels", label_smoothing="yes", task="yes_no", yes_by="sigmoid")
only_tables("label_scale")
forbid("classes are not scaled", label_scale="scaled", task="classes yes_no")
forbid("counts, amounts and directions are not scaled", label_scale="scaled", loss="third")
only_tables("class_names")
forbid("numbers have no classes", class_names="texts odd", task="value")
forbid("several labels of yes or no are 0 and 1", class_names="texts odd", targets="several")
forbid("one label that is missing makes a bad record", missing_targets="yes", targets="one")
forbid("squared errors and cross entropy know missing targets", missing_targets="yes", loss="second third")
forbid("libsvm files and made-up samples have one label", targets="several", format="libsvm synthetic")
forbid("libsvm files and made-up samples have no weights", record_weights="given", format="libsvm synthetic")
forbid("numbers have no classes", class_weights="balanced given", task="value")
forbid("a record with several labels has one weight", class_weights="balanced given", targets="several")
forbid("there are no weights", eval_class_weights="yes", class_weights="none")
forbid("made-up labels are classes, or numbers of both signs", format="synthetic", task="yes_no", yes_by="sigmoid")
forbid("made-up labels are classes, or numbers of both signs", format="synthetic", task="value", loss="third")

# Files.
forbid("text has no images", image="yes", format="csv libsvm synthetic")
forbid("only images are changed at random", augment="yes", image="no")
forbid("made-up samples have no file", format="synthetic", files="several")
forbid("made-up samples have no file", format="synthetic", packed="yes")
forbid("made-up samples have no file", format="synthetic", memory="stream")
forbid("made-up samples have no file", format="synthetic", look="predict")
forbid("no part of made-up samples is a fold", format="synthetic", command="cv")
forbid("no part of made-up samples is held back", format="synthetic", validation="part")
forbid("only arrays have such files", array="hdf5 binary", format="csv libsvm synthetic")
forbid("IDX and raw files are one set", array="binary", files="several")
forbid("only text is read by chunks", chunks="many", format="array synthetic")
forbid("only text has bad records", bad_records="yes", format="array synthetic")
forbid("only a part is chosen by class", stratified="yes", validation="none file")
forbid("numbers are not classes", stratified="yes", task="value")
forbid("a record with several labels is of no class", stratified="yes", targets="several")
for name in ("header", "separator", "quotes", "line_ends", "encoding", "skip_lines", "roles", "numbers", "scale", "missing",
             "missing_texts", "categories", "odd_texts", "vocabulary", "unseen", "dates"):
    only_tables(name)
forbid("a decimal comma is no separator", numbers="german", separator="comma")
forbid("nothing is missing", missing_texts="own", missing="none")
forbid("a hash has no vocabulary", vocabulary="few", categories="hash")

# Which samples come when.
forbid("samples are assigned anew in each epoch, by chance", reshuffle="global batch", shard_order="other")
forbid("every replica walks all samples", mode="full", reshuffle="global batch")
forbid("one batch of all replicas is drawn from all samples", reshuffle="batch", memory="stream")
forbid("one batch of all replicas is drawn from all samples", reshuffle="batch", servers="alone")
forbid("every replica walks all samples", mode="full", shard_order="other")

# The model.
forbid("one layer has no other to share with", hidden="none", ties="one two")
forbid("one layer is no two stages", hidden="none", stages="2")
forbid("there is no batch norm", batch_norm="shared", norm="none layer")
forbid("there is no batch norm", precise_bn="yes", norm="none layer")

# What is kept and measured.
NO_VALIDATION = {"validation": "none", "command": "train sweep halving"}
forbid("the learning rate falls by the validation set", schedule="plateau", **NO_VALIDATION)
forbid("the best is that of the validation set", early_stopping="yes", **NO_VALIDATION)
forbid("the best is that of the validation set", best_by="metric", **NO_VALIDATION)
forbid("the last weights are kept anyway", keep="last", **NO_VALIDATION)
forbid("the temperature is fitted to the validation set", calibrate="yes", **NO_VALIDATION)
forbid("the threshold is chosen on the validation set", threshold="measure", **NO_VALIDATION)
forbid("halving compares by the validation set", command="halving", validation="none")
forbid("a fold is the validation set", command="cv", validation="part file")
forbid("nothing is evaluated", look="eval importance", validation="none", test="no", command="train sweep halving")
forbid("a run that is never evaluated does not end early", early_stopping="yes", evaluations="never")
forbid("a rate that falls by evaluations needs some", schedule="plateau", evaluations="never")
forbid("numbers have no probabilities", calibrate="yes", task="value")
forbid("a temperature is fitted to cross entropy", calibrate="yes", loss="third")
forbid("only one yes or no has a threshold", threshold="measure number", task="classes value")
forbid("only one yes or no has a threshold", threshold="measure number", targets="several")
forbid("margins are not probabilities", threshold="measure number", loss="third")
forbid("one pixel says nothing", look="importance", image="yes")

# Steps.
forbid("samples are left out on purpose", audit="yes", tail="drop")
forbid("samples are left out on purpose", audit="yes", servers="alone")
forbid("others wait for the step that is left out", bad_steps="skipped", strategy="local_sgd")
forbid("others wait for the step that is left out", bad_steps="skipped", servers="alone")
forbid("what a message makes up for would be a bad number", bad_steps="skipped", compression="lossy")
forbid("no step leaves one model", average="ema", strategy="local_sgd")
forbid("no step leaves one model", average="ema", servers="alone")

# How the work is shared.
forbid("one run has no folds", folds="other", command="train sweep halving")
forbid("there are no classes, and only a table has groups", folds="other", task="value", format=NO_TABLE)
forbid("there are no classes, and only a table has groups", folds="other", targets="several", format=NO_TABLE)
forbid("one run is no trial", per_trial="one", command="train")
forbid("a trial that failed is not tried again by itself", resume="yes", command="cv sweep halving")
forbid("a server has a rank of its own", strategy="servers", ranks="1")
forbid("a server has a rank of its own", strategy="servers", per_trial="one")
forbid("only servers have modes", servers="alone", strategy="auto exchange local_sgd")
forbid("only allreduce has algorithms", algorithm="other", strategy="auto servers local_sgd")
forbid("messages of all algorithms but auto are whole", algorithm="other", compression="lossy")
forbid("a step is as many samples as a worker has", servers="alone", batch="uneven")
forbid("gradients count as they arrive", servers="alone", reduction="ordered")
forbid("replicas are never at the same step", servers="alone", batch_norm="shared")
forbid("replicas take steps of their own", strategy="local_sgd", batch_norm="shared")
forbid("the sum would depend on the ranks", reduction="ordered", compression="lossy")
forbid("weights are sent as they are", strategy="local_sgd", compression="lossy")
forbid("two stages are two ranks", stages="2", ranks="1 3")
forbid("two stages are two ranks", stages="2", per_trial="one")
forbid("servers own whole models", stages="2", strategy="servers")
forbid("a group takes its replicas through the same weights", stages="2", strategy="local_sgd")
forbid("what messages lose is kept of the whole model", stages="2", compression="lossy")
forbid("a stage takes one micro-batch after the other", stages="2", threads="2")
forbid("there are no stages", pipeline="gpipe", stages="1")
forbid("replicas meet at each such layer", stages="2", pipeline="1f1b", batch_norm="shared")

RULES_OF = {name: [] for name in FACTORS}
for rule, _ in FORBIDDEN:
    as_sets = {name: frozenset(levels) for name, levels in rule.items()}
    for name in rule:
        RULES_OF[name].append(as_sets)


def propagate(left, changed):
    """Takes out of `left` (the levels of each factor) what rules forbid beside factors that have no other levels left.

    `changed` are factors to begin with. Returns a rule that nothing is left to keep, or None.
    """
    changed = list(changed)
    while changed:
        for rule in RULES_OF[changed.pop()]:
            free = None
            for name, levels in rule.items():
                if not left[name] <= levels:
                    if free or not left[name] & levels:
                        break  # two factors are open, or the rule is kept
                    free = name
            else:
                if free is None:
                    return rule
                left[free] -= rule[free]
                changed.append(free)
    return None


def complete(given, dice, gain=None):
    """A random experiment with the given levels; None if there is none.

    Depth-first search. Of the levels of a factor that with the highest gain(factor, level, levels left of all) is tried first.
    Factors in rules that could not be kept are decided first, so that the search sees soon that there is no experiment.
    """
    left = {name: frozenset(levels) for name, levels in FACTORS.items()}
    left.update((name, frozenset([level])) for name, level in given.items())
    failures = dict.fromkeys(FACTORS, 0)

    def search(left):
        open_factors = [name for name, levels in left.items() if len(levels) > 1]
        if not open_factors:
            return left
        name = max(open_factors, key=lambda name: (failures[name], dice.random()))
        order = {level: (gain(name, level, left) if gain else 0, dice.random()) for level in sorted(left[name])}
        for level in sorted(order, key=order.get, reverse=True):
            tried = {**left, name: frozenset([level])}
            failed = propagate(tried, [name])
            found = None if failed else search(tried)
            if found:
                return found
            for factor in failed or ():
                failures[factor] += 1
        return None

    if propagate(left, FACTORS):
        return None
    found = search(left)
    return {name: next(iter(levels)) for name, levels in found.items()} if found else None


def draw(dice):
    """A random experiment."""
    return complete({}, dice)


def pairs_of(experiment):
    """The pairs of levels of an experiment: ((factor, level), (factor, level)), sorted."""
    return set(itertools.combinations(sorted(experiment.items()), 2))


def all_pairs():
    """All pairs of levels of two factors, possible or not."""
    levels = sorted((name, level) for name, levels in FACTORS.items() for level in levels)
    return {(a, b) for a, b in itertools.combinations(levels, 2) if a[0] != b[0]}


def why_not(pair):
    """The reason of the rule that forbids two levels; None if no rule does by itself."""
    together = dict(pair)
    for rule, reason in FORBIDDEN:
        if all(together.get(name) in levels for name, levels in rule.items()):
            return reason
    return None
