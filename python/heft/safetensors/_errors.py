"""SafetensorError, and the errors of Heft as users of safetensors expect them."""
import contextlib
import errno

from .._exceptions import Error, IOError, NoMemoryError


class SafetensorError(Exception):
    """A file, a tensor or an index that cannot be used. The cause is a heft.Error, if there is
    one."""


SafetensorError.__module__ = "heft.safetensors"


def _of_system(error, path):
    if error.errno == errno.ENOENT:
        return FileNotFoundError(f"No such file or directory: {path}")
    return OSError(error.errno, error.strerror or str(error), path)


@contextlib.contextmanager
def translated(what, path=None):
    """Raise the errors of Heft as SafetensorError("WHAT: text"), those of the system as OSError."""
    try:
        yield
    except NoMemoryError:
        raise
    except IOError as e:
        if not e.errno:
            raise SafetensorError(f"{what}: {e}") from e
        raise _of_system(e, path) from e
    except Error as e:
        raise SafetensorError(f"{what}: {e}") from e
