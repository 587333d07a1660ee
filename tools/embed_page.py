#!/usr/bin/env python3
"""embed_page.py OUT PAGE STYLE... SCRIPT...: write the page of `heft report` as C.

OUT becomes a C file with the page before and after its data, in two arrays of bytes. Styles (*.css)
are joined, and so are the scripts: modules, each after the modules that it imports. The page's
content security policy permits nothing but this style and this script, by their digests."""
import base64
import hashlib
import pathlib
import re
import sys


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def array(name, text):
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    body = ",\n    ".join(lines)
    return f"const unsigned char {name}[{len(data)}] = {{\n    {body},\n}};\n"


def joined(files):
    return "\n".join(pathlib.Path(f).read_text(encoding="utf-8") for f in files)


IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.M)


def one_script(files):
    """Join modules: each becomes a function that returns what the module exports."""
    parts = ['"use strict";\n(() => {\n']
    for file in map(pathlib.Path, files):
        text = IMPORT.sub(lambda m: f"const {{{m[1]}}} = {m[2]}_;\n",
                          file.read_text(encoding="utf-8"))
        names = EXPORT.findall(text)
        text = EXPORT.sub("", text)
        strange = re.search(r"^(?:import|export)\b.*$", text, re.M)
        if strange:
            sys.exit(f"embed_page.py: {file.name}: {strange[0]}")
        parts.append(f"const {file.stem}_ = (() => {{\n{text}return {{ {', '.join(names)} }};\n"
                     "})();\n")
    return "".join([*parts, "})();\n"])


def main(out, page, *files):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    css = joined(f for f in files if f.endswith(".css"))
    js = one_script(f for f in files if f.endswith(".js"))
    if "</" in css or "</script" in js or "<!--" in js:
        sys.exit("embed_page.py: a style or script would end its element")
    fields = {"STYLE_HASH": digest(css), "SCRIPT_HASH": digest(js), "STYLE": css, "SCRIPT": js}
    for name, value in fields.items():
        text = text.replace(f"@{name}@", value, 1)
    head, tail = text.split("@DATA@")
    sizes = f"const size_t report_head_bytes = {len(head.encode())};\n" \
            f"const size_t report_tail_bytes = {len(tail.encode())};\n"
    pathlib.Path(out).write_text('#include "commands/report_page.h"\n\n' +
                                 array("report_head", head) +
                                 "\n" + array("report_tail", tail) + "\n" + sizes,
                                 encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
