"""What the log says of the data and of how the run is divided, before it begins."""

import math
import pathlib
import re

from . import order, text_data, windows
from .arrays import sparse, split_name
from .config import span_of
from .notations import written_date
from .report import Span
from .run import dataset_classes
from .splits import UNUSED, order_of_times
from .summary import length_of
from .table_data import category_features, number_features
from .texts import taken

SAID = r"(-?[\d.,]+(?:e[+-]?\d+)?|-?inf)"


def ignore_names(text, run):
    """Names and cells stand in quotes, names of files before a colon; what a validation set is called stands in the config."""
    text.ignore(r"^(?:validation|test) set, .*?: (?=[\d,]+ of the )|'[^'\n]*'")
    text.ignore(r"years of two digits: 69 to 99 are 19xx, 00 to 68 are 20xx|years of two digits are those of 1969 to 2068|, before=\d+")
    for split in ("train", "validation", "test"):
        text.ignore("^" + re.escape(run.config.get(f"data.{split}") or "no file") + "(?=, column '|: )")


def check_setup_line(sheet, run, line, again):
    """`again`: the run was started more than once, perhaps with other ranks than those of plan.txt."""
    for pattern, handler in FORMS:
        if found := re.fullmatch(pattern, line):
            if again and handler in (check_ranks, check_plan_line, check_rank_rows):
                taken(found)
            else:
                handler(sheet, run, found)
            return
    check_column(sheet, run, line)


def check_width(sheet, run, found):
    taken(found)
    features = run.sets.records("train").features
    if features is not None and run.config["data.format"] == "csv":
        sheet.printed("log.txt: features of a record", found[1], features.shape[1])


def plan_row(run, name):
    found = re.search(rf"^{name} +([\d,]+|\S+ (?:B|KiB|MiB|GiB)(?: on average)?|\S+)$", run.text("plan.txt"), re.M)
    return found[1] if found else None


def check_ranks(sheet, run, found):
    taken(found)
    right = [plan_row(run, name) for name in ("ranks", "replicas", "threads per rank")]
    sheet.equal("log.txt: ranks, replicas, threads", [found[1], found[3], found[4]], [text and text.replace(",", "") for text in right])
    sheet.equal("log.txt: hosts", int(found[2]), len(set(re.findall(r"^rank \d+: host (\S+?),", run.text("ranks.txt"), re.M))))


def check_plan_line(sheet, run, found):
    """The same words as in plan.txt, whose figures are checked there; and the samples of a step, which asynchronous workers take apart."""
    taken(found)
    names = ("steps", "epochs", "parameters", "memory per rank", "sent per step and rank")
    steps, batch, *others = (text.removesuffix(" on average") for text in found.groups())
    sheet.equal("log.txt: plan", [steps, *others], [(plan_row(run, name) or "").removesuffix(" on average") for name in names])
    sheet.equal("log.txt: samples of a step", int(batch.replace(",", "")), length_of(run).step_batch)


def check_rank_rows(sheet, run, found):
    """Which replicas a rank has; of all ranks together that each is somewhere."""
    taken(found)
    first, last = int(found["first"]), int(found["last"] or found["first"])
    replicas = int((plan_row(run, "replicas") or "0").replace(",", ""))
    sheet.check(f"log.txt: replicas of rank {found['rank']}", (first, last), f"of {replicas}", lambda a, b: 0 <= a[0] <= a[1] < replicas)
    rows = int(found["rows"].replace(",", ""))
    train = run.sets["train"]
    if train is None:
        return
    sheet.check(f"log.txt: rows of rank {found['rank']}", rows, f"at most {len(train)}", lambda a, b: 0 < a <= len(train))
    if last - first + 1 == replicas and run.config.get("distribute.stages", 1) == 1:
        sheet.equal(f"log.txt: rows of rank {found['rank']}, which has all replicas", rows, len(train))


