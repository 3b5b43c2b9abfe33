"""Numbers and dates as tables write them (configs/guides/tables.md)."""

import datetime
import math
import re

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
BLANKS = " \t\u00a0\u202f\u2009"
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
ZONES = {"Z": 0, "UTC": 0, "GMT": 0, "UT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
         "PST": -8, "PDT": -7, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3}
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
    between = {" ": f"[{BLANKS}]", "'": "['\u2019]"}.get(between, re.escape(between or "")) or None
    whole = r"\d+" if between is None else rf"(?:\d{{1,3}}(?:{between}\d{{3}})+|\d+)"
    value = None
    if re.fullmatch(rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)", text):
        value = float(re.sub(between, "", text).replace(notation["decimal"], ".") if between
                      else text.replace(notation["decimal"], "."))
    elif notation["decimal"] == ".":
        value = plain_number(text)
    return None if value is None else -value if negative else value


ZONE = r"(?:(?P<zone>[A-Z]+)(?![A-Z]))?(?:(?P<east>[+-])(?P<zh>\d\d)(?::?(?P<zm>\d\d))?(?: *[(\[].*[)\]])?)?"
HALF = r"(?:[ \u202f]*(?P<half>[aApP])(?:[mM]|\.[mM]\.))?"
CLOCK = rf"(?P<hh>\d{{1,2}}):(?P<mm>\d\d)(?::(?P<ss>\d\d)(?P<part>[.,]\d*)?)?{HALF}(?: *{ZONE})?"
PLAIN_CLOCK = rf"(?P<hh>\d\d)(?P<mm>\d\d)(?:(?P<ss>\d\d)(?P<part>[.,]\d*)?)?{HALF}(?: *{ZONE})?"


def time_of_day(text, pattern=CLOCK):
    """As a fraction of a day, less its zone."""
    found = re.fullmatch(pattern, text)
    if not found or (found["zone"] and found["zone"] not in ZONES):
        return None
    hours, minutes = int(found["hh"]), int(found["mm"])
    seconds = float((found["ss"] or "0") + (found["part"] or "").replace(",", "."))
    if found["half"]:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if found["half"] in "pP" else 0)
    if (hours > 23 and (hours, minutes, seconds) != (24, 0, 0)) or minutes > 59 or seconds >= 61:
        return None
    zone = ZONES.get(found["zone"], 0) * 3600
    if found["east"]:
        if int(found["zh"]) > 23 or int(found["zm"] or 0) > 59:
            return None
        zone = (1 if found["east"] == "+" else -1) * (int(found["zh"]) * 3600 + int(found["zm"] or 0) * 60)
    return (hours * 3600 + minutes * 60 + seconds - zone) / 86400


SIGN = r"(?:[-/. ][ \u202f]*)"
NAME = r"(?:[A-Za-z]{3,}\.?)"
DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
EARLY_CLOCK = r"(?:(?P<early>\d{1,2}:\d\d.*?) )?"
SHAPES = {
    "ymd": [rf"(?P<y>\d{{4}}){SIGN}(?P<m>\d{{1,2}}){SIGN}{DAY}", rf"(?P<y>\d{{4}}){SIGN}?(?P<m>{NAME})[,]?{SIGN}?{DAY}",
            r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)"],
    "dmy": [rf"{DAY}{SIGN}(?P<m>\d{{1,2}}){SIGN}{EARLY_CLOCK}(?P<y>\d{{4}}|\d\d)",
            rf"{DAY}{SIGN}?(?P<m>{NAME}),?{SIGN}?{EARLY_CLOCK}(?P<y>\d{{4}}|\d\d)",
            r"(?P<d>\d\d)(?P<m>\d\d)(?P<y>\d{4})"],
    "mdy": [rf"(?P<m>\d{{1,2}}){SIGN}{DAY}{SIGN}{EARLY_CLOCK}(?P<y>\d{{4}}|\d\d)",
            rf"(?P<m>{NAME}){SIGN}?{DAY},?{SIGN}?{EARLY_CLOCK}(?P<y>\d{{4}}|\d\d)",
            r"(?P<m>\d\d)(?P<d>\d\d)(?P<y>\d{4})"],
    "ym": [rf"(?P<y>\d{{4}}){SIGN}(?P<m>\d{{1,2}})", rf"(?P<y>\d{{4}}){SIGN}?(?P<m>{NAME})",
           r"(?P<y>\d{4})(?P<m>\d\d)"],
    "my": [rf"(?P<m>{NAME}){SIGN}?(?P<y>\d{{4}})", rf"(?P<m>{NAME})[-/.]?(?P<y>\d\d)",
           rf"(?P<m>\d{{1,2}}){SIGN}(?P<y>\d{{4}})", r"(?P<m>\d\d)(?P<y>\d{4})"],
    "week": [r"(?P<y>\d{4})-?W(?P<w>\d\d)(?:-?(?P<wd>\d))?"],
    "ordinal": [rf"(?P<y>\d{{4}}){SIGN}(?P<j>\d{{3}})", r"(?P<y>\d{4})(?P<j>\d{3})"],
}
UNITS = {"epoch": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}


