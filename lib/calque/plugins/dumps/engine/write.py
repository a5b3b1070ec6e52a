"""Files of a dump onto the storage where it lies."""

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
"""Bytes of a file that is written at once; a larger one is made here and copied."""
WRITERS = 8
AT_ONCE = 256
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DumpWriter:
    """`folder` is on this machine, and the dump's own."""

    storage: Storage
    folder: Path

    def text(self, path: str, text: str) -> None:
        self.storage.write(path, text.encode())

    def texts(self, files: Iterable[tuple[str, str]]) -> None:
        """Many small files, by path."""
        for _ in spread(lambda file: self.text(*file), files):
            pass

    def pieces(self, path: str, pieces: Iterable[str]) -> None:
        """A file that may be large."""
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
        """Those that failed."""
        remaining = iter(tasks)
        while chunk := list(islice(remaining, AT_ONCE)):
            yield from (copied for copied in self.storage.copy(chunk) if copied.problem)


def spread(work: Callable[[T], R], things: Iterable[T], at_once: int = AT_ONCE) -> Iterator[R]:
    """The results in order, some of them at a time, without holding all the things."""
    remaining = iter(things)
    with ThreadPoolExecutor(WRITERS, thread_name_prefix="dump") as pool:
        while chunk := list(islice(remaining, at_once)):
            yield from pool.map(work, chunk)
