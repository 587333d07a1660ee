"""web_inline.py: the files inside of the package's entry ./inline.

script() joins a module and the imported modules to one script, for workers that cannot load
modules. Imports and exports of another form than in web/*.mjs are refused."""
import base64
import gzip
import pathlib
import re

IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./(\w+)\.mjs";\n', re.M)
BUILT_IN = re.compile(r'^import [^\n]* from "node:[^\n]*\n', re.M)
EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const|let) (\w+)", re.M)
LIST = re.compile(r"^export const (?:\w+ = [^;\n{]*, )+", re.M)
COMMENT = re.compile(r"^\s*(/\*\*.*?\*/|//[^\n]*)\n", re.M | re.S)


def names_of(export_line):
    """Return all names of a declaration: export const AGAIN = 1, NONE = 2."""
    return re.findall(r"(\w+) = ", export_line)


def exports_of(text):
    """Return the names that a module exports."""
    names = []
    for kind, name in EXPORT.findall(text):
        line = re.search(rf"^export {re.escape(kind)} {name}\b.*$", text, re.M)[0]
        names += names_of(line) if LIST.match(line) else [name]
    return names


def order(folder, name, done):
    """Append modules to `done`, imported modules first."""
    text = (folder / f"{name}.mjs").read_text(encoding="utf-8")
    for _, other in IMPORT.findall(text):
        if other not in done:
            order(folder, other, done)
    done[name] = text
    return done


def script(folder, main):
    """Return a script without imports of files, in which each module is a function."""
    built_in, modules = [], []
    for name, text in order(pathlib.Path(folder), main, {}).items():
        built_in += BUILT_IN.findall(text)
        body = COMMENT.sub("", BUILT_IN.sub("", text))
        body = IMPORT.sub(lambda m: f"const {{ {m[1]} }} = {m[2]}_;\n", body)
        names = exports_of(body)
        body = EXPORT.sub(r"\1 \2", body)
        strange = re.search(r"^(import|export)\b.*$|import\.meta|\bimport\(", body, re.M)
        if strange:
            raise SystemExit(f"web_inline.py: {name}.mjs: {strange[0]}")
        result = f"return {{ {', '.join(names)} }};\n"
        modules.append(f"const {name}_ = (() => {{\n{body}{result}}})();\n")
    return "".join([*dict.fromkeys(built_in), '"use strict";\n', *modules])


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def module(folder):
    """Return inline_files.mjs for the package in `folder`."""
    files = {"wasm": (folder / "heft.wasm").read_bytes(),
             "worker": script(folder, "worker").encode(),
             "nodeWorker": script(folder, "node_worker").encode()}
    lines = [f'export const {name} = "{packed(data)}";\n' for name, data in files.items()]
    return "/** heft.wasm and the workers, compressed with gzip, in Base64. */\n" + "".join(lines)


def full_module(folder):
    """Return inline_full.mjs, which is imported when the full module is needed."""
    return ("/** heft-full.wasm, compressed with gzip, in Base64. */\n"
            f'export const full = "{packed((folder / "heft-full.wasm").read_bytes())}";\n')