def check_split(sheet, run, found):
    """Of the records of the training files, how many are the validation set or the test set. Words about them are of those
    that the set was chosen among."""
    split, parts, whole = found[1], run.sets.parts(), run.sets.files("train")
    if split not in parts.among:
        return
    ids, said = parts.among[split], f"log.txt: {split} set: "
    held = parts.numbers[split] == 1
    sheet.printed(said + "records", found[2], int(held.sum()))
    sheet.printed(said + "records that they are of", found[3], len(parts.sets))
    texts_of = lambda name: [texts[i] for texts in [run.sets.texts(whole, name)] for i in ids]
    count = lambda text: int(text.replace(",", ""))
    words = found[4]
    if not re.search(r"\d", words):
        pass
    elif classes := re.fullmatch(r"of each of the (\d+) classes its share: (.*)", words):
        labels = whole.targets[ids, 0]
        sheet.printed(said + "classes", classes[1], len(set(labels)))
        shown = [(count(a), count(b)) for a, b in re.findall(r" ([\d,]+) of ([\d,]+)(?=,|$)", classes[2])]
        right = [(int((held & (labels == each)).sum()), int((labels == each).sum())) for each in sorted(set(labels))]
        sheet.equal(said + "records by class", shown, right[: len(shown)])
    elif groups := re.fullmatch(r"all of ([\d,]+) of the ([\d,]+) groups of column '(.*)'", words):
        texts = texts_of(groups[3])
        right = [len({text for text, one in zip(texts, held) if one}), len(set(texts))]
        sheet.equal(said + "groups", [count(groups[i]) for i in (1, 2)], right)
    elif times := re.fullmatch(r"the last in column '(.*)', from '(.*)' to '(.*)'; the others are up to '(.*?)'(?:; years of two digits .*)?", words):
        texts = texts_of(times[1])
        keys = order_of_times(texts, run.sets.column(times[1]))
        ends = lambda of: sorted((key, text) for key, text, one in zip(keys, texts, held) if one == of)
        sheet.equal(said + "times", list(times.groups()[1:]), [ends(True)[0][1], ends(True)[-1][1], ends(False)[-1][1]])
    elif times := re.fullmatch(r"from '(.*?)'(?: to before '(.*?)')? in column '(.*?)'(?:; the ([\d,]+) records after it are in no set)?", words):
        key, named = f"data.{'test_part' if split == 'test' else split}", lambda text: bool(text) and any(f"{q}{text}{q}" in run.config[key] for q in "\"'")
        sheet.equal(said + "the ends are those of the config", [named(times[1]), times[2] is None or named(times[2])], [True, True])
        sheet.equal(said + "records after the span", count(times[4] or "0"), int((parts.numbers[split] == UNUSED).sum()))
    else:
        return
    taken(found)


def check_bad(sheet, run, found):
    taken(found)
    for split in ("train", "validation", "test"):
        if found[1] not in (run.config.get(f"data.{split}"), pathlib.Path(run.config.get(f"data.{split}") or ".").name):
            continue
        whole = run.sets.files(split)
        every = len(whole.table.table.records) if whole.table else None
        if every is not None:
            sheet.equal(f"log.txt: bad records of {found[1]}", [int(found[i].replace(",", "")) for i in (2, 3)], [every - len(whole), every])
            sheet.digits(f"log.txt: share of bad records of {found[1]}", found[4], 100 * (every - len(whole)) / every, digits=3)
        return


def check_sparse(sheet, run, found):
    taken(found)
    if found[1] != pathlib.Path(run.config["data.train"]).name:
        return
    records = [record for record in sparse(run.config["data.train"], run.cwd)[0] if record]
    indices = {index for record in records for index in record[1]}
    first = 0 if 0 in indices else 1
    right = [max(indices) - first + 1, first, max(len(record[1]) for record in records)]
    sheet.equal("log.txt: features, first one, most of a record", [int(found[i].replace(",", "")) for i in (2, 3, 4)], right)


