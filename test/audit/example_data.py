"""The data of examples.py: small sets with something of everything, in all formats and rare notations."""

import datetime
import pathlib
import random

COLUMNS = "id,when,age,hours,city,zip,weight,zero,income,price,t1,t2,kind,count"


def people(rows, seed, bad=()):
    dice = random.Random(seed)
    lines = [COLUMNS]
    for i in range(rows):
        age, hours = dice.randrange(20, 66), dice.randrange(0, 50)
        city, code = dice.choice(["Oslo", "Bergen", "Voss"]), f"{dice.randrange(60):04d}"
        income = "high" if age / 2 + hours + dice.gauss(0, 8) > 45 else "low"
        price = 1000 * (age + hours) + dice.gauss(0, 3000) + 20000 * (city == "Oslo")
        t1, t2 = int(age + dice.gauss(0, 9) > 40), int(hours + dice.gauss(0, 9) > 25)
        kind = "abc"[min(2, int((age - 20) / 16 + dice.random()))]
        when = f"20{10 + i % 10:02d}-{1 + i % 12:02d}-{1 + i % 28:02d}"
        shown = "oops" if i in bad else "NA" if dice.random() < 0.05 else age
        weights, targets = f"{1 + i % 3},{i % 4}", f"{price:.2f},{t1},{t2 if i % 5 > 2 else ''}"
        lines.append(f"p{i},{when},{shown},{hours},{city},{code},{weights},{income},{targets},{kind},{hours // 10}")
    return "\n".join(lines) + "\n"


def sales(days, seed, ahead=7):
    """Of two stores, by day: the one lacks two days and a number; of the last days nothing is known but the
    holidays."""
    dice = random.Random(seed)
    lines = ["day,store,holiday,price,sold"]
    for i in range(days + ahead):
        day, holiday = datetime.date(2023, 1, 1) + datetime.timedelta(days=i), int(i % 30 == 4)
        for k, store in enumerate(("mill", "north")):
            if k == 1 and i in (40, 41):
                continue
            sold = (30 + 20 * k + i / 10) * (1.5 if i % 7 == 6 else 1) * (0.4 if holiday else 1) + dice.gauss(0, 2)
            price, known = 2 + i // 50 / 10 + dice.random() / 10, i < days and (i, k) != (70, 0)
            lines.append(f"{day},{store},{holiday},{price:.3f},{f'{sold:.1f}' if known else ''}")
    return "\n".join(lines) + "\n"


def write_data(directory):
    directory = pathlib.Path(directory)
    (directory / "sales.csv").write_text(sales(170, 6))
    (directory / "people.csv").write_text(people(600, 1))
    (directory / "test.csv").write_text(people(200, 2))
    (directory / "bad.csv").write_text(people(300, 3, bad=(7, 60)))
    dice = random.Random(4)
    with open(directory / "sparse.libsvm", "w") as file:
        for _ in range(300):
            values = {i: round(dice.gauss(0, 1), 3) for i in sorted(dice.sample(range(1, 12), 4))}
            file.write(f"{int(sum(values.values()) > 0)} " + " ".join(f"{i}:{v}" for i, v in values.items()) + "\n")
    with open(directory / "gaps.csv", "w") as file:
        file.write("x,colour,y\n")
        for i in range(200):
            x, colour = dice.gauss(0, 1), "" if i % 4 == 0 else dice.choice(["red", "green", "blue"])
            file.write(f"{x:.6f},{colour},{int(x + dice.gauss(0, 1) > 0)}\n")
    animals = ["sheep", "goats", "h\u00e9rons", "cows"]
    few = lambda: f"{dice.randrange(10)} {dice.choice(animals)}"
    (directory / "animals.txt").write_text("".join(f"{few()} and {few()}.\n" for _ in range(260)))
    write_arrays(directory)
    write_others(directory)
    write_german(directory)
    write_dates(directory)


def write_arrays(directory):
    import numpy as np

    dice = np.random.default_rng(5)
    x = dice.normal(size=(400, 6)).astype(np.float32)
    y = (x[:, 0] + 0.5 * x[:, 1] + 0.3 * dice.normal(size=400) > 0).astype(np.int64)
    np.savez(directory / "arrays.npz", x=x, y=y, w=dice.integers(0, 3, 400).astype(np.float32))


