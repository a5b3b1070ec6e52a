"""Batches of bounded weight: as many things as can be held at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def first_ones(things: Iterable[T], weight: Callable[[T], int], most: int | None) -> Iterator[T]:
    """Yield things in order until they weigh at least `most` together, so at least one where there is one; all where
    `most` is None. The weight of the last one may exceed `most`."""
    total = 0
    for thing in things:
        yield thing
        total += weight(thing)
        if most is not None and total >= most:
            return
