"""Small data sets with something of everything, and runs on them: the reproductions of faults, and others that the
auditor's own test looks at."""

import datetime
import pathlib
import random

COLUMNS = "id,when,age,hours,city,zip,weight,zero,income,price,t1,t2,kind,count"


def people(rows, seed, bad=()):
    dice = random.Random(seed)
    lines = [COLUMNS]
    for i in range(rows):
        age, hours = dice.randrange(20, 66), dice.randrange(0, 50)
        city, code = dice.choice(["Oslo", "Bergen", "Voss"]), f"{dice.randrange(60):04d}"
        income = "high" if age / 2 + hours + dice.gauss(0, 8) > 45 else "low"
        price = 1000 * (age + hours) + dice.gauss(0, 3000) + 20000 * (city == "Oslo")
        t1, t2 = int(age + dice.gauss(0, 9) > 40), int(hours + dice.gauss(0, 9) > 25)
        kind = "abc"[min(2, int((age - 20) / 16 + dice.random()))]
        when = f"20{10 + i % 10:02d}-{1 + i % 12:02d}-{1 + i % 28:02d}"
        shown = "oops" if i in bad else "NA" if dice.random() < 0.05 else age
        lines.append(f"p{i},{when},{shown},{hours},{city},{code},{1 + i % 3},{i % 4},{income},{price:.2f},{t1},{t2 if i % 5 > 2 else ''},{kind},{hours // 10}")
    return "\n".join(lines) + "\n"


def sales(days, seed, ahead=7):
    """Of two stores, by day: the one lacks two days and a number; of the last days nothing is known but the
    holidays."""
    dice = random.Random(seed)
    lines = ["day,store,holiday,price,sold"]
    for i in range(days + ahead):
        day, holiday = datetime.date(2023, 1, 1) + datetime.timedelta(days=i), int(i % 30 == 4)
        for k, store in enumerate(("mill", "north")):
            if k == 1 and i in (40, 41):
                continue
            sold = (30 + 20 * k + i / 10) * (1.5 if i % 7 == 6 else 1) * (0.4 if holiday else 1) + dice.gauss(0, 2)
            known = i < days and (i, k) != (70, 0)
            lines.append(f"{day},{store},{holiday},{2 + i // 50 / 10 + dice.random() / 10:.3f},{f'{sold:.1f}' if known else ''}")
    return "\n".join(lines) + "\n"


def write_data(directory):
    directory = pathlib.Path(directory)
    (directory / "sales.csv").write_text(sales(170, 6))
    (directory / "people.csv").write_text(people(600, 1))
    (directory / "test.csv").write_text(people(200, 2))
    (directory / "bad.csv").write_text(people(300, 3, bad=(7, 60)))
    dice = random.Random(4)
    with open(directory / "sparse.libsvm", "w") as file:
        for _ in range(300):
            values = {i: round(dice.gauss(0, 1), 3) for i in sorted(dice.sample(range(1, 12), 4))}
            file.write(f"{int(sum(values.values()) > 0)} " + " ".join(f"{i}:{v}" for i, v in values.items()) + "\n")
    with open(directory / "gaps.csv", "w") as file:
        file.write("x,colour,y\n")
        for i in range(200):
            x, colour = dice.gauss(0, 1), "" if i % 4 == 0 else dice.choice(["red", "green", "blue"])
            file.write(f"{x:.6f},{colour},{int(x + dice.gauss(0, 1) > 0)}\n")
    animals = ["sheep", "goats", "h\u00e9rons", "cows"]
    lines = [f"{dice.randrange(10)} {dice.choice(animals)} and {dice.randrange(10)} {dice.choice(animals)}.\n" for _ in range(260)]
    (directory / "animals.txt").write_text("".join(lines))
    write_arrays(directory)


def write_arrays(directory):
    import numpy as np

    dice = np.random.default_rng(5)
    x = dice.normal(size=(400, 6)).astype(np.float32)
    np.savez(directory / "arrays.npz", x=x, y=(x[:, 0] + 0.5 * x[:, 1] + 0.3 * dice.normal(size=400) > 0).astype(np.int64), w=dice.integers(0, 3, 400).astype(np.float32))


ALL = ["id", "when", "age", "hours", "city", "zip", "weight", "zero", "income", "price", "t1", "t2", "kind", "count"]


