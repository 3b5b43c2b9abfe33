"""Runs that the auditor's own test looks at: what random experiments seldom have, such as rare files, notations and
folds, several ranks, runs that end early or go on. Each is: name | groups of flags | layers | flags beside those."""

from .example_data import COLUMNS


def rows_of(text):
    """The cells of each line; one that begins with a blank goes on with the line before."""
    return [[cell.strip() for cell in line.split(" | ")] for line in text.strip().replace("\n  ", " ").splitlines()]


def flags_of_line(known, groups="-", layers="-", *flags):
    found = {}
    for group in groups.split() if groups != "-" else ():
        found |= known[group]
    return found | ({"model.layers": layers} if layers != "-" else {}) | dict(flag.split("=", 1) for flag in flags)


def examples(text):
    """The flags of each run by its name. `features` of people.csv leave out all other columns."""
    found = {name: flags_of_line(GROUPS, *cells) for name, *cells in rows_of(text)}
    for flags in found.values():
        if features := flags.pop("features", None):
            used = {*features.split(","), *flags["data.label"].split(","), flags.get("data.weight")}
            flags["data.ignore"] = ",".join(column for column in COLUMNS.split(",") if column not in used)
    return found


GROUPS = {}
for name, *cells in rows_of("""
steps | - | - | train.optimizer=adam | train.lr=0.01 | train.epochs=4 | train.global_batch=32 | train.replicas=2
  | distribute.reduction=ordered
people | steps | - | data.train=people.csv | features=age,hours,city,zip | data.columns=zip: hash(16)
batch | - | - | train.epochs=2 | train.global_batch=20 | train.replicas=2 | distribute.reduction=ordered
checkpoints | - | - | checkpoint.every=1 epoch | checkpoint.keep=100 | checkpoint.wait=true
entropy | - | - | train.loss=binary_cross_entropy
squares | - | - | train.loss=mean_squared_error
quantiles | - | - | train.loss=quantile | train.quantiles=0.1,0.5,0.9
quarter | - | - | data.validation=share(0.25)
fifth | - | - | data.validation=share(0.2)
test | - | - | data.test=test.csv
measured | - | - | eval.metrics=auc,average_precision,log_loss,precision,recall,brier,ece,f1,mcc,balanced_accuracy
margins | - | - | eval.metrics=auc,average_precision,precision,recall,f1,mcc,balanced_accuracy
errors | - | - |
  eval.metrics=mean_absolute_error,mean_squared_error,r2,root_mean_squared_error,mean_absolute_percentage_error,spearman
income | people | - | data.label=income
kind | people | - | data.label=kind
price | people squares quarter | - | data.label=price | data.columns=price: standard,zip: hash(16)
folds | kind measured | - | data.validation=fold(2/4) | train.epochs=2
bad | income entropy | - | data.train=bad.csv | data.on_bad_record=skip | data.max_bad_share=0.5 | data.numeric=age
windows | steps squares | - | data.train=sales.csv | data.time=day | data.series=store | data.window=14
  | data.horizon=7 | data.season=7
text | steps | - | data.train=animals.txt | data.window=16 | data.validation=share(0.1)
  | eval.metrics=bits_per_character,perplexity | eval.top_k=3 | train.lr=0.003 | train.epochs=2 | train.global_batch=16
hdf5 | batch fifth | - | data.train=data.h5:x | data.train_labels=data.h5:y
idx | batch | - | data.train=x-idx-ubyte | data.train_labels=y-idx-ubyte
series | batch | - | data.train=series.npz:x | data.train_lengths=series.npz:lengths | data.record=sequence
  | data.validation=share(0.3)
yes | income entropy quarter measured
thrice | - | - | train.epochs=3 | train.global_batch=20 | train.replicas=2
parts | yes | - | train.accumulate=2 | distribute.stages=2
"""):
    GROUPS[name] = flags_of_line(GROUPS, *cells)

