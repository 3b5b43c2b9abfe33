"""How reference numbers are written: a case a line (short ones share lines), without spaces and needless digits."""
import json
import pathlib
import re
import struct


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def number(value, rounded):
    """The shortest text: of a float (or of nine digits of one) the one that gives the same float, if `rounded` seven
    digits of what has nine, and else (or if it is None) all digits."""
    if value == int(value) and str(value) != "-0.0":
        return str(int(value))
    if rounded is not None and value in (single(value), float(f"{single(value):.9g}")):
        shorter = (float(f"{value:.{count}g}") for count in range(1, 10))
        value = next(each for each in shorter if single(each) == single(value))
    elif rounded and value == float(f"{value:.9g}"):
        value = float(f"{value:.7g}")
    return re.sub(r"e([-+])0+", r"e\1", repr(value))


def text(value, rounded=False):
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{text(each, rounded)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(text(each, rounded) for each in value) + "]"
    return number(value, rounded) if isinstance(value, float) and abs(value) < 3e38 else json.dumps(value)


def write(name, sections, rounded=False, **facts):
    """`rounded`: what was calculated for single precision needs no more than seven digits; rates are held to twelve.
    None: the tests take the numbers in double precision."""
    lines = [f'"{key}":{json.dumps(value)}' for key, value in facts.items()]
    for section, cases in sections.items():
        packed = []
        for case in cases:
            case = text(case, rounded and "lrs" not in case)
            if packed and len(packed[-1]) + len(case) < 1000:
                packed[-1] += "," + case
            else:
                packed.append(case)
        lines.append(f'"{section}":[\n' + ",\n".join(packed) + "\n]")
    pathlib.Path(__file__).with_name(name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
