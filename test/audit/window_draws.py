"""Random experiments on windows of time, for `draw`: series with gaps and labels that are missing, several labels,
columns known ahead, times in several forms."""

import datetime
import pathlib

from experiment import config_of


class WindowExperiment:
    def __init__(self, dice, directory):
        """Writes the files into the directory, which is new."""
        self.dice, self.directory = dice, pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.window, self.horizon = dice.randrange(3, 9), dice.randrange(1, 5)
        self.labels = ["sold", "price"][: dice.randrange(1, 3)]
        self.stores = ["mill", "north", "south"][: dice.randrange(1, 4)]
        self.ahead = dice.random() < 0.3
        (self.directory / "data.csv").write_text(self.table())
        (self.directory / "config.toml").write_text(config_of(self.keys()))
        (self.directory / "commands.sh").write_text(
            f"set -eu\n$MPIEXEC -np {dice.randrange(1, 4)} $TRAINER --config config.toml --run.dir run --run.progress none"
            " >run.console 2>&1\n")

    def table(self):
        dice, form = self.dice, self.dice.choice(("%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%d %H:%M", "%Y/%m/%d", "number"))
        lacks, gaps = dice.choice((0, 0.02, 0.06)), dice.choice((0, 0.02))
        lines = ["day,store,holiday,sold,price"]
        for k, store in enumerate(self.stores):
            begin = dice.randrange(20)
            for i in range(begin, 140 + self.ahead * self.horizon):
                coming = i >= 140
                if not coming and begin < i < 139 and dice.random() < gaps:
                    continue
                day = datetime.datetime(2023, 10, 1) + datetime.timedelta(days=i)
                cells = [f"{30 + 20 * k + i / 10 + 9 * (i % 7 == 6) + dice.gauss(0, 2):.1f}",
                         f"{2 + i / 50 + dice.random() / 10:.3f}"]
                cells = ["" if coming or (i < 139 and dice.random() < lacks) else cell for cell in cells]
                time = str(i) if form == "number" else day.strftime(form)
                lines.append(",".join([time, store, str(int(i % 30 == 4)), *cells]))
        return "\n".join(lines) + "\n"

    def keys(self):
        dice, several = self.dice, len(self.stores) > 1
        outputs, quantile = len(self.labels) * self.horizon, dice.random() < 0.3
        keys = {"data.train": "data.csv", "data.label": self.labels, "data.time": "day", "data.window": self.window,
                "data.horizon": self.horizon, "data.numeric": ["holiday"],
                "data.fill_gaps": dice.choice(("none", "last", "zero")),
                "data.window_scale": dice.choice(("none", "last", "standard")), "data.stride": dice.choice((1, 1, 3)),
                "data.columns": [f"{label}: {dice.choice(('standard', 'minmax', 'none'))}" for label in self.labels],
                "data.validation": "time(day, 0.25)", "data.test_part": "time(day, 0.2)",
                "model.layers": f"dense({outputs * (3 if quantile else 1)})",
                "train.loss": "quantile" if quantile else "mean_squared_error", "train.optimizer": "adam",
                "train.lr": 0.01, "train.epochs": 2, "train.global_batch": dice.choice((6, 12)), "train.replicas": 3,
                "run.seed": dice.randrange(1000)}
        if "price" not in self.labels:
            keys["data.ignore"] = ["price"]
        if several:
            keys["data.series"] = ["store"]
        else:
            keys["data.ignore"] = [*keys.get("data.ignore", []), "store"]
        if self.ahead:
            keys["data.future"] = ["holiday"]
        if quantile:
            keys["train.quantiles"] = [0.1, 0.5, 0.9]
        if dice.random() < 0.5:
            keys["data.season"] = min(7, self.window)
        return keys
