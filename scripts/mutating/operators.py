"""The operators: the errors that can be made of one cursor of libclang, as (operator, begin, end, changed text)."""

import re

from mutating.libclang import cindex

Kind = cindex.CursorKind
Type = cindex.TypeKind

COMPARISONS = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*"}
ENDS = {"begin": "end", "end": "begin", "cbegin": "cend", "cend": "cbegin", "rbegin": "rend", "rend": "rbegin"}
LIMITS = {"min": "max", "max": "min"}
GUARDS = {"isnan": "false", "isinf": "false", "isfinite": "true", "is_finite": "true", "is_nan": "false"}
SYMMETRIC = {"min", "max", "swap", "hypot", "format"}  # exchanged arguments change nothing, or only a sentence
# Functions whose arguments are sentences.
SPEAKING = re.compile(r"^(log_(info|warning|error|notes)|fail\w*|refuse|warn\w*|throw_\w+|\w+Error|runtime_error)$")
ASKING_FIRST = re.compile(r"^(refuse|error)_if\w*$")  # the first argument is a condition, the others are its words
BOOLEAN = {"comparison", "condition negated", "half of a condition left out"}

DEPENDENT = {Type.DEPENDENT, Type.UNEXPOSED}
NUMBERS = {Type.CHAR_U, Type.UCHAR, Type.CHAR16, Type.CHAR32, Type.USHORT, Type.UINT, Type.ULONG, Type.ULONGLONG,
           Type.CHAR_S, Type.SCHAR, Type.WCHAR, Type.SHORT, Type.INT, Type.LONG, Type.LONGLONG,
           Type.FLOAT, Type.DOUBLE, Type.LONGDOUBLE, Type.POINTER, *DEPENDENT}  # fmt: skip


def of(file, cursor, parent):
    kind = cursor.kind
    if kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR):
        yield from of_operator(file, cursor, list(cursor.get_children()))
    elif kind in (Kind.IF_STMT, Kind.CONDITIONAL_OPERATOR, Kind.WHILE_STMT):
        yield from of_condition(file, cursor)
    elif kind == Kind.INTEGER_LITERAL:
        yield from of_integer(file, cursor, parent)
    elif kind == Kind.CALL_EXPR:
        yield from of_call(file, cursor, parent)


def of_operator(file, cursor, sides):
    """Binary operators, also those of classes where they compare."""
    if len(sides) != 2:
        return
    begin, end = file.extent(cursor)
    (left_begin, left_end), (right_begin, right_end) = file.extent(sides[0]), file.extent(sides[1])
    sign = file.text[left_end:right_begin].strip()
    left, right = file.text[left_begin:left_end], file.text[right_begin:right_end]
    if begin != left_begin or end != right_end:
        return
    for other in COMPARISONS.get(sign, ()):
        yield "comparison", begin, end, f"{left} {other} {right}"
    if sign in ("&&", "||"):
        yield "half of a condition left out", begin, end, left
        yield "half of a condition left out", begin, end, right
    plain = sign.removesuffix("=")
    if plain in ARITHMETIC and all(s.type.get_canonical().kind in NUMBERS for s in sides):
        name = "+ and -" if plain in "+-" else "* and /"
        yield name, begin, end, f"{left} {ARITHMETIC[plain]}{sign[len(plain):]} {right}"


def of_condition(file, cursor):
    children = list(cursor.get_children())
    condition = children[0]
    if condition.kind == Kind.DECL_STMT and len(children) > 2 and file.text_of(condition).endswith(";"):
        condition = children[1]  # if (const auto found = ...; found)
    if not condition.kind.is_expression() or re.match(r"if\s+constexpr", file.text_of(cursor)):
        return
    begin, end = file.extent(condition)
    if cursor.kind == Kind.CONDITIONAL_OPERATOR or file.text[:begin].rstrip().endswith(("(", ";")):
        text = file.text[begin:end]
        yield "condition negated", begin, end, f"!{text}" if re.fullmatch(r"[\w.]+(\(\))?", text) else f"!({text})"


