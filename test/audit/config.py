"""The config of a run, as it was in force: config.toml of the run directory has every key."""

import pathlib
import re
import tomllib


class Config:
    def __init__(self, path):
        self.text = pathlib.Path(path).read_text(errors="replace")
        self.keys = {}
        for section, keys in tomllib.loads(self.text).items():
            for key, value in keys.items():
                self.keys[f"{section}.{key}"] = value
        # Keys that have no effect stand as comments, with their values.
        section = ""
        for line in self.text.splitlines():
            if found := re.fullmatch(r"\[(\w+)\]", line):
                section = found[1]
            elif found := re.fullmatch(r"# (\w+) = (.*): without effect here", line):
                self.keys.setdefault(f"{section}.{found[1]}", tomllib.loads(f"x = {found[2]}")["x"])

    def get(self, key, default=None):
        return self.keys.get(key, default)

    def __getitem__(self, key):
        return self.keys[key]


def span_of(text):
    """ "5 epochs" as (5.0, "epoch"); "never" as (None, "never")."""
    if text == "never":
        return None, "never"
    number, unit = text.split()
    return float(number), unit.rstrip("s")


def duration(text, steps_per_epoch, batch):
    """Steps that a span of time takes, as a fraction."""
    number, unit = span_of(text)
    if number is None:
        return None
    return {"epoch": number * steps_per_epoch, "step": number, "sample": number / batch}.get(unit)
