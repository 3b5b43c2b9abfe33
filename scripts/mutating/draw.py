"""Which errors a seed draws: as many of each folder of src, a file by its statements, one of its operators, a place.

What a seed draws follows from the seed and the code alone. The compiler reads each error before it counts; one that
does not compile makes way for the next of its file.
"""

import collections
import dataclasses
import hashlib
import multiprocessing
import pathlib
import pickle
import random
import re
import subprocess

from mutating import page
from mutating.places import KERNELS, Place, errors_of, parse

MOST_IN_KERNELS = 10
SWITCH = pathlib.Path(__file__).resolve().parent  # the folder of lockstep_error.h
# What most files read, compiled once for libclang; xxhash.h must come after its macro, and others are too few.
HEADERS = """algorithm array cmath filesystem functional memory optional span string vector fmt/format.h fmt/ranges.h
map set numeric charconv chrono unordered_map thread mutex sstream fstream condition_variable deque atomic Eigen/Core
nlohmann/json.hpp spdlog/spdlog.h CLI/CLI.hpp mpi.h toml++/toml.h""".split()
OPERATORS = ("draw", "operators", "page", "places")  # on which answers depend
NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


@dataclasses.dataclass
class Error:
    number: int
    place: Place
    seeds: list


@dataclasses.dataclass
class Request:
    """What is wanted of one file."""

    file: str
    path: str
    flags: list
    wanted: dict  # seed: for each error, whether it may lie in the innermost loop of a kernel
    banned: list  # places that the build refused


@dataclasses.dataclass
class Answer:
    file: str
    drawn: dict  # seed: places
    constants: int
    refused: int  # candidates that do not compile


def prefix_of(path):
    """What stands before the text of a changed file; lines keep their numbers."""
    return f'#include "lockstep_error.h"\n#line 1 "{path}"\n'


def read(path):
    """Bytes as characters, so that libclang's offsets are those of the text."""
    return pathlib.Path(path).read_bytes().decode("latin-1")


def with_errors(text, errors):
    """The text with switches: `errors` are (place, number). What encloses another comes first at its beginning."""
    edits = []
    for place, number in errors:
        before, after = place.insertions(number)
        edits.append(((place.begin, 1, -place.end, number), before))
        edits.append(((place.end, 0, -place.begin, -number), after))
    pieces, at = [], 0
    for (offset, *_), piece in sorted(edits):
        pieces += [text[at:offset], piece]
        at = offset
    return "".join(pieces) + text[at:]


def pick(places, seed, file):
    """The places in the order in which a seed draws them: each time an operator first, then one of its places."""
    dice = random.Random(f"{seed} {file}")
    by_operator = collections.defaultdict(list)
    for place in places:
        by_operator[place.operator].append(place)
    while by_operator:
        operator = dice.choice(sorted(by_operator))
        yield by_operator[operator].pop(dice.randrange(len(by_operator[operator])))
        if not by_operator[operator]:
            del by_operator[operator]


def fill(taken, order, slots):
    """Takes places, one a line, until every slot has one that it allows."""
    lines = {place.line for place in taken}
    for place in order:
        if len(taken) >= len(slots):
            break
        in_kernels = sum(p.kernel for p in taken)
        if place.line not in lines and (not place.kernel or in_kernels < sum(slots)):
            taken.append(place)
            lines.add(place.line)


def remembered(asked):
    """What a file answers; it is kept in `folder` as long as the file, its flags and the operators are the same."""
    request, folder = asked
    made_of = [str(request), read(request.path), *(read(SWITCH / f"{name}.py") for name in OPERATORS)]
    kept = folder / hashlib.sha256("\0".join(made_of).encode()).hexdigest()
    if kept.exists():
        return pickle.loads(kept.read_bytes())
    got = answer(request)
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps(got))
    return got


def answer(request):
    text = read(request.path)
    if request.file.endswith(".js"):
        return answer_page(request, text)
    prefix = prefix_of(request.path)
    file, unit = parse(request.file, request.path, text, prefix, request.flags)
    drawn, refused, constants = {}, 0, file.constants
    for seed, slots in request.wanted.items():
        order, taken = pick([p for p in file.places if p not in request.banned], seed, request.file), []
        while True:
            fill(taken, order, slots)
            wrong = errors_of(unit, request.path, prefix + with_errors(text, [(p, i) for i, p in enumerate(taken)]))
            if not taken or not wrong:
                break
            lines = {line - prefix.count("\n") for line, _ in wrong}
            bad = [p for p in taken if lines & set(range(p.line, p.line + p.original.count("\n") + 1))] or taken[-1:]
            taken = [p for p in taken if p not in bad]
            constants += sum("constant expression" in said or "constexpr" in said for _, said in wrong[:1])
            refused += len(bad)
        drawn[seed] = taken
    return Answer(request.file, drawn, constants, refused)


def places_of_page(file, text):
    return [Place(file, text.count("\n", 0, begin) + 1, operator, begin, end, text[begin:end], changed, False)
            for operator, begin, end, changed in page.changes(text)]


def answer_page(request, text):
    places = places_of_page(request.file, text)
    drawn, refused = {}, 0
    for seed, slots in request.wanted.items():
        order, taken = pick([p for p in places if p not in request.banned], seed, request.file), []
        while True:
            fill(taken, order, slots)
            bad = [p for p in taken if not page_is_valid(text[:p.begin] + p.changed + text[p.end:])]
            if not bad:
                break
            taken = [p for p in taken if p not in bad]
            refused += len(bad)
        drawn[seed] = taken
    return Answer(request.file, drawn, 0, refused)