EXAMPLES = examples("""
yes | yes checkpoints test | dense(16) relu dense(1) | eval.threshold=f1
folded | income entropy quarter | dense(8) relu dense(1) | data.columns=zip: hash(16),"hours: missing(7, 49)"
  | data.fold_case=true | data.missing_values=,NA,12
calibrated | yes checkpoints | dense(16) relu dense(1) | train.epochs=12 | train.calibrate=temperature
  | eval.threshold=youden
calibrated-test | kind checkpoints test measured | dense(8) tanh dense(3) | data.validation=stratified(0.2)
  | train.calibrate=temperature
two-classes | income checkpoints measured | dense(8) relu dense(2) | data.validation=time(when, 0.2)
  | data.test_part=time(when, from = '2018-03-01', to = '2019-06-01') | data.scale=robust bins(8) | eval.threshold=0.3
classes | kind checkpoints measured | dense(8) relu dense(3) | data.validation=group(zip, 0.2)
  | data.test_part=stratified(0.1) | train.label_smoothing=0.1 | eval.top_k=2
focal | kind fifth measured | dense(8) relu dense(3) | train.loss=softmax_focal | train.class_weights=balanced
  | eval.class_weights=true
hinge | kind test margins | dense(8) relu dense(3) | train.loss=multiclass_hinge
yes-hinge | income test margins | dense(8) relu dense(1) | train.loss=binary_hinge
weights | yes checkpoints | dense(8) relu dense(1) | data.weight=zero
several-yes | people entropy quarter measured | dense(8) relu dense(2) | data.label=t1,t2
  | data.test_part=group(city, 0.3)
price | price checkpoints errors | dense(16) relu dense(1)
prices | people quarter test errors | dense(16) relu dense(2) | data.label=price,hours
  | data.columns=price: log,hours: minmax | data.weight=weight | train.loss=huber | features=age,city
weighted-price | price errors | dense(16) relu dense(1) | data.weight=zero | data.test_part=share(0.2)
quantiles | price quantiles | dense(16) relu dense(3)
counts | people quarter | dense(16) relu dense(1) | data.label=count | data.columns= | train.loss=poisson
  | features=when,age,city
bad | bad quarter | dense(8) relu dense(1)
cv-bad | bad | dense(8) relu dense(1) | train.calibrate=temperature
schedule | income fifth | dense(8) relu dense(2) | train.epochs=2 | train.schedule=cosine | train.warmup=1 epoch
  | train.lr_scaling=sqrt | train.ema=0.9 | eval.every=10 steps | data.mode=full
sparse | thrice fifth | dense(2) | data.train=sparse.libsvm | data.columns=label: categorical
arrays | thrice fifth measured | dense(4, shared=2) relu dense(2) | data.train=arrays.npz:x
  | data.train_labels=arrays.npz:y | data.train_weights=arrays.npz:w | data.mean=0.1 | data.std=1.5 | train.tail=drop
gaps | thrice entropy fifth | dense(4) tanh dense(1) | data.train=gaps.csv | data.label=y | data.columns=y: categorical
  | train.epochs=2
log-price | price | dense(8) relu dense(1) | data.columns=price: log,zip: hash(16) | train.epochs=2
  | data.test_part=time(when, 0.1)
preset-price | price | - | train.epochs=2 | model.preset=mlp | model.outputs=1
forecast | windows checkpoints | - | data.label=sold | data.columns=sold: standard | data.future=holiday
  | data.window_scale=last | data.validation=time(day, 0.2) | data.test_part=time(day, from = '2023-05-20')
  | model.preset=forecast_mlp | model.outputs=7
forecasts | windows quantiles | dense(21, shared=2) | data.label=sold,price | data.columns=sold: standard,price: minmax
  | data.ignore=store,holiday | data.fill_gaps=last | data.stride=2 | data.window_scale=standard
  | data.validation=group(store, 0.5)
text | text checkpoints
  | embedding(27, 16) positions(learned) transformer(1, 2, causal=true) layer_norm dense(27, bias=false, tie=0)
  | report.sample=3 sheep and
synthetic | thrice | dense(8) relu dense(3) | data.format=synthetic | data.synthetic_rows=500
  | data.synthetic_test_rows=100 | data.synthetic_classes=3
hdf5 | hdf5 entropy measured | dense(6) tanh dense(1) | data.train_weights=data.h5:w
hdf5-values | hdf5 errors | dense(6) tanh dense(1) | data.train_labels=data.h5:group/values | train.loss=huber
idx | idx fifth measured | conv2d(3,3,padding=1) batch_norm relu maxpool(2) flatten dense(2) | data.mean=0.5
  | data.std=0.25
sequences | idx fifth measured | as_sequence(4) conv1d(6, 3, padding=causal, dilation=2) batch_norm relu maxpool1d(2)
  dense(3) tanh conv1d(4, 2, stride=2) max_over_time dense(2)
sequence-outputs | idx fifth measured | as_sequence(4) conv1d(6, 3, padding=causal, dilation=2, groups=2) tanh dense(4)
  conv1d(4, 2, 1, padding=same) relu conv1d(3, 2, stride=2) max_over_time dense(2)
positions | series checkpoints measured | conv1d(6, 3, padding=same) tanh gru(4, bidirectional=true) dense(3)
  | data.train_labels=series.npz:y | data.train_weights=series.npz:w | data.bucket_by_length=2
padded-sequences | series | conv1d(5, 2) batch_norm relu lstm(4, layers=2) max_over_time dense(3)
  | data.train_labels=series.npz:first
idx-stratified | idx measured | flatten dense(2) | data.validation=stratified(0.2)
raw | batch fifth measured | dense(6) gelu dense(1) | data.train=records.raw | data.format=raw
  | data.raw_layout=label:u8 skip:u8[2] features:f16[4] | train.loss=binary_focal
cifar10 | batch | flatten dense(10) | data.train=cifar10-train.bin | data.test=cifar10-test.bin | data.format=cifar10
  | eval.metrics=auc,f1 | eval.top_k=3
cifar100 | batch | flatten dense(100) | data.train=cifar100-train.bin | data.test=cifar100-test.bin
  | data.format=cifar100
several-arrays | batch fifth margins | dense(2) | data.train=part*-x.npy | data.train_labels=part*-y.npy
  | train.loss=multiclass_hinge
several-tables | steps checkpoints measured | dense(8) relu dense(3) | data.train=people-1.csv,people-2.csv
  | data.label=kind | data.columns=zip: hash(16) | data.test=people-*.csv | features=age,hours,city,zip
german | batch entropy fifth measured | dense(8) relu dense(1) | data.train=german.csv | data.header=no
  | data.separator=; | data.encoding=windows-1252 | data.skip_lines=2 | data.label=c6
dates | batch entropy measured | dense(8) relu dense(1) | data.train=dates.csv | data.label=late
  | data.validation=time(mail, 0.2)
folds-by-record | folds | dense(8) relu dense(3)
folds-by-class | folds | dense(8) relu dense(3) | data.validation=fold(2/4, by = class)
folds-by-group | folds | dense(8) relu dense(3) | data.validation=fold(2/4, by = group(zip))
folds-by-time | folds | dense(8) relu dense(3) | data.columns= | data.validation=fold(2/4, by = time(when))
  | features=when,age,hours
folds-by-column | folds | dense(8) relu dense(3) | data.validation=fold(2/3, by = column(weight))
two-ranks | yes checkpoints | dense(8) relu dense(1) | distribute.strategy=zero1
three-ranks | price errors | dense(8) relu dense(1) | train.replicas=6
stages | parts | dense(8) relu dense(8) relu dense(1)
groups | parts | dense(8) relu dense(8) relu dense(1) | distribute.placement=spread
servers | yes | dense(8) relu dense(1) | distribute.reduction=native | distribute.strategy=parameter_server
  | distribute.servers=1 | distribute.mode=async
local | kind quarter measured | dense(8) relu dense(3) | distribute.strategy=local_sgd | distribute.average_every=3
early | yes | dense(32) relu dense(32) relu dense(1) | train.lr=0.05 | train.epochs=40
  | train.early_stopping=2 evaluations
plateau | price | dense(16) relu dense(1) | train.epochs=8 | train.schedule=plateau
  | train.plateau_patience=1 evaluations
resumed | yes checkpoints | dense(8) relu dropout(0.2) dense(1) | train.swa_from=1 epoch
delays | income entropy fifth | dense(8) batch_norm relu dense(1) | train.epochs=2 | train.global_batch=48
  | train.replicas=4 | model.batch_norm=group(2) | train.accumulate=3 | debug.delay_rank=1 | debug.delay_ms=5
streamed | kind fifth measured | dense(8) relu dense(3) | data.memory=stream | data.audit=true
bf16 | yes | dense(16) relu dense(1) | train.precision=bf16
several-quantiles | people quantiles quarter | dense(8) relu dense(4) | data.label=price,hours
  | data.columns=price: standard,hours: standard | train.quantiles=0.25,0.75 | features=age,city
tweedie | people test | dense(8) relu dense(1) | data.label=count | train.loss=tweedie
cosine | hdf5 | dense(4) | data.train_labels=data.h5:x | train.loss=cosine_distance
text-bytes | text | embedding(256, 12) transformer(1, 2, causal=true, rotary=true, kv_heads=1, window=9, bias=false,
  norm=rms_norm, mlp=swiglu) dense(256) | data.tokens=bytes | data.draw=anywhere | data.test_part=share(0.1)
text-words | text | embedding(13, 8) positions(sinusoidal) attention(2, causal=true) gelu(tanh) dense(13)
  | data.tokens=words(12) | data.unknown=replace | data.test=animals.txt
""")
CONFIGS = {"german": "german.toml", "dates": "dates.toml"}
RANKS = {"positions": 2, "two-ranks": 2, "three-ranks": 3, "stages": 2, "groups": 4, "servers": 3, "local": 2}
RANKS |= {"streamed": 2, "delays": 2}
FAILS = {"resumed": ["--debug.fail_rank", "0", "--debug.fail_step", "40"]}  # and goes on
