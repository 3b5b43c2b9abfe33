"""The factors of a random experiment, their levels, and what cannot be combined.

An experiment is a dictionary from factors to levels. The first level of a factor is the plain one; most rules forbid
others: only a table has dates. The program refuses what is forbidden with exit code 2, or it makes no sense. A level
leaves details open, such as which schedule falls: `experiment.py` draws them, and makes files and commands.
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
FACTORS = {}
for words in filter(str.strip, re.sub("#.*", ";", LEVELS).split(";")):
    FACTORS[words.split(":")[0].strip()] = tuple(words.split(":")[1].split())

LOSSES = {
    "classes": (("softmax_cross_entropy",), ("softmax_focal",), ("multiclass_hinge",)),
    "yes_no": (("binary_cross_entropy",), ("binary_focal",), ("binary_hinge",)),
    "value": (("mean_squared_error",), ("huber", "mean_absolute_error", "quantile"), ("poisson", "tweedie", "gamma")),
    "values": (("mean_squared_error",), ("huber", "mean_absolute_error"), ("cosine_distance", "quantile")),
}

# Reason: what cannot be together. What stands before "+" goes with each of what stands behind it, between commas.
FORBIDDEN = """
# What is learned.
classes are one label: task=classes targets=several
yes and no alone can be either: yes_by=softmax task=classes|value
several labels of yes or no are no classes: yes_by=softmax targets=several
cross entropy of classes spreads labels: label_smoothing=yes + task=value, loss=second|third, task=yes_no
  yes_by=sigmoid
only a table has it: label_scale=scaled format=libsvm|array|synthetic
classes are not scaled: label_scale=scaled task=classes|yes_no
counts, amounts and directions are not scaled: label_scale=scaled loss=third
only a table has it: class_names=texts|odd format=libsvm|array|synthetic
numbers have no classes: class_names=texts|odd task=value
several labels of yes or no are 0 and 1: class_names=texts|odd targets=several
one label that is missing makes a bad record: missing_targets=yes targets=one
squared errors and cross entropy know missing targets: missing_targets=yes loss=second|third
libsvm files and made-up samples have one label: targets=several format=libsvm|synthetic
libsvm files and made-up samples have no weights: record_weights=given format=libsvm|synthetic
numbers have no classes: class_weights=balanced|given task=value
a record with several labels has one weight: class_weights=balanced|given targets=several
there are no weights: eval_class_weights=yes class_weights=none
made-up labels are classes, or numbers of both signs: format=synthetic + task=yes_no yes_by=sigmoid, task=value
  loss=third
# Files.
text has no images: image=yes format=csv|libsvm|synthetic
only images are changed at random: augment=yes image=no
made-up samples have no file: format=synthetic + files=several, packed=yes, memory=stream, look=predict
no part of made-up samples is a fold: format=synthetic command=cv
no part of made-up samples is held back: format=synthetic validation=part
only arrays have such files: array=hdf5|binary format=csv|libsvm|synthetic
IDX and raw files are one set: array=binary files=several
only text is read by chunks: chunks=many format=array|synthetic
only text has bad records: bad_records=yes format=array|synthetic
only a part is chosen by class: stratified=yes validation=none|file
numbers are not classes: stratified=yes task=value
a record with several labels is of no class: stratified=yes targets=several
only a table has it: format=libsvm|array|synthetic + header=no, separator=other, quotes=all, line_ends=windows,
  encoding=other, skip_lines=yes, roles=given, numbers=german|affixes, scale=other|bins, missing=mean|constant,
  missing_texts=own, categories=index|hash, odd_texts=yes, vocabulary=few, unseen=yes, dates=yes
