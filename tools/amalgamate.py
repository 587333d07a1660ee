#!/usr/bin/env python3
"""amalgamate.py [--desktop] [FORMAT,...] [DIR]: write the library as one .c and one .h file to DIR.

FORMAT,... are names of src/format/formats.def, or "all" (the default); DIR is build-amalgamated by
default. heft_core.h joins the public headers. heft_core.c joins every source file of the core
except signatures, and compiles with a C11 compiler and nothing else, not even string.h.

With --desktop the files are heft.c and heft.h, for Linux. heft.c also has what opens files by
path, maps and writes them, and works on all processors: `cc heft.c app.c`.

In one translation unit, names of file scope in several files would clash. A clashing name gets the
name of the file in front: ALIGN in mag.c becomes mag__ALIGN. The output depends on the sources and
the formats only."""
import collections
import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The declarations of string.h, for a compiler without a C library.
MEMORY = """\
void *memcpy(void *restrict to, const void *restrict from, size_t len);
void *memmove(void *to, const void *from, size_t len);
void *memset(void *p, int byte, size_t len);
int memcmp(const void *a, const void *b, size_t len);
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """The joined files: public headers, and files below src by directory."""
    name: str
    layers: tuple[str, ...]
    public: tuple[str, ...]
    about_header: str
    about_source: str
    first: str = ""  # Its lines come before the header.
    memory: str = MEMORY
    left_out: tuple[str, ...] = ()
    libraries: tuple[tuple[str, str], ...] = ()


# Other public headers are included by these.
CORE_HEADERS = ("heft", "heft_ext", "editing", "split", "companion", "block_rows", "quantise",
                "mix", "gguf_texts", "doctor", "lora", "delta")
CORE = Kind(
    "heft_core", ("base", "model", "grammar", "format", "core", "companion", "scheme",
                  "logical", "map", "combine", "lora", "delta", "mix", "gguf", "scan", "port_none"),
    CORE_HEADERS,
    """Functions that need an operating
 * system, for example to open paths, are declared here and missing in heft_core.c.""",
    """The program supplies memcpy,
 * memmove, memset and memcmp, and an allocator in a heft_host: heft_arena_allocator() makes an
 * allocator from a block of memory.""")
DESKTOP = Kind(
    "heft", ("base", "model", "grammar", "format", "core", "companion", "folder", "scheme",
             "logical", "map", "combine", "lora", "delta", "mix", "gguf", "scan", "share", "sign",
             "move", "port", "local", "params", "simd/floats.c", "port_none/no_kernels.c"),
    (*CORE_HEADERS, "params", "share", "sign"),
    """Functions that need a library which
 * heft.c is compiled without return HEFT_E_UNSUPPORTED, among them those of remote files.""",
    """Compile it together with the
 * program, on Linux: cc -O2 heft.c app.c -lm.  -DHEFT_HAVE_ZLIB with -lz and -DHEFT_HAVE_ZSTD with
 * -lzstd add the decoders of compressed data.""",
    first="#define _GNU_SOURCE\n", memory="#include <string.h>\n",
    left_out=("certificates_openssl.c", "crc_isal.c", "crypto_library.c", "crypto_linked.c",
              "digest_openssl.c", "digest_xxhash.c", "hdf5_attributes.c", "hdf5_bands.c",
              "hdf5_chunks.c", "hdf5_dataset.c", "hdf5_driver.c", "hdf5_file.c", "hdf5_filters.c",
              "hdf5_groups.c", "hdf5_library.c", "hdf5_lists.c", "hdf5_types.c", "hdf5_worker.c",
              "loaded_library.c", "no_hub_cache.c", "no_yaml.c", "renameat2.c", "sign_openssl.c",
              "source_digest.c", "yaml_text.c"),
    libraries=(("inflate.c", "HEFT_HAVE_ZLIB"), ("zstd.c", "HEFT_HAVE_ZSTD")))
LICENCE = """SPDX-License-Identifier: Apache-2.0
 * Copyright the Heft authors; code books of quantised types: the ggml authors, MIT License."""
HEADER_START = f"""\
/* %s.h - the public headers of heft in one file, for %s.c.
 * {LICENCE}
 *
 * Made by `./dev amalgamate`: change the headers of heft instead.  %s */"""
SOURCE_START = f"""\
%s/* %s.c - heft in one file.  Formats: %s.
 * {LICENCE}
 *
 * Made by `./dev amalgamate`: change the sources of heft instead.  %s */
#include "%s.h"

