"""Which files a text of the config names, and their bytes: a directory, a pattern, several with commas between them."""

import glob
import gzip
import itertools
import pathlib
import re


def split_outside(text, separator=",", opening="{", closing="}"):
    parts, depth = [""], 0
    for c in text:
        depth += (c == opening) - (c == closing)
        if c == separator and depth <= 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def braces(pattern):
    """ "part-{1,3}.csv" as two patterns."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    ends = [pattern[: found.start()] + word + pattern[found.end() :] for word in found[1].split(",")]
    return list(itertools.chain(*(braces(end) for end in ends)))


def files_of(text, cwd, extensions=()):
    files = []
    for part in [text] if (pathlib.Path(cwd) / text).exists() else split_outside(text):
        path = pathlib.Path(cwd) / part
        if path.is_dir():
            inside = sorted(str(f) for f in path.iterdir() if f.is_file() and f.name[0] not in "._")
            files += [f for f in inside if f.endswith(tuple(extensions))] or inside
        elif path.exists() or not re.search(r"[*?\[{]", part):
            files.append(str(path))
        else:
            found = itertools.chain(*(glob.glob(str(pathlib.Path(cwd) / each)) for each in braces(part)))
            files += sorted(found)
    return files


def read_bytes(path):
    data = pathlib.Path(path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
