"""Generations of a role as files of the state folder: the port `Leases`, by which processes over one folder follow each
other as writers of one target do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

from calque.errors import Unavailable
from calque.model.lease import Generation, Writer
from calque.ports import Conflict

UNKNOWN = Writer("", "", 0, "")
"""Whoever died between making a generation and writing who it is."""


class FileGenerations:
    """Those of one role: `<stem>.<number>.lease` in `folder`. Every method may raise `Unavailable`."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder, self._stem = folder, stem
        self._pattern = re.compile(rf"{re.escape(stem)}\.(\d+)\.lease")

    def newest(self) -> Generation | None:
        with self._unavailable():
            while numbers := self._numbers():
                number = max(numbers)
                try:
                    return generation_of(number, self._path(number).read_text())
                except FileNotFoundError:
                    continue
            return None

    def take(self, generation: Generation) -> None:
        with self._unavailable():
            try:
                with self._path(generation.number).open("x") as file:
                    file.write(text_of(generation))
            except FileExistsError as error:
                raise Conflict(f"Generation {generation.number} of {self._stem} is there") from error

    def renew(self, generation: Generation) -> None:
        path = self._path(generation.number)
        with self._unavailable():
            if not path.exists():
                raise Conflict(f"Generation {generation.number} of {self._stem} is gone")
            draft = path.with_name(f".{path.name}.{uuid4().hex}")
            draft.write_text(text_of(generation))
            draft.replace(path)

    def forget(self, below: int) -> None:
        with self._unavailable():
            for number in self._numbers():
                if number < below:
                    self._path(number).unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        matches = (self._pattern.fullmatch(path.name) for path in self._folder.iterdir())
        return [int(match[1]) for match in matches if match]

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._stem}.{number}.lease"

    @contextmanager
    def _unavailable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unavailable(f"The lease on {self._stem} can't be kept in {self._folder}", str(error)) from error


def text_of(generation: Generation) -> str:
    return json.dumps(asdict(generation), sort_keys=True)


def generation_of(number: int, text: str) -> Generation:
    """Of nobody, who is not waited for, where the text is not what `text_of` gives."""
    try:
        values = json.loads(text)
        return Generation(**{**values, "writer": Writer(**values["writer"])})
    except (KeyError, TypeError, ValueError):
        return Generation(number, UNKNOWN, 0.0)
