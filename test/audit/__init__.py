"""The auditor: recomputes the figures that people see about a finished run, without any code of the program."""

from .check import check_run
from .report import Difference

__all__ = ["check_run", "Difference"]
