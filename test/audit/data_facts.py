"""run.json: what its notes tell of the data: which records are held back, are bad or padded, what columns and windows
are like, and what each rank has of them."""

from .arrays import sparse
from .length import length_of
from .order import share_of_padding
from .report import Span
from .splits import UNUSED, order_of_times


def check_data(sheet, run):
    data, counts = run.record["data"], {}
    for split in ("train", "validation", "test"):
        notes = data.get(split, [])
        kinds = [kind for note in notes for kind in note]
        sheet.equal(f"run.json: data.{split}: notes that have to be there", missing_notes(run, split, kinds), [])
        if run.sets[split] is None:
            continue
        for i, note in enumerate(notes):
            ((kind, shown),) = note.items()
            number = counts[split, kind] = counts.get((split, kind), -1) + 1
            right = NOTES[kind](run, split, shown, number)
            sheet.same(f"run.json: data.{split}[{i}].{kind}", shown, right)
    check_shares(sheet, run, data)


def missing_notes(run, split, kinds):
    """A part, windows and padding are always told of."""
    if (dataset := run.sets[split]) is None:
        return []
    own = split not in run.sets.parts().among
    folds = split == "validation" and run.config.get("data.fold")
    wanted = ["part"] * (not own and not dataset.windows and not folds)
    wanted += ["windows"] * bool(dataset.windows or dataset.text)
    wanted += ["padding"] * (own and dataset.lengths is not None and not dataset.text)
    return [kind for kind in wanted if kind not in kinds]


def part(run, split, shown, _):
    """Of the records that the set was chosen among, those of the part."""
    parts, whole = run.sets.parts(), run.sets.files("train")
    ids, held = parts.among[split], parts.numbers[split] == 1
    right = {"records": int(held.sum()), "of": len(parts.sets)}
    named = run.config["data.test_part" if split == "test" else "data.validation"]
    texts_of = lambda name: [run.sets.texts(whole, name)[i] for i in ids]
    if "taken" in shown:
        labels = whole.targets[ids, 0]
        kinds = sorted(set(labels))
        right["taken"] = [int((held & (labels == each)).sum()) for each in kinds]
        right["of_class"] = [int((labels == each).sum()) for each in kinds]
    elif named.startswith("group("):
        texts = texts_of(named[6:].rpartition(",")[0].strip())
        right["groups"] = [len({text for text, one in zip(texts, held) if one}), len(set(texts))]
    elif "from" in named:
        right["after"] = int((parts.numbers[split] == UNUSED).sum())
    elif named.startswith("time("):
        name = named[5:].rpartition(",")[0].strip()
        texts = texts_of(name)
        keys = order_of_times(texts, run.sets.column(name))
        ends = lambda of: sorted((key, text) for key, text, one in zip(keys, texts, held) if one == of)
        right |= {"from": ends(True)[0][1], "to": ends(True)[-1][1], "others_to": ends(False)[-1][1]}
    return right


def every_record(run, split):
    whole = run.sets.files(split)
    return len(whole.table.table.records) if whole.table else len(sparse(run.config[f"data.{split}"], run.cwd)[0])


def bad(run, split, *_):
    every = every_record(run, split)
    return {"records": every - len(run.sets.files(split)), "of": every}


def record_weights(run, split, *_):
    """They are read in double precision, and kept in single."""
    weights = run.sets.files(split).weights
    right = {"min": float(weights.min()), "max": float(weights.max()), "mean": float(weights.mean())}
    return {name: Span(x, x - 1e-7 * x, x + 1e-7 * x) for name, x in right.items()}


def categories(run, split, shown, _):
    column, train = run.sets.column(shown["column"]), run.sets.records("train")
    cells = [train.table.cells[i].get(column["name"]) or "" for i in train.numbers]
    others = sum(cell not in column["values"] for cell in cells)
    return {"column": column["name"], "different": len(set(cells)), "others": others, "of": len(cells)}


def unseen(run, split, shown, _):
    """Records with a category that no record of the training data has, or that is not among the frequent ones."""
    whole, column = run.sets.files(split), run.sets.column(shown["column"])
    others = sum((row.get(column["name"]) or "") not in column["values"] for row in whole.table.cells)
    return {"column": column["name"], "records": others, "of": len(whole)}


