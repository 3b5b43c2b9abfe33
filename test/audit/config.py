"""The config of a run, as it was in force: config.toml of the run directory has every key."""

import pathlib
import re
import tomllib


class Config:
    def __init__(self, path):
        self.text = pathlib.Path(path).read_text(errors="replace")
        self.keys, self.idle = {}, set()
        for section, keys in tomllib.loads(self.text).items():
            for key, value in keys.items():
                self.keys[f"{section}.{key}"] = value
        # Keys that have no effect stand as comments, with their values.
        section = ""
        for line in self.text.splitlines():
            if found := re.fullmatch(r"\[(\w+)\]", line):
                section = found[1]
            elif found := re.fullmatch(r"# (\w+) = (.*): without effect here", line):
                self.idle.add(f"{section}.{found[1]}")
                self.keys.setdefault(f"{section}.{found[1]}", tomllib.loads(f"x = {found[2]}")["x"])
        for key in ("data.validation", "data.test_part"):
            self.keys |= held_back(key, self.keys.get(key, ""))

    def get(self, key, default=None):
        return self.keys.get(key, default)

    def __getitem__(self, key):
        return self.keys[key]


def held_back(key, part):
    """A share by chance, or a fold, under a key for each of its parts."""
    if found := re.fullmatch(r"\s*share\((.*)\)\s*", part):
        return {key: "", f"{key}_share": float(found[1])}
    found = re.fullmatch(r"fold\((\d+)/(\d+)(?:, by = (\w+)(?:\((.*)\))?)?\)", part)
    if not found:
        return {}
    keys = {"data.validation": "", "data.fold": int(found[1]), "data.folds": int(found[2])}
    keys["data.fold_by"] = found[3] or "record"
    return keys | ({"data.fold_column": found[4].strip("\"")} if found[4] else {})


def span_of(text):
    """ "5 epochs" as (5.0, "epoch"); "never" as (None, "never")."""
    if text == "never":
        return None, "never"
    number, unit = text.split()
    return float(number), unit.rstrip("s")
