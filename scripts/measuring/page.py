"""One page for a lecture: what a step means in each mode on four ranks, and how its curve looks."""

from . import parts, runs

# The name on the page, what it is, and the learning rate that suits the samples of its steps.
MODES = {
    "sync": (parts.SERVERS, parts.LR * parts.WORKERS),
    "async": (parts.ASYNC, parts.LR),
    "bounded": (parts.BOUNDED, parts.LR),
    "shard": ({"data.mode": "shard"}, parts.LR * parts.WORKERS),
    "full": ({"data.mode": "full"}, parts.LR * parts.WORKERS),
    "local-sgd": ({"distribute.strategy": "local_sgd"}, parts.LR * parts.WORKERS),
}


def write(trainer, effort, page):
    """Trains each mode with the same number of samples, and lets `trainer report` lay them side by side."""
    for name, (flags, lr) in MODES.items():
        every = {"eval.every": f"{effort.samples // 12} samples", "run.log_every": 50}
        trainer.train(parts.WORKERS, parts.base() | {"train.lr": lr, "train.samples": effort.samples} | every | flags, name)
    names = [str(trainer.directory / name) for name in MODES]
    done = trainer.call([str(runs.TRAINER), "report", *names, "--output", str(page), "--overwrite"])
    if done.returncode != 0:
        raise SystemExit(f"error: {done.stdout}{done.stderr}")
