"""The lines of `trainer predict`: numbers of the records, names of the columns, and answers as their probabilities have
them."""

import numpy as np

from .outputs import numbers
from .text_data import check_predicted_text
from .windows import check_last_windows


def check_predictions(sheet, run):
    if run.sets.texts_data:
        return check_predicted_text(sheet, run, check_answers)
    if run.config.get("data.window"):
        if names := check_last_windows(sheet, run):
            check_answers(sheet, run, "predict: ", names, [])
        return
    seen = set()
    for split in ("validation", "test"):
        dataset = run.sets[split]
        if dataset is None or run.files_text(split) in seen:
            continue
        seen.add(run.files_text(split))
        given = run.predicted(split)
        names, cells, place = given.names, given.cells, f"predict: {run.files_text(split)[0]}: "
        whole = run.sets.files(run.files_text(split)[0])
        sheet.equal(place + "numbers of the records", [row[0] for row in cells], [str(i) for i in range(len(cells))])
        if dataset.of_positions:
            wanted = [[str(number) for number in pair] for pair in zip(*whole.places())]
            sheet.equal(place + "columns of positions", names[1:3], ["record", "position"])
            sheet.equal(place + "lines", len(cells), len(wanted))
            sheet.equal(place + "lines of other positions",
                        [row[0] for row, pair in zip(cells, wanted) if row[1:3] != pair], [])
            names, cells = names[:1] + names[3:], [row[:1] + row[3:] for row in cells]
        if whole.table is not None:
            bad = sorted(set(range(len(whole.table.table.records))) - {int(row) for row in whole.rows})
            # Records without a label can be predicted.
            empty = [int(row[0]) for row in cells if not any(row[1:])]
            sheet.equal(place + "empty lines of records that can be used", sorted(set(empty) - set(bad)), [])
            sheet.equal(place + "records", len(cells), len(whole.table.table.records))
        check_answers(sheet, run, place, names, [row for row in cells if any(row[1:])])


def check_answers(sheet, run, place, names, cells, classes=None):
    form, classes = run.form, run.class_names() if classes is None else classes
    targets = [column["name"] for column in run.label_columns()] or [
        f"target{i}" for i in range(run.sets["train"].counted().targets.shape[1])]
    if form.targets == "value":
        levels = [f"q{level:g}" for level in form.levels] if form.loss == "quantile" else []
        if levels:
            right = levels if len(targets) == 1 else [f"{target}_{level}" for target in targets for level in levels]
        else:
            right = ["prediction"] if len(targets) == 1 else targets
        sheet.equal(place + "columns", names[1:], right)
        return
    begin = next(i for i, name in enumerate(names) if i and name.startswith(("p_", "score_")))
    values, answers = numbers([row[begin:] for row in cells]), [row[1:begin] for row in cells]
    threshold = float(run.metadata.get("threshold", 0.5))
    kind = "p_" if form.has_probabilities else "score_"
    if form.targets == "binary" and len(targets) > 1:
        sheet.equal(place + "columns", names[1:], [*targets, *(kind + target for target in targets)])
        border = 0.5 if form.has_probabilities else 0
        # A probability of 0.5 in single precision may be either.
        given = [[answer if abs(p - border) <= 1e-6 else str(int(p > border)) for p, answer in zip(row, said)]
                 for row, said in zip(values, answers)]
        check_same(sheet, place, answers, given)
        return
    count = values.shape[1] if form.targets == "class" or kind == "p_" else 2
    classes = classes or [str(i) for i in range(count)]
    sheet.equal(place + "columns", names[1:], [
        "prediction", *(kind + name for name in (classes if len(classes) == values.shape[1] else classes[1:]))])
    if values.shape[1] == 1:
        said = [int(row[0] > 0) for row in values]
    elif count == 2 and "threshold" in run.metadata:
        said = [int(np.float32(row[1]) >= threshold) for row in values]  # its digits are the fewest that tell
    else:
        said = values.argmax(axis=1)
    ordered = np.sort(values, axis=1)
    sure = np.abs(ordered[:, -1] - (ordered[:, -2] if values.shape[1] > 1 else 0)) > 1e-6
    check_same(sheet, place, [row for row, each in zip(answers, sure) if each],
               [[classes[i]] for i, each in zip(said, sure) if each])
    if kind == "p_":
        off = float(np.abs(values.sum(axis=1) - 1).max()) if len(values) else 0.0
        sheet.check(place + "sum of the probabilities", off, 0, lambda a, b: a <= 1e-6 * max(len(classes), 3))


def check_same(sheet, place, shown, right):
    differ = [(i, a, b) for i, (a, b) in enumerate(zip(shown, right)) if a != b]
    sheet.equal(place + "answers that their probabilities do not give", differ[:3], [])
