"""Where a C++ file can have an error, and which: found by libclang, one `Place` for each.

A file is walked once, from its functions down to their expressions. Texts for people are left out: what is thrown,
logged or given to a function that only refuses. A place that must be constant at compile time cannot ask the switch;
those are counted, and never drawn.
"""

import dataclasses
import re

from mutating import operators
from mutating.libclang import cindex

Kind = cindex.CursorKind

LOOPS = {Kind.FOR_STMT, Kind.WHILE_STMT, Kind.DO_STMT, Kind.CXX_FOR_RANGE_STMT}
BRANCHES = {Kind.IF_STMT, *LOOPS}
ENDINGS = {Kind.IF_STMT, Kind.SWITCH_STMT, Kind.CXX_TRY_STMT, Kind.CXX_CATCH_STMT}
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR,
             Kind.CONVERSION_FUNCTION, Kind.LAMBDA_EXPR}  # fmt: skip
KERNELS = re.compile(r"src/(math|nn/layers)/")


@dataclasses.dataclass(frozen=True)
class Place:
    file: str
    line: int
    operator: str
    begin: int  # bytes of the file
    end: int
    original: str
    changed: str  # "" where a statement is left out
    kernel: bool  # in an innermost loop of a kernel

    def insertions(self, number):
        """The two texts around the original that make the error switchable."""
        switch = f"::lockstep_error({number})"
        if not self.changed:
            return f"{{ if (!{switch}) ", " }"
        if self.operator in operators.BOOLEAN:
            return f"(({switch}) ? static_cast<bool>({self.changed}) : static_cast<bool>(", "))"
        return f"(({switch}) ? ({self.changed}) : (", "))"


@dataclasses.dataclass
class Around:
    """What encloses the cursor that is looked at."""

    constant: bool = False
    speaking: bool = False
    loop: object = None
    lasts: frozenset = frozenset()  # statements after which the function only ends
    branched: bool = False  # in a branch or a loop of the function


