#!/usr/bin/env python3
"""check_findings.py: check that the documentation explains every rule named in the sources.

The pages are docs/findings.md, docs/profiles.md and those of the formats. Every rule explained
there must exist. A rule begins with the name of a format, spelled as in `heft formats`, or with
an entry of PREFIXES. TAP on stdout."""
import pathlib
import re
import sys

import tap

PREFIXES = {"heft", "profile", "gptrs", "pickle", "hub", "signature", "zip"}
MEDIA = {"application", "image", "text"}
ROOT = pathlib.Path(__file__).resolve().parent.parent


def rules_in(paths, pattern):
    """Return {rule: first file that names the rule}."""
    found = {}
    for path in sorted(paths):
        text = re.sub(r"^\s*#\s*include.*$", "", path.read_text(), flags=re.M)
        for rule in re.findall(pattern, text):
            found.setdefault(rule, path.relative_to(ROOT))
    return found


def prefixes():
    """Return the allowed beginnings of rules: names of formats, and PREFIXES."""
    formats = (ROOT / "src/format/formats.def").read_text()
    return PREFIXES | {f.replace("_", "-") for f in re.findall(r"^X\((\w+)", formats, re.M)}


def main():
    code = rules_in([*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("cli/**/*.c")],
                    r'"([a-z0-9_-]+/[a-z0-9-]+)"')
    pages = [ROOT / "docs/findings.md", ROOT / "docs/profiles.md", *ROOT.glob("docs/formats/*.md")]
    # NAME/structure stands for several rules, and media types ("image/png") have the same form.
    code = {r: p for r, p in code.items()
            if not r.endswith("/structure") and r.split("/")[0] not in MEDIA}
    families = {rule.split("/")[0] for rule in code}
    docs = {
        r: p for r, p in rules_in(pages, r"`([a-z0-9_-]+/[a-z0-9-]+)`").items()
        if r.split("/")[0] in families and not r.endswith("/structure")
    }
    unknown = families - prefixes()
    return tap.report([
        ("every rule begins with the name of a format",
         [f"{r}, in {code[r]}, does not" for r in sorted(code) if r.split("/")[0] in unknown]),
        ("every rule is explained",
         [f"{r}, in {code[r]}, is not" for r in sorted(code.keys() - docs)]),
        ("every rule explained exists",
         [f"{r}, in {docs[r]}, does not" for r in sorted(docs.keys() - code)]),
    ])


sys.exit(main())
