"""Runs of what the examples and the random experiments seldom have: other files, other notations, other folds, several
ranks, runs that end early or go on."""

import pathlib
import random

from .examples import CHECKPOINT_KEYS, CHECKPOINTS, HINGE, NUMBERS, TEXT, YES, people, table

BATCH = {"train.epochs": "2", "train.global_batch": "20", "train.replicas": "2", "distribute.reduction": "ordered"}
TWO = {"data.validation_share": "0.2", "eval.metrics": YES}
SERIES = {"data.train": "series.npz:x", "data.train_lengths": "series.npz:lengths", "data.record": "sequence", "data.validation_share": "0.3", **BATCH}


def write_data(directory):
    import h5py
    import numpy as np

    directory = pathlib.Path(directory)
    dice = np.random.default_rng(11)
    x = dice.normal(size=(300, 4)).astype(np.float32)
    y = (x[:, 0] - 0.5 * x[:, 1] + 0.4 * dice.normal(size=300) > 0).astype(np.uint8)
    weights = dice.integers(1, 4, 300).astype(np.float32)
    with h5py.File(directory / "data.h5", "w") as file:
        file["x"], file["y"], file["w"] = x, y.astype(np.int32), weights
        file["group/values"] = (2 * x[:, 1] + 1).astype(np.float64)
    pixels = dice.integers(0, 256, (300, 4, 4)).astype(np.uint8)
    pixels[:, 1, 1] = np.where(y > 0, 200, 40) + dice.integers(0, 50, 300)
    for name, array in (("x", pixels), ("y", y)):
        (directory / f"{name}-idx-ubyte").write_bytes(bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes())
    (directory / "records.raw").write_bytes(b"".join(np.uint8(label).tobytes() + bytes(2) + row.astype("<f2").tobytes() for label, row in zip(y, x)))
    for kind, labels in (("cifar10", 1), ("cifar100", 2)):
        for part, rows in (("train", 60), ("test", 30)):
            images = dice.integers(0, 256, (rows, labels + 3072)).astype(np.uint8)
            images[:, :labels] %= 10
            (directory / f"{kind}-{part}.bin").write_bytes(images.tobytes())
    # Sequences of different lengths, with a class for each position, and padding that nothing may see.
    series, lengths = dice.normal(size=(120, 6, 3)).astype(np.float32), dice.integers(1, 7, 120).astype(np.int32)
    classes = (series[:, :, 0] + np.roll(series[:, :, 0], 1, axis=1) > 0).astype(np.int64) + (series[:, :, 1] > 1)
    padding = np.arange(6)[None, :] >= lengths[:, None]
    series[padding], classes[padding] = np.nan, 99
    np.savez(directory / "series.npz", x=series, y=classes, lengths=lengths, w=dice.integers(0, 3, 120).astype(np.float32), first=classes[:, 0])
    for part in (0, 1):
        np.save(directory / f"part{part}-x.npy", x[150 * part : 150 * part + 150])
        np.save(directory / f"part{part}-y.npy", y[150 * part : 150 * part + 150])
    for part in (1, 2):
        (directory / f"people-{part}.csv").write_text(people(200, 20 + part))
    write_german(directory)
    write_dates(directory)


def write_dates(directory):
    """A column for each form of dates, some with texts for a missing one; found, but for those of dates.toml."""
    import datetime

    dice = random.Random(14)
    day = datetime.timedelta(days=1)
    since = datetime.datetime(1970, 1, 1)
    forms = {
        "mail": lambda t: t.strftime("%a, %d %b %Y %H:%M:%S -0500"), "ampm": lambda t: t.strftime("%m/%d/%Y %I:%M %p"),
        "word": lambda t: t.strftime("%A, %B %d, %Y"), "log": lambda t: t.strftime("%Y-%m-%d %H:%M:%S,250"), "week": lambda t: t.strftime("%G-W%V-%u"),
        "ordinal": lambda t: t.strftime("%Y-%j"), "month": lambda t: t.strftime("%b-%y"), "clock": lambda t: t.strftime("%I:%M %p"),
        "born": lambda t: t.strftime("%d.%m.") + f"{30 + t.toordinal() % 60}", "number": lambda t: t.strftime("%Y%m%d"),
        "ms": lambda t: str(int((t - since) / day * 86400000)), "excel": lambda t: str((t - since).days + 25569),
    }  # fmt: skip
    lines = [",".join([*forms, "late"])]
    for i in range(260):
        time = datetime.datetime(2019, 1, 3, 10, 30) + datetime.timedelta(days=dice.randrange(900), minutes=dice.randrange(1440))
        cells = ["NaT" if name == "ampm" and i % 9 == 0 else "unknown" if name == "log" and i % 13 == 0 else write(time) for name, write in forms.items()]
        lines.append(",".join([*(f'"{cell}"' for cell in cells), "yes" if time.month > 6 else "no"]))
    (directory / "dates.csv").write_text("\n".join(lines) + "\n")
    (directory / "dates.toml").write_text("""[data]
columns = ["born: date(dmy, day, year, before = 2010)", "number: date(ymd)", "ms: date(epoch_ms)", "excel: date(excel)"]
""")


