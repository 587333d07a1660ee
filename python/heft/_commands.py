"""The commands of Heft as functions: convert, verify, sign, sbom, doctor, scan, diff, hash, stats,
edit, delta, apply, split, merge, blend, append and info run the command that is part of the package and give
dataclasses."""
import inspect
import json
import os
import pathlib
import warnings

from dataclasses import dataclass

from . import _child, _errors
from ._exceptions import LossWarning
from ._options import FLAG, options_of, path_words
from ._results import (Appended, Bill, Converted, Delta, Diagnosis, Difference, Digests, Edited, Info, Message,
                       Quality, Renamed, Report, Result, Scan, Signed, Split, Stats, build)


class FileWarning(UserWarning):
    """Something unusual, though allowed, about a file.

    rule: name of the rule (docs/findings.md). tensor: name of the tensor, or None."""

    def __init__(self, text, rule=None, tensor=None):
        super().__init__(text)
        self.rule, self.tensor = rule, tensor


# ---- arguments ----

def _paths(value):
    """Return several paths, or one."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return path_words(value)
    paths = [word for item in value for word in path_words(item)]
    if not paths:
        raise ValueError("no files")
    return paths


def _globs(value):
    return [value] if isinstance(value, str) else [_text(glob) for glob in value]


def _text(value):
    if not isinstance(value, str):
        raise TypeError(f"patterns must be str, not {type(value).__name__}")
    return value


ANNOTATIONS = {path_words: "str | os.PathLike[str]",
               _paths: "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]",
               _globs: "str | Iterable[str]"}


# ---- results ----

@dataclass
class _Done:
    """What a command has said and printed, for the functions that make results of it."""
    arguments: dict
    out: bytes
    messages: list
    result: dict

    def build(self, cls, members):
        return build(cls, {**members, "messages": tuple(self.messages)})

    def path(self, name):
        """Return an argument: in messages, bytes that are not UTF-8 are replaced."""
        return os.fsdecode(self.arguments[name])

    def document(self):
        return json.loads(self.out)


def _of_document(cls, file=None):
    def make(done):
        members = done.document()
        return done.build(cls, {**members, "file": done.path(file)} if file else members)
    return make


def _of_result(cls, file):
    return lambda done: done.build(cls, {**done.result, "file": done.path(file)})


def _converted(done):
    members = {**done.result, "file": done.path("target")}
    if done.arguments["verify_quality"]:
        document = done.document()
        members["quality"] = tuple(build(Quality, t) for t in document["tensors"])
        members["total_quality"] = build(Quality, document["total"])
    return done.build(Converted, members)


def _split_result(done):
    folder = done.path("folder")
    files = tuple(pathlib.Path(folder, name) for name in done.result["files"])
    return done.build(Split, {**done.result, "folder": folder, "files": files})


def _signed(done):
    """An output that was given keeps bytes that are not UTF-8."""
    output = done.arguments["output"]
    return done.build(Signed, {**done.result,
                               "file": done.result["file"] if output is None else os.fsdecode(output)})


def _bill(done):
    output = done.arguments["output"]
    text = (done.out if output is None else pathlib.Path(os.fsdecode(output)).read_bytes()).decode()
    return done.build(Bill, {"file": done.path("file"), "text": text,
                             "document": json.loads(text)})


def _each(result):
    """A result for one file, a list of them for several and for the files of a folder."""
    def results(done):
        document = done.document()
        if isinstance(document, list):
            return [done.build(result, one) for one in document]
        one = done.build(result, document)
        given = done.arguments["files"]
        return one if isinstance(given, (str, bytes, os.PathLike)) else [one]
    return results


def _unless(option, result):
    """With this option the command has no result: a record is written, or shares are removed."""
    return lambda done: None if done.arguments[option] else result(done)


# ---- the table ----

@dataclass(frozen=True)
class _Command:
    name: str
    parameters: dict  # name -> how it becomes words
    result: object    # makes the result of a _Done
    returns: str      # annotation of the result
    summary: str
    defaults: dict = None
    statuses: tuple = (0,)  # exit statuses with a result
    flags: tuple = ()       # always given

    def signature(self):
        defaults = self.defaults or {}
        parameters = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                              annotation=ANNOTATIONS[kind],
                              default=defaults.get(name, inspect.Parameter.empty))
            for name, kind in self.parameters.items()]
        parameters += [
            inspect.Parameter(option.keyword, inspect.Parameter.KEYWORD_ONLY,
                              default=False if option.kind is FLAG else None,
                              annotation=option.kind.annotation)
            for option in options_of(self.name)]
        parameters.append(inspect.Parameter(
            "progress", inspect.Parameter.KEYWORD_ONLY, default=None,
            annotation="Callable[[int, int], object] | bool | None"))
        return inspect.Signature(parameters, return_annotation=self.returns)

    def documentation(self):
        rows = [f"    {option.keyword}: {option.help}" for option in options_of(self.name)]
        return "\n".join([self.summary, "", "Options:", *rows,
                          "    progress: a callable of (done, total) bytes, or True for a bar",
                          "", "Errors are heft.Error and its subclasses."])

    def words(self, arguments):
        """Return the words of the command line."""
        words = [self.name, "--messages=json", *self.flags]
        words += JSON if arguments.get("verify_quality") else ()
        for option in options_of(self.name):
            words += option.words(arguments[option.keyword])
        words.append("--")
        for name, kind in self.parameters.items():
            try:
                words += kind(arguments[name])
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
        return words


JSON = ("--json",)
_COMMANDS = [
    _Command("info", {"file": path_words}, _of_document(Info, "file"), "Info",
             "Return facts of a file: format, version, counts, metadata, checksums.", flags=JSON),
    _Command("verify", {"files": _paths}, _unless("share", _each(Report)),
             "Report | list[Report] | None",
             "Check structure, checksums, padding and reserved bits of a file, or of several, "
             "which gives a list.\nFaults are findings, not exceptions; a file that cannot be "
             "read is an exception.", statuses=(0, 1), flags=JSON),
    _Command("doctor", {"file": path_words}, _of_document(Diagnosis, "file"), "Diagnosis",
             "Say what is wrong with a file, and with output write the intact tensors to a new file.",
             statuses=(0, 1), flags=JSON),
    _Command("scan", {"files": _paths}, _each(Scan), "Scan | list[Scan]",
             "Report what the pickles in a file would import if a program loaded them. Several files, "
             "or a\nfolder, give a list. Nothing is loaded.", statuses=(0, 1), flags=JSON),
    _Command("sign", {"model": path_words}, _signed, "Signed",
             "Sign a file, or all files of a folder, with a private key. verify checks the "
             "signature."),
    _Command("sbom", {"file": path_words}, _bill, "Bill",
             "Return a bill of materials of a model: name, licence, base models, datasets, task, counts, "
             "digests. With\noutput the bill is also written to that file."),
    _Command("diff", {"a": path_words, "b": path_words, "patterns": _globs},
             _of_document(Difference), "Difference",
             "Compare names, element types, shapes, values and metadata of two files, across formats. "
             "With patterns\nonly the tensors whose names match one.",
             defaults={"patterns": ()}, statuses=(0, 1), flags=JSON),
    _Command("hash", {"file": path_words}, _of_document(Digests, "file"), "Digests",
             "Return content digests, equal for equal tensors whatever the format.", flags=JSON),
    _Command("stats", {"file": path_words, "patterns": _globs}, _of_document(Stats, "file"), "Stats",
             "Compute minimum, maximum, mean and more of the tensors whose names match a pattern.",
             defaults={"patterns": ()}, statuses=(0, 1), flags=JSON),
    _Command("convert", {"source": path_words, "target": path_words},
             _unless("abort", _converted),
             "Converted | None",
             "Write a file or a folder in another format. The target appears whole or not at all."),
    _Command("split", {"source": path_words, "folder": path_words}, _split_result, "Split",
             "Write a model as shards. Needs max_size or count."),
    _Command("merge", {"sources": _paths, "target": path_words},
             _unless("abort", _of_result(Converted, "target")),
             "Converted | None",
             "Write all tensors of several files, or of a folder of shards, into one file."),
    _Command("blend", {"models": _paths, "target": path_words}, _of_result(Converted, "target"),
             "Converted",
             "Blend models of the same shapes into one: weighted sums, slerp, sums of differences to a base."),
    _Command("append", {"file": path_words, "sources": _paths}, _of_result(Appended, "file"),
             "Appended",
             "Add the tensors of other files to a file, all of them or none."),
    _Command("edit", {"file": path_words}, _of_result(Edited, "file"), "Edited",
             "Change metadata, names, ids, vocabulary or configuration of a file, atomically. "
             "Without changes:\nroll back an interrupted edit."),
    _Command("delta", {"old": path_words, "new": path_words}, _of_document(Delta), "Delta",
             "Write what changed from one model to another to the file output, or with dry_run only "
             "compare them.", flags=JSON),
    _Command("apply", {"old": path_words, "delta": path_words}, _of_document(Delta), "Delta",
             "Write the model that a delta makes of another one to the file output, or change it "
             "in_place.", flags=JSON),
]


# ---- running ----

def _warn(messages, level):
    """Give the warnings of a command that succeeded."""
    for message in messages:
        category = None
        if message.kind == "loss" and message.severity != "note":
            category = LossWarning
        elif message.kind in ("warning", "fault"):
            category = FileWarning
        if category:
            warning = category(str(message), message.rule, message.tensor)
            warnings.warn(warning, stacklevel=level)


def _run(command, arguments):
    messages, results = [], []
    words = command.words(arguments)
    progress = _child.Progress(arguments["progress"], f"heft {command.name}")

    def on_message(members):
        if members["kind"] == "progress":
            progress.step(members["done"], members["total"])
        elif members["kind"] == "result":
            results.append(members)
        else:
            messages.append(build(Message, members))

    try:
        status, out = _child.run(words, on_message)
        if status not in command.statuses:
            raise _errors.exception_of(command.name, status, messages)
        progress.finish()
    finally:
        progress.close()
    _warn(messages, level=4)
    return command.result(_Done(arguments, out, messages, results[-1] if results else {}))


def _function(command):
    signature = command.signature()

    def function(*args, **options):
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{command.name}(): {error}") from None
        bound.apply_defaults()
        return _run(command, bound.arguments)

    function.__name__ = function.__qualname__ = command.name
    function.__module__ = "heft"
    function.__doc__ = command.documentation()
    function.__signature__ = signature
    function.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    function.__annotations__["return"] = command.returns
    return function


FUNCTIONS = {command.name: _function(command) for command in _COMMANDS}
append, apply, blend, convert, delta, diff, doctor, edit, hash, info, merge, sbom, scan, sign, split, stats, verify = (
    FUNCTIONS[name] for name in sorted(FUNCTIONS))

__all__ = [*FUNCTIONS, "FileWarning", "Message", "Result", "Converted", "Split",
           "Edited", "Appended", "Delta", "Quality", "Report", "Signed", "Bill", "Diagnosis", "Scan", "Difference",
           "Renamed", "Digests", "Stats", "Info"]
