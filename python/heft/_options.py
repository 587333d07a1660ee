"""The options of the commands, as keyword arguments of Python and as words of the command line.

OPTIONS is the only list of options: signatures, documentation and command lines come from it, and
a test compares it with what the command prints for --help."""
import dataclasses
import json
import os
import re

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
PATH = Kind("str | os.PathLike[str] | None", path_words)
PATHS = Kind("str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None", _paths)
NUMBER = Kind("int | None", _number)
SIZE = Kind("int | str | None", _size)
REAL = Kind("float | None", _real)
SHARE = Kind("str | tuple[int, int] | None", _share)
TEXTS = Kind("str | Iterable[str] | None", _texts)
RULES = Kind("str | Iterable[str] | Mapping[str, str] | None", _rules)
GRADS = Kind("bool | str | Mapping[str, bool | None] | None", _grads)
SETTINGS = Kind("Mapping[str, object] | None", _settings)
SET_FILES = Kind("Mapping[str, str | os.PathLike[str]] | None", _set_files)
VIEWS = Kind("Mapping[str, str] | None", _views)
RENAMES = Kind("str | Iterable[str] | Mapping[str, str] | None", _renames)
IDS = Kind("Mapping[str, int | str | None] | None", _ids)
SPECIAL = Kind("Mapping[str, int | None] | None", _special)

