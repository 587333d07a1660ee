#!/usr/bin/env python3
"""gen_man.py DIR1 DIR3 DIR7 [--depfile FILE]: write the manual pages from the documents.

heft(1) and a page for each command come from docs/cli.md, heft-formats(7) from docs/formats, and
section 3 from the comments of the public headers. Nothing of the build is run."""
import argparse
import os
import pathlib
import re
import shutil

import gen_api
import man_text

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
COMMANDS_PAGE = DOCS / "cli.md"
AS_FOR_CONVERT = "as for `convert`"
NOT_IN_OVERVIEW = ("Commands", )
ABOUT_PAGE = re.compile(r"\bpage|\bdemo\b|^It says|the references? (is|are)", re.I)
FORMATS_FIRST = ["safetensors", "burnpack", "burn-record", "gguf", "mag", "gptrs", "npy", "embd",
                 "ztensor", "pytorch", "flax", "onnx",
                 "keras"]


# ---- docs/cli.md ----


def sections(text):
    """Return (preamble, {title: text}) of the sections with two number signs, outside of code."""
    out, title, is_code = {"": []}, "", False
    for line in text.split("\n"):
        is_code ^= line.startswith("```")
        if line.startswith("## ") and not is_code:
            title = line[3:].strip()
            out[title] = []
        else:
            out[title].append(line)
    return {t: "\n".join(lines) for t, lines in out.items()}


class Manual:
    """The sections of docs/cli.md and the table of commands."""

    def __init__(self):
        self.parts = sections(COMMANDS_PAGE.read_text())
        rows = re.findall(r"^\| \[`heft (\w+)([^`]*)`\]\(#\w+\) \| (.*) \|$",
                          self.parts["Commands"], re.M)
        self.commands = {name: (args.strip(), purpose) for name, args, purpose in rows}
        self.convert = dict(self.options("convert"))

    def options(self, command):
        """Yield (option, effect) for each spelling of an option, "--force"."""
        for kind, content in man_text.blocks(self.parts[command]):
            if kind == "table" and content[0][0] == "option":
                for term, effect in content[1:]:
                    for spelling in re.findall(r"--[a-z-]+", term):
                        yield spelling, (term, effect)

    def row(self, term, effect):
        """Yield the rows of an option, with the words of `convert` in place of a reference."""
        if effect != AS_FOR_CONVERT:
            yield term, effect.replace(AS_FOR_CONVERT, "as for `heft-convert`(1)")
            return
        seen = []
        for spelling in re.findall(r"--[a-z-]+", term):
            found = self.convert.get(spelling, (term, effect))
            if found not in seen:
                seen.append(found)
                yield found

    def link(self, page):
        """Return the function that names the target of a link on a page."""

        def of(text, target):
            path, _, anchor = target.partition("#")
            if not path and anchor in self.commands and anchor != page:
                return f"`heft-{anchor}`(1)" if "`" in text else f"{text} (`heft-{anchor}`(1))"
            return text

        return of


def split_section(text):
    """Split a command's section: (examples, description, options, notes, subsections)."""
    examples, description, options, notes, titled = [], [], [], [], []
    found, lead = list(man_text.blocks(text)), None
    for i, (kind, content) in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else (None, None)
        if kind == "heading":
            titled.append((content[1], []))
        elif titled:
            titled[-1][1].append((kind, content))
        elif kind == "code" and not (description or options):
            examples += content
        elif after[0] == "table" and after[1][0][0] == "option" and kind == "paragraph":
            lead = content
        elif kind == "table" and content[0][0] == "option":
            options.append((lead, content))
            lead = None
        else:
            (notes if options else description).append((kind, content))
    return examples, description, options, notes, titled


def sentence(text):
    """Return an effect as a sentence, without a reference to a section of the same page."""
    text = re.sub(r" \(\[details\]\([^)]*\)\)", "", text)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def put_options(page, manual, options):
    page.heading("Options")
    for lead, table in options:
        if lead and lead.startswith("Options "):
            page.subheading(lead.rstrip(":"))
        elif lead:
            page.paragraph(lead)
        for term, effect in table[1:]:
            for spelled, text in manual.row(term, effect):
                page.item(spelled, sentence(text))
    page.paragraph("The options that every command has, such as `--color`, `--key` and `--quiet`, "
                   "are in `heft`(1).")


