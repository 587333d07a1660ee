"""The options of the commands, as keyword arguments of Python and as words of the command line.

What the command describes is the only list of options: signatures, documentation and command lines
come from it, and so do most texts."""
import dataclasses
import json
import os
import re

from ._described import DESCRIBED

_INTEGERS = {"i64": (-2**63, 2**63 - 1), "u64": (0, 2**64 - 1)}


def _text(value):
    if not isinstance(value, str):
        raise TypeError(f"expected a str, not {type(value).__name__}")
    return [value]


def path_words(value):
    """Return the path as the command takes it: - is a name, not a stream."""
    path = os.fsdecode(value)
    return ["./-" if path == "-" else path]


def _paths(value):
    """A path, or several."""
    return [os.fsdecode(value)] if isinstance(value, (str, bytes, os.PathLike)) else [
        os.fsdecode(path) for path in value]


def _number(value):
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"expected an int, not {type(value).__name__}")
    return [str(value.__index__())]


def _size(value):
    return [value] if isinstance(value, str) else _number(value)


def _real(value):
    return [repr(float(value))]


def _weights(value):
    """[FILTER=]N,...: a number for all models, a list with one for each, or {filter: either}."""
    if isinstance(value, dict):
        return [f"{_text(part)[0]}={_weights(v)[0]}" for part, v in value.items()]
    numbers = [value] if isinstance(value, (int, float, str)) else value
    return [",".join(n if isinstance(n, str) else repr(float(n)) for n in numbers)]


def _share(value):
    """A share: "2/8", (2, 8) or "auto"."""
    if isinstance(value, str):
        return [value]
    number, count = value
    return ["/".join(_number(number) + _number(count))]


def _texts(value):
    return [value] if isinstance(value, str) else [word for item in value for word in _text(item)]


def _plain(value):
    """Return the value of an option as the command spells it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return str(value)


def _rules(value):
    """[GLOB=]VALUE: a value for all tensors, or {GLOB: value} of which the first match counts."""
    if not isinstance(value, dict):
        return [_plain(value)] if isinstance(value, (str, bool)) else _texts(value)
    return [f"{_text(glob)[0]}={_plain(v)}" for glob, v in value.items()]


def _grads(value):
    """As _rules(), but None leaves unset whether the tensor is trained."""
    if isinstance(value, dict):
        return _rules({glob: "unset" if v is None else v for glob, v in value.items()})
    return _rules(value)


def _first_equals(key, what):
    """Return the key, which the first = of the word on the command line ends."""
    if "=" in _text(key)[0]:
        raise ValueError(f"{what} {key!r}: the command line cannot express a '='")
    return key


def _typed(value):
    """Return (type, text) of a value of metadata."""
    if isinstance(value, list):
        return _typed_list(value)
    if isinstance(value, tuple):
        kind, value = value
        return _text(kind)[0], "" if value is None else _plain(value)
    if value is None:
        return "null", ""
    if isinstance(value, bool):
        return "bool", _plain(value)
    if isinstance(value, str):
        return "str", value
    if isinstance(value, float):
        return "f64", repr(value)
    number = int(_number(value)[0])
    for kind, (least, most) in _INTEGERS.items():
        if least <= number <= most:
            return kind, str(number)
    raise OverflowError(f"{number} does not fit into 64 bits")


def _typed_list(values):
    """Return (type, text) of a list of metadata: texts, booleans or numbers."""
    if all(isinstance(v, str) for v in values):
        return "[str]", json.dumps(values)
    if all(isinstance(v, bool) for v in values):
        return "[bool]", json.dumps(values)
    if any(isinstance(v, float) for v in values):
        return "[f64]", json.dumps([float(v) for v in values], allow_nan=False)
    return "[i64]", json.dumps([int(_number(v)[0]) for v in values])


def _settings(value):
    typed = {_first_equals(key, "metadata key"): _typed(v) for key, v in value.items()}
    return [f"{key}:{kind}={text}" for key, (kind, text) in typed.items()]


def _set_files(value):
    return [f"{_first_equals(key, 'metadata key')}={os.fspath(path)}" for key, path in value.items()]


def _views(value):
    return [f"{_first_equals(name, 'name')}={_text(kind)[0]}" for name, kind in value.items()]


def _rename(old, new):
    word = f"{_first_equals(old, 'name')}={_text(new)[0]}"
    if re.fullmatch(r"s([^\w.=\\-])(?:(?!\1).)+\1.*\1g?", word, re.ASCII | re.DOTALL):
        raise ValueError(f"name {old!r}: the command line would read {word!r} as an expression")
    return word


def _renames(value):
    """{old: new}, or words as on the command line: A=B or s/RE/TEXT/."""
    if not isinstance(value, dict):
        return _texts(value)
    return [_rename(old, new) for old, new in value.items()]


def _models(value):
    """Models, or {model: factor}; a path with a = gets a factor, which the last = precedes."""
    if isinstance(value, dict):
        return [f"{os.fsdecode(path)}={_real(factor)[0]}" for path, factor in value.items()]
    return [f"{path}=1" if "=" in path else path for path in _paths(value)]


def _ids(value):
    return [f"{_text(name)[0]}={_plain(v)}" for name, v in value.items()]


def _special(value):
    return [",".join(_ids(value))]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of value: its type in signatures, and the function that spells it for the command."""
    annotation: str
    words: object


