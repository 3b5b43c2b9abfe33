"""Which of two classes is yes, and where it is named (guide tables)."""

import re

# The longer name first, in which the shorter one stands.
OF_POSITIVE = {"average_precision": "Average precision", "precision": "Precision", "recall": "Recall", "f1": "F1"}
YES = {"true", "t", "yes", "y", "ja", "j", "oui", "si", "sí", "sim", "positive", "positiv", "pos", "case", "+"}


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def positive_class(counts, named=None):
    """Of two classes with their counts: the one that is named, whose name means yes, that is rare, or that is later."""
    if named:
        return named
    numbers = [number(text) for text in counts]
    first, second = sorted(counts, key=number if None not in numbers else lambda text: text.encode("utf-8", "surrogateescape"))
    means_yes = lambda text: number(text) == 1 if number(text) is not None else "".join(c.lower() if c.isascii() else c for c in text) in YES
    yes = [text for text in (first, second) if means_yes(text)]
    if None not in numbers and yes == [first]:
        yes = []  # 1 beside a greater number
    if len(yes) == 1:
        return yes[0]
    rare = [text for text in counts if 10 * counts[text] < 4 * sum(counts.values())]
    return rare[0] if rare else second


def positive_of(run):
    """The name of the second of two classes; None where there are not two."""
    names = run.class_names()
    if run.form.targets not in ("binary", "class"):
        return None
    if "outputs" not in run.found:
        run.found["outputs"] = count_outputs(run)
    two = run.found["outputs"] == (1 if run.form.targets == "binary" else 2)
    return (names[1] if len(names) == 2 else "1") if two else None


def count_outputs(run):
    split = next((split for split in ("validation", "test", "train") if run.sets[split] is not None), None)
    if split is None:  # made up
        return 1 if run.form.targets == "binary" else int(run.config.get("data.synthetic_classes", 2))
    return run.outputs(split).values.shape[1]


def quoted(name):
    return f"'{name}'"


def without_class(sheet, place, text, measures, positive, title=lambda measure: measure):
    """The text without the class behind the measures that are about it, which has to stand there."""
    for measure in OF_POSITIVE:
        if positive is None or measure not in measures:
            continue
        said = re.search(rf"(?<![a-z_]){re.escape(title(measure))} of {re.escape(quoted(positive))}", text, re.I)
        sheet.check(f"{place}: class of {measure}", said and said[0], f"{title(measure)} of {quoted(positive)}", lambda a, b: a and a.lower() == b.lower())
        if said:
            text = text[: said.start()] + said[0].partition(" of '")[0] + text[said.end() :]
    return text
