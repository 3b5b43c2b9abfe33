"""Which records are trained on and which are held back, by the rules that configs/guides/data.md and sweeps.md tell,
and the hash and the permutation of rng.py."""

import re

import numpy as np

from .notations import SHAPES, date_number, notated_number, plain_number
from .rng import hash_of_records, permutation


def size_of(share, records):
    return int(np.floor(share * records + 0.5))


def by_class(labels, seed):
    """The records of each class, in the order that the seed decides."""
    order = np.argsort(permutation(len(labels), seed), kind="stable")
    return {label: order[labels[order] == label] for label in np.unique(labels)}


def stratified(labels, share, seed):
    """Each class gives its share, rounded down; those that lost most by that give one more, until the size is
    reached."""
    classes = by_class(labels, seed)
    exact = np.array([share * len(ids) for ids in classes.values()])
    held = np.floor(exact).astype(int)
    left = size_of(share, len(labels)) - held.sum()
    sizes = [len(ids) for ids in classes.values()]
    for i in np.argsort(-(exact - held), kind="stable"):
        if left > 0 and held[i] + 1 < sizes[i]:
            held[i] += 1
            left -= 1
    chosen = np.zeros(len(labels), bool)
    for count, ids in zip(held, classes.values()):
        chosen[ids[:count]] = True
    return chosen


def order_of_times(texts, column):
    """Numbers of one notation or dates of one form, which each value is to be."""
    if column and "date" in column:
        return [date_number(t, column["date"]["form"], column["date"].get("before", 2069)) for t in texts]
    readings = [plain_number]
    if column and "notation" in column:
        readings.append(lambda t: notated_number(t, column["notation"]))
    readings += [lambda t, form=form: date_number(t, form) for form in (*SHAPES, "time")]
    for read in readings:
        keys = [read(t) for t in texts]
        if None not in keys:
            return keys
    return list(texts)


def positions_by_time(keys):
    return np.array(sorted(range(len(keys)), key=lambda i: keys[i]))


def last_by_time(keys, share):
    """Records of one time stay together; of the two ends of the time at the border the nearer one is taken."""
    order, rows = positions_by_time(keys), len(keys)
    begins = [p for p in range(rows + 1) if p in (0, rows) or keys[order[p - 1]] < keys[order[p]]]
    goal = min(max(rows - size_of(share, rows), 1), max(1, rows - 1))
    before, after = max(p for p in begins if p <= goal), min(p for p in begins if p >= goal)
    begin = after if after < rows and (before == 0 or after - goal < goal - before) else before
    chosen = np.zeros(rows, bool)
    chosen[order[begin:]] = True
    return chosen


def hash_of_text(seed, text):
    import xxhash

    return xxhash.xxh3_64_intdigest(f"{seed} {text}".encode())


def groups(texts, share, seed):
    sizes = {}
    for text in texts:
        sizes[text] = sizes.get(text, 0) + 1
    goal, held, records = size_of(share, len(texts)), set(), 0
    for _, value in sorted((hash_of_text(seed, value), value) for value in sizes):
        if sizes[value] > 2 * (goal - records) or len(held) + 1 == len(sizes):
            continue
        held.add(value)
        records += sizes[value]
    if not held:
        held.add(min(sorted(sizes), key=lambda v: sizes[v]))
    return np.array([text in held for text in texts])


UNUSED = -2  # of records after a span of time
TEST_SEED = 0x7E570000  # is added to the seed, so that two shares are not of the same records


def span_of_time(keys, begin, end):
    """1 for records of the span, UNUSED for those that come after it; `end` may be None."""
    return np.array([0 if key < begin else 1 if end is None or key < end else UNUSED for key in keys])


