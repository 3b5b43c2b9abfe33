"""Runs of all kinds, short and long, broken and hostile, and the pages that trainer report makes of them."""

import json
import pathlib
import random
import shutil
import struct
import subprocess

HOSTILE = "<img src=x onerror=console.log(1)>\x1b[31m\"'&{{DATA}}</script>\u202e"



def write_images(directory, count):
    """Handwritten squares: in one of three corners, with noise."""
    rng = random.Random(1)
    pixels, labels = bytearray(), bytearray()
    for _ in range(count):
        label = rng.randrange(3)
        labels.append(label)
        for y in range(12):
            for x in range(12):
                inside = (y < 6) == (label != 2) and (x < 6) == (label == 0)
                pixels.append(min(255, rng.randrange(150) + (60 if inside else 0)))
    (directory / "images.idx").write_bytes(struct.pack(">IIII", 0x803, count, 12, 12) + pixels)
    (directory / "labels.idx").write_bytes(struct.pack(">II", 0x801, count) + labels)


def write_tables(directory):
    rng = random.Random(2)
    with open(directory / "yes.csv", "w") as yes, open(directory / "price.csv", "w") as price:
        hostile = HOSTILE.replace('"', '""')
        yes.write(f'"{hostile}",age,y\n')
        price.write("size,kind,price\n")
        for row in range(600):
            age, kind = rng.randrange(18, 80), rng.choice("abc")
            yes.write(f'"{hostile if row % 3 else "b"}",{age},{"<u>yes" if age + rng.randrange(40) > 60 else "no&"}\n')
            price.write(f"{age},{kind},{3 * age + 20 * (kind == 'a') + rng.gauss(0, 9):.2f}\n")


class PageRuns:
    """Runs in a directory, of which pages are made. `launcher`: mpiexec and its flags, or nothing for one rank."""

    def __init__(self, directory, trainer, launcher):
        self.directory, self.trainer, self.launcher = pathlib.Path(directory), trainer, launcher

    def call(self, *words, fails=False, ranks=1):
        launcher = [*self.launcher, "-np", str(ranks)] if ranks > 1 else []
        done = subprocess.run([*launcher, self.trainer, *map(str, words)], capture_output=True, text=True)
        assert (done.returncode != 0) == fails, (words, done.stdout, done.stderr)
        return done.stdout

    def train(self, name, *flags, command=(), **how):
        (self.directory / "empty.toml").touch()
        self.call(*command, "--config", self.directory / "empty.toml", "--run.dir", self.directory / "runs" / name,
                  "--run.log_every", "2", "--train.replicas", "2", "--train.global_batch", "16",
                  "--data.validation", "share(0.3)", *flags, **how)

    def damage(self, name):
        """A copy of a run whose files end too early, or hold something else."""
        shutil.copytree(self.directory / "runs" / name, self.directory / "runs/damaged")
        for file, bytes_left in (("metrics.jsonl", -9), ("run.json", 40), ("evaluation.json", -99)):
            path = self.directory / "runs/damaged" / file
            path.write_bytes(path.read_bytes()[:bytes_left])
        (self.directory / "runs/damaged/importance.json").write_text("[17]")

    def lengthen(self, name):
        shutil.copytree(self.directory / "runs" / name, self.directory / "million")
        with open(self.directory / "million/metrics.jsonl", "w") as metrics:
            for step in range(10, 1_000_001, 10):
                metrics.write(json.dumps({"kind": "train", "step": step, "epoch": step / 25, "samples_seen": 16 * step,
                                          "loss": 99.0 if step == 600_010 else 1 / step ** 0.2 + random.random() / 50,
                                          "lr": 0.1, "samples_per_second": 5e4 + random.random()}) + "\n")

    def make(self):
        """The pages by their names."""
        write_images(self.directory, 600)
        write_tables(self.directory)
        images = ["--data.train", self.directory / "images.idx", "--data.train_labels", self.directory / "labels.idx",
                  "--model.layers", "dense(3)", "--train.loss", "softmax_cross_entropy"]
        yes = ["--data.train", self.directory / "yes.csv", "--data.label", "y", "--model.layers",
               "dense(4) relu dense(1)",
               "--train.loss", "binary_cross_entropy", "--train.epochs", "5"]
        self.train("images", *images, "--train.epochs", "4", "--train.lr", "0.05")
        self.train("yes", *yes, "--train.lr", "0.05")
        self.call("importance", "--model", self.directory / "runs/yes")
        self.train("price", "--data.train", self.directory / "price.csv", "--data.label", "price",
                   "--data.columns", "price:standard", "--model.layers", "dense(8) relu dense(1)",
                   "--train.loss", "mean_squared_error", "--train.epochs", "5", "--train.lr", "0.05")
        self.train("killed", *yes, "--debug.fail_rank", "0", "--debug.fail_step", "50", fails=True)
        self.train("nan", *yes, "--debug.nan_replica", "1", "--debug.nan_step", "40", fails=True)
        self.train("sweep", *yes, "--grid", "train.lr=0.01,0.1,0.5", command=["sweep"])
        if self.launcher:
            self.train("async", *yes, "--distribute.strategy", "parameter_server", "--distribute.mode",
                       "async", ranks=3)
        self.damage("images")
        self.lengthen("images")
        pages = {run.name: [run] for run in sorted((self.directory / "runs").iterdir())}
        pages |= {"million": [self.directory / "million"], "several": [self.directory / "runs"]}
        for name, runs in pages.items():
            self.call("report", *runs, "--output", self.directory / f"{name}.html", "--json",
                      self.directory / f"{name}.json")
        return {name: self.directory / f"{name}.html" for name in pages}