def check_record_weights(sheet, run, found):
    taken(found)
    for split in ("train", "validation", "test"):
        if found[1] == run.config.get(f"data.{split}"):
            weights = run.sets.files(split).weights
            for name, shown, right in zip(("least", "most", "mean"), found.groups()[1:], (weights.min(), weights.max(), weights.mean())):
                sheet.digits(f"log.txt: {name} weight of {found[1]}", shown, Span(float(right), float(right) * (1 - 1e-7), float(right) * (1 + 1e-7)), digits=4)


def check_class_weights(sheet, run, found):
    if run.sets["train"] is None:
        return
    taken(found)
    classes, weights = dataset_classes(run.sets["train"].counted()), run.class_weights()
    for i, (weight, records) in enumerate(re.findall(r" (\S+) \(([\d,]+) (?:records|positions)\)(?:, |$)", found[1])):
        sheet.digits(f"log.txt: weight of class {i}", weight, float(weights[i]), digits=4)
        sheet.printed(f"log.txt: records of class {i}", records, int((classes == i).sum()))


def check_targets(sheet, run, found):
    taken(found)
    whole = run.sets.files("train")
    sheet.printed("log.txt: targets of a record", found[1], whole.targets.shape[1])
    sheet.equal("log.txt: why some targets are not there", found[2], "missing" if whole.lengths is None else "those of padding")


def check_padding(sheet, run, found):
    """Of a file: how many of its positions count, in the mean, and the share of those that do not."""
    file = split_name(found[1])[0].lstrip("./")
    for split in ("train", "validation", "test"):
        whole = run.sets.files(split) if run.config.get(f"data.{split}") and split not in run.sets.parts().among else None
        for number, path in enumerate(whole.files if whole is not None else []):
            if not str(path).endswith(file) or whole.lengths is None:
                continue
            mean, positions = whole.lengths[whole.file_of == number].mean(), whole.features.shape[1]
            place = f"log.txt: padding of {found[1]}: "
            sheet.digits(place + "positions that count", found[2], float(mean), digits=4)
            sheet.printed(place + "positions", found[3], positions)
            sheet.digits(place + "share", found[4], float(100 * (1 - mean / positions)), digits=3)
            taken(found)
            return


def first_averaged(run):
    """The first step whose weights are in the average of train.swa_from: the end of an epoch, or of the run."""
    number, unit = span_of(run.config["train.swa_from"])
    length = length_of(run)
    ends = [step for step in range(length.per_epoch, length.steps, length.per_epoch) if length.measure(step, unit) >= number * (1 - 1e-9)]
    return min([*ends, length.steps])


def texts_of(run, name):
    """The cells of a column of the training files, as they stand there; those that are missing left out."""
    train, missing = run.sets.files("train"), set(run.schema["missing_values"])
    table = train.table.table
    place = table.names.index(name)
    return [cell for row in train.rows if (cell := table.records[row][place]) not in missing]


def check_ignored(sheet, run, found):
    taken(found)
    sheet.printed(f"log.txt: different texts of {found[1]}", found[2], len(set(texts_of(run, found[1]))))


def check_vocabulary(sheet, run, found):
    taken(found)
    name, *shown = found.groups()
    column, train = run.sets.column(name), run.sets.records("train")
    cells = [row.get(name) for row in (train.table.cells[i] for i in train.numbers)]
    others = sum(("" if cell is None else cell) not in column["values"] for cell in cells)
    right = [len(set(cells)), run.config["data.vocabulary"], others, len(cells)]
    sheet.equal(f"log.txt: categories of {name}", [int(each.replace(",", "")) for each in shown], right)


def check_unseen(sheet, run, found):
    """Of a set, the records with a category that no record of the training data has, or that is not among the frequent ones."""
    taken(found)
    for split in ("train", "validation", "test"):
        if found[1] == run.config.get(f"data.{split}"):
            whole, column = run.sets.files(split), run.sets.column(found[2])
            others = sum(("" if row.get(found[2]) is None else row.get(found[2])) not in column["values"] for row in whole.table.cells)
            sheet.equal(f"log.txt: unseen categories of {found[1]}", [int(found[i].replace(",", "")) for i in (3, 4)], [others, len(whole)])