WRITING = "convert merge split append"
MODELS = "info verify diff hash stats sbom convert merge split append edit"
NO_VERIFY = " ".join(name for name in MODELS.split() if name not in ("verify", "edit"))
NO_VIEW = " ".join(name for name in MODELS.split() if name not in ("append", "edit"))


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of one or more commands; --no-sync is the keyword argument no_sync."""
    name: str
    commands: str
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
        if value is None:
            return []
        try:
            return [f"--{self.name}={word}" for word in self.kind.words(value)]
        except (AttributeError, TypeError) as error:
            raise TypeError(f"{self.keyword}: {error}") from None


OPTIONS = [Option(*row) for row in (
    ("profile", "verify", PATH, "also check a model's tensors and metadata: a name, or a file"),
    ("strict", "verify", FLAG, "any finding is a failure, notes included"),
    ("quick", "verify", FLAG, "check structure and header checksums only"),
    ("hub", "verify", FLAG, "compare files with the digests that a Hugging Face cache states"),
    ("signature", "verify", PATH, "check the signature of a model, and its files, with public_key or ca"),
    ("public-key", "verify", PATH, "with signature, the file of the public key"),
    ("ca", "verify", PATH, "with signature, the file of the certificates that are trusted"),
    ("certificate", "verify", PATH, "with ca, the signer's certificate has to be this one"),
    ("key", "sign", PATH, "file of the private key, on the curve P-256, P-384 or P-521"),
    ("password-file", "sign", PATH, "file with the password of an encrypted key"),
    ("certificate", "sign", PATH, "file with the certificate of the key, which the signature will "
     "contain"),
    ("chain", "sign", PATH, "file with the certificates of the issuers"),
    ("output", "sign", PATH, "write the signature here; default: model.sig in the model's folder"),
    ("ignore", "sign", PATHS, "files or folders of the model to leave out"),
    ("atol", "diff", REAL, "tolerate differences up to this value"),
    ("rtol", "diff", REAL, "tolerate differences up to this value times the value in b"),
    ("ulp", "diff", NUMBER, "tolerate this many spacings of the less precise element type"),
    ("ignore-dtype", "diff", FLAG, "equal values of different element types are equal"),
    ("ignore-metadata", "diff", FLAG, "do not compare metadata"),
    ("trust-digests", "diff", FLAG, "do not read tensors with equal SHA-256 in both files"),
    ("tree", "stats", FLAG, "also give the joint statistics of modules"),
    ("depth", "stats", NUMBER, "fold modules at this depth of the tree"),
    ("finite", "stats", FLAG, "warn of each tensor with a NaN or an infinity"),
    ("max-size", "split", SIZE, "maximum bytes per file, header included: 5 * 10**9 or \"5GB\""),
    ("count", "split", NUMBER, "minimum number of files"),
    ("name", "split", TEXT, "beginning of the files' names"),
    ("output", "sbom", PATH, "also write the bill to this file"),
    ("output", "doctor", PATH, "write the intact tensors to this file"),
    ("to", "doctor convert merge split", TEXT, "target format; default: by the suffix, or as the input"),
    ("format-version", "convert merge", TEXT, "version of the target format"),
    ("keep", "convert append", TEXTS, "keep only tensors that match one of the patterns"),
    ("drop", "convert append", TEXTS, "leave out tensors that match one of the patterns"),
    ("rename", "diff convert append edit", RENAMES, "new names of tensors: {old: new}, or s/RE/TEXT/ "
     "as in sed -E"),
    ("cast", "convert append", RULES, "element type, or {pattern: element type}"),
    ("raw-tensors", "convert append", FLAG, "cast parts of quantised tensors as numbers"),
    ("transpose", "convert", TEXTS, "transpose matrices that match"),
    ("densify", "convert", TEXTS, "convert sparse tensors that match to dense"),
    ("sparsify", "convert", RULES, "csr or coo, or {pattern: layout}"),
    ("set", "convert edit", SETTINGS, "metadata: {key: value} or {key: (type, value)}"),
    ("set-file", "convert edit", SET_FILES, "metadata: {key: path of a file with the text}"),
    ("no-format-key", "convert merge split", FLAG, "add no \"format\" to metadata of safetensors"),
    ("unset", "edit", TEXTS, "keys of metadata to remove"),
    ("duplicates", "merge append", TEXT, "which tensor of a name to keep: first or last"),
    ("set-id", "convert merge edit", IDS, "Burn ids: {name: id}; None removes the id"),
    ("new-ids", "convert merge edit", FLAG, "new random Burn ids for all tensors"),
    ("fill-ids", "convert merge edit", FLAG, "new random Burn ids for tensors without one"),
    ("id-seed", "convert merge edit", NUMBER, "derive the new ids from a number"),
    ("generator", "convert", TEXT, "writing program to store (zTensor 1.0)"),
    ("requires-grad", "convert merge edit", GRADS, "whether tensors are trained (gpt-rs): "
     "a bool, or {pattern: bool or None}"),
    ("base-ids", "convert merge edit", TEXT, "name: derive base ids from names (gpt-rs); none"),
    ("config", "convert edit", PATH, "configuration of the model (gpt-rs)"),
    ("vocab", "convert edit", PATH, "vocabulary: vocab.txt or tokenizer.json"),
    ("special", "convert edit", SPECIAL, "ids of the tokens pad, unk, cls, sep and mask"),
    ("compress", WRITING, RULES, "zstd[:LEVEL] or none, or {pattern: compression}"),
    ("digest", WRITING, RULES, "crc32c, sha256, xxh3 or none, or {pattern: digest}"),
    ("align", "convert merge append", NUMBER, "align payloads to this many bytes"),
    ("strict", WRITING + " edit", FLAG, "treat warnings about losses and patterns as errors"),
    ("allow-loss", "doctor " + WRITING, FLAG, "leave out or alter what the target cannot represent"),
    ("dry-run", "convert append edit", FLAG, "report losses and size; write nothing"),
    ("force", "doctor convert merge split sign sbom", FLAG, "replace existing files"),
    ("no-sync", "doctor sign sbom " + WRITING, FLAG, "do not wait for the disk (scratch files)"),
    ("resume", "convert", FLAG, "keep the download of a source on a server, and continue it"),
    ("share", "convert merge", SHARE, "write only this share: (2, 8), or \"auto\" under mpirun or srun"),
    ("share", "verify", SHARE, "verify only this share, and write a record; returns None"),
    ("output", "verify", PATH, "with share, the stem of the record; default: of the model"),
    ("join", "verify", PATH, "read the records with this stem, and return the result"),
    ("finish", "convert merge", FLAG, "complete the target from its shares"),
    ("abort", "convert merge", FLAG, "remove the shares of the target that are written; returns None"),
    ("threads", MODELS + " doctor scan sign", NUMBER, "number of threads; 0: one per processor"),
    ("verbose", "info diff " + WRITING + " edit", FLAG, "also report notes, and the memory of an index"),
    ("key", MODELS, TEXT, "open only this part of a nested checkpoint, e.g. state_dict"),
    ("view", NO_VIEW, VIEWS, "types of arrays that are stored without one: {pattern: type}"),
    ("access", MODELS, TEXT, "how to read files: auto, map, read or direct"),
    ("max-tensors", MODELS, NUMBER, "maximum number of tensors in a file"),
    ("max-bytes", MODELS, SIZE, "maximum number of bytes to read and decode"),
    ("quiet", MODELS, FLAG, "give no warnings about files"),
    ("no-verify", NO_VERIFY, FLAG, "read in spite of wrong checksums"),
    ("offline", MODELS, FLAG, "refuse files on servers"),
    ("follow-links", MODELS, FLAG, "follow symbolic links that leave the model's folder"),
    ("no-sandbox", MODELS + " doctor scan sign", FLAG, "restrict neither files nor system calls"),
)]


def options_of(command):
    """Return the options of a command, in the order of the table."""
    return [option for option in OPTIONS if command in option.commands.split()]
