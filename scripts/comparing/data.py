"""Makes the data files of the cases: small, the same in every run, and with everything that real files have."""

import csv
import datetime
import gzip
import io
import math
import pathlib
import random
import struct
import tomllib
import zipfile

CITIES = ["Oslo", "Bergen", "Voss", "Tromsø", "\"Mo, i Rana\"", ""]
PEOPLE = "id,joined,seen,stamp,age,hours,city,zip,salary,rate,area,customer,part,persons,income,kind,price,visits,t1,t2"


def person(rng, i):
    """The fields of one record, of which the labels depend on age, hours and city."""
    age, hours, city = rng.randint(18, 80), round(rng.gauss(38, 9), 1), rng.randrange(len(CITIES))
    score = age / 20 + hours / 10 + city / 3 + rng.gauss(0, 0.8)
    return [
        f"p{i}",
        f"20{10 + i % 12:02d}-{1 + i % 12:02d}-{1 + i * 7 % 28:02d}",
        f"{1 + i * 11 % 28:02d}.{1 + i % 12:02d}.{68 + i % 32:02d} {i % 24:02d}:{i * 13 % 60:02d}",
        str(1_500_000_000 + i * 86_400 * 3 + i * 977 % 86_400),
        rng.choice(["NA", "?", ""]) if i % 17 == 3 else str(age),
        f"{hours:.1f}",
        CITIES[city],
        f"{i * 7 % 90:05d}",
        f"\"${hours * 1000:,.2f}\"",
        f"{age % 40} %",
        f"\"{age / 4:.2f}\"".replace(".", ","),
        f"c{i % 37}",
        str(1 + i * 5 % 3),
        str(i % 4),
        "high" if score > 8 else "low",
        "abc"[min(2, max(0, int(score - 6)))],
        f"{math.exp(score / 3):.4f}",
        str(max(0, int(score + rng.gauss(0, 1)) - 5)),
        "" if i % 23 == 5 else str(int(score > 7)),
        "" if i % 29 == 7 else str(int(hours > 38)),
    ]


def people(seed, count):
    rng = random.Random(seed)
    return [",".join(person(rng, i)) for i in range(count)]


def spoil(lines):
    """Some records that cannot be used: a word among numbers, too few and too many fields, a quote that does not end."""
    lines = list(lines)
    fields = lines[10].split(",")
    lines[10] = ",".join([*fields[:5], "many", *fields[6:]])
    lines[57] = "p57,2012-01-01"
    lines[123] += ",,surplus"
    lines[201] = "\"" + lines[201]
    lines.insert(250, PEOPLE)
    return lines


def odd_records(seed, count):
    """What inspect finds: numbers for missing ones, far dates, spellings, a leak, identifiers, a constant, long numbers."""
    rng = random.Random(seed)
    yield "row,key,age,code,when,colour,same,leak,long,half,below,y"
    for i in range(count):
        y, age = rng.randrange(2), rng.randint(20, 70)
        yield ",".join([
            str(i + 1), f"k{seed}{i * 7919 % 10007:05d}", "-999" if i % 9 == 4 else str(age), str(i % 3 * 10),
            "1900-01-01" if i % 20 == 3 else f"20{10 + i % 9}-0{1 + i % 9}-{10 + i % 18}",
            ["red", "Red", "RED ", "blue", "green"][rng.randrange(5)], "x", f"{y * 2 + rng.random() / 100:.4f}",
            f"{123456789012 + i * 1000003}", ["0.5", "1/2", "", "half"][i % 4] if i % 5 else "0.25",
            f"{-rng.random() * 5 - 1:.3f}", "ny"[y],
        ])


def npy(type_name, shape, numbers, code):
    header = f"{{'descr': '{type_name}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}{code}", *numbers)


def idx(shape, content):
    return struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + bytes(content)


def images(seed, count, side, classes):
    """Bright squares whose place is the class, in noise: (pixels, labels)."""
    rng = random.Random(seed)
    pixels, labels = bytearray(), bytearray()
    for _ in range(count):
        label = rng.randrange(classes)
        row, column = label // 4 * side // 4, label % 4 * side // 4
        for y in range(side):
            for x in range(side):
                inside = row <= y < row + side // 4 and column <= x < column + side // 4
                pixels.append(rng.randrange(150, 256) if inside else rng.randrange(90))
        labels.append(label)
    return pixels, labels


def sparse(seed, count):
    rng = random.Random(seed)
    for i in range(count):
        label = i % 3
        indices = sorted(rng.sample(range(1, 12), 4) + [12 + label])
        yield f"{label} " + " ".join(f"{index}:{rng.random() + (index > 11):.3f}" for index in indices)


