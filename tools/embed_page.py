#!/usr/bin/env python3
"""embed_page.py OUT PAGE STYLE SCRIPT...: write the page of `heft report` as C.

OUT becomes a C file with the page before and after its data, in two arrays of bytes. The scripts
are joined; the page's content security policy permits nothing but this style and this script, by
their digests."""
import base64
import hashlib
import pathlib
import sys


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def array(name, text):
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    body = ",\n    ".join(lines)
    return f"const unsigned char {name}[{len(data)}] = {{\n    {body},\n}};\n"


def main(out, page, style, *scripts):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    css = pathlib.Path(style).read_text(encoding="utf-8")
    js = "\n".join(pathlib.Path(s).read_text(encoding="utf-8") for s in scripts)
    js = f'"use strict";\n(() => {{\n{js}}})();\n'
    if "</" in css or "</script" in js or "<!--" in js:
        sys.exit("embed_page.py: a style or script would end its element")
    fields = {"STYLE_HASH": digest(css), "SCRIPT_HASH": digest(js), "STYLE": css, "SCRIPT": js}
    for name, value in fields.items():
        text = text.replace(f"@{name}@", value, 1)
    head, tail = text.split("@DATA@")
    sizes = f"const size_t report_head_bytes = {len(head.encode())};\n" \
            f"const size_t report_tail_bytes = {len(tail.encode())};\n"
    pathlib.Path(out).write_text('#include "report_page.h"\n\n' + array("report_head", head) +
                                 "\n" + array("report_tail", tail) + "\n" + sizes,
                                 encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
