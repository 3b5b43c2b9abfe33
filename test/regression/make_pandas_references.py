"""Writes pandas_references.json: the times that pandas gives for patterns of its calendar, in formats of its strftime,
each column followed by those that come next. pandas has read each column as times, too.

The tests only need the file. It is written again by
    scripts/peers/python -m pip install pandas==3.1.1
    scripts/peers/python test/regression/make_pandas_references.py
"""

import pandas as pd
import references
from pandas.tseries.offsets import CustomBusinessDay

NEXT = 5
DAY = "%Y-%m-%d"
PATTERNS = [
    ("D", 40, "%d.%m.%Y"), ("D", 40, "%m/%d/%Y"), ("D", 40, "%b %d, %Y"), ("D", 40, "%A, %d %B %Y"), ("D", 40, "%Y%m%d"),
    ("D", 40, "%Y-%j"), ("B", 40, DAY), (CustomBusinessDay(weekmask="Mon Tue Wed Thu Fri Sat"), 40, DAY),
    (CustomBusinessDay(weekmask="Tue Sat"), 20, DAY), ("W-SUN", 20, DAY), ("W-WED", 20, "%G-W%V-%u"), ("2W-MON", 20, "%G-W%V"),
    ("MS", 20, "%Y-%m"), ("MS", 20, "%m/%Y"), ("MS", 20, "%Y%m"), ("ME", 20, DAY), ("BMS", 20, DAY), ("BME", 20, DAY),
    ("SMS", 24, DAY), ("SME", 24, DAY), ("QS", 9, DAY), ("QE", 9, DAY), ("BQE", 28, DAY), ("BQS", 28, DAY), ("2ME", 12, DAY),
    ("YS", 8, DAY), ("YE", 8, DAY), ("BYE", 16, DAY), ("h", 40, "%Y-%m-%d %H:%M"), ("h", 40, "%Y-%m-%d %I:%M %p"),
    ("30min", 40, "%d/%m/%Y %H:%M:%S"), ("90s", 40, "%Y-%m-%dT%H:%M:%SZ"), ("250ms", 40, "%Y-%m-%d %H:%M:%S.%f"),
]  # fmt: skip


def cases():
    for start in ("2023-10-31", "2019-12-30", "1999-11-15"):
        for frequency, count, form in PATTERNS:
            times = pd.date_range(start, periods=count + NEXT, freq=frequency)
            if "W%V" not in form and "%j" not in form:
                read = pd.to_datetime(pd.Series(times.strftime(form)), format=form)
                assert str(read.dtype).startswith("datetime64"), (frequency, form)
            yield {"text": list(times.strftime(form)), "next": NEXT}


references.write("pandas_references.json", {"times": cases()})