class File:
    """The places of one file, and how many must be constant."""

    def __init__(self, name, text, unit, shift):
        self.name, self.text, self.shift = name, text, shift
        self.places, self.constants = [], 0
        self.path = unit.spelling
        self.inner_loops = {}
        for cursor in unit.cursor.get_children():
            if self.is_here(cursor) and cursor.kind.is_declaration():
                self.visit(cursor, None, Around())

    def is_here(self, cursor):
        file = cursor.location.file
        return file is not None and file.name == self.path and cursor.location.offset >= self.shift

    def extent(self, cursor):
        extent = cursor.extent
        return extent.start.offset - self.shift, extent.end.offset - self.shift

    def text_of(self, cursor):
        begin, end = self.extent(cursor)
        return self.text[begin:end]

    def add(self, around, operator, begin, end, changed):
        original = self.text[begin:end]
        if not 0 <= begin < end or original == changed or around.speaking:
            return
        if around.constant:
            self.constants += 1
            return
        kernel = bool(around.loop and KERNELS.match(self.name) and not self.has_inner_loop(around.loop))
        line = self.text.count("\n", 0, begin) + 1
        self.places.append(Place(self.name, line, operator, begin, end, original, changed, kernel))

    def has_inner_loop(self, loop):
        if loop.hash not in self.inner_loops:
            self.inner_loops[loop.hash] = any(c.kind in LOOPS for c in loop.walk_preorder() if c.hash != loop.hash)
        return self.inner_loops[loop.hash]

    def visit(self, cursor, parent, around):
        around = self.step_into(cursor, parent, around)
        if around is None:
            return
        for operator, begin, end, changed in operators.of(self, cursor, parent):
            self.add(around, operator, begin, end, changed)
        children = list(cursor.get_children())
        if cursor.kind == Kind.COMPOUND_STMT or cursor.kind in BRANCHES:
            self.visit_statements(cursor, children, around)
        elif cursor.kind == Kind.CALL_EXPR and operators.ASKING_FIRST.match(cursor.spelling):
            self.visit(next(cursor.get_arguments()), cursor, around)
        else:
            for child in children:
                self.visit(child, cursor, around)

    def step_into(self, cursor, parent, around):
        """What is around the children of `cursor`; None where nothing may be changed."""
        kind = cursor.kind
        if kind in (Kind.STATIC_ASSERT, Kind.ENUM_DECL, Kind.TYPE_ALIAS_DECL, Kind.CXX_BASE_SPECIFIER):
            return dataclasses.replace(around, constant=True)
        if kind == Kind.CXX_THROW_EXPR or (kind == Kind.CALL_EXPR and operators.SPEAKING.match(cursor.spelling)):
            return None
        if kind == Kind.COMPOUND_STMT and parent is not None and parent.kind in FUNCTIONS:
            return dataclasses.replace(around, lasts=self.last_statements(cursor), branched=False)
        if kind in LOOPS:
            return dataclasses.replace(around, loop=cursor)
        if self.must_be_constant(cursor, parent):
            return dataclasses.replace(around, constant=True)
        return around

    def must_be_constant(self, cursor, parent):
        begin, end = self.extent(cursor)
        if cursor.kind == Kind.VAR_DECL:
            return bool(re.search(r"\b(constexpr|constinit)\b", self.text[begin:cursor.location.offset - self.shift]))
        if parent is None or not cursor.kind.is_expression():
            return False
        if parent.kind == Kind.CASE_STMT:
            return self.text[begin - 5:begin].startswith("case")
        if parent.kind == Kind.IF_STMT and re.match(r"if\s+constexpr", self.text_of(parent)):
            return True
        if parent.kind in (Kind.VAR_DECL, Kind.FIELD_DECL, Kind.PARM_DECL, Kind.FUNCTION_DECL, Kind.CXX_METHOD):
            # What stands before the name is of its type, and what stands in brackets after it is a bound.
            return end <= parent.location.offset - self.shift or self.text[:begin].rstrip().endswith("[")
        names = (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR)
        in_type = parent.kind in (Kind.TYPE_REF, Kind.TEMPLATE_REF, *names)
        return in_type and cursor.kind not in (*names, Kind.CALL_EXPR, Kind.UNEXPOSED_EXPR)

    def last_statements(self, body):
        """The statements at the end of a function: leaving out a return there would leave it without a value."""
        lasts = set()
        children = list(body.get_children())
        while children:
            last = children[-1]
            lasts.add(last.hash)
            if last.kind not in (Kind.COMPOUND_STMT, *ENDINGS):
                break
            if last.kind != Kind.COMPOUND_STMT:
                lasts.update(c.hash for c in last.walk_preorder())
            children = list(last.get_children())
        return frozenset(lasts)

    def visit_statements(self, cursor, children, around):
        is_branch = cursor.kind in BRANCHES
        for child in children:
            inner = dataclasses.replace(around, branched=around.branched or is_branch)
            if cursor.kind == Kind.COMPOUND_STMT or self.is_body(cursor, child):
                begin, end = self.statement(child)
                if end and child.kind in (Kind.RETURN_STMT, Kind.CONTINUE_STMT):
                    if inner.branched and child.hash not in around.lasts:
                        self.add(inner, "early return left out", begin, end, "")
                elif end and operators.is_droppable(child):
                    self.add(inner, "statement left out", begin, end, "")
            self.visit(child, cursor, inner)

    def is_body(self, cursor, child):
        """Whether an expression is a branch without braces: it then ends with a semicolon."""
        if cursor.kind == Kind.FOR_STMT or cursor.kind == Kind.CXX_FOR_RANGE_STMT:
            return child.hash == list(cursor.get_children())[-1].hash
        begin, _ = self.extent(child)
        return self.text[:begin].rstrip().endswith((")", "else", "do"))

    def statement(self, cursor):
        """Its first byte and that after its semicolon; 0 as end where there is none."""
        begin, end = self.extent(cursor)
        semicolon = re.compile(r"\s*;").match(self.text, end)
        return begin, semicolon.end() if semicolon else 0


def parse(name, path, text, prefix, arguments):
    """The file's places; `prefix` is put before its text, as it will be in the copy. Gives the unit, too."""
    for flags in (arguments, plain_headers(arguments)):
        try:
            files = [(str(path), as_utf8(prefix + text))]
            unit = cindex.Index.create().parse(str(path), args=flags, unsaved_files=files)
            return File(name, text, unit, len(prefix)), unit
        except cindex.TranslationUnitLoadError:
            continue
    raise SystemExit(f"error: libclang cannot read {name}")


def as_utf8(text):
    """The characters that the bytes stand for; libclang's offsets are of bytes."""
    return text.encode("latin-1").decode("utf-8")


def plain_headers(arguments):
    """The same without precompiled headers, over which clang 14 stumbles at times."""
    return [{"-include-pch": "-include"}.get(a, re.sub(r"[^/]*\.pch$", "common.h", a)) for a in arguments]


def errors_of(unit, path, text):
    """Lines of the errors that the compiler finds in this text of the file, each with what it says."""
    unit.reparse(unsaved_files=[(str(path), as_utf8(text))])
    return [(d.location.line if d.location.file and d.location.file.name == str(path) else 0, d.spelling)
            for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
