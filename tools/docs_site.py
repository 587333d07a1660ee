#!/usr/bin/env python3
"""docs_site.py OUT [--page FOLDER]: make a site of the documents in OUT/site, with Sphinx.

OUT/source gets the documents as the site has them: the long ones are split, one page for each
command, task and header, links lead to the new places, and linked sources have pages, too. Names
of the library in code become links. FOLDER is the page that opens models; it becomes
OUT/site/inspect. A link that leads nowhere, and every warning of Sphinx, is an error."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Documents that are split at their headings of level 2: pattern of the titles that get a page.
SPLIT = {"docs/cli.md": r"[a-z]+", "docs/guide.md": r".+", "docs/api.md": r"\w+\.h"}
# Folders whose files get pages when the folder is linked.
SHOWN = ("examples", "examples/board", "include/heft")
# The order of the site; documents without a place here are at the end.
PLACES = [
    ("Use", ["guide", "cli", "python", "web", "api", "examples"]),
    ("Formats", ["formats", "formats/*", "casting", "quantisation", "gguf", "maps",
                 "blend", "delta"]),
    ("Large models", ["shards", "remote", "scale", "params", "performance"]),
    ("What Heft says", ["findings", "profiles", "hash", "edit"]),
    ("Elsewhere", ["windows", "platforms", "boards"]),
    ("The project", ["CHANGELOG", "SECURITY", "reliability", "conformance", "abi", "glossary",
                     "architecture", "CONTRIBUTING", "STYLE", "testing", "adding-*"]),
]
INSPECT = ('\n<p><a href="inspect/index.html">Open a model in this browser</a>: '
           "nothing is uploaded.</p>\n")


class DeadLinks(Exception):
    """The links that lead nowhere, a line for each."""


def documents():
    """Return {path in the tree: name on the site}."""
    found = {"README.md": "index", "examples/README.md": "examples", "web/README.md": "npm"}
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        name = path.relative_to(ROOT).as_posix()
        found.setdefault(name, name.removeprefix("docs/")[:-3])
    return {name: page for name, page in sorted(found.items()) if (ROOT / name).exists()}


# ---- headings, and what is split --------------------------------------------------------------

def headings(text):
    """Yield (line number, level, title) of headings outside of code."""
    fenced = False
    for i, line in enumerate(text.splitlines()):
        fenced ^= line.startswith("```")
        found = re.match(r"(#+) (.*)", line)
        if found and not fenced:
            yield i, len(found[1]), found[2]


def slug(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def file_name(title):
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


def slugs(text):
    """Yield the anchor of each heading; a second one of the same title ends in -1."""
    seen = {}
    for _, _, title in headings(text):
        name = slug(title)
        seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{seen[name]}" if seen[name] else name


def raised(text):
    """Return the text of a section as a page: each heading one level higher."""
    lines = text.splitlines()
    for i, level, title in headings(text):
        lines[i] = "#" * max(level - 1, 1) + " " + title
    return "\n".join(lines) + "\n"


def parts(name, page, text):
    """Yield (page, text) of a document: one, or that of the beginning and one for each section."""
    lines = text.splitlines(keepends=True)
    tops = [(i, title) for i, level, title in headings(text) if level == 2 and name in SPLIT]
    if not tops:
        yield page, text
        return
    ends = [i for i, _ in tops[1:]] + [len(lines)]
    kept, sections = "".join(lines[:tops[0][0]]), []
    for (begin, title), end in zip(tops, ends):
        if re.fullmatch(SPLIT[name], title):
            sections.append((f"{page}/{file_name(title)}", "".join(lines[begin:end])))
        else:
            kept += "".join(lines[begin:end])
    yield page, kept + toctree([p for p, _ in sections], page)
    yield from ((p, raised(section)) for p, section in sections)


def toctree(pages, where, caption=""):
    """Return a list of pages for the sidebar."""
    base = os.path.dirname(where)
    rows = [os.path.relpath(p, base or ".") for p in pages]
    title = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + title + "\n" + "\n".join(rows) + "\n```\n"


# ---- links ------------------------------------------------------------------------------------

class Site:
    """All pages by name, and where each heading of a document has gone."""

    def __init__(self):
        self.documents = documents()
        self.pages, self.origin, self.anchors, self.dead = {}, {}, {}, []
        self.copied = set()
        for name, page in self.documents.items():
            text = (ROOT / name).read_text(encoding="utf-8")
            places = []
            for part, content in parts(name, page, text):
                if part in self.pages:
                    self.dead.append(f"{name}: two pages would be {part}")
                self.pages[part], self.origin[part] = content, name
                places += [(title, part, new) for (_, _, title), new in
                           zip(headings(content), slugs(content))]
            self.anchors[name] = dict(zip(slugs(text), self.in_order(text, places)))
        for part in list(self.origin):
            self.pages[part] = self.relinked(part)

    @staticmethod
    def in_order(text, places):
        """Yield (page, anchor) for the headings of a document as it was."""
        left = list(places)
        for _, _, title in headings(text):
            place = next(p for p in left if p[0] == title)
            left.remove(place)
            yield place[1:]

    def relinked(self, page):
        """Return the text of a page whose links lead to the pages of the site."""
        pieces = re.split(r"(^```.*?^```$)", self.pages[page], flags=re.M | re.S)
        for i in range(0, len(pieces), 2):
            pieces[i] = re.sub(r'^<picture>.* srcset="(.+?)"><img src="(.+?)" alt="(.+?)".*',
                               lambda m: self.pictures(page, *m.groups()), pieces[i], flags=re.M)
            pieces[i] = re.sub(r"(?<=\]\()([^)\s]+)(?=\))",
                               lambda m: self.target(page, m[1]), pieces[i])
            pieces[i] = re.sub(r"^<img src=.*\n", "", pieces[i], flags=re.M)
        return "".join(pieces)

    def pictures(self, page, dark, light, alt):
        """Return a picture for dark pages and one for light pages, which the theme chooses from."""
        return "".join(f"\n```{{image}} {self.target(page, path)}\n"
                       f':alt: "{alt}"\n:class: {kind}\n```\n'
                       for path, kind in ((light, "only-light"), (dark, "only-dark")))

    def target(self, page, link):
        if re.match(r"[a-z]+:", link):
            return link
        where, _, anchor = link.partition("#")
        origin = self.origin[page]
        name = os.path.normpath(os.path.join(os.path.dirname(origin), where)) if where else origin
        base = os.path.dirname(page) or "."
        if name in self.documents:
            to, new = self.documents[name], ""
            if anchor:
                if anchor not in self.anchors[name]:
                    self.dead.append(f"{origin}: {link} has no such heading")
                to, new = self.anchors[name].get(anchor, (to, ""))
            if to == page and new:
                return "#" + new
            return os.path.relpath(to + ".md", base) + ("#" + new if new else "")
        if not (ROOT / name).exists():
            self.dead.append(f"{origin}: {link} does not exist")
        elif name.endswith((".svg", ".png")):
            self.copied.add(name)
            return os.path.relpath("files/" + name, base)
        return os.path.relpath(self.source_page(name) + ".md", base)

    def source_page(self, name):
        """Make the page of a file or folder of the tree; return its name."""
        page = f"files/{name}" if not (ROOT / name).is_dir() else f"files/{name}/index"
        path = ROOT / name
        if page in self.pages or not path.exists():
            return page
        self.pages[page] = ""
        if path.is_dir():
            rows = []
            for p in sorted(path.iterdir()):
                row = p.relative_to(ROOT).as_posix()
                if p.is_file() and name in SHOWN and p.suffix != ".md":
                    target = os.path.relpath(self.source_page(row) + ".md", os.path.dirname(page))
                    rows.append(f"- [{p.name}]({target})")
                elif p.name != "__pycache__":
                    rows.append(f"- {p.name}")
            text = "\n".join(rows)
        else:
            kind = {".c": "c", ".h": "c", ".py": "python", ".ts": "ts"}.get(path.suffix, "text")
            text = f"``````{kind}\n{path.read_text(encoding='utf-8')}``````"
        self.pages[page] = f"---\norphan: true\n---\n\n# {name}\n\n{text}\n"
        return page

    def sidebar(self):
        """Return the lists of the sidebar: the places, then whatever has none."""
        rest = [p for n, p in self.documents.items() if p != "index"]
        out = ""
        for caption, patterns in PLACES:
            chosen = [p for pattern in patterns for p in list(rest)
                      if pathlib.PurePath(p).match(pattern) and p.count("/") == pattern.count("/")]
            rest = [p for p in rest if p not in chosen]
            out += toctree(chosen, "index", caption)
        return out + (toctree(rest, "index", "More") if rest else "")

    def write(self, folder, inspect):
        if self.dead:
            raise DeadLinks("\n".join(self.dead))
        shutil.rmtree(folder, ignore_errors=True)
        self.pages["index"] += (INSPECT if inspect else "") + self.sidebar()
        for page, text in self.pages.items():
            path = folder / f"{page}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in self.copied:
            path = folder / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, path)
        shutil.copy(ROOT / "docs/mark.svg", folder)
        for path in (ROOT / "tools/site").iterdir():
            if path.is_file():
                shutil.copy(path, folder)

    def names(self):
        """Return {name of the library: address of its entry}, with the anchors of docutils."""
        return {name: f"{page}.html#{anchor.replace('_', '-')}"
                for name, (page, anchor) in self.anchors["docs/api.md"].items()
                if name.startswith("heft_")}


# ---- the site ---------------------------------------------------------------------------------

def link_names(folder, names):
    """Make names of the library in the code of pages links to their entries."""
    token = re.compile(r'(<span class="(?:n|nf|kt|pre)">)(heft_\w+)((?:\(\))?</span>)')
    for path in folder.rglob("*.html"):
        page = path.relative_to(folder).as_posix()
        base = os.path.dirname(page) or "."

        def linked(m, page=page, base=base):
            to = names.get(m[2])
            if not to or to.startswith(page + "#"):
                to = "#" + to.partition("#")[2] if to else None
            else:
                to = os.path.relpath(to, base)
            return f'{m[1]}<a href="{to}">{m[2]}</a>{m[3]}' if to else m[0]
        pieces = re.split(r"(<a .*?</a>)", path.read_text(encoding="utf-8"), flags=re.S)
        path.write_text("".join(piece if i % 2 else token.sub(linked, piece)
                                for i, piece in enumerate(pieces)), encoding="utf-8")


def mend_theme(folder):
    """Make up for what Debian 12 leaves out of the theme: its script imports another one, which
    no browser does for a page without a server, and only a click makes pages dark."""
    script = folder / "_static/scripts/furo.js"
    text = script.read_text(encoding="utf-8")
    imported = re.match(r'import Gumshoe from "\./(.+)";\n', text)
    if imported:
        other = (script.parent / imported[1]).read_text(encoding="utf-8")
        script.write_text(other + text[imported.end():], encoding="utf-8")
    style = folder / "_static/styles/furo.css"
    text = style.read_text(encoding="utf-8")
    if "prefers-color-scheme" not in text:
        dark = re.search(r'@media not print \{\s*(body\[data-theme="dark"\] \{.*?\})', text,
                         re.S)[1]
        auto = dark.replace('"dark"', '"auto"')
        # "not print and (...)" would negate both, and make every page dark.
        style.write_text(f"{text}\n@media screen and (prefers-color-scheme: dark) {{{auto}}}\n",
                         encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    args = parser.parse_args()
    site, html = Site(), args.out / "site"
    try:
        site.write(args.out / "source", args.page)
    except DeadLinks as links:
        sys.exit(f"links that lead nowhere:\n{links}")
    shutil.rmtree(html, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html",
                           "-d", args.out / "doctrees", args.out / "source", html], check=False)
    if done.returncode:
        return done.returncode
    link_names(html, site.names())
    mend_theme(html)
    shutil.rmtree(html / "_sources", ignore_errors=True)
    if args.page:
        shutil.copytree(args.page, html / "inspect")
    print(html / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