FLAG = Kind("bool", None)
TEXT = Kind("str | None", _text)
MAYBE = Kind("bool | str | None", _text)  # the value can be left out
PATH = Kind("str | os.PathLike[str] | None", path_words)
PATHS = Kind("str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None", _paths)
NUMBER = Kind("int | None", _number)
SIZE = Kind("int | str | None", _size)
REAL = Kind("float | None", _real)
TRUTH = Kind("bool | None", lambda value: [_plain(bool(value))])
NAMES_OF_TENSORS = Kind("Mapping[str, str] | None", _views)
WEIGHTS = Kind("float | str | Iterable[float] | Mapping[str, float | Iterable[float]] | None",
               _weights)
SHARE = Kind("str | tuple[int, int] | None", _share)
TEXTS = Kind("str | Iterable[str] | None", _texts)
RULES = Kind("str | Iterable[str] | Mapping[str, str] | None", _rules)
GRADS = Kind("bool | str | Mapping[str, bool | None] | None", _grads)
SETTINGS = Kind("Mapping[str, object] | None", _settings)
SET_FILES = Kind("Mapping[str, str | os.PathLike[str]] | None", _set_files)
VIEWS = Kind("Mapping[str, str] | None", _views)
RENAMES = Kind("str | Iterable[str] | Mapping[str, str] | None", _renames)
MODELS = Kind("str | os.PathLike[str] | Iterable[str | os.PathLike[str]] "
              "| Mapping[str, float] | None", _models)
IDS = Kind("Mapping[str, int | str | None] | None", _ids)
SPECIAL = Kind("Mapping[str, int | None] | None", _special)

# Kinds of the command, and names of options with a kind of their own in Python.
KINDS = {"flag": FLAG, "maybe": MAYBE, "text": TEXT, "choice": TEXT, "file": PATH, "output": PATH,
         "records": PATH, "profile": PATH, "model": PATH, "secret": PATH, "list": TEXTS, "key_files": SET_FILES,
         "number": NUMBER, "size": SIZE, "real": REAL, "models": MODELS}
NAMES = {"share": SHARE, "weight": WEIGHTS, "density": WEIGHTS, "t": WEIGHTS, "factor": REAL,
         "base": PATH, "normalize": TRUTH, "seed": NUMBER, "tied": NAMES_OF_TENSORS,
         "ignore": PATHS, "id-seed": NUMBER, "rename": RENAMES, "cast": RULES, "tensor": RULES,
         "sparsify": RULES, "compress": RULES, "digest": RULES, "requires-grad": GRADS,
         "set": SETTINGS, "set-id": IDS, "special": SPECIAL, "view": VIEWS}
