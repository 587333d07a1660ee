#!/usr/bin/env python3
"""web_page.py PACKAGE OUT: make the page for the browser, a folder of static files.

PACKAGE is the folder of the built npm package (heft.mjs, its modules, heft.wasm). The page is made
of web/page, of the views of cli/report that the page shares with `heft report`, and of the package.
Modules of the package get the suffix .js, because not every server knows .mjs. The same page as one
file, which needs no server, is written beside the folder: heft-inspector.html. The service worker
gets the list of files, and a digest of all files as the version."""
import hashlib
import pathlib
import re
import shutil
import sys

import one_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ["basics.js", "charts.js", "difference_list.js", "differences.js", "field_ranges.js",
          "health.js", "list_rows.js", "map_layout.js", "map_levels.js", "model_facts.js",
          "names.js", "overview.js", "pair_pictures.js", "role_matrix.js", "roles.js", "table.js",
          "treemap.js", "value_map.js", "views.css"]
MODULE = re.compile(r"\.mjs\b")
WORKER = "sw.js"


def package_files(folder):
    """Yield (name, content) of the modules for browsers and of the binaries of the package."""
    for path in sorted(folder.iterdir()):
        if "node" in path.stem or "inline" in path.stem or path.stem == "element":
            continue
        if path.suffix == ".mjs":
            text = MODULE.sub(".js", path.read_text(encoding="utf-8"))
            yield path.stem + ".js", text.encode()
        elif path.suffix == ".wasm":
            yield path.name, path.read_bytes()


def page_files(package):
    """Return all files of the page {name: content}, the service worker with its placeholders."""
    files = {}
    sources = [p for p in sorted((ROOT / "web/page").iterdir()) if p.is_file()]
    for path in [*sources, *(ROOT / "cli/report" / name for name in SHARED)]:
        files[path.name] = path.read_bytes()
    for name, content in package_files(package):
        if name in files:
            sys.exit(f"web_page.py: {name} is a file of the page and of the package")
        files[name] = content
    return files


def stamped(files):
    """Return the service worker with the list of files and their digest."""
    kept = sorted(name for name in files if name != WORKER)
    digest = hashlib.sha256(files[WORKER])
    for name in kept:
        digest.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    names = ", ".join(f'"{name}"' for name in ["", *kept])
    text = files[WORKER].decode()
    return text.replace('"@FILES@"', names).replace("@VERSION@", digest.hexdigest()[:16]).encode()


def main(package, out):
    package, out = pathlib.Path(package), pathlib.Path(out)
    if not (package / "heft.mjs").is_file():
        sys.exit(f"web_page.py: there is no {package}/heft.mjs; ./dev web builds it")
    files = page_files(package)
    files[WORKER] = stamped(files)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, content in files.items():
        (out / name).write_bytes(content)
    texts = {name: content.decode() for name, content in files.items() if "." in name
             and not name.endswith(".wasm")}
    inline = {f"{n}.js": (package / f"{n}.mjs").read_text(encoding="utf-8")
              for n in ("inline", "inlined", "inline_files", "inline_full")}
    whole = one_page.page({**texts, **inline}, texts["index.html"])
    (out.parent / "heft-inspector.html").write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
