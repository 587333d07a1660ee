"""one_page.py: the page for the browser as one file, which opens from a folder without a server.

Browsers load no modules from files, so the scripts of the page and of its worker are joined, with
the package's entry ./inline, which has the WebAssembly module inside. Modules that are
imported when they are needed are inside, too."""
import base64
import hashlib
import re

IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "\./(\w+)\.m?js";\n', re.M)
BESIDE = re.compile(r'^export \{ ([^}]*) \} from "\./(\w+)\.m?js";\n', re.M)
LATER = re.compile(r'await import\("\./(\w+)\.m?js"\)')
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const|let) (\w+)(.*)$)", re.M)
# Entries of the package that are replaced.
INSTEAD = {"heft": "inline"}


def order(files, name, done):
    """Append modules to `done`, imported modules first."""
    text = files[name]
    imported = [m[3] for m in IMPORT.finditer(text)] + [m[2] for m in BESIDE.finditer(text)]
    for name_of in imported + LATER.findall(text):
        other = INSTEAD.get(name_of, name_of)
        if other not in done:
            order(files, other, done)
    done[name] = text
    return done


def names_of(text):
    """Return the names that a module exports; a declaration may have several."""
    names = []
    for first, rest in EXPORT.findall(text):
        is_list = re.match(r" = [^;({]*, \w+ = ", rest)
        names += [first, *(re.findall(r", (\w+) = ", rest) if is_list else [])]
    return names


def joined(files, main):
    """Return a script without imports of files, in which each module is a function."""
    parts = ['"use strict";\n']
    for name, text in order(files, main, {}).items():
        beside = [f"{n}: {INSTEAD.get(m[2], m[2])}_.{n}" for m in BESIDE.finditer(text)
                  for n in m[1].split(", ")]
        body = BESIDE.sub("", text)

        def local(m):
            module = INSTEAD.get(m[3], m[3]) + "_"
            return f"const {m[2]} = {module};\n" if m[2] else f"const {{{m[1]}}} = {module};\n"
        body = LATER.sub(r"\1_", IMPORT.sub(local, body))
        exports = ", ".join([*names_of(body), *beside])
        body = EXPORT.sub("", body)
        strange = re.search(r"^(?:import|export)\b.*$", body, re.M)
        if strange:
            raise SystemExit(f"one_page.py: {name}: {strange[0]}")
        parts.append(f"const {name}_ = (() => {{\n{body}return {{ {exports} }};\n}})();\n")
    return "".join(parts)


def digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def policy(style, scripts):
    hashes = " ".join(f"'{digest(s)}'" for s in scripts)
    return (f"default-src 'none'; script-src {hashes} 'wasm-unsafe-eval'; "
            f"style-src '{digest(style)}'; img-src data:; worker-src blob:; connect-src https: "
            "http://localhost:* http://127.0.0.1:*; base-uri 'none'; form-action 'none'")


def page(files, html):
    """files: texts of all modules by name, and the other files of the page. Return the page."""
    modules = {name.rsplit(".", 1)[0]: text for name, text in files.items()
               if name.endswith((".js", ".mjs"))}
    main = joined(modules, "inspector")
    # Pages of files start no workers that are modules, and other scripts have no import.meta.
    worker = joined(modules, "model_worker").replace("import.meta.url", "location.href")
    theme = modules["theme"]
    style = files["views.css"] + files["inspector.css"]
    icon = "data:image/svg+xml;base64," + base64.b64encode(files["icon.svg"].encode()).decode()
    for text in (main, worker, theme, style):
        if re.search(r"</(?:script|style)|<!--", text):
            raise SystemExit("one_page.py: a script would end its element")
    html = re.sub(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*',
                  lambda m: m[1] + policy(style, [theme, main]), html)
    html = re.sub(r'<link rel="manifest"[^>]*>\n', "", html)
    html = re.sub(r'(?:<link rel="stylesheet"[^>]*>\n)+', lambda m: f"<style>{style}</style>\n",
                  html)
    html = html.replace('<script src="theme.js"></script>', f"<script>{theme}</script>")
    html = html.replace('<script type="module" src="inspector.js"></script>',
                        f'<script type="text/plain" data-name="model_worker.js">{worker}</script>\n'
                        f'<script type="module">{main}</script>')
    return html.replace('"icon.svg"', f'"{icon}"')
