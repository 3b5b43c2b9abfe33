"""Texts for people: each number in them needs a check, as each figure of a JSON file does.

A `Text` knows which of its numbers a check has taken: those in the groups of a match that went through `taken`. At the end
the lines with numbers that nobody took are figures without a check, unless unaudited.txt has them: a taken number stands
there as _, another one as #.
"""

import re


class Line(str):
    """A line of a text, or a whole text, of which matches can be taken."""

    def of(self, text, begin):
        self.text, self.begin = text, begin
        return self


class Text(Line):
    def __new__(cls, sheet, name, content):
        text = super().__new__(cls, content)
        text.of(text, 0)
        text.name, text.free = name, bytearray(b"\x01" * len(content))
        sheet.texts.append(text)
        return text

    def lines(self):
        begin = 0
        for line in self.split("\n"):
            yield Line(line).of(self, begin)
            begin += len(line) + 1

    def ignore(self, pattern):
        """What has digits, but shows no figure of the run: names, and sentences that are about something else."""
        for found in re.finditer(pattern, self, re.M):
            self.free[found.start() : found.end()] = bytes(found.end() - found.start())

    def figures(self):
        """Places and lines that have numbers without a check."""
        for line in self.lines():
            free = self.free[line.begin : line.begin + len(line)]
            if not any(c in "0123456789" and mine for c, mine in zip(line, free)):
                continue
            rest = "".join(c if mine else "\x00" for c, mine in zip(line, free))
            rest = re.sub(r"\d(?:[\d.,]*\d)?", "#", re.sub(r"\x00+", "_", rest))
            yield f"{self.name}: {' '.join(rest.split())}", str(line)


def taken(found):
    """The match of a text or line, whose groups the caller checks."""
    if found and isinstance(found.string, Line):
        line = found.string
        for group in range(1, found.re.groups + 1):
            begin, end = found.span(group)
            if begin >= 0:
                line.text.free[line.begin + begin : line.begin + end] = bytes(end - begin)
    return found
