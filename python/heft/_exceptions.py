"""The exceptions of the package. The C extension raises them."""


class Error(Exception):
    """An error of the library.

    status: name of the status, "format". offset: byte of the file, or None. rule: name of the
    violated rule (docs/findings.md), or None. tensor: name of the tensor, or None."""
    status = offset = rule = tensor = None


class FormatError(Error):
    """The bytes break the rules of the format, or no format recognises the file."""


class UnsupportedError(Error):
    """The file is well formed, but this build does not support a feature of the file."""


class LimitError(Error):
    """A limit was reached."""


class NoMemoryError(Error, MemoryError):
    """Memory ran out."""


class IOError(Error, OSError):  # the name of the status
    """Reading or writing failed; errno is that of the system call."""


class ChecksumError(Error):
    """A checksum in the file does not match the bytes that it covers."""


class NotFoundError(Error, KeyError):
    """There is no tensor, part or format of that name."""

    __str__ = Exception.__str__  # KeyError quotes the message


class ArgumentError(Error, ValueError):
    """An argument has a value that is not allowed, or a file is closed."""


class LossError(Error):
    """The target format cannot represent part of the model."""


class CancelledError(Error):
    """A callback stopped the work."""


class LossWarning(UserWarning):
    """Something that the target format cannot represent.

    rule: name of the rule (docs/findings.md). tensor: name of the tensor, or None."""

    def __init__(self, text, rule=None, tensor=None):
        super().__init__(text)
        self.rule, self.tensor = rule, tensor