def of_integer(file, cursor, parent):
    found = re.fullmatch(r"(\d+)([uUlLzZ]*)", file.text_of(cursor).replace("'", ""))
    if not found or (parent is not None and parent.type.kind in (Type.POINTER, Type.NULLPTR)):
        return
    begin, end = file.extent(cursor)
    value, suffix = int(found.group(1)), found.group(2)
    yield "integer constant", begin, end, f"{value + 1}{suffix}"
    if value > 0:
        yield "integer constant", begin, end, f"{value - 1}{suffix}"


def of_call(file, cursor, parent):
    begin, end = file.extent(cursor)
    given = [a for a in cursor.get_arguments() if a is not None]
    given = [a for a in given if begin <= file.extent(a)[0] < file.extent(a)[1] <= end]
    if cursor.spelling.startswith("operator"):
        if len(given) == 2:
            yield from of_operator(file, cursor, given)
        return
    yield from of_name(file, cursor, begin, end)
    text = file.text[begin:end]
    is_object = parent is not None and parent.kind in (Kind.VAR_DECL, Kind.FIELD_DECL, Kind.CONSTRUCTOR) and (
        begin == parent.location.offset - file.shift or parent.kind == Kind.CONSTRUCTOR)
    if is_object or not text.endswith((")", "}")) or text.startswith("{") or ASKING_FIRST.match(cursor.spelling):
        return  # what is made by `Type name(arguments)` or by braces is no expression
    yield from of_arguments(file, cursor, begin, end, given)


def of_name(file, cursor, begin, end):
    """Functions that have an opposite, and guards."""
    name = cursor.spelling
    for operator, opposites in (("min and max", LIMITS), ("begin and end", ENDS)):
        # The name before the arguments of this call: not one in brackets, which is of another call.
        found = re.match(rf"(?:[^()]|\([^()]*\))*?\b{name}\b(?=\s*[(<])", file.text[begin:end])
        if found and name in opposites:
            head = found.group()[:-len(name)] + opposites[name]
            yield operator, begin, end, head + file.text[begin + found.end():end]
    if name in GUARDS:
        yield "NaN guard left out", begin, end, GUARDS[name]


def of_arguments(file, cursor, begin, end, given):
    text = file.text[begin:end]
    places = [tuple(edge - begin for edge in file.extent(a)) for a in given]
    if cursor.spelling not in SYMMETRIC:
        types = [plain_type(a) for a in given]
        for i in range(len(given)):
            for j in range(i + 1, len(given)):
                (a, b), (c, d) = places[i], places[j]
                if types[i] and types[i] == types[j] and text[a:b] != text[c:d]:
                    yield "argument exchanged", begin, end, text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
    called = cursor.referenced
    parameters = [] if called is None else [c for c in called.get_children() if c.kind == Kind.PARM_DECL]
    if given and len(given) <= len(parameters) and has_default(parameters[len(given) - 1]):
        before = text[:places[-1][0]]
        kept = places[-2][1] if len(given) > 1 else before.rfind("(") + 1
        if kept:
            yield "default taken", begin, end, text[:kept] + text[-1]


def plain_type(argument):
    """The type without const and references; "" where it is not known."""
    canonical = argument.type.get_canonical()
    name = re.sub(r"\bconst\b|&", "", canonical.spelling).strip()
    return "" if canonical.kind in DEPENDENT and "<" not in name else name


def has_default(parameter):
    depth = 0
    for token in parameter.get_tokens():
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.spelling, 0)
        if token.spelling == "=" and depth == 0:
            return True
    return False


def is_droppable(cursor):
    """Whether an expression statement can be left out: calls, assignments, increments, but nothing that throws."""
    kinds = (Kind.CALL_EXPR, Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR,
             Kind.UNEXPOSED_EXPR)
    inner = cursor
    while inner.kind == Kind.UNEXPOSED_EXPR and len(list(inner.get_children())) == 1:
        inner = next(inner.get_children())
    return cursor.kind in kinds and inner.kind != Kind.CXX_THROW_EXPR and not SPEAKING.match(inner.spelling or "")