a decimal comma is no separator: numbers=german separator=comma
nothing is missing: missing_texts=own missing=none
a hash has no vocabulary: vocabulary=few categories=hash
# Which samples come when.
samples are assigned anew in each epoch, by chance: reshuffle=global|batch shard_order=other
every replica walks all samples: mode=full reshuffle=global|batch
one batch of all replicas is drawn from all samples: reshuffle=batch + memory=stream, servers=alone
every replica walks all samples: mode=full shard_order=other
# The model.
one layer has no other to share with: hidden=none ties=one|two
one layer is no two stages: hidden=none stages=2
there is no batch norm: norm=none|layer + batch_norm=shared, precise_bn=yes
# What is kept and measured.
the learning rate falls by the validation set: schedule=plateau validation=none command=train|sweep|halving
the best is that of the validation set: validation=none command=train|sweep|halving + early_stopping=yes,
  best_by=metric
the last weights are kept anyway: keep=last validation=none command=train|sweep|halving
the temperature is fitted to the validation set: calibrate=yes validation=none command=train|sweep|halving
the threshold is chosen on the validation set: threshold=measure validation=none command=train|sweep|halving
halving compares by the validation set: command=halving validation=none
a fold is the validation set: command=cv validation=part|file
nothing is evaluated: look=eval|importance validation=none test=no command=train|sweep|halving
a run that is never evaluated does not end early: early_stopping=yes evaluations=never
a rate that falls by evaluations needs some: schedule=plateau evaluations=never
numbers have no probabilities: calibrate=yes task=value
a temperature is fitted to cross entropy: calibrate=yes loss=third
only one yes or no has a threshold: threshold=measure|number + task=classes|value, targets=several
margins are not probabilities: threshold=measure|number loss=third
one pixel says nothing: look=importance image=yes
# Steps.
samples are left out on purpose: audit=yes + tail=drop, servers=alone
others wait for the step that is left out: bad_steps=skipped + strategy=local_sgd, servers=alone
what a message makes up for would be a bad number: bad_steps=skipped compression=lossy
no step leaves one model: average=ema + strategy=local_sgd, servers=alone
# How the work is shared.
one run has no folds: folds=other command=train|sweep|halving
there are no classes, and only a table has groups: folds=other format=libsvm|array|synthetic + task=value,
  targets=several
one run is no trial: per_trial=one command=train
a trial that failed is not tried again by itself: resume=yes command=cv|sweep|halving
a server has a rank of its own: strategy=servers + ranks=1, per_trial=one
only servers have modes: servers=alone strategy=auto|exchange|local_sgd
only allreduce has algorithms: algorithm=other strategy=auto|servers|local_sgd
messages of all algorithms but auto are whole: algorithm=other compression=lossy
a step is as many samples as a worker has: servers=alone batch=uneven
gradients count as they arrive: servers=alone reduction=ordered
replicas are never at the same step: servers=alone batch_norm=shared
replicas take steps of their own: strategy=local_sgd batch_norm=shared
the sum would depend on the ranks: reduction=ordered compression=lossy
weights are sent as they are: strategy=local_sgd compression=lossy
two stages are two ranks: stages=2 + ranks=1|3, per_trial=one
servers own whole models: stages=2 strategy=servers
a group takes its replicas through the same weights: stages=2 strategy=local_sgd
what messages lose is kept of the whole model: stages=2 compression=lossy
a stage takes one micro-batch after the other: stages=2 threads=2
there are no stages: pipeline=gpipe stages=1
replicas meet at each such layer: stages=2 pipeline=1f1b batch_norm=shared
"""


def combinations(text):
    """Those that cannot be, {factor: levels}."""
    for line in re.sub("#.*", "", text).replace("\n  ", " ").split("\n"):
        common, _, others = line.rpartition(": ")[2].rpartition(" + ")
        for other in others.split(", ") if line else ():
            words = (word.split("=") for word in f"{common} {other}".split())
            yield {name: frozenset(levels.split("|")) for name, levels in words}


RULES_OF = {name: [] for name in FACTORS}
for rule in combinations(FORBIDDEN):
    for name in rule:
        RULES_OF[name].append(rule)


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

    Depth-first search. Of the levels of a factor that with the highest gain(factor, level, levels left of all) is tried
    first. Factors in rules that could not be kept are decided first, so that it is soon seen that there is no
    experiment.
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
