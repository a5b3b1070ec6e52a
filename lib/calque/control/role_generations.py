"""The generations of a role as files of the state folder: the port `Leases`. By these files processes over one folder
follow each other as writers of one target do."""

from __future__ import annotations

import json
import os
import re
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from pathlib import Path

from calque.model.lease import Generation, Writer
from calque.ports import Conflict
from calque.state_files import NO_LINKS, gone, open_private, reaching, require_there, write_all, write_new

UNKNOWN = Writer("", "", 0, "")
"""The writer of a generation that can't be read."""


class FileGenerations:
    """The generations of one role: files `<stem>.<number>.lease` in `folder`. Every method may raise `Unavailable`,
    `StateUnusable` and `StateFolderGone`."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder, self._stem = folder, stem
        self._pattern = re.compile(rf"{re.escape(stem)}\.(\d+)\.lease")

    def newest(self) -> Generation | None:
        with self._reaching():
            while numbers := self._numbers():
                number = max(numbers)
                try:
                    return generation_of(number, self._path(number).read_text(errors="replace"))
                except FileNotFoundError:
                    continue
            return None

    def take(self, generation: Generation) -> None:
        path = self._path(generation.number)
        with self._reaching():
            try:
                write_new(path, text_of(generation).encode())
            except FileExistsError as error:
                raise Conflict(f"Generation {generation.number} of {self._stem} is there") from error
            # Without room for it the first renewal needs some.
            with suppress(OSError):
                write_in_place(spare_of(path), text_of(generation).encode())

    def renew(self, generation: Generation) -> None:
        """Write the renewed generation, and need no room on the disk for it, because the spare file that is written has
        its blocks already. Raises `Conflict` where a later generation has replaced this one."""
        path = self._path(generation.number)
        with self._reaching():
            if not path.exists():
                if max(self._numbers(), default=0) < generation.number:
                    raise gone(path, "It was removed, or its file system unmounted, under this process")
                raise Conflict(f"Generation {generation.number} of {self._stem} is gone")
            spare = spare_of(path)
            write_in_place(spare, text_of(generation).encode())
            swap(spare, path)
            if generation.released:
                spare.unlink(missing_ok=True)

    def forget(self, below: int) -> None:
        with self._reaching():
            for number in self._numbers():
                if number < below:
                    self._path(number).unlink(missing_ok=True)
                    spare_of(self._path(number)).unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        require_there(self._folder)
        matches = (self._pattern.fullmatch(path.name) for path in self._folder.iterdir())
        return [int(match[1]) for match in matches if match]

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._stem}.{number}.lease"

    def _reaching(self) -> AbstractContextManager[None]:
        return reaching(f"The lease on {self._stem} can't be kept", self._folder)


def spare_of(path: Path) -> Path:
    """Return the path of the file that the next renewal of the generation is written to."""
    return path.with_suffix(".spare")


def write_in_place(file: Path, data: bytes) -> None:
    descriptor = open_private(file, os.O_WRONLY)
    try:
        write_all(descriptor, data)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def swap(spare: Path, path: Path) -> None:
    """Exchange the two files by their names alone: a reader of `path` finds either the old or the new content, whole. A
    file system without hard links loses the spare."""
    before = path.with_suffix(".before")
    before.unlink(missing_ok=True)
    try:
        os.link(path, before)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        spare.replace(path)
    else:
        spare.replace(path)
        before.replace(spare)


def text_of(generation: Generation) -> str:
    return json.dumps(asdict(generation), sort_keys=True)


def generation_of(number: int, text: str) -> Generation:
    """Return the generation that `text` describes. Where it is not what `text_of` gives, the generation has an unknown
    writer and no seconds, so that it is not waited for."""
    try:
        values = json.loads(text)
        return Generation(**{**values, "writer": Writer(**values["writer"])})
    except (KeyError, TypeError, ValueError):
        return Generation(number, UNKNOWN, 0.0)
