"""mutants.py - finds mutants in C sources and writes a source that contains all mutants.

Every mutant is compiled in and has a number. heft_mutant_hit(N) (mutant.h) is called where mutant N
changes a value and returns true if N is active: `if (a < b)` becomes `if (a < b, or a == b when
mutant 7 is active)`. A run of a test therefore tells which mutants the test could notice.

  never   the condition of if, while or for is false: the check is deleted
  negate  a condition is negated
  left    the left half of && or || is dropped
  right   the right half is dropped
  bound   < becomes <= and so on: off by one; not where equal operands give the same value
          (a < b ? a : b, a < b ? b - a : 0)
  equal   == becomes != and the reverse
  ok      a returned error becomes HEFT_OK; an error that a reader keeps is left out
  same    memcmp says that the bytes are equal
  skip    a call that syncs, locks or closes a file is left out

A mutant of the condition of a refusal, or of a returned refusal, is a check. Mutants lie in
function bodies, not in macros and not in constants; HEFT_TRY() is expanded first."""
import bisect
import dataclasses
import re

import clang.cindex as ci

K = ci.CursorKind
OPPOSITE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
TOKEN = re.compile(rb"/\*.*?\*/|\"(?:\\.|[^\"])*\"|'(?:\\.|[^'])*'|[();]", re.S)
# Text of a branch that refuses, and statements that make a branch more than a refusal.
REFUSAL = re.compile(r"heft_error_|HEFT_E_|say_\w+\(|\b\w*(report|finding|fail|refuse|notice)\w*\(")
LONGER = re.compile(r"\b(if|for|while|switch)\b")
SKIPPED_CALL = re.compile(
    r"f(data)?sync|(heft_disk_)?(sync\w*|flush|lock|close)|heft_target_sync_dir")
# Functions that keep the failure in a reader: the status that they return adds nothing.
KEEPING_CALL = re.compile(r"heft_(json|cbor|cur|zt2)_fail(_at)?")
TRY = re.compile(rb"\bHEFT_TRY\(")
# Kinds of children that are constants, or not evaluated.
CONSTANT = {K.CXX_UNARY_EXPR, K.ENUM_DECL, K.STRUCT_DECL, K.UNION_DECL, K.TYPE_REF, K.STATIC_ASSERT}
POINTERS = {ci.TypeKind.POINTER, ci.TypeKind.CONSTANTARRAY, ci.TypeKind.INCOMPLETEARRAY}


@dataclasses.dataclass
class Mutant:
    file: str
    function: str
    line: int
    kind: str
    text: str  # text of the expression, blanks folded
    nth: int = 1  # number among mutants of the same kind, function and text
    is_check: bool = False
    id: int = 0

    @property
    def key(self):
        return "\t".join([self.file, self.function, self.kind, self.text, str(self.nth)])


class Source:
    """A file while mutants are collected: insertions into the text, and the mutants."""

    def __init__(self, name, data, macros):
        self.name, self.data, self.macros = name, data, sorted(macros)
        self.starts = [s for s, _ in self.macros]
        # (offset, class, order, text, end): class 0 closes, 1 replaces an operator, 2 opens
        self.edits = []
        self.mutants = []
        self.function, self.in_check = "", False
        self.taken = {}

    def text(self, begin, end):
        return self.data[begin:end].decode(errors="replace")

    def in_macro(self, begin, end):
        """Return True if the range begins or ends inside the use of a macro, or is a macro."""
        for i in range(bisect.bisect_left(self.starts, begin), len(self.macros)):
            s, e = self.macros[i]
            if s >= end:
                break
            if (s, e) == (begin, end) or e > end:
                return True
        i = bisect.bisect_left(self.starts, begin) - 1
        return i >= 0 and self.macros[i][1] > begin

    def add(self, node, kind):
        """Registers a mutant; returns the mark that stands for the number."""
        begin, end = extent(node)
        text = " ".join(re.sub(r"/\*.*?\*/", " ", self.text(begin, end), flags=re.S).split())
        same = (self.function, kind, text)
        self.taken[same] = nth = self.taken.get(same, 0) + 1
        line = node.extent.start.line
        self.mutants.append(
            Mutant(self.name, self.function, line, kind, text, nth, self.in_check))
        return f"heft_mutant_hit(\0{len(self.mutants) - 1}\0)"

    def wrap(self, node, before, after):
        begin, end = extent(node)
        n = len(self.edits)
        self.edits.append((begin, 2, n, before, begin))
        self.edits.append((end, 0, -n, after, end))

    def render(self, first):
        """The text with every mutant, numbered from first."""
        for m, mutant in enumerate(self.mutants):
            mutant.id = first + m
        out, at = [], 0
        for offset, _, _, text, end in sorted(self.edits):
            out.append(self.text(at, offset))
            out.append(re.sub("\0(\\d+)\0", lambda m: str(first + int(m[1])), text))
            at = end
        out.append(self.text(at, len(self.data)))
        return "".join(out)


def extent(node):
    return node.extent.start.offset, node.extent.end.offset


def children(node):
    return list(node.get_children())