def write_tables(folder):
    lines = people(1, 420)
    (folder / "people.csv").write_text("\n".join([PEOPLE, *lines]) + "\n")
    (folder / "people_test.csv").write_text("\n".join([PEOPLE, *people(2, 120)]) + "\n")
    (folder / "people_bad.csv").write_text("\n".join([PEOPLE, *spoil(lines)]) + "\n")
    (folder / "people_windows.csv").write_bytes("\r\n".join([PEOPLE, *lines, ""]).encode("cp1252"))
    chosen = ("hours", "age", "kind", "city")
    unlabelled = csv.DictReader([PEOPLE, *people(3, 40)])
    with (folder / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows([chosen, *([record[name] for name in chosen] for record in unlabelled)])
    (folder / "parts").mkdir()
    for i in range(3):
        (folder / "parts" / f"part-{i}.csv").write_text("\n".join([PEOPLE, *lines[i * 140 : (i + 1) * 140]]) + "\n")
    rng = random.Random(4)
    rows = [(rng.random() * 10, rng.gauss(0, 3), rng.choice("xyz")) for _ in range(150)]
    (folder / "german.csv").write_text(
        "Flächen und Preise\nStand: heute\nfläche;abstand;art;preis\n"
        + "".join(f"{a:.2f};{b:.3f};{c};{1000 + 300 * a + 50 * b:,.0f} €\n".replace(".", "~").replace(",", ".").replace("~", ",")
                  for a, b, c in rows)
    )
    bare = "".join(f"{a:.3f}\t{b:.3f}\t{c}\t{int(a + b > 5)}\n" for a, b, c in rows).encode()
    (folder / "bare.tsv.gz").write_bytes(gzip.compress(bare, mtime=0))
    for name, seed, count in (("odd", 20, 200), ("odd_test", 21, 60)):
        (folder / f"{name}.csv").write_text("\n".join(odd_records(seed, count)) + "\n")
    (folder / "clicks.libsvm").write_text("\n".join(sparse(5, 200)) + "\n")
    (folder / "clicks_test.libsvm").write_text("\n".join(sparse(6, 60)) + "\n")
    bad = list(sparse(7, 200))
    bad[20], bad[90], bad[150] = "1 3:x", "2 5:1 4:1", "what"
    (folder / "clicks_bad.libsvm").write_text("\n".join(bad) + "\n")


def write_texts(folder):
    """A text of sentences, a part of it with a word that the first one lacks, and reviews with stars and a shop."""
    rng = random.Random(13)
    words = ["Ann", "the old fox", "Bär", "nobody"], ["sees", "buys", "paints"], ["a boat", "stars", "two kegs"]
    sentence = lambda: " ".join(rng.choice(each) for each in words) + rng.choice(".!;")
    (folder / "story.txt").write_text("\n".join(sentence() for _ in range(220)) + "\n")
    (folder / "other.txt").write_text("\n".join(sentence() for _ in range(40)) + "\nNobody sells zebras.\n")
    lines = ["review,shop,stars"]
    for i in range(180):
        stars = rng.randint(1, 5)
        words = rng.choices(["good", "fine", "great"] if stars > 3 else ["bad", "slow", "rude"], k=rng.randint(0, 4))
        lines.append(f"\"{', '.join([*words, 'Tea', 'and cakes'][: rng.randint(1, 6)])}\",{'NSE'[i % 3]},{stars}")
    (folder / "reviews.csv").write_text("\n".join(lines) + "\n")


def write_series(folder):
    """Days of three shops: one begins late, has empty and negative numbers, one lacks days; and hours of one sensor."""
    rng = random.Random(14)
    first, lines = datetime.date(2021, 12, 20), ["day,shop,open,sold,guests"]
    for i in range(150):
        day = first + datetime.timedelta(i)
        for shop, start, base in (("north", 0, 50), ("east", 25, -4), ("west", 0, 9)):
            if i >= start and not (shop == "west" and i % 31 in (4, 5)):
                sold = base + 10 * math.sin(i / 7 * 2 * math.pi) + i / 10 + rng.gauss(0, 1)
                label = "" if shop == "east" and i % 40 == 30 else f"{sold:.2f}"
                lines.append(f"{day},{shop},{int(day.weekday() < 6)},{label},{100 + i % 9}")
    (folder / "shops.csv").write_text("\n".join(lines) + "\n")
    hours = ["time;load"]
    for i in range(400):
        load = f"{20 + i % 24 + rng.random():.3f}".replace(".", ",")
        hours.append(f"{i // 24 % 28 + 1:02d}.03.2023 {i % 24:02d}:30;{load}")
    (folder / "sensor.csv").write_text("\n".join(hours) + "\n")
    steps = [[[math.sin(i + s * (1 + i % 3)), rng.gauss(0, 1)] for s in range(9)] for i in range(160)]
    flat = [value for record in steps for step in record for value in step]
    (folder / "steps.npy").write_bytes(npy("<f4", (160, 9, 2), flat, "f"))
    (folder / "how_long.npy").write_bytes(npy("<i4", (160,), [2 + i * 5 % 8 for i in range(160)], "i"))
    (folder / "kinds.npy").write_bytes(npy("<i4", (160,), [i % 3 for i in range(160)], "i"))


def write_arrays(folder):
    rng = random.Random(8)
    x = [rng.gauss(0, 1) for _ in range(240 * 6)]
    rows = [x[i : i + 6] for i in range(0, len(x), 6)]
    values = [2 * row[0] - row[1] + 0.5 * row[2] * row[3] + rng.gauss(0, 0.1) for row in rows]
    classes = [int(value > 0) + int(value > 2) for value in values]
    pair = sum(([value, math.nan if i % 19 == 4 else row[4] - row[5]] for i, (value, row) in enumerate(zip(values, rows))), [])
    arrays = {
        "x": npy("<f4", (240, 6), x, "f"),
        "classes": npy("<i8", (240,), classes, "q"),
        "values": npy("<f8", (240,), values, "d"),
        "positive": npy("<f4", (240,), [math.exp(value / 3) for value in values], "f"),
        "counts": npy("<i4", (240,), [max(0, int(value + 2)) for value in values], "i"),
        "pair": npy("<f4", (240, 2), pair, "f"),
        "soft": npy("<f4", (240, 3), sum(([0.8 if c == k else 0.1 for k in range(3)] for c in classes), []), "f"),
        "yes": npy("|b1", (240,), [value > 0 for value in values], "?"),
        "weights": npy("<f4", (240,), [i % 5 / 2 for i in range(240)], "f"),
    }
    for name, content in arrays.items():
        (folder / f"{name}.npy").write_bytes(content)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
    (folder / "arrays.npz").write_bytes(packed.getvalue())
    (folder / "short.npy").write_bytes(arrays["x"][:3000])


def write_images(folder):
    for name, seed, count in (("train", 9, 320), ("t10k", 10, 96)):
        pixels, labels = images(seed, count, 28, 10)
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx((count, 28, 28), pixels), mtime=0))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx((count,), labels), mtime=0))
    pixels, labels = images(11, 120, 8, 3)
    (folder / "small-images.idx").write_bytes(idx((120, 8, 8), pixels))
    (folder / "small-labels.idx").write_bytes(idx((120,), labels))
    (folder / "short-images.idx").write_bytes(idx((120, 8, 8), pixels)[:5000])
    (folder / "small.bin").write_bytes(b"".join(bytes([labels[i]]) + bytes(pixels[i * 64 : i * 64 + 64]) for i in range(120)))
    pixels, labels = images(12, 40, 32, 10)
    record = lambda i: bytes([labels[i]]) + bytes(pixels[i * 1024 : i * 1024 + 1024]) * 3
    (folder / "data_batch_1.bin").write_bytes(b"".join(record(i) for i in range(40)))