def put_exit_status(page, manual, command):
    page.heading("Exit status")
    for kind, content in man_text.blocks(manual.parts["Exit status"]):
        if kind != "table":
            break
        for code, meaning in content[1:]:
            if code != "1" or f"`{command}" in meaning or command is None:
                page.item(f"`{code}`", meaning)


def put_blocks(page, found):
    for kind, content in found:
        page.block(kind, content)


def command_page(manual, command):
    args, purpose = manual.commands[command]
    page = man_text.Page(f"heft-{command}", 1, manual.link(command))
    examples, description, options, notes, titled = split_section(manual.parts[command])
    page.heading("Name")
    page.raw(f"heft-{command} \\- {man_text.inline(purpose, page.link, man_text.escape)}")
    page.heading("Synopsis")
    page.raw(f"\\fBheft {command}\\fR [\\fIOPTION\\fR...] {synopsis_args(args)}".rstrip())
    page.heading("Description")
    put_blocks(page, description or [("paragraph", f"{purpose[0].upper()}{purpose[1:]}.")])
    if options:
        put_options(page, manual, options)
    if notes:
        page.heading("Notes")
        put_blocks(page, notes)
    for title, found in titled:
        page.heading(title)
        put_blocks(page, found)
    put_exit_status(page, manual, command)
    if examples:
        page.heading("Examples")
        page.code(examples)
    page.see_also(["heft(1)", "heft-formats(7)"])
    return page.text()


def synopsis_args(args):
    return re.sub(r"[A-Z]+", lambda m: f"\\fI{m[0]}\\fR", args)


def overview(manual):
    """Return heft(1)."""
    page = man_text.Page("heft", 1, manual.link(""))
    page.heading("Name")
    page.raw("heft \\- read, write, verify, compare, convert and edit files of model weights")
    page.heading("Synopsis")
    page.raw("\\fBheft\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]", ".br",
             "\\fBheft\\fR [\\fB\\-\\-no\\-pager\\fR] \\fICOMMAND\\fR ...", ".br",
             "\\fBheft help\\fR \\fICOMMAND\\fR", ".br", "\\fBheft \\-\\-version\\fR")
    page.heading("Description")
    paragraphs = [c for kind, c in man_text.blocks(manual.parts[""]) if kind == "paragraph"]
    page.paragraph(paragraphs[-1])
    page.heading("Commands")
    for name, (args, purpose) in manual.commands.items():
        page.raw(".TP", f".BR heft\\-{name} (1) \" {synopsis_args(args)}\"",
                 page.inline(purpose[0].upper() + purpose[1:] + "."))
    put_blocks(page, [b for b in man_text.blocks(manual.parts["Commands"])
                      if b[0] not in ("table", "heading")][:1])
    page.subheading("Words")
    put_blocks(page, list(man_text.blocks(manual.parts["Commands"].split("### Words")[1])))
    for title, text in manual.parts.items():
        if title and title not in manual.commands and title not in NOT_IN_OVERVIEW:
            page.heading(title)
            put_blocks(page, man_text.blocks(text))
    page.see_also([*(f"heft-{name}(1)" for name in manual.commands), "heft-formats(7)",
                   "libheft(3)"])
    return page.text()


# ---- docs/formats ----


def facts(text):
    """Yield the blocks before the first section, without sentences about the page."""
    head = re.split(r"^## ", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)[0]
    for kind, content in man_text.blocks(head):
        if kind == "paragraph":
            sentences = re.split(r"(?<=\.) (?=[A-Z`])", content)
            content = " ".join(s for s in sentences if not s.endswith(":")
                               and not ABOUT_PAGE.search(s))
        if content and kind != "heading":
            yield kind, content


def formats_page():
    page = man_text.Page("heft-formats", 7, lambda text, target: text)
    page.heading("Name")
    page.raw("heft-formats \\- the formats of model weights that heft reads and writes")
    page.heading("Description")
    page.paragraph("The format of a file is recognised by its content, never by its name. The "
                   "suffix of an output chooses the target format, unless `--to` names it. "
                   "`heft formats` lists what a build supports, `--format-version` of "
                   "`heft-convert`(1) chooses the generation that is written.")
    names = FORMATS_FIRST + sorted({p.stem for p in (DOCS / "formats").glob("*.md")} -
                                   set(FORMATS_FIRST))
    for name in names:
        text = (DOCS / "formats" / f"{name}.md").read_text()
        page.heading(re.search(r"^# (.*)$", text, re.M)[1].replace("`", ""))
        for kind, content in facts(text):
            page.block(kind, content)
    page.see_also(["heft(1)", "heft-convert(1)", "heft-doctor(1)", "heft-verify(1)"])
    return page.text()


