"""What `trainer init` says of a data file and of the first config for it."""

import pathlib
import re
import subprocess
import tempfile

from .forward import items_of, parts_of_input
from .positive import positive_class, quoted
from .report import Sheet, number_of
from .rng import hash_of_records
from .seen import statistics
from .table_text import read_table
from .texts import Text, taken


def check_file(trainer, path, label, cwd=".", preset=""):
    sheet = Sheet()
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory) / "first.toml"
        run = lambda *words: subprocess.run([str(trainer), *words], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
        said = run("init", str(path), "--label", label, "--output", str(config), *(["--preset", preset] if preset else []))
        plan = run("plan", "--config", str(config))
        written = config.read_text()
    text = Text(sheet, "init", said[: said.find("\nwritten: ")])
    text.ignore(r"such as .*|'[^'\n]*'(?! [\d.]+ %)")
    table = read_table(str(path), cwd, {})
    found = taken(re.search(r": ([\d,]+) records, ([\d,]+) features? each", text))
    sheet.printed("init: records", found[1], len(table.records))
    planned = re.search(r"^input +([\d,]+)", plan, re.M)
    sheet.equal("init: features", int(number_of(found[2])), int(number_of(planned[1])))
    cells = [record[table.names.index(label)] for record in table.records if isinstance(record, list)]
    check_task(sheet, text, cells)
    if held := taken(re.search(r"validation ([\d,]+) of the ([\d,]+) records \(([\d.]+) %\), held back", text)):
        labelled = sum(cell != "" for cell in cells)
        share = hash_of_records(1, labelled) < number_of(said_share(written))
        for name, shown, right in zip(("records", "all records", "share"), held.groups(), (share.sum(), labelled, 100 * share.mean())):
            sheet.printed(f"init: {name} of the validation set", shown, right)
    if model := taken(re.search(r"^  model +(.*) \(([\d,]+) parameters?\)$", text, re.M)):
        total = re.search(r"^parameters +([\d,]+)", plan, re.M)
        sheet.equal("init: parameters", model[2], total[1])
        check_parameters(sheet, model[1], int(number_of(planned[1])), int(number_of(model[2])))
    for different in re.finditer(r"^  look at column '(.*)': ([\d,]+) different texts", text, re.M):
        sheet.printed(f"init: different texts of {different[1]}", taken(different)[2], len({record[table.names.index(different[1])] for record in table.records if isinstance(record, list)}))
    return sheet.finish()


def said_share(config):
    return re.search(r'^validation = "share\(([\d.]+)\)"', config, re.M)[1]


def check_task(sheet, text, cells):
    line = next(line for line in text.lines() if line.startswith("  task "))
    if found := taken(re.search(r"numbers from (\S+) to (\S+), mean (\S+), deviation (\S+)", line)):
        right = statistics([float(cell) for cell in cells if cell])
        for shown, name, digits in zip(found.groups(), ("min", "max", "mean", "deviation"), (6, 6, 4, 4)):
            sheet.digits(f"init: {name}", shown.rstrip(","), right[name], digits=digits)
        return
    classes = taken(re.search(r"([\d,]+) classes: (.*)", line))
    sheet.printed("init: classes", classes[1], len({cell for cell in cells if cell}))
    shares = re.findall(r"'([^']*)' ([\d.]+) %", classes[2])
    for value, share in shares:
        sheet.printed(f"init: share of {value}", share, 100 * cells.count(value) / len(cells))
    counts = {cell: cells.count(cell) for cell in cells if cell}
    said, _, yes = classes[2].partition("; yes is ")
    sheet.equal("init: yes", yes, quoted(positive_class(counts)) if len(counts) == 2 else "")
    left = re.sub(r"'[^']*' [\d.]+ %", "", said)
    sheet.equal("init: words beside the shares", re.sub(r"[ ,.]", "", left), "")


def check_parameters(sheet, layers, width, shown):
    """Of a model of dense layers and what has no parameters."""
    right = 0
    for name, text in items_of(layers):
        words = text.split(",")
        if name == "dense":
            parts = parts_of_input(words)
            right, width = right + (width // parts + 1) * int(words[0]), parts * int(words[0])
        elif name not in ("relu", "tanh", "dropout", "gelu", "silu"):
            return
    if right:
        sheet.equal("init: parameters of the layers", shown, right)
