"""Numbers and tables as Markdown."""

import re
import statistics
import textwrap

WIDTH = 120


def wrapped(prose):
    """Lines of at most WIDTH characters; a line that begins with "- " begins an item, and an empty line ends a paragraph."""
    blocks = [block.strip() for block in re.split(r"\n\n+|\n(?=- )", prose.strip())]
    lines, item = [], False
    for block in blocks:
        if lines and not (item and block.startswith("- ")):
            lines.append("")
        item = block.startswith("- ")
        together = re.sub(r"(\d) (%|ms)", "\\1\N{NO-BREAK SPACE}\\2", " ".join(block.split()))
        lines += textwrap.wrap(together, WIDTH, subsequent_indent="  " if item else "", break_long_words=False,
                               break_on_hyphens=False)  # fmt: skip
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ") + "\n"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def mean(values):
    return statistics.fmean(values)


def whole(value):
    return f"{round(value):,}"


def rounded(value):
    """Three digits of a rate: more are not repeatable."""
    digits = max(0, len(str(int(value))) - 3)
    return f"{round(value, -digits):,.0f}"


def spread(values):
    """Mean, and the lowest and highest where there are several."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def accuracy(results):
    """In percent; of several seeds those that reached the end, and how many did not."""
    ended = [result.accuracy for result in results if not result.diverged]
    lost = len(results) - len(ended)
    if not ended:
        return "diverged"
    return spread(ended) + (f"; {lost} of {len(results)} diverged" if lost else "")


def mean_accuracy(results):
    """In percent, in words, for a sentence."""
    ended = [result.accuracy for result in results if not result.diverged]
    return f"{mean(ended):.2f} %" if ended else "nothing (all runs diverged)"