# ---- the headers ----


def put_members(page, title, members):
    if members:
        page.heading(title)
    for _, name, declared, comment in members:
        page.subheading(name)
        if title == "Types":
            page.code(declared.split("\n"))
        put_blocks(page, man_text.blocks(comment))


def section_pages(header, title, text, sample):
    """Yield (name, page): the page of a section, and references for further names."""
    calls, types = sorted(gen_api.functions(text)), sorted(gen_api.types(text))
    names = [name for _, name, *_ in calls or types if "," not in name]
    if not names:
        return
    page = man_text.Page(names[0], 3, lambda text, target: text)
    page.heading("Name")
    page.raw(f"{', '.join(names)} \\- {man_text.prose(title[0].lower() + title[1:])}")
    page.heading("Synopsis")
    page.code([f"#include <heft/{header}>", "",
               *"\n".join(declared for _, _, declared, _ in calls).split("\n")])
    page.paragraph("Link with `-lheft`; `pkg-config --cflags --libs heft` prints the flags.")
    put_members(page, "Description", calls)
    put_members(page, "Types", types)
    if sample:
        page.heading("Examples")
        page.code(sample.split("\n"))
    page.see_also(["libheft(3)", "heft(1)"])
    yield names[0], page.text()
    for name in names[1:]:
        yield name, f".so man3/{names[0]}.3\n"


def library_pages():
    samples, index = gen_api.examples(), []
    for header in gen_api.HEADERS:
        for title, text in gen_api.sections(header):
            found = list(section_pages(header, title, text, samples.get(f"{header}: {title}")))
            index += [(header, title, found[0][0])] if found else []
            yield from found
    yield "libheft", library_overview(index)


def library_overview(index):
    page = man_text.Page("libheft", 3, lambda text, target: text)
    page.heading("Name")
    page.raw("libheft \\- read, write, verify and convert files of model weights")
    page.heading("Synopsis")
    page.code(["#include <heft/heft.h>"])
    page.paragraph("Link with `-lheft`; `pkg-config --cflags --libs heft` prints the flags.")
    page.heading("Description")
    first = re.match(r"/\*.*?\*/", (ROOT / "include/heft/heft.h").read_text(), re.S)[0]
    text = gen_api.comment_to_markdown(first).split(" - ", 1)[1]
    put_blocks(page, man_text.blocks(text[0].upper() + text[1:]))
    for header in gen_api.HEADERS:
        page.heading(f"<heft/{header}>")
        for each, title, name in index:
            if each == header:
                page.item(f"`{name}`(3)", title[0].upper() + title[1:] + ".")
    page.see_also(["heft(1)", "heft-formats(7)"])
    return page.text()


# ---- files ----


def pages():
    """Yield (section, name, text) of every page."""
    manual = Manual()
    yield 1, "heft", overview(manual)
    for command in manual.commands:
        yield 1, f"heft-{command}", command_page(manual, command)
    yield 7, "heft-formats", formats_page()
    for name, text in library_pages():
        yield 3, name, text


def sources():
    return [COMMANDS_PAGE, gen_api.EXAMPLES, *sorted((DOCS / "formats").glob("*.md")),
            *(ROOT / "include/heft" / h for h in gen_api.HEADERS), *(ROOT / "tools" / t for t in (
                "gen_man.py", "gen_api.py", "man_text.py"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs=3, type=pathlib.Path)
    parser.add_argument("--depfile", type=pathlib.Path)
    options = parser.parse_args()
    folders = dict(zip((1, 3, 7), options.folders))
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for section, name, text in pages():
        (folders[section] / f"{name}.{section}").write_text(text)
    for folder in folders.values():
        os.utime(folder) # the build compares the times of the folders
    if options.depfile:
        targets = " ".join(str(f) for f in options.folders)
        options.depfile.write_text(f"{targets}: {' '.join(str(s) for s in sources())}\n")


if __name__ == "__main__":
    main()