def write_others(directory):
    import h5py
    import numpy as np

    dice = np.random.default_rng(11)
    x = dice.normal(size=(300, 4)).astype(np.float32)
    y = (x[:, 0] - 0.5 * x[:, 1] + 0.4 * dice.normal(size=300) > 0).astype(np.uint8)
    weights = dice.integers(1, 4, 300).astype(np.float32)
    with h5py.File(directory / "data.h5", "w") as file:
        file["x"], file["y"], file["w"] = x, y.astype(np.int32), weights
        file["group/values"] = (2 * x[:, 1] + 1).astype(np.float64)
    pixels = dice.integers(0, 256, (300, 4, 4)).astype(np.uint8)
    pixels[:, 1, 1] = np.where(y > 0, 200, 40) + dice.integers(0, 50, 300)
    for name, array in (("x", pixels), ("y", y)):
        sizes = np.array(array.shape, ">u4").tobytes()
        (directory / f"{name}-idx-ubyte").write_bytes(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())
    records = (bytes([label, 0, 0]) + row.astype("<f2").tobytes() for label, row in zip(y, x))
    (directory / "records.raw").write_bytes(b"".join(records))
    for kind, labels in (("cifar10", 1), ("cifar100", 2)):
        for part, rows in (("train", 60), ("test", 30)):
            images = dice.integers(0, 256, (rows, labels + 3072)).astype(np.uint8)
            images[:, :labels] %= 10
            (directory / f"{kind}-{part}.bin").write_bytes(images.tobytes())
    # Sequences of different lengths, with a class for each position, and padding that nothing may see.
    series, lengths = dice.normal(size=(120, 6, 3)).astype(np.float32), dice.integers(1, 7, 120).astype(np.int32)
    classes = (series[:, :, 0] + np.roll(series[:, :, 0], 1, axis=1) > 0).astype(np.int64) + (series[:, :, 1] > 1)
    padding = np.arange(6)[None, :] >= lengths[:, None]
    series[padding], classes[padding] = np.nan, 99
    weights = dice.integers(0, 3, 120).astype(np.float32)
    np.savez(directory / "series.npz", x=series, y=classes, lengths=lengths, w=weights, first=classes[:, 0])
    for part in (0, 1):
        np.save(directory / f"part{part}-x.npy", x[150 * part : 150 * part + 150])
        np.save(directory / f"part{part}-y.npy", y[150 * part : 150 * part + 150])
    for part in (1, 2):
        (directory / f"people-{part}.csv").write_text(people(200, 20 + part))


def write_dates(directory):
    """A column for each form of dates, some with texts for a missing one; found, but for those of dates.toml."""
    dice = random.Random(14)
    since = datetime.datetime(1970, 1, 1)
    forms = {"mail": "%a, %d %b %Y %H:%M:%S -0500", "ampm": "%m/%d/%Y %I:%M %p", "word": "%A, %B %d, %Y",
             "log": "%Y-%m-%d %H:%M:%S,250", "week": "%G-W%V-%u", "ordinal": "%Y-%j", "month": "%b-%y",
             "clock": "%I:%M %p", "born": "%d.%m.", "number": "%Y%m%d", "ms": "", "excel": ""}  # fmt: skip
    lines = [",".join([*forms, "late"])]
    for i in range(260):
        past = datetime.timedelta(days=17899 + dice.randrange(900), minutes=630 + dice.randrange(1440))
        time = since + past
        cells = {name: time.strftime(form) for name, form in forms.items()}
        cells["born"] += f"{30 + time.toordinal() % 60}"
        cells |= {"ms": past.days * 86400000 + past.seconds * 1000, "excel": past.days + 25569}
        cells |= {"ampm": "NaT"} if i % 9 == 0 else {}
        cells |= {"log": "unknown"} if i % 13 == 0 else {}
        lines.append(",".join([*(f'"{cell}"' for cell in cells.values()), "yes" if time.month > 6 else "no"]))
    (directory / "dates.csv").write_text("\n".join(lines) + "\n")
    (directory / "dates.toml").write_text("""[data]
columns = ["born: date(dmy, day, year, before = 2010)", "number: date(ymd)", "ms: date(epoch_ms)", "excel: date(excel)"]
""")


def write_german(directory):
    """Semicolons, decimal commas, points between thousands, dates with the day first, windows-1252, a title, no
    header."""
    dice = random.Random(12)
    lines = ["Kundenliste", "Stand: heute"]
    for i in range(240):
        amount, size = dice.gauss(3000, 1500), dice.gauss(0, 1)
        shown = f"{amount:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") + " €"
        day = f"{1 + i % 28:02d}.{1 + i % 12:02d}.20{10 + i % 9}"
        label = "groß" if amount / 1500 + size + dice.gauss(0, 0.5) > 2 else "klein"
        city, time = dice.choice(["Köln", "Bonn", ""]), f"{dice.randrange(24):02d}:{dice.randrange(60):02d}"
        lines.append(";".join([day, shown, f"{size:.3f}".replace(".", ","), city, time, label]))
    (directory / "german.toml").write_text("""[data]
columns = ["c1: date(dmy, day, weekday, month, year)", "c2: number(decimal=comma, thousands=point, suffix=\\"€\\")",
           "c3: number(decimal=comma)", "c5: date(time, hour)"]
""")
    (directory / "german.csv").write_bytes(("\r\n".join(lines) + "\r\n").encode("windows-1252"))