# What is different in Python: texts for an option, or for the option of a command.
TEXTS_OF = {
    "view": "types of arrays that are stored without one: {pattern: type}",
    "quiet": "give no warnings about files",
    "verbose": "also report notes, and the memory of an index",
    "verify share": "verify only this share, and write a record; returns None",
    "verify output": "with share, the stem of the record; default: of the model",
    "verify join": "read the records with this stem, and return the result",
    "sign password-file": "file with the password of an encrypted key",
    "sign output": "write the signature here; default: model.sig in the model's folder",
    "ignore": "files or folders of the model to leave out",
    "tree": "also give the joint statistics of modules",
    "finite": "warn of each tensor with a NaN or an infinity",
    "sbom output": "also write the bill to this file",
    "keep": "keep only tensors that match one of the patterns",
    "drop": "leave out tensors that match one of the patterns",
    "rename": "new names of tensors: {old: new}, or s/RE/TEXT/ as in sed -E",
    "cast": "element type, or {pattern: element type}",
    "tensor": "tensors to replace: {name: \"FILE\" or \"FILE:NAME\"}",
    "sparsify": "csr or coo, or {pattern: layout}",
    "requires-grad": "whether tensors are trained (gpt-rs): a bool, or {pattern: bool or None}",
    "weight": "of each model, [0.7, 0.3], or of all; {part of a name or pattern: either}",
    "density": "what ties and dare keep, of each model or of all, as weight",
    "t": "slerp: from the base, 0, to the model, 1; {part of a name or pattern: number}",
    "tied": "where a model lacks a tensor: {name: other name}",
    "lora": "adapters to merge, or {adapter: factor}",
    "set": "metadata: {key: value} or {key: (type, value)}",
    "set-file": "metadata: {key: path of a file with the text}",
    "unset": "keys of metadata to remove",
    "set-id": "Burn ids: {name: id}; None removes the id",
    "compress": "zstd[:LEVEL] or none, or {pattern: compression}",
    "digest": "crc32c, sha256, xxh3 or none, or {pattern: digest}",
    "max-size": "maximum bytes per file, header included: 5 * 10**9 or \"5GB\"",
    "dry-run": "report losses and size; write nothing",
    "force": "replace existing files",
    "share": "write only this share: (2, 8), or \"auto\" under mpirun or srun",
    "abort": "remove the shares of the target that are written; returns None",
}


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a command; --no-sync is the keyword argument no_sync."""
    name: str
    kind: Kind
    help: str

    @property
    def keyword(self):
        return self.name.replace("-", "_")

    def words(self, value):
        """Return the words of the command line for the value."""
        if self.kind is FLAG:
            if not isinstance(value, bool):
                raise TypeError(f"{self.keyword} must be a bool, not {type(value).__name__}")
            return [f"--{self.name}"] if value else []
        if value is None or (self.kind is MAYBE and value is False):
            return []
        if self.kind is MAYBE and value is True:
            return [f"--{self.name}"]
        try:
            return [f"--{self.name}={word}" for word in self.kind.words(value)]
        except (AttributeError, TypeError) as error:
            raise TypeError(f"{self.keyword}: {error}") from None


def _in_python(command, name, kind, text):
    text = TEXTS_OF.get(f"{command} {name}") or TEXTS_OF.get(name) or text
    return Option(name, NAMES.get(name) or KINDS[kind],
                  re.sub(r"--([a-z-]+)", lambda m: m[1].replace("-", "_"), text))


def options_of(command):
    """Return the options of a command, in its order."""
    return [_in_python(command, name, kind, text)
            for name, commands, kind, text in DESCRIBED if command in commands.split()]
