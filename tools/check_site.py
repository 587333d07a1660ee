#!/usr/bin/env python3
"""check_site.py SITE: check the pages that docs_site.py has made.

Each link leads to a file and an anchor of the site, nothing is loaded from elsewhere, each command
is found by the search, and every page has a title and a width for small screens. TAP on stdout."""
import html.parser
import pathlib
import re
import sys
import urllib.parse

import tap

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(html.parser.HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded, self.meta = set(), [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        has = dict(attrs)
        self.anchors |= {has.get("id"), has.get("name")}
        if tag == "a" and has.get("href"):
            self.links.append(has["href"])
        if tag in LOADED and has.get(LOADED[tag]) and has.get("rel") not in ("canonical",):
            self.loaded.append(has[LOADED[tag]])
        if tag == "meta" and has.get("name"):
            self.meta.add(has["name"])


def target(site, path, link):
    """Return (file, anchor) of a link within the site."""
    parts = urllib.parse.urlsplit(link)
    where = urllib.parse.unquote(parts.path)
    return (path.parent / where).resolve() if where else path, urllib.parse.unquote(parts.fragment)


def dead(site, pages):
    for path, page in pages.items():
        for link in page.links + page.loaded:
            if re.match(r"[a-z]+:", link):
                continue
            file, anchor = target(site, path, link)
            name = f"{path.relative_to(site)}: {link}"
            if not file.exists() or site not in file.parents:
                yield f"{name} does not exist"
            elif anchor and file in pages and anchor not in pages[file].anchors:
                yield f"{name} has no such anchor"


def foreign(site, pages):
    return [f"{path.relative_to(site)} loads {link}" for path, page in pages.items()
            for link in page.loaded if re.match(r"(https?:)?//", link)]


def searchable(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    return [f"{name} is not found" for name in ("salvag", "dequant", "heft_file_open", "safetensor")
            if name not in index]


def theme(site):
    """Yield what keeps a page from being dark where the reader wants it, and from its buttons."""
    for path in (site / "_static/scripts").glob("*.js"):
        if re.search(r"^import ", path.read_text(encoding="utf-8"), re.M):
            yield f"{path.name} imports another script, which a page without a server cannot"
    style = (site / "_static/styles/furo.css").read_text(encoding="utf-8")
    if "prefers-color-scheme: dark" not in style:
        yield "furo.css has no dark colours for those who prefer them"
    if re.search(r"@media not \w+ and \(prefers-color-scheme: dark", style):
        yield "furo.css is dark for everybody: `not` negates the whole query"


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    pages = {p: Page(p) for p in site.rglob("*.html") if "inspect" not in p.relative_to(site).parts}
    return tap.report([
        ("there are pages", [] if len(pages) > 100 else [f"only {len(pages)}"]),
        ("links lead to pages and anchors", list(dead(site, pages))),
        ("nothing is loaded from elsewhere", foreign(site, pages)),
        ("the theme is light and dark, and its script runs", list(theme(site))),
        ("the search knows words of the documents", searchable(site)),
        ("pages fit small screens", [f"{p.relative_to(site)} has no viewport"
                                     for p, page in pages.items() if "viewport" not in page.meta]),
    ])


if __name__ == "__main__":
    sys.exit(main())