def different_texts(run, split, shown, _):
    """In the training files; those that stand for a missing value left out."""
    column = run.sets.column(shown["column"])
    texts = set(run.sets.texts(run.sets.files("train"), column["name"])) - set(run.schema["missing_values"])
    counted = column["use"] == "ignore" or column["kind"] == "categorical"
    counted = counted and len(texts) < 100_000
    return {"column": column["name"], "different": len(texts) if counted else shown["different"]}


def features(run, split, *_):
    indices = lambda of: [record[1] for record in sparse(run.config[f"data.{of}"], run.cwd)[0] if record]
    known = {index for record in indices("train") for index in record}
    first = 0 if 0 in known else 1
    return {"features": max(known) - first + 1, "first": first, "most": max(map(len, indices(split)))}


def padding(run, split, shown, number):
    """Of each file: how many of its positions count, in the mean, and the share of those that do not."""
    whole = run.sets.files(split)
    mean, positions = float(whole.lengths[whole.file_of == number].mean()), whole.features.shape[1]
    return {"mean": mean, "positions": positions, "share": 1 - mean / positions}


def batches(run, *_):
    """How much of a batch is padding, with runs of batches of similar lengths and without."""
    buckets = int(run.config.get("data.bucket_by_length") or 50)
    return {"buckets": buckets, "with": share_of_padding(run, buckets), "without": share_of_padding(run, 0)}


def text(run, *_):
    found = run.sets["train"].text
    return {"tokens": found.of, "vocabulary": len(found.values) + found.replaces}


def windows(run, split, *_):
    dataset, window = run.sets[split], run.config["data.window"]
    if dataset.text:
        rows, left = divmod(dataset.text.tokens - 1, window)
        anywhere = split == "train" and run.config.get("data.draw") == "anywhere"
        return {"tokens": dataset.text.tokens, "windows": rows, "left_out": 0 if anywhere else left}
    own = dataset.windows
    used = {own.positions.places[origin][3] for origin in own.origins}
    series = [len(used), len(own.positions.series)]
    return {"windows": len(own.origins), "series": series, "horizons": list(own.ends()), "left_out": own.left_out}


def positions_of(run, split):
    return run.sets.positions("train" if split in run.sets.parts().among else split)


def gaps(run, split, *_):
    found = positions_of(run, split)
    return {"missing": found.missing, "gaps": len(found.gaps), "first": (found.gaps or [""])[0]}


def irregular(run, split, *_):
    found = positions_of(run, split).irregular
    return {"steps": len(found), "first": (found or [""])[0]}


NOTES = {
    "part": part, "bad": bad, "weights": record_weights, "categories": categories, "unseen": unseen,
    "texts": different_texts, "features": features, "padding": padding, "batches": batches,
    "text": text, "windows": windows, "gaps": gaps, "irregular": irregular,
}  # fmt: skip


def check_shares(sheet, run, data):
    """What each rank has of the records, what classes weigh, and the last epoch that was audited."""
    place, length, train = "run.json: data.", length_of(run), run.sets["train"]
    if train is not None:
        sheet.equal(place + "targets", data["targets"], train.targets.shape[1])
    else:
        sheet.rename(place + "targets", "made-up data: targets")
    rows = data["rows"]
    sheet.equal(place + "rows: ranks", len(rows), length.ranks)
    for rank, shown in enumerate(rows):
        sheet.check(f"{place}rows[{rank}]", shown, length.rows, lambda a, b: 0 <= a <= b)
    one = run.config.get("distribute.stages", 1) == 1 and length.ranks - length.servers == 1
    if one and run.config.get("data.memory") != "stream":
        sheet.equal(place + "rows of the one worker", rows[0], length.rows)
    weighs = bool(run.config.get("train.class_weights"))
    sheet.equal(place + "class_weights: are there", "class_weights" in data, weighs)
    if train is not None and weighs:
        sheet.same(place + "class_weights", data["class_weights"], [float(each) for each in run.class_weights()])
    elif weighs:
        sheet.rename(place + "class_weights", "made-up data: class weights")
    if audit := data.get("audit"):
        sheet.check(place + "audit.epoch", audit["epoch"], length.epochs(length.steps) + 1, lambda a, b: 0 <= a <= b)
        sheet.equal(place + "audit.samples", audit["samples"], length.epoch_samples)
        sheet.equal(place + "audit.times", audit["times"], length.replicas if length.full else 1)
