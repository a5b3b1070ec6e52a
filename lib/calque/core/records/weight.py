"""How many things are taken when they are to weigh no more than can be held?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def first_ones(things: Iterable[T], weight: Callable[[T], int], most: int | None) -> Iterator[T]:
    """Up to the one with which they come to weigh `most`, so one at least; all of them where that is None."""
    total = 0
    for thing in things:
        yield thing
        total += weight(thing)
        if most is not None and total >= most:
            return
