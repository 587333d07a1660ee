"""Exceptions for the errors that the command reports, of the classes that the library uses."""
import signal

from . import _exceptions as exceptions
from ._results import Message

_CLASSES = {  # by status; heft.Error for the others
    "format": exceptions.FormatError, "checksum": exceptions.ChecksumError,
    "lossy": exceptions.LossError, "limit": exceptions.LimitError, "io": exceptions.IOError,
    "not-found": exceptions.NotFoundError, "unsupported": exceptions.UnsupportedError,
    "argument": exceptions.ArgumentError, "no-memory": exceptions.NoMemoryError,
    "cancelled": exceptions.CancelledError}


def _make(message):
    """Make the exception for a message, with .status .offset .rule .tensor, and .errno of a system
    error."""
    cls = _CLASSES.get(message.status, exceptions.Error)
    if issubclass(cls, OSError):
        error = cls(message.errno or 0, message.text, message.file)
    else:
        error = cls(str(message))
    error.status, error.offset = message.status, message.offset
    error.rule, error.tensor = message.rule, message.tensor
    return error


def exception_of(command, status, messages):
    """Return the exception for a command that failed. Its notes list what the message refers to,
    such as the losses that ended a conversion."""
    errors = [m for m in messages if m.kind == "error"]
    causes = [m for m in messages if m.kind == "loss" and m.severity != "note"]
    fatal = [m for m in causes if m.severity == "error"]
    if errors:
        message = errors[-1]
    elif fatal:  # an error under strict, which has no line of its own
        message = Message("error", fatal[-1].text, fatal[-1].file, "lossy", fatal[-1].rule)
    else:
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        message = Message("error", f"heft {command} ended with {how}", None, "io")
    if message.status == "lossy" and message.tensor is None and fatal:
        message = Message(message.kind, message.text, message.file, message.status,
                          fatal[0].rule, fatal[0].tensor)
    error = _make(message)
    for note in [m for m in messages if m.kind == "info" or m in causes]:
        error.add_note(str(note))
    error.messages = tuple(messages)
    return error