def page_is_valid(text):
    script = subprocess.run(["node", "--check", "-"], input=text.encode("latin-1"), capture_output=True, check=False)
    return script.returncode == 0


def statements(root):
    """Files of src that can be drawn, by top-level folder, with the number of their statements."""
    listed = subprocess.run(["git", "ls-files", "src"], cwd=root, capture_output=True, text=True, check=True)
    folders = collections.defaultdict(dict)
    for name in sorted(listed.stdout.split()):
        if name.endswith((".cpp", ".h", ".js")) and name.count("/") > 1:
            text = NOT_CODE.sub("", read(root / name))
            inner = "    |  .*\\{.*\\}" if name.endswith(".h") else " "  # in a header a declaration is no statement
            count = sum(line.count(";") for line in text.split("\n") if re.match(inner, line))
            if count:
                folders[name.split("/")[1]][name] = count
    return folders


def works(command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Draw:
    def __init__(self, build, jobs):
        self.build, self.jobs = build, jobs
        self.folders = statements(build.root)
        self.constants, self.refused = collections.Counter(), 0
        self.flags, self.precompiled = {}, {}
        self.directory = build.root / "build" / "mutate" / "headers"

    def errors(self, count, seeds, banned=()):
        """`count` errors for each seed; what two seeds draw alike is one error."""
        drawn = {seed: [] for seed in seeds}
        dice = {seed: random.Random(f"files {seed}") for seed in seeds}
        slots = {seed: collections.Counter() for seed in seeds}
        missing = {seed: self.quotas(count, dice[seed]) for seed in seeds}
        useless = set()  # files without a further place
        while any(sum(m.values()) for m in missing.values()):
            for seed in seeds:
                for folder, number in missing[seed].items():
                    files = {f: n for f, n in self.folders[folder].items() if (f, seed) not in useless}
                    slots[seed].update(dice[seed].choices(list(files), list(files.values()), k=number))
            drawn = self.ask(slots, banned)
            for seed in seeds:
                missing[seed] = collections.Counter()
                for file, number in slots[seed].items():
                    lacking = number - len(drawn[seed].get(file, []))
                    if lacking:
                        missing[seed][file.split("/")[1]] += lacking
                        slots[seed][file] -= lacking
                        useless.add((file, seed))
        return self.numbered(drawn)

    def all_places(self, file):
        path = self.build.root / file
        text = read(path)
        if file.endswith(".js"):
            return places_of_page(file, text)
        return parse(file, path, text, prefix_of(path), self.flags_of(file))[0].places

    def quotas(self, count, dice):
        folders = sorted(self.folders)
        more = dice.sample(folders, count % len(folders))
        return collections.Counter({f: count // len(folders) + (f in more) for f in folders})

    def ask(self, slots, banned):
        wanted = collections.defaultdict(dict)
        for seed, files in slots.items():
            kernels = MOST_IN_KERNELS
            for file in sorted(files):
                if files[file]:
                    allowed = min(kernels, files[file]) if KERNELS.match(file) else 0
                    kernels -= allowed
                    wanted[file][seed] = [True] * allowed + [False] * (files[file] - allowed)
        requests = []
        for file in sorted(wanted):
            banned_here = [p for p in banned if p.file == file]
            requests.append(Request(file, str(self.build.root / file), self.flags_of(file), wanted[file], banned_here))
        with multiprocessing.Pool(self.jobs) as pool:
            answers = pool.map(remembered, [(r, self.directory.parent / "answers") for r in requests], chunksize=1)
        self.constants = collections.Counter()
        for got in answers:
            self.constants[got.file.split("/")[1]] += got.constants
        self.refused = sum(got.refused for got in answers)
        return {seed: {a.file: a.drawn.get(seed, []) for a in answers} for seed in slots}

    def flags_of(self, file):
        if file not in self.flags:
            flags = [] if file.endswith(".js") else self.build.flags(file) or []
            self.flags[file] = ["-x", "c++", f"-I{SWITCH}", *flags, *self.headers(flags)] if flags else []
        return self.flags[file]

    def headers(self, flags):
        """How a file with these flags gets the headers that most read: precompiled where that works."""
        key = hashlib.sha1(" ".join(flags).encode()).hexdigest()
        header, made = self.directory / "common.h", self.directory / f"{key}.pch"
        if key not in self.precompiled:
            self.directory.mkdir(parents=True, exist_ok=True)
            text = "".join(f"#if __has_include(<{h}>)\n#include <{h}>\n#endif\n" for h in HEADERS)
            if not header.exists() or header.read_text() != text:
                header.write_text(text)
            compiler = ["clang++", *flags]
            # Clang 14 may stumble over what it has made.
            make = [*compiler, "-fpch-instantiate-templates", "-x", "c++-header", str(header), "-o", str(made)]
            use = [*compiler, "-fsyntax-only", "-include-pch", str(made), "-x", "c++", "/dev/null"]
            self.precompiled[key] = works(use) or (works(make) and works(use))
        return ["-include-pch", str(made)] if self.precompiled[key] else ["-include", str(header)]

    def numbered(self, drawn):
        by_place = {}
        for seed, files in drawn.items():
            for file in sorted(files):
                for place in files[file]:
                    by_place.setdefault(place, []).append(seed)
        return [Error(i + 1, place, seeds) for i, (place, seeds) in enumerate(sorted(by_place.items(), key=lambda e: (
            e[0].file, e[0].line, e[0].begin, e[0].operator, e[0].changed)))]
