"""Starts the trainer under mpirun and reads what a run leaves behind: summary.json and plan.txt."""

import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRAINER = ROOT / "build/release/trainer"
CONFIG = ROOT / "configs/fashion_mlp_allreduce.toml"
FASHION_MNIST_SAMPLES = 60_000  # of its training set
DIVERGED = 5  # exit code: the loss or a gradient is not a finite number


def whole(text):
    """The number at the start of "1,876 (rounded up)"."""
    return int(re.match(r"[\d,]+", text).group().replace(",", ""))


def read_plan(text):
    """The lines "label  value" of the last table that `trainer plan` prints."""
    pairs = (re.split(r"  +", line.strip()) for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


@dataclasses.dataclass
class Result:
    plan: dict
    summary: dict  # empty if the run diverged

    @property
    def diverged(self):
        return not self.summary

    @property
    def accuracy(self):
        return 100 * self.summary["evaluation"]["accuracy"]

    @property
    def steps(self):
        return self.summary["steps"]

    @property
    def samples(self):
        return self.summary["samples_seen"]

    @property
    def rate(self):
        return self.summary["samples_per_second"]

    @property
    def exchange(self):
        """Share of the workers' time that goes to other ranks, in percent."""
        return 100 * (self.summary["time"]["communication"] + self.summary["time"]["waiting"])

    @property
    def staleness(self):
        """Mean and 95th percentile, or None where all ranks take each step together."""
        asynchrony = self.summary.get("asynchrony")
        return asynchrony and (asynchrony["mean_staleness"], asynchrony["staleness_95"])

    @property
    def workers(self):
        return self.summary["asynchrony"]["workers"] if "asynchrony" in self.summary else []


class Trainer:
    """Runs the release build in a directory of its own, with the config of the perceptron on Fashion-MNIST."""

    def __init__(self, directory, say):
        self.directory = pathlib.Path(directory)
        self.say = say
        self.environment = mpi_environment()
        self.launch = launcher()

    def call(self, command):
        return subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)

    def train(self, workers, flags, name="run"):
        """One run on `workers` ranks, and as many more as it has servers, in the place of the last one of this name."""
        servers = servers_in(flags)
        run = self.directory / name
        shutil.rmtree(run, ignore_errors=True)
        command = [*self.launch, str(workers + servers), str(TRAINER), "--config", str(CONFIG), *as_arguments(flags)]
        self.say(f"np {workers + servers}: {' '.join(as_arguments(flags))}")
        done = self.call([*command, "--run.dir", str(run), "--run.progress", "none"])
        if done.returncode not in (0, DIVERGED):
            raise SystemExit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
        summary = json.loads((run / "summary.json").read_text()) if done.returncode == 0 else {}
        return Result(read_plan((run / "plan.txt").read_text()), summary)

    def plan(self, ranks, flags, config):
        """What `trainer plan` says of one number of ranks."""
        command = [str(TRAINER), "plan", "--config", str(config), *as_arguments(flags), "--np", str(ranks)]
        done = self.call(command)
        if done.returncode != 0:
            raise SystemExit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
        return read_plan(done.stdout)


def servers_in(flags):
    return flags.get("distribute.servers", 1) if flags.get("distribute.strategy") == "parameter_server" else 0


def as_arguments(flags):
    return [word for key, value in flags.items() for word in (f"--{key}", str(value))]


def mpi_environment():
    environment = dict(os.environ)
    if os.geteuid() == 0:  # what Open MPI wants before it starts as root; elsewhere it changes nothing
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return environment


def launcher():
    """What stands before the number of ranks."""
    version = subprocess.run(["mpirun", "--version"], env=mpi_environment(), capture_output=True, text=True, check=False)
    return ["mpirun", "--oversubscribe", "-np"] if "Open MPI" in version.stdout else ["mpirun", "-np"]


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    build = ", ".join(line for line in version().splitlines() if line.startswith(("MPI", "kernels")))
    return f"{len(os.sched_getaffinity(0))} cores, {processor()}; {build}"


def require_trainer():
    if not TRAINER.exists():
        raise SystemExit("error: build/release/trainer is missing: cmake --preset release && cmake --build --preset release")


def has_bf16():
    """Whether the CPU has instructions for it that the kernels use."""
    return "bf16: native" in version().splitlines()


def version():
    return subprocess.run([str(TRAINER), "--version"], capture_output=True, text=True, check=True).stdout
