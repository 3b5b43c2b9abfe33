"""The errors that scripts of the page (JavaScript) can have, found by a small tokenizer."""

import re

from mutating import operators

TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\d[\w.]*)
  | (?P<name>[A-Za-z_$][\w$]*)
  | (?P<sign>===|!==|=>|\.\.\.|<=|>=|==|!=|&&|\|\||\?\?|\?\.|\+\+|--|\+=|-=|\*=|/=|\*\*|.)
""", re.VERBOSE | re.DOTALL)  # fmt: skip
COMPARISONS = {**operators.COMPARISONS, "===": ("!==",), "!==": ("===",)}
SIGNS = {"&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", **operators.ARITHMETIC}
NAMES = {("Math", "min"): "max", ("Math", "max"): "min"}
OPEN, CLOSE = "([{", ")]}"


def end_of_template(text, at):
    """Behind the text between backquotes that begins at `at`, which may hold code with further such texts."""
    at += 1
    while text[at] != "`":
        if text.startswith("${", at):
            at, depth = at + 2, 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at = end_of_template(text, at) if text[at] == "`" else at + 1
        else:
            at += 2 if text[at] == "\\" else 1
    return at + 1


def tokens(text):
    """(kind, begin, end) of all but spaces. A slash where a value must begin starts a regular expression: a text."""
    found, at = [], 0
    while at < len(text):
        if text[at] == "`":
            found.append(("text", at, end_of_template(text, at)))
            at = found[-1][2]
            continue
        before = text[found[-1][1]:found[-1][2]] if found else ""
        pattern = re.compile(r"/(?:\\.|\[(?:\\.|[^\]])*\]|[^/\\\n])+/\w*").match(text, at)
        begins = before in "(,=:[!&|?{};+" or before in ("return", "=>", "&&", "||")
        if pattern and begins and text[at:at + 2] not in ("//", "/*"):
            found.append(("text", at, pattern.end()))
            at = pattern.end()
            continue
        match = TOKEN.match(text, at)
        if match.lastgroup != "space":
            found.append((match.lastgroup, at, match.end()))
        at = match.end()
    return found


def closing(words, start):
    """The index of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(words)):
        depth += (words[i] in OPEN) - (words[i] in CLOSE) if len(words[i]) == 1 else 0
        if depth == 0:
            return i
    return len(words) - 1


def changes(text):
    """(operator, begin, end, changed text) of a script. What changes one word has those beside it, too, to be found by."""
    found = tokens(text)
    words = [text[begin:end] for _, begin, end in found]
    for i, (_, begin, end) in enumerate(found):
        word = words[i]
        for operator, other in of_word(found, words, i):
            first, last = found[i - 1][1], found[i + 1][2]
            yield operator, first, last, text[first:begin] + other + text[end:last]
        if word == "if" and words[i + 1] == "(":
            last = closing(words, i + 1)
            begin, end = found[i + 1][1], found[last][2]
            yield "condition negated", begin, end, f"(!{text[begin:end]})"
        yield from of_statement(text, found, words, i)


def of_word(found, words, i):
    """(operator, other word)."""
    if i == 0 or i + 1 == len(found):
        return
    kind, word, before = found[i][0], words[i], words[i - 1]
    is_value = found[i - 1][0] in ("number", "text", "name") or before in (")", "]")
    if kind == "sign" and is_value and before != "return":
        for other in COMPARISONS.get(word, ()):
            yield "comparison", other
        if word in SIGNS and not (word == "+" and "text" in (found[i - 1][0], found[i + 1][0])):
            name = {"&": "&& and ||", "|": "&& and ||", "+": "+ and -", "-": "+ and -"}.get(word[0], "* and /")
            yield name, SIGNS[word]
    elif kind == "number" and word.isdigit():
        yield "integer constant", str(int(word) + 1)
    elif kind == "name" and before == "." and (words[i - 2], word) in NAMES:
        yield "min and max", NAMES[words[i - 2], word]


def of_statement(text, found, words, i):
    """A statement that is left out: `return` in a branch without braces, and calls and assignments on a line."""
    starts = i > 0 and words[i - 1] in (";", "{", "}", ")")
    begin = found[i][1]
    end = i
    while end < len(words) and words[end] != ";":
        if words[end] in OPEN and len(words[end]) == 1:
            end = closing(words, end)
        end += 1
    if not starts or end >= len(words) or "\n\n" in text[begin:found[end][1]]:
        return
    if words[i] in ("return", "continue") and words[i - 1] == ")":
        yield "early return left out", begin, found[end][2], ";"
    elif found[i][0] == "name" and words[i - 1] != ")" and words[i + 1] in (".", "=", "(", "[", "+=", "-="):
        if words[i] not in ("if", "for", "while", "return", "switch", "function", "catch", "const", "let"):
            yield "statement left out", begin, found[end][2], ";"
