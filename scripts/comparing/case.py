"""A case of compare-outputs: a folder, files that are written into it, and commands that run in it one by one.

A command is a line for bash; one after `! ` is to fail. `trainer` is the program that is compared, `data` the folder
that data.py fills. Runs are short and repeat their bits: fixed `replicas`, and an exchange that is not chosen by
measuring.
"""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIGS = ROOT / "configs"
FAILS = "! "


@dataclasses.dataclass
class Case:
    name: str
    commands: list
    files: dict
    needs: str = ""  # what some machines lack: there is no accepted output of such a case


def case(name, commands, needs="", **files):
    """`files` maps a name without its ending to the text of NAME.toml."""
    lines = [line.strip() for line in commands.strip().splitlines()]
    return Case(name, [line for line in lines if line], {f"{file}.toml": text for file, text in files.items()}, needs)


def failing(commands):
    return "\n".join(FAILS + line.strip() for line in commands.strip().splitlines())