def bare(node):
    """The expression without parentheses and implicit casts."""
    while node.kind in (K.PAREN_EXPR, K.UNEXPOSED_EXPR) and len(children(node)) == 1:
        node = children(node)[0]
    return node


def operator(source, node):
    """The operator of a binary expression, with the range between the operands."""
    left, right = children(node)
    begin, end = extent(left)[1], extent(right)[0]
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", source.text(begin, end), flags=re.S).strip()
    return text, begin, end


def usable(source, node):
    begin, end = extent(node)
    return begin < end and not source.in_macro(begin, end)


def is_literal(source, node):
    return re.fullmatch(r"true|false|\d+|NULL", source.text(*extent(bare(node)))) is not None


# ---- conditions ----------------------------------------------------------------------------------


def negate(source, node):
    if usable(source, node) and not is_literal(source, node):
        source.wrap(node, "(!(", f") == {source.add(node, 'negate')})")


def never(source, node):
    if usable(source, node) and not is_literal(source, node):
        source.wrap(node, "((", f") && !{source.add(node, 'never')})")


def loop_condition(source, node):
    """The condition of a for loop: the child between the two semicolons."""
    begin, end = extent(node)
    depth, semicolons = 0, []
    for m in TOKEN.finditer(source.data[begin:end]):
        depth += {b"(": 1, b")": -1}.get(m[0], 0)
        if m[0] == b";" and depth == 1:
            semicolons.append(begin + m.start())
        if len(semicolons) == 2:
            break
    for child in children(node):
        if semicolons[0] < extent(child)[0] and extent(child)[1] <= semicolons[1]:
            return child
    return None


# ---- operators -----------------------------------------------------------------------------------


def halves(source, node, op):
    left, right = children(node)
    for child, kind in ((left, "left"), (right, "right")):
        if not usable(source, child):
            continue
        mark = source.add(node, kind)
        if op == "&&":
            source.wrap(child, "((", f") || {mark})")
        else:
            source.wrap(child, "((", f") && !{mark})")


def temporary(node, name):
    is_pointer = node.type.get_canonical().kind in POINTERS
    return f"__auto_type {name} = (" if is_pointer else f"__typeof__(+(\1)) {name} = ("


def bound(source, node, op, begin, end):
    """a < b: evaluates both operands once; the mutant differs where both are equal."""
    left, right = children(node)
    mark = source.add(node, "bound")
    n = len(source.mutants) - 1
    x, y, v = f"mutant_x\0{n}\0", f"mutant_y\0{n}\0", f"mutant_v\0{n}\0"
    # typeof evaluates nothing: the plain text serves, without the mutants inside.
    declare = [
        temporary(child, name).replace("\1", source.text(*extent(child)))
        for child, name in ((left, x), (right, y))
    ]
    source.wrap(node, f"({{ {declare[0]}",
                f"); int {v} = {x} {op} {y}; {x} == {y} && {mark} ? !{v} : {v}; }})")
    source.edits.append((begin, 1, 0, f"); {declare[1]}", end))


def without_cast(source, node):
    """The text of an expression without parentheses and casts."""
    node = bare(node)
    while node.kind == K.CSTYLE_CAST_EXPR:
        node = bare(children(node)[-1])
    return source.text(*extent(node))


def is_minimum(source, condition, values):
    """Return True for the values of `a < b ? a : b`, also with a 0, and of `a < b ? b - a : 0`."""
    operands = {without_cast(source, o) for o in children(bare(condition))}
    found = {without_cast(source, v) for v in values}
    if len(found) == 2 and operands == found:
        return True
    if "0" in found:
        value = next((bare(v) for v in values if without_cast(source, v) != "0"), None)
        is_rest = value is not None and value.kind == K.BINARY_OPERATOR and operator(
            source, value)[0] == "-"
        found = {without_cast(source, v) for v in children(value)} if is_rest else set()
    return len(operands) == 2 and operands == found


def equal(source, node):
    source.wrap(node, "((", f") != {source.add(node, 'equal')})")


# ---- the walk ------------------------------------------------------------------------------------


