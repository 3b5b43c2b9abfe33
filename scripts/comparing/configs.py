"""The configs of the cases: generated records, a table, its plain columns, arrays, images, a text, series, sequences."""

REPEATABLE = """[distribute]
reduction = "ordered"
[checkpoint]
wait = true
"""

SYNTHETIC = """
[run]
dir = "run"
log_every = 4
[data]
format = "synthetic"
synthetic_rows = 300
synthetic_validation_rows = 60
synthetic_test_rows = 50
synthetic_classes = 3
[model]
layers = "dense(12) relu dense(3)"
[train]
lr = 0.05
epochs = 2
global_batch = 30
replicas = 4
""" + REPEATABLE

TABLE = """
[run]
dir = "run"
log_every = 5
[data]
train = "data/people_bad.csv"
test = "data/people_test.csv"
validation = "stratified(0.2)"
label = ["income"]
weight = "persons"
ignore = ["id", "kind", "price", "t1"]
columns = ["joined: date(ymd, day, year, month, weekday)", "seen: date(dmy, day, hour, day_of_year)", "zip: hash(8)",
  "salary: number(thousands=comma, prefix=\\"$\\") log bins(6)", "rate: number(suffix=\\"%\\") robust constant(20)",
  "area: number(decimal=comma) minmax", "hours: bins(8, by=label, leaf=10)", "customer: index", "income: categorical"]
on_bad_record = "skip"
max_bad_share = 0.1
[model]
layers = "dense(16) batch_norm relu dropout(0.2) dense(1)"
batch_norm = "sync"
[train]
loss = "binary_cross_entropy"
momentum = 0.9
weight_decay = 0.01
lr = 0.02
schedule = "cosine"
warmup = "5 steps"
epochs = 8
global_batch = 40
replicas = 4
accumulate = 2
class_weights = ["balanced"]
clip_norm = 1.0
ema = 0.9
early_stopping = "3 epochs"
early_stopping_metric = "auc"
calibrate = "temperature"
[eval]
metrics = ["auc", "log_loss", "precision", "recall", "average_precision", "brier", "ece", "f1", "mcc", "balanced_accuracy"]
threshold = "f1"
[report]
tensorboard = true
histograms = true
""" + REPEATABLE

PLAIN_TABLE = """
[run]
dir = "run"
[data]
train = "data/people.csv"
test = "data/people_test.csv"
validation = "share(0.2)"
label = ["kind"]
numeric = ["age", "hours"]
categorical = ["city", "kind"]
ignore = ["id", "joined", "seen", "stamp", "zip", "salary", "rate", "area", "customer", "part", "persons", "income", "price",
  "visits", "t1", "t2"]
[model]
layers = "dense(12) relu dense(3)"
[train]
optimizer = "adam"
lr = 0.02
epochs = 4
global_batch = 50
replicas = 2
""" + REPEATABLE

ARRAYS = """
[run]
dir = "run"
[data]
train = "data/x.npy"
train_labels = "data/classes.npy"
validation = "share(0.2)"
[model]
layers = "dense(10) relu dense(3)"
[train]
lr = 0.05
steps = 12
global_batch = 32
replicas = 2
""" + REPEATABLE

IMAGES = """
[run]
dir = "run"
[data]
train = "data/small-images.idx"
train_labels = "data/small-labels.idx"
validation = "share(0.2)"
[model]
layers = "conv2d(4, 3, padding=same) relu maxpool(2) flatten dense(3)"
[train]
lr = 0.05
momentum = 0.9
steps = 8
global_batch = 24
replicas = 2
""" + REPEATABLE

TEXT = """
[run]
dir = "run"
log_every = 5
[data]
train = "data/story.txt"
tokens = "characters"
window = 12
draw = "anywhere"
validation = "share(0.15)"
[model]
layers = "embedding(40, 12) transformer(1, 2, causal=true, rotary=true) layer_norm dense(40)"
[train]
loss = "softmax_cross_entropy"
momentum = 0.9
lr = 0.1
steps = 20
global_batch = 16
replicas = 2
[eval]
metrics = ["bits_per_character", "perplexity"]
""" + REPEATABLE

SERIES = """
[run]
dir = "run"
[data]
train = "data/shops.csv"
label = ["sold"]
time = "day"
series = "shop"
window = 14
horizon = 5
fill_gaps = "last"
season = 7
columns = ["sold: standard", "day: date(ymd, weekday, month)", "guests: minmax"]
validation = "time(day, 0.2)"
test_part = "time(day, 0.15)"
[model]
layers = "dense(8) tanh dense(5)"
[train]
loss = "mean_absolute_error"
lr = 0.02
epochs = 3
global_batch = 20
replicas = 2
""" + REPEATABLE

SEQUENCES = """
[run]
dir = "run"
[data]
train = "data/steps.npy"
train_labels = "data/kinds.npy"
train_lengths = "data/how_long.npy"
record = "sequence"
validation = "share(0.25)"
[model]
layers = "gru(6, last=true) dense(3)"
[train]
lr = 0.05
momentum = 0.9
epochs = 3
global_batch = 20
replicas = 2
""" + REPEATABLE
