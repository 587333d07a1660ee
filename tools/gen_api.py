#!/usr/bin/env python3
"""gen_api.py [--check]: write docs/api.md from the public headers.

The first comment of a header says "Stability: stable" or "provisional". The page has an index, and
section by section every public function, callback, structure and enumeration with the comment, and
the function of tests/api_examples.c after the comment "HEADER: SECTION", which must call a function
of the section. With --check the page is compared instead; TAP on stdout."""
import itertools
import pathlib
import re
import sys
import textwrap

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/api.md"
EXAMPLES = ROOT / "tests/api_examples.c"
HEADERS = ["heft.h", "source.h", "memory_limits.h", "write.h", "check.h", "editing.h",
           "split.h", "ids.h", "vocabulary.h", "companion.h", "scheme.h", "block_rows.h",
           "blend.h", "delta.h", "lora.h", "map.h", "mix.h", "gguf_texts.h", "quantise.h",
           "doctor.h", "share.h", "sign.h", "params.h", "remote.h", "heft_ext.h"]
STABILITY = re.compile(r"/\*(?:(?!\*/).)*Stability: (stable|provisional)\.", re.S)
SECTION = re.compile(r"^/\* ---- (.*?) -+ \*/$", re.M)
BLOCK = re.compile(
    r"^(?P<comment>/\*(?:(?!\*/).)*\*/\n)?(?P<code>(?:HEFT_API|static inline) "
    r"(?:(?!\n\n).)*?(?:;|\n\}))(?=[ \n])",
    re.S | re.M)
TYPE = re.compile(
    r"^(?P<comment>/\*(?:(?!\*/).)*\*/\n)?(?P<code>(?:typedef (?:struct|enum)|enum) ?\w* ?\{"
    r".*?^\} ?(?P<name>\w*);)", re.S | re.M)
CALLBACK = re.compile(
    r"^(?P<comment>/\*(?:(?!\*/).)*\*/\n)?(?P<code>typedef \w+ \(\*(?P<name>\w+)\)\([^;]*;)",
    re.S | re.M)
HEAD = """# The library, function by function

Written by `tools/gen_api.py` from the headers in [include/heft](../include/heft); the examples \
are compiled and run by
the tests. The rules for ownership, errors, threads and units are at the top of \
[heft.h](../include/heft/heft.h);
[guide.md](guide.md) shows whole tasks, [examples](../examples) whole programs.
"""


def comment_to_markdown(comment):
    """Convert a comment to Markdown: lines indented by two begin items of a list."""
    lines = [
        re.sub(r"^\s*(/\*+|\*)? ?", "", line).rstrip()
        for line in comment.strip().removesuffix("*/").splitlines()
    ]
    out = []
    for line in lines:
        deep = len(line) - len(line.lstrip())
        if deep >= 4 and not (out and out[-1].startswith("- ")):
            out.append(line)  # code
        elif deep == 2:
            out.append("- " + re.sub(r"^(HEFT_\w+) +", r"`\1`: ", line.strip()))
        elif not line or not out or not out[-1] or (
                not deep and out[-1].startswith(("- ", "    "))):
            out.append(line.strip())
        else:
            out[-1] = f"{out[-1]} {line.strip()}".strip()
    return fence(out).strip()


def fence(lines):
    """Wrap paragraphs and list items; put indented lines between fences."""
    out = []
    for is_code, group in itertools.groupby(lines, lambda line: line.startswith("    ")):
        if is_code:
            out += ["", "```c", *(line[4:] for line in group), "```", ""]
        else:
            out += (textwrap.fill(line, 120, break_on_hyphens=False,
                                  subsequent_indent="  " * line.startswith("- "))
                    for line in group)
    return "\n".join(out)


def signature(code):
    """Return the declaration without attributes and comments."""
    code = re.sub(r"\b(HEFT_API|HEFT_MUST_CHECK|static inline)\s+", "",
                  code).split("\n{")[0].rstrip(";")
    return re.sub(r"\n\s+", "\n    ", re.sub(r"\s*/\*.*?\*/", "", code, flags=re.S)) + ";"


def sentence(text):
    """Return a remark as a sentence, with a capital letter and a full stop."""
    ends = text.endswith((".", ":", "```")) or "\n- " in text
    return text[:1].upper() + text[1:] + ("" if ends or not text else ".")


def functions(text):
    """Yield (place, name, signature, comment): the comment before or on the same line."""
    for m in BLOCK.finditer(text):
        name = re.search(r"(\w+)\(", m["code"])
        own = comment_to_markdown(m["comment"]) if m["comment"] else ""
        trailing = re.match(r" */\*(.*?)\*/", text[m.end():], re.S)
        own = own or (comment_to_markdown(trailing[0].strip()) if trailing else "")
        if name:
            yield m.start(), name[1], signature(m["code"]), sentence(own)