class Walk:

    def __init__(self, source):
        self.source = source

    def function(self, node):
        self.source.function = node.spelling
        result = node.result_type
        self.is_bool = result.get_canonical().kind == ci.TypeKind.BOOL
        self.is_status = result.spelling == "heft_status"
        for child in children(node):
            if child.kind == K.COMPOUND_STMT:
                self.visit(child)

    def visit(self, node):
        kind = node.kind
        if kind in CONSTANT:
            return
        if kind == K.VAR_DECL and (node.storage_class == ci.StorageClass.STATIC
                                   or node.type.kind == ci.TypeKind.CONSTANTARRAY):
            return
        below = children(node)
        if kind == K.CASE_STMT:
            below = below[1:]
        outer, refuses = self.source.in_check, self.refuses(node, kind, below)
        self.source.in_check = outer or refuses
        self.mutate(node, kind, below)
        for child in below:
            self.source.in_check = outer or refuses and child == below[0]
            self.visit(child)
        self.source.in_check = outer

    def refuses(self, node, kind, below):
        """Return True for a condition whose branch only refuses, and for a returned refusal."""
        branches = []
        if kind in (K.IF_STMT, K.CONDITIONAL_OPERATOR):
            branches = below[1:]
        elif kind == K.RETURN_STMT:
            branches = [node]
        texts = [self.source.text(*extent(branch)) for branch in branches]
        return any(REFUSAL.search(t) and not LONGER.search(t) for t in texts)

    def mutate(self, node, kind, below):
        s = self.source
        if kind in (K.IF_STMT, K.CONDITIONAL_OPERATOR):
            self.note_minimum(kind, below)
        if kind == K.IF_STMT:
            self.condition(below[0], [never, negate])
        elif kind == K.WHILE_STMT:
            self.condition(below[0], [never])
        elif kind == K.DO_STMT:
            self.condition(below[1], [never])
        elif kind == K.FOR_STMT:
            condition = loop_condition(s, node)
            if condition is not None:
                self.condition(condition, [never])
        elif kind == K.CONDITIONAL_OPERATOR:
            self.condition(below[0], [negate])
        elif kind == K.RETURN_STMT and below:
            self.returned(below[0])
        elif kind == K.BINARY_OPERATOR and len(below) == 2 and usable(s, node):
            self.binary(node)
        elif kind == K.CALL_EXPR and usable(s, node):
            self.call(node)

    def note_minimum(self, kind, below):
        """Remember the comparison of a minimum or maximum, also of `if (a < b) a = b;`."""
        values = below[1:]
        if kind == K.IF_STMT:
            is_expression = len(values) == 1 and bare(values[0]).kind == K.BINARY_OPERATOR
            values = children(bare(values[0])) if is_expression else []
        if is_minimum(self.source, below[0], values):
            self.minimum = extent(bare(below[0]))

    def condition(self, node, mutations):
        for mutation in mutations:
            mutation(self.source, node)
        if negate in mutations:
            self.negated = extent(bare(node))

    def returned(self, node):
        s = self.source
        inner = bare(node)
        if self.is_bool and usable(s, node) and inner.kind != K.DECL_REF_EXPR:
            self.condition(node, [negate])
        is_error = inner.kind in (K.CALL_EXPR, K.CONDITIONAL_OPERATOR) or (
            inner.kind == K.DECL_REF_EXPR and inner.spelling.startswith(("HEFT_E_", "HEFT_AGAIN")))
        if self.is_status and is_error and usable(s, node):
            mark = s.add(node, "ok")
            if KEEPING_CALL.fullmatch(inner.spelling or ""):
                s.wrap(node, f"({mark} ? HEFT_OK : (", "))")
            else:
                s.wrap(node, "({ heft_status mutant_s = (",
                       f"); mutant_s && {mark} ? HEFT_OK : mutant_s; }})")

    def binary(self, node):
        s = self.source
        op, begin, end = operator(s, node)
        if op in ("&&", "||"):
            halves(s, node, op)
        elif op in ("==", "!="):
            if extent(node) != getattr(self, "negated", None):
                equal(s, node)
        elif op in OPPOSITE and extent(node) != getattr(self, "minimum", None):
            bound(s, node, op, begin, end)

    def call(self, node):
        s = self.source
        name = node.spelling or ""
        if name == "memcmp":
            mark = s.add(node, "same")
            s.wrap(node, "({ int mutant_c = (", f"); mutant_c && {mark} ? 0 : mutant_c; }})")
        elif SKIPPED_CALL.fullmatch(name) and s.name.startswith(("src/port", "src/local", "cli")):
            none = "(void)0" if node.type.kind == ci.TypeKind.VOID else "0"
            s.wrap(node, f"({s.add(node, 'skip')} ? {none} : (", "))")


def expand_tries(data):
    """Write what HEFT_TRY() stands for, on the same lines, so that its condition has mutants."""
    out, at = [], 0
    for use in TRY.finditer(data):
        depth = 1
        for m in TOKEN.finditer(data, use.end()):
            depth += {b"(": 1, b")": -1}.get(m[0], 0)
            if not depth:
                break
        out += [data[at:use.start()], b"do { heft_status st_ = (", data[use.end():m.start()],
                b"); if (st_) return st_; } while (0)"]
        at = m.end()
    return b"".join(out) + data[at:]


def find(root, name, options):
    """Return the Source of the file with mutants; options are the compiler's."""
    path = str(root / name)
    data = expand_tries((root / name).read_bytes())
    unit = ci.Index.create().parse(path, args=[*options, "-std=c11", "-xc"],
                                   unsaved_files=[(path, data.decode())],
                                   options=ci.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    errors = [str(d) for d in unit.diagnostics if d.severity >= ci.Diagnostic.Error]
    if errors:
        raise ValueError(f"{name}: {errors[0]}")
    every = unit.cursor.get_children()
    mine = [c for c in every if c.location.file and c.location.file.name == path]
    macros = [extent(c) for c in mine if c.kind == K.MACRO_INSTANTIATION]
    source = Source(name, data, macros)
    walk = Walk(source)
    for node in mine:
        if node.kind == K.FUNCTION_DECL and node.is_definition():
            walk.function(node)
    return source