/* Not every selection of formats uses every small function of the headers. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-function"
#endif

/* Encoders of blocks need each product rounded before it is added. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
"""
OTHER_SYSTEMS = ("windows", "remote", "serve")  # These are folders of src/port.
TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|\s+)
      |(?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
      |(?P<literal>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\.?[0-9](?:[eEpP][+-]|[\w.])*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<sign>->|\.\.\.|.)""", re.X | re.S | re.M)
TYPE_WORDS = {"struct", "union", "enum"}
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
Token = collections.namedtuple("Token", "kind text at")


def tokens_of(text):
    return [Token(m.lastgroup, m[0], m.start()) for m in TOKEN.finditer(text)]


def fail(message):
    sys.exit(f"amalgamate.py: {message}")


# ---- names of file scope ------------------------------------------------------------------------

def closing(tokens, i):
    """Return the index after the bracket that closes tokens[i]."""
    depth = 0
    for k in range(i, len(tokens)):
        depth += (tokens[k].text in OPENING) - (tokens[k].text in CLOSING)
        if not depth:
            return k + 1
    fail(f"an unclosed {tokens[i].text}")


def constants_of(tokens):
    """Yield the constants of every enum in the tokens."""
    for i, t in enumerate(tokens):
        if t.text != "enum":
            continue
        k = i + 1 + (tokens[i + 1].kind == "name")
        if tokens[k].text != "{":
            continue
        end, is_next = closing(tokens, k) - 1, True
        k += 1
        while k < end:
            if is_next:
                yield tokens[k].text
            is_next = tokens[k].text == ","
            k = closing(tokens, k) if tokens[k].text in OPENING else k + 1


def declared(tokens):
    """Yield the names and tags of one declaration: typedef, variables, or a function."""
    i = 0
    while i < len(tokens):
        t = tokens[i]
        following = tokens[i + 1].text if i + 1 < len(tokens) else ";"
        if t.text in ("__attribute__", "_Alignas", "_Static_assert"):
            i = closing(tokens, i + 1)
            continue
        if t.text in TYPE_WORDS and tokens[i + 1].kind == "name" and tokens[i + 2].text in "{;":
            yield tokens[i + 1].text
        elif t.kind == "name" and following == "(" and tokens[i + 2].text != "*":
            yield t.text  # a function
            return
        elif t.kind == "name" and following in ("[", ";", ","):
            yield t.text
        elif t.text == "(" and following == "*":
            yield tokens[i + 2].text  # a pointer to a function
            return
        i = closing(tokens, i) if t.text in OPENING else i + 1


def declarations(tokens):
    """Yield the tokens of each declaration of file scope, without initial values and bodies."""
    head, i, is_value = [], 0, False
    while i < len(tokens):
        t = tokens[i]
        end = closing(tokens, i) if t.text in OPENING else i + 1
        is_body = t.text == "{" and head and head[-1].text == ")" and not is_value
        is_value = (is_value or t.text == "=") and t.text != ","
        if not is_value and not is_body:
            head += tokens[i:end]
        i = end
        if t.text == ";" or is_body:
            yield head
            head, is_value = [], False


def file_scope(text):
    """Return the names of types, constants and static objects that a file declares."""
    names = set()
    for one in declarations([t for t in tokens_of(text) if t.kind not in ("skip", "directive")]):
        names.update(constants_of(one))
        if one[0].text in {"static", "typedef", "_Alignas", "extern"} | TYPE_WORDS:
            names.update(declared(one))
    return {n for n in names if not n.lower().startswith("heft_")}  # unique names anyway


def has_member(tokens, i):
    """Return true if token i is the second argument of HEFT_HAS(), which names a member."""
    k = i - 2
    while k > 0 and tokens[k].text not in ("(", ",", ";"):
        k -= 1
    return tokens[i - 1].text == "," and tokens[k].text == "(" and tokens[k - 1].text == "HEFT_HAS"


def is_member(tokens, i, bodies):
    """Return true if token i names a member of a struct: after a dot or an arrow, where the struct
    declares the member, or in HEFT_HAS()."""
    if tokens[i - 1].text in ("->", ".") or has_member(tokens, i):
        return True
    if not (bodies and bodies[-1]):
        return False
    following = tokens[i + 1].text
    return following in (";", ",", "[", ":") or (following == ")" and tokens[i - 1].text == "*" and
                                                 tokens[i - 2].text == "(")


def renamed(text, prefix, clashes):
    """Return the text with a prefix before each of the clashing names."""
    every = tokens_of(text)
    tokens = [t for t in every if t.kind not in ("skip", "directive")]
    changes, bodies = {}, []
    for i, t in enumerate(tokens):
        if t.text == "{":
            # struct {, or struct tag {
            bodies.append(any(w.text in ("struct", "union") for w in tokens[max(0, i - 2):i]
                              if i and tokens[i - 1].text not in (")", "=")))
        elif t.text == "}":
            bodies.pop()
        elif t.kind == "name" and t.text in clashes and not is_member(tokens, i, bodies):
            changes[t.at] = prefix
    for t in every:
        if t.kind == "directive" and "include" not in t.text:
            for m in re.finditer(r"\b\w+\b", t.text):
                if m[0] in clashes:
                    changes[t.at + m.start()] = prefix
    out, at = [], 0
    for place in sorted(changes):
        out += [text[at:place], changes[place]]
        at = place
    return "".join(out) + text[at:]


# ---- joining ------------------------------------------------------------------------------------

class Joined:
    """The text of files; each header comes where the header is first included."""

    def __init__(self, formats):
        self.seen, self.formats = set(), formats

    def find(self, name):
        folders = (ROOT / "include", ROOT / "src")
        return next((f / name for f in folders if (f / name).is_file()), None)

    def include(self, match):
        name = match[1]
        path = self.find(name)
        if name == "format/formats.def":
            return self.formats
        if name in self.seen or name == "string.h":  # Kind.memory replaces string.h
            return ""
        if not path:  # The header is of the system, and perhaps below a condition.
            return match[0]
        self.seen.add(name)
        return self.text(path.read_text())

    def text(self, text):
        text = re.sub(r'^#include [<"]([^>"]+)[>"].*$', self.include, text, flags=re.M)
        return re.sub(r"\n{3,}", "\n\n", text).strip()


def chosen_formats(wanted):
    """Return the names of the wanted formats with their source files."""
    rows = re.findall(r"^X\((\w+), ([^)]*)\)$", (ROOT / "src/format/formats.def").read_text(), re.M)
    rows = {name.replace("_", "-"): files.split() for name, files in rows}
    unknown = [name for name in wanted if name not in (*rows, "all")]
    if unknown:
        fail(f"no format is called {unknown[0]}; there are {', '.join(rows)}")
    return {n: files for n, files in rows.items() if "all" in wanted or n in wanted}


def sources_in(folder):
    return sorted(folder.rglob("*.c")) if folder.is_dir() else [folder]


def files_of(kind, formats):
    """Return the source files to join, from the bottom layer upwards."""
    chosen = {ROOT / "src/format" / f for files in formats.values() for f in files}
    shared = ("archives", "registry", "registry_writers")
    chosen |= {ROOT / "src/format" / f"{name}.c" for name in shared}
    paths = [p for layer in kind.layers for p in sources_in(ROOT / "src" / layer)]
    return [p for p in paths if p.parts[len(ROOT.parts) + 1] != "format" or p in chosen
            if p.name not in kind.left_out and p.parent.name not in OTHER_SYSTEMS]


def clashing(sources):
    """Return by file the names that another file, or a header, declares as well."""
    scopes = {p: file_scope(p.read_text()) for p in sources}
    headers = [file_scope(p.read_text()) for p in sorted((ROOT / "src").rglob("*.h"))]
    count = collections.Counter(n for names in (*scopes.values(), *headers) for n in names)
    return {p: {n for n in names if count[n] > 1} for p, names in scopes.items()}


def undefine(text):
    """Return directives that forget the macros of a source file."""
    macros = set(re.findall(r"^#define (\w+)", text, re.M))
    return "".join(f"#undef {m}\n" for m in sorted(macros - set(re.findall(r"^#undef (\w+)", text,
                                                                              re.M))))


def header_text(joined, kind):
    parts = [HEADER_START % (kind.name, kind.name, kind.about_header)]
    includes = "".join(f"#include <heft/{name}.h>\n" for name in kind.public)
    parts.append(joined.text(includes))
    return "\n\n".join(parts) + "\n"


def source_text(joined, kind, formats):
    sources = files_of(kind, formats)
    clashes, macros = clashing(sources), dict(kind.libraries)
    parts = [SOURCE_START % (kind.first, kind.name, ", ".join(formats), kind.about_source,
                             kind.name), kind.memory]
    for path in sources:
        text = renamed(path.read_text(), path.stem + "__", clashes[path])
        text = joined.text(text) + "\n" + undefine(text)
        macro = macros.get(path.name)
        parts.append(f"#ifdef {macro}\n{text}#endif\n" if macro else text)
    return "\n".join(parts)


def main():
    words = [w for w in sys.argv[1:] if w != "--desktop"]
    kind = CORE if words == sys.argv[1:] else DESKTOP
    names, folder = (words + ["all", "build-amalgamated"][len(words):])[:2]
    formats = chosen_formats(names.split(","))
    joined = Joined("\n".join(f"X({name.replace('-', '_')},)" for name in formats))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kind.name}.h").write_text(header_text(joined, kind))
    (folder / f"{kind.name}.c").write_text(source_text(joined, kind, formats))
    print(f"{folder}/{kind.name}.c and {kind.name}.h: {', '.join(formats)}")


if __name__ == "__main__":
    main()