def part_numbers(part, labels, texts_of, column_of, seed):
    """1 for the records of a part that is a share or a span of time; None: it is neither."""
    pattern = r"\s*time\((.*?),\s*from\s*=\s*([\"'])(.*?)\2\s*(?:,\s*to\s*=\s*([\"'])(.*?)\4\s*)?\)\s*"
    if span := re.fullmatch(pattern, part):
        column, begin, end = span[1].strip().strip("\"'"), span[3], span[5]
        texts = texts_of(column)
        keys = order_of_times([*texts, begin] + ([end] if end else []), column_of(column))
        return span_of_time(keys[: len(texts)], keys[len(texts)], keys[-1] if end else None)
    found = re.fullmatch(r"\s*(stratified|time|group)\((?:(.*),)?\s*([\d.eE+-]+)\)\s*", part)
    if not found:
        return None
    column, share = (found[2] or "").strip().strip("\"'"), float(found[3])
    if found[1] == "stratified":
        return stratified(labels[:, 0], share, seed).astype(int)
    if found[1] == "group":
        return groups(texts_of(column), share, seed).astype(int)
    return last_by_time(order_of_times(texts_of(column), column_of(column)), share).astype(int)


class Parts:
    """The set of each record of the training files: those of the test set are chosen first, those of the validation set
    among the others. Of each set that is a part: `among` has the records that it was chosen among, `numbers` what they
    got."""

    def __init__(self, config, labels, texts_of, column_of):
        self.sets, self.folds = np.full(len(labels), "train", "U10"), np.zeros(len(labels), int)
        self.among, self.numbers = {}, {}
        for split, key, more in (("test", "data.test_part", TEST_SEED), ("validation", "data.validation", 0)):
            ids, seed = np.flatnonzero(self.sets == "train"), config.get("run.seed", 1) + more
            of_ids = lambda name: [texts[i] for texts in [texts_of(name)] for i in ids]
            if split == "validation" and config.get("data.fold"):
                folds, fold = fold_numbers(config, labels[ids], of_ids, column_of), config["data.fold"]
                self.folds[ids], later = folds, config.get("data.fold_by", "record") == "time"
                numbers = np.where(folds == fold, 1, np.where((folds > fold) & later, UNUSED, 0))
            elif share := config.get(f"{key}_share", 0):
                numbers = (hash_of_records(seed, len(labels))[ids] < share).astype(int)
            else:
                numbers = part_numbers(config.get(key) or "", labels[ids], of_ids, column_of, seed)
            if numbers is not None:
                self.among[split], self.numbers[split] = ids, numbers
                self.sets[ids[numbers == 1]], self.sets[ids[numbers == UNUSED]] = split, ""


def fold_numbers(config, labels, texts_of, column_of):
    """The fold of each record, from 1; 0: in none."""
    folds, by, seed = config["data.folds"], config.get("data.fold_by", "record"), config.get("run.seed", 1)
    column, rows = config.get("data.fold_column"), len(labels)
    if by == "record":
        return permutation(rows, seed) * folds // rows + 1
    numbers = np.zeros(rows, int)
    if by == "class":
        dealt = 0
        for ids in by_class(labels[:, 0], seed).values():
            numbers[ids] = (dealt + np.arange(len(ids))) % folds + 1
            dealt += len(ids)
        return numbers
    texts = texts_of(column)
    if by == "group":
        counts = {value: texts.count(value) for value in set(texts)}
        sizes, fold_of = [0] * folds, {}
        for value in sorted(counts, key=lambda v: (-counts[v], hash_of_text(seed, v), v)):
            least = sizes.index(min(sizes))
            sizes[least] += counts[value]
            fold_of[value] = least + 1
        return np.array([fold_of[t] for t in texts])
    keys = order_of_times(texts, column_of(column))
    if by == "column":
        kinds = sorted(set(keys))
        return np.array([kinds.index(k) + 1 for k in keys])
    order, size = positions_by_time(keys), rows // (folds + 1)

    def begin(fold):
        first = rows - (folds - fold + 1) * size
        while 0 < first < rows and not keys[order[first - 1]] < keys[order[first]]:
            first -= 1
        return first

    for fold in range(1, folds + 1):
        numbers[order[begin(fold) : rows if fold == folds else begin(fold + 1)]] = fold
    return numbers