def write_german(directory):
    """Semicolons, decimal commas, points between thousands, dates with the day first, windows-1252, a title, no
    header."""
    dice = random.Random(12)
    lines = ["Kundenliste", "Stand: heute"]
    for i in range(240):
        amount, size = dice.gauss(3000, 1500), dice.gauss(0, 1)
        shown = f"{amount:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") + " €"
        day = f"{1 + i % 28:02d}.{1 + i % 12:02d}.20{10 + i % 9}"
        label = "groß" if amount / 1500 + size + dice.gauss(0, 0.5) > 2 else "klein"
        lines.append(";".join([day, shown, f"{size:.3f}".replace(".", ","), dice.choice(["Köln", "Bonn", ""]), f"{dice.randrange(24):02d}:{dice.randrange(60):02d}", label]))
    (directory / "german.toml").write_text("""[data]
columns = ["c1: date(dmy, day, weekday, month, year)", "c2: number(decimal=comma, thousands=point, suffix=\\"€\\")", "c3: number(decimal=comma)", "c5: date(time, hour)"]
""")
    (directory / "german.csv").write_bytes(("\r\n".join(lines) + "\r\n").encode("windows-1252"))


GERMAN = {"data.train": "german.csv", "data.header": "no", "data.separator": ";", "data.encoding": "windows-1252", "data.skip_lines": "2", "data.label": "c6", "model.layers": "dense(8) relu dense(1)", "train.loss": "binary_cross_entropy", **BATCH, **TWO}
IMAGES = {"data.train": "x-idx-ubyte", "data.train_labels": "y-idx-ubyte"}
FOLDS = {"model_layers": "dense(8) relu dense(3)", "data_folds": "4", "data_fold": "2", "eval_metrics": YES, "train_epochs": "2"}

