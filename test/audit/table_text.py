"""The records of a table as texts: files, encoding, lines above, separator, header, quotes
(configs/guides/tables.md)."""

from dataclasses import dataclass, field

from .files import files_of, read_bytes
from .notations import plain_number

EXTENSIONS = (".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz", ".tab.gz")


@dataclass
class TableText:
    names: list
    records: list  # of texts, without blanks around them; of one that is no record, a text that says why
    files: list
    file_of: list = field(default_factory=list)  # of each record, the index of its file
    record_of: list = field(default_factory=list)  # of each record, its number in all files
    header: bool = True


def decode(data, encoding):
    if encoding != "auto":
        return data.decode(encoding)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    return data.decode("utf-8-sig", errors="surrogateescape")


def lines_of(text):
    """With the first line end deciding which one it is."""
    if "\n" not in text and "\r" in text:
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def split_record(line, separator, quotes):
    """Its fields; a text where a quote is wrong; None if a quote is open at its end."""
    if not quotes or '"' not in line:
        return [part.strip(" \t" if separator != " " else "\t") if separator != "\t" else part.strip(" ")
                for part in line.split(separator)]
    blanks = [c for c in " \t" if c != separator]
    fields, i = [], 0
    while True:
        while i < len(line) and line[i] in blanks:
            i += 1
        if i < len(line) and line[i] == '"':
            text, i = "", i + 1
            while True:
                end = line.find('"', i)
                if end < 0:
                    return None
                text += line[i:end]
                i = end + 1
                if i < len(line) and line[i] == '"':
                    text += '"'
                    i += 1
                    continue
                break
            while i < len(line) and line[i] in blanks:
                i += 1
            if i < len(line) and line[i] != separator:
                return "a quote closes before the end of the field"
            fields.append(text)
        else:
            end = line.find(separator, i)
            end = len(line) if end < 0 else end
            fields.append(line[i:end].rstrip("".join(blanks)))
            i = end
        if i >= len(line):
            return fields
        i += 1


def records_of(lines, separator, quotes):
    i = 0
    while i < len(lines):
        line, i = lines[i], i + 1
        if line == "":
            continue
        fields = split_record(line, separator, quotes)
        ahead = i
        joined = line
        while fields is None and ahead < len(lines):
            joined += "\n" + lines[ahead]
            ahead += 1
            fields = split_record(joined, separator, quotes)
            if isinstance(fields, str):
                fields = None
                break
        if fields is None:
            yield "a quote is never closed"
        else:
            if isinstance(fields, list) and ahead > i:
                i = ahead
            yield fields


def read_table(text, cwd, config, names=None):
    """`names`: columns of the model, for a table without a header."""
    files = files_of(text, cwd, EXTENSIONS)
    table = TableText(names=[], records=[], files=files)
    skip = config.get("data.skip_lines", 0)
    header, separator = (config.get(f"data.{key}", "auto") for key in ("header", "separator"))
    quotes = config.get("data.quotes", True)
    for number, path in enumerate(files):
        lines = lines_of(decode(read_bytes(path), config.get("data.encoding", "auto")))[skip:]
        first = next((line for line in lines if line), "")
        if separator == "auto":
            tab = any(path.endswith(end) for end in (".tsv", ".tab", ".tsv.gz", ".tab.gz"))
            separator = "\t" if tab else max(",\t;|", key=lambda c: (first.count(c), -",\t;|".index(c)))
        separator = {"tab": "\t"}.get(separator, separator)
        records = list(records_of(lines, separator, quotes))
        if number == 0:
            titled = bool(records) and all(plain_number(f) is None for f in records[0])
            has_header = header == "yes" or header == "auto" and titled
            table.header = has_header
            table.names = unique(records[0]) if has_header else names or [f"c{i + 1}" for i in range(len(records[0]))]
            # A separator at the end of each record is no column.
            empty = lambda r: isinstance(r, str) or len(r) == len(table.names) and r[-1] == ""
            if has_header and table.names[-1] == "" and all(map(empty, records)):
                table.names.pop()
        if has_header:
            records = records[1:]
        for record in records:
            longer = isinstance(record, list) and len(record) == len(table.names) + 1
            if longer and record[-1] == "" and first.rstrip().endswith(separator):
                record = record[:-1]
            table.record_of.append(len(table.records))
            table.records.append(record)
            table.file_of.append(number)
    return table


def unique(names):
    found, result = {}, []
    for name in names:
        found[name] = found.get(name, 0) + 1
        result.append(name if found[name] == 1 else f"{name}.{found[name]}")
    return result