def check_years(sheet, run, found):
    """The last date of a column whose years have two digits, or lie in the future."""
    taken(found)
    column = run.sets.column(found[1])
    sheet.equal(f"log.txt: latest date of {found[1]}", found[2], written_date(math.expm1(column["max"]) if column["scale"] == "log" else column["max"]))


def check_audit(sheet, run, found):
    taken(found)
    length = length_of(run)
    sheet.check("log.txt: audited epoch", int(found[1].replace(",", "")), "an epoch", lambda a, b: 0 <= a <= length.epochs(length.steps) + 1)
    sheet.printed("log.txt: samples of an epoch", found[2], length.epoch_samples)
    sheet.printed("log.txt: times that each is used", found[3], length.replicas if length.full else 1)


FORMS = (
    (r".*: the ([\d,]+) features? of a (?:record|position)", check_width),
    (r"([\d,]+) ranks? on ([\d,]+) hosts?, ([\d,]+) replicas?, ([\d,]+) threads?, precision (?:fp32|bf16.*?); .*", check_ranks),
    (r"plan: ([\d,]+) steps? of ([\d,]+) samples?, (\S+) epochs?; ([\d,]+) parameters?; (.*) of memory per rank; (.*) sent per step and rank", check_plan_line),
    (r"rank (?P<rank>\d+) (?:loaded|streams) (?P<rows>[\d,]+) rows?(?:, .*?)? \(replicas? (?P<first>\d+)(?: to (?P<last>\d+))?\)", check_rank_rows),
    (r"(validation|test) set, .*?: ([\d,]+) of the ([\d,]+) records of '.*?', (.*)", check_split),
    (r"(.*): ([\d,]+) of ([\d,]+) records are bad \((\S+) %\) and skipped", check_bad),
    (r"(.*): ([\d,]+) features, counted from ([\d,]+) in the file; at most ([\d,]+) of them in a record", check_sparse),
    (rf"(.*): records weigh from {SAID} to {SAID}, mean {SAID}", check_record_weights),
    (r".*: some of the ([\d,]+) targets of a record are (missing|those of padding); .*", check_targets),
    (r"'(.*)': (\S+) of ([\d,]+) positions of a record count in the mean; (\S+) % are padding", check_padding),
    order.FORM,
    (r"balanced class weights: (.*)", check_class_weights),
    (r"column '(.*)' is ignored: ([\d,]+) different texts, .*", check_ignored),
    (r"column '(.*)' has ([\d,]+) categories, more than data\.vocabulary = ([\d,]+): ([\d,]+) of ([\d,]+) records have one of the others", check_vocabulary),
    (r"(.*), column '(.*)': ([\d,]+) of ([\d,]+) records have a category that the training data does not have", check_unseen),
    (r".*?column '(.*)': (?:years of two digits: .*; the latest is|the latest of its dates,) (\d[-\d]+(?: \d\d:\d\d)?)(?:,? .*)?", check_years),
    (r"audit: epoch ([\d,]+) used ([\d,]+) samples?, each ([\d,]+) times?", check_audit),
    *windows.FORMS,
    *text_data.FORMS,
)


def check_column(sheet, run, line):
    """A column of the table: schema.json has the same figures, and is checked by itself."""
    found = re.fullmatch(r" *(\d+\.\.\d+|\d+|label|weight)  (.*)", line)
    if not found or not run.schema or "columns" not in run.schema:
        return
    column = next((c for c in sorted(run.schema["columns"], key=lambda c: -len(c["name"])) if found[2].startswith(c["name"] + ": ")), None)
    if column is None:
        return
    begin = line.begin + found.start(2) + len(column["name"])
    line.text.free[line.begin : begin] = bytes(begin - line.begin)
    place = f"log.txt: column {column['name']}"
    if found[1][0].isdigit():
        sheet.equal(place + ": features", found[1], positions(run, column))
    words = re.compile(r".*?: (.*)").match(line, found.start(2) + len(column["name"]))[1]
    rest = check_words(sheet, place, words, column)
    if not re.search(r"\d", rest):
        taken(re.compile(r"(.*)").match(line, found.start(2)))