EXAMPLES = {
    "hdf5": {"data.train": "data.h5:x", "data.train_labels": "data.h5:y", "data.train_weights": "data.h5:w", "model.layers": "dense(6) tanh dense(1)", "train.loss": "binary_cross_entropy", **BATCH, **TWO},
    "hdf5-values": {"data.train": "data.h5:x", "data.train_labels": "data.h5:group/values", "model.layers": "dense(6) tanh dense(1)", "train.loss": "huber", "data.validation_share": "0.2", "eval.metrics": NUMBERS, **BATCH},
    "idx": {**IMAGES, "model.layers": "conv2d(3,3,padding=1) batch_norm relu maxpool(2) flatten dense(2)", "data.mean": "0.5", "data.std": "0.25", **BATCH, **TWO},
    "sequences": {**IMAGES, "model.layers": "as_sequence(4) conv1d(6, 3, padding=causal, dilation=2) batch_norm relu maxpool1d(2) dense(3) tanh conv1d(4, 2, stride=2) max_over_time dense(2)", **BATCH, **TWO},
    "sequence-outputs": {**IMAGES, "model.layers": "as_sequence(4) conv1d(6, 3, padding=causal, dilation=2, groups=2) tanh dense(4) conv1d(4, 2, 1, padding=same) relu conv1d(3, 2, stride=2) max_over_time dense(2)", "data.validation_share": "0.2", "eval.metrics": YES, **BATCH},
    "positions": {**SERIES, "data.train_labels": "series.npz:y", "data.train_weights": "series.npz:w", "data.bucket_by_length": "2", "model.layers": "conv1d(6, 3, padding=same) tanh gru(4, bidirectional=true) dense(3)", "eval.metrics": YES, **CHECKPOINT_KEYS},
    "padded-sequences": {**SERIES, "data.train_labels": "series.npz:first", "model.layers": "conv1d(5, 2) batch_norm relu lstm(4, layers=2) max_over_time dense(3)"},
    "idx-stratified": {**IMAGES, "model.layers": "flatten dense(2)", "data.validation": "stratified(0.2)", "eval.metrics": YES, **BATCH},
    "raw": {"data.train": "records.raw", "data.format": "raw", "data.raw_layout": "label:u8 skip:u8[2] features:f16[4]", "model.layers": "dense(6) gelu dense(1)", "train.loss": "binary_focal", **BATCH, **TWO},
    "cifar10": {"data.train": "cifar10-train.bin", "data.test": "cifar10-test.bin", "data.format": "cifar10", "model.layers": "flatten dense(10)", "eval.metrics": "auc,f1", "eval.top_k": "3", **BATCH},
    "cifar100": {"data.train": "cifar100-train.bin", "data.test": "cifar100-test.bin", "data.format": "cifar100", "model.layers": "flatten dense(100)", **BATCH},
    "several-arrays": {"data.train": "part*-x.npy", "data.train_labels": "part*-y.npy", "model.layers": "dense(2)", "train.loss": "multiclass_hinge", "data.validation_share": "0.2", "eval.metrics": HINGE, **BATCH},
    "several-tables": table("kind", data_train="people-1.csv,people-2.csv", data_test="people-*.csv", model_layers="dense(8) relu dense(3)", eval_metrics=YES, **CHECKPOINTS),
    "german": GERMAN,
    "dates": {"data.train": "dates.csv", "data.label": "late", "data.validation": "time(mail, 0.2)", "eval.metrics": YES, "model.layers": "dense(8) relu dense(1)", "train.loss": "binary_cross_entropy", **BATCH},
    "folds-by-record": table("kind", **FOLDS),
    "folds-by-class": table("kind", data_fold_by="class", **FOLDS),
    "folds-by-group": table("kind", data_fold_by="group", data_fold_column="zip", **FOLDS),
    "folds-by-time": table("kind", features=("age", "hours", "when"), data_fold_by="time", data_fold_column="when", data_columns="", **FOLDS),
    "folds-by-column": table("kind", data_fold_by="column", data_fold_column="weight", **{**FOLDS, "data_folds": "3"}),
    "two-ranks": table("income", model_layers="dense(8) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", eval_metrics=YES, distribute_strategy="zero1", **CHECKPOINTS),
    "three-ranks": table("price", data_columns="price: standard,zip: hash(16)", model_layers="dense(8) relu dense(1)", train_loss="mean_squared_error", data_validation_share="0.25", train_replicas="6", eval_metrics=NUMBERS),
    "stages": table("income", model_layers="dense(8) relu dense(8) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", train_accumulate="2", distribute_stages="2", eval_metrics=YES),
    "groups": table("income", model_layers="dense(8) relu dense(8) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", train_accumulate="2", distribute_stages="2", distribute_placement="spread", eval_metrics=YES),
    "servers": table("income", model_layers="dense(8) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", distribute_strategy="parameter_server", distribute_servers="1", distribute_mode="async", distribute_reduction="native", eval_metrics=YES),
    "local": table("kind", model_layers="dense(8) relu dense(3)", data_validation_share="0.25", distribute_strategy="local_sgd", distribute_average_every="3", eval_metrics=YES),
    "early": table("income", model_layers="dense(32) relu dense(32) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", train_lr="0.05", train_epochs="40", train_early_stopping="2 evaluations", eval_metrics=YES),
    "plateau": table("price", data_columns="price: standard,zip: hash(16)", model_layers="dense(16) relu dense(1)", train_loss="mean_squared_error", data_validation_share="0.25", train_epochs="8", train_schedule="plateau", train_plateau_patience="1 evaluations"),
    "resumed": table("income", model_layers="dense(8) relu dropout(0.2) dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", train_swa_from="1 epoch", eval_metrics=YES, **CHECKPOINTS),
    "delays": table("income", model_layers="dense(8) batch_norm relu dense(1)", model_batch_norm="group(2)", train_loss="binary_cross_entropy", train_replicas="4", train_global_batch="48", train_accumulate="3", train_epochs="2", data_validation_share="0.2", debug_delay_rank="1", debug_delay_ms="5"),
    "streamed": table("kind", model_layers="dense(8) relu dense(3)", data_memory="stream", data_validation_share="0.2", data_audit="true", eval_metrics=YES),
    "bf16": table("income", model_layers="dense(16) relu dense(1)", train_loss="binary_cross_entropy", train_precision="bf16", data_validation_share="0.25", eval_metrics=YES),
    "several-quantiles": table("price,hours", features=("age", "city"), data_columns="price: standard,hours: standard", model_layers="dense(8) relu dense(4)", train_loss="quantile", train_quantiles="0.25,0.75", data_validation_share="0.25"),
    "tweedie": table("count", data_columns="zip: hash(16)", model_layers="dense(8) relu dense(1)", train_loss="tweedie", data_test="test.csv"),
    "cosine": {"data.train": "data.h5:x", "data.train_labels": "data.h5:x", "model.layers": "dense(4)", "train.loss": "cosine_distance", "data.validation_share": "0.2", **BATCH},
    "text-bytes": {**TEXT, "data.tokens": "bytes", "data.draw": "anywhere", "data.test_part": "share(0.1)", "model.layers": "embedding(256, 12) transformer(1, 2, causal=true, rotary=true, kv_heads=1, window=9, bias=false, norm=rms_norm, mlp=swiglu) dense(256)"},
    "text-words": {**TEXT, "data.tokens": "words(12)", "data.unknown": "replace", "data.test": "animals.txt", "model.layers": "embedding(13, 8) positions(sinusoidal) attention(2, causal=true) gelu(tanh) dense(13)"},
}  # fmt: skip
CONFIGS = {"german": "german.toml", "dates": "dates.toml"}
RANKS = {"positions": 2, "two-ranks": 2, "three-ranks": 3, "stages": 2, "groups": 4, "servers": 3, "local": 2, "streamed": 2, "delays": 2}
FAILS = {"resumed": ["--debug.fail_rank", "0", "--debug.fail_step", "40"]}  # and goes on
