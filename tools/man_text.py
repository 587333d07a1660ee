"""man_text.py - convert the Markdown of docs to the language of manual pages, man(7)."""
import re

LINK = re.compile(r"\[((?:[^\[\]`]|`[^`]*`)+)\]\(([^)\s]+)\)")
CODE = re.compile(r"(`+)(.+?)\1")
# A placeholder within code: N, FILE, NAME=ID. SIGINT and TMPDIR are names.
PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9_.$/-])([A-Z]+)(?![A-Za-z0-9_./-])")
ITEM = re.compile(r"[-*] ")
WIDE, NARROW = 3, 40  # columns, and characters, of a table that is drawn as a table


def escape(text):
    """Return text without characters that have a meaning for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return text.replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace(
        "~", "\\(ti").replace('"', "\\(dq")


def prose(text):
    """Escape prose; hyphens and apostrophes stay."""
    return escape(text).replace("\\-", "-").replace("\\(aq", "'")


def option_code(text):
    """Return code in bold, placeholders in italics."""
    parts = PLACEHOLDER.split(text)
    return "".join(f"\\fI{escape(p)}\\fR" if i % 2 else f"\\fB{escape(p)}\\fR" if p else ""
                   for i, p in enumerate(parts))


def bold_code(text):
    return f"\\fB{escape(text)}\\fR"


def inline(text, link, code=bold_code):
    """Convert code, emphasis and links. link(text, target) returns the text of a link."""
    text = LINK.sub(lambda m: link(m[1], m[2]), text)
    out, end = [], 0
    for m in CODE.finditer(text):
        out += [emphasis(text[end:m.start()]), code(m[2].strip().replace("\\|", "|"))]
        end = m.end()
    return "".join([*out, emphasis(text[end:])])


def emphasis(text):
    """Convert *emphasis* and \\| of text without code."""
    text = text.replace("\\|", "|")
    parts = re.split(r"(?<![\w*])\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}(?![\w*])", text)
    return "".join(f"\\fI{prose(p)}\\fR" if i % 2 else prose(p) for i, p in enumerate(parts))


def line_of(text):
    """Protect a line of text that roff would read as a request."""
    return "\\&" + text if text.startswith((".", "'")) else text


# ---- blocks ----


def cells(row):
    return [c.strip() for c in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def blocks(text):
    """Yield (kind, content) of each block: heading, code, table, list, paragraph."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        begin, line = i, lines[i]
        if line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            yield "heading", (level, line[level:].strip())
            i += 1
        elif line.startswith("```"):
            i = lines.index("```", i + 1) + 1
            yield "code", lines[begin + 1:i - 1]
        elif line.startswith("    "):
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i]):
                i += 1
            yield "code", [each[4:] for each in lines[begin:i]]
        elif line.startswith("|"):
            while i < len(lines) and lines[i].startswith("|"):
                i += 1
            yield "table", [cells(r) for r in lines[begin:i] if not re.fullmatch(r"[|:\- ]+", r)
                            or r == lines[begin]]
        elif ITEM.match(line):
            while i < len(lines) and (ITEM.match(lines[i]) or lines[i].startswith("  ")):
                i += 1
            yield "list", re.split(r"\n[-*] ", "\n" + "\n".join(lines[begin:i]))[1:]
        elif line.strip():
            while i < len(lines) and lines[i].strip() and not (
                    lines[i].startswith(("|", "```", "#")) or ITEM.match(lines[i])):
                i += 1
            yield "paragraph", " ".join(lines[begin:i])
        else:
            i += 1


class Page:
    """A manual page that is being written."""

    def __init__(self, name, section, link):
        self.lines = [f'.TH {name.upper()} {section} "" heft "Heft Manual"', ".nh", ".ad l"]
        self.link, self.name, self.section = link, name, section

    def heading(self, title):
        title = title if title.startswith("<") else title.upper()
        self.lines.append(f'.SH "{prose(title)}"')

    def subheading(self, title):
        self.lines.append(f'.SS "{inline(title, self.link)}"')

    def inline(self, text, code=bold_code):
        return inline(" ".join(text.split()), self.link, code)

    def begin_paragraph(self):
        """Begin a paragraph, unless a heading has begun a paragraph."""
        if not self.lines[-1].startswith((".SH", ".SS")):
            self.lines.append(".PP")

    def paragraph(self, text):
        self.begin_paragraph()
        self.lines.append(line_of(self.inline(text)))

    def raw(self, *lines):
        self.lines += lines

    def code(self, lines):
        while lines and not lines[-1].strip():
            lines = lines[:-1]
        body = (line_of(escape(line)) or "\\&" for line in lines)
        self.begin_paragraph()
        self.lines += [".RS 4", ".EX", *body, ".EE", ".RE"]

    def item(self, term, text, code=option_code):
        self.lines += [".TP", line_of(self.inline(term, code)), line_of(self.inline(text)) or "\\&"]

    def items(self, texts):
        for text in texts:
            self.lines += [".IP \\(bu 3", line_of(self.inline(text))]

    def table(self, rows):
        """Write a table as a list if there are two columns, or if the text of a column is long."""
        head = rows[0]
        longest = [max(len(row[i]) for row in rows) for i in range(len(head) - 1)]
        if len(head) < WIDE:
            for term, *text in rows[1:]:
                self.item(term or "also", " ".join(text), bold_code)
        elif sum(longest) > NARROW:
            for row in rows[1:]:
                facts = (f"{title}: {cell}" if title else cell
                         for title, cell in zip(head[1:], row[1:]) if cell)
                self.item(row[0], "; ".join(facts), bold_code)
        else:
            self.drawn_table(rows)

    def drawn_table(self, rows):
        titles = " ".join(["lb"] * len(rows[0]))
        columns = " ".join(["l"] * (len(rows[0]) - 1) + ["lx"])
        self.begin_paragraph()
        self.lines += [".TS", "allbox tab(\t);", titles, f"{columns}."]
        for row in rows:
            cells_of_row = [self.inline(c) or "\\&" for c in row]
            last = f"T{{\n{line_of(cells_of_row[-1])}\nT}}"
            self.lines.append("\t".join([*cells_of_row[:-1], last]))
        self.lines.append(".TE")

    def block(self, kind, content):
        if kind == "heading":
            self.subheading(content[1])
        else:
            getattr(self, {"list": "items"}.get(kind, kind))(content)

    def see_also(self, names):
        """List pages, each as name(section)."""
        self.heading("See also")
        parts = [re.fullmatch(r"(.*)(\(\d\))", n) for n in names]
        self.lines += [f".BR {escape(m[1])} {m[2]}" + ("," if m is not parts[-1] else "")
                       for m in parts]

    def text(self):
        first = "'\\\" t\n" if ".TS" in self.lines else ""
        return first + "\n".join(self.lines) + "\n"