def table(label, features=("age", "hours", "city", "zip"), **other):
    """Flags of a run on people.csv; `other`: keys with underscores for dots."""
    labels = label.split(",")
    used = {*labels, *features, *([other["data_weight"]] if "data_weight" in other else [])}
    flags = {"data.train": "people.csv", "data.label": label, "data.ignore": ",".join(c for c in ALL if c not in used), "data.columns": "zip: hash(16)", "train.optimizer": "adam", "train.lr": "0.01", "train.epochs": "4", "train.global_batch": "32", "train.replicas": "2", "distribute.reduction": "ordered"}
    for name, value in other.items():
        flags[name.replace("_", ".", 1)] = str(value)
    return flags


CHECKPOINTS = {"checkpoint_every": "1 epoch", "checkpoint_keep": "100", "checkpoint_wait": "true"}
CHECKPOINT_KEYS = {name.replace("_", "."): value for name, value in CHECKPOINTS.items()}
WINDOWS = {"data.train": "sales.csv", "data.time": "day", "data.series": "store", "data.window": "14", "data.horizon": "7", "data.season": "7", "train.loss": "mean_squared_error", "train.optimizer": "adam", "train.lr": "0.01", "train.epochs": "4", "train.global_batch": "32", "train.replicas": "2", "distribute.reduction": "ordered"}
TEXT = {"data.train": "animals.txt", "data.window": "16", "data.validation": "share(0.1)", "eval.metrics": "bits_per_character,perplexity", "eval.top_k": "3", "train.optimizer": "adam", "train.lr": "0.003", "train.epochs": "2", "train.global_batch": "16", "train.replicas": "2", "distribute.reduction": "ordered"}
YES = "auc,average_precision,log_loss,precision,recall,brier,ece,f1,mcc,balanced_accuracy"
HINGE = "auc,average_precision,precision,recall,f1,mcc,balanced_accuracy"
NUMBERS = "mean_absolute_error,mean_squared_error,r2,root_mean_squared_error,mean_absolute_percentage_error,spearman"

