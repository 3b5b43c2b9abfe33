"""Which of two classes is yes, and where it is named (guide tables)."""

YES = {"true", "t", "yes", "y", "ja", "j", "oui", "si", "sí", "sim", "positive", "positiv", "pos", "case", "+"}


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def positive_class(counts, named=None):
    """Of two classes with their counts: the one that is named, whose name means yes, that is rare, or that is later."""
    if named:
        return named
    numbers = [number(text) for text in counts]
    in_bytes = lambda text: text.encode("utf-8", "surrogateescape")
    first, second = sorted(counts, key=number if None not in numbers else in_bytes)
    lower = lambda text: "".join(c.lower() if c.isascii() else c for c in text)
    means_yes = lambda text: lower(text) in YES if number(text) is None else number(text) == 1
    yes = [text for text in (first, second) if means_yes(text)]
    if None not in numbers and yes == [first]:
        yes = []  # 1 beside a greater number
    if len(yes) == 1:
        return yes[0]
    rare = [text for text in counts if 10 * counts[text] < 4 * sum(counts.values())]
    return rare[0] if rare else second