def day_of(found, before):
    """The date of a match, or None."""
    fields = found.groupdict()
    year = int(fields["y"])
    if len(fields["y"]) == 2:
        year = next(y for y in range(before - 100, before) if y % 100 == year)
    try:
        if fields.get("w"):
            return datetime.date.fromisocalendar(year, int(fields["w"]), int(fields["wd"] or 1))
        if fields.get("j"):
            date = datetime.date(year, 1, 1) + datetime.timedelta(days=int(fields["j"]) - 1)
            return date if date.year == year else None
        month = fields["m"]
        months = int(month) if month.isdigit() else MONTHS.index(month[:3].lower()) + 1
        return datetime.date(year, months, int(fields.get("d") or 1))
    except ValueError:
        return None


def date_number(text, form, before=2069):
    """Days since 1970-01-01, with the time of day as a fraction. Years of two digits are the hundred before
    `before`."""
    if form == "time":
        return time_of_day(text)
    if form in UNITS or form == "excel":
        number = plain_number(text)
        return None if number is None else number - 25569 if form == "excel" else number / UNITS[form] / 86400
    weekday = re.match(r"([A-Za-z]{3,})\.?,?[ \u202f]*", text)
    named = weekday and weekday[1][:3].lower() in DAYS
    rest = text[weekday.end() :] if named else text
    for shape in SHAPES[form]:
        found = re.fullmatch(rf"{shape}(?:(?P<sign>T|,? +|(?<=\d{{8}}))(?P<time>\d.*))?",
                             re.sub(r"^(\d{6,8})\.0$", r"\1", rest))
        date = day_of(found, before) if found else None
        if date is None or (named and DAYS[date.weekday()] != weekday[1][:3].lower()):
            continue
        days = float((date - datetime.date(1970, 1, 1)).days)
        clock = found["time"] or found.groupdict().get("early")
        if clock is None:
            return days
        time = time_of_day(clock)
        if time is None and shape is SHAPES[form][-1]:
            time = time_of_day(clock, PLAIN_CLOCK)
        if time is not None and not (found["time"] and found.groupdict().get("early")):
            return days + time
    return None


def has_short_year(text, form):
    """Only such a date is another one with another century."""
    return date_number(text, form, 2069) != date_number(text, form, 1969)


def written_date(days, form="ymd"):
    """As the program writes it: to the minute."""
    minutes = round(days * 1440)
    if form == "time":
        return "24:00" if minutes >= 1440 else f"{minutes % 1440 // 60:02d}:{minutes % 60:02d}"
    time = datetime.datetime(1970, 1, 1) + datetime.timedelta(minutes=minutes)
    return time.strftime("%Y-%m-%d") + (time.strftime(" %H:%M") if minutes % 1440 else "")


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