EXAMPLES = {
    "yes": table("income", model_layers="dense(16) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", data_test="test.csv", eval_metrics=YES, eval_threshold="f1", **CHECKPOINTS),
    "folded": table("income", data_fold_case="true", data_missing_values=",NA,12", data_columns='zip: hash(16),"hours: missing(7, 49)"', model_layers="dense(8) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25"),
    "calibrated": table("income", model_layers="dense(16) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", train_calibrate="temperature", train_epochs="12", eval_metrics=YES, eval_threshold="youden", **CHECKPOINTS),
    "calibrated-test": table("kind", model_layers="dense(8) tanh dense(3)", data_validation="stratified(0.2)", data_test="test.csv", train_calibrate="temperature", eval_metrics=YES, **CHECKPOINTS),
    "two-classes": table("income", model_layers="dense(8) relu dense(2)", data_validation="time(when, 0.2)", data_test_part="time(when, from = '2018-03-01', to = '2019-06-01')", data_scale="robust bins(8)", eval_metrics=YES, eval_threshold="0.3", **CHECKPOINTS),
    "classes": table("kind", model_layers="dense(8) relu dense(3)", data_validation="group(zip, 0.2)", data_test_part="stratified(0.1)", train_label_smoothing="0.1", eval_metrics=YES, eval_top_k="2", **CHECKPOINTS),
    "focal": table("kind", model_layers="dense(8) relu dense(3)", train_loss="softmax_focal", data_validation_share="0.2", train_class_weights="balanced", eval_class_weights="true", eval_metrics=YES),
    "hinge": table("kind", model_layers="dense(8) relu dense(3)", train_loss="multiclass_hinge", data_test="test.csv", eval_metrics=HINGE),
    "yes-hinge": table("income", model_layers="dense(8) relu dense(1)", train_loss="binary_hinge", data_test="test.csv", eval_metrics=HINGE),
    "weights": table("income", data_weight="zero", model_layers="dense(8) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25", eval_metrics=YES, **CHECKPOINTS),
    "several-yes": table("t1,t2", data_test_part="group(city, 0.3)", model_layers="dense(8) relu dense(2)", train_loss="binary_cross_entropy", data_validation_share="0.25", eval_metrics=YES),
    "price": table("price", data_columns="price: standard,zip: hash(16)", model_layers="dense(16) relu dense(1)", train_loss="mean_squared_error", data_validation_share="0.25", eval_metrics=NUMBERS, **CHECKPOINTS),
    "prices": table("price,hours", features=("age", "city"), data_weight="weight", data_columns="price: log,hours: minmax", model_layers="dense(16) relu dense(2)", train_loss="huber", data_test="test.csv", data_validation_share="0.25", eval_metrics=NUMBERS),
    "weighted-price": table("price", data_weight="zero", data_test_part="share(0.2)", data_columns="price: standard,zip: hash(16)", model_layers="dense(16) relu dense(1)", train_loss="mean_squared_error", data_validation_share="0.25", eval_metrics=NUMBERS),
    "quantiles": table("price", data_columns="price: standard,zip: hash(16)", model_layers="dense(16) relu dense(3)", train_loss="quantile", train_quantiles="0.1,0.5,0.9", data_validation_share="0.25"),
    "counts": table("count", features=("age", "city", "when"), model_layers="dense(16) relu dense(1)", train_loss="poisson", data_validation_share="0.25", data_columns=""),
    "bad": table("income", data_train="bad.csv", data_on_bad_record="skip", data_max_bad_share="0.5", data_numeric="age", model_layers="dense(8) relu dense(1)", train_loss="binary_cross_entropy", data_validation_share="0.25"),
    "cv-bad": table("income", data_train="bad.csv", data_on_bad_record="skip", data_max_bad_share="0.5", data_numeric="age", model_layers="dense(8) relu dense(1)", train_loss="binary_cross_entropy", train_calibrate="temperature"),
    "schedule": table("income", model_layers="dense(8) relu dense(2)", train_schedule="cosine", train_warmup="1 epoch", train_lr_scaling="sqrt", train_ema="0.9", eval_every="10 steps", data_validation_share="0.2", data_mode="full", train_epochs="2"),
    "sparse": {"data.train": "sparse.libsvm", "data.columns": "label: categorical", "model.layers": "dense(2)", "train.epochs": "3", "train.global_batch": "20", "data.validation_share": "0.2", "train.replicas": "2"},
    "arrays": {"data.train": "arrays.npz:x", "data.train_labels": "arrays.npz:y", "data.train_weights": "arrays.npz:w", "model.layers": "dense(4, shared=2) relu dense(2)", "train.epochs": "3", "train.global_batch": "20", "data.validation_share": "0.2", "train.replicas": "2", "data.mean": "0.1", "data.std": "1.5", "train.tail": "drop", "eval.metrics": YES},
    "gaps": {"data.train": "gaps.csv", "data.label": "y", "data.columns": "y: categorical", "model.layers": "dense(4) tanh dense(1)", "train.loss": "binary_cross_entropy", "train.epochs": "2", "train.global_batch": "20", "data.validation_share": "0.2", "train.replicas": "2"},
    "log-price": table("price", data_test_part="time(when, 0.1)", data_columns="price: log,zip: hash(16)", model_layers="dense(8) relu dense(1)", train_loss="mean_squared_error", data_validation_share="0.25", train_epochs="2"),
    "preset-price": table("price", data_columns="price: standard,zip: hash(16)", model_preset="mlp", model_outputs="1", train_loss="mean_squared_error", data_validation_share="0.25", train_epochs="2"),
    "forecast": {**WINDOWS, "data.label": "sold", "data.columns": "sold: standard", "data.future": "holiday", "data.window_scale": "last", "data.validation": "time(day, 0.2)", "data.test_part": "time(day, from = '2023-05-20')", "model.preset": "forecast_mlp", "model.outputs": "7", **CHECKPOINT_KEYS},
    "forecasts": {**WINDOWS, "data.label": "sold,price", "data.columns": "sold: standard,price: minmax", "data.ignore": "store,holiday", "data.fill_gaps": "last", "data.stride": "2", "data.window_scale": "standard", "data.validation": "group(store, 0.5)", "train.loss": "quantile", "train.quantiles": "0.1,0.5,0.9", "model.layers": "dense(21, shared=2)"},
    "text": {**TEXT, "model.layers": "embedding(27, 16) positions(learned) transformer(1, 2, causal=true) layer_norm dense(27, bias=false, tie=0)", "report.sample": "3 sheep and ", **CHECKPOINT_KEYS},
    "synthetic": {"data.format": "synthetic", "data.synthetic_rows": "500", "data.synthetic_test_rows": "100", "data.synthetic_classes": "3", "model.layers": "dense(8) relu dense(3)", "train.epochs": "3", "train.global_batch": "20", "train.replicas": "2"},
}


def flags_of(name):
    return [word for key, value in EXAMPLES[name].items() for word in (f"--{key}", value)]
