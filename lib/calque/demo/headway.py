"""The headway of a running replication, by which a demo tells a slow machine from a replication that hangs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calque.demo.progress import View

STILL_SECONDS = 300.0
"""Seconds without headway after which a demo gives up. Nothing else is seen of a start of Python and Spark, which takes
minutes where many processes share a processor."""


class Headway:
    """A watch on the headway of a replication: whether any of its numbers has become greater than ever before. Work
    that fails and begins again makes no headway. `now` is the time in seconds, of any clock that does not go back."""

    def __init__(self, now: float) -> None:
        self._most: dict[tuple[str, str], int] = {}
        self._since = now

    def still_seconds(self, view: View, now: float) -> float:
        """Return for how many seconds there has been no headway, with this look."""
        for sign, number in signs(view):
            if number > self._most.get(sign, -1):
                self._most[sign] = number
                self._since = now
        return now - self._since


def signs(view: View) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the numbers that grow while a replication does its work, each with its target and its name."""
    yield ("", "processes"), len(view.status.get("processes", ()))
    for name, target in view.status.get("targets", {}).items():
        yield (name, "position"), target["position"] or 0
        yield (name, "live"), target["tables"]["live"] or 0
        yield (name, "bytes"), view.work[name].bytes if name in view.work else 0
        for part in ("reading", "copying"):
            for sign, number in _done(target[part]):
                yield (name, f"{part} {sign}"), number


def _done(document: Mapping[str, Any] | None) -> Iterator[tuple[str, int]]:
    for sign, number in (document or {}).items():
        if sign.endswith("_done"):
            yield sign, number
