"""The writing of a dump's files onto the storage of the dump."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from calque.errors import Unavailable
from calque.ports import CopiedFile, CopyTask, Storage

SMALL = 4 << 20
"""Bytes of the largest file that is written by one call; a larger one is copied from this machine's disk."""
WRITERS = 8
AT_ONCE = 256
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DumpWriter:
    """The writer of one dump's files. `folder` is on this machine and belongs to this dump alone."""

    storage: Storage
    folder: Path

    def text(self, path: str, text: str) -> None:
        self.storage.write(path, text.encode())

    def texts(self, files: Iterable[tuple[str, str]]) -> None:
        """Write many small files, given as pairs of path and text, several at a time."""
        for _ in spread(lambda file: self.text(*file), files):
            pass

    def pieces(self, path: str, pieces: Iterable[str]) -> None:
        """Write a file that may be large: its pieces go into a file on this machine, which is then copied. Raises
        `Unavailable` where it can't be written."""
        local = self.folder / uuid4().hex
        try:
            with local.open("w", encoding="utf-8", newline="") as file:
                for piece in pieces:
                    file.write(piece)
            facts = local.stat()
            if facts.st_size <= SMALL:
                self.storage.write(path, local.read_bytes())
                return
            [copied] = self.storage.copy([CopyTask(str(local), path, facts.st_size, facts.st_mtime_ns)])
            if copied.problem:
                raise Unavailable(f"{path} can't be written", copied.problem, "Try again")
        finally:
            local.unlink(missing_ok=True)

    def copies(self, tasks: Iterable[CopyTask]) -> Iterator[CopiedFile]:
        """Copy the files, and return those copies that failed."""
        remaining = iter(tasks)
        while chunk := list(islice(remaining, AT_ONCE)):
            yield from (copied for copied in self.storage.copy(chunk) if copied.problem)


def spread(work: Callable[[T], R], things: Iterable[T], at_once: int = AT_ONCE) -> Iterator[R]:
    """Return the results of `work` for all things, in their order. Up to `WRITERS` calls run at a time, and at most
    `at_once` things and results are in memory."""
    remaining = iter(things)
    with ThreadPoolExecutor(WRITERS, thread_name_prefix="dump") as pool:
        while chunk := list(islice(remaining, at_once)):
            yield from pool.map(work, chunk)
