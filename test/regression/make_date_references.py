"""Writes date_references.json: texts of dates with their form, and the days since 1970 that Python's datetime makes of
them.

The tests only need the file. It is written again by
    python3 test/regression/make_date_references.py
"""

import datetime as dt
import email.utils

import references

UTC = dt.timezone.utc
TIMES = [dt.datetime(1970, 1, 1), dt.datetime(1999, 12, 31, 23, 59, 59), dt.datetime(2000, 2, 29, 12, 30),
         dt.datetime(2021, 1, 3, 0, 5), dt.datetime(2024, 12, 30, 6, 0, 15), dt.datetime(1968, 7, 4, 18, 45),
         dt.datetime(2026, 11, 28, 12, 0)]  # fmt: skip
DATES = {
    "ymd": ["%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%Y-%b-%d", "%a %Y-%m-%d"],
    "dmy": ["%d.%m.%Y", "%d/%m/%y", "%d %b %Y", "%d-%B-%y", "%A, %d %B %Y", "%a %d/%m/%Y", "%d. %B %Y", "%d%m%Y"],
    "mdy": ["%m/%d/%Y", "%m-%d-%y", "%B %d, %Y", "%A, %B %d, %Y", "%a %b %d %Y", "%m%d%Y"],
    "week": ["%G-W%V-%u", "%GW%V%u"],
    "ordinal": ["%Y-%j", "%Y%j"],
}
CLOCKS = ["%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S%p", "%H:%M:%S.%f", "%H:%M:%S,250"]
MONTHS = {"ym": ["%Y-%m", "%Y %b", "%Y/%m", "%Y%m"], "my": ["%b-%y", "%B %Y", "%m/%Y", "%b-%Y"]}


def days(time):
    return (time.replace(tzinfo=time.tzinfo or UTC) - dt.datetime(1970, 1, 1, tzinfo=UTC)) / dt.timedelta(days=1)


def plain():
    """Each format with and without a time of day."""
    for form, formats in DATES.items():
        for pattern in formats:
            for i, time in enumerate(TIMES):
                day = dt.datetime(time.year, time.month, time.day)
                if "%y" in pattern and not 1969 <= time.year <= 2068:
                    continue
                yield time.strftime(pattern), form, days(day)
                clock = CLOCKS[i % len(CLOCKS)]
                text = time.strftime(f"{pattern} {clock}")
                read = dt.datetime.strptime(time.strftime(clock.replace(",250", ".250000")),
                                            clock.replace(",250", ".%f"))
                yield text, form, days(day + (read - dt.datetime(1900, 1, 1)))


def by_programs():
    for time in TIMES:
        for hours in (0, -6, 5.5):
            zone = dt.timezone(dt.timedelta(hours=hours))
            there = time.replace(tzinfo=zone)
            yield there.isoformat(), "ymd", days(there)
            yield there.strftime("%Y%m%dT%H%M%S%z"), "ymd", days(there)
            yield email.utils.format_datetime(there), "dmy", days(there)
            yield there.strftime("%a %b %d %Y %H:%M:%S GMT%z (Some Time)"), "mdy", days(there)
            yield there.strftime("%a %b %d %H:%M:%S %z %Y"), "mdy", days(there)
        yield time.ctime(), "mdy", days(time)
        yield time.strftime("%A, %d-%b-%Y %H:%M:%S GMT"), "dmy", days(time)
        yield time.strftime("%Y-%m-%d %H:%M:%S EST"), "ymd", days(time + dt.timedelta(hours=5))
        yield time.strftime("%Y-%m-%d 24:00:00"), "ymd", days(dt.datetime(time.year, time.month, time.day)
                                                              + dt.timedelta(days=1))
        yield time.strftime("%m/%d/%Y, %I:%M:%S\u202f%p"), "mdy", days(time)
        yield time.strftime("%H:%M:%S"), "time", days(time) % 1
        yield time.strftime("%I:%M %p").lstrip("0"), "time", days(time.replace(second=0)) % 1
        for form, formats in MONTHS.items():
            for pattern in formats:
                if "%y" not in pattern or 1969 <= time.year <= 2068:
                    yield time.strftime(pattern), form, days(dt.datetime(time.year, time.month, 1))


def as_numbers():
    for time in TIMES:
        seconds = days(time) * 86400
        for form, unit in (("epoch", 1), ("epoch_ms", 10**3), ("epoch_us", 10**6), ("epoch_ns", 10**9)):
            yield str(round(seconds) * unit), form, days(time)
        yield str((time - dt.datetime(1899, 12, 30)).days), "excel", days(dt.datetime(time.year, time.month, time.day))


def main():
    references.write("date_references.json", {"dates": dict.fromkeys([*plain(), *by_programs(), *as_numbers()])})


if __name__ == "__main__":
    main()
