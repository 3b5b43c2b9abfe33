"""Numbers and dates as tables write them (configs/guides/tables.md)."""

import datetime
import math
import re

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
BLANKS = " \t\u00a0\u202f\u2009"
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def plain_number(text):
    if not PLAIN.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def taken_sign(text):
    """The text without its sign, and whether it is negative: "-12", "12-", "(12)"."""
    if len(text) > 2 and text[0] == "(" and text[-1] == ")":
        return text[1:-1].strip(BLANKS), True
    for sign in "-\u2212":
        if text.startswith(sign):
            return text[1:].strip(BLANKS), True
    if text.endswith("-"):
        return text[:-1].strip(BLANKS), True
    return (text[1:].strip(BLANKS) if text.startswith("+") else text), False


def notated_number(text, notation):
    """`notation`: that of schema.json, with decimal, thousands, prefix and suffix."""
    text, negative = taken_sign(text.strip(BLANKS))
    if notation["prefix"] and text.startswith(notation["prefix"]):
        text = text[len(notation["prefix"]) :].strip(BLANKS)
    if notation["suffix"] and text.endswith(notation["suffix"]):
        text = text[: -len(notation["suffix"])].strip(BLANKS)
    if not negative:
        text, negative = taken_sign(text)
    decimal, between = re.escape(notation["decimal"]), notation["thousands"]
    between = f"[{BLANKS}]" if between == " " else re.escape(between) if between else None
    whole = r"\d+" if between is None else rf"(?:\d{{1,3}}(?:{between}\d{{3}})+|\d+)"
    value = None
    if re.fullmatch(rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)", text):
        value = float(re.sub(between, "", text).replace(notation["decimal"], ".") if between else text.replace(notation["decimal"], "."))
    elif notation["decimal"] == ".":
        value = plain_number(text)
    return None if value is None else -value if negative else value


def time_of_day(text):
    """As a fraction of a day, less its zone."""
    found = re.fullmatch(r"(\d{1,2}):(\d\d)(?::(\d\d)(\.\d+)?)?(?:(Z)| ?([+-])(\d\d):?(\d\d)?)?", text)
    if not found:
        return None
    hours, minutes, seconds = int(found[1]), int(found[2]), float((found[3] or "0") + (found[4] or ""))
    if hours > 23 or minutes > 59 or seconds >= 61:
        return None
    zone = 0 if not found[6] else (1 if found[6] == "+" else -1) * (int(found[7]) * 3600 + int(found[8] or 0) * 60)
    return (hours * 3600 + minutes * 60 + seconds - zone) / 86400


def date_number(text, form):
    """Days since 1970-01-01, with the time of day as a fraction."""
    if form == "time":
        return time_of_day(text)
    if form == "epoch":
        seconds = plain_number(text)
        return None if seconds is None else seconds / 86400
    sign = r"[-/. ]?"
    year, month, day = r"(?P<y>\d{4}|\d{2})", r"(?P<m>\d{1,2}|[A-Za-z]{3,}\.?)", r"(?P<d>\d{1,2})"
    shape = {"ymd": year + sign + month + sign + day, "dmy": day + sign + month + sign + year, "mdy": month + sign + day + ",?" + sign + year}[form]
    found = re.fullmatch(rf"{shape}(?:(?:T|,? )(?P<time>.*))?", text)
    if not found or (form == "ymd" and len(found["y"]) == 2):
        return None
    years = int(found["y"])
    if len(found["y"]) == 2:
        years += 2000 if years < 69 else 1900
    months = int(found["m"]) if found["m"].isdigit() else MONTHS.index(found["m"][:3].lower()) + 1 if found["m"][:3].lower() in MONTHS else 0
    try:
        days = (datetime.date(years, months, int(found["d"])) - datetime.date(1970, 1, 1)).days
    except ValueError:
        return None
    if found["time"] is None:
        return float(days)
    time = time_of_day(found["time"])
    return None if time is None else days + time


def cycle(days, part):
    """Sine and cosine of the place in the year, of the month, of the day in the week, or of the time of day."""
    whole = math.floor(days)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=whole)
    first = datetime.date(date.year, 1, 1)
    share = {
        "hour": lambda: days - whole,
        "weekday": lambda: (date.isoweekday() % 7) / 7,
        "month": lambda: (date.month - 1) / 12,
        "year": lambda: ((date - first).days + days - whole) / (datetime.date(date.year + 1, 1, 1) - first).days,
    }[part]()
    return math.sin(2 * math.pi * share), math.cos(2 * math.pi * share)


def day_of_year(days):
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=math.floor(days))
    return (datetime.date(2000, date.month, date.day) - datetime.date(2000, 1, 1)).days