def has_stand_in(data):
    """Whether there are small files for a [data] section: a table that names its columns, or images of write_images()."""
    return "numeric" in data or data["train"].endswith("-ubyte.gz")


def copy_beginnings(folder, config):
    """The beginnings of what fetch-data made for a config that has no stand-in."""
    data = tomllib.loads(config.read_text())["data"]
    for key in () if has_stand_in(data) else ("train", "test"):
        path = config.parents[1] / data.get(key, "")
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes()[:1_000_000])


def write_stand_in(folder, config, seed):
    """Small tables with the names and the columns that the [data] section of a config has."""
    data = tomllib.loads(config.read_text())["data"]
    if "numeric" not in data:
        return
    rng, label = random.Random(seed), data["label"]
    columns = [*data["numeric"], *(name for name in data["categorical"] if name not in data["numeric"])]
    for key, count in (("train", 240), ("test", 80)):
        lines = [",".join(columns)]
        for _ in range(count):
            x = rng.random()
            values = {name: f"{x * 10 + rng.random() * 3:.3f}" for name in data["numeric"]}
            values |= {name: rng.choice(["red", "green", "blue"]) for name in data["categorical"]}
            if label in data["categorical"]:
                values[label] = "yes" if x > 0.5 else "no"
            elif "binary" in config.read_text():
                values[label] = str(int(x > 0.5))
            lines.append(",".join(values[name] for name in columns))
        (folder / pathlib.PurePath(data[key]).name).write_text("\n".join(lines) + "\n")


def write_all(folder):
    write_tables(folder)
    write_texts(folder)
    write_series(folder)
    write_arrays(folder)
    write_images(folder)
