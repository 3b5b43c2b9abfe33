"""Texts as data: how a text is cut into tokens, the vocabulary of the training part, and windows of numbers of tokens
(configs/guides/text.md). `trainer predict` cuts its windows from the beginning of a file, so that those of a part that
is held back are others: outputs of texts are computed from the weights."""

import math
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from .files import files_of, read_bytes

WORD_BYTES = 64
WORD = re.compile(r" ?(?:[0-9A-Za-z]|[^\x00-\x7f])+|[\s\S]")


def is_text(config):
    return config.get("data.format") == "text"


def pieces(word):
    """A word that is too long is cut where it reaches so many bytes."""
    piece = b""
    for character in word:
        piece += character.encode()
        if len(piece) >= WORD_BYTES:
            yield piece
            piece = b""
    if piece:
        yield piece


def cut(raw, kind):
    if kind == "bytes":
        return [raw[i : i + 1] for i in range(len(raw))]
    if kind == "characters":
        return [character.encode() for character in raw.decode()]
    return [piece for word in WORD.findall(raw.decode()) for piece in pieces(word)]


def learned(tokens, kind, words):
    """The vocabulary, but for the token that stands for unknown ones."""
    if kind == "bytes":
        return [bytes([value]) for value in range(256)]
    if kind == "characters":
        return sorted(set(tokens))
    return sorted(counts := Counter(tokens), key=lambda token: (-counts[token], token))[:words]


@dataclass
class TextPart:
    """The tokens of a set, of so many in the text; the vocabulary, and whether unknown ones are replaced."""

    tokens: int
    of: int
    values: list
    replaces: bool
    characters: float  # of the tokens that are predicted

    def names(self):
        shown = lambda raw: "".join(c if c.isprintable() else f"\\x{ord(c):02x}"
                                    for c in raw.decode(errors="backslashreplace"))
        few = len(self.values) + self.replaces <= 1000
        return [shown(value) for value in self.values] + ["\ufffd"] * self.replaces if few else []


class TextSets:
    """Spans of tokens by set, and the vocabulary that the training part teaches."""

    def __init__(self, config, cwd):
        self.config, self.cwd, self.spans = config, cwd, {}
        self.kind, _, words = config.get("data.tokens", "characters").partition("(")
        train, self.files = self.read("train")
        cut_at = lambda end, part: math.floor(end * (1 - config.get(f"data.{part}_share", 0)))
        tested = cut_at(len(train), "test_part")
        held = cut_at(tested, "validation")
        self.values = learned(train[:held], self.kind, int(words.rstrip(")") or 0))
        self.replaces = self.kind != "bytes" and config.get("data.unknown") == "replace"
        self.numbers = {value: number for number, value in enumerate(self.values)}
        self.whole = train
        for split, begin, end in (("train", 0, held), ("validation", held, tested), ("test", tested, len(train))):
            if begin < end:
                self.spans[split] = train[begin:end], len(train), self.files
        for split in ("validation", "test"):
            if config.get(f"data.{split}"):
                tokens, files = self.read(split)
                self.spans[split] = tokens, len(tokens), files

    def read(self, split):
        files = files_of(self.config[f"data.{split}"], self.cwd)
        return [token for path in files for token in cut(read_bytes(path), self.kind)], files

    def encoded(self, tokens):
        return np.array([self.numbers[token] if token in self.numbers or not self.replaces else len(self.values)
                         for token in tokens], int)

    def windows(self, tokens, after):
        """Windows one behind the other; `after`: whether the token after a window belongs to it."""
        window = self.config["data.window"]
        ids, rows = self.encoded(tokens), (len(tokens) - after) // window
        apart = lambda begin: ids[begin : begin + rows * window].reshape(rows, window)
        return apart(0)[:, :, None].astype(float), apart(1).astype(float) if after else None

    def part(self, split):
        tokens, of, _ = self.spans[split]
        window = self.config["data.window"]
        predicted = tokens[1 : 1 + (len(tokens) - 1) // window * window]
        begins = lambda token: sum(byte & 0xC0 != 0x80 for byte in token)
        characters = sum(begins(token) if token in self.numbers else 1 for token in predicted)
        return TextPart(len(tokens), of, self.values, self.replaces, characters)


def check_vocabulary(sheet, run):
    """schema.json: what the training part teaches."""
    if not is_text(run.config):
        return
    texts, schema = run.sets.texts_data, run.schema
    values = [] if texts.kind == "bytes" else [value.decode() for value in texts.values]
    sheet.equal("schema.json: tokens, unknown, size", [schema["tokens"], schema["unknown"], schema["size"]],
                [texts.kind, "replace" if texts.replaces else "refuse", len(texts.values) + texts.replaces])
    sheet.equal("schema.json: values", schema["values"], values)


def check_predicted_text(sheet, run, check_answers):
    """`predict` of the training files: windows from their beginning, each position with the token behind it."""
    from .outputs import from_weights
    from .run import aligned

    texts = run.sets.texts_data
    given, features = run.predicted("train"), texts.windows(texts.whole, 0)[0]
    names, cells, place = given.names, given.cells, "predict: train: "
    rows, window = features.shape[:2]
    sheet.equal(place + "columns of positions", names[1:3], ["record", "position"])
    sheet.equal(place + "lines of other positions",
                [row[:3] for i, row in enumerate(cells) if row[:3] != [str(i), str(i // window), str(i % window)]], [])
    sheet.equal(place + "lines", len(cells), rows * window)
    check_answers(sheet, run, place, names[:1] + names[3:], [row[:1] + row[3:] for row in cells], [])
    if (own := from_weights(run.config, run.tensors, run.temperature, run.sets.of_windows(features))) is not None:
        values = aligned(run.form, own.values)
        off = abs(values - given.values) > 4 * (own.error + given.error) + 1e-6
        sheet.equal(place + "outputs that the weights do not give", int(off.sum()), 0)
