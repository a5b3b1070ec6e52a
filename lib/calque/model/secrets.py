"""The places of secret values: environment variables and files. Only the code that connects to a service reads them.

An object that holds a `Secret` can be printed, logged and pickled, because it has the reference and never the value.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calque.errors import AccessRefused, Refused


@dataclass(frozen=True, slots=True)
class VariableSecret:
    """The value of an environment variable of the process that reads it."""

    name: str

    def read(self) -> str:
        """Return the variable's value at this moment. Raises `Refused` where the variable is not set, or is empty."""
        value = os.environ.get(self.name)
        if not value:
            problem = f"The environment variable {self.name} is {'not set' if value is None else 'empty'}"
            raise Refused(problem, "A secret value comes from it", "Export it, or name another one")
        return value


@dataclass(frozen=True, slots=True)
class FileSecret:
    """The content of a file without the newlines at its end. `path` is absolute."""

    path: str

    def read(self) -> str:
        """Return the file's content at this moment. Raises `Refused` where the file is missing, unreadable, not UTF-8,
        or empty."""
        try:
            value = Path(self.path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            # A text that is no UTF-8 would be quoted in its error.
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            raise self._refused("can't be read", f"A secret value comes from it: {reason}") from None
        if not value:
            raise self._refused("is empty", "A secret value comes from it")
        return value

    def others_may_read(self) -> bool:
        """Return whether the file's mode lets every user of this host read it. Raises `Refused` where the file is
        missing."""
        try:
            return bool(Path(self.path).stat().st_mode & stat.S_IROTH)
        except OSError as error:
            raise self._refused("can't be read", str(error.strerror)) from None

    def _refused(self, problem: str, reason: str) -> Refused:
        return Refused(
            f"The file {self.path} {problem}", reason, "Write the value there, readable by calque's user alone"
        )


Secret = VariableSecret | FileSecret
Options = Mapping[str, str | Secret]
"""Settings of a client by their names. A secret one is a reference."""


def revealed(options: Options) -> dict[str, str]:
    """Return the options with the values that their secrets have at this moment. Raises `AccessRefused` for a secret
    that can't be read."""
    with refusals_of_access():
        return {key: value if isinstance(value, str) else value.read() for key, value in options.items()}


@contextmanager
def refusals_of_access() -> Iterator[None]:
    """Turn a `Refused` from within into `AccessRefused`. Code that connects uses it, because a secret or a certificate
    that can't be read concerns all calls, and no single table."""
    try:
        yield
    except Refused as refused:
        raise AccessRefused(refused.what, refused.why, refused.todo) from None


def versions(options: Options) -> tuple[object, ...]:
    """Return a value that differs after a file of the options was written or replaced, even if with the same content. A
    file that can't be looked at, or that is empty as while it is being written, has the version None."""
    return tuple(_version(value.path) for value in options.values() if isinstance(value, FileSecret))


def outdated(options: Options, version: tuple[object, ...]) -> bool:
    """Return whether a file of the options was written or replaced since `versions` gave `version`, and all of the
    files have a content now."""
    present = versions(options)
    return present != version and None not in present


def _version(path: str) -> object:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size) if status.st_size else None
