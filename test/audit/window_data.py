"""Windows of time over a table (configs/guides/forecasting.md): its records in the order of series and time, and the
windows of each set, with what they hold and what repeating the past would forecast."""

import calendar
import datetime
from collections import Counter

import numpy as np

from .notations import notated_number, plain_number, written_date
from .splits import order_of_times
from .table_data import Scale, category_features, number_features

DAY = 86400
EPOCH = datetime.date(1970, 1, 1)


def list_of(value):
    return value if isinstance(value, list) else [value] if value else []


class Positions:
    """The good records of a table by series and time, with those that data.fill_gaps puts between."""

    def __init__(self, config, schema, whole, texts_of, column_of):
        self.config, self.whole = config, whole
        self.window, self.horizon = config["data.window"], config["data.horizon"]
        self.fill = config.get("data.fill_gaps", "none")
        names = list(zip(*(texts_of(name) for name in list_of(config.get("data.series"))))) or [()] * len(whole.rows)
        texts, column = texts_of(config["data.time"]), column_of(config["data.time"]) or {}
        keys = order_of_times(texts, column)
        self.dates = "date" in column or not (plain_number(texts[0]) is not None or "notation" in column
                                              and notated_number(texts[0], column["notation"]) is not None)
        numbers = {}
        for name in names:
            numbers.setdefault(name, len(numbers))
        self.series = list(numbers)
        order = sorted(range(len(names)), key=lambda i: (numbers[names[i]], keys[i]))
        # (record, time, whether it is put between, number of the series)
        self.places = [(i, keys[i], False, numbers[names[i]]) for i in order]
        self.form = form_of(texts) if self.dates else None
        self.find_step()
        self.find_gaps()
        ends = [p for p in range(len(self.places) + 1) if p in (0, len(self.places))
                or self.places[p - 1][3] != self.places[p][3]]
        self.ranges = list(zip(ends, ends[1:]))
        self.hold(schema)

    def pairs(self):
        return [(a, b) for a, b in zip(self.places, self.places[1:]) if a[3] == b[3]]

    def between(self, a, b):
        return round((b - a) * DAY) / DAY if self.dates else b - a

    def find_step(self):
        """The most frequent step, of equally frequent ones the shortest; of months where it is as long as some."""
        lengths = Counter(self.between(a[1], b[1]) for a, b in self.pairs())
        usual = lambda counts: min(counts, key=lambda each: (-counts[each], each)) if counts else 0
        self.step, self.months, self.ends = usual(lengths), 0, False
        if not self.dates or self.step < 28 or self.step != int(self.step) or len(lengths) < 2:
            return
        days = [(date_of(a[1]), date_of(b[1])) for a, b in self.pairs()]
        if all(a.day == b.day or min(a.day, b.day) >= 28 for a, b in days):
            self.months = usual(Counter(month_of(b) - month_of(a) for a, b in days))
            self.ends = all(date_of(place[1] + 1).day == 1 for place in self.places)

    def after(self, time, steps):
        if not self.months:
            return time + steps * self.step
        month, day = month_of(date_of(time)) + steps * self.months, 31 if self.ends else date_of(time).day
        day = min(day, calendar.monthrange(month // 12, month % 12 + 1)[1])
        return (datetime.date(month // 12, month % 12 + 1, day) - EPOCH).days + time % 1

    def steps_between(self, a, b):
        """None: no whole number."""
        if self.months:
            months = month_of(date_of(b)) - month_of(date_of(a))
            return months // self.months if months % self.months == 0 else None
        steps = (b - a) / self.step
        return round(steps) if round(steps) >= 1 and abs(steps - round(steps)) <= 1e-6 * round(steps) else None

    def find_gaps(self):
        """Steps longer than the usual one, and those that are no multiple of it, with the times at their ends."""
        self.gaps, self.irregular, self.missing, places = [], [], 0, self.places[:1]
        for a, b in zip(self.places, self.places[1:]):
            steps = self.steps_between(a[1], b[1]) if a[3] == b[3] else 1
            if steps != 1:
                (self.irregular if steps is None else self.gaps).append(self.ends_text(a, b))
                self.missing += (steps or 1) - 1
                if self.fill != "none":
                    places += [(a[0], self.after(a[1], k), True, a[3]) for k in range(1, steps or 1)]
            places.append(b)
        self.places = places

    def ends_text(self, a, b):
        name = ", ".join(self.series[a[3]])
        return f"{self.text(a[1])} to {self.text(b[1])}" + (f" of '{name}'" if name else "")

    def text(self, time):
        if self.form:
            return (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=round(time * DAY))).strftime(self.form)
        return written_date(time) if self.dates else repr(float(time)).removesuffix(".0")

    def hold(self, schema):
        """Labels and features of all positions, as the model sees them."""
        records = [place[0] for place in self.places]
        columns = [c for c in schema["columns"] if c["use"] == "label"]
        self.scales = [Scale(c) for c in columns]
        self.labels = self.whole.targets[records].copy()
        filled = np.array([place[2] for place in self.places])
        self.made_up = filled & (self.fill == "last")
        if self.fill != "none":
            self.labels[filled] = np.nan
            self.fill_labels()
        self.known = ~np.isnan(self.labels).any(axis=1)
        self.measured = self.known & ~self.made_up
        features, owners = self.whole.features[records], owners_of(schema)
        series, future = list_of(self.config.get("data.series")), list_of(self.config.get("data.future"))
        self.moving = [(features[:, i], owner in future) for i, owner in enumerate(owners) if owner not in series]
        self.still = features[:, [i for i, owner in enumerate(owners) if owner in series]]
        # Of each number in a window.
        self.owners = [c["name"] for c in columns for _ in range(self.window)]
        self.owners += [owner for owner in owners if owner not in series
                        for _ in range(self.window + self.horizon * (owner in future))]
        self.owners += [owner for owner in owners if owner in series]

    def fill_labels(self):
        """Between the first and the last known label: that before, or 0."""
        for k, scale in enumerate(self.scales):
            for begin, end in self.ranges:
                known = [p for p in range(begin, end) if not np.isnan(self.labels[p, k])]
                for p in range(begin, max(known, default=begin - 1) + 1):
                    if self.fill == "zero" and np.isnan(self.labels[p, k]):
                        self.labels[p, k] = np.float32(scale.apply(0.0))
                    elif np.isnan(self.labels[p, k]) and p > begin:
                        self.labels[p, k] = self.labels[p - 1, k]
                        self.made_up[p] = True

    def features(self, origin):
        past, ahead = slice(origin - self.window, origin), slice(origin - self.window, origin + self.horizon)
        moving = (values[ahead if known else past] for values, known in self.moving)
        return np.concatenate([*self.labels[past].T, *moving, self.still[origin - 1]])

    def time_text(self, origin, step):
        """Of a position ahead, which may lie beyond the end."""
        end = next(end for begin, end in self.ranges if begin < origin <= end)
        place = origin + step
        return self.text(self.places[place][1] if place < end else self.after(self.places[end - 1][1], place - end + 1))

    def names(self, origin):
        return self.series[self.places[origin - 1][3]]

    def last_origins(self):
        """Of each series the first position behind its known labels."""
        return [max((p + 1 for p in range(begin, end) if self.known[p]), default=begin) for begin, end in self.ranges]


def form_of(texts):
    """How datetime writes the times of a column; None: it is none of these ways."""
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%Y-%m"):
        try:
            if all(datetime.datetime.strptime(text, form).strftime(form) == text for text in texts[-400:]):
                return form
        except ValueError:
            pass
    return None


def date_of(days):
    return EPOCH + datetime.timedelta(days=int(np.floor(days)))


def month_of(date):
    return date.year * 12 + date.month - 1


def owners_of(schema):
    """The column of each feature of a record: numbers come first."""
    columns = [c for c in schema["columns"] if c["use"] == "feature"]
    owners = []
    for c in sorted(columns, key=lambda c: c["kind"] != "numeric"):
        owners += [c["name"]] * len(number_features(c, None) if c["kind"] == "numeric" else category_features(c, None))
    return owners


class WindowSet:
    """The windows whose whole horizon lies in a set. `inside`: of each record, whether it is in the set."""

    def __init__(self, positions, inside):
        self.positions, self.origins, self.left_out = positions, [], 0
        within = np.array([inside[place[0]] for place in positions.places])
        window, horizon, stride = positions.window, positions.horizon, positions.config.get("data.stride", 1)
        for begin, end in positions.ranges:
            origins = [o for o in range(begin + window, end - horizon + 1) if within[o : o + horizon].all()]
            for origin in origins:
                if (origin - origins[0]) % stride == 0:
                    whole = positions.known[origin - window : origin].all()
                    whole = whole and positions.measured[origin : origin + horizon].all()
                    self.left_out += not whole
                    self.origins += [origin] if whole else []

    def targets(self):
        horizon = self.positions.horizon
        return np.array([self.positions.labels[o : o + horizon].T.ravel() for o in self.origins], float)

    def features(self):
        return np.array([self.positions.features(o) for o in self.origins], np.float32)

    def ends(self):
        """The first and the last time of the horizons."""
        places, horizon = self.positions.places, self.positions.horizon
        ends = min(places[o][1] for o in self.origins), max(places[o + horizon - 1][1] for o in self.origins)
        return tuple(map(self.positions.text, ends))

    def naive(self):
        """Name, mean absolute error by step in units of the labels, and mean squared error of the scaled ones."""
        p, found = self.positions, []
        season = p.config.get("data.season", 0)
        named = [(f"the value {season} positions before", season)] if season else []
        for name, season in [("the last value", 1), *named]:
            ahead = np.array(self.origins)[:, None] + np.arange(p.horizon)
            back = np.array(self.origins)[:, None] - season + np.arange(p.horizon) % season
            absolute = [np.abs(scale.undo(p.labels[back, k]) - scale.undo(p.labels[ahead, k]))
                        for k, scale in enumerate(p.scales)]
            found.append((name, np.mean(absolute, axis=(0, 1)),
                          float(((p.labels[back] - p.labels[ahead]) ** 2).mean())))
        return found