def types(text):
    """Yield (place, name, declaration, comment) of structures, enumerations and callbacks."""
    for m in itertools.chain(TYPE.finditer(text), CALLBACK.finditer(text)):
        name = m["name"] or re.search(r"\{\s*(?:/\*.*?\*/\s*)?(\w+)", m["code"], re.S)[1] + ", ..."
        yield m.start(), name, m["code"], comment_to_markdown(m["comment"] or "")


def stability(header):
    """Return what the first comment of a header promises, "stable"."""
    return STABILITY.match((ROOT / "include/heft" / header).read_text())[1]


def sections(header):
    """Yield (title, text) of a header's sections."""
    parts = SECTION.split((ROOT / "include/heft" / header).read_text())
    return ((re.split(r"[(:]", title)[0].strip(), text)
            for title, text in zip(parts[1::2], parts[2::2]))


def outside_sections(header):
    """Return the functions of a header before its first section."""
    head = SECTION.split((ROOT / "include/heft" / header).read_text())[0]
    return [f"{header}: {name} is in no section" for _, name, *_ in functions(head)]


def examples():
    """Return {"header: section": code} of the example functions."""
    found = re.findall(r"^/\* (\w+\.h: [^*]*?) \*/\n(static .*?^\}$)(?=\n\n(?:/\*|int main))",
                       EXAMPLES.read_text(), re.M | re.S)
    return {title: re.sub(r"^static ", "", code, flags=re.M) for title, code in found}


def programs():
    """Return a list of the complete programs, each with the first comment of its file."""
    lines = ["## Complete programs\n"]
    for path in sorted((ROOT / "examples").rglob("*.c")):
        if not re.search(r"^int (?:main|board_run)\(", path.read_text(), re.M):
            continue
        first = re.match(r"/\* (.*?)(?:\n \*\n|\*/)", path.read_text(), re.S)[1]
        text = " ".join(first.replace("\n *", " ").split()).split(" - ", 1)[1].split(". ")[0]
        name = path.relative_to(ROOT / "examples")
        lines.append(f"- [{name}](../examples/{name}): {text.rstrip('.')}.")
    return "\n".join(lines) + "\n"


def anchor(name):
    return re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")


def index(entries):
    """Return a table of the functions of each section."""
    rows = [f"| {header} | {stability(header)} | {title} | "
            f"{', '.join(f'[{n}](#{anchor(n)})' for n in names)} |"
            for header, title, names in entries]
    return "\n".join(["## Index\n", "| header | stability | section | functions |",
                      "|---|---|---|---|", *rows, ""])


def section(title, members, sample):
    """Return the Markdown of a section."""
    out = [f"### {title}\n", *([f"```c\n{sample}\n```\n"] if sample else [])]
    for _, name, declared, comment in members:
        out.append(f"#### {name}\n\n```c\n{declared}\n```\n")
        out += [comment + "\n"] if comment else []
    return out


def calls_any(sample, names):
    return any(re.search(rf"\b{name}\(", sample) for name in names)


def page():
    samples, wrong, used, out, entries = examples(), [], set(), [], []
    for header in HEADERS:
        out.append(f"## {header}\n\nStability: [{stability(header)}](abi.md#stability).\n")
        for title, text in sections(header):
            key, calls = f"{header}: {title}", list(functions(text))
            title = title[:1].upper() + title[1:]
            out += section(title, sorted([*calls, *types(text)]), samples.get(key))
            names = [name for _, name, *_ in calls]
            if names:
                used.add(key)
                entries.append((header, title, names))
                if not calls_any(samples.get(key, ""), names):
                    wrong.append(f"no example calls a function of {key}")
    text = "\n".join([HEAD, programs(), index(entries), *out])
    return text, wrong + [f"there is no section {k}" for k in samples if k not in used]


def main():
    text, wrong_examples = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    undocumented = re.findall(r"^#### (\w+)\n\n```c\n(?!typedef|enum)[^`]*```\n\n(?=#|\Z)",
                              text, re.M)
    return tap.report([
        ("docs/api.md is that of the headers",
         [] if PAGE.exists() and PAGE.read_text() == text else ["run tools/gen_api.py"]),
        ("every section has an example, which calls a function of the section", wrong_examples),
        ("every function has a comment", undocumented),
        ("every function is in a section", [w for h in HEADERS for w in outside_sections(h)]),
    ])


if __name__ == "__main__":
    sys.exit(main())