def positions(run, column):
    """The features that the column makes: numbers come first."""
    columns = [c for c in run.schema["columns"] if c["use"] == "feature"]
    begin = 0
    for each in [c for c in columns if c["kind"] == "numeric"] + [c for c in columns if c["kind"] != "numeric"]:
        width = len(number_features(each, None) if each["kind"] == "numeric" else category_features(each, None))
        if each is column:
            return f"{begin}" if width == 1 else f"{begin}..{begin + width - 1}"
        begin += width


def check_words(sheet, place, words, column):
    """Takes what it knows out of the words, and returns the rest."""
    if column["kind"] == "numeric" and column["use"] == "weight":
        names = ("min", "max", "mean")
        pattern = rf"from {SAID} to {SAID}, mean {SAID}"
    else:
        names, pattern = {
            "standard": (("mean", "deviation"), rf"(?:logarithm, )?mean {SAID}, deviation {SAID}"),
            "log": (("mean", "deviation"), rf"(?:logarithm, )?mean {SAID}, deviation {SAID}"),
            "minmax": (("min", "max"), rf"number, (?:minmax: )?from {SAID} to {SAID}"),
        }.get(column.get("scale"), ((), "(?!)"))
    if found := re.search(pattern, words):
        for name, shown in zip(names, found.groups()):
            sheet.digits(f"{place}: {name}", shown, column[name], digits=4)
        words = words.replace(found[0], "")
    if "date" in column and (found := re.search(r"\), (\S+(?: \d\d:\d\d)?) to (\S+(?: \d\d:\d\d)?)(?=, |$)", words)):
        ends = [math.copysign(math.expm1(abs(column[name])), column[name]) if column["scale"] == "log" else column[name] for name in ("min", "max")]
        sheet.equal(f"{place}: dates", [found[1], found[2]], [written_date(end, column["date"]["form"]) for end in ends])
        words = words.replace(found[0], "")
    if found := re.search(r"before=(\d+)", words):
        sheet.equal(f"{place}: before", int(found[1]), column["date"]["before"])
        words = words.replace(found[0], "")
    if found := re.search(rf"median {SAID}, quartiles {SAID} and {SAID}", words):
        for shown, i in zip(found.groups(), (1, 0, 2)):
            sheet.digits(f"{place}: quartile {i}", shown, column["quartiles"][i], digits=4)
        words = words.replace(found[0], "")
    if found := re.search(rf"([\d,]+) bins?(?: by the label)?(?: of its logarithm)? from {SAID} to {SAID}", words):
        sheet.printed(f"{place}: bins", found[1], max(len(column["bins"]["edges"]) - 1, 1))
        for name, shown in zip(("min", "max"), found.groups()[1:]):
            sheet.digits(f"{place}: {name}", shown, column[name], digits=4)
        words = words.replace(found[0], "")
    if found := re.search(rf"([\d,]+) missing (?:become (?:the mean|{SAID})|do not count)", words):
        sheet.printed(f"{place}: missing", found[1], column["missing_count"])
        if found[2]:
            sheet.digits(f"{place}: fill", found[2], column["missing"], digits=4)
        words = words.replace(found[0], "")
    if found := re.search(r"([\d,]+) (classes|buckets|values)", words):
        right = column["buckets"] if found[2] == "buckets" else len(column["values"])
        sheet.printed(f"{place}: {found[2]}", found[1], right)
        words = words.replace(found[0], "")
    if column["use"] == "label" and len(column.get("values", [])) == 2:
        yes = f", yes is '{column['values'][1]}'"
        sheet.equal(f"{place}: yes", yes in words, True)
        words = words.replace(yes, "")
    return words
