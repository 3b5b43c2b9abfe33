"""What differs between two runs of one program, and is masked before two outputs are compared.

A file becomes a list of (place, text): lines of a text, numbers of a JSON by their path and as they are spelled, events of
TensorBoard and of a timeline, rows of 16 bytes of all else. The tables say what is masked, in which files, and why.
"""

import csv
import gzip
import io
import json
import pathlib
import re
import struct

MASKED = "~"
PRINTED = r"output/\d+\.\w+|.*log\.txt"
SHOWN = r"output/\d+\.stdout"
ERRORS = r"output/\d+\.stderr"
PAGE = r".*(\.html|page\.json)"
RESULTS = r".*(metrics\.jsonl|(summary|run)\.json|sweep\.json|rows/.*\.json|(eval|compare|importance|generated)\.json)"

# (files, text that is replaced in each line, its replacement or None where the line is left out, reason)
TEXTS = [
    (r".*log\.txt", r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", "TIME ", "when a line was written"),
    (PRINTED, r"[\d,]+ samples/s(, [\d,]+ tokens/s)?", "~ samples/s", "speed"),
    (PRINTED, r"[\d,]+ a second$", "~ a second", "speed"),
    (PRINTED, r"((samples|positions), )\d+\.\d s\)", r"\1~ s)", "time of an evaluation"),
    (PRINTED, r"\bin \d+\.\d s\b", "in ~ s", "time of a run or of a command"),
    (PRINTED, r"in \d+ ms; training stood still for [\d.]+ ms", "in ~ ms", "time of a checkpoint"),
    (PRINTED, r"; time: data .* %", "; time: ~", "shares of the time"),
    (PRINTED, r"\bstep \d+/.* left$", None, "progress: lines that come after 5 seconds"),
    (PRINTED, r"\bslow: ", None, "a rank that was slow in this run"),
    (PRINTED, r"\d+ events(; clocks .* [\d.]+ us)?", "~ events", "a timeline: what the loader did in time, and clocks of ranks"),
    (ERRORS, r"\[\[\d+,\d+\],\d+\]", "[~]", "mpirun's number of a job, and the rank that it saw end first"),
    (SHOWN, r"^(commit: ).*", r"\1~", "builds of two commits are compared"),
    (SHOWN, r"^(\S+ +\w+ +\d+ %) +[\d,]+(  +)", r"\1 ~\2", "status: speed"),
    (SHOWN, r"(~ samples/s  )[\d.]+ s", r"\1~ s", "watch: time"),
    (SHOWN, r"^( *(data|compute|communication|waiting|idle)) [█▉▊▋▌▍▎▏ ]*[\d.]+ %$", r"\1 ~", "watch: shares of the time"),
    (SHOWN, r"^rank +\d+ [█▉▊▋▌▍▎▏ ]*compute .*", "rank ~", "watch: shares of the time of ranks, the busiest first"),
    (SHOWN, r"^( +\w+) +[\d.]+ %( +[\d.]+ ms)?(  that nothing hides)?$", r"\1 ~\3", "trace: shares of the time"),
    (SHOWN, r"^( +)[\d.]+ %(  layer .*) \(forward [\d.]+ ms, backward [\d.]+ ms\)", r"\1~\2", "trace: times of a layer"),
    (SHOWN, r"^overlap: [\d.]+ %", "overlap: ~", "trace: share of the time"),
    (SHOWN, r"^    for rank \d+: [\d.]+ %", "    for rank ~", "trace: shares of the time, the largest first"),
    (SHOWN, r"^slowest steps: .*", "slowest steps: ~", "trace: times"),
    (SHOWN, r"^((report|timeline).*) \([\d.]+ KiB\)$", r"\1", "size of a file with times"),
    (SHOWN, r"begins on rank \d+:", "begins on rank ~:", "sweep: the rank that is free first"),
    (SHOWN, r"^(trial|fold)(.*) \d+\.\d s +(\w+)$", r"\1\2 ~ s \3", "sweep: time of a trial"),
    (r".*/(id|owner)", r"^[0-9a-f]{16}$", MASKED, "drawn by chance: tells a run from all others"),
    (PAGE, r"in [\d.,]+ (s|ms|minutes) of training \([\d,]+ samples(, [\d,]+ tokens)? a second\)", "in ~ of training", "time and speed of a run"),
    (PAGE, r"^(\d+ % of the time|Rank \d+ on host .* is slow)", None, "what shares of the time suggest"),
]

# (text, its replacement, reason): sentences that stand in records and pages as well as in what is printed.
SENTENCES = [
    (r"has [\d,]+ of the [\d,]+ bytes that it had", "has ~", "length of the lines with times"),
]

# (files, line, reason): lines whose place depends on time; they are compared in the order of their texts, after the others.
UNORDERED = [
    (PRINTED, r"checkpoint of step", "a checkpoint is written beside training, and its line comes when it is whole"),
    (ERRORS, r"^rank \d+: ", "mpirun passes on what the ranks write as it comes"),
]

# (files, path in the JSON, reason). A path is that of the keys; `[]` stands for any number of a list. A thing of a list that has a
# title, a label or a measure goes by that.
VALUES = [
    (RESULTS, r"(.*\.)?(seconds|(samples|tokens)_per_second)", "time and speed"),
    (RESULTS, r"(.*\.)?load", "what else the machine did"),
    (RESULTS, r"(.*\.)?time\.\w+", "shares of the time"),
    (RESULTS, r"(.*\.ranks)?\.(data|compute|exchange|waiting|delay|to_best|to_own|slow_windows|slow)\[\]", "times of each rank"),
    (RESULTS, r"(.*\.ranks)?\.(windows|hosts\[\]\.(delay|cost))", "times of each rank"),
    (r".*manifest\.json", r"\.xxh3|\.checkpoint\.(seconds|metrics_bytes)", "time, length of the lines with times, and hash of all"),
    (PAGE, r"\.runs\[\](\.curves\[.*\]|\.kept)?\.seconds(\[\])?", "time"),
    (PAGE, r"\.runs\[\]\.curves\[samples_per_second\]\.y\[\]", "speed"),
    (PAGE, r"\.runs\[\]\.(time|ranks\.shown\[\])\.(compute|communication|exchange|waiting|data|idle)", "times, and shares of the time"),
    (r".*\.onnx(_features)?", r"(.*\.)?seconds", "time of the evaluation that a model was kept for"),
    (r".*trace/rank-\d+\.jsonl", r"\.(start|seconds|clock\[\d\]|outside\[[23]\])", "times of a timeline"),
    (r".*(status|watch)\.json", r"(.*\.)?(heartbeat|speed|seconds|left|samples_per_second)(\[\d*\])?", "when it ran"),
    (r".*run\.json", r"\.(commit|heartbeat\.(time|pid)|launch\.(time|resumed_at\[\]))", "the program, when it ran, and its process"),
    (r".*(version|compare)\.json", r"(\[\])?\.commit", "builds of two commits are compared"),
]

# (files, name of a column, reason)
COLUMNS = [
    (r".*(metrics|compare)\.csv", r"seconds|samples_per_second|time\..*|(.*\.)?load", "time, speed, what else the machine did"),
    (r".*compare\.csv", r"commit", "builds of two commits are compared"),
]

# (array of a checkpoint, reason)
ARRAYS = [
    (r"seconds|logged\.seconds", "time so far"),
]

# (bytes of an event of TensorBoard, reason): the number behind them is masked.
EVENTS = [
    (rb"(?s)((progress/samples_per_second|time/\w+)\x15).{4}", "speed, and shares of the time"),
    (rb"(?s)(_hparams_/session_start_info.*\x29).{8}$", "when the run began"),
]


def name_of(path):
    """Event files are named after time, host and process."""
    return re.sub(r"events\.out\.tfevents\..*", "events.out.tfevents", path)


class Number(str):
    """A number as the file spells it."""


class Object(list):
    """Pairs of an object of JSON, in the order of the file."""


def parse(text):
    return json.loads(text, object_pairs_hook=Object, parse_float=Number, parse_int=Number, parse_constant=Number)


def leaves(value, path=""):
    """(path, text) of all that a JSON holds."""
    if isinstance(value, Object) and value:
        for key, inner in value:
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            named = dict(inner) if isinstance(inner, Object) else {}
            yield from leaves(inner, f"{path}[{named.get('title', named.get('label', named.get('measure', i)))}]")
    else:
        yield path, value if isinstance(value, Number) else "{}" if isinstance(value, Object) else json.dumps(value)


def masked_leaves(name, text, place="", path=""):
    chosen = [where for files, where, _ in VALUES if re.fullmatch(files, name)]
    for found, value in leaves(parse(text), path):
        paths = found, re.sub(r"\[\d+\]", "[]", found)
        hidden = any(re.fullmatch(where, text) for where in chosen for text in paths)
        yield f"{place}{found}", f"{found} = {MASKED if hidden else value}"


def text_lines(name, lines, start=1):
    chosen = [(re.compile(what), instead) for files, what, instead, _ in TEXTS if re.fullmatch(files, name)]
    anywhere = [what for files, what, _ in UNORDERED if re.fullmatch(files, name)]
    found, later = [], []
    for number, line in enumerate(lines, start):
        for what, instead in chosen:
            if instead is None and what.search(line):
                break
            line = what.sub(instead or "", line)
        else:
            moved = any(re.search(what, line) for what in anywhere)
            (later if moved else found).append((f"line {number}", line))
    return found + sorted(later, key=lambda entry: entry[1])


def json_lines(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        yield from masked_leaves(name, line, f"line {number} ")


def page_lines(name, text):
    """Of a page of HTML with a JSON in it, whose sentences are lines of text."""
    before, begin, rest = text.partition('<script type="application/json" id="data">')
    if not begin:
        return text_lines(name, text.splitlines())
    content, _, after = rest.partition("</script>")
    count = before.count("\n") + content.count("\n") + 1
    numbers, sentences = [], []
    for place, line in masked_leaves(name, content, "data "):
        if re.search(r"\.(story|look_at)(\[\d+\])?$", place):
            sentences.append(line.partition(" = ")[2])
        else:
            numbers.append((place, line))
    sentences = [json.loads(sentence) for sentence in sentences if sentence != "[]"]
    return [*text_lines(name, before.splitlines()), *numbers, *text_lines(name, sentences), *text_lines(name, after.splitlines(), count)]


def table_lines(name, text):
    rows = list(csv.reader(io.StringIO(text)))
    chosen = [what for files, what, _ in COLUMNS if re.fullmatch(files, name)]
    hidden = {i for i, column in enumerate(rows[0] if rows else []) if any(re.fullmatch(what, column) for what in chosen)}
    if not hidden:
        return text_lines(name, text.splitlines())
    return [(f"line {number}", ",".join(MASKED if i in hidden and number > 1 and cell else cell for i, cell in enumerate(row)))
            for number, row in enumerate(rows, 1)]


def rows_of_bytes(content):
    return [(f"byte {at}", content[at : at + 16].hex(" ")) for at in range(0, len(content), 16)]


def hidden_parts(manifest):
    """(file, first byte, last byte) of the masked arrays of a checkpoint."""
    sizes = {"float64": 8, "int64": 8, "float32": 4, "uint64": 8}
    for array, value in manifest["checkpoint"]["arrays"].items():
        if any(re.fullmatch(what, array) for what, _ in ARRAYS):
            for block in value["blocks"]:
                length = (block["end"] - block["begin"]) * sizes[value["type"]]
                yield block["file"], block["offset"], block["offset"] + length


def checkpoint_state(path, content):
    manifest = path.parent / "manifest.json"
    if not manifest.is_file():  # nothing says where its times are
        return [("length", str(len(content)))]
    content = bytearray(content)
    for file, begin, end in hidden_parts(json.loads(manifest.read_text())):
        if file == path.name:
            content[begin:end] = bytes(end - begin)
    return rows_of_bytes(bytes(content))


def checkpoint_manifest(name, text):
    """Hashes are masked of files with masked arrays, and of the manifest itself, which has them in it."""
    hidden = {file for file, _, _ in hidden_parts(json.loads(text))}
    for place, line in masked_leaves(name, text):
        file = re.match(r"\.checkpoint\.files\.(.*)\.xxh3_of_each_4_mib\[", line)
        yield place, MASKED if file and file[1] in hidden else line


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return (value >> 15 | value << 17) + 0xA282EAD8 & 0xFFFFFFFF


def event_lines(content):
    """Of a file of TensorBoard: records of length, checksum, event and checksum; an event begins with its time."""
    number, at = 0, 0
    while at + 12 <= len(content):
        length, check = struct.unpack_from("<QI", content, at)
        event = content[at + 12 : at + 12 + length]
        right = check == crc32c(content[at : at + 8]) and content[at + 12 + length : at + 16 + length] == struct.pack("<I", crc32c(event))
        event = event[:1] + event[9:] if event[:1] == b"\x09" else event
        for what, _ in EVENTS:
            event = re.sub(what, rb"\1" + MASKED.encode(), event)
        yield f"event {number}", f"{'' if right else 'wrong checksum '}{event!r}"
        number, at = number + 1, at + 16 + length


def varint(content, at):
    value = shift = 0
    while True:
        value |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 128:
            return value, at


def fields(message):
    """(number, where it begins, content) of each field of a message of Protocol Buffers; a number keeps its bytes."""
    at = 0
    while at < len(message):
        key, start = varint(message, at)
        begin, end = start, start + {1: 8, 5: 4}.get(key % 8, 0)
        if key % 8 == 0:
            end = varint(message, start)[1]
        elif key % 8 == 2:
            length, begin = varint(message, start)
            end = begin + length
        yield key // 8, at, message[begin:end]
        at = end


def onnx_lines(name, content):
    """Of a model of ONNX: fields 14 are texts by name, some of them JSON."""
    for number, at, field in fields(content):
        entry = dict((key, value) for key, _, value in fields(field)) if number == 14 else {}
        if entry and entry[2][:1] == b"{":
            yield from masked_leaves(name, entry[2].decode(), f"{entry[1].decode()} ")
        else:
            yield from ((f"field {number} at byte {at}, {place}", row) for place, row in rows_of_bytes(field))


def rank_timeline_lines(name, text):
    """Of the timeline of a rank: an event is [thread, kind, start, time, detail]. What several threads do has no order."""
    for number, line in enumerate(text.splitlines(), 1):
        found = json.loads(line)
        for thread, kind, _, _, detail in sorted(found.pop("events", []), key=lambda event: [*event[:2], event[4]]):
            yield f"line {number} .events", f"thread {thread} kind {kind} detail {detail}"
        yield from masked_leaves(name, json.dumps(found), f"line {number} ")


def timeline_lines(text):
    """Events of a timeline without their times, in the order of their names: their order and number depend on times."""
    events = {re.sub(r'"(ts|dur)":[\d.]+', rf'"\1":{MASKED}', line.rstrip(",")) for line in text.splitlines()}
    return [("events", event) for event in sorted(events)]


def lines(name, path, content):
    """(place, text) of a file, masked. `name` is that of name_of()."""
    found = lines_by_kind(name, path, content)
    for what, instead, _ in SENTENCES:
        found = [(place, re.sub(what, instead, text)) for place, text in found]
    return found


def lines_by_kind(name, path, content):
    if name.endswith("/events.out.tfevents"):
        return list(event_lines(content))
    if re.fullmatch(r".*\.onnx(_features)?", name):
        return list(onnx_lines(name, content))
    if re.fullmatch(r".*/state-\d+\.bin", name):
        return checkpoint_state(path, content)
    if name.endswith("trace.json.gz"):
        return timeline_lines(gzip.decompress(content).decode())
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return rows_of_bytes(content)
    if "\0" in text:
        return rows_of_bytes(content)
    if name.endswith("trace.json"):
        return timeline_lines(text)
    reader = {".json": masked_leaves, ".jsonl": json_lines, ".html": page_lines, ".csv": table_lines}.get(pathlib.PurePath(name).suffix)
    if name.endswith("/manifest.json"):
        reader = checkpoint_manifest
    if re.fullmatch(r".*trace/rank-\d+\.jsonl", name):
        reader = rank_timeline_lines
    try:
        return list(reader(name, text) if reader else text_lines(name, text.splitlines()))
    except (ValueError, KeyError):  # not what its name says: compared as text
        return list(text_lines(name, text.splitlines()))
